"""What differs between two runs besides their times: software, profiler, devices, inputs, and what is known of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
_MOST_FLAGS = 20
"""Flags that only one side has: a reader looks at each."""
_PARAMETER = "parameter"
_SHARDING = r" parameter\(.*, sharding=\{(.+)\}$"
_DONATED = r" = (.+) parameter\(.*, (?:input_output_alias|buffer_donor)="
"""The shape of a donated parameter, in its text."""


@dataclass(frozen=True)
class Difference:
    """A property in which two runs differ: its value in each, `none` where a run has none, and why it matters."""

    label: str
    baseline: str
    candidate: str
    meaning: str = ""


def differences(baseline: Run, candidate: Run, mismatches: Sequence[Mismatch]) -> list[Difference]:
    """All that is known to differ, the most telling first: what makes times incomparable, what the users say of their
    runs, the inputs of compiled programs, their division among devices and donation, software, the levels of the
    profiler's tracers, peaks, clocks, and other work on the machine.

    `mismatches` are those of `compare.comparability`.
    """
    found = [
        Difference(one.label, one.baseline, one.candidate, one.meaning)
        for one in sorted(mismatches, key=lambda one: not one.is_hard)
        if one.baseline != one.candidate
    ]
    found += _metadata(baseline, candidate)
    found += _inputs(baseline, candidate)
    found += _divided_and_donated(baseline, candidate)
    found += _named("Version of", "versions", baseline, candidate, "another compiler makes other programs")
    found += _named("Level of", "profiler_options", baseline, candidate, "to record more takes longer")
    return [
        *found,
        *(fact for label, of, why in _OTHERS for fact in _differing(label, of(baseline), of(candidate), why)),
    ]


def known(baseline: Run, candidate: Run) -> list[str]:
    """What both profiles tell of, for a sentence on what does not differ."""
    both = (baseline, candidate)
    found = ["device"] if all(run.info.device_name for run in both) else []
    ours, theirs = (_of_hosts(run, "versions") for run in both)
    if named := [name for name in ours if name in theirs]:
        found.append(f"versions of {', '.join(named)}")
    return [*found, "levels of the tracers"] if all(run.info.profiler_options for run in both) else found


def _differing(label: str, ours: str, theirs: str, meaning: str = "") -> list[Difference]:
    return [Difference(label, ours, theirs, meaning)] if ours and theirs and ours != theirs else []


def _metadata(baseline: Run, candidate: Run) -> Iterator[Difference]:
    """The texts beside the runs, such as their commit, and their tags."""
    ours, theirs = (dict(run.found.metadata.values) for run in (baseline, candidate))
    for key in sorted(ours.keys() | theirs.keys()):
        yield from _differing(key, *_without_equal_flags(ours.get(key, "none"), theirs.get(key, "none")))
    tags = [set(run.found.metadata.tags) for run in (baseline, candidate)]
    alone = [", ".join(sorted(own - other)) or "none" for own, other in (tags, tags[::-1])]
    yield from _differing("Tags", *alone)


def _without_equal_flags(ours: str, theirs: str) -> tuple[str, str]:
    """Of two lists of flags such as `--a=1 --b=2`, those that only one side has; other texts as they are."""
    flags, others = Counter(ours.split()), Counter(theirs.split())
    shared = flags & others
    if flags == others or not shared or not all(one.startswith("--") for one in (*flags, *others)):
        return ours, theirs
    first, second = (_counted(one - shared, shared.total(), _MOST_FLAGS) for one in (flags, others))
    return first, second


def _named(label: str, name: str, baseline: Run, candidate: Run, meaning: str) -> Iterator[Difference]:
    """Of the texts by name in `Origin`, those with another value; only what both sides have."""
    ours, theirs = (_of_hosts(run, name) for run in (baseline, candidate))
    for one in ours:
        yield from _differing(f"{label} {one}", ours[one], theirs.get(one, ""), meaning)


def _of_hosts(run: Run, name: str) -> dict[str, str]:
    """The texts by name, of several hosts the distinct ones."""
    found: dict[str, set[str]] = {}
    for host in run.hosts:
        for one, text in getattr(host.origin, name):
            found.setdefault(one, set()).add(text)
    return {one: ", ".join(sorted(texts)) for one, texts in found.items()}


def _inputs(baseline: Run, candidate: Run) -> Iterator[Difference]:
    """The parameters of programs that ran on both sides, those that took longest first."""
    ours, theirs = (_parameters(run) for run in (baseline, candidate))
    why = "the program works on other shapes or types"
    return _of_programs("Inputs", _by_time(baseline, candidate), ours, theirs, why)


def _divided_and_donated(baseline: Run, candidate: Run) -> Iterator[Difference]:
    """How the parameters of programs that ran on both sides are divided among devices, and which are donated."""
    if not _ran_on_both(baseline, candidate):
        return
    try:
        ours, theirs = (run.table("hlo_programs") for run in (baseline, candidate))
    except TfcompareError:  # programs are read late, and a file may have gone
        return
    for label, pattern, why in (
        ("Sharding", _SHARDING, "devices work on other parts, and exchange others"),
        ("Donated inputs", _DONATED, "an output that takes the memory of an input needs none of its own"),
    ):
        own, others = (
            _of_parameters(rows, rows["expression"].str.extract(pattern, expand=False)) for rows in (ours, theirs)
        )
        yield from _of_programs(label, _by_time(baseline, candidate), own, others, why)


def _of_programs(
    label: str, names: Sequence[str], ours: Mapping[str, Counter[str]], theirs: Mapping[str, Counter[str]], why: str
) -> Iterator[Difference]:
    """What differs in the first of these programs that both sides have."""
    differing = [name for name in names if name in ours and name in theirs and ours[name] != theirs[name]]
    for name in differing[:_MOST_PROGRAMS]:
        shared = ours[name] & theirs[name]
        before, after = (_counted(side[name] - shared, shared.total()) for side in (ours, theirs))
        yield Difference(f"{label} of {name}", before, after, why)


def _parameters(run: Run) -> dict[str, Counter[str]]:
    """The shapes of the parameters of each program that ran."""
    rows = run.table("hlo_memory")
    rows = rows[(rows["kind"] == _PARAMETER) & (rows["shape"] != "")]
    ran = run.table("hlo_ops")[["host", "program"]].drop_duplicates()
    rows = rows.merge(ran, on=["host", "program"])
    return _of_parameters(rows, rows["shape"])


def _of_parameters(rows: pd.DataFrame, texts: pd.Series) -> dict[str, Counter[str]]:
    """The texts of the rows of each program by its plain name, as often as one of these programs has them; empty for a
    program without any."""
    found: dict[str, Counter[str]] = {}
    for (_, program), own in texts.groupby([rows["host"], rows["program"]], sort=False):
        found.setdefault(plain_program(str(program)), Counter())
        found[plain_program(str(program))] |= Counter(own.dropna().tolist())
    return found


def _by_time(*runs: Run) -> list[str]:
    """The plain names of the programs that ran, those that took longest in all runs together first."""
    rows = pd.concat([run.table("hlo_ops")[["program", "self_time_us"]] for run in runs])
    times = rows.groupby(rows["program"].map(plain_program))["self_time_us"].sum()
    return list(times.sort_index().sort_values(ascending=False, kind="stable").index)


def _ran_on_both(baseline: Run, candidate: Run) -> bool:
    """Whether any program ran on both sides."""
    ours, theirs = (set(map(plain_program, run.table("hlo_ops")["program"].unique())) for run in (baseline, candidate))
    return not ours.isdisjoint(theirs)


def _counted(counts: Counter[str], shared: int, most: int = _MOST_SHAPES) -> str:
    """`2 × f32[64,32], bf16[8] and 3 others; 4 on both sides`: what only this side has, and how many both have."""
    shown = counts.most_common(most)
    text = ", ".join(one if count == 1 else f"{count:,} × {one}" for one, count in shown)
    if others := counts.total() - sum(count for _, count in shown):
        text += f" and {others:,} others"
    return "; ".join(filter(None, [text, f"{shared:,} on both sides" if shared else ""])) or "none"


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
