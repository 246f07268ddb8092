"""The selection of runs: read from the URL or the session, then resolved against the available runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfcompare.compare.matching.manual_text import SessionChoices, choices_for, from_address, to_address
from tfcompare.compare.pair import Per
from tfcompare.errors import NoSuchPlace
from tfcompare.loading import Question
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.logdir.places import lies_in
from tfcompare.sources.remote.places import parse
from tfcompare.sources.replicates import is_one_program, suggest
from tfcompare.sources.step_choice import StepChoice, step_choice
from tfcompare.text import is_url

PER: tuple[Per, ...] = ("step", "run", "device")
Repeat = tuple[str, str]
"""The id of a compared run, and the id of another capture of the same program."""

INCLUDE = "include"
"""The value of the query parameter `stray` that counts strays."""

HOSTS = "hosts"
"""The value of the query parameter `join` that joins hosts captured at the same time."""

SAMPLE_PAIR = ("filters_512_128", "filters_16_8")
"""Folders of the guide's example: the default comparison if only the sample runs are available."""


@dataclass(frozen=True)
class Selection:
    """The selection that all pages share. `places` were entered in the page, in addition to those given at startup.

    `repeats`: pairs of a compared run and one of its replicates; if the URL refers to a run that is not compared, the
    first is the reference as written. `captures`: those that are shown where several cannot be pooled. `manual_pairs`:
    manual pairs of names; `are_manual_pairs_lost`: the URL refers to pairs that it does not contain. `step_marker`: the
    host event that begins each step of all runs, if one was chosen. `step_range`: the steps to include, such as `5:25`;
    None for all. `step_kind`: the kind of steps to include, None for all. `counts_stray`: a stray counts.
    `joins_hosts`: runs of different hosts that were captured at the same time are one run.
    """

    baseline: str | None = None
    candidates: tuple[str, ...] = ()
    per: Per = "step"
    host: str | None = None
    places: tuple[str, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    captures: tuple[str, ...] = ()
    manual_pairs: SessionChoices = ()
    are_manual_pairs_lost: bool = False
    step_marker: str | None = None
    step_range: str | None = None
    step_kind: str | None = None
    counts_stray: bool = False
    joins_hosts: bool = False

    @property
    def steps(self) -> StepChoice:
        """Which steps of all runs to include. Raises `TfcompareError` if the range is invalid."""
        return step_choice(self.step_marker, self.step_range, counts_stray=self.counts_stray, kind=self.step_kind)

    @property
    def compared(self) -> tuple[str, ...]:
        """The baseline, if there is one, and the candidates."""
        return tuple(dict.fromkeys(filter(None, (self.baseline, *self.candidates))))

    @property
    def recordings(self) -> tuple[str, ...]:
        """All compared runs and their replicates."""
        return (*self.compared, *(repeat for _, repeat in self.repeats))

    def repeats_of(self, run: str) -> tuple[str, ...]:
        """The replicates of a compared run."""
        return tuple(repeat for primary, repeat in self.repeats if primary == run)

    @property
    def question(self) -> Question:
        """What is asked about the compared runs; their ids are its places. Raises `TfcompareError` as `steps` does."""
        return Question(
            self.compared,
            repeats=tuple(map(self.repeats_of, self.compared)),
            join=self.joins_hosts,
            steps=self.steps,
            per=self.per,
            host=self.host,
            captures=self.captures,
            pairs=tuple(choices_for(self.manual_pairs, self.baseline, run) for run in self.candidates),
        )

    def as_query(self) -> dict[str, list[str]]:
        """The selection as query parameters; default values are left out. In `repeat`, 0 stands for the baseline."""
        positions = {run: str(i) for i, run in reversed([*enumerate((self.baseline, *self.candidates))])}
        return {
            "dir": list(self.places),
            "baseline": [self.baseline] if self.baseline else [],
            "candidate": list(self.candidates),
            "per": [self.per] if self.per != "step" else [],
            "host": [self.host] if self.host else [],
            "step_marker": [self.step_marker] if self.step_marker else [],
            "steps": [self.step_range] if self.step_range else [],
            "step_kind": [self.step_kind] if self.step_kind else [],
            "stray": [INCLUDE] if self.counts_stray else [],
            "join": [HOSTS] if self.joins_hosts else [],
            "repeat": [f"{positions.get(primary, primary)}:{repeat}" for primary, repeat in self.repeats],
            "capture": list(self.captures),
            "by_hand": to_address(self.manual_pairs),
        }

    def swapped(self) -> Selection:
        """Swap the baseline and the first candidate."""
        if self.baseline is None or not self.candidates:
            return self
        return replace(self, baseline=self.candidates[0], candidates=(self.baseline, *self.candidates[1:]))

    def with_repeats(self, primary: str, repeats: Sequence[str]) -> Selection:
        """Set the replicates of a compared run; they are removed from the candidates."""
        others = [pair for pair in self.repeats if pair[0] != primary and pair[1] not in repeats]
        mine = [(primary, run) for run in repeats if run not in (primary, self.baseline)]
        candidates = tuple(c for c in self.candidates if c == primary or c not in repeats)
        return replace(self, candidates=candidates, repeats=(*others, *mine))._tidied()

    def with_candidates(self, candidates: Sequence[str]) -> Selection:
        """Set the candidates; they are removed from the replicates."""
        return replace(self, candidates=tuple(candidates))._tidied()

    def with_added(self, runs: Sequence[str]) -> Selection:
        """Select runs that were just added: as candidates, or the first as baseline if there is none."""
        runs = [run for run in runs if run not in self.compared]
        if self.baseline is None and runs:
            return replace(self, baseline=runs[0]).with_added(runs[1:])
        return self.with_candidates((*self.candidates, *runs))

    def without(self, run: str) -> Selection:
        """Remove a run that no longer exists."""
        baseline = None if run == self.baseline else self.baseline
        candidates = tuple(c for c in self.candidates if c != run)
        repeats = tuple(pair for pair in self.repeats if run not in pair)
        return replace(self, baseline=baseline, candidates=candidates, repeats=repeats)

    def _tidied(self) -> Selection:
        """Remove replicates of runs that are not compared, replicates that are themselves compared, and captures that
        are neither."""
        repeats = tuple((p, r) for p, r in self.repeats if p in self.compared and r not in self.compared)
        kept = {run for pair in repeats for run in pair}
        return replace(self, repeats=repeats, captures=tuple(run for run in self.captures if run in kept))

    def side_of(self, run: str) -> tuple[str, ...]:
        """A compared run and its replicates."""
        return (run, *self.repeats_of(run))

    def with_baseline(self, run: str | None) -> Selection:
        """Set the baseline; it is no candidate any more. If no candidate is left, the old baseline becomes one."""
        return self.with_baseline_side(() if run is None else self.side_of(run))

    def with_baseline_side(self, captures: Sequence[str]) -> Selection:
        """As `with_baseline`, for captures of one program: the first is the baseline, the others are its replicates."""
        sides = _without(captures, map(self.side_of, self.candidates))
        if self.candidates and captures and not sides and self.baseline is not None:
            sides = _without(captures, [self.side_of(self.baseline)])
        return self._of(captures, sides)

    def with_ticked_baseline(self, captures: Sequence[str], default: Selection) -> Selection:
        """As `with_baseline_side`, without the candidates of `default`, which nobody chose. One of them swaps sides."""
        unasked = default.candidates if self.baseline == default.baseline else ()
        if set(captures).intersection(unasked, self.candidates):
            unasked = ()
        chosen = tuple(run for run in self.candidates if run not in unasked)
        return replace(self, candidates=chosen)._tidied().with_baseline_side(captures)

    def with_toggled(self, captures: Sequence[str], program: Sequence[str] = ()) -> Selection:
        """Add captures to the candidate that has captures of their `program`, or as a candidate of their own; if all of
        them are candidates or replicates of one, remove them. What is added is taken away from the baseline."""
        sides = [self.side_of(run) for run in self.candidates]
        if {*captures} <= {run for side in sides for run in side}:
            return self._of(self._baseline_side, _without(captures, sides))
        found = (i for i, side in enumerate(sides) if {*captures, *program}.intersection(side))
        position = next(found, len(sides))
        joined = tuple(dict.fromkeys(run for side in (*sides[position : position + 1], captures) for run in side))
        others = _without(joined, sides[:position]), _without(joined, sides[position + 1 :])
        (baseline,) = _without(joined, [self._baseline_side]) or [()]
        return self._of(baseline, [*others[0], joined, *others[1]])

    @property
    def _baseline_side(self) -> tuple[str, ...]:
        return () if self.baseline is None else self.side_of(self.baseline)

    def _of(self, baseline: Sequence[str], candidates: Sequence[Sequence[str]]) -> Selection:
        """The selection of these sides, each with its run first; one without captures is none."""
        sides = [side for side in (baseline, *candidates) if side]
        repeats = tuple((side[0], run) for side in sides for run in side[1:])
        runs = tuple(side[0] for side in candidates)
        return replace(self, baseline=baseline[0] if baseline else None, candidates=runs, repeats=repeats)._tidied()


def _without(captures: Collection[str], sides: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    """The sides without these captures; those that have no other go."""
    return list(filter(None, (tuple(run for run in side if run not in captures) for side in sides)))


def from_query(query: Mapping[str, Sequence[str]], remembered: Selection) -> Selection:
    """The selection in the URL; whatever the URL leaves open comes from the session.

    A URL that names runs is a link to a comparison. It is used alone, so that everybody sees the same.
    """
    named = {name: tuple(dict.fromkeys(v for v in query.get(name, ()) if v)) for name in remembered.as_query()}
    in_session = remembered.manual_pairs
    if named["baseline"] or named["candidate"]:
        remembered = Selection(baseline=_last(named["baseline"]), candidates=named["candidate"])
    if named["by_hand"]:
        manual_pairs = from_address(named["by_hand"])
        is_lost = manual_pairs is None and not in_session
        remembered = replace(
            remembered, manual_pairs=in_session if manual_pairs is None else manual_pairs, are_manual_pairs_lost=is_lost
        )
    per = _last(named["per"]) or remembered.per
    return replace(
        remembered,
        repeats=_repeats(named["repeat"], remembered) if named["repeat"] else remembered.repeats,
        per=next((known for known in PER if known == per), "step"),
        captures=named["capture"] or remembered.captures,
        host=_last(named["host"]) or remembered.host,
        step_marker=_last(named["step_marker"]) or remembered.step_marker,
        step_range=_last(named["steps"]) or remembered.step_range,
        step_kind=_last(named["step_kind"]) or remembered.step_kind,
        counts_stray=_last(named["stray"]) == INCLUDE or (not named["stray"] and remembered.counts_stray),
        joins_hosts=_last(named["join"]) == HOSTS or (not named["join"] and remembered.joins_hosts),
        places=named["dir"] or remembered.places,
    )


def _last(values: tuple[str, ...]) -> str | None:
    return values[-1] if values else None


def _repeats(values: tuple[str, ...], selection: Selection) -> tuple[Repeat, ...]:
    """Parse the parameters `repeat=<position>:<run id>`; an invalid position is returned as written."""
    runs = {"0": selection.baseline} | {str(i): run for i, run in enumerate(selection.candidates, start=1)}
    found = []
    for value in values:
        position, colon, run = value.partition(":")
        found.append((runs.get(position) or position, run) if colon else ("", value))
    return tuple(found)


@dataclass(frozen=True)
class Resolved:
    """A selection of available runs, and what could not be selected.

    The latter are ids of unknown runs, unreadable runs, and replicates that are already used or belong to no run.
    `wish` is the selection with the baseline and the candidates that were wished for, unavailable ones too.
    """

    selection: Selection
    wish: Selection
    unknown: tuple[str, ...] = ()
    unreadable: tuple[FoundRun, ...] = ()
    misplaced: tuple[Misplaced, ...] = ()


@dataclass(frozen=True)
class Misplaced:
    """An invalid replicate: its id, and the reason, phrased to follow `is not counted as a replicate`."""

    run: str
    why: str


def resolve_selection(wish: Selection, found: Sequence[FoundRun], default: Callable[[], Sequence[str]]) -> Resolved:
    """Resolve `wish`, which contains ids or names of runs, to the available runs.

    Only if it is empty, `default` is called for the runs to select, the baseline first.
    """
    if wish.baseline is None and not wish.candidates:
        runs_to_select = default()
        if not runs_to_select:
            nothing = replace(wish, repeats=())
            return Resolved(nothing, nothing)
        wish = replace(wish, baseline=runs_to_select[0], candidates=tuple(runs_to_select[1:]))
    runs = {run.id: run for run in found}
    wish = _by_id(wish, {run.name: run.id for run in found} | {run_id: run_id for run_id in runs})
    wanted = dict.fromkeys((*wish.compared, *(repeat for _, repeat in wish.repeats if repeat)))
    usable = {run_id for run_id in wanted if run_id in runs and runs[run_id].is_readable}
    wish = replace(wish, candidates=tuple(c for c in dict.fromkeys(wish.candidates) if c != wish.baseline))
    compared = replace(
        wish,
        baseline=wish.baseline if wish.baseline in usable else None,
        candidates=tuple(c for c in wish.candidates if c in usable),
        repeats=(),
    )
    missing = {*wish.compared} - usable  # that these are missing is said once, not again of their replicates
    placed = [(primary, run) for primary, run in wish.repeats if run in usable and primary not in missing]
    repeats, misplaced = _resolved_repeats(placed, compared)
    return Resolved(
        replace(compared, repeats=repeats)._tidied(),
        replace(wish, repeats=repeats),
        unknown=tuple(run_id for run_id in wanted if run_id not in runs),
        unreadable=tuple(runs[run_id] for run_id in wanted if run_id in runs and not runs[run_id].is_readable),
        misplaced=misplaced,
    )


def _by_id(wish: Selection, ids: Mapping[str, str]) -> Selection:
    """The selection with ids in place of names; `ids` are those of all names."""
    return replace(
        wish,
        baseline=ids.get(wish.baseline, wish.baseline) if wish.baseline else None,
        candidates=tuple(ids.get(run, run) for run in wish.candidates),
        repeats=tuple((ids.get(primary, primary), ids.get(run, run)) for primary, run in wish.repeats),
        captures=tuple(ids.get(run, run) for run in wish.captures),
    )


def _resolved_repeats(
    wanted: Sequence[Repeat], selection: Selection
) -> tuple[tuple[Repeat, ...], tuple[Misplaced, ...]]:
    """(the replicates of compared runs, each run once; the invalid ones)."""
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


def default_runs(found: Sequence[FoundRun], places: Sequence[str | Path]) -> tuple[str, ...]:
    """The ids of the default baseline and candidate, or of the only run; empty if there is none.

    These are the samples' guide example, or with two places the newest run of each, in the given order, as for
    `tfcompare diff BEFORE AFTER`, or the first of a few captures of one program alone, as for `tfcompare show`;
    otherwise the newest run as candidate and the one before it as baseline.
    """
    readable = [run for run in found if run.is_readable]
    if len(readable) < 2:
        return tuple(run.id for run in readable)
    samples = [next((run.id for run in readable if name in run.path.parts), None) for name in SAMPLE_PAIR]
    if samples[0] and samples[1]:
        return samples[0], samples[1]
    if len(places) == 2:
        newest = [next((r.id for r in reversed(readable) if _lies_in(r, place)), None) for place in places]
        if newest[0] and newest[1] and newest[0] != newest[1]:
            return newest[0], newest[1]
    if len(readable) <= MOST_AT_ONCE + 1 and is_one_program(readable):
        return (readable[0].id,)
    return readable[-2].id, readable[-1].id


def _lies_in(run: FoundRun, place: str | Path) -> bool:
    try:
        return lies_in(run.path, parse(str(place)).path if is_url(place) else Path(place))
    except NoSuchPlace:  # a URL scheme that is not supported
        return False


MOST_AT_ONCE = 10
"""Replicates of a run are grouped only on request, since all of them have to be read."""


def with_replicates(selection: Selection, found: Sequence[FoundRun]) -> Selection:
    """Add the replicates of each run, found by name. Runs that are themselves selected stay as they are."""
    for run, runs in ungrouped(selection, suggest(found, selection.baseline, selection.candidates)).items():
        more = [one for one in runs if one not in selection.compared]
        if len(more) <= MOST_AT_ONCE:
            selection = selection.with_repeats(run, (*selection.repeats_of(run), *more))
    return selection


def ungrouped(selection: Selection, suggested: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The suggested replicates that are not grouped yet."""
    grouped = {repeat for _, repeat in selection.repeats}
    more = {run: tuple(r for r in runs if r not in grouped) for run, runs in suggested.items()}
    return {run: runs for run, runs in more.items() if runs}
