"""The parts of the Hosts page: the slowest host, heat maps of steps × hosts, and the parts of each host's step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import pandas as pd
import streamlit as st

from tfcompare import schema
from tfcompare.charts import hosts as charts
from tfcompare.charts.pair import Pair
from tfcompare.charts.style import Side, letter
from tfcompare.markdown import as_code, as_markdown
from tfcompare.run import Run
from tfcompare.tools import hosts
from tfcompare.tools.host_clocks import MOST_HOSTS, Clocks, clocks
from tfcompare.tools.host_words import verdict_sentence
from tfcompare.tools.hosts import By, PairedSteps
from tfcompare.ui.frame import applicable, sidebar, state
from tfcompare.ui.frame.selection import Selection
from tfcompare.ui.frame.sidebar import HOME
from tfcompare.ui.widgets.blocks import show_facts
from tfcompare.ui.widgets.figures import cached, draw
from tfcompare.ui.widgets.links import show_link
from tfcompare.ui.widgets.side_by_side import side_by_side
from tfcompare.ui.widgets.table_page import TablePage
from tfcompare.units import format_time_us
from tfcompare.views import hosts as view
from tfcompare.views import links
from tfcompare.views.links import Moment

LINKED_PAGES = {
    "Overview": "pages/1_Overview.py",
    "Op stats": "pages/2_Op_stats.py",
    "Kernel stats": "pages/3_Kernel_stats.py",
    "Memory": "pages/4_Memory.py",
    "Input pipeline": "pages/5_Input_pipeline.py",
    "tf.data": "pages/6_tf_data.py",
}
_PLURALS: dict[By, str] = {"host": "hosts", "device": "devices"}
_LABELS = {column.name: column.label for column in schema.HOSTS.columns}


@dataclass(frozen=True)
class Shown:
    """What the page shows: the steps of hosts or of devices, and the metric of the heat maps."""

    by: By
    metric: str


def groupings(pair: Pair) -> tuple[By, ...]:
    """What the runs can be compared by: `host` and `device`, where either run has several with steps."""
    possible = cached(pair, "groupings", lambda: [hosts.groupings(run) for _, run in pair.shown])
    return tuple(by for by in _PLURALS if any(by in found for found in possible))


def stop_without_hosts(pair: Pair, selection: Selection, possible: tuple[By, ...]) -> None:
    """Say so and stop the page if neither run has several hosts or devices with steps."""
    if possible:
        return
    names = " and ".join(as_code(run.name) for _, run in pair.shown)
    st.info(
        f"{names} {'has' if pair.is_single else 'have'} no steps on more than one host or device, so there is nothing "
        "to compare between hosts. Capture all workers of a program into one run: on the Capture page, or with several "
        "addresses in `tf.profiler.experimental.client.trace`."
    )
    sidebar.link(HOME, "Choose other runs", selection, icon=":material/home:")
    st.stop()


def headline(pair: Pair, possible: tuple[By, ...]) -> None:
    """Who is slowest, why, and whether it was so before; how hosts are paired; which hosts are left out."""
    by = possible[0]
    slow = cached(pair, ("slowest", by), lambda: [hosts.slowest_host(run, by) for run in pair.runs])
    sentence = verdict_sentence(slow[1], None if _same(pair) else slow[0], alone=_same(pair))
    if not sentence:
        alone = verdict_sentence(slow[0], None, alone=True)
        of_baseline = f" {letter(0)}: {alone}" if alone and not _same(pair) else ""
        sentence = f"{_name(pair, pair.candidate)} has fewer than two {_PLURALS[by]} with common steps.{of_baseline}"
    st.markdown(f"### {sentence}", help=_HOW_DECIDED)
    if notes := cached(pair, ("notes", by), partial(_notes, pair, by)):
        st.caption(notes)


def _notes(pair: Pair, by: By) -> str:
    """How hosts are paired, and which have no steps."""
    notes = [] if _same(pair) else [_steps(pair, by).pairing.sentence(_PLURALS[by])]
    for run in dict.fromkeys(pair.runs):
        if missing := hosts.without_steps(run):
            names = ", ".join(map(as_code, missing[:5])) + (" and more" if len(missing) > 5 else "")
            notes.append(f"Without steps, and so left out of {_name(pair, run)}: {names}.")
    return " ".join(notes)


def _steps(pair: Pair, by: By) -> PairedSteps:
    return cached(pair, ("steps", by), lambda: hosts.paired_steps(*pair.runs, by))


_HOW_DECIDED = (
    "In synchronous training all hosts' steps end together, because the others wait for the slowest in a collective. "
    "The slowest host is the one with the longest busy time: the step without its time in collectives. It stands out "
    "if that is significantly more than the median of the others, by at least 5 % and in three quarters of the steps."
)


def controls(possible: tuple[By, ...]) -> Shown:
    """The widgets that choose what is compared, and which time."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by: By = possible[0]
        if len(possible) > 1:
            by = st.segmented_control(
                "Compare", list(possible), default=by, required=True, format_func=_PLURALS.__getitem__, key="by",
                bind="query-params",
            )  # fmt: skip
        metric = st.selectbox(
            "Show", list(hosts.METRICS), index=hosts.METRICS.index("busy_us"), format_func=_LABELS.__getitem__,
            key="metric", bind="query-params", width=280, help="Busy time is the step without its time in collectives",
        )  # fmt: skip
    return Shown(by, metric)


