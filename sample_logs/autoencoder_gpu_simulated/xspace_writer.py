"""Builds XSpaces: planes with lines of events, whose names and texts are stored once, as the profiler stores them."""

from __future__ import annotations

from typing import Any

from tensorflow.tsl.profiler.protobuf import xplane_pb2

Value = int | float | str

PS_PER_NS = 1000
_UNSIGNED = {
    "correlation_id",
    "device_id",
    "memory_bandwidth",
    "memory_size",
    "profile_start_time",
    "profile_stop_time",
}
_LARGEST_SIGNED = 2**63 - 1


class Plane:
    """A plane under construction; `add_to` puts it into an XSpace."""

    def __init__(self, name: str, /, **stats: Value) -> None:
        self.name = name
        self.stats = stats
        self.lines: list[Line] = []
        self.event_ids: dict[str, int] = {}
        self.stat_ids: dict[str, int] = {}

    def line(self, name: str, number: int, begin_ns: int) -> Line:
        """A new line on this plane; its events' times count from `begin_ns`."""
        self.lines.append(Line(name, number, begin_ns))
        return self.lines[-1]

    def add_to(self, space: xplane_pb2.XSpace) -> None:
        """Append this plane to `space`."""
        out = space.planes.add(name=self.name)
        self._write_stats(out.stats, self.stats)
        for line in self.lines:
            self._write_line(out.lines.add(), line)
        for name, number in self.event_ids.items():
            out.event_metadata[number].id = number
            out.event_metadata[number].name = name
            out.event_metadata[number].display_name = _display_name(name)
        for name, number in self.stat_ids.items():
            out.stat_metadata[number].id = number
            out.stat_metadata[number].name = name

    def _write_line(self, out: xplane_pb2.XLine, line: Line) -> None:
        out.id, out.name, out.timestamp_ns = line.number, line.name, line.begin_ns
        for start_ns, minus_duration_ns, _, name, stats in sorted(line.events, key=lambda event: event[:3]):
            event = out.events.add(
                metadata_id=self.event_ids.setdefault(name, len(self.event_ids) + 1),
                offset_ps=(start_ns - line.begin_ns) * PS_PER_NS,
                duration_ps=-minus_duration_ns * PS_PER_NS,
            )
            self._write_stats(event.stats, stats)

    def _write_stats(self, out: Any, stats: dict[str, Value]) -> None:
        for name, value in stats.items():
            stat = out.add(metadata_id=self._stat_id(name))
            if isinstance(value, str):
                stat.ref_value = self._stat_id(value)
            elif isinstance(value, float):
                stat.double_value = value
            elif name in _UNSIGNED or value > _LARGEST_SIGNED:
                stat.uint64_value = value
            else:
                stat.int64_value = value

    def _stat_id(self, name: str) -> int:
        return self.stat_ids.setdefault(name, len(self.stat_ids) + 1)


class Line:
    """Events of one thread or stream, in any order."""

    def __init__(self, name: str, number: int, begin_ns: int) -> None:
        self.name = name
        self.number = number
        self.begin_ns = begin_ns
        self.events: list[tuple[int, int, int, str, dict[str, Value]]] = []

    def add(self, name: str, start_ns: int, end_ns: int, /, **stats: Value) -> None:
        """An event from `start_ns` to `end_ns`."""
        self.events.append((start_ns, start_ns - end_ns, len(self.events), name, stats))


def _display_name(name: str) -> str:
    """An op's type, a short name for an iterator; empty for what needs none."""
    if name.startswith("Iterator::"):
        return f"Iterator::{name.rpartition('::')[2].partition('[')[0]}"
    is_op = ":" in name and "::" not in name and " " not in name
    return name.rpartition(":")[2] if is_op else ""
