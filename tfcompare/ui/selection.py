"""What is being compared: read from the address of the page or the session, and settled against the runs there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tfcompare.logdir import FoundRun

Per = Literal["step", "run"]
PER: tuple[Per, ...] = ("step", "run")

SAMPLE_PAIR = ("filters_512_128", "filters_16_8")
"""Folders of the guiding example: what is compared first where only the sample runs are shown."""


SAMPLE_GPU_PAIR = ("filters_512_128_simulated", "filters_16_8_simulated")
"""The same two on a simulated GPU."""


@dataclass(frozen=True)
class Selection:
    """The choice that all pages share. `places` are those typed into the page, beside those given at the start."""

    baseline: str | None = None
    candidates: tuple[str, ...] = ()
    per: Per = "step"
    host: str | None = None
    places: tuple[str, ...] = ()

    def as_query(self) -> dict[str, list[str]]:
        """The query parameters that say this; what is as usual is left out."""
        return {
            "dir": list(self.places),
            "baseline": [self.baseline] if self.baseline else [],
            "candidate": list(self.candidates),
            "per": [self.per] if self.per != "step" else [],
            "host": [self.host] if self.host else [],
        }

    def swapped(self) -> Selection:
        """Baseline and first candidate in each other's place."""
        if self.baseline is None or not self.candidates:
            return self
        return replace(self, baseline=self.candidates[0], candidates=(self.baseline, *self.candidates[1:]))

    def with_baseline(self, run: str | None) -> Selection:
        """`run` as the baseline and no candidate any more; the old baseline becomes one where else none were left."""
        candidates = tuple(c for c in self.candidates if c != run)
        if self.candidates and not candidates and self.baseline is not None and self.baseline != run:
            candidates = (self.baseline,)
        return replace(self, baseline=run, candidates=candidates)

    def with_toggled(self, run: str) -> Selection:
        """`run` added to the candidates, or taken from them; the baseline is never one."""
        if run in self.candidates:
            return replace(self, candidates=tuple(c for c in self.candidates if c != run))
        baseline = None if run == self.baseline else self.baseline
        return replace(self, baseline=baseline, candidates=(*self.candidates, run))


def from_query(query: Mapping[str, Sequence[str]], remembered: Selection) -> Selection:
    """What the address says, and where it is silent, what the session remembers.

    An address that names runs is a link to a comparison: it says everything, so that it shows everybody the same.
    """
    named = {name: tuple(dict.fromkeys(v for v in query.get(name, ()) if v)) for name in remembered.as_query()}
    if named["baseline"] or named["candidate"]:
        remembered = Selection(baseline=_last(named["baseline"]), candidates=named["candidate"])
    per = _last(named["per"]) or remembered.per
    return replace(
        remembered,
        per="run" if per == "run" else "step",
        host=_last(named["host"]) or remembered.host,
        places=named["dir"] or remembered.places,
    )


def _last(values: tuple[str, ...]) -> str | None:
    return values[-1] if values else None


@dataclass(frozen=True)
class Settled:
    """A selection of runs that are there, and what of the wish could not be had: ids of no run, ids of bad runs."""

    selection: Selection
    unknown: tuple[str, ...] = ()
    unreadable: tuple[FoundRun, ...] = ()


def settle(wish: Selection, found: Sequence[FoundRun], default: Callable[[], tuple[str, str] | None]) -> Settled:
    """`wish` without the runs that cannot be had. Only where nothing was wished for, `default` is asked for a pair."""
    if wish.baseline is None and not wish.candidates:
        pair = default()
        if pair is None:
            return Settled(wish)
        return Settled(replace(wish, baseline=pair[0], candidates=(pair[1],)))
    runs = {run.id: run for run in found}
    wanted = [run_id for run_id in dict.fromkeys((wish.baseline, *wish.candidates)) if run_id is not None]
    usable = {run_id for run_id in wanted if run_id in runs and runs[run_id].is_readable}
    return Settled(
        replace(
            wish,
            baseline=wish.baseline if wish.baseline in usable else None,
            candidates=tuple(c for c in dict.fromkeys(wish.candidates) if c in usable and c != wish.baseline),
        ),
        unknown=tuple(run_id for run_id in wanted if run_id not in runs),
        unreadable=tuple(runs[run_id] for run_id in wanted if run_id in runs and not runs[run_id].is_readable),
    )


def default_pair(found: Sequence[FoundRun], places: Sequence[Path]) -> tuple[str, str] | None:
    """What to compare while nobody has chosen: baseline and candidate, or None where there are not two runs.

    The samples' guiding example; of two places, the newest run of each, in the order in which they were named, as with
    `tfcompare diff BEFORE AFTER`; else the newest run beside the one recorded before it.
    """
    readable = [run for run in found if run.is_readable]
    if len(readable) < 2:
        return None
    if samples := sample_pair(readable, SAMPLE_PAIR):
        return samples
    if len(places) == 2:
        newest = [next((r.id for r in reversed(readable) if _lies_in(r, place)), None) for place in places]
        if newest[0] and newest[1] and newest[0] != newest[1]:
            return newest[0], newest[1]
    return readable[-2].id, readable[-1].id


def sample_pair(found: Sequence[FoundRun], names: tuple[str, str]) -> tuple[str, str] | None:
    """The ids of two sample runs by the names of their folders, None where they are not among those found."""
    before, after = (next((run.id for run in found if name in run.path.parts), None) for name in names)
    return (before, after) if before and after else None


def _lies_in(run: FoundRun, place: Path) -> bool:
    return run.path.resolve().is_relative_to(place.expanduser().resolve())
