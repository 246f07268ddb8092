"""Differences that make two runs hard to compare: other devices, step markers or batch sizes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tfcompare.compare.per_device import computing_devices
from tfcompare.compare.stats.estimates import FEWEST_STEPS
from tfcompare.compare.steps.step_kinds import are_by_marker, included_steps, is_other_mix
from tfcompare.schema import DEVICE, IDLE
from tfcompare.tables.step_kinds import kinds_among

if TYPE_CHECKING:
    from tfcompare.run import Run


MIX = "Mix of steps"
BATCH_SIZE = "Batch size"
"""The labels of the mismatches in kinds of steps and in examples per step."""


@dataclass(frozen=True)
class Mismatch:
    """A property in which the runs differ: its value in each run, and the consequence for the comparison.

    `is_hard`: the property alone changes times, so that verdicts on times do not apply to the program itself.
    """

    label: str
    baseline: str
    candidate: str
    meaning: str
    is_hard: bool


_BATCH_SETTING = re.compile(r"\bbatch_size=(\d{1,9})\b")
_ONCE_A_STEP = (0.5, 1.5)
"""A pipeline with this many calls per step provides each step's batch."""
_BATCH = re.compile(r"\[(\d+)[,\]]")
_SHAPE = re.compile(r"\[[^\]]*\]")


def mismatches(baseline: Run, candidate: Run) -> list[Mismatch]:
    """All mismatches between two runs, the hard ones first."""
    runs = baseline, candidate
    found = []
    for label, text_of, meaning, is_hard in _FACTS:
        ours, theirs = map(text_of, runs)
        if ours and theirs and ours != theirs:
            found.append(Mismatch(label, ours, theirs, meaning, is_hard))
    examples = [examples_per_step(run) for run in runs]
    before, after = examples
    if any(map(math.isnan, examples)):  # as the pipelines of both runs tell, else by the shapes of their elements
        before, after = (batch_size(run) or 0 for run in runs)
    if before and after and before != after:
        meaning = "a step handles more examples on one side"
        found.append(Mismatch(BATCH_SIZE, f"{before:,.0f}", f"{after:,.0f}", meaning, True))
    found += _mixes(baseline, candidate)
    included = [run.info.steps_included if run.info.has_steps else 0 for run in runs]
    if min(included) < FEWEST_STEPS:
        ours, theirs = (f"{count:,}" for count in included)
        meaning = f"a verdict on a time takes {FEWEST_STEPS} steps on each side"
        found.append(Mismatch("Included steps", ours, theirs, meaning, False))
    return sorted(found, key=lambda m: not m.is_hard)


def batch_size(run: Run) -> int | None:
    """The first dimension of the elements of the program's first input pipeline, if all components share it.

    None if the profile does not show it, or if the elements have no common first dimension.
    """
    rows = run.table("tf_data")
    roots = rows[(rows["execution"] == 0) & (rows["parent_id"] == "") & rows["pipeline"].str.startswith("Host:")]
    if roots.empty:
        return None
    shapes = _SHAPE.findall(str(roots.iloc[0]["shapes"]))
    sizes = {int(m[1]) if (m := _BATCH.match(shape)) else None for shape in shapes}
    return sizes.pop() if len(sizes) == 1 else None


def _count(number: int | None) -> str:
    return f"{number:,}" if number else ""


def _devices(run: Run) -> str:
    """How many devices computed, empty for a run on CPUs alone."""
    return _count(computing_devices(run)) if _device_record(run) == "recorded" else ""


def _device_record(run: Run) -> str:
    """Whether what ran on devices was recorded; empty for a run on CPUs alone."""
    return "" if run.info.device_type == "CPU" else "recorded" if run.tables.has_recorded_devices() else "not recorded"


