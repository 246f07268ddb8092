"""Odd runs rather than hostile files: hosts that number their steps differently, lack steps, devices or ops, have a
stray or two kinds of steps, or are no program at all. Every view shows two such runs in every format, or says in a
sentence why it does not.

A pair follows from seed and number alone.
"""

from __future__ import annotations

import random
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.grammar import generated, with_program
from tests.xspace import fuzz_inputs
from tests.xspace_builder import Event, Value, event, line, plane, space
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pairs_of
from tfcompare.comparison import Comparison, compare
from tfcompare.errors import TfcompareError
from tfcompare.render.shown import FORMATS, Shown
from tfcompare.run import Run, Stray, load
from tfcompare.views import NAMES
from tfcompare.views.options import Option, declared, options_with
from tfcompare.views.registry import view

_OPS = (
    *("data/read:ReadFile", "layer:MatMul", "layer_1:MatMul", "conv/Conv2D:Conv2D", "sum:CollectiveReduceV2"),
    *("IteratorGetNextOp::DoCompute", "Iterator::Root::Map", "EagerExecute", "MemcpyH2D", "a <b>x</b>:Mul"),
)
_KERNELS = ("gemm", "relu", "ncclAllReduce", "MemcpyH2D")
_TYPED = ("MatMul", "layer", "[", "")


@dataclass(frozen=True)
class Outcome:
    """What showing the pair of that number came to: how many views were shown and refused, and what went wrong."""

    number: int
    shown: int
    refused: int
    wrong: tuple[str, ...]


def attempt(seed: int, number: int, folder: Path) -> Outcome:
    """Make the pair of that number in an empty folder, and show it in every view, in a format by chance."""
    rng = random.Random(f"{seed}/{number}")
    try:
        ours, theirs = (_loaded(rng, folder / name) for name in ("baseline", "candidate"))
        comparison = compare(ours, theirs, **_chosen(rng, ours))
    except TfcompareError:
        return Outcome(number, 0, 1, ())
    except Exception:
        return Outcome(number, 0, 0, (traceback.format_exc(),))
    results = [_show(rng, comparison, name) for name in NAMES]
    wrong = tuple(result for result in results if result not in ("", "refused"))
    return Outcome(number, results.count(""), results.count("refused"), wrong)


def _chosen(rng: random.Random, baseline: Run) -> dict[str, Any]:
    """What a user can choose about a comparison, now and then."""
    every: dict[str, Any] = {"per": rng.choice(("run", "device")), "host": rng.choice(baseline.host_names)}
    return {name: value for name, value in every.items() if rng.random() < 0.2}


def _show(rng: random.Random, comparison: Comparison, name: str) -> str:
    """What went wrong when that view was shown, `refused` for a `TfcompareError`."""
    form, options = rng.choice(FORMATS), dict[str, Any]()
    try:
        options = _options(rng, pairs_of(comparison)[0], name)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            Shown.of(comparison, name, **options).to(form)
    except TfcompareError:
        return "refused"
    except Exception:
        return f"{name} as {form} with {options}: {traceback.format_exc()}"
    return ""


def _options(rng: random.Random, pair: Pair, name: str) -> dict[str, Any]:
    """Some of the options of that view, with one of the values that are offered."""
    kind, options = view(name).options, dict[str, Any]()
    for one in declared(kind):
        if rng.random() < 0.5 and not one.is_in_address and one.is_open(pair, options_with(kind, pair, options)):
            options[one.name] = _value(rng, one, pair, options_with(kind, pair, options))
    return options


def _value(rng: random.Random, one: Option, pair: Pair, options: Any) -> Any:
    offered = one.offered(pair, options)
    if offered is not None:
        return rng.choice(list(offered))
    if isinstance(one.default, bool):
        return not one.default
    return rng.randrange(20) if isinstance(one.default, int) else rng.choice(_TYPED)


def _loaded(rng: random.Random, folder: Path) -> Run:
    """A run of up to three hosts, some of which have the same file."""
    folder = folder / "plugins" / "profile" / "run"
    folder.mkdir(parents=True)
    for i in range(rng.choice((1, 1, 2, 2, 3))):
        if i == 0 or rng.random() < 0.7:
            data = _host(rng)
        (folder / f"host-{i}.xplane.pb").write_bytes(data)
    stray: Stray = rng.choice(("exclude", "include"))
    run = load(folder, stray=stray)
    if len(run.tables.kinds.counts) > 1 and rng.random() < 0.5:
        return load(folder, stray=stray, step_kind=rng.choice(list(run.tables.kinds.counts)))
    if len(run.steps) > 1 and rng.random() < 0.3:
        return load(folder, stray=stray, steps=f"{rng.randrange(1, len(run.steps))}:{len(run.steps)}")
    return run


