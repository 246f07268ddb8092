"""Absolute limits on what a profile may contain, far above what real profiles have."""

from __future__ import annotations

from dataclasses import dataclass

from tfcompare.errors import NotAProfile
from tfcompare.schema.arrays import Int64
from tfcompare.xspace import decoding


@dataclass(frozen=True)
class Limits:
    """The limits on one host file. They bound what a small file can cost: each empty message takes two bytes of it, and
    far more in memory.

    In brackets: the most measured, in real profiles of up to 3 MB and in generated ones of 27 and 300 MB.
    """

    bytes: int = 2 << 30
    """Of the file, and of what a gzipped one expands to: no protobuf message may be larger [0.3 GB]."""
    planes: int = 1_000
    """[11]"""
    lines: int = 100_000
    """Threads, streams and derived lines [142]."""
    events: int = 100_000_000
    """[9,100,000]"""
    event_stats: int = 400_000_000
    """[27,500,000]"""
    event_metadata: int = 4_000_000
    """Distinct events [6,500]."""
    stat_metadata: int = 4_000_000
    """Distinct names of stats, and texts that stats refer to [4,200]."""
    other_stats: int = 20_000_000
    """Stats of planes, and of event metadata [of which 48,000]."""
    texts: int = 10_000
    """Errors, warnings and host names."""
    table_rows: int = 50_000_000
    """Of one table of a host [5,900,000]."""
    table_bytes: int = 2 << 30
    """Of all tables of a host in memory [0.52 GB]."""

    def check_counts(self, counts: Int64) -> None:
        """Raises `NotAProfile` if a scan counted too many rows of a table (`decoding.PLANES`, …)."""
        for table, what, most in (
            (decoding.PLANES, "planes", self.planes),
            (decoding.LINES, "lines", self.lines),
            (decoding.EVENTS, "events", self.events),
            (decoding.EVENT_STATS, "stats of events", self.event_stats),
            (decoding.EVENT_METADATA, "event metadata entries", self.event_metadata),
            (decoding.STAT_METADATA, "stat metadata entries", self.stat_metadata),
            (decoding.OTHER_STATS, "stats of planes and event metadata", self.other_stats),
            (decoding.TEXTS, "errors, warnings and host names", self.texts),
        ):
            if counts[table] > most:
                raise NotAProfile(None, 0, f"an XSpace of at most {most:,} {what}", f"one of {int(counts[table]):,}")


LIMITS = Limits()
"""The limits that apply unless others are given."""
