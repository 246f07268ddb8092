"""Parses bytes into a columnar XSpace. No other package depends on the wire format."""

from tfcompare.xspace.reader import HostProfile, parse, read
from tfcompare.xspace.space import Events, Lines, Plane, Stats, StringStat, XSpace

__all__ = ["Events", "HostProfile", "Lines", "Plane", "Stats", "StringStat", "XSpace", "parse", "read"]
