"""Which captures are on which side of a comparison: one stands for all of its side, and each counts once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfcompare.compare.matching.matching import host_counterparts
from tfcompare.compare.side import Side
from tfcompare.errors import Unknown

if TYPE_CHECKING:
    from tfcompare.run import Run


@dataclass(frozen=True)
class Typical:
    """The capture of a run that stands for all where they cannot be pooled, under the id and name of the run; its own
    name, its compared host, and the other captures."""

    run: Run
    name: str
    host: str | None
    others: tuple[Run, ...]


def typical_of(run: Run, host: str | None, repeats: Mapping[str, Sequence[Run]], chosen: Sequence[str] = ()) -> Typical:
    """The most typical capture of a run and its `repeats`, or else the first whose id or name is among the `chosen`."""
    every = (run, *repeats.get(run.id, ()))
    captures = Side(run.name, 0).of(every, host)
    named = (at for at in captures.positions if not set(chosen).isdisjoint(names_of(captures.runs[at])))
    position = next(named, captures.most_typical)
    typical = captures.runs[position]
    others = tuple(one for one in every if one.content_id != typical.content_id)
    shown = run if typical is run else replace(typical, id=run.id, name=run.name)
    return Typical(shown, typical.name, captures.hosts[position], others)


def names_of(capture: Run) -> list[str]:
    """What a capture may be called: its id, its name, and that of its folder, which is another for the run itself."""
    return list(dict.fromkeys((capture.id, capture.name, capture.found.name)))


def require_known(chosen: Sequence[str], compared: Sequence[Run], repeats: Mapping[str, Sequence[Run]]) -> None:
    """Raises `Unknown` if no capture of a run that has several is called as one of the `chosen`."""
    several = [one for run in compared for more in [repeats.get(run.id, ())] if more for one in (run, *more)]
    for name in chosen:
        if not any(name in names_of(one) for one in several):
            raise Unknown("capture", name, list(dict.fromkeys(one.found.name for one in several)))


def sides_of(typical: Sequence[Typical]) -> tuple[Side, ...]:
    """The sides of a comparison of these runs, the baseline first; a run that is its own candidate once."""
    if len(typical) == 2 and typical[0].run.id == typical[1].run.id:
        typical = typical[:1]
    return tuple(
        Side(one.run.name, position, len(typical)).of((one.run, *one.others), one.host)
        for position, one in enumerate(typical)
    )


def stand_ins(typical: Sequence[Typical], chosen: Sequence[str] = ()) -> list[str]:
    """A note on how many captures there are, and which of them stand for all; none without replicates."""
    several = [one for one in typical if one.others]
    if not several:
        return []
    are_alike = len({one.run.name for one in typical}) < len({one.run.id for one in typical})
    called = [(one, one.run.id if are_alike else one.run.name) for one in several]
    counts = [f"{1 + len(one.others)} captures of {name}" for one, name in called]
    which = "the chosen one, or else that nearest to the mean step," if chosen else "the one nearest to the mean step"
    named = [one.name if one.name == name else f"{one.name} for {name}" for one, name in called]
    return [
        f"Figures are of {' and '.join(dict.fromkeys(counts))}. Where these cannot be pooled (steps one by one, "
        f"timeline, curve of memory, an execution of tf.data, texts of programs), {which} stands for them: "
        f"{' and '.join(dict.fromkeys(named))}."
    ]


def counted_once(
    compared: Sequence[Run], repeats: Mapping[str, Sequence[Run]]
) -> tuple[dict[str, Sequence[Run]], list[str]]:
    """(the replicates of each run without captures that are compared themselves or counted for another run; a note on
    each of these)."""
    owner = {run.content_id: run.content_id for run in compared}
    left: dict[str, Sequence[Run]] = {}
    notes = []
    for run in compared:
        every = repeats.get(run.id, ())
        left[run.id] = [one for one in every if owner.setdefault(one.content_id, run.content_id) == run.content_id]
        twice = [one.name for one in every if one not in left[run.id]]
        notes += [f"{name} is compared or counted already, so it is no capture of {run.name}." for name in twice]
    return left, notes


def shared_by_copies(
    baseline: Run, candidates: Sequence[Run], repeats: Mapping[str, Sequence[Run]]
) -> dict[str, Sequence[Run]]:
    """The replicates of each run; candidates that are the same capture as the baseline share theirs with it."""
    copies = {run.id: run for run in (baseline, *candidates) if run.content_id == baseline.content_id}
    every = [more for run_id in copies for more in repeats.get(run_id, ())]
    return {**repeats, **{run_id: every for run_id in copies if every}}


def counterparts_of_host(
    baseline: Run, candidates: tuple[Run, ...], host: str | None
) -> tuple[dict[str, str | None], list[str]]:
    """(the baseline's host and its counterpart in each candidate, by id; a note for each with a different name)."""
    if host is None:
        return {run.id: None for run in (baseline, *candidates)}, []
    if host not in baseline.host_names:
        raise Unknown(f"host of {baseline.id}", host, sorted(baseline.host_names))
    hosts: dict[str, str | None] = {baseline.id: host}
    notes = []
    for run in candidates:
        counterparts = host_counterparts(baseline.host_names, run.host_names)
        if host not in counterparts:
            raise Unknown(f"host of {run.id}", host, sorted(run.host_names))
        hosts[run.id] = counterparts[host]
        if counterparts[host] != host:
            notes.append(f"Host {host} of the baseline is compared with host {counterparts[host]} of {run.name}.")
    return hosts, notes
