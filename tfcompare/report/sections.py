"""The parts of a report on a pair of runs that unfold: steps, ops, kernels, memory, input, hosts, XLA programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from tfcompare import schema
from tfcompare.charts.by_name import DRAWN_CANDIDATES, figure_of
from tfcompare.charts.pair import Pair, has_steps
from tfcompare.charts.timeline.data import data_of, state_of
from tfcompare.compare.aggregate import metric_in, without_idle
from tfcompare.compare.straggler import attributed_hosts
from tfcompare.markdown import as_code
from tfcompare.tools import input_bound, xla
from tfcompare.tools.columns import of_one_run, shown, shown_alone
from tfcompare.tools.host_words import verdict_sentence
from tfcompare.tools.hosts import groupings, slowest_host
from tfcompare.tools.kernel_stats import TIME, kernel_sentence, sentence_alone
from tfcompare.tools.memory import NO_OP
from tfcompare.tools.op_figures import outside_of_steps
from tfcompare.tools.timeline import words
from tfcompare.tools.timeline.aligned import align
from tfcompare.tools.timeline.drawing import Look
from tfcompare.tools.timeline.losses import losses
from tfcompare.tools.timeline.opened import open_timelines
from tfcompare.views.blocks import Block, Chart, Section, Table, Text, Timeline
from tfcompare.views.overview import advice

MOST_ROWS = 1_000
"""Rows of a table in a report; a note says how many are left out, and `tfcompare diff --format csv` has them all."""
TIMELINE_PIXELS = 2_400
CHANGE = ("baseline", "candidate", "delta", "ratio")
_PLACES = ("host", "memory_id")
"""The keys that tell rows of the same name apart; shown where they differ."""

CHARTS: dict[str, tuple[str, ...]] = {
    "Steps": ("step_times", "step_distribution", "step_parts_baseline", "step_parts_candidate"),
    "Ops": ("op_changes", "scopes_device", "scopes_host"),
    "Kernels": ("kernel_changes", "tensor_cores"),
    "XLA programs": ("xla_time", "roofline", "xla_memory"),
    "Memory": ("memory_step", "memory_peak_changes", "memory_peak"),
    "Input": ("input_wait", "input_host", "tf_data_baseline", "tf_data_candidate"),
    "Hosts": ("hosts_baseline", "hosts_candidate", "hosts_change", "host_parts"),
}
"""The charts of each section."""
OF_ALL_RUNS = ("step_times", "step_distribution")
"""Charts of all runs: with several candidates they are above, and here only for a candidate that is not drawn there."""


def sections(pair: Pair) -> Iterator[Section]:
    """The sections that the runs have something for."""
    yield Section("What to try next", list(advice(pair)), is_open=True)
    if timeline := _timeline(pair):
        yield Section("Typical step", timeline, is_open=True)
    for title, names in CHARTS.items():
        blocks = [*_sentences(pair, title), *_charts(pair, names), *_tables(pair, title)]
        if any(isinstance(block, Chart | Table) for block in blocks):
            yield Section(title, blocks)


def _charts(pair: Pair, names: Sequence[str]) -> Iterator[Block]:
    is_above = len(pair.comparison.candidates) > 1 and pair.position <= DRAWN_CANDIDATES
    for name in names:
        if is_above and name in OF_ALL_RUNS:
            continue
        if (figure := figure_of(pair, name)) is not None:
            yield Chart.of(name, figure)


def _sentences(pair: Pair, title: str) -> Iterator[Block]:
    """What the section's page says first."""
    if title == "Kernels" and len(diff := pair.diff("kernel_stats")):
        yield Text(sentence_alone(diff) if pair.is_single else kernel_sentence(diff))
        yield from map(Text, filter(None, [outside_of_steps(pair.comparison, pair.candidate, "kernel_stats")]))
    elif title == "Ops":
        yield from map(Text, filter(None, [outside_of_steps(pair.comparison, pair.candidate)]))
    elif title == "Input":
        ours, theirs = (input_bound.wait_of(run, pair.host_of(run)) for run in pair.runs)
        if pair.is_single:
            yield Text(f"{input_bound.finding(ours).capitalize()}.")
        elif ours.is_known or theirs.is_known:
            letters = pair.letters[0], pair.letters[1]
            yield Text(input_bound.headline(ours, theirs, letters, identical=pair.is_identical))
    elif title == "Hosts":
        yield from _slowest(pair)
    elif title == "XLA programs" and (found := pair.program) is not None:
        name, rows = found
        of_runs = pair.baseline.name, pair.candidate.name
        yield Text(xla.sentence_alone(rows, name) if pair.is_single else xla.sentence(rows, name, of_runs))


