"""A quantity has one value wherever it is shown: on pages, in dialogs, commands, JSON, CSV, reports and SQL."""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import pandas as pd
import pytest

from tests.frames.tables import run_of
from tests.frames.test_hlo_ops import gpu, kernel, metadata
from tests.profiles import ROOT, compared_runs
from tests.views.flat import flat, listed, of_kind, words
from tests.xspace_builder import event, space
from tfcompare.compare.attribution import OTHER_HOSTS, attributed_hosts
from tfcompare.compare.check.conditions import check, parse_condition
from tfcompare.compare.diff import outcome
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pairs_of
from tfcompare.compare.per_device import computing_devices
from tfcompare.compare.stats.verdict import wording
from tfcompare.comparison import compare
from tfcompare.query.diff_tables import DiffTables
from tfcompare.query.tables import RunTables
from tfcompare.render.as_json import Style, block_values
from tfcompare.render.report import report
from tfcompare.render.shown import Shown
from tfcompare.run import Run
from tfcompare.schema import DEVICE_BUSY_PARTS, HOSTS, MEMORY_SUMMARY, SIDES, STEP_PARTS
from tfcompare.sources.logdir import find_runs
from tfcompare.ui.frame.selection import Selection
from tfcompare.ui.pages import home as home_page
from tfcompare.ui.pages.home_programs import rows_of
from tfcompare.ui.pages.home_runs import changes
from tfcompare.ui.widgets.renderer import everything
from tfcompare.units import format_bytes, format_ms, format_percent, format_time_us
from tfcompare.views import answer
from tfcompare.views.advice import facts_of
from tfcompare.views.advice.device_rules import MOST_HELD
from tfcompare.views.blocks import Cards, Chart, Facts, Table, Verdict, figure_id
from tfcompare.views.candidates.figures import runs_table
from tfcompare.views.caveats import environment
from tfcompare.views.columns import as_shown
from tfcompare.views.csv_files import spreadsheet_csv, zipped_diffs
from tfcompare.views.memory import view as memory
from tfcompare.views.ops import op
from tfcompare.views.ops import view as op_stats
from tfcompare.views.options import options_with
from tfcompare.views.run_listing import listing, summary_of
from tfcompare.views.series.figures import measured, parse_metric
from tfcompare.views.steps import attribution as step_attribution
from tfcompare.views.steps import view as overview
from tfcompare.views.steps.attribution import attribution_of
from tfcompare.views.steps.dashboard import PEAK_MEMORY, PLANNED_MEMORY, dashboard
from tfcompare.views.steps.headline import short_change
from tfcompare.views.xla import figures as xla
from tfcompare.views.xla import memory as xla_memory
from tfcompare.views.xla import view as xla_page

Both = tuple[float, float]
PAIRS = {
    "cpu": ("filters_512_128", "filters_16_8"),
    "tf_gpu": ("gpu_filters_512_128", "gpu_filters_16_8"),
    "gpu": ("h100_512_128", "h100_16_8"),
    "xla": ("jax_filters_128_32", "jax_filters_16_8"),
    "workers": ("workers_balanced", "workers_slow_input"),
}


