"""From an XSpace to pandas frames, one builder a table."""

from tfcompare.frames.host import HostBrief, HostFrames, build

__all__ = ["HostBrief", "HostFrames", "build"]