def _slowest(pair: Pair) -> Iterator[Block]:
    by = next((by for by in ("host", "device") if any(by in groupings(run) for run in pair.runs)), None)
    if by is None:
        return
    slow = [slowest_host(run, by) for run in pair.runs]  # type: ignore[arg-type]
    is_alone = pair.is_single or pair.is_identical
    if sentence := verdict_sentence(slow[1], None if is_alone else slow[0], alone=is_alone):
        yield Text(sentence)


def _tables(pair: Pair, title: str) -> Iterator[Block]:
    """The section's tables, largest change first."""
    if title == "Ops":
        rows = without_idle(pair.diff())
        names = ["op_name", "op_type", "host_or_device", *_sides(rows, "self_time_us"), "verdict"]
        names += [f"{metric_in(rows, 'occurrences')}_{role}" for role in CHANGE[:2]]
        yield from _table(pair, schema.OP_STATS, "Every op", rows, names)
    elif title == "Kernels":
        if len(pair.diff("kernel_stats")):
            rows = pair.kernels
            names = ["kernel_name", *_sides(rows, TIME), "verdict"]
            names += [f"{metric_in(rows, 'occurrences')}_{role}" for role in CHANGE[:2]]
            yield from _table(pair, schema.KERNEL_STATS, "Every kernel", rows, names)
    elif title == "Memory":
        rows = pair.diff("memory_summary")
        names = ["host", "memory_id", *(f"peak_bytes_{role}" for role in CHANGE)]
        yield from _table(pair, schema.MEMORY_SUMMARY, "All memories", rows, names)
        rows = pair.diff("memory_peak")
        rows = rows.assign(op_name=rows["op_name"].replace("", NO_OP))
        names = ["op_name", "region_type", "data_type", "shape", *(f"allocation_bytes_{role}" for role in CHANGE)]
        yield from _table(pair, schema.MEMORY_PEAK, "Live at the peak", rows, names)
    elif title == "Input":
        rows = pair.diff("input_pipeline")
        names = ["op_name", "category", *_sides(rows, "self_time_us")]
        yield from _table(pair, schema.INPUT_PIPELINE, "Input ops", rows, names)
    elif title == "XLA programs" and (found := pair.program) is not None:
        rows = found[1]
        names = ["hlo_op", "category", *(f"execution_time_us_{role}" for role in CHANGE)]
        names += [f"{name}_{role}" for name in ("flops_per_s", "bound_by") for role in CHANGE[:2]]
        yield from _table(pair, schema.HLO_OPS, f"Instructions of {found[0]}", rows, names)


def _sides(rows: pd.DataFrame, metric: str) -> list[str]:
    return [f"{metric_in(rows, metric)}_{role}" for role in CHANGE]


def _table(pair: Pair, table: schema.Table, title: str, rows: pd.DataFrame, names: list[str]) -> Iterator[Table]:
    if rows.empty:
        return
    places = [key for key in _PLACES if key in rows and key not in names and rows[key].nunique() > 1]
    names = [name for name in (names[0], *places, *names[1:]) if not _is_blank(rows[name])]
    kept = rows.head(MOST_ROWS)
    columns = [shown_alone(name, table) for name in of_one_run(names)] if pair.is_single else [
        shown(name, table) for name in names
    ]  # fmt: skip
    if pair.is_single:
        largest = next(column.name for column in columns if column.is_cost)
        kept = rows.sort_values(largest, ascending=False, kind="stable").head(MOST_ROWS)
    which = "smallest" if pair.is_single else "rows that changed least"
    left_out = len(rows) - len(kept)
    note = f"The {left_out:,} {which} are left out." if left_out else ""
    yield Table(table.name, title, kept.reset_index(drop=True), columns, note)


def _is_blank(cells: pd.Series) -> bool:
    """Whether no cell of a column of texts has any text."""
    return cells.dtype == "str" and not cells.fillna("").str.len().any()


def _timeline(pair: Pair) -> list[Block]:
    """The typical step of both runs, or of one, on one axis."""
    if not all(has_steps(run) for _, run in pair.shown):
        return []
    host, theirs = attributed_hosts(pair.comparison, pair.candidate)
    timelines = open_timelines(pair.comparison, pair.candidate, host)
    if not timelines.has_steps:
        return []
    aligned = align(timelines)
    places = losses(aligned)
    look = Look(width_px=TIMELINE_PIXELS)
    if pair.is_single:
        text = words.alone(aligned)
    else:
        text = f"{words.lengths(aligned, pair.letters)} {words.where(aligned, places, pair.letters)}"
    if len(pair.candidate.host_names) > 1:
        text = f"On {as_code(theirs)}: {text[:1].lower()}{text[1:]}"
    data = data_of(
        aligned, look, letters=pair.letters, marks=pair.letters,
        colours=[side.colour for side, _ in pair.shown], token="typical step",
        jumps=words.jumps(aligned, look, places),
    )  # fmt: skip
    return [Text(text), Timeline(data, state_of(look))]
