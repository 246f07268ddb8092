"""What a report holds: the same answers as the app, in the same words."""

from __future__ import annotations

import pytest

from tests.profiles import compared_runs, loaded_run
from tests.views.flat import flat
from tfcompare.compare import Comparison, compare
from tfcompare.report.contents import contents, title_of
from tfcompare.report.making import for_pull_request
from tfcompare.views.blocks import Block, Cards, Chart, Code, Facts, Report, Table, Text, Timeline, Verdict
from tfcompare.views.registry import charts

PAIRS = {
    "cpu": ("filters_512_128", "filters_16_8"),
    "gpu": ("filters_512_128_simulated", "filters_16_8_simulated"),
    "jax": ("jax_filters_128_32", "jax_filters_16_8"),
    "workers": ("workers_balanced", "workers_slow_input"),
}


def blocks_of(report: Report, kind: type) -> list[Block]:
    found = [block for block in flat(report.sections) if isinstance(block, kind)]
    return [block for block in found if not isinstance(block, Chart) or block.draw() is not None]


def alone(name: str) -> Comparison:
    return compare(loaded_run(name), loaded_run(name))


def test_every_chart_has_a_place() -> None:
    reports = (
        contents(comparison) for comparison in (*(compared_runs(*p) for p in PAIRS.values()), alone("filters_16_8"))
    )
    drawn = {block.name for report in reports for block in blocks_of(report, Chart) if isinstance(block, Chart)}
    assert drawn >= {*charts()} - {"memory_run"}, "the whole run's memory is too large"


def test_a_comment_on_a_pull_request_is_the_answer_and_no_more() -> None:
    comparison = compared_runs(*PAIRS["cpu"])
    said = for_pull_request(comparison).splitlines()
    assert said[0] == "### B filters_16_8 compared with A filters_512_128"
    assert "`B` is 20× faster than `A` (15×–25×, one capture each): 10.9 ms vs 213 ms per step." in said[2]
    assert any(line.startswith("**−202 ms per step** = −201 ms host compute") for line in said)
    assert len(said) < 40
    several = for_pull_request(compare(*map(loaded_run, ("filters_512_128", "filters_16_8", "filters_16_8_again"))))
    assert "#### B filters_16_8" in several and "#### C filters_16_8_again" in several


def test_the_answer_comes_first() -> None:
    comparison = compared_runs(*PAIRS["cpu"])
    report = contents(comparison, command=["tfcompare", "report", "logs/a b"])
    first = report.sections[0]
    assert first.title == "" and first.is_open
    verdict = first.blocks[0]
    assert isinstance(verdict, Verdict)
    assert verdict.headline == "`B` is 20× faster than `A` (15×–25×, one capture each): 10.9 ms vs 213 ms per step."
    assert verdict.tone == "likely-better"
    assert [block.name for block in flat([first]) if isinstance(block, Chart)] == ["waterfall"]
    (changes,) = [block for block in first.blocks if isinstance(block, Facts)]
    assert changes.rows[0][0].endswith("image_1/convolution/Conv2DBackpropFilter")
    assert report.title == "B filters_16_8 compared with A filters_512_128"
    assert [block.text for block in blocks_of(report, Code)] == ["tfcompare report 'logs/a b'"]


@pytest.mark.parametrize(("kind", "sections"), [
    ("cpu", {"Timeline", "Steps", "Op stats", "Memory", "Input pipeline", "tf.data"}),
    ("gpu", {"Timeline", "Steps", "Op stats", "Kernel stats", "Memory", "Input pipeline"}),
    ("jax", {"Timeline", "Steps", "Op stats", "XLA"}),
    ("workers", {"Timeline", "Steps", "Op stats", "Hosts", "Input pipeline"}),
])  # fmt: skip
def test_sections_are_those_that_the_runs_have_something_for(kind: str, sections: set[str]) -> None:
    report = contents(compared_runs(*PAIRS[kind]))
    titles = {section.title for section in report.sections}
    assert sections <= titles
    if kind == "cpu":
        assert not titles & {"Kernel stats", "XLA", "Hosts"}


