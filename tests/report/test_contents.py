"""A report and the example notebook hold the same answers as the app, in the same words."""

from __future__ import annotations

import re
from functools import cache

import pytest
from nbformat import NotebookNode

from tests.profiles import compared_runs, loaded_run
from tests.report.example_notebook import code_cells, executed, html_of, is_figure, stored
from tests.views.flat import flat, pair_of, shown
from tests.views.golden import FOLDER
from tfcompare.comparison import Comparison, compare
from tfcompare.render.document import Report, without_interaction
from tfcompare.render.report import contents, report, title_of
from tfcompare.views.blocks import Block, Cards, Chart, Code, Facts, Table, Text, Timeline, Verdict
from tfcompare.views.registry import charts, view, views

CPU = ("filters_512_128", "filters_16_8")
SEVERAL = ("filters_16_8", "filters_16_8_again", "filters_16_8_better_input")


@cache
def of_several() -> Comparison:
    return compare(*map(loaded_run, SEVERAL))


@cache
def of_cpu() -> Report:
    return contents(compared_runs(*CPU), command=["tfcompare", "report", "logs/a b"])


@cache
def alone() -> Report:
    return contents(compare(*[loaded_run("filters_16_8")] * 2))


def blocks_of(report: Report, kind: type) -> list[Block]:
    shown = [without_interaction(block) for block in flat(report.sections)]
    return [block for block in flat(filter(None, shown)) if isinstance(block, kind)]


def charts_in(report: Report) -> list[str]:
    """The names of the charts that have something to show."""
    return [block.name for block in blocks_of(report, Chart) if isinstance(block, Chart) and block.draw() is not None]


