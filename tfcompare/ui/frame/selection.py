"""What is being compared: read from the address of the page or the session, and settled against the runs there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfcompare.compare.comparison import Per
from tfcompare.compare.matching.manual_text import Kept, from_address, to_address
from tfcompare.errors import NoSuchPlace
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.logdir.places import lies_in
from tfcompare.sources.remote.places import parse
from tfcompare.sources.replicates import suggest
from tfcompare.sources.step_choice import StepChoice, step_choice
from tfcompare.text import is_url

PER: tuple[Per, ...] = ("step", "run")
Repeat = tuple[str, str]
"""The id of a compared run, and that of another recording of its program."""

SAMPLE_PAIR = ("filters_512_128", "filters_16_8")
"""Folders of the guiding example: what is compared first where only the sample runs are shown."""


SAMPLE_GPU_PAIR = ("filters_512_128_simulated", "filters_16_8_simulated")
"""The same two on a simulated GPU."""


@dataclass(frozen=True)
class Selection:
    """The choice that all pages share. `places` are those typed into the page, beside those given at the start.

    `repeats`: pairs of a compared run and another recording of its program; the former is as it stood in the address
    where that names no compared run. `by_hand`: manual pairs of names; `is_by_hand_lost` where the address
    tells of more than it holds. `step_marker`: the host event that begins each step of all these runs, if one is named;
    `step_range`: the steps that count, such as `5:25`, None for all.
    """

    baseline: str | None = None
    candidates: tuple[str, ...] = ()
    per: Per = "step"
    host: str | None = None
    places: tuple[str, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    by_hand: Kept = ()
    is_by_hand_lost: bool = False
    step_marker: str | None = None
    step_range: str | None = None

    @property
    def steps(self) -> StepChoice:
        """Which steps of all runs count. Raises `TfcompareError` where the range is none."""
        return step_choice(self.step_marker, self.step_range)

    @property
    def compared(self) -> tuple[str, ...]:
        """The baseline, where there is one, and the candidates."""
        return tuple(dict.fromkeys(filter(None, (self.baseline, *self.candidates))))

    @property
    def recordings(self) -> tuple[str, ...]:
        """What is compared, and the repeats."""
        return (*self.compared, *(repeat for _, repeat in self.repeats))

    def repeats_of(self, run: str) -> tuple[str, ...]:
        """The other recordings of the same program as a compared run."""
        return tuple(repeat for primary, repeat in self.repeats if primary == run)

    def as_query(self) -> dict[str, list[str]]:
        """The query parameters that say this; what is as usual is left out."""
        return {
            "dir": list(self.places),
            "baseline": [self.baseline] if self.baseline else [],
            "candidate": list(self.candidates),
            "per": [self.per] if self.per != "step" else [],
            "host": [self.host] if self.host else [],
            "step_marker": [self.step_marker] if self.step_marker else [],
            "steps": [self.step_range] if self.step_range else [],
            "repeat": [f"{self._position(primary)}:{repeat}" for primary, repeat in self.repeats],
            "by_hand": to_address(self.by_hand),
        }

    def _position(self, primary: str) -> str:
        """How the address names a compared run: 0 the baseline, from 1 on the candidates."""
        if primary == self.baseline:
            return "0"
        return str(self.candidates.index(primary) + 1) if primary in self.candidates else primary

    def swapped(self) -> Selection:
        """Baseline and first candidate in each other's place."""
        if self.baseline is None or not self.candidates:
            return self
        return replace(self, baseline=self.candidates[0], candidates=(self.baseline, *self.candidates[1:]))

    def with_repeats(self, primary: str, repeats: Sequence[str]) -> Selection:
        """`repeats`, and no other runs, as more recordings of a compared run: they are no candidates any more."""
        others = [pair for pair in self.repeats if pair[0] != primary and pair[1] not in repeats]
        mine = [(primary, run) for run in repeats if run not in (primary, self.baseline)]
        candidates = tuple(c for c in self.candidates if c == primary or c not in repeats)
        return replace(self, candidates=candidates, repeats=(*others, *mine))._tidied()

    def with_candidates(self, candidates: Sequence[str]) -> Selection:
        """These candidates instead; those that were repeats are none any more."""
        return replace(self, candidates=tuple(candidates))._tidied()

    def without(self, run: str) -> Selection:
        """The rest of it, for a run that is no more."""
        baseline = None if run == self.baseline else self.baseline
        candidates = tuple(c for c in self.candidates if c != run)
        repeats = tuple(pair for pair in self.repeats if run not in pair)
        return replace(self, baseline=baseline, candidates=candidates, repeats=repeats)

    def _tidied(self) -> Selection:
        """Without repeats of what is not compared, and of repeats that are."""
        return replace(
            self, repeats=tuple((p, r) for p, r in self.repeats if p in self.compared and r not in self.compared)
        )

    def with_baseline(self, run: str | None) -> Selection:
        """`run` as the baseline and no candidate any more; the old baseline becomes one where else none were left."""
        candidates = tuple(c for c in self.candidates if c != run)
        if self.candidates and not candidates and self.baseline is not None and self.baseline != run:
            candidates = (self.baseline,)
        return replace(self, baseline=run, candidates=candidates)._tidied()

    def with_toggled(self, run: str) -> Selection:
        """`run` added to the candidates, or taken from them; the baseline is never one."""
        if run in self.candidates:
            return self.with_candidates([c for c in self.candidates if c != run])
        baseline = None if run == self.baseline else self.baseline
        return replace(self, baseline=baseline, candidates=(*self.candidates, run))._tidied()


