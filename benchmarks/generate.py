"""Write an XSpace of a given size that looks like a real recording: `python -m benchmarks.generate OUT --megabytes 30`.

The same arguments give the same bytes. A recording is some different steps, simulated event by event, that follow one
another with their times stretched at random and their ids renewed; they are written as they come, so size costs no
memory.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import numpy as np

from benchmarks import tf_cpu
from benchmarks.encode import MOST_BYTES_OF_EVENT, MOST_BYTES_OF_STAT, head, message, number, put_events
from benchmarks.recording import Int64, Recording, Step

KINDS: dict[str, Callable[[int, int], Recording]] = {"tf_cpu": tf_cpu.recording}
"""What can be generated: from a seed and a number of layers."""

MEGABYTE = 1_000_000
_MOST_LAYERS = 24
_LAYERS_PER_MEGABYTE = 10
_PS_PER_NS = 1000
_START_NS = 1_700_000_000_000_000_000
_LINE_START_NS = 20_000
_KNOTS = 24
_SHORTEST_STRETCH = 0.4  # of a step's time anywhere: what is apart in the simulated step stays apart


def generate(path: Path, megabytes: float, kind: str = "tf_cpu", seed: int = 1) -> None:
    """Write a recording of about that size to `path`: below 2.4 MB of a smaller model, so that it has steps."""
    layers = min(_MOST_LAYERS, max(2, round(_LAYERS_PER_MEGABYTE * megabytes)))
    recording = KINDS[kind](seed, layers)
    with ExitStack() as stack, path.open("wb") as out:
        lines = [stack.enter_context(tempfile.TemporaryFile(dir=path.parent)) for _ in recording.lines]
        length_ns = _write_steps(recording, lines, int(megabytes * MEGABYTE), np.random.default_rng(seed))
        _write_plane(out, recording, lines)
        out.write(_environment(length_ns))
        out.write(message(4, b"localhost"))


def _write_steps(recording: Recording, lines: Sequence[BinaryIO], size: int, rng: np.random.Generator) -> int:
    """Steps until there are enough bytes, the events of each line to a file of its own: the time they take."""
    written, begin_ns, index = 0, 0, 0
    while written < size:
        step = recording.steps[int(rng.integers(len(recording.steps)))]
        times = _Stretched(step, rng)
        begin_ps, end_ps = ((begin_ns + times(t)) * _PS_PER_NS for t in (step.begin_ns, step.end_ns))
        value = step.stat_value + index * step.stat_growth
        first = np.searchsorted(step.line, np.arange(len(lines) + 1))
        for line, file in enumerate(lines):
            written += file.write(_events(step, value, begin_ps, end_ps - begin_ps, first[line], first[line + 1]))
        begin_ns += int(times(np.array([step.length_ns]))[0])
        index += 1
    return begin_ns


class _Stretched:
    """The times of a step as they are once more: stretched here, shortened there, in the same order."""

    def __init__(self, step: Step, rng: np.random.Generator) -> None:
        stretch = np.maximum(rng.lognormal(rng.normal(0, 0.05), 0.3, _KNOTS), _SHORTEST_STRETCH)
        self._from = np.linspace(0, step.length_ns, _KNOTS + 1)
        self._to = np.append(0, np.cumsum(stretch)) * (step.length_ns / _KNOTS)

    def __call__(self, times_ns: Int64) -> Int64:
        return np.interp(times_ns, self._from, self._to).astype(np.int64)


def _events(step: Step, value: Int64, offset_ps: Int64, duration_ps: Int64, first: int, last: int) -> memoryview:
    """The encoded events `first` to `last` of a step, whose stats have these values this time."""
    own = slice(first, last)
    stat_first = step.stat_first[first : last + 1]
    stats = slice(stat_first[0], stat_first[-1])
    room = (last - first) * MOST_BYTES_OF_EVENT + (stats.stop - stats.start) * MOST_BYTES_OF_STAT
    out = np.empty(room, np.uint8)
    size = put_events(
        out, step.name[own], offset_ps[own], duration_ps[own], stat_first - stat_first[0],
        step.stat_name[stats], step.stat_kind[stats], value[stats],
    )  # fmt: skip
    return out[:size].data


def _write_plane(out: BinaryIO, recording: Recording, lines: Sequence[BinaryIO]) -> None:
    begin = message(2, recording.plane.encode())
    heads = [
        number(1, 1000 + i) + message(2, name.encode()) + number(3, _START_NS + _LINE_START_NS)
        for i, name in enumerate(recording.lines)
    ]
    sizes = [len(line_head) + file.tell() for line_head, file in zip(heads, lines, strict=True)]
    names = b"".join(
        message(field_number, number(1, key) + message(2, number(1, key) + message(2, name.encode())))
        for field_number, table in ((4, recording.event_names), (5, recording.stat_names))
        for name, key in table.ids.items()
    )
    out.write(head(1, len(begin) + sum(len(head(3, size)) + size for size in sizes) + len(names)))
    out.write(begin)
    for line_head, size, file in zip(heads, sizes, lines, strict=True):
        out.write(head(3, size) + line_head)
        file.seek(0)
        shutil.copyfileobj(file, out, MEGABYTE)
    out.write(names)


def _environment(length_ns: int) -> bytes:
    """The plane that tells when the recording began and ended."""
    times = {"profile_start_time": _START_NS, "profile_stop_time": _START_NS + 2 * _LINE_START_NS + length_ns}
    stats = b"".join(message(6, number(1, i) + number(3, t)) for i, t in enumerate(times.values(), 1))
    names = b"".join(message(5, number(1, i) + message(2, number(1, i) + message(2, name.encode())))
                     for i, name in enumerate(times, 1))  # fmt: skip
    return message(1, number(1, 1) + message(2, b"Task Environment") + stats + names)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generate", description=__doc__)
    parser.add_argument("out", type=Path, help="the file to write, ending in .xplane.pb")
    parser.add_argument("--megabytes", type=float, default=30)
    parser.add_argument("--kind", choices=sorted(KINDS), default="tf_cpu")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    generate(args.out, args.megabytes, args.kind, args.seed)
    print(f"{args.out}: {args.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
