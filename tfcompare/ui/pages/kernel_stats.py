"""The parts of the kernel stats page: TensorBoard's GPU kernel stats for both sides, and the changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import pandas as pd
import streamlit as st

from tfcompare.charts import kernels, ops, shares, style
from tfcompare.charts.pair import Pair
from tfcompare.charts.style import Quantity
from tfcompare.compare.aggregate import largest_changes, metric_in
from tfcompare.compare.kernel_groups import KernelGrouping, counted_under, group_kernels
from tfcompare.compare.matching.kernel_labels import kernel_labels
from tfcompare.markdown import as_code
from tfcompare.run import Run
from tfcompare.sources.logdir import FoundRun
from tfcompare.tools import kernel_stats as kernel_figures
from tfcompare.tools.op_figures import largest_bar
from tfcompare.tools.op_figures import outside_of_steps as outside
from tfcompare.tools.op_stats import ROLES, longest_first, time_shares, with_words
from tfcompare.ui.frame.selection import SAMPLE_GPU_PAIR, Selection, sample_pair
from tfcompare.ui.frame.sidebar import HOME, link
from tfcompare.ui.widgets.cards import cards
from tfcompare.ui.widgets.changes import largest
from tfcompare.ui.widgets.figures import cached, draw
from tfcompare.ui.widgets.side_by_side import side_by_side
from tfcompare.units import format_value
from tfcompare.views import kernel_stats as view

By = KernelGrouping | Literal["launch"]

GROUPINGS: dict[By, str] = {
    "kernel_name": "kernel", "op_name": "op", "kernel_and_op": "kernel and op", "launch": "every launch",
}  # fmt: skip
QUANTITIES: dict[str, tuple[str, Quantity]] = {
    "time": (kernel_figures.TIME, kernels.KERNEL_TIME),
    "launches": (kernel_figures.COUNT, kernels.LAUNCHES),
}
MOVERS = 15
HALF_A_LABEL = 23
NO_OP = "(no op)"
"""The op of kernels for which the profile names none."""

TENSOR_CORES = (
    "Use of tensor cores (AMD: matrix cores) is inferred from kernel names. Eligible are ops that multiply matrices or "
    "convolve; in 32 bits they need TF32 or mixed precision."
)

PER_LAUNCH = (
    "Divide the times in the table, and the changes, by the number of launches: for runs that launched their kernels "
    "more or less often. Verdicts are on the time per step, so a kernel with other numbers of launches has none."
)
OP_STATS_PAGE, KERNEL_STATS_PAGE = "pages/2_Op_stats.py", "pages/3_Kernel_stats.py"

HOW_TO_ALLOW = """
Profile on a machine with a GPU whose profiler may be used:

- **NVIDIA:** `libcupti` must be on the library path, and the driver must let users profile: set the module option
  `NVreg_RestrictProfilingToAdminUsers=0`, or run the container with `--cap-add=SYS_ADMIN`.
- **AMD:** TensorFlow or JAX must be built with ROCm's profiler, and the user must be in the groups `render` and
  `video`; a container needs `/dev/kfd` and `/dev/dri`.
