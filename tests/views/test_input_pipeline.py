"""What the view of the input pipeline says: its words and figures are those of the frames."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from tests.input_runs import BETTER, NAIVE, input_diff
from tests.profiles import EACH_KIND, compared_runs, loaded_run, run_path
from tests.views.listing import listed, only, texts, titles
from tfcompare import compare, load
from tfcompare.charts.pair import Pair, pairs_of
from tfcompare.run import Run
from tfcompare.tables.step_times import on_slowest_host
from tfcompare.tools.input.input_bound import InputWait, headline, input_wait
from tfcompare.tools.input.input_verdicts import on_waiting
from tfcompare.tools.key_figures import KeyFigure
from tfcompare.units import format_time_us
from tfcompare.views.blocks import Cards, Chart, Details, Facts, Items, Judgements, Links, Table
from tfcompare.views.input.input_ops import input_op_key
from tfcompare.views.input.input_pipeline import VIEW

NAMES = ("filters_512_128", "filters_16_8")
ROOT_ITERATOR = "localhost:preprocessing:Iterator::Root"


def pair_of(*names: str) -> Pair:
    runs = [loaded_run(name) for name in names]
    return pairs_of(compare(runs[0], *(runs[1:] or runs)))[0]


@pytest.fixture(scope="module")
def pair() -> Pair:
    return pairs_of(compared_runs(*NAMES))[0]


def wait_of(run: Run) -> InputWait:
    return input_wait(on_slowest_host(run.table("steps")), run.info)


def figures(pair: Pair) -> dict[str, KeyFigure]:
    (cards,) = only(listed(VIEW, pair), Cards)
    return {figure.label: figure for figure in cards.figures}


def table(pair: Pair, **options: str) -> Table:
    (found,) = only(listed(VIEW, pair, **options), Table)
    return found


def opened(pair: Pair, key: str) -> Details | None:
    opens = table(pair).opens
    assert opens is not None
    return opens.details(key)


def test_the_sentence_and_the_figures_are_those_of_the_frames(pair: Pair) -> None:
    ours, theirs = map(wait_of, pair.runs)
    assert texts(listed(VIEW, pair), "headline") == [headline(ours, theirs, ("A", "B")).removesuffix(".")]
    found = figures(pair)
    assert found["Input wait per step"].candidate == theirs.input_time_us.average
    assert found["Share of the step"].candidate == theirs.share.average


def test_the_meaning_of_a_figure_has_mean_deviation_and_range_of_each_run(pair: Pair) -> None:
    found = figures(pair)
    for label, field in (("Input wait per step", "input_time_us"), ("Mean step time", "step_time_us")):
        for role, run in zip(("Baseline", "Candidate"), pair.runs, strict=True):
            spread = getattr(wait_of(run), field)
            numbers = (spread.average, spread.deviation, spread.smallest, spread.largest)
            assert f"| {role} | {' | '.join(map(format_time_us, numbers))} | 20 |" in found[label].meaning


def test_swapped_runs_are_the_mirror_image(pair: Pair) -> None:
    ours, theirs = map(wait_of, pair.runs)
    blocks = listed(VIEW, pair_of(*reversed(NAMES)))
    (found,) = texts(blocks, "headline")
    assert found == headline(theirs, ours, ("A", "B")).removesuffix(".")
    assert "(not input-bound)" in found
    assert not only(blocks, Items)


def test_the_table_has_the_numbers_of_the_diff(pair: Pair) -> None:
    diff, found = pair.diff("input_pipeline"), table(pair)
    name = "self_time_us_per_step_"
    assert found.names == [
        "op_name", "category", f"{name}baseline", f"{name}candidate", f"{name}delta",
        "input_self_share_baseline", "input_self_share_candidate",
    ]  # fmt: skip
    assert found.rows[f"{name}candidate"].tolist() == diff[f"{name}candidate"].tolist()
    assert found.rows["category"].tolist() == diff["category"].tolist()
    assert found.rows["input_self_share_baseline"].sum() == pytest.approx(1)


def test_all_columns_are_those_of_tensorboard_and_the_diff(pair: Pair) -> None:
    columns = set(table(pair).every)
    for name in ("occurrences_per_step", "total_time_us_per_step", "self_time_us_per_step"):
        assert {f"{name}_{part}" for part in ("baseline", "candidate", "delta", "ratio")} <= columns
    assert {"input_total_share_baseline", "status", "match", "verdict", "host", "op_name_candidate"} <= columns


def test_a_category_and_words_leave_the_rows_that_fit(pair: Pair) -> None:
    diff = pair.diff("input_pipeline")
    on_demand = {"category": "reading on demand"}
    assert set(table(pair, **on_demand).rows["category"]) == {"reading on demand"}
    expected = diff["op_name"].str.contains("FlatMap[1]", regex=False) & (diff["category"] == "reading on demand")
    assert len(table(pair, **on_demand, filter="flatmap[1]").rows) == expected.sum()
    nothing = table(pair, filter="no such op")
    assert nothing.rows.empty and "Clear it to see all" in nothing.nothing


@pytest.mark.parametrize(("ours", "theirs"), [(NAIVE, BETTER), (NAIVE, ""), (NAIVE, NAIVE)])
def test_no_two_rows_have_one_name(ours: str, theirs: str) -> None:
    diff = input_diff(ours, theirs)
    assert input_op_key(diff).is_unique
    twice = pd.concat([diff, diff[diff["status"] == "matched"].assign(status="added")], ignore_index=True)
    assert input_op_key(twice).is_unique


def test_a_row_opens_the_op_in_every_step_and_links_to_all_else_about_it(pair: Pair) -> None:
    details = opened(pair, ROOT_ITERATOR)
    assert details is not None and details.title == "Iterator::Root"
    (chart,), (links,) = only(details.blocks, Chart), only(details.blocks, Links)
    assert chart.draw().layout.title.text.startswith("Self time in every step")
    assert [link.view for link in links.links] == ["op_stats"]
    assert opened(pair, "nowhere:nothing:at/all") is None


def test_the_advice_is_on_what_the_candidate_spends_its_input_time_on(pair: Pair) -> None:
    (items,) = only(listed(VIEW, pair), Items)
    ((line, advice),) = items.items
    assert line == "B: **98.0 %** of the input time is preprocessing: `Iterator::Root::BatchV2::Map`"
    assert "Give `map`" in advice
    assert "https://www.tensorflow.org/guide/profiler" in advice


def test_a_run_beside_itself_shows_no_difference_and_needs_no_interval(tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(run_path("filters_16_8"), tmp_path / name)
    (pair,) = pairs_of(compare(load(tmp_path / "a"), load(tmp_path / "b")))
    blocks = listed(VIEW, pair)
    assert "A and B are the same capture" in texts(blocks, "headline")[0]
    assert "None of these ops changed its self time." in texts(blocks)
    assert all(figure.baseline == figure.candidate for figure in figures(pair).values())
    assert not only(blocks, Judgements)


def test_one_side_without_input_is_named_and_the_other_shown() -> None:
    pair = pair_of("jax_tpu", "tf_cpu_zoo")
    assert "A does not show how long it waits for input" in texts(listed(VIEW, pair), "headline")[0]
    assert figures(pair)["Input wait per step"].candidate > 0
    assert not table(pair).rows.empty


def test_without_steps_and_input_it_says_so_and_what_to_do() -> None:
    why = VIEW.why_not(pair_of("jax_elementwise", "jax_conv_08"))
    assert why.startswith("No input pipeline was recorded in either run.")
    assert "StepTraceAnnotation" in why
    assert "host_tracer_level=2" in VIEW.remedy


def test_without_steps_the_candidate_is_judged_by_its_calls_to_tf_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfcompare.tools.input.input_bound.why_unknown", lambda _: "no step markers were found")
    blocks = listed(VIEW, pair_of(*NAMES))
    assert "B is highly input-bound: tf.data calls take" in texts(blocks, "headline")[0]
    assert not any("Step time and input wait" in title for title in titles(blocks))


@pytest.mark.parametrize("name", EACH_KIND)
def test_every_kind_of_profile_is_shown(name: str) -> None:
    pair = pair_of(name, "tf_cpu_sleepy" if name != "tf_cpu_sleepy" else "tf_gpu")
    assert not VIEW.why_not(pair)
    blocks = listed(VIEW, pair)
    (found,) = texts(blocks, "headline")
    assert "input" in found
    assert bool(texts(blocks, "notice")) == found.startswith("No ")
    titles(blocks)


def test_the_mean_call_is_that_of_its_verdict_and_only_claims_have_a_colour(pair: Pair) -> None:
    waiting = on_waiting(pair.comparison, pair.candidate)
    call = pair.comparison.slowest_call_verdict(pair.candidate)
    assert call is not None
    (judged,) = only(listed(VIEW, pair), Judgements)
    assert [(row.name, row.verdict) for row in judged.rows] == [
        ("Input wait", waiting), ("Mean tf.data call (Host:0)", call.verdict),
    ]  # fmt: skip
    found = figures(pair)
    assert found["Mean tf.data call"].candidate == call.candidate_us
    assert (found["Input wait per step"].judgement == "neither") == (waiting.word not in ("faster", "slower"))
    assert found["Mean step time"].judgement == "better"
    assert found["Share of the step"].judgement == found["Input ops per step"].judgement == "neither"


def test_a_run_alone_has_no_second_side() -> None:
    blocks = listed(VIEW, pair_of("filters_16_8"))
    assert texts(blocks, "headline")[0].startswith("Highly input-bound: it waits for input 62.2 % of the step time")
    (items,), (cards,) = only(blocks, Items), only(blocks, Cards)
    assert not re.match("[AB]: ", items.items[0][0])
    assert not any(figure.has_baseline for figure in cards.figures)
    assert not only(blocks, Judgements)


def test_what_is_drawn_by_category_is_also_told(pair: Pair) -> None:
    (chart,) = [one for one in only(listed(VIEW, pair), Chart) if one.name == "input_host"]
    assert isinstance(chart.facts, Facts)
    times = {row[0]: row[1:] for row in chart.facts.rows}
    diff = pair.diff("input_pipeline")
    sums = diff.groupby("category")["self_time_us_per_step_candidate"].sum()
    assert times["preprocessing"][1] == format_time_us(sums["preprocessing"])


def test_the_wait_is_drawn_as_a_share_on_request(pair: Pair) -> None:
    drawn = titles(listed(VIEW, pair, wait_as="share"))
    assert any("Input wait as a share of each step" in title for title in drawn)
    assert not any("Step time and input wait" in title for title in drawn)