def from_query(query: Mapping[str, Sequence[str]], remembered: Selection) -> Selection:
    """What the address says, and where it is silent, what the session remembers.

    An address that names runs is a link to a comparison: it says everything, so that it shows everybody the same.
    """
    named = {name: tuple(dict.fromkeys(v for v in query.get(name, ()) if v)) for name in remembered.as_query()}
    in_session = remembered.by_hand
    if named["baseline"] or named["candidate"]:
        remembered = Selection(baseline=_last(named["baseline"]), candidates=named["candidate"])
    if named["by_hand"]:
        by_hand = from_address(named["by_hand"])
        is_lost = by_hand is None and not in_session
        remembered = replace(remembered, by_hand=in_session if by_hand is None else by_hand, is_by_hand_lost=is_lost)
    per = _last(named["per"]) or remembered.per
    return replace(
        remembered,
        repeats=_repeats(named["repeat"], remembered) if named["repeat"] else remembered.repeats,
        per="run" if per == "run" else "step",
        host=_last(named["host"]) or remembered.host,
        step_marker=_last(named["step_marker"]) or remembered.step_marker,
        step_range=_last(named["steps"]) or remembered.step_range,
        places=named["dir"] or remembered.places,
    )


def _last(values: tuple[str, ...]) -> str | None:
    return values[-1] if values else None


def _repeats(values: tuple[str, ...], selection: Selection) -> tuple[Repeat, ...]:
    """What `repeat=<position>:<run id>` says of a selection; a position that is none stays as it is written."""
    runs = {"0": selection.baseline} | {str(i): run for i, run in enumerate(selection.candidates, start=1)}
    found = []
    for value in values:
        position, colon, run = value.partition(":")
        found.append((runs.get(position) or position, run) if colon else ("", value))
    return tuple(found)


@dataclass(frozen=True)
class Settled:
    """A selection of runs that are there, and what of the wish could not be had.

    That is ids of no run, bad runs, and of repeats that stand elsewhere already, or beside no run, what is wrong.
    """

    selection: Selection
    unknown: tuple[str, ...] = ()
    unreadable: tuple[FoundRun, ...] = ()
    misplaced: tuple[Misplaced, ...] = ()


@dataclass(frozen=True)
class Misplaced:
    """A repeat that is none: its id, and in words why, to follow `is not counted as a repeat`."""

    run: str
    why: str


def settle(wish: Selection, found: Sequence[FoundRun], default: Callable[[], tuple[str, str] | None]) -> Settled:
    """`wish` without the runs that cannot be had. Only where nothing was wished for, `default` is asked for a pair."""
    if wish.baseline is None and not wish.candidates:
        pair = default()
        if pair is None:
            return Settled(replace(wish, repeats=()))
        wish = replace(wish, baseline=pair[0], candidates=(pair[1],))
    runs = {run.id: run for run in found}
    wanted = dict.fromkeys((*wish.compared, *(repeat for _, repeat in wish.repeats if repeat)))
    usable = {run_id for run_id in wanted if run_id in runs and runs[run_id].is_readable}
    compared = replace(
        wish,
        baseline=wish.baseline if wish.baseline in usable else None,
        candidates=tuple(c for c in dict.fromkeys(wish.candidates) if c in usable and c != wish.baseline),
        repeats=(),
    )
    repeats, misplaced = _settled_repeats([pair for pair in wish.repeats if pair[1] in usable], compared)
    return Settled(
        replace(compared, repeats=repeats),
        unknown=tuple(run_id for run_id in wanted if run_id not in runs),
        unreadable=tuple(runs[run_id] for run_id in wanted if run_id in runs and not runs[run_id].is_readable),
        misplaced=misplaced,
    )


def _settled_repeats(
    wanted: Sequence[Repeat], selection: Selection
) -> tuple[tuple[Repeat, ...], tuple[Misplaced, ...]]:
    """(the repeats of runs that are compared, each run once; the others)."""
    primaries: dict[str, str] = {}
    misplaced = []
    for primary, run in wanted:
        if run in selection.compared:
            misplaced.append(Misplaced(run, "it is compared itself"))
        elif primary not in selection.compared:
            misplaced.append(Misplaced(run, f"there is no run {primary!r} among those compared"))
        elif primaries.setdefault(run, primary) != primary:
            misplaced.append(Misplaced(run, "it was given for two runs, and counts for the first of them"))
    return tuple((primary, run) for run, primary in primaries.items()), tuple(misplaced)


def default_pair(found: Sequence[FoundRun], places: Sequence[str | Path]) -> tuple[str, str] | None:
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


def _lies_in(run: FoundRun, place: str | Path) -> bool:
    try:
        return lies_in(run.path, parse(str(place)).path if is_url(place) else Path(place))
    except NoSuchPlace:  # a URL of a kind that is not opened
        return False


MOST_AT_ONCE = 10
"""More captures of a run are grouped only where that is asked for: all of them have to be read."""


def with_replicates(selection: Selection, before: Selection, found: Sequence[FoundRun]) -> Selection:
    """The selection with the replicates, by their names, of each run that was not compared before.

    What is chosen itself stays as it is.
    """
    for run, runs in ungrouped(selection, suggest(found, selection.baseline, selection.candidates)).items():
        more = [one for one in runs if one not in selection.compared]
        if run not in before.compared and len(more) <= MOST_AT_ONCE:
            selection = selection.with_repeats(run, (*selection.repeats_of(run), *more))
    return selection


def ungrouped(selection: Selection, suggested: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Of what is suggested, what is no repeat yet."""
    grouped = {repeat for _, repeat in selection.repeats}
    more = {run: tuple(r for r in runs if r not in grouped) for run, runs in suggested.items()}
    return {run: runs for run, runs in more.items() if runs}