"""


@dataclass(frozen=True)
class Choice:
    """The values of the widgets above table and chart."""

    by: By
    text: str
    per_occurrence: bool = False


def explain_missing(pair: Pair, selection: Selection, found: Sequence[FoundRun]) -> None:
    """Explain which runs have no kernels and why; stop the page if neither has any.

    If the sample runs were found, the two on a simulated GPU are suggested.
    """
    shown = [run for _, run in pair.shown]
    without = [run for run, rows in zip(shown, pair.tables("kernel_stats"), strict=False) if rows.empty]
    if not without:
        return
    why, none = _why_missing(without), len(without) == len(shown)
    st.info(f"No kernels. {why}" if none else why)
    if any(run.info.device_type != "TPU" for run in without):
        with st.expander("How to record kernels", icon=":material/help:"):
            st.markdown(HOW_TO_ALLOW)
    if none:
        link(OP_STATS_PAGE, "Show the ops instead", selection, icon=":material/table_chart:")
        if samples := sample_pair(found, SAMPLE_GPU_PAIR):
            on_gpu = replace(selection, baseline=samples[0], candidates=samples[1:], host=None)
            link(KERNEL_STATS_PAGE, "Show the sample runs on a simulated GPU", on_gpu, icon=":material/memory:")
        link(HOME, "Choose other runs", selection, icon=":material/home:")
        st.stop()


_WHY_MISSING = {
    "TPU": "ran on TPUs, whose programs have no kernels.",
    "GPU": "ran on GPUs without kernel events: the profiler was not allowed to record them.",
    "CPU": "ran without GPU events: on the CPU only, or the profiler was not allowed to record the GPU.",
}


def _why_missing(runs: Sequence[Run]) -> str:
    """Why runs have no kernels, those of one device type in one sentence."""
    names: dict[str, list[str]] = {}
    for run in runs:
        device = run.info.device_type if run.info.device_type in _WHY_MISSING else "CPU"
        names.setdefault(device, []).append(as_code(run.name))
    return " ".join(f"{' and '.join(dict.fromkeys(names[device]))} {_WHY_MISSING[device]}" for device in names)


def headline(pair: Pair) -> None:
    """The change in kernel time, as a sentence and as key figures."""
    if sentence := view.headline(pair):
        st.markdown(f"### {sentence}")
    figures = view.figures(pair)
    cards(figures)


def outside_of_steps(pair: Pair) -> None:
    """What ran outside of the included steps, which figures per step leave out."""
    if sentence := outside(pair.comparison, pair.candidate, "kernel_stats"):
        st.caption(sentence)


def controls(pair: Pair) -> Choice:
    """The widgets that choose which kernels are shown, and how they are grouped."""
    del pair
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = st.segmented_control(
            "Group by", list(GROUPINGS), default="kernel_name", required=True, format_func=GROUPINGS.__getitem__,
            key="by", bind="query-params",
            help="Times and launches are summed over hosts and devices. A launch is one kernel of one op with one "
            "block, grid, number of registers and size of shared memory.",
        )  # fmt: skip
        text = st.text_input(
            "Filter", key="filter", bind="query-params", placeholder="words in kernel or op", width=300,
            icon=":material/filter_alt:", help="All words must be in the names of kernel and op; case does not matter",
        )  # fmt: skip
        per_occurrence = st.toggle("Per launch", key="each", bind="query-params", help=PER_LAUNCH)
    return Choice(by, text or "", per_occurrence)


def rows_of(pair: Pair, choice: Choice) -> pd.DataFrame:
    """The rows of chart and table: groups of kernels or single launches that contain the words of the filter."""
    rows = every_row(pair, choice.by)
    if choice.per_occurrence:
        rows = pair.comparison.rows_per_occurrence(rows, "kernel_stats")
    names = ["kernel_name", "op_name", "kernel_name_candidate", "op_name_candidate"]
    return with_words(rows, choice.text, [name for name in names if name in rows])


def every_row(pair: Pair, by: By) -> pd.DataFrame:
    """The diff of the pair's kernels, aggregated, with ranks and shares; cached for the next rerun."""
    return cached(pair, by, partial(_rows, pair, by)).copy(deep=False)


def _rows(pair: Pair, by: By) -> pd.DataFrame:
    diff = pair.diff("kernel_stats")
    if by != "launch":
        diff = group_kernels(diff, by, pair.comparison.group_verdicts, pair.manual_pairs)
    return kernel_figures.with_ranks_and_shares(diff)


def readings_of(pair: Pair) -> dict[str, str]:
    """The short name of each kernel of the pair, and the text for no op; cached for the next rerun."""
    return cached(pair, "readings", partial(_readings, pair))


def _readings(pair: Pair) -> dict[str, str]:
    diff = pair.diff("kernel_stats")
    return {**kernel_labels([*diff["kernel_name"], *diff["kernel_name_candidate"].dropna()]), "": NO_OP}


def launches_of(pair: Pair, row: pd.Series, by: By) -> pd.DataFrame:
    """The rows of the diff that a row of the table aggregates."""
    rows = every_row(pair, "launch")
    if by == "launch":
        return rows.loc[[row.name]] if row.name in rows.index else rows.iloc[:0]
    counted = counted_under(rows, by, pair.manual_pairs)
    keys = [name for name in ("kernel_name", "op_name") if name in row.index]
    return rows[(counted[keys] == row[keys]).all(axis=1)]


