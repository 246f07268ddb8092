"""Builds the tables of one host from its XSpace, one builder per table."""

from tfcompare.frames.host import HostTables, build, load_loops, table_of_hosts

__all__ = ["HostTables", "build", "load_loops", "table_of_hosts"]