def _device_ops(run: Run) -> str:
    """Whether the device reported its ops; empty for a run without a device, or without any record of it."""
    if _device_record(run) != "recorded":
        return ""
    ops = run.table("op_stats")
    return "recorded" if ((ops["host_or_device"] == DEVICE) & (ops["op_type"] != IDLE)).any() else "not recorded"


_FACTS: tuple[tuple[str, Callable[[Run], str], str, bool], ...] = (
    ("Device type", lambda r: r.info.device_type, "the kind of device alone changes times", True),
    ("Framework", lambda r: r.info.framework, "the frameworks run and record programs differently", True),
    ("Device", lambda r: r.info.device_name, "the model of the device alone changes times", True),
    ("Devices", _devices, "the work is spread over more devices on one side", True),
    ("Hosts", lambda r: _count(r.info.hosts), "the work is spread over more hosts on one side", True),
    (
        "How steps were found",
        lambda r: r.info.step_source,
        "the runs mark the start and end of a step differently",
        True,
    ),
    ("Devices' record", _device_record, "what ran on devices is not compared", False),
    ("Device ops", _device_ops, "one profile has no device ops", False),
)
"""The label of each mismatch in one property; its value in a run as text, empty if unknown; its meaning; `is_hard`."""


def _mixes(baseline: Run, candidate: Run) -> list[Mismatch]:
    """Another mix of kinds of steps, or another only kind, which may be the same work renamed: verdicts hold then."""
    if not (baseline.info.has_steps and candidate.info.has_steps):
        return []
    by_marker = are_by_marker(baseline, candidate)
    ours, theirs = (kinds_among(included_steps(run, None, by_marker)["kind"]) for run in (baseline, candidate))
    if not (ours and theirs and is_other_mix(ours, theirs)):
        return []
    if len(ours) == len(theirs) == 1:
        meaning = "steps of one kind are compared with steps of another"
        return [Mismatch("Kind of the steps", next(iter(ours)), next(iter(theirs)), meaning, False)]
    before, after = (", ".join(f"{count:,} {name}" for name, count in one.items()) for one in (ours, theirs))
    return [Mismatch(MIX, before, after, "each kind of step has its own length", True)]


def examples_per_step(run: Run, host: str | None = None) -> float:
    """Examples per step according to the input pipelines, over all hosts or on one; NaN if unknown for any of them.

    A host's are the batch size of its only pipeline with one call per step, by its outermost batching iterator.
    """
    of = run.tables.several_or_none(host)
    return run.tables.cache.get(("examples per step", of), partial(_examples_per_step, run, of))


def _examples_per_step(run: Run, host: str | None) -> float:
    iterators, pipelines, steps = (run.table(name, host=host) for name in ("tf_data", "tf_data_pipelines", "steps"))
    count = pipelines["host"].map(steps["host"].value_counts()).astype("float64").fillna(0)
    low, high = (count * share for share in _ONCE_A_STEP)
    asked = pipelines[~pipelines["feeds_device"].astype(bool) & pipelines["calls"].between(low, high)]
    hosts = run.host_names if host is None else (host,)
    if sorted(asked["host"]) != sorted(hosts):
        return math.nan
    first = iterators[iterators["execution"] == 0].merge(asked[["host", "pipeline"]])
    batching = first.assign(size=first["settings"].str.extract(_BATCH_SETTING, expand=False)).dropna(subset="size")
    depth = batching["long_name"].str.count("::")
    outermost = batching.loc[depth.sort_values(kind="stable").index].drop_duplicates("host")
    return float(outermost["size"].astype("int64").sum()) if len(outermost) == len(hosts) else math.nan


def differing_examples(
    baseline: Run, candidate: Run, hosts: tuple[str | None, str | None] = (None, None)
) -> tuple[float, float] | None:
    """The examples per step of both runs, over all hosts or on one each, where they are known and differ."""
    ours, theirs = (examples_per_step(run, host) for run, host in zip((baseline, candidate), hosts, strict=True))
    return (ours, theirs) if ours > 0 and theirs > 0 and ours != theirs else None
