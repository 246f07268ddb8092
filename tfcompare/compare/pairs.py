"""A baseline with its candidates: which captures are on which side, what sums are divided by, and the pairs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypeVar

import pandas as pd

from tfcompare import schema
from tfcompare.compare.cache import Cache
from tfcompare.compare.captures import (
    chosen_captures,
    counted_once,
    counterparts_of_host,
    shared_by_copies,
    sides_of,
    stand_ins,
    typical_of,
)
from tfcompare.compare.diff import SumsPer
from tfcompare.compare.matching.kernel_names import canonical_kernel
from tfcompare.compare.matching.manual import ManualChoice, ManualPairs, applicable_choices
from tfcompare.compare.matching.matching import pair_rows, with_hosts_of
from tfcompare.compare.matching.plain_names import plain_name
from tfcompare.compare.pair import PER, Pair, Per, per_words
from tfcompare.compare.per_device import workers_note, workers_of
from tfcompare.compare.repeats import accept_captures
from tfcompare.compare.same_ids import with_distinct_ids
from tfcompare.compare.side import Side
from tfcompare.compare.steps.step_time_verdict import knows_step_time
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.tables.host_frames import MeasuredCache
from tfcompare.text import middle_ellipsis

if TYPE_CHECKING:
    from tfcompare.run import Run


T = TypeVar("T")
OfEach = Literal["", "device", "host"]
_LONGEST_NAME = 60


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """A baseline and its candidates; one side alone is its own candidate.

    `of_each`: what sums over devices are of, where the sides computed on other numbers of devices, or of hosts if there
    are no devices; empty if they are of all. `spread`: the standard deviation between captures of one program, as a
    share, which overrides the default of the device. `is_series`: a candidate with too few captures varies as the
    baseline's do, which are earlier runs of its program. `manual_pairs`: the user's choices for each candidate, by its
    id.
    """

    sides: tuple[Side, ...]
    per: Per
    of_each: OfEach = ""
    spread: float | None = None
    is_series: bool = False
    manual_pairs: Mapping[str, tuple[ManualChoice, ...]] = field(default_factory=dict)
    _notes: tuple[str, ...] = ()
    _results: MeasuredCache = field(default_factory=MeasuredCache, init=False)
    _cache: Cache = field(default_factory=Cache, init=False)

    @classmethod
    def between(
        cls,
        baseline: Run,
        *candidates: Run,
        per: Per = "step",
        host: str | None = None,
        repeats: Mapping[str, Sequence[Run]] | None = None,
        spread: float | None = None,
        manual_pairs: ManualPairs | None = None,
        is_series: bool = False,
        captures: Sequence[str] = (),
    ) -> Self:
        """Compares each candidate with the baseline; shows a run alone.

        Sums (times and counts over the whole profile) are given per step, which requires step markers in every run. If
        a run has none, the comparison is per run, and `Comparison.notes` reports it. Where the runs computed on other
        numbers of devices or hosts, or per `device`, sums of ops and kernels are of each device that computed, those of
        ops on hosts of each host. `host` restricts the comparison to one of the baseline's hosts and its counterpart in
        each candidate: the host of that name, else the one at the same position if both runs have the same number of
        hosts.

        `repeats` maps the id of any of these runs to further captures of the same program, which verdicts then use as
        well, besides the `captures` that `load` found with a run. `captures` are ids or names of those that are shown
        where several cannot be pooled, such as in the timeline; by default, of each run the one nearest to the mean
        step. `spread` is the standard deviation between captures of one program, as a share; it overrides the default
        of the device (`docs/verdicts.md`). `is_series`: the repeats of the baseline are earlier runs of the candidate's
        program, so that a single candidate varies as they do.

        Different runs of one id, such as `before/run-1` and `after/run-1` if each was loaded alone, get the names of
        their folders, and ids of their own; a single candidate keeps its id.

        `manual_pairs` maps the id of a candidate to manual choices (`manual.Choice`): ops, or kernels of an op, that
        match or do not match those of the baseline. They take precedence over automatic matches. Of contradicting
        choices, the last one wins; choices about names that a run lacks are reported in `notes`.

        Raises `TfcompareError` with duplicate candidates or for a path, `Unknown` for an unknown `per`, `host`,
        candidate or capture.
        """
        if (other := next((run for run in (baseline, *candidates) if isinstance(run, str | Path)), None)) is not None:
            raise TfcompareError(
                f"expected a run, found the path {str(other)!r}; tfcompare.load({str(other)!r}) reads it"
            )
        candidates = candidates or (baseline,)
        if per not in PER:
            raise Unknown("figures per", per, list(PER))
        given = with_distinct_ids((baseline, *candidates), repeats or {})
        hosts, host_notes = counterparts_of_host(given[0], given[1:], host)
        together = accept_captures([run.captures for run in (baseline, *candidates)], given, repeats or {})
        of_run, counted = counted_once(given, shared_by_copies(given[0], given[1:], together.repeats))
        chosen = chosen_captures(captures, given, of_run)
        typical = [typical_of(run, hosts[run.id], of_run, chosen) for run in given]
        sides = sides_of(typical)
        notes = [*together.refused, *counted, *host_notes, *stand_ins(typical, captures)]
        runs, of_hosts = [side.run for side in sides], [side.host for side in sides]
        per, of_each, per_notes = _per_what(runs, of_hosts, per)
        choices, choice_notes = applicable_choices(runs[0], runs[1:] or runs, manual_pairs or {})
        return cls(sides, per, of_each, spread, is_series, choices, (*notes, *per_notes, *choice_notes))

    @property
    def is_single(self) -> bool:
        """Whether one run is shown alone: it is its own and only candidate."""
        return len(self.sides) == 1

    @property
    def baseline(self) -> Run:
        """The run that others are compared with; of several captures, the one that stands for all."""
        return self.sides[0].run

    @property
    def candidates(self) -> tuple[Run, ...]:
        """The runs that are compared with the baseline, as `baseline`."""
        return tuple(side.run for side in self.sides[1:]) or (self.baseline,)

    @property
    def runs(self) -> list[Run]:
        """Each run once, baseline first."""
        return [side.run for side in self.sides]

    @property
    def per_what(self) -> str:
        """What sums are per, as texts name it: `step`, `step and device`."""
        return per_words(self.per, self.of_each)

    @property
    def host(self) -> str | None:
        """The compared host of the baseline, None for all."""
        return self.sides[0].host

    def side_of(self, run: Run) -> Side:
        """The side of one of the runs. Raises `Unknown` for another run."""
        for side in self.sides:
            if side.run.id == run.id:
                return side
        raise Unknown("compared run", run.id, [side.run.id for side in self.sides])

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences that help to read the figures: on their units (per step, run or device) and on normalised names."""
        names = (note for run in self.candidates for note in _normalised_names(self.baseline, run))
        return (*self._notes, *dict.fromkeys(names))

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, kept for `key` with this comparison. Callers must not modify it."""
        return self._cache.get(key, make)

    def retain(self, key: Hashable, make: Callable[[], T]) -> T:
        """As `cached`, but kept as long as the comparison: for diffs and verdicts, which much else is made of."""
        return self._results.get(key, make)

    @property
    def memory_bytes(self) -> int:
        """Memory used by the diffs made so far, and by frames derived from them, in bytes; without that of the runs."""
        return self._results.memory_bytes + self._cache.memory_bytes

    def diffs(self, name: str, *, per_occurrence: bool = False) -> pd.DataFrame:
        """The diffs of a table, with the rows of all candidates concatenated, as described at `Comparison.table`, but
        for the names of sums: what they are per is `sums_per`. Raises `TfcompareError` for a table without occurrences
        if they are to be `per_occurrence`."""
        every = [pair.diff(name) for pair in pairs_of(self)]
        if per_occurrence:
            every = [pair.rows_per_occurrence(diff, name) for pair, diff in zip(pairs_of(self), every, strict=True)]
        return every[0] if len(every) == 1 and not per_occurrence else pd.concat(every, ignore_index=True)

    def sums_per(self, *, per_occurrence: bool = False) -> SumsPer:
        """What the sums of `diffs` are per."""
        return SumsPer("occurrence" if per_occurrence else self.per, self.per)

    def with_runs(
        self,
        other: Callable[[Run], Run],
        hosts: Mapping[str, str],
        name_in: Callable[[Run, str], str],
        sentence: Callable[[str], str],
    ) -> Self:
        """The same comparison with what `other` returns for each run: the same capture under another id and name, with
        these names in place of its hosts'; with `name_in` for the name of an op of a run, and `sentence` for a note."""
        ours = partial(name_in, self.baseline)
        sides = []
        for side in self.sides:
            runs = tuple(map(other, side.runs))
            named = tuple(None if host is None else hosts[host] for host in side.hosts)
            sides.append(Side(runs[0].name, side.position, side.sides, runs, named))
        return replace(
            self,
            sides=tuple(sides),
            _notes=tuple(map(sentence, self._notes)),
            manual_pairs={
                new.run.id: tuple(choice.renamed(ours, partial(name_in, old.run)) for choice in choices)
                for old, new in zip(self.sides, sides, strict=True)
                if (choices := self.manual_pairs.get(old.run.id))
            },
        )