def _host(rng: random.Random) -> bytes:
    if rng.random() < 0.8:
        return _program(rng)
    return rng.choice((lambda: rng.choice(fuzz_inputs.built()), lambda: with_program(rng), lambda: generated(rng)))()


def _program(rng: random.Random) -> bytes:
    """A host, perhaps with a device, whose steps have a few ops each."""
    count, first = rng.choice((0, 1, 2, 3, 5, 8, 12, 25)), rng.choice((0, 0, 5, 100, 1000))
    stride = rng.choice((1, 1, 2))
    usual_us, jitter = rng.choice((1.0, 1_000.0, 5_000.0)), rng.choice((0, 0, 0.01, 0.3))
    between = rng.choice((0, 0.1, 2))
    stray, period = rng.choice((-1, rng.randrange(25))), rng.choice((0, 0, 0, 2, 5))
    markers = rng.choice((("train",), ("train",), ("train", "evaluate")))
    ops = rng.sample(_OPS, rng.randrange(len(_OPS)))
    has_device = rng.random() < 0.4
    host, device, at_us = list[Event](), list[Event](), rng.choice((0.0, 0.0, 1e6))
    for step in range(count):
        length_us = usual_us * (1 + jitter * rng.random())
        length_us *= rng.choice((3, 20)) if step == stray else 3 if period and step % period == 0 else 1
        host.append(event(rng.choice(markers), at_us, length_us, _r=1, step_num=first + step * stride))
        _add_ops(rng, ops, at_us, length_us, host, device if has_device else None)
        at_us += length_us + between * usual_us
    planes = [plane("/host:CPU", line("python", *host))]
    if device:
        planes.append(plane(f"/device:GPU:{rng.randrange(2)}", line("Stream #1(Compute)", *device, id=1)))
    return space(*planes)


def _add_ops(
    rng: random.Random, ops: list[str], at_us: float, length_us: float, host: list[Event], device: list[Event] | None
) -> None:
    """One after the other within a step, most of them; each launches a kernel if there is a device."""
    begins_us = at_us
    for op in ops:
        if rng.random() < 0.1:
            continue
        takes_us = length_us / (len(ops) + 1) * rng.random()
        host.append(event(op, at_us, takes_us))
        if device is not None:
            number = len(device) + 1
            host.append(event("cudaLaunchKernel", at_us, min(takes_us, 1), correlation_id=number))
            starts_us = at_us + rng.choice((0, 0.5, length_us))
            device.append(event(rng.choice(_KERNELS), starts_us, takes_us, correlation_id=number, tf_op=op))
        at_us += takes_us
    if rng.random() < 0.5:
        host.append(event("MemoryAllocation", begins_us, 0, _allocation(rng)))


def _allocation(rng: random.Random) -> dict[str, Value]:
    return (
        {"allocator_name": "GPU_0_bfc", "allocation_bytes": 64 << rng.randrange(20), "bytes_available": 1 << 30}
        | {"bytes_allocated": 64 << rng.randrange(20), "peak_bytes_in_use": 1 << 20, "bytes_reserved": 0}
        | {"requested_bytes": 60, "addr": rng.randrange(5), "fragmentation": rng.random(), "tf_op": rng.choice(_OPS)}
        | {"data_type": 1, "shape": "[2,3]"}
    )


def main(seed: int, count: int, only: int | None) -> int:
    """Show pairs 0 to `count`, or one, and print each thing that goes wrong once; returns an exit status."""
    every, wrong = Counter[str](), dict[str, str]()
    for number in range(count) if only is None else [only]:
        with tempfile.TemporaryDirectory() as folder:
            outcome = attempt(seed, number, Path(folder))
        every += Counter(shown=outcome.shown, refused=outcome.refused, wrong=len(outcome.wrong))
        for text in outcome.wrong:
            wrong.setdefault("".join(text.splitlines()[-3:]), f"number {number}: {text}\n")
    sys.stdout.write("".join(wrong.values()) + f"views: {dict(every)}\n")
    return 1 if wrong else 0