def heat_maps(pair: Pair, shown: Shown) -> list[str]:
    """Steps × hosts of both sides on one colour scale, and the difference; returns the hosts, the slowest first."""
    steps = _steps(pair, shown.by)
    matrices = cached(pair, ("matrices", shown), lambda: steps.matrices(shown.metric))[: 1 if pair.is_single else 3]
    names = cached(pair, ("order", shown.by), lambda: steps.by_skew)
    filled = [matrix for matrix in matrices[:2] if matrix.size]
    if not filled:
        st.info(f"The {_PLURALS[shown.by]} have no step in common, so there is nothing to draw.")
        return names
    if all(matrix.shape[1] < 2 for matrix in filled):
        show_facts(view.busy_times(pair, shown.by), key="busy_times")
        return names
    limits = charts.value_range(filled)
    st.subheader(f"{_LABELS[shown.metric]} of each step")
    titles = ["Run"] if pair.is_single else [f"{letter(0)} (baseline)", f"{letter(pair.position)} (candidate)"]
    places = side_by_side(len(matrices))
    for place, title, matrix in zip(places, titles, matrices, strict=False):
        with place:
            if not matrix.size:
                st.info(f"{title} has no {_PLURALS[shown.by]} with common steps.")
                continue
            rows = matrix.loc[[name for name in names if name in matrix.index]]
            draw(pair, f"heat {title}", partial(charts.heat_map, title, _size(rows, shown.by), rows, limits), shown)
    if not pair.is_single and matrices[2].size:
        change = matrices[2].loc[[name for name in names if name in matrices[2].index]]
        title = f"{letter(pair.position)} − {letter(0)}"
        with places[2]:
            draw(pair, "heat change", partial(charts.change_map, title, "blue: less; orange: more", change), shown)
    return names


def _size(rows: pd.DataFrame, by: By) -> str:
    return f"{len(rows):,} {_PLURALS[by]} × {rows.shape[1]:,} steps, the slowest on top"


def parts(pair: Pair, shown: Shown, names: list[str]) -> None:
    """The parts of each host's average step as bars."""
    st.subheader(f"Where each {shown.by}'s time goes")
    few = names[: charts.MOST_BARS]
    if len(names) > len(few):
        st.caption(f"The {len(few)} slowest of {len(names):,} {_PLURALS[shown.by]}.")
    draw(pair, "host_parts", lambda: charts.host_parts(_part_means(pair, shown.by), few), shown.by)


def _part_means(pair: Pair, by: By) -> list[tuple[Side, pd.DataFrame]]:
    steps = _steps(pair, by)
    rows = (steps.baseline, steps.candidate)
    return [(side, hosts.part_means(of_side)) for (side, _), of_side in zip(pair.shown, rows, strict=False)]


def one_host(pair: Pair) -> None:
    """Links to one host on the other pages, and to its slowest step in the timeline."""
    rows = _steps(pair, "host").candidate
    if rows["name"].nunique() < 2:
        return
    st.subheader("Look at one host")
    order = cached(pair, "by_skew", lambda: hosts.by_skew(hosts.matrix(rows, "busy_us")))
    name = st.selectbox(
        "Host", order, key="one_host", bind="query-params", width=360, help="The slowest comes first"
    )  # fmt: skip
    selection, empty_pages = replace(state.chosen(), host=name), applicable.known(state.chosen())
    with st.container(horizontal=True):
        for label, page in LINKED_PAGES.items() if name in pair.baseline.host_names else ():
            if label not in empty_pages:
                sidebar.link(page, label, selection)
        step = _slowest_step(rows[rows["name"] == name])
        moment = Moment(0 if pair.is_single else 1, float(step["start_us"]), float(step["duration_us"]))
        show_link(pair, links.to_moment(pair, moment, str(step["host"]), f"Show step {step['step']} in timeline"))
        _link_beside(pair, rows, name, step, order)


