"""From an XSpace to pandas frames, one builder a table."""

from tfcompare.frames.host import HostBrief, HostFrames, build, load_loops

__all__ = ["HostBrief", "HostFrames", "build", "load_loops"]
