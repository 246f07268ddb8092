"""From an XSpace to pandas frames, one builder a table."""

from tfcompare.frames.host import HostFrames, build

__all__ = ["HostFrames", "build"]
