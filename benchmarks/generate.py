"""Write an XSpace of a given size that looks like a real recording: `python -m benchmarks.generate OUT --megabytes 30`.

The same arguments give the same bytes. A recording is some different steps, simulated event by event, that follow one
another with their times stretched at random and their ids renewed; they are written as they come, so size costs no
memory.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from benchmarks import jax_gpu, jax_tpu, tf_cpu, tf_gpu
from benchmarks.encode import MOST_BYTES_OF_EVENT, MOST_BYTES_OF_STAT, put_events
from benchmarks.planes import names_size, write_environment, write_plane
from benchmarks.recording import Int64, Recording, Step


class Kind(NamedTuple):
    """What can be generated: `recording` makes it from a seed and a number of layers, which grows with small files so
    that these have steps, too."""

    recording: Callable[[int, int], Recording]
    layers_per_megabyte: float
    most_layers: int


KINDS = {
    "tf_cpu": Kind(tf_cpu.recording, 10, 24),
    "tf_gpu": Kind(tf_gpu.recording, 4, 12),
    "tf_gpu_slower": Kind(tf_gpu.slower_recording, 4, 12),
    "jax_tpu": Kind(jax_tpu.recording, 4, 24),
    "jax_gpu": Kind(jax_gpu.recording, 2, 200),
}

MEGABYTE = 1_000_000
_LEAST_LAYERS = 2
_PS_PER_NS = 1000
_KNOTS = 24
_SHORTEST_STRETCH = 0.4  # of a step's time anywhere: what is apart in the simulated step stays apart

# The device's own clock: so long after the file's origin it began to count, and so long it takes to count one further.
_CLOCK_BEGAN_PS = 13_371_250
_TICK_PS = 1_250


def generate(path: Path, megabytes: float, kind: str = "tf_cpu", seed: int = 1) -> None:
    """Write a recording of about that size to `path`."""
    make, layers_per_megabyte, most_layers = KINDS[kind]
    recording = make(seed, min(most_layers, max(_LEAST_LAYERS, round(layers_per_megabyte * megabytes))))
    size = int(megabytes * MEGABYTE) - sum(names_size(plane) for plane in recording.planes)
    with ExitStack() as stack, path.open("wb") as out:
        lines = [
            stack.enter_context(tempfile.TemporaryFile(dir=path.parent))
            for plane in recording.planes
            for _ in plane.lines
        ]
        steps, length_ns = _write_steps(recording, lines, size, np.random.default_rng(seed))
        remaining = iter(lines)
        for plane in recording.planes:
            write_plane(out, plane, [next(remaining) for _ in plane.lines], steps)
        write_environment(out, length_ns)


def _write_steps(
    recording: Recording, lines: Sequence[BinaryIO], size: int, rng: np.random.Generator
) -> tuple[int, int]:
    """Steps until there are enough bytes, the events of each line to a file of its own: (their number, their time)."""
    written, begin_ns, index = 0, 0, 0
    while written < size or not index:
        step = recording.steps[int(rng.integers(len(recording.steps)))]
        times = _Stretched(step, rng)
        begin_ps, end_ps = ((begin_ns + times(t)) * _PS_PER_NS for t in (step.begin_ns, step.end_ns))
        name = step.name + index * step.name_growth
        value = _stat_values(step, index, begin_ps, end_ps)
        first = np.searchsorted(step.line, np.arange(len(lines) + 1))
        for line, file in enumerate(lines):
            written += file.write(_events(step, name, value, begin_ps, end_ps - begin_ps, first[line], first[line + 1]))
        begin_ns += int(times(np.array([step.length_ns]))[0])
        index += 1
    return index, begin_ns


class _Stretched:
    """The times of a step as they are once more: stretched here, shortened there, in the same order."""

    def __init__(self, step: Step, rng: np.random.Generator) -> None:
        stretch = np.maximum(rng.lognormal(rng.normal(0, 0.05), 0.3, _KNOTS), _SHORTEST_STRETCH)
        self._from = np.linspace(0, step.length_ns, _KNOTS + 1)
        self._to = np.append(0, np.cumsum(stretch)) * (step.length_ns / _KNOTS)

    def __call__(self, times_ns: Int64) -> Int64:
        return np.interp(times_ns, self._from, self._to).astype(np.int64)


def _stat_values(step: Step, index: int, begin_ps: Int64, end_ps: Int64) -> Int64:
    """The values of the stats of the step `index` of the recording."""
    value = step.stat_value + index * step.stat_growth
    if len(step.clock_begin):
        owner = np.repeat(np.arange(len(begin_ps)), np.diff(step.stat_first))
        begin, end = ((_CLOCK_BEGAN_PS + ps) // _TICK_PS * _TICK_PS for ps in (begin_ps, end_ps))
        value[step.clock_begin] = begin[owner[step.clock_begin]]
        value[step.clock_duration] = (end - begin)[owner[step.clock_duration]]
    return value


def _events(
    step: Step, name: Int64, value: Int64, offset_ps: Int64, duration_ps: Int64, first: int, last: int
) -> memoryview:
    """The encoded events `first` to `last` of a step, which are called and whose stats are so this time."""
    own = slice(first, last)
    stat_first = step.stat_first[first : last + 1]
    stats = slice(stat_first[0], stat_first[-1])
    room = (last - first) * MOST_BYTES_OF_EVENT + (stats.stop - stats.start) * MOST_BYTES_OF_STAT
    out = np.empty(room, np.uint8)
    size = put_events(
        out, name[own], offset_ps[own], duration_ps[own], stat_first - stat_first[0],
        step.stat_name[stats], step.stat_kind[stats], value[stats],
    )  # fmt: skip
    return out[:size].data


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