def movers(pair: Pair, rows: pd.DataFrame, choice: Choice) -> None:
    """The largest changes among the rows, in time or launches; nothing for a run alone."""
    if pair.is_single:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("What changed", width="content")
        of = st.segmented_control(
            "What changed", list(QUANTITIES), default="time", required=True, key="movers", bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
    metric, quantity = QUANTITIES[of]
    changes = cached(pair, ("movers", choice, of), lambda: largest_changes(rows, n=MOVERS, metric=metric))
    if changes.empty:
        st.info(f"None of these rows changed its {quantity.name}.")
        return
    other = next(name for name, _ in QUANTITIES.values() if name != metric)
    named = _named(changes, choice.by, readings_of(pair))
    named = named.assign(detail=(named["detail"] + " · " + _both_sides(changes, other)).str.removeprefix(" · "))
    largest(pair, named, metric, by="name", quantity=quantity, key="movers_chart", on=(choice, of))


def _named(rows: pd.DataFrame, by: By, readings: dict[str, str]) -> pd.DataFrame:
    """The rows with `name` (in full), `label` (short) and `detail` (what else distinguishes them)."""
    op = rows["op_name"].replace("", NO_OP) if "op_name" in rows else pd.Series("", rows.index, dtype="str")
    if by == "op_name":
        return rows.assign(name=op, label=style.shorten_distinct(op.tolist(), ops.MOVER_LENGTH), detail="")
    label, detail = rows["kernel_name"].map(readings), op
    if by == "launch":
        detail = op + " · block " + rows["block_dim"] + " · grid " + rows["grid_dim"]
    if by != "kernel_name":
        halves = (style.shorten_distinct(half.tolist(), HALF_A_LABEL) for half in (label, op))
        label = _numbered(pd.Series([f"{kernel} · {of}" for kernel, of in zip(*halves, strict=True)], op.index))
    return rows.assign(name=rows["kernel_name"], label=label, detail=detail)


def _numbered(labels: pd.Series) -> pd.Series:
    """The labels, with a number added to duplicates."""
    place = labels.groupby(labels).cumcount()
    return labels.where(place == 0, labels + " #" + (place + 1).astype("str"))


def _both_sides(rows: pd.DataFrame, metric: str) -> pd.Series:
    """The text for a metric of both sides."""
    name = metric_in(rows, metric)
    unit, what = ("", " launches") if metric == kernel_figures.COUNT else ("µs", "")
    ours, theirs = (rows[f"{name}_{role}"].map(lambda value: format_value(value, unit)) for role in ROLES)
    return ours + " → " + theirs + what


def distributions(pair: Pair) -> None:
    """How the kernel time is distributed: by kernel, by op, and by use of tensor cores."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Where the time goes", width="content")
        as_shares = st.toggle(
            "Shares", key="shares", bind="query-params", help="Shares of each run's kernel time, which add up to 100 %"
        )
    groupings: tuple[KernelGrouping, ...] = ("kernel_name", "op_name")
    times = [cached(pair, ("times", key), partial(_times, pair, key)) for key in groupings]
    reach = largest_bar(times, kernel_figures.TIME, len(pair.shown), as_shares=as_shares)
    for place, key, rows in zip(side_by_side(len(groupings)), groupings, times, strict=True):
        with place:
            title = f"Kernel time by {GROUPINGS[key]}"
            rows = rows if as_shares else longest_first(rows, kernel_figures.TIME)
            draw(pair, f"shares_{key}", partial(_bars, pair, rows, title, reach, as_shares), as_shares)
    use = kernel_figures.tensor_core_use(pair.diff("kernel_stats"))
    roles = ROLES[: len(pair.shown)]
    if use[[f"share_{role}" for role in roles]].iloc[:2].to_numpy().any():
        st.subheader("Tensor cores", help=TENSOR_CORES)
        title = "Kernel time by use of tensor cores"
        draw(pair, "tensor_cores", lambda: _bars(pair, use, title, 0.0, as_shares), as_shares)


def _times(pair: Pair, key: KernelGrouping) -> pd.DataFrame:
    readings = readings_of(pair)
    groups = every_row(pair, key).replace({key: {"": NO_OP}})
    times = time_shares(groups, key, metric=kernel_figures.TIME)
    return times.assign(label=[readings.get(name, name) for name in times["group"]])


def _bars(pair: Pair, times: pd.DataFrame, title: str, reach: float, as_shares: bool) -> Any:
    sides = [side for side, _ in pair.shown]
    if as_shares:
        axis = "Share of kernel time"
        return shares.share_bars(times, sides, kernel_figures.TIME, title=title, axis=axis, reach=reach)
    axis = f"Kernel time per {pair.comparison.per}"
    return shares.time_bars(times, sides, kernel_figures.TIME, title=title, axis=axis, reach=reach)
