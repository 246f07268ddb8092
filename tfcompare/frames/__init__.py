"""Builds the pandas frames of one host from its XSpace, one builder per table."""

from tfcompare.frames.host import HostFrames, build, load_loops

__all__ = ["HostFrames", "build", "load_loops"]