def test_a_table_has_the_rows_and_times_of_the_diff() -> None:
    comparison = compared_runs(*PAIRS["cpu"])
    (table,) = [one for one in blocks_of(contents(comparison), Table) if one.name == "op_stats"]
    diff = comparison.table("op_stats")
    diff = diff[diff["op_name"] != "IDLE"]
    assert len(table.rows) == len(diff)
    assert table.rows["self_time_us_per_step_baseline"].sum() == pytest.approx(
        diff["self_time_us_per_step_baseline"].sum()
    )


def test_rows_of_several_hosts_and_memories_say_which() -> None:
    tables = {one.name: one for one in blocks_of(contents(compared_runs(*PAIRS["workers"])), Table)}
    names = {name: [column.name for column in table.columns] for name, table in tables.items()}
    assert names["input_pipeline"][:3] == ["op_name", "category", "host"]
    assert not tables["input_pipeline"].rows.duplicated(["op_name", "host"]).any()
    assert "host" not in names["op_stats"], "ops are summed over hosts"


def test_a_column_of_texts_without_any_is_left_out() -> None:
    tables = {one.name: one for one in blocks_of(contents(compared_runs(*PAIRS["jax"])), Table)}
    names = [column.name for column in tables["hlo_ops"].columns]
    assert "category" in names and not [name for name in names if name.startswith("bound_by")]


def test_a_run_alone_has_no_second_side() -> None:
    comparison = alone("filters_16_8")
    report = contents(comparison)
    assert report.title == title_of(comparison) == "filters_16_8"
    verdict, cards = report.sections[0].blocks[:2]
    assert isinstance(verdict, Verdict) and verdict.headline == "10.9 ms per step"
    assert isinstance(cards, Cards) and not any(figure.has_baseline for figure in cards.figures)
    tables = blocks_of(report, Table)
    assert tables
    assert not any(column.name.endswith(("_candidate", "_delta", "_ratio")) for t in tables for column in t.columns)
    assert {one.name for one in blocks_of(report, Chart)} >= {"average_step", "step_times"}
    assert len(blocks_of(report, Timeline)) == 1


def test_each_of_several_candidates_has_its_own_answer() -> None:
    names = ("filters_16_8", "filters_16_8_again", "filters_16_8_better_input")
    report = contents(compare(*map(loaded_run, names)))
    titles = [section.title for section in report.sections]
    assert titles[0] == "All candidates"
    assert "B filters_16_8_again" in titles and "C filters_16_8_better_input" in titles
    assert "B: Op stats" in titles and "C: Op stats" in titles
    drawn = [chart.name for chart in blocks_of(report, Chart)]
    assert drawn.count("step_times") == drawn.count("step_distribution") == 1, "one chart has the steps of all runs"
    first, ranking, *_ = report.sections[0].blocks
    assert isinstance(first, Text) and first.text.startswith("`C` is the fastest of 3 runs: ")
    assert isinstance(ranking, Table)
    verdicts = dict(zip(ranking.rows["name"], ranking.rows["verdict_text"], strict=True))
    assert verdicts[f"C · {names[2]}"] == "▼ likely faster"
    verdicts_in_words = [block.headline for block in blocks_of(report, Verdict)]
    assert any("`C` is 1.5× faster than `A`" in headline for headline in verdicts_in_words)


def test_a_comparison_with_itself_claims_nothing() -> None:
    run = loaded_run("filters_16_8")
    again = compare(run, loaded_run("filters_16_8_again"))
    assert again.verdict[loaded_run("filters_16_8_again").id].word == "unclear"
    (verdict,) = blocks_of(contents(again), Verdict)
    assert isinstance(verdict, Verdict) and verdict.tone == "neutral"
