"""`compare` and `Comparison`: the public face of the diffs, verdicts and views of one baseline and its candidates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from tfcompare import schema
from tfcompare.compare.pairs import Pairs, pair_with, pairs_of
from tfcompare.compare.stats.verdict import Verdict
from tfcompare.compare.steps.step_time_verdict import step_time_us
from tfcompare.text import some_of

if TYPE_CHECKING:
    from tfcompare.render.shown import Shown
    from tfcompare.run import Run

_NAMED = 3
"""The number of candidates that `repr` names."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Pairs):
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

    def __repr__(self) -> str:
        if self.is_single:
            return f"<Comparison of {self.baseline.name!r} with itself>"
        named = [f"{pair.names[1]!r} {pair.verdict.text}" for pair in pairs_of(self)[:_NAMED]]
        return f"<Comparison with {self.baseline.name!r}: {some_of(named, _NAMED, len(self.candidates))}>"

    def _repr_html_(self) -> str:
        from tfcompare.render.notebook import comparison_html

        return comparison_html(self)

    @property
    def verdict(self) -> dict[str, Verdict]:
        """The verdict on the step time of each candidate, by its id."""
        return {pair.candidate.id: pair.verdict for pair in pairs_of(self)}

    def step_time_us(self, run: Run) -> float:
        """The mean step of one of the runs on the compared host; the verdict's ratio is the ratio of two of these, of
        steps of unlike work that of iterations.

        With replicates, the mean over all captures. NaN without step markers.
        """
        return step_time_us(self.side_of(run))

    def headline(self, candidate: str | None = None, names: tuple[str, str] | None = None) -> str:
        """Markdown sentences on the candidate with that id, by default the first one.

        `names` are what baseline and candidate are called, by default their display names, or their ids if these are
        equal. Raises `Unknown` for a run that is not a candidate.
        """
        from tfcompare.views.steps.headline import headline

        return headline(pair_with(self, candidate), names).text

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
        return self.diffs(name).rename(columns=self.sums_per().names(schema.table(name)))

    def per_occurrence(self, name: str) -> pd.DataFrame:
        """The diff of a table with sums divided by occurrences (`<metric>_per_occurrence`).

        Raises the errors of `table`, and `TfcompareError` for a table without occurrences.
        """
        names = self.sums_per(per_occurrence=True).names(schema.table(name))
        return self.diffs(name, per_occurrence=True).rename(columns=names)

    def coverage(self, table: str = "op_stats") -> pd.DataFrame:
        """The shares of a table's headline metric that were matched; see `coverage.coverage`.

        Raises `TfcompareError` for a table without a headline metric.
        """
        return pd.concat([pair.coverage(table) for pair in pairs_of(self)], ignore_index=True)

    def figure(self, name: str, candidate: str | None = None) -> Any:
        """The chart `name` as a `plotly.graph_objects.Figure`, with the candidate of that id, by default the first one.

        Raises `Unknown` for an unknown name or candidate, `TfcompareError` if the runs have no data for the chart.
        """
        from tfcompare.views.registry import figure

        return figure(pair_with(self, candidate), name)

    def figure_names(self, candidate: str | None = None) -> tuple[str, ...]:
        """The charts that these runs have data for. Takes about as long as drawing them. Raises `Unknown` for a run
        that is not a candidate."""
        from tfcompare.views.registry import figure_names

        return figure_names(pair_with(self, candidate))

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
        from tfcompare.render.report import form_of, report, write

        file = Path(path)
        write(report(self, form_of(file), redact=redact), file)
        return file


compare = Comparison.between
