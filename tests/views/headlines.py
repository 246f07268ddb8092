"""What the Overview says first of pairs whose truth is known: captures of one program, and true changes.

`python -m tests.views.headlines` stores it, to review what a change did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import combinations, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.page import put
from tests.profiles import SAMPLES, loaded_run
from tests.protobufs import messages
from tests.views.flat import flat, only_pair
from tfcompare.compare.pair import Pair
from tfcompare.compare.stats.verdict import FASTER, SLOWER, UNTESTED
from tfcompare.comparison import compare
from tfcompare.render.terminal import as_lines
from tfcompare.run import Run, load
from tfcompare.views.answer import first
from tfcompare.views.blocks import Cards

FILE = Path(__file__).with_name("golden") / "headlines.txt"
CPU_OP = "gradient_tape/autoencoder_1/image_1/convolution/Conv2DBackpropFilter:Conv2DBackpropFilter"
GPU_OP = "cudnn-conv-bias-activation.4"
"""The convolution of `transpose(jvp(decoder_inner))`, 9 % of the device time."""
ON_GPU = {
    "h100_16_8": "autoencoder_gpu",
    "h100_16_8_command_buffers": "autoencoder_gpu",
    "h100_512_128": "autoencoder_gpu",
    "h100_store_activations": "transformer_gpu",
    "h100_recompute_activations": "transformer_gpu",
}
"""The sample of each program on a GPU that was captured three times."""
WIDE = 10_000
"""Of a line of text: nothing is broken into several."""
MOST_NAMES = 3

KNOWN_TRUTH = Path(__file__).parents[1] / "known_truth"

_edited = TemporaryDirectory(prefix="tfcompare-headlines-")


def of_names(*names: str) -> Iterator[Run]:
    """Runs of `tests.profiles`, or captures on a GPU: `h100_512_128_run-2`."""
    for name in names:
        yield _on_gpu(name) if (name.rpartition("_")[0] in ON_GPU) else loaded_run(name)


def of_recordings(*names: str) -> Iterator[Run]:
    """Runs of `tests/known_truth`."""
    for name in names:
        yield load(KNOWN_TRUTH / name)


@cache
def _on_gpu(name: str) -> Run:
    return load(SAMPLES / ON_GPU[name.rpartition("_")[0]] / name.rpartition("_")[0] / name)


def slowed(baseline: str, candidate: str, factor: float, op: str = "") -> Iterator[Run]:
    """The baseline, and the candidate in which all takes `factor` times as long, or one op does."""
    ours, theirs = of_names(baseline, candidate)
    yield ours
    yield _slowed(theirs, factor, op)


@cache
def _slowed(run: Run, factor: float, op: str) -> Run:
    """The capture as if time passed `factor` times as fast: always, or while the op runs. All events of all lines end
    later by as much as that takes, so what waits for the op still does."""
    (source,) = Path(run.path).rglob("*.xplane.pb")
    space = messages("tsl.profiler.protobuf.xplane_pb2").XSpace.FromString(source.read_bytes())
    lines = [(plane, line) for plane in space.planes for line in plane.lines if line.events]
    spans = [_spans_ps(line)[[not op or op in _names(plane, event) for event in line.events]] for plane, line in lines]
    slow_ps = np.concatenate(spans)
    if not op:
        slow_ps = np.array([[slow_ps.min(), slow_ps.max()]])
    times_ps = np.unique(slow_ps)
    is_slow = ((slow_ps[:, :1] <= times_ps[:-1]) & (times_ps[:-1] < slow_ps[:, 1:])).any(axis=0)
    later_ps = np.concatenate([[0.0], np.cumsum(np.diff(times_ps) * is_slow * (factor - 1))])
    for _, line in lines:
        spans_ps = _spans_ps(line)
        spans_ps += np.interp(spans_ps, times_ps, later_ps).astype(np.int64)
        for event, (begin_ps, end_ps) in zip(line.events, spans_ps.tolist(), strict=True):
            event.offset_ps, event.duration_ps = begin_ps - line.timestamp_ns * 1000, end_ps - begin_ps
    folder = Path(_edited.name) / f"{run.name}_slowed{'_op' if op else ''}"
    place = folder / "plugins" / "profile" / source.parent.name / source.name
    place.parent.mkdir(parents=True)
    place.write_bytes(space.SerializeToString())
    return load(folder)


def _spans_ps(line: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """When the events of a line begin and end: (events, 2)."""
    begins_ps = line.timestamp_ns * 1000 + np.array([event.offset_ps for event in line.events], np.int64)
    return np.column_stack([begins_ps, begins_ps + np.array([event.duration_ps for event in line.events], np.int64)])


def _names(plane: Any, event: Any) -> set[str]:
    """The name of an event, and that of its HLO instruction."""
    names = {plane.event_metadata[event.metadata_id].name}
    for stat in event.stats:
        if plane.stat_metadata[stat.metadata_id].name == "hlo_op":
            names.add(stat.str_value or plane.stat_metadata[stat.ref_value].name)
    return names


def _same_program() -> Iterator[tuple[str, Callable[[], Iterator[Run]]]]:
    yield "filters_16_8, again (CPU)", partial(of_names, "filters_16_8", "filters_16_8_again")
    for program in ON_GPU:
        for one, other in combinations((1, 2, 3), 2):
            names = f"{program}_run-{one}", f"{program}_run-{other}"
            yield f"{program}, {one} and {other}", partial(of_names, *names)


SAME_PROGRAM = dict(_same_program())
"""Nothing may be claimed of these pairs."""
CHANGED = {
    "16 to 512 filters (CPU)": partial(of_names, "filters_16_8", "filters_512_128"),
    "512 to 16 filters (CPU)": partial(of_names, "filters_512_128", "filters_16_8"),
    "better input (CPU)": partial(of_names, "filters_16_8", "filters_16_8_better_input"),
    "one op doubled (CPU)": partial(slowed, "filters_16_8", "filters_16_8_again", 2.0, CPU_OP),
    "everything 1.6 times (CPU)": partial(slowed, "filters_16_8", "filters_16_8_again", 1.6),
    "16 to 512 filters (GPU)": partial(of_names, "h100_16_8_run-1", "h100_512_128_run-1"),
    "512 to 16 filters (GPU)": partial(of_names, "h100_512_128_run-1", "h100_16_8_run-1"),
    "store to recompute (GPU)": partial(of_names, "h100_store_activations_run-1", "h100_recompute_activations_run-1"),
    "one op doubled (GPU)": partial(slowed, "h100_512_128_run-2", "h100_512_128_run-3", 2.0, GPU_OP),
    "everything 1.6 times, no op dominates (GPU)": partial(slowed, "h100_16_8_run-1", "h100_16_8_run-2", 1.6),
    "everything 1.6 times (GPU)": partial(slowed, "h100_512_128_run-2", "h100_512_128_run-3", 1.6),
}
OTHER_WORK = {
    "512 to 16 filters (TensorFlow, GPU)": partial(of_names, "gpu_filters_512_128", "gpu_filters_16_8"),
    "128 to 16 filters (TensorFlow, XLA)": partial(of_names, "tensorflow_filters_128_32", "tensorflow_filters_16_8"),
    "128 to 16 filters (JAX, XLA)": partial(of_names, "jax_filters_128_32", "jax_filters_16_8"),
    "one worker reads slowly": partial(of_names, "workers_balanced", "workers_slow_input"),
    "another version of JAX (MI300)": partial(of_names, "jax_conv_legacy", "jax_conv_08"),
    "batch 64 to 128": partial(of_recordings, "jax_layers", "jax_layers_batch_128"),
    "float32 to bfloat16": partial(of_recordings, "jax_layers", "jax_layers_bfloat16"),
    "a layer inserted": partial(of_recordings, "jax_layers", "jax_layers_inserted"),
    "a layer removed": partial(of_recordings, "jax_layers_inserted", "jax_layers"),
    "unrelated programs": partial(of_names, "h100_512_128_run-1", "h100_store_activations_run-1"),
}
"""Pairs that differ in what is computed, each in one thing that the headline names."""
PAIRS = SAME_PROGRAM | CHANGED | OTHER_WORK


@cache
def pair_of(name: str) -> Pair:
    """The pair of that name."""
    return only_pair(compare(*PAIRS[name]()))


def said(name: str) -> str:
    """The headline and what else is said before the key figures, and which ops are claimed to have changed."""
    pair = pair_of(name)
    said_first = takewhile(lambda block: not isinstance(block, Cards), flat(first(pair)))
    lines = [line for line in as_lines(list(said_first), WIDE).splitlines() if line]
    ops = pair.diff("op_stats")["verdict"]
    tested = int((ops.notna() & (ops != UNTESTED)).sum())
    names = claimed_ops(pair)
    listed = [*names[:MOST_NAMES], "…"] if len(names) > MOST_NAMES else names
    lines.append(f"Claimed to have changed: {len(names)} of {tested} ops{': ' if names else ''}{', '.join(listed)}")
    return "\n".join(lines)


def claimed_ops(pair: Pair) -> list[str]:
    """The ops that are claimed to be slower or faster, each with that word."""
    ops = pair.diff("op_stats")
    claimed = ops[ops["verdict"].isin([SLOWER, FASTER])]
    return [f"{name} ({word})" for name, word in zip(claimed["op_name"], claimed["verdict"], strict=True)]


if __name__ == "__main__":
    for one in PAIRS:
        put(FILE, one, said(one))