@dataclass(frozen=True)
class Surfaces:
    """What pages, commands, files and queries say of a pair, each read once."""

    pair: Pair

    @property
    def runs(self) -> tuple[Run, Run]:
        return self.pair.runs

    @cached_property
    def command(self) -> dict[str, dict[str, Any]]:
        """The findings of `view overview --format json` by their ids."""
        (found,) = json.loads(Shown.of(self.pair.among, "overview", top=0).to("json"))["candidates"]
        return {one["id"]: one for one in findings_in(found["blocks"])}

    @cached_property
    def report(self) -> dict[str, Any]:
        """The diffs in `report --format json` by their names, and its findings by their ids."""
        (found,) = json.loads(report(self.pair.among, "json"))["candidates"]
        return {**found["tables"], **{one["id"]: one for one in findings_in(found["blocks"])}}

    def reported(self, table: str) -> pd.DataFrame:
        found = self.report[table]
        return pd.DataFrame(found["rows"], columns=[column["name"] for column in found["columns"]])

    @cached_property
    def cards(self) -> dict[str, Both]:
        """The key figures of the Overview."""
        return figures_of(of_kind(answer.figures(self.pair), Cards))

    @cached_property
    def sql(self) -> RunTables:
        return RunTables.of(list(self.runs), DiffTables(self.pair.among))

    def queried(self, table: str) -> pd.DataFrame:
        return self.sql.table(table).to_pandas()

    @cached_property
    def archive(self) -> zipfile.ZipFile:
        """The file of all diffs."""
        return zipfile.ZipFile(io.BytesIO(zipped_diffs(self.pair.among)))

    def in_archive(self, table: str) -> pd.DataFrame:
        return pd.read_csv(io.BytesIO(self.archive.read(f"{table}.csv")), keep_default_na=False)

    @cached_property
    def alone(self) -> tuple[Pair, Pair]:
        """Each run by itself."""
        ours, theirs = (pairs_of(compare(run, run))[0] for run in self.runs)
        return ours, theirs

    @cached_property
    def ops(self) -> Table:
        """The table of ops on its page."""
        found, *_ = of_kind(listed(op_stats.VIEW, self.pair), Table)
        return found

    @cached_property
    def file(self) -> pd.DataFrame:
        """The file of all ops that the page offers."""
        text = spreadsheet_csv(everything(self.pair, self.ops))
        return pd.read_csv(io.BytesIO(text), keep_default_na=False, na_values=[""])

    @cached_property
    def op(self) -> pd.Series:
        """The op of both runs that takes longest in the baseline, where most ops run, as its page has it."""
        rows = self.ops.rows[self.ops.rows["status"] == "matched"]
        rows = rows[rows["host_or_device"] == rows["host_or_device"].min()]  # the device, if there is one
        return rows.sort_values("self_time_us_baseline").iloc[-1]

    def of_op(self, rows: pd.DataFrame) -> pd.Series:
        """The row of that op in another table of ops."""
        same = (rows["op_name"] == self.op["op_name"]) & (rows["op_type"] == self.op["op_type"])
        (row,) = rows[same & (rows["host_or_device"] == self.op["host_or_device"])].iloc
        return row

    @cached_property
    def dialog(self) -> dict[str, list[str]]:
        """The numbers in the dialog of that op: both sides and the change."""
        (facts,) = of_kind(flat(op.details_of_row(self.pair, self.op).blocks), Facts)[:1]
        return {label: list(texts) for label, *texts in facts.rows}

    @cached_property
    def named_dialog(self) -> dict[str, list[str]]:
        """As `dialog`, of that which opens by the name of the op, as on the Overview."""
        found = of_kind(flat(op.details_by_name(self.pair, str(self.op["op_name"])).blocks), Facts)
        tables = [{label: list(texts) for label, *texts in facts.rows} for facts in found]
        (one,) = (rows for rows in tables if rows == self.dialog)
        return one


@cache
def surfaces(name: str) -> Surfaces:
    return Surfaces(pairs_of(compared_runs(*PAIRS[name]))[0])


@pytest.fixture(params=PAIRS)
def of(request: pytest.FixtureRequest) -> Surfaces:
    return surfaces(request.param)


