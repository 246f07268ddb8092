"""What differs between two runs besides their times: software, profiler, devices, inputs, and what is known of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.errors import TfcompareError
from tfcompare.hlo.names import plain_program
from tfcompare.units import format_value

if TYPE_CHECKING:
    from tfcompare.compare.comparability import Mismatch
    from tfcompare.run import Run

_MOST_PROGRAMS = 3
_MOST_SHAPES = 3
"""Named shapes of a program: more are counted, as all parameters of a network may differ."""
_PARAMETER = "parameter"
_SHARDING = re.compile(r" parameter\(.*, sharding=\{(.+)\}$")


@dataclass(frozen=True)
class Difference:
    """A property in which two runs differ: its value in each, `none` where a run has none, and why it matters."""

    label: str
    baseline: str
    candidate: str
    meaning: str = ""


def differences(baseline: Run, candidate: Run, mismatches: Sequence[Mismatch]) -> list[Difference]:
    """All that is known to differ, the most telling first: what makes times incomparable, what the users say of their
    runs, the inputs of compiled programs and their division among devices, software, the profiler's options, peaks,
    clocks, and other work on the machine.

    `mismatches` are those of `compare.comparability`.
    """
    found = [
        Difference(one.label, one.baseline, one.candidate, one.meaning)
        for one in sorted(mismatches, key=lambda one: not one.is_hard)
        if one.baseline != one.candidate
    ]
    found += _metadata(baseline, candidate)
    found += _inputs(baseline, candidate)
    found += _shardings(baseline, candidate)
    found += _named("Version of", "versions", baseline, candidate, "another compiler makes other programs")
    found += _named("Level of", "profiler_options", baseline, candidate, "to record more takes longer")
    return [
        *found,
        *(fact for label, of, why in _OTHERS for fact in _differing(label, of(baseline), of(candidate), why)),
    ]


def known(baseline: Run, candidate: Run) -> list[str]:
    """What both profiles tell of, for a sentence on what does not differ."""
    both = (baseline, candidate)
    found = [("device", "device_name"), ("versions of software", "versions"), ("profiler options", "profiler_options")]
    return [what for what, name in found if all(getattr(run.info, name) for run in both)]


def _differing(label: str, ours: str, theirs: str, meaning: str = "") -> list[Difference]:
    return [Difference(label, ours, theirs, meaning)] if ours and theirs and ours != theirs else []


def _metadata(baseline: Run, candidate: Run) -> Iterator[Difference]:
    """The texts beside the runs, such as their commit, and their tags."""
    ours, theirs = (dict(run.found.metadata.values) for run in (baseline, candidate))
    for key in sorted(ours.keys() | theirs.keys()):
        yield from _differing(key, ours.get(key, "none"), theirs.get(key, "none"))
    tags = [set(run.found.metadata.tags) for run in (baseline, candidate)]
    alone = [", ".join(sorted(own - other)) or "none" for own, other in (tags, tags[::-1])]
    yield from _differing("Tags", *alone)


def _named(label: str, name: str, baseline: Run, candidate: Run, meaning: str) -> Iterator[Difference]:
    """Of the texts by name in `Origin`, those with another value; only what both sides have."""
    ours, theirs = (_of_hosts(run, name) for run in (baseline, candidate))
    for one in ours:
        yield from _differing(f"{label} {one}", ours[one], theirs.get(one, ""), meaning)


def _of_hosts(run: Run, name: str) -> dict[str, str]:
    """The texts by name, of several hosts the distinct ones."""
    found: dict[str, dict[str, None]] = {}
    for host in run.hosts:
        for one, text in getattr(host.origin, name):
            found.setdefault(one, {})[text] = None
    return {one: ", ".join(texts) for one, texts in found.items()}


def _inputs(baseline: Run, candidate: Run) -> Iterator[Difference]:
    """The parameters of programs that ran on both sides, those that took longest first."""
    ours, theirs = (_parameters(run) for run in (baseline, candidate))
    differing = [name for name in _by_time(candidate) if name in ours and name in theirs and ours[name] != theirs[name]]
    for name in differing[:_MOST_PROGRAMS]:
        yield Difference(
            f"Inputs of {name}", _shapes(ours[name] - theirs[name]), _shapes(theirs[name] - ours[name]),
            "the program works on other shapes or types",
        )  # fmt: skip


def _shardings(baseline: Run, candidate: Run) -> Iterator[Difference]:
    """How the parameters of programs that ran on both sides are divided among devices, where one side divides some."""
    try:
        ours, theirs = (_of_parameters(run) for run in (baseline, candidate))
    except TfcompareError:  # programs are read late, and a file may have gone
        return
    differing = [name for name in _by_time(candidate) if name in ours and name in theirs and ours[name] != theirs[name]]
    for name in differing[:_MOST_PROGRAMS]:
        sides = _shapes(ours[name] - theirs[name]), _shapes(theirs[name] - ours[name])
        yield Difference(f"Sharding of {name}", *sides, "devices work on other parts, and exchange others")


def _of_parameters(run: Run) -> dict[str, Counter[str]]:
    """The shardings of the parameters of each program by its plain name, as often as one of these programs has them;
    empty where it has none."""
    rows = run.table("hlo_programs")
    sharding = rows["expression"].str.extract(_SHARDING.pattern, expand=False)
    found: dict[str, Counter[str]] = {}
    for (_, program), texts in sharding.groupby([rows["host"], rows["program"]], sort=False):
        found.setdefault(plain_program(str(program)), Counter())
        found[plain_program(str(program))] |= Counter(texts.dropna().tolist())
    return found


def _parameters(run: Run) -> dict[str, Counter[str]]:
    """The shapes of the parameters of each program by its plain name, as often as one of these programs has them."""
    rows = run.table("hlo_memory")
    rows = rows[(rows["kind"] == _PARAMETER) & (rows["shape"] != "")]
    found: dict[str, Counter[str]] = {}
    for (_, program), shapes in rows.groupby(["host", "program"], sort=False)["shape"]:
        found.setdefault(plain_program(str(program)), Counter())
        found[plain_program(str(program))] |= Counter(shapes.tolist())
    return found


def _by_time(run: Run) -> list[str]:
    rows = run.table("hlo_ops")
    times = rows.groupby(rows["program"].map(plain_program))["self_time_us"].sum() if len(rows) else pd.Series()
    return list(times.sort_values(ascending=False).index)


def _shapes(counts: Counter[str]) -> str:
    """`f32[64,32] × 2, bf16[8] and 3 more`; `none` without any."""
    if not counts:
        return "none"
    named = [shape if count == 1 else f"{shape} × {count}" for shape, count in counts.most_common(_MOST_SHAPES)]
    others = counts.total() - sum(count for _, count in counts.most_common(_MOST_SHAPES))
    return f"{', '.join(named)} and {others:,} more" if others else ", ".join(named)


def _bandwidth(run: Run) -> str:
    peaks = run.table("hlo_ops")["peak_bytes_per_s"].dropna()
    return format_value(peaks.max(), "bytes/s") if len(peaks) else ""


def _clock(run: Run) -> str:
    return f"{run.info.clock_mhz:,.0f} MHz" if run.info.clock_mhz else ""


def _load(run: Run) -> str:
    """Whether other work ran; empty if unknown."""
    return "" if run.machine_load is None else "busy" if run.is_under_load else "not busy"


_OTHERS: tuple[tuple[str, Callable[[Run], str], str], ...] = (
    ("Command buffers", lambda run: run.info.command_buffers, "they take another time to launch"),
    ("Peak memory bandwidth", _bandwidth, "all that moves data takes another time"),
    ("Highest clock", _clock, "all that computes takes another time"),
    ("Other work on the machine", _load, "a busy machine makes all times longer and less even"),
)