def _per_what(runs: Sequence[Run], hosts: Sequence[str | None], per: Per) -> tuple[Per, OfEach, list[str]]:
    """(what sums can be divided by, which is not the steps where a run has none; what they are of; notes on both)."""
    notes = []
    each = [workers_of(run, host) for run, host in zip(runs, hosts, strict=True)]
    are_known = all(run.tables.has_recorded_devices(host) for run, host in zip(runs, hosts, strict=True))
    differ = len({(workers.hosts, workers.devices * are_known) for workers in each}) > 1
    of_each: OfEach = ""
    if differ or per == "device":
        of_each = "device" if are_known and any(workers.devices for workers in each) else "host"
    unmarked = [run for run in runs if not (knows_step_time(run.info) or (run.info.has_steps and run.why_untimed))]
    if per == "step" and unmarked:
        names = ", ".join(dict.fromkeys(run.name for run in unmarked))
        is_untimed = any(run.why_untimed for run in unmarked)
        why = "there are no step times of" if is_untimed else "no step markers were found in"
        per = "device" if of_each == "device" else "run"
        notes.append(f"Figures are per {per}, not per step, since {why}: {names}.")
    if differ:
        notes.append(workers_note([run.name for run in runs], each, of_each))
    return "device" if of_each == "device" and per == "run" else per, of_each, notes