def findings_in(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    inner = [one for block in blocks for one in findings_in(block.get("blocks", []))]
    return [one for block in blocks for one in block.get("findings", [])] + inner


def figures_of(cards: list[Cards]) -> dict[str, Both]:
    return {one.label: (one.baseline, one.candidate) for block in cards for one in block.figures}


def both(one: Any, column: str) -> Both:
    return float(one[f"{column}_baseline"]), float(one[f"{column}_candidate"])


def side_by_side(make: Callable[[Run], float], runs: tuple[Run, Run]) -> Both:
    return make(runs[0]), make(runs[1])


def agree(found: dict[str, Both], *, rel: float = 1e-9) -> Both:
    """The value of the first surface, which all others have, too."""
    first = next(iter(found.values()))
    assert not any(map(math.isnan, first))
    others = {name: values for name, values in found.items() if values != pytest.approx(first, rel=rel)}
    assert not others, f"others have {first}"
    return first


def times_in(table: Facts, row: str, columns: slice) -> list[str]:
    """The cells of the row of that name."""
    (cells,) = (list(cells) for cells in table.rows if cells[0] == row)
    return cells[columns]


def test_the_step_time(of: Surfaces, monkeypatch: pytest.MonkeyPatch) -> None:
    pair, runs = of.pair, of.runs
    comparison, candidate = pair.among, pair.candidate
    verdict = answer.verdict(pair)
    (finding,) = verdict.findings
    found = [found for run in runs for found in find_runs(run.path)]
    home = listing(found, {one.id: run for one, run in zip(found, runs, strict=True)})
    measured_time = check(comparison, [parse_condition("step_time>+5%")]).found[0].measured
    parts = attribution_of(pair).parts
    waterfall = attribution_of(pair).waterfall
    assert waterfall is not None
    info = of.queried("run_info").set_index("run")["step_time_ms_mean"]
    ranked = runs_table(comparison)["step_time_us_mean"]
    known = {
        "headline": (finding.baseline, finding.candidate),
        "card": of.cards["Step time"],
        "parts": (parts["mean_us_baseline"].sum(), parts["mean_us_candidate"].sum()),
        "chart": (waterfall.baseline_us, waterfall.candidate_us),
        "a run alone": tuple(answer.verdict(one).findings[0].candidate for one in of.alone),
        "command": (of.command["step_time"]["baseline"], of.command["step_time"]["candidate"]),
        "report": tuple(of.report["figure:step_time"][side] for side in SIDES),
        "Home's table": tuple(home["step_time_ms_mean"] * 1e3),
        "Home's table, later": side_by_side(lambda run: (summary_of(run).step_time_ms_mean or math.nan) * 1e3, runs),
        "SQL": tuple(info[[run.id for run in runs]] * 1e3),
        "CSV": tuple(1e3 * ms for ms in both(of.in_archive("run_info").iloc[0], "step_time_ms_mean")),
        "check": (measured_time.baseline, measured_time.candidate),
        "series": side_by_side(lambda run: measured(run, parse_metric("step_time")).value, runs),
        "ranking": tuple(ranked),
    }
    before, after = agree(known)
    texts = format_time_us(before), format_time_us(after)
    of_both = f"{texts[1]} vs {texts[0]} per step"
    assert of_both in verdict.headline and of_both in answer.headline(pair, whole=True)
    charts = {chart.name: chart for chart in of_kind(listed(overview.VIEW, pair, steps_as="all"), Chart)}
    steps = charts["step_times"].facts
    assert steps is not None
    assert [row[2] for row in steps.rows][: len(texts)] == list(texts)
    assert " → ".join(texts) in charts["waterfall"].draw().layout.title.text
    assert charts["waterfall"].facts is not None
    assert times_in(charts["waterfall"].facts, "Total", slice(1, 3)) == list(texts)
    shown = rows_of([(one,) for one in found], Selection(), set())
    assert changes(home, shown, [found[0].id], before / 1e3) == ["baseline", short_change(before, after)]
    said: list[str] = []
    for name in ("markdown", "caption"):
        monkeypatch.setattr(home_page.st, name, said.append)
    home_page._one_run(runs[0])
    assert f"{format_ms(before / 1e3)} per step" in said[0]
    assert candidate.info.step_time_ms_mean * 1e3 == pytest.approx(after)


def test_the_readme_has_the_step_times_of_the_page() -> None:
    before, after = map(format_time_us, surfaces("cpu").cards["Step time"])
    assert f"{after} vs {before} per step" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_share_of_an_op(of: Surfaces) -> None:
    of_page = both(of.op, "self_share")
    shares = op_stats._shares_on(of.pair, str(of.op["host_or_device"]), idle=False)["op_name"].set_index("group")
    (table,) = block_values([replace(of.ops, names=of.ops.every)], Style(len(of.ops.rows)))
    of_command = of.of_op(pd.DataFrame(table["rows"], columns=[column["name"] for column in table["columns"]]))
    known = {"page": of_page, "file": both(of.of_op(of.file), "self_share"), "command": both(of_command, "self_share")}
    if (of.ops.rows["op_name"] == of.op["op_name"]).sum() == 1:
        known["chart"] = both(shares.loc[str(of.op["op_name"])], "share")
    ours, theirs = agree(known)
    assert of.dialog["Share of self time"][:2] == [format_percent(ours), format_percent(theirs)]
    assert of.named_dialog == of.dialog
    alone = of.alone[0]
    (longest,) = [block for block in answer.changes(alone, 0) if isinstance(block, Facts)]
    name = str(of.op["op_name"])
    (row,) = [cells for cells in longest.rows if list(cells[:2]) == [name, str(of.op["op_type"])]]
    assert row[3] == format_percent(ours)


def test_the_time_of_an_op(of: Surfaces, tfcompare: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"op:{of.op['host_or_device']}:{of.op['op_type']}:{of.op['op_name']}"
    column = "self_time_us_per_step"
    known = {
        "page": both(of.op, "self_time_us"),
        "Overview": (of.command[name]["baseline"], of.command[name]["candidate"]),
        "file": both(of.of_op(of.file), column),
        "archive": both(of.of_op(of.in_archive("op_stats")), column),
        "SQL": both(of.of_op(of.queried("op_stats_diff")), column),
        "report": both(of.of_op(of.reported("op_stats")), column),
        "diff": both(of.of_op(diff_command(of, tfcompare, monkeypatch)), column),
    }
    ours, theirs = agree(known)
    assert of.dialog["Self time per step"][:2] == [format_time_us(ours), format_time_us(theirs)]


def diff_command(of: Surfaces, tfcompare: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """What `diff --table op_stats --format csv` prints."""
    monkeypatch.setattr("tfcompare.commands.diff.answered", lambda *_: of.pair.among)
    status, out, _ = tfcompare("diff", "a", "b", "--table", "op_stats", "--format", "csv")
    assert status == 0
    return pd.DataFrame(csv.DictReader(io.StringIO(out)))


def test_what_an_op_changed_by_part_is_called_wall_time() -> None:
    """In one part and outside of tf.data, it is what the column of that name has."""
    of = surfaces("cpu")
    blocks = listed(op_stats.VIEW, of.pair, part="host_compute_us")
    (chart,) = [one for one in of_kind(blocks, Chart) if one.name == "part_waterfall"]
    assert chart.draw().layout.xaxis.title.text.startswith("Wall time")
    assert [text for text in words(blocks) if text.removeprefix("**").startswith("In the wall time of host compute")]
    moves = step_attribution.within(of.pair, "host_compute_us").waterfall
    assert moves is not None
    first = moves.moves.iloc[0]
    (row,) = of.ops.rows[of.ops.rows["op_name"] == first["name"]].iloc
    delta = row["wall_time_us_candidate"] - row["wall_time_us_baseline"]
    assert delta == pytest.approx(first["delta_us"])


@pytest.mark.parametrize("name", ["cpu", "tf_gpu", "gpu"])
def test_the_peak_memory(name: str) -> None:
    of = surfaces(name)
    pair, runs = of.pair, of.runs
    chosen = memory.chosen(pair, options_with(memory.Options, pair, {}))
    assert chosen is not None
    (of_page,) = [one for one in memory.figures(chosen) if one.label == "Peak in use"]
    assert chosen.memories.has_one_name
    measured_peak = check(pair.among, [parse_condition("peak_memory>+5%")]).found[0].measured
    summary = of.in_archive("memory_summary")
    ranked = runs_table(pair.among)["peak_bytes"]
    live = [run.table("memory_peak").groupby("memory_id")["allocation_bytes"].sum() for run in runs]
    summed = of.queried("memory_summary").groupby("run")["peak_bytes"].max()
    known = {
        "card": of.cards[PEAK_MEMORY],
        "page": (of_page.baseline, of_page.candidate),
        "what is live": (live[0][chosen.memories.memory_id], live[1][chosen.memories.memory_id]),
        "ranking": (ranked[0], ranked[1]),
        "check": (measured_peak.baseline, measured_peak.candidate),
        "series": side_by_side(lambda run: measured(run, parse_metric("peak_memory")).value, runs),
        "CSV": (summary["peak_bytes_baseline"].max(), summary["peak_bytes_candidate"].max()),
        "SQL": (summed[runs[0].id], summed[runs[1].id]),
        "report": tuple(of.report[figure_id(PEAK_MEMORY)][side] for side in SIDES),
    }
    ours, theirs = agree(known)
    assert format_bytes(ours) in memory.headline(chosen) and format_bytes(theirs) in memory.headline(chosen)


def test_other_peaks_say_which_they_are(of: Surfaces) -> None:
    """What was held since the program began, the heap without the stack, and what XLA planned."""
    assert "peak" not in MOST_HELD.label.lower() and "since start" in MOST_HELD.label
    heap = MEMORY_SUMMARY.column("peak_heap_bytes")
    assert heap.label == "Peak heap since start" and "without the stack" in heap.meaning
    for run in of.runs:
        table = run.table("memory_summary")
        assert (table["peak_bytes"] == table["stack_bytes"] + table["heap_bytes"]).all()
        assert (table["peak_heap_bytes"] >= table["heap_bytes"]).all()
        most = MOST_HELD.of(facts_of(run, None))
        if not math.isnan(most):
            assert most in set(table[["peak_bytes", "peak_heap_bytes"]].max(axis=1))
    rows = of.pair.instructions()
    if rows["program_key"].nunique() == 1:
        of_program = xla_memory.buffers(of.pair.diff("hlo_memory"), rows)
        space = xla_memory.peaks(of_program).query("memory_space == 0").iloc[0]
        planned = (float(space["baseline_bytes"]), float(space["candidate_bytes"]))
        assert of.cards.get(PLANNED_MEMORY, planned) == planned
        said = [text for text in words(listed(xla_page.VIEW, of.pair)) if format_bytes(planned[0]) in text]
        assert said and all("as XLA planned it" in text for text in said)


def test_the_number_of_devices(of: Surfaces) -> None:
    for run in of.runs:
        agree_on_devices(run)


def agree_on_devices(run: Run) -> None:
    count = run.info.device_count
    (found,) = listing(find_runs(run.path), {one.id: run for one in find_runs(run.path)})["device"]
    assert found == (f"{count} × {run.info.device_type}" if count > 1 else run.info.device_type)
    facts = {fact.name: fact.values for fact in environment([run.info])}
    assert facts.get("device_count", ("0",)) == (f"{count:,}",)
    assert (run.tables.host_table("idle")["host_or_device"] == "Device").sum() == count
    assert RunTables.of([run]).table("run_info").to_pandas()["device_count"].tolist() == [count]


def test_devices_that_computed_are_told_from_those_that_were_recorded() -> None:
    """One of two GPUs only copied."""
    kernels = [kernel("k", 200 * i, 10, "dot.1") for i in range(4)]
    copying = gpu(event("MemcpyD2D", 0, 5), number=1)
    one_of_two = run_of(space(gpu(*kernels), copying, metadata(jit_f=7)))
    two = run_of(space(gpu(*kernels), gpu(*kernels, number=1), metadata(jit_f=7)))
    assert (computing_devices(one_of_two), one_of_two.info.device_count) == (1, 2)
    (note,) = [note for note in compare(one_of_two, two).notes if "given per device" in note]
    assert f"{one_of_two.name} on 1 of 2 devices, {two.name} on 2 devices." in note
    for run in (one_of_two, two):
        agree_on_devices(run)


def test_how_long_devices_are_busy_is_no_name_of_the_step_without_collectives(of: Surfaces) -> None:
    hosts = attributed_hosts(of.pair)
    for name in ("busy_us", "busy_skew_us"):
        assert "busy" not in HOSTS.column(name).label.lower() and "collectives" in HOSTS.column(name).label
    if "Device busy" not in of.cards:
        assert all(not run.devices for run in of.runs)
        return
    for side, (run, host) in enumerate(zip(of.runs, hosts, strict=True)):
        table = run.table("hosts", host=host)
        counted = table[table["included"].astype(bool)]
        parts = attribution_of(of.pair).parts.set_index("part")[f"mean_us_{SIDES[side]}"]
        on_device = parts[list(DEVICE_BUSY_PARTS)].sum()
        assert of.cards["Device busy"][side] == pytest.approx(on_device)
        assert counted[list(DEVICE_BUSY_PARTS)].sum(axis=1).mean() == pytest.approx(on_device)
        whole = parts.drop(OTHER_HOSTS, errors="ignore")
        assert counted[list(STEP_PARTS)].sum(axis=1).mean() == pytest.approx(whole.sum())


@pytest.mark.parametrize("names", [PAIRS["gpu"], ("h100_store_activations", "h100_recompute_activations")])
def test_the_roofline_efficiency_of_programs_makes_up_that_of_the_steps(names: tuple[str, str]) -> None:
    pair = pairs_of(compared_runs(*names))[0]
    (label,) = {one.label for one in xla.figures(pair.instructions())} & {
        one.label for one in dashboard(pair, attribution_of(pair).parts)
    } - {"FLOP rate", "Bandwidth"}
    cards = figures_of(of_kind(answer.figures(pair), Cards))
    parts = [(xla.figures(rows), rows) for _, rows in pair.instructions().groupby("program_key")]
    for side, role in enumerate(SIDES):
        times = [rows[f"self_time_us_{role}"].sum() for _, rows in parts]
        shares = [(one.baseline, one.candidate)[side] for found, _ in parts for one in found if one.label == label]
        weighed = sum(share * time for share, time in zip(shares, times, strict=True)) / sum(times)
        assert cards[label][side] == pytest.approx(weighed)


def test_an_instruction_of_unknown_cost_hides_the_efficiency_everywhere() -> None:
    pair = pairs_of(compared_runs(*PAIRS["gpu"]))[0]
    rows = pair.instructions().copy()
    longest = rows["self_time_us_baseline"].idxmax()
    rows.loc[longest, "flops_baseline"] = None
    (found,) = [one for one in xla.figures(rows) if one.label == "Roofline efficiency"]
    assert math.isnan(found.baseline) and not math.isnan(found.candidate)


def test_the_verdicts_on_ops(of: Surfaces, tfcompare: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    rows = of.ops.rows
    page = verdicts(as_shown(rows, list(rows)))
    assert page == {
        key: outcome(*row) for key, *row in zip(page, rows["status"], rows["verdict"], rows["evidence"], strict=True)
    }
    known = {
        "archive": of.in_archive("op_stats"),
        "file": of.file,
        "SQL": of.queried("op_stats_diff"),
        "report": of.reported("op_stats"),
        "diff": diff_command(of, tfcompare, monkeypatch),
    }
    for name, found in known.items():
        words_of = verdicts(found)
        assert {key: words_of[key] for key in page} == page, name
    of_overview = {name: one["verdict"] for name, one in of.command.items() if name.startswith("op:")}
    for name, word in of_overview.items():
        assert word in {said for key, said in page.items() if f"op:{':'.join(key[:3])}" == name}
    sentence = next(text for text in words(flat(op.details_of_row(of.pair, of.op).blocks)) if "self time" in text)
    assert f" {outcome(of.op['status'], of.op['verdict'], of.op['evidence'])}**" in sentence


def verdicts(rows: pd.DataFrame) -> dict[tuple[str, ...], str]:
    """The verdict of each row by what identifies it."""
    keys = rows[["host_or_device", "op_type", "op_name", "status"]].astype("str").itertuples(index=False, name=None)
    return dict(zip(keys, rows["verdict"].fillna("").astype("str"), strict=True))


def test_the_verdict_on_the_step(of: Surfaces) -> None:
    word = of.pair.verdict.text
    assert of.command["step_time"]["verdict"] == of.report["step_time"]["verdict"] == word
    block = answer.verdict(of.pair)
    assert isinstance(block, Verdict) and word in block.badge
    ranked = runs_table(of.pair.among).iloc[1]
    assert wording(ranked["verdict"], ranked["evidence"]) == word
