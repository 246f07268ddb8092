"""The parts of the kernel stats page: TensorBoard's GPU kernel stats for both sides, and the changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import pandas as pd
import streamlit as st

from tfcompare.charts import kernels, ops, style
from tfcompare.charts.style import Quantity
from tfcompare.compare.aggregate import largest_changes, metric_in
from tfcompare.compare.kernel_groups import KernelGrouping, counted_under, group_kernels
from tfcompare.compare.matching.kernel_labels import kernel_labels
from tfcompare.run import Run
from tfcompare.sources.logdir import FoundRun
from tfcompare.tools import kernel_stats as kernel_figures
from tfcompare.tools.op_stats import ROLES, time_shares, with_words
from tfcompare.ui.frame.pair import Pair
from tfcompare.ui.frame.selection import SAMPLE_GPU_PAIR, Selection, sample_pair
from tfcompare.ui.frame.sidebar import HOME, link
from tfcompare.ui.widgets.cards import cards
from tfcompare.ui.widgets.changes import largest
from tfcompare.ui.widgets.figures import cached, draw
from tfcompare.ui.widgets.side_by_side import side_by_side
from tfcompare.ui.widgets.text import as_code
from tfcompare.units import format_percent, format_value

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
NO_OP = "(no op named)"
"""The op of kernels for which the profile names none."""

CARDS_IN_A_ROW = 4
OP_STATS_PAGE, KERNEL_STATS_PAGE = "pages/2_Op_stats.py", "pages/3_Kernel_stats.py"

HOW_TO_ALLOW = """
To record kernels, profile on a machine with a GPU whose profiler may be used:

- **NVIDIA:** `libcupti` has to be on the library path, and the driver has to let users profile: set the module option
  `NVreg_RestrictProfilingToAdminUsers=0`, or run the container with `--cap-add=SYS_ADMIN`.
- **AMD:** TensorFlow or JAX has to be built with ROCm's profiler, and the user has to be in the groups `render` and
  `video`; in a container pass on `/dev/kfd` and `/dev/dri`.
