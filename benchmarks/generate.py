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
from benchmarks.recording import Recording, environment, message


class Kind(NamedTuple):
    """What can be generated: `recording` makes it from a seed and a number of layers, which grows with small files so
    that these have steps, too."""

    recording: Callable[[int, int], Recording]
    layers_per_megabyte: float
    most_layers: int


KINDS = {
    "tf_cpu": Kind(tf_cpu.recording, 10, 24),
    "tf_gpu": Kind(tf_gpu.recording, 4, 12),
    "jax_tpu": Kind(jax_tpu.recording, 4, 24),
    "jax_gpu": Kind(jax_gpu.recording, 2, 200),
}

MEGABYTE = 1_000_000
_LEAST_LAYERS = 2
_PS_PER_NS = 1000
_KNOTS = 24
_SHORTEST_STRETCH = 0.4  # of a step's time anywhere: what is apart in the simulated step stays apart


def generate(path: Path, megabytes: float, kind: str = "tf_cpu", seed: int = 1) -> None:
    """Write a recording of about that size to `path`."""
    make, layers_per_megabyte, most_layers = KINDS[kind]
    recording = make(seed, min(most_layers, max(_LEAST_LAYERS, round(layers_per_megabyte * megabytes))))
    size = int(megabytes * MEGABYTE) - sum(len(plane.names(0)) for plane in recording.planes)
    with ExitStack() as stack, path.open("wb") as out:
        lines = [
            stack.enter_context(tempfile.TemporaryFile(dir=path.parent))
            for plane in recording.planes
            for _ in plane.lines
        ]
        steps, length_ns = _write_steps(recording, lines, size, np.random.default_rng(seed))
        remaining = iter(lines)
        for plane in recording.planes:
            plane.write(out, [next(remaining) for _ in plane.lines], steps)
        environment(length_ns).write(out, [], 0)
        out.write(message(4, b"localhost"))


def _write_steps(
    recording: Recording, lines: Sequence[BinaryIO], size: int, rng: np.random.Generator
) -> tuple[int, int]:
    """Steps until there are enough bytes, the events of each line to a file of its own: (their number, their time)."""
    written, begin_ns, index = 0, 0, 0
    while written < size or not index:
        step = recording.steps[int(rng.integers(len(recording.steps)))]
        # The times of the step once more: stretched here, shortened there, in the same order.
        stretch = np.maximum(rng.lognormal(rng.normal(0, 0.05), 0.3, _KNOTS), _SHORTEST_STRETCH)
        knots = np.linspace(0, step.length_ns, _KNOTS + 1)
        stretched = np.append(0, np.cumsum(stretch)) * (step.length_ns / _KNOTS)
        own = [(event.begin_ns, event.end_ns) for event in step.events]
        times_ps = ((begin_ns + np.interp(own, knots, stretched).astype(np.int64)) * _PS_PER_NS).tolist()
        for event, (begin_ps, end_ps) in zip(step.events, times_ps, strict=True):
            written += lines[event.line].write(event.encoded(index, begin_ps, end_ps))
        begin_ns += int(stretched[-1])
        index += 1
    return index, begin_ns


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