def test_every_chart_of_a_view_is_in_the_report_and_every_chart_is_in_a_view() -> None:
    pair = pair_of(*CPU)
    shown = [block for view in views() if not view.why_not(pair) for block in flat(view.blocks(pair))]
    named = {block.name for block in shown if isinstance(block, Chart)}
    in_report = {block.name for block in blocks_of(of_cpu(), Chart) if isinstance(block, Chart)}
    assert in_report >= named - {"memory_run"}, "the whole run's memory is too large"
    goldens = "".join(path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.txt"))
    by_name_only = {"scopes_device", "scopes_host", "xla_time"}  # flame graphs show the same on pages
    assert {*charts()} - by_name_only <= {*re.findall(r"^\[(\w+)\] ", goldens, re.MULTILINE)}
    assert not by_name_only & named


def test_a_comment_on_a_pull_request_is_the_answer_and_no_more() -> None:
    text = report(compared_runs(*CPU), "markdown", command=["tfcompare", "report", "logs/a b"])
    title, verdict, budget, figures, changes, more, basis, full, _ = text.rstrip("\n").split("\n\n")
    assert title == "### B filters_16_8 compared with A filters_512_128"
    assert (
        "`B` is 20× faster than `A` (14×–26×, one capture each): 10.9 ms vs 213 ms per step; its convolutions have "
        in verdict
    )
    assert budget.startswith("**−202 ms per step** = −201 ms host compute")
    assert "| Step time | 213 ms | 10.9 ms | −202 ms | 0.0513× |" in figures
    assert len(figures.splitlines()) <= 2 + 5
    header, _, *rows = changes.splitlines()
    assert (header, len(rows)) == ("| Largest changes, self time per step | Change | Ratio | Verdict |", 3)
    assert more == "342 more ops changed."
    assert basis.startswith("95 % confidence interval of the ratio")
    assert full == "Full report: `tfcompare report 'logs/a b'`"
    several = report(of_several(), "markdown")
    assert "#### B filters_16_8_again" in several and "#### C filters_16_8_better_input" in several


def test_a_comment_on_a_pull_request_says_what_differs_in_a_line() -> None:
    lines = report(compared_runs("jax_filters_128_32", "jax_filters_16_8"), "markdown").splitlines()
    (line,) = [line for line in lines if " instructions differ: " in line]
    assert line.startswith("`jit_train_step`: ") and line.endswith(". Also: Inputs of jit_train_step.")


def test_the_answer_comes_first() -> None:
    report = of_cpu()
    first = report.sections[0]
    assert first.title == "" and first.is_open
    verdict = first.blocks[0]
    assert isinstance(verdict, Verdict)
    assert verdict.headline.startswith("`B` is 20× faster than `A` ")
    assert verdict.tone == "likely-better"
    assert [block.name for block in flat([first]) if isinstance(block, Chart)] == ["waterfall"]
    (changes,) = [block for block in first.blocks if isinstance(block, Facts)]
    assert changes.rows[0][0].endswith("image_1/convolution/Conv2DBackpropFilter")
    assert report.title == "B filters_16_8 compared with A filters_512_128"
    assert [block.text for block in blocks_of(report, Code) if isinstance(block, Code)] == [
        "tfcompare report 'logs/a b'"
    ]


def columns_of(name: str, *runs: str) -> list[str]:
    """The columns of the first table of a view."""
    table, *_ = shown(view(name), pair_of(*runs), Table)
    return [column.name for column in table.columns]


def test_rows_of_several_hosts_say_which() -> None:
    workers = ("workers_balanced", "workers_slow_input")
    table, *_ = shown(view("input_pipeline"), pair_of(*workers), Table)
    assert [column.name for column in table.columns][:3] == ["op_name", "category", "host"]
    assert not table.rows.duplicated(["op_name", "host"]).any()
    assert "host" not in columns_of("op_stats", *workers), "ops are summed over hosts"


def test_a_column_of_texts_without_any_is_left_out() -> None:
    table, *_ = shown(view("xla"), pair_of("jax_filters_128_32", "jax_filters_16_8"), Table)
    names = [column.name for column in table.columns_of(table.every)]
    first = columns_of("xla", "jax_filters_128_32", "jax_filters_16_8")
    assert "bound_by_baseline" in names and not [name for name in first if name.startswith("bound_by")]


def test_a_run_alone_has_no_second_side() -> None:
    report = alone()
    assert report.title == title_of(compare(*[loaded_run("filters_16_8")] * 2)) == "filters_16_8"
    verdict, cards = report.sections[0].blocks[:2]
    assert isinstance(verdict, Verdict) and verdict.headline == "10.9 ms per step"
    assert isinstance(cards, Cards) and not any(figure.has_baseline for figure in cards.figures)
    columns = [column.name for table in blocks_of(report, Table) for column in table.columns]
    assert columns
    assert not [name for name in columns if name.endswith(("_candidate", "_delta", "_ratio"))]
    assert {*charts_in(report)} >= {"average_step", "step_times"}
    assert len(blocks_of(report, Timeline)) == 1


def test_each_of_several_candidates_has_its_own_answer() -> None:
    report = contents(of_several())
    titles = [section.title for section in report.sections]
    assert titles[0] == "All candidates"
    assert {"B filters_16_8_again", "C filters_16_8_better_input", "B: Op stats", "C: Op stats"} <= {*titles}
    named = [block.name for block in blocks_of(report, Chart) if isinstance(block, Chart)]
    assert named.count("step_times") == named.count("step_distribution") == 1, "one chart has the steps of all runs"
    first, ranking, *_ = report.sections[0].blocks
    assert isinstance(first, Text) and first.text.startswith("`C` is the fastest of 3 runs: ")
    assert isinstance(ranking, Table)
    verdicts = dict(zip(ranking.rows["name"], ranking.rows["verdict_text"], strict=True))
    assert verdicts[f"C · {SEVERAL[2]}"] == "▼ likely faster"
    answers = [block for block in blocks_of(report, Verdict) if isinstance(block, Verdict)]
    assert any("`C` is 1.5× faster than `A`" in block.headline for block in answers)
    assert of_several().verdict[loaded_run(SEVERAL[1]).id].word == "unclear"
    assert "neutral" in {block.tone for block in answers}, "no claim of what is unclear"


def texts(cell: NotebookNode) -> list[str]:
    """What a cell shows, apart from figures and from the HTML of pandas."""
    found = []
    for output in cell.outputs:
        if not is_figure(output):
            found.append(output["text"] if output.output_type == "stream" else output["data"]["text/plain"])
    return [*found, *html_of(cell)]


@pytest.mark.thorough
def test_each_cell_runs_and_shows_what_is_stored() -> None:
    """In `make test`, `tests/render/test_notebook_cells.py` compares the stored answers, without a kernel."""
    cells = list(zip(code_cells(stored()), code_cells(executed()), strict=True))
    for before, now in cells:
        assert texts(now) == texts(before), now.source
        assert len(now.outputs) == 1, now.source
    drawn = [now for _, now in cells if any(map(is_figure, now.outputs))]
    assert ["figure" in cell.source for cell in drawn] == [True] * 4