def _normalised_names(baseline: Run, candidate: Run) -> list[str]:
    """Up to two sentences, on ops and kernels that are matched though names differ in parts that matching ignores."""
    ops = _differing_names(baseline, candidate, "op_stats", {"op_name": plain_name})
    plain = {"op_name": plain_name, "kernel_name": canonical_kernel}
    kernels = _differing_names(baseline, candidate, "kernel_stats", plain)
    what = "Op names are compared without wrapping scopes, numbers of traced functions and what jax.checkpoint adds"
    of_ops = _names_sentence(what, ops["op_name"] | kernels["op_name"])
    of_kernels = _names_sentence("Kernel names are compared without what compilers add", kernels["kernel_name"])
    return [sentence for sentence in (of_ops, of_kernels) if sentence]


def _differing_names(
    baseline: Run, candidate: Run, table: str, columns: Mapping[str, Callable[[str], str]]
) -> dict[str, set[tuple[str, str]]]:
    """For each column of names, given what makes them plain, the names of matched rows that differ only in that."""
    ours, theirs = baseline.table(table), candidate.table(table)
    names = {column: {*ours[column], *theirs[column]} for column in columns}
    if all(len({plain(name) for name in names[column]}) == len(names[column]) for column, plain in columns.items()):
        return {column: set() for column in columns}  # no names can differ so, and matching takes longer
    evidence = baseline.tables.op_evidence(), candidate.tables.op_evidence()
    rows = pair_rows(schema.table(table), ours, with_hosts_of(ours, theirs), evidence=evidence)
    both = (rows.baseline >= 0) & (rows.candidate >= 0)
    at, to = rows.baseline[both], rows.candidate[both]
    pairs = {column: set(zip(ours[column].iloc[at], theirs[column].iloc[to], strict=True)) for column in columns}
    return {
        column: {(one, other) for one, other in pairs[column] if one != other and plain(one) == plain(other)}
        for column, plain in columns.items()
    }


def _names_sentence(what: str, pairs: set[tuple[str, str]]) -> str:
    """A sentence on names that differ, with the shortest pair as the example; empty if there are none."""
    if not pairs:
        return ""
    shortest = min(pairs, key=lambda pair: (sum(map(len, pair)), pair))
    one, other = (middle_ellipsis(name, _LONGEST_NAME) for name in shortest)
    count = "" if len(pairs) == 1 else f" (and {len(pairs) - 1:,} more)"
    return f"{what}: “{one}” of the baseline is “{other}” of the candidate{count}."


def pairs_of(pairs: Pairs, *, by_name: bool = False) -> list[Pair]:
    """The baseline with each candidate; of a run alone, that run. `by_name` as in `Pair`."""
    positions = [0] if pairs.is_single else range(1, len(pairs.sides))
    return [Pair(pairs, position, by_name) for position in positions]


def pair_with(pairs: Pairs, candidate: str | None = None) -> Pair:
    """The pair with the candidate of that id, by default the first. Raises `Unknown` for a run that is none."""
    every = {pair.candidate.id: pair for pair in pairs_of(pairs)}
    if candidate is None:
        return next(iter(every.values()))
    if candidate not in every:
        raise Unknown("candidate", candidate, list(every))
    return every[candidate]