def _link_beside(pair: Pair, rows: pd.DataFrame, name: str, step: pd.Series, order: list[str]) -> None:
    """A link to that step of the host beside the median of the others."""
    others = [other for other in order if other != name]
    if not others:
        return
    other = others[len(others) // 2]
    same = rows[(rows["name"] == other) & (rows["place"] == step["place"])]
    if same.empty:
        return
    hosts = str(same["host"].iloc[0]), str(step["host"])
    label = f"Show {as_markdown(hosts[1])} beside {as_markdown(hosts[0])} in timeline"
    show_link(pair, links.to_hosts(pair, pair.candidate, hosts, int(same["step"].iloc[0]), label))


def _slowest_step(rows: pd.DataFrame) -> pd.Series:
    counted = rows[rows["included"].astype(bool)]
    return counted.iloc[int(counted["busy_us"].argmax())]


def on_one_clock(pair: Pair) -> None:
    """Who reaches the collective last, with the offsets of the hosts' clocks and their errors."""
    found = [(letter(i), run, cached(pair, ("clocks", run.id), partial(clocks, run))) for i, (_, run) in _sides(pair)]
    shown = [(name, run, one) for name, run, one in found if one is not None]
    if not shown:
        return
    st.subheader(
        "Who reaches the collective last",
        help="A collective ends on all hosts at nearly the same time. That gives the offset between their profiles; "
        "how much single steps scatter is its error. Hosts that arrive closer together than the error have no order.",
    )
    for name, run, one in shown:
        st.markdown(f"{'' if pair.is_single else f'**{name}:** '}{_last_sentence(one)}")
        if len(run.host_names) > MOST_HOSTS:
            st.caption(f"Of the {MOST_HOSTS} slowest of {len(run.host_names):,} hosts.")
        with st.expander(f"Offsets of the profiles{'' if pair.is_single else f' of {name}'}"):
            table = one.offsets.assign(last=one.offsets["host"].map(one.last))
            times = {column: table[column].map(format_time_us) for column in ("offset_us", "error_us")}
            labels = {"host": "Host", "offset_us": "Offset", "error_us": "Error (95 %)", "last": "Last in steps"}
            st.dataframe(table.assign(**times).rename(columns=labels), hide_index=True, width="content")


def _sides(pair: Pair) -> list[tuple[int, tuple[object, Run]]]:
    positions = [0] if pair.is_single else [0, pair.position]
    return list(zip(positions, pair.shown, strict=True))


def _last_sentence(one: Clocks) -> str:
    counts = sorted(((count, host) for host, count in one.last.items() if count), reverse=True)
    parts = [f"{as_code(host)} in {count} of {one.steps} steps" for count, host in counts[:3]]
    if one.undecided:
        which = "all" if one.undecided == one.steps else str(one.undecided)
        parts.append(f"unknown in {which} of {one.steps} steps, as hosts arrive closer together than the clock error")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _columns(pair: Pair, rows: pd.DataFrame, shown: Shown, every: bool) -> list[str]:
    """The table's columns: times of both sides for what is shown, or all."""
    sides = ("baseline",) if pair.is_single else ("baseline", "candidate")
    several = rows["device"].nunique() > 1 or every
    names = ["host", *(["device"] if several else []), "step"]
    metrics = dict.fromkeys(("busy_us", "busy_skew_us", "collectives_us", "duration_us", shown.metric))
    if every:
        metrics = dict.fromkeys(c.name for c in schema.HOSTS.metrics if c.is_number)
    for metric in metrics:
        names += [f"{metric}_{role}" for role in (*sides, *([] if pair.is_single else ["delta"]))]
        names += [f"{metric}_ratio"] if every and not pair.is_single else []
    return [*names, *(["status", "match", "step_candidate", "host_candidate"] if every and not pair.is_single else [])]


def _rows(pair: Pair, shown: Shown) -> pd.DataFrame:
    """The diff, largest skew of the candidate first."""
    del shown
    return cached(pair, "rows", partial(_by_skew, pair))


def _by_skew(pair: Pair) -> pd.DataFrame:
    rows = pair.diff("hosts")
    skew = rows["busy_skew_us_candidate"].fillna(rows["busy_skew_us_baseline"]).astype("float64")
    return rows.loc[skew.sort_values(ascending=False, kind="stable").index].reset_index(drop=True)


def _name(pair: Pair, run: Run) -> str:
    return as_code(run.name) if pair.is_single else (letter(0) if run is pair.baseline else letter(pair.position))


def _same(pair: Pair) -> bool:
    return pair.is_single or pair.is_identical


TABLE: TablePage[Shown] = TablePage(
    table=schema.HOSTS,
    title=lambda _shown: "Every step of every host",
    rows=_rows,
    columns=_columns,
)