"""


@dataclass(frozen=True)
class Choice:
    """The values of the widgets above table and chart."""

    by: By
    text: str


def explain_missing(pair: Pair, selection: Selection, found: Sequence[FoundRun]) -> None:
    """Explain which runs have no kernels and why; stop the page if neither has any.

    If the sample runs were found, the two on a simulated GPU are suggested.
    """
    without = [run for run, rows in zip(pair.runs, pair.tables("kernel_stats"), strict=True) if rows.empty]
    if not without:
        return
    why, neither = " ".join(_why_missing(run) for run in without), len(without) == len(pair.runs)
    st.info(f"There are no kernels to compare. {why}" if neither else f"{why} The other run stands alone here.")
    if any(run.info.device_type != "TPU" for run in without):
        with st.expander("How to record kernels", icon=":material/help:", expanded=neither):
            st.markdown(HOW_TO_ALLOW)
    if neither:
        if samples := sample_pair(found, SAMPLE_GPU_PAIR):
            on_gpu = replace(selection, baseline=samples[0], candidates=samples[1:], host=None)
            link(KERNEL_STATS_PAGE, "Show the sample runs on a simulated GPU", on_gpu, icon=":material/memory:")
        link(OP_STATS_PAGE, "Op stats shows what ran instead", selection, icon=":material/table_chart:")
        link(HOME, "Choose runs that were recorded on GPUs", selection, icon=":material/home:")
        st.stop()


def _why_missing(run: Run) -> str:
    name, device = as_code(run.name), run.info.device_type
    if device == "TPU":
        return f"{name} ran on TPUs, whose programs are not made of kernels; their ops are in Op stats."
    if device == "GPU":
        return f"{name} ran on GPUs, but its profile holds no kernel events: the profiler was not let record them."
    return f"{name} holds no events of a GPU: it ran on the CPU, or the profiler was not let record the GPU."


def headline(pair: Pair) -> None:
    """The change in kernel time, as a sentence and as key figures."""
    diff = pair.diff("kernel_stats")
    if pair.baseline.content_id == pair.candidate.content_id:
        st.markdown("### Both are the same capture, byte for byte: no kernel differs.")
    elif sentence := kernel_figures.kernel_sentence(diff):
        st.markdown(f"### {sentence}")
    cards(kernel_figures.kernel_figures(diff, pair.diff("copies")), CARDS_IN_A_ROW)


def controls(pair: Pair) -> Choice:
    """The widgets that choose which kernels are shown, and how they are grouped."""
    del pair
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = st.segmented_control(
            "Group by", list(GROUPINGS), default="kernel_name", required=True, format_func=GROUPINGS.__getitem__,
            key="by", bind="query-params",
            help="Kernels are added up over hosts, devices and what is not named. A launch is one kernel of one op "
            "with one block, grid, number of registers and shared memory.",
        )  # fmt: skip
        text = st.text_input(
            "Filter", key="filter", bind="query-params", placeholder="words in kernel or op", width=300,
            icon=":material/filter_alt:", help="All words must be in the names of kernel and op; case does not matter",
        )  # fmt: skip
    return Choice(by, text or "")


def rows_of(pair: Pair, choice: Choice) -> pd.DataFrame:
    """The rows of chart and table: groups of kernels or single launches that contain the words of the filter."""
    rows = every_row(pair, choice.by)
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
    return _readings(pair.key, pair)


@st.cache_data(max_entries=16, show_spinner=False)
def _readings(key: tuple[Any, ...], _pair: Pair) -> dict[str, str]:
    del key
    diff = _pair.diff("kernel_stats")
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
    """The largest changes among the rows, in time or launches."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("What changed", width="content")
        of = st.segmented_control(
            "What changed", list(QUANTITIES), default="time", required=True, key="movers", bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
    metric, quantity = QUANTITIES[of]
    changes = cached(pair, ("movers", choice, of), lambda: largest_changes(rows, n=MOVERS, metric=metric))
    if changes.empty:
        st.info(f"Nothing among these rows changed its {quantity.name}.")
        return
    other = next(name for name, _ in QUANTITIES.values() if name != metric)
    named = _named(changes, choice.by, readings_of(pair))
    named = named.assign(detail=(named["detail"] + " · " + _both_sides(changes, other)).str.removeprefix(" · "))
    if metric == kernel_figures.TIME:
        largest(pair, named, metric, by="name", quantity=quantity, key="movers_chart", on=choice)
        return
    name, per = metric_in(changes, metric), pair.comparison.per
    draw(pair, "movers_chart", lambda: ops.movers(named, name, per=per, by="name", quantity=quantity), (of, choice))


def _named(rows: pd.DataFrame, by: By, readings: dict[str, str]) -> pd.DataFrame:
    """The rows with `name` (in full), `label` (short) and `detail` (what else distinguishes them)."""
    op = rows["op_name"].replace("", NO_OP) if "op_name" in rows else pd.Series("", rows.index, dtype="str")
    if by == "op_name":
        return rows.assign(name=op, label=style.shorten_distinct(op.tolist(), ops.MOVER_LENGTH), detail="")
    label, detail = rows["kernel_name"].map(readings), op
    if by == "launch":
        detail = op + " · block " + rows["block_dim"] + " · grid " + rows["grid_dim"]
    if by != "kernel_name":
        begins = label.where(label.str.len() <= HALF_A_LABEL, label.str.slice(0, HALF_A_LABEL - 1) + "…")
        label = _numbered(begins + " · " + pd.Series(style.shorten_distinct(op.tolist(), HALF_A_LABEL), op.index))
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
    """How the kernel time of both sides is distributed: by kernel, by op, and by use of tensor cores."""
    st.subheader("Where the time goes")
    groupings: tuple[KernelGrouping, ...] = ("kernel_name", "op_name")
    for place, key in zip(side_by_side(len(groupings)), groupings, strict=True):
        with place:
            draw(pair, f"shares_{key}", partial(_shares, pair, key))
    st.subheader("Tensor cores")
    use = kernel_figures.tensor_core_use(pair.diff("kernel_stats"))
    if not use[["share_baseline", "share_candidate"]].iloc[:2].to_numpy().any():
        st.info("No kernel of either run uses tensor cores, and no op that launched one could make use of them.")
        return
    draw(pair, "tensor_cores", lambda: kernels.tensor_core_use(use, pair.sides))
    st.caption(
        "Whether a kernel uses tensor cores (AMD: matrix cores) is judged by its name, since no profile tells it. "
        "Eligible are ops that multiply matrices or convolve: in 32 bits they need TF32 or mixed precision for it."
    )


def _shares(pair: Pair, key: KernelGrouping) -> Any:
    readings = readings_of(pair)
    groups = every_row(pair, key).replace({key: {"": NO_OP}})
    shares = time_shares(groups, key, metric=kernel_figures.TIME)
    shares["label"] = [readings.get(name, name) for name in shares["group"]]
    return kernels.kernel_time_shares(shares, pair.sides, by=GROUPINGS[key])


def coverage(pair: Pair) -> None:
    """Show the share of the time that is matched, launch by launch."""
    shares = pair.comparison.coverage("kernel_stats")
    row = shares[shares["candidate"] == pair.candidate.id].iloc[0]
    if row["matched_share"] == row["matched_share"]:
        st.caption(
            f"{format_percent(row['matched_share'])} of both runs' kernel time is in launches that have a counterpart, "
            f"{format_percent(row['exact_share'])} with the same kernel, op, block and grid."
        )
