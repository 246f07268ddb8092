"""Which captures are on which side of a comparison: one stands for all of its side, and each counts once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfcompare.compare.matching.matching import host_counterparts
from tfcompare.compare.side import Side
from tfcompare.errors import Unknown
from tfcompare.sources.replicates import program_name

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
    """Of a run and its `repeats` the first whose content id was `chosen`, else the most typical one."""
    every = (run, *repeats.get(run.id, ()))
    captures = Side(run.name, 0).of(every, host)
    at = {one.content_id: position for position, one in enumerate(captures.runs)}
    position = next((at[content] for content in chosen if content in at), None)
    if position is None:
        position = captures.most_typical
    typical = captures.runs[position]
    others = tuple(one for one in every if one.content_id != typical.content_id)
    shown = run if typical is run else replace(typical, id=run.id, name=run.name)
    return Typical(shown, typical.name, captures.hosts[position], others)


def chosen_captures(called: Sequence[str], compared: Sequence[Run], repeats: Mapping[str, Sequence[Run]]) -> list[str]:
    """The content ids of captures of runs that have several, by their ids, or else by their names or those of their
    folders, which may be the same on both sides. Raises `Unknown` for others.
    """
    several = [one for run in compared if (more := repeats.get(run.id)) for one in (run, *more)]
    found: list[str] = []
    for name in called:
        of_id = [one for one in several if one.id == name]
        those = of_id or [one for one in several if name in (one.name, one.found.name)]
        if not those:
            kind = "capture" if several else "capture, since each run is one alone,"
            raise Unknown(kind, name, list(dict.fromkeys(one.found.name for one in several)))
        found += [one.content_id for one in those]
    return found


def sides_of(typical: Sequence[Typical]) -> tuple[Side, ...]:
    """The sides of a comparison of these runs, the baseline first; a run that is its own candidate once.

    A side of several captures has the name of their program, unless another side has it as well.
    """
    if len(typical) == 2 and typical[0].run.id == typical[1].run.id:
        typical = typical[:1]
    names = [one.run.name for one in typical]
    programs = [
        program_name([one.run.name, one.name, *(other.name for other in one.others)]) if one.others else one.run.name
        for one in typical
    ]
    if len(set(programs)) == len(programs):
        names = programs
    return tuple(
        Side(name, position, len(typical)).of((one.run, *one.others), one.host)
        for position, (name, one) in enumerate(zip(names, typical, strict=True))
    )


def stand_ins(typical: Sequence[Typical], chosen: Sequence[str] = ()) -> list[str]:
    """A note on which of several captures stand for all; none without replicates."""
    several = [one for one in typical if one.others]
    if not several:
        return []
    are_alike = len({one.run.name for one in typical}) < len({one.run.id for one in typical})
    called = [(one, one.run.id if are_alike else one.run.name) for one in several]
    which = "the chosen one, or else of the one" if chosen else "the one"
    named = [one.name if one.name == name else f"{one.name} for {name}" for one, name in called]
    return [
        "What cannot be pooled over captures (steps one by one, timeline, curve of memory, an execution of tf.data, "
        f"texts of programs) is that of {which} nearest to the mean step: {' and '.join(dict.fromkeys(named))}."
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
