"""Builds the tables of one host from its XSpace, one builder per table."""

from tfcompare.frames.host import HostTables, build, load_loops

__all__ = ["HostTables", "build", "load_loops"]
