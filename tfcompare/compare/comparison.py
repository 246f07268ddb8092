"""`compare` and `Comparison`: the diffs, coverage and verdicts of one baseline and its candidates."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.compare.between_steps import rates, windows_of
from tfcompare.compare.cache import Cache
from tfcompare.compare.captures import (
    Captures,
    Replicates,
    counted_once,
    counterparts_of_host,
    shared_by_copies,
    stand_ins,
    typical_of,
)
from tfcompare.compare.comparability import MIX, Mismatch, mismatches
from tfcompare.compare.diff import INTERVAL, MATCHED, VERDICT, SideRows, diff_table, metric_name
from tfcompare.compare.examples import differing_examples
from tfcompare.compare.groups.aggregate import Groups
from tfcompare.compare.groups.group_verdicts import group_verdicts
from tfcompare.compare.headline import doubt, kinds_headline, knows_step_time, no_step_times, step_time_headline
from tfcompare.compare.lost_events import lost_events
from tfcompare.compare.matching import coverage as coverage_of
from tfcompare.compare.matching.manual import ManualChoice, ManualPairs, applicable_choices
from tfcompare.compare.matching.matching import with_hosts_of
from tfcompare.compare.matching.normalised import normalised_names
from tfcompare.compare.matching.sure_pairs import are_sure
from tfcompare.compare.matching.tiers import NAMINGS
from tfcompare.compare.per_device import computing_devices, device_counts, devices_note, of_hosts_alone, per_occurrence
from tfcompare.compare.pooling import POOLED
from tfcompare.compare.repeats import accept_captures
from tfcompare.compare.same_ids import told_apart
from tfcompare.compare.slow_step_words import clause, row_of
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.verdict import IDENTICAL, UNTESTED, Verdict
from tfcompare.compare.step_kinds import StepKind, step_kinds
from tfcompare.compare.step_time_verdict import SAME_CAPTURE, caveat, step_time_us, step_time_verdict, time_verdict
from tfcompare.compare.tf_data.call_verdicts import CallVerdict, on_calls, on_slowest_calls
from tfcompare.compare.tf_data.pipelines import HostPipeline, pair_pipelines, slowest_executions
from tfcompare.compare.without_steps import Execution, leading_sentence, longest_program
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.markdown import as_code
from tfcompare.schema import SIDES
from tfcompare.tables.frames import frame_bytes
from tfcompare.tables.op_evidence import OpEvidence
from tfcompare.text import some_of

if TYPE_CHECKING:
    from tfcompare.render.shown import Shown
    from tfcompare.run import Run

T = TypeVar("T")
Per = Literal["step", "run", "device"]
PER: tuple[Per, ...] = ("step", "run", "device")
_NAMED = 3
"""The number of candidates that `repr` names."""


def compare(
    baseline: Run,
    *candidates: Run,
    per: Per = "step",
    host: str | None = None,
    repeats: Mapping[str, Sequence[Run]] | None = None,
    spread: float | None = None,
    manual_pairs: ManualPairs | None = None,
    is_series: bool = False,
) -> Comparison:
    """Compares each candidate with the baseline.

    Sums (times and counts over the whole profile) are given per step, which requires step markers in every run. If a
    run has none, the comparison is per run, or per device if the runs computed on different numbers of devices, and
    `Comparison.notes` reports it. Per `device`, sums are divided by the number of devices that computed. `host`
    restricts the comparison to one of the baseline's hosts and its counterpart in each candidate: the host of that
    name, else the one at the same position if both runs have the same number of hosts.

    `repeats` maps the id of any of these runs to further captures of the same program, which verdicts then use as well,
    besides the `captures` that `load` found with a run.
    `spread` is the standard deviation between captures of one program, as a share; it overrides the default of the
    device (`docs/verdicts.md`). `is_series`: the repeats of the baseline are earlier runs of the candidate's program,
    so that a single candidate varies as they do.

    Different runs of one id, such as `before/run-1` and `after/run-1` if each was loaded alone, get the names of their
    folders, and ids of their own; a single candidate keeps its id.

    `manual_pairs` maps the id of a candidate to manual choices (`manual.Choice`): ops, or kernels of an op, that match
    or do not match those of the baseline. They take precedence over automatic matches. Of contradicting choices, the
    last one wins; choices about names that a run lacks are reported in `notes`.

    Raises `TfcompareError` without candidates, with duplicate ones or for a path, `Unknown` for an unknown `per`,
    `host` or candidate.
    """
    if (other := next((run for run in (baseline, *candidates) if isinstance(run, str | Path)), None)) is not None:
        raise TfcompareError(f"expected a run, found the path {str(other)!r}; tfcompare.load({str(other)!r}) reads it")
    if not candidates:
        raise TfcompareError("a comparison needs a baseline and at least one candidate; only one run was given")
    if per not in PER:
        raise Unknown("figures per", per, list(PER))
    given = told_apart((baseline, *candidates), repeats or {})
    hosts, host_notes = counterparts_of_host(given[0], given[1:], host)
    together = accept_captures([run.captures for run in (baseline, *candidates)], given, repeats or {})
    of_run, counted = counted_once(given, shared_by_copies(given[0], given[1:], together.repeats))
    typical = [typical_of(run, hosts[run.id], of_run) for run in given]
    runs = tuple(one.run for one in typical)
    baseline, candidates = runs[0], runs[1:]
    hosts = {one.run.id: one.host for one in typical}
    of_run = {one.run.id: (one.run, *one.others) for one in typical}
    notes = [*together.refused, *counted, *host_notes, *stand_ins(typical)]
    unmarked = [run for run in runs if not (knows_step_time(run.info) or (run.info.has_steps and run.why_untimed))]
    of_hosts = [one.host for one in typical]
    devices = device_counts(runs, of_hosts) if unmarked or per == "device" else []
    if per == "step" and unmarked:
        names = ", ".join(dict.fromkeys(run.name for run in unmarked))
        is_untimed = any(run.why_untimed for run in unmarked)
        why = "there are no step times of" if is_untimed else "no step markers were found in"
        per = "device" if devices else "run"
        notes.append(f"Figures are per {per}, not per step, since {why}: {names}.")
    if devices:
        notes.append(devices_note(runs, of_hosts, devices, per))
    choices, choice_notes = applicable_choices(baseline, candidates, manual_pairs or {})
    notes += choice_notes
    replicates = Replicates(of_run, spread, is_series)
    return Comparison(baseline, candidates, per, hosts[baseline.id], tuple(notes), hosts, replicates, choices)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """A baseline and its candidates. A notebook shows the verdict, key figures and largest changes of each.

    Charts, for `figure`; runs have those that they have data for:

    - the step: `waterfall`, `average_step` (of a run alone), `step_times`, `step_distribution`, `step_parts_baseline`,
      `step_parts_candidate`
    - ops: `op_changes`, `op_shares`, `scopes_device`, `scopes_host`, `kernel_changes`, `tensor_cores`
    - memory: `memory_step`, `memory_run`, `memory_peak`, `memory_peak_changes`
    - input: `input_wait`, `input_by_core`, `input_host`, `tf_data_baseline`, `tf_data_candidate`
    - hosts: `hosts_baseline`, `hosts_candidate`, `hosts_change`, `host_parts`
    - XLA programs: `xla_time`, `roofline`, `xla_memory`
    """

    baseline: Run
    candidates: tuple[Run, ...]
    per: Per
    host: str | None
    _notes: tuple[str, ...]
    _hosts: Mapping[str, str | None]
    replicates: Replicates
    manual_pairs: Mapping[str, tuple[ManualChoice, ...]] = field(default_factory=dict)
    _diffs: dict[str, tuple[pd.DataFrame, int]] = field(default_factory=dict, init=False)
    _cache: Cache = field(default_factory=Cache, init=False)

    def __repr__(self) -> str:
        if self.is_single:
            return f"<Comparison of {self.baseline.name!r} with itself>"
        named = [f"{self.names_of(run)[1]!r} {self.verdict[run.id].text}" for run in self.candidates[:_NAMED]]
        return f"<Comparison with {self.baseline.name!r}: {some_of(named, _NAMED, len(self.candidates))}>"

    def _repr_html_(self) -> str:
        from tfcompare.render.notebook import comparison_html

        return comparison_html(self)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences that help to read the figures: on their units (per step, run or device) and on normalised names."""
        names = (note for run in self.candidates for note in normalised_names(self.baseline, run))
        return (*self._notes, *dict.fromkeys(names))

    def with_runs(
        self,
        other: Callable[[Run], Run],
        hosts: Mapping[str, str],
        name_in: Callable[[Run, str], str],
        sentence: Callable[[str], str],
    ) -> Comparison:
        """The same comparison with what `other` returns for each run: the same capture under another id and name, with
        these names in place of its hosts'; with `name_in` for the name of an op of a run, and `sentence` for a note."""
        runs = {run.id: other(run) for run in (self.baseline, *self.candidates)}
        captures = {runs[key].id: (runs[key], *map(other, more)) for key, (_, *more) in self.replicates.of_run.items()}
        ours = partial(name_in, self.baseline)
        return replace(
            self,
            baseline=runs[self.baseline.id],
            candidates=tuple(runs[run.id] for run in self.candidates),
            host=None if self.host is None else hosts[self.host],
            _notes=tuple(map(sentence, self._notes)),
            _hosts={runs[key].id: None if host is None else hosts[host] for key, host in self._hosts.items()},
            replicates=replace(self.replicates, of_run=captures),
            manual_pairs={
                runs[run.id].id: tuple(choice.renamed(ours, partial(name_in, run)) for choice in choices)
                for run in self.candidates
                if (choices := self.manual_pairs.get(run.id))
            },
        )

    @property
    def is_single(self) -> bool:
        """Whether one run is shown alone: it is its own and only candidate."""
        return [run.id for run in self.candidates] == [self.baseline.id]

    def per_occurrence(self, name: str) -> pd.DataFrame:
        """The diff of a table with sums divided by occurrences (`<metric>_per_occurrence`).

        Raises the errors of `table`, and `TfcompareError` for a table without occurrences.
        """
        return self.rows_per_occurrence(self.table(name), name).reset_index(drop=True)

    def rows_per_occurrence(self, rows: pd.DataFrame, name: str) -> pd.DataFrame:
        """As `per_occurrence`, for some rows of the diff of a table, or groups of them."""
        return per_occurrence(rows, schema.table(name), self._per_step_of)

    def table(self, name: str) -> pd.DataFrame:
        """The diff of a table, with the rows of all candidates concatenated.

        Columns:

        - `baseline` and `candidate`, their ids;
        - the table's keys, and `<key>_candidate` for keys that may differ between matched rows (an added row has the
          candidate's keys, but the baseline's name for the host);
        - `<metric>_baseline` and `<metric>_candidate` for each metric; for numbers also `<metric>_delta` (candidate −
          baseline; all of the sums and bytes of an added or removed row) and `<metric>_ratio` (candidate ÷ baseline; 1
          if both are 0, infinite if only the baseline is);
        - `status`: `matched`, `added`, `removed`;
        - `match`: `by hand`, `exact`, `canonical`, `structural`, `fused`, `probable`, `position`; empty for unmatched
          rows;
        - in `op_stats`, `constituents_baseline` and `constituents_candidate`: in rows matched as `fused`, the ops that
          the row stands for on each side, as tuples of `name:type` in the order in which they start; such a row has
          sums, and `op_type` is `MatMul + BiasAdd + Relu → _FusedMatMul`;
        - in `op_stats` and `kernel_stats`, `interval_low` and `interval_high`: the confidence interval of the headline
          metric's ratio, missing if it was not tested;
        - `verdict`: `faster`, `slower`, `same`, `unclear`, `untested`, or `less` and `more` for bytes; empty for
          unmatched rows and in tables without a headline metric;
        - `evidence`: `single` or `replicates`, depending on whether there are enough captures for a definite claim;
          empty if nothing was tested.

        Where one side has no record of its devices, rows of devices are left out, instead of being added or removed.
        For `tf_data`, the slowest execution of each pipeline is compared. Excluded `steps` are left out. Per step, a
        sum is named `<metric>_per_step` and is the total over the run ÷ the number of all its steps, so it includes the
        time between steps. Cells of an absent side are missing. Rows are sorted by candidate, then by the change of the
        headline metric, largest first.

        Raises `Unknown` for an unknown table, `TfcompareError` for one without a diff.
        """
        table = schema.table(name)
        if not table.has_diff:
            raise TfcompareError(f"the table {name!r} has no diff; show it for each run by itself")
        if name not in self._diffs:
            diffs = [self._diff(table, candidate) for candidate in self.candidates]
            diff = pd.concat(diffs, ignore_index=True)
            diff.insert(0, "baseline", pd.Series(self.baseline.id, diff.index, dtype="str"))
            self._diffs[name] = diff, frame_bytes(diff)
        return self._diffs[name][0].copy(deep=False)

    @property
    def memory_bytes(self) -> int:
        """Memory used by the diffs made so far, and by frames derived from them, in bytes; without that of the runs."""
        return sum(size_bytes for _, size_bytes in list(self._diffs.values())) + self._cache.memory_bytes

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, kept for `key` with this comparison. Callers must not modify it."""
        return self._cache.get(key, make)

    def coverage(self, table: str = "op_stats") -> pd.DataFrame:
        """The shares of a table's headline metric that were matched; see `coverage.coverage`.

        Raises `TfcompareError` for a table without a headline metric.
        """
        headline_metric = schema.table(table).headline
        if headline_metric is None:
            raise TfcompareError(f"the table {table!r} has no headline metric, so it has no matched share")
        metric = metric_name(schema.table(table).column(headline_metric), self.per)
        return coverage_of.coverage(self.table(table), metric, [run.id for run in self.candidates])

    @cached_property
    def verdict(self) -> dict[str, Verdict]:
        """The verdict on the step time of each candidate, by its id."""
        ours = self.captures(self.baseline)
        return {
            run.id: step_time_verdict(ours, self.captures(run), self.replicates, self.mismatches(run))
            for run in self.candidates
        }

    def step_kinds(self, candidate: Run) -> list[StepKind]:
        """The kinds of steps of the baseline and a candidate, that with most time first; none if the steps of each are
        all of one kind."""
        return self.cached(("step kinds", candidate.id), partial(self._step_kinds, candidate))

    def _step_kinds(self, candidate: Run) -> list[StepKind]:
        found = step_kinds(*self._sides(candidate), self.replicates)
        if self._is_identical(candidate):
            return [replace(one, verdict=SAME_CAPTURE) for one in found]
        why = caveat(self.mismatches(candidate), but=MIX)
        return [replace(one, verdict=replace(one.verdict, caveat=why)) for one in found]

    def main_kind(self, candidate: Run) -> StepKind | None:
        """The kind of step with most time that both runs have, where their steps are of several: the headline is on
        it. None where it is on all steps."""
        if not (knows_step_time(self.baseline.info) and knows_step_time(candidate.info)):
            return None
        if self._is_identical(candidate):
            return None
        return next((kind for kind in self.step_kinds(candidate) if all(kind.counts)), None)

    def headline_verdict(self, candidate: Run) -> Verdict:
        """The verdict that the headline states: on the step time, or on that of the kind of step with most time."""
        kind = self.main_kind(candidate)
        return self.verdict[candidate.id] if kind is None else kind.verdict

    @cached_property
    def longest_programs(self) -> dict[str, Execution | None]:
        """The longest XLA program that the baseline and each candidate ran, by the candidate's id."""
        return {run.id: longest_program(self, run) for run in self.candidates}

    def group_verdicts(self, groups: Groups) -> pd.DataFrame:
        """The verdicts on groups of ops or kernels; can be passed as `judge` to functions such as `group_diff`.

        Columns: `verdict`, `evidence`, `interval_low`, `interval_high`; one row per group. The groups of a candidate
        are tested as one family.
        """
        run = self._candidate(groups.candidate)
        return group_verdicts(groups, self._sides(run), self.replicates, self.per_step(groups.ratios, run))

    def time_verdict(self, candidate: Run, times: tuple[list[Times], list[Times]], of: str) -> Verdict:
        """A verdict on the mean of individual host times, such as calls to an input pipeline.

        Each side of `times` holds those of each capture, in chronological order; `of` names what is timed (`steps`,
        `calls`).
        """
        spread = self.replicates.spread_between(self.baseline, candidate, on_host=True)
        verdict = time_verdict(self._sides(candidate), times, ChangeTest(spread, of=of, can_be_absent=True))
        if self._is_identical(candidate):
            return verdict
        return replace(verdict, caveat=caveat(self.mismatches(candidate)))

    def call_verdicts(self, candidate: Run, pipelines: pd.DataFrame) -> list[CallVerdict]:
        """A verdict on the mean call for each matched row of the candidate's diff of `tf_data_pipelines`."""
        return on_calls(*self._sides(candidate), pipelines, partial(self.time_verdict, candidate, of="calls"))

    def slowest_call_verdict(self, candidate: Run) -> CallVerdict | None:
        """The verdict on the mean call of each side's slowest pipeline; None if a side has no calls."""
        return on_slowest_calls(*self._sides(candidate), partial(self.time_verdict, candidate, of="calls"))

    def _sides(self, candidate: Run) -> tuple[Captures, Captures]:
        return self.captures(self.baseline), self.captures(candidate)

    def captures(self, run: Run) -> Captures:
        """One of the runs and its replicates, with the compared host of each."""
        return self.replicates.captures(run, self.host_of(run))

    def per_step(self, ratios: pd.Series, candidate: Run) -> pd.Series:
        """Converts ratios of sums, as in diffs, to ratios of the time per step, which verdicts refer to."""
        if self.per == "step":
            return ratios
        (our_steps, ours), (their_steps, theirs) = map(self._steps_and_divisor, (self.baseline, candidate))
        return ratios * (theirs / ours) * (our_steps / their_steps)

    def _steps_and_divisor(self, run: Run) -> tuple[float, float]:
        """The steps of a capture of a run, and the number that its sums are divided by, on average."""
        captures = self.captures(run)
        divisors = [self._divisor(captures, "", position) for position in captures.positions]
        return fmean(captures.each(_step_count)), fmean(divisors)

    def _per_step_of(self, ratios: pd.Series, candidate: str) -> pd.Series:
        return self.per_step(ratios, self._candidate(candidate))

    def _divisor(self, captures: Captures, table: str, position: int) -> int:
        """The number by which the sums of the table of a capture are divided."""
        run, host = captures.runs[position], captures.hosts[position]
        if self.per == "step":
            if table in schema.IN_STEPS:
                return captures.step_count(position)
            return run.recorded_steps(host) if table in schema.OF_DEVICES else _step_count(run, host)
        return computing_devices(run, host) if self.per == "device" else 1

    def repeats_of(self, run: Run) -> tuple[Run, ...]:
        """The accepted replicates of one of the runs, without duplicates."""
        return self.captures(run).runs[1:]

    def host_of(self, run: Run) -> str | None:
        """The host of `run` that is compared, None for all: a candidate's is the counterpart of the baseline's."""
        return self._hosts[run.id]

    def mismatches(self, candidate: Run) -> list[Mismatch]:
        """Differences that make the two runs hard to compare, the most serious first."""
        return self.cached(("mismatches", candidate.id), partial(mismatches, self.baseline, candidate))

    def headline(self, candidate: str | None = None, names: tuple[str, str] | None = None) -> str:
        """A Markdown sentence on the candidate with that id, by default the first one.

        `names` are what baseline and candidate are called, by default their display names, or their ids if these are
        equal. Raises `Unknown` for a run that is not a candidate.
        """
        run = self.candidates[0] if candidate is None else self._candidate(candidate)
        ours, theirs = map(as_code, self.names_of(run) if names is None else names)
        runs = zip((ours, theirs), (self.baseline, run), strict=True)
        untimed = [f"{name}: {of.why_untimed}." for name, of in runs if of.why_untimed]
        if untimed and self.verdict[run.id] != IDENTICAL:
            throughput = rates(*windows_of(self, run))
            beside = [f"Throughput: {throughput}."] if throughput else []
            return " ".join(["Step times cannot be compared.", *beside, *untimed])
        times = self.step_time_us(self.baseline), self.step_time_us(run)
        infos = self.baseline.info, run.info
        if lead := leading_sentence(self, run, (ours, theirs)):
            return lead
        if self.main_kind(run) is not None:
            return kinds_headline(self.step_kinds(run), infos, times, (ours, theirs))
        slow_steps = clause((row_of(self.baseline, self.host), row_of(run, self.host_of(run))), (ours, theirs))
        examples = differing_examples(self.baseline, run, (self.host, self.host_of(run)))
        kind = self.baseline.choice.kind if self.baseline.choice.kind == run.choice.kind else None
        return step_time_headline(infos, times, (ours, theirs), self.verdict[run.id], slow_steps, examples, kind)

    def names_of(self, candidate: Run) -> tuple[str, str]:
        """The names of baseline and candidate, or their ids if the names are equal."""
        ours, theirs = self.baseline, candidate
        return (ours.id, theirs.id) if ours.name == theirs.name else (ours.name, theirs.name)

    def doubt(self, candidate: str | None = None) -> str:
        """Why the candidate's headline is not a verdict on the program, in Markdown, to follow it; empty if it is one.

        Raises `Unknown` for a run that is not a candidate.
        """
        run = self.candidates[0] if candidate is None else self._candidate(candidate)
        if knows_step_time(self.baseline.info) and knows_step_time(run.info):
            return doubt(self.headline_verdict(run))
        ours, theirs = map(as_code, self.names_of(run))
        if not leading_sentence(self, run, (ours, theirs)):
            return ""
        infos = {ours: self.baseline.info, theirs: run.info}
        return no_step_times({name: info for name, info in infos.items() if not knows_step_time(info)})

    def figure(self, name: str, candidate: str | None = None) -> Any:
        """The chart `name` as a `plotly.graph_objects.Figure`, with the candidate of that id, by default the first one.

        Raises `Unknown` for an unknown name or candidate, `TfcompareError` if the runs have no data for the chart.
        """
        from tfcompare.views.registry import figure

        return figure(self, name, candidate)

    def figure_names(self, candidate: str | None = None) -> tuple[str, ...]:
        """The charts that these runs have data for. Takes about as long as drawing them. Raises `Unknown` for a run
        that is not a candidate."""
        from tfcompare.views.registry import figure_names

        return figure_names(self, candidate)

    def view(self, name: str, **options: Any) -> Shown:
        """What one page shows: displayed in a notebook, `str` of it is text; `view("memory").to("json")` is JSON.

        `name` is one of `tfcompare.views.NAMES`; what can be chosen on the page is an option, as in
        `view("op_stats", by="op_type")`. Raises `Unknown` for another view, option or value.
        """
        from tfcompare.render.shown import Shown

        return Shown.of(self, name, **options)

    def report(self, path: str | Path = "report.html", *, redact: bool = False) -> Path:
        """Write a report to a file: HTML, or what the suffix `.md` or `.json` asks for. Returns its path.

        `redact` removes names of runs, hosts and users, paths and addresses. Raises `TfcompareError` for another
        suffix, `OSError` if the file cannot be written.
        """
        from tfcompare.report.making import form_of, report, write

        file = Path(path)
        write(report(self, form_of(file), redact=redact), file)
        return file

    def step_time_us(self, run: Run) -> float:
        """The mean step of one of the runs on the compared host; the verdict's ratio is the ratio of two of these.

        With replicates, the mean over all captures. NaN without step markers.
        """
        return step_time_us(self.captures(run))

    def _candidate(self, run_id: str) -> Run:
        for run in self.candidates:
            if run.id == run_id:
                return run
        raise Unknown("candidate", run_id, [run.id for run in self.candidates])

    def _is_identical(self, candidate: Run) -> bool:
        return candidate.content_id == self.baseline.content_id

    def _diff(self, table: schema.Table, candidate: Run) -> pd.DataFrame:
        ours, theirs = self._side(table, self.baseline), self._side(table, candidate)
        identical = self._is_identical(candidate)
        if not self.knows_devices(candidate):
            ours, theirs = (replace(side, frame=of_hosts_alone(table.name, side.frame)) for side in (ours, theirs))
        if "pipeline" in table.keys:
            theirs = replace(theirs, pipelines=self.pipelines(candidate))
        diff = diff_table(
            table,
            candidate.id,
            ours,
            theirs,
            per=self.per,
            identical=identical,
            manual_pairs=self.manual_pairs.get(candidate.id, ()),
        )
        if table.name == schema.TF_DATA_PIPELINES.name:
            found = [call.verdict for call in self.call_verdicts(candidate, diff)]
            cells = {"verdict": [v.word for v in found], "evidence": [v.evidence or None for v in found]}
            matched = diff.index[diff["status"] == MATCHED]
            return diff.assign(**pd.DataFrame(cells, matched, dtype="str").reindex(diff.index))
        return self._judged(diff, table.name, candidate) if table.name in schema.STEP_TABLES else diff

    def _judged(self, diff: pd.DataFrame, name: str, candidate: Run) -> pd.DataFrame:
        """The diff with verdicts from per-step data; each sure pair is tested as a separate group."""
        metric = metric_name(schema.table(name).column(schema.table(name).headline or ""), self.per)
        rows = diff[diff["status"] == MATCHED]
        ours, theirs = self.baseline.op_evidence(host=self.host), candidate.op_evidence(host=self._hosts[candidate.id])
        rows = rows[are_sure(rows, (ours, theirs))]
        number = pd.Series(np.arange(len(rows)), rows.index)
        ratios = rows[f"{metric}_ratio"].reset_index(drop=True)
        groups = Groups(name, candidate.id, rows, dict.fromkeys(SIDES, number), ratios)
        found = self.group_verdicts(groups).set_axis(rows.index)
        lost = rows["op_name"].isin(self.lost_events(candidate)["op_name"])
        found.loc[lost, "verdict"] = UNTESTED
        found.loc[lost, ["evidence", *INTERVAL]] = None
        columns = {c: diff[c].mask(diff.index.isin(found.index), found[c].reindex(diff.index)) for c in VERDICT}
        return diff.assign(**columns)

    def pipelines(self, candidate: Run) -> dict[HostPipeline, str]:
        """Maps each matched tf.data pipeline of the candidate, (the baseline's host, name), to the baseline's."""
        ours = slowest_executions(self.baseline.table("tf_data", host=self.host))
        theirs = slowest_executions(candidate.table("tf_data", host=self._hosts[candidate.id]))
        return pair_pipelines(ours, with_hosts_of(ours, theirs))

    def lost_events(self, candidate: Run) -> pd.DataFrame:
        """The instructions of which a capture of either run lost events (`lost_events.lost_events`): they, and the ops
        that they compute, are not judged."""
        return self.cached(("lost events", candidate.id), partial(lost_events, self, candidate))

    def knows_devices(self, candidate: Run) -> bool:
        """Whether what ran on devices was recorded on both sides; otherwise, only hosts are compared."""
        return all(all(side.each(_has_recorded_devices)) for side in self._sides(candidate))

    def rows(self, name: str, run: Run) -> pd.DataFrame:
        """The rows of a table of all captures of one of the runs, with sums per step, device or run as in diffs."""
        table = schema.table(name)
        side = self._side(table, run)
        sums = [column.name for column in table.columns if metric_name(column, self.per) != column.name]
        return side.frame.assign(**{sum_: side.frame[sum_] / side.divisor for sum_ in sums})

    def whole(self, name: str, run: Run) -> pd.DataFrame:
        """The rows of a table of one of the runs over its whole profile, sums as the mean of all captures."""
        captures = self.captures(run)
        if len(captures.runs) == 1:
            return run.table(name, host=self.host_of(run))
        return self.replicates.rows(captures, name, lambda _: 1, lambda one, host: one.table(name, host=host))

    def _side(self, table: schema.Table, run: Run) -> SideRows:
        host = self.host_of(run) if "host" in table.keys else None
        is_in_steps = self.per == "step" and table.name in schema.IN_STEPS
        evidence = run.op_evidence(host=host) if table.name in NAMINGS else OpEvidence()

        def rows(capture: Run, its_host: str | None) -> pd.DataFrame:
            of_capture = capture.in_steps if is_in_steps else capture.table
            return of_capture(table.name, host=its_host)

        captures = self.captures(run)
        divisor = partial(self._divisor, captures, table.name)
        if table.name in POOLED and len(captures.runs) > 1:
            return SideRows(self.replicates.rows(captures, table.name, divisor, rows), 1, evidence=evidence)
        frame = rows(run, host)
        if "execution" in table.keys:
            frame = slowest_executions(frame)
        return SideRows(frame, divisor(0), evidence=evidence)


def _has_recorded_devices(run: Run, host: str | None) -> bool:
    return run.has_recorded_devices(host)


def _step_count(run: Run, host: str | None) -> int:
    return run.info.step_count if host is None else len(run.table("steps", host=host)) or run.info.step_count
