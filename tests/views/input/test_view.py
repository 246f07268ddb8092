"""What the view of the input pipeline says: its words and figures are those of the frames."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.frames.tables import run_of, run_with, threads
from tests.input_runs import BETTER, NAIVE, input_diff
from tests.profiles import EACH_KIND, loaded_run
from tests.views.flat import listed, of_kind, only_pair, opened, pair_of, titles, words
from tests.xspace_builder import event, line, plane, space
from tfcompare import compare
from tfcompare.compare.pair import Pair
from tfcompare.run import Run
from tfcompare.tables.step_times import on_slowest_host
from tfcompare.units import format_time_us
from tfcompare.views.blocks import Cards, Chart, Items, Judgements, Links, Table
from tfcompare.views.input.figures import InputWait, headline, input_wait, on_waiting
from tfcompare.views.input.ops import input_op_key
from tfcompare.views.input.view import VIEW
from tfcompare.views.key_figures import KeyFigure

NAMES = ("filters_512_128", "filters_16_8")
SHOWN = ("jax_tpu", "tf_gpu", "tf_cpu_zoo")
ROOT_ITERATOR = "localhost:preprocessing:Iterator::Root"


@pytest.fixture(scope="module")
def pair() -> Pair:
    return pair_of(*NAMES)


def wait_of(run: Run) -> InputWait:
    return input_wait(on_slowest_host(run.table("steps")), run.info)


def figures(pair: Pair) -> dict[str, KeyFigure]:
    (cards,) = of_kind(listed(VIEW, pair), Cards)
    return {figure.label: figure for figure in cards.figures}


def table(pair: Pair, **options: str) -> Table:
    (found,) = of_kind(listed(VIEW, pair, **options), Table)
    return found


def test_the_sentence_and_the_figures_are_those_of_the_frames(pair: Pair) -> None:
    ours, theirs = map(wait_of, pair.runs)
    assert words(listed(VIEW, pair), "headline") == [headline(ours, theirs, ("A", "B"))]
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


def test_the_table_has_the_numbers_of_the_diff(pair: Pair) -> None:
    diff, found = pair.diff("input_pipeline"), table(pair)
    name = "self_time_us_"
    assert found.names == [
        *("op_name", "category", f"{name}baseline", f"{name}candidate", f"{name}delta", "input_self_share_baseline"),
        "input_self_share_candidate",
    ]
    assert found.rows[f"{name}candidate"].tolist() == diff[f"{name}candidate"].tolist()
    assert found.rows["category"].tolist() == diff["category"].tolist()
    assert found.rows["input_self_share_baseline"].sum() == pytest.approx(1)


def test_all_columns_are_those_of_tensorboard_and_the_diff(pair: Pair) -> None:
    columns = set(table(pair).every)
    for name in ("occurrences", "total_time_us", "self_time_us"):
        assert {f"{name}_{part}" for part in ("baseline", "candidate", "delta", "ratio")} <= columns
    assert {"input_total_share_baseline", "status", "match", "verdict", "host", "op_name_candidate"} <= columns


@pytest.mark.parametrize(("ours", "theirs"), [(NAIVE, BETTER), (NAIVE, ""), (NAIVE, NAIVE)])
def test_no_two_rows_have_one_name(ours: str, theirs: str) -> None:
    diff = input_diff(ours, theirs)
    assert input_op_key(diff).is_unique
    twice = pd.concat([diff, diff[diff["status"] == "matched"].assign(status="added")], ignore_index=True)
    assert input_op_key(twice).is_unique


def test_a_row_opens_the_op_in_every_step_and_links_to_all_else_about_it(pair: Pair) -> None:
    details = opened(table(pair), ROOT_ITERATOR)
    assert details is not None and details.title == "Iterator::Root"
    (chart,), (links,) = of_kind(details.blocks, Chart), of_kind(details.blocks, Links)
    assert chart.draw().layout.title.text.startswith("Self time in every step")
    assert [link.view for link in links.links] == ["op_stats"]
    assert opened(table(pair), "nowhere:nothing:at/all") is None


def test_a_row_of_all_hosts_opens_their_sum_in_every_step() -> None:
    def on_hosts(count: int) -> Run:
        events = [event("train", 1_000 * i, 900, _r=1, step_num=i) for i in range(4)]
        events += [event("Iterator::Root::Map", 1_000 * i + 5, 60, id=1) for i in range(4)]
        return run_of(*(space(threads(events), hostnames=[f"h{i}"]) for i in range(count)))

    details = opened(table(only_pair(compare(on_hosts(1), on_hosts(2)))), "all:preprocessing:Iterator::Root::Map")
    assert details is not None
    (chart,) = of_kind(details.blocks, Chart)
    assert [list(series.y) for series in chart.draw().data if len(series.y) == 4] == [[60] * 4, [120] * 4]


def test_one_side_without_input_is_named_and_the_other_shown() -> None:
    pair = pair_of("jax_tpu", "tf_cpu_zoo")
    assert "A does not show how long it waits for input" in words(listed(VIEW, pair), "headline")[0]
    assert figures(pair)["Input wait per step"].candidate > 0
    assert not table(pair).rows.empty


def test_without_steps_the_candidate_is_judged_by_its_calls_to_tf_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfcompare.views.input.figures.why_unknown", lambda _: "no step markers were found")
    blocks = listed(VIEW, only_pair(compare(*map(loaded_run, NAMES))))
    assert "B is highly input-bound: tf.data calls take" in words(blocks, "headline")[0]
    assert not any("Step time and input wait" in title for title in titles(blocks))


@pytest.mark.parametrize(
    "name", [name if name in SHOWN else pytest.param(name, marks=pytest.mark.thorough) for name in EACH_KIND]
)
def test_every_kind_of_profile_is_shown(name: str) -> None:
    pair = pair_of(name, "tf_cpu_sleepy" if name != "tf_cpu_sleepy" else "tf_gpu")
    assert not VIEW.why_not(pair)
    blocks = listed(VIEW, pair)
    (found,) = words(blocks, "headline")
    assert "input" in found
    assert bool(words(blocks, "notice")) == found.startswith("No ")
    titles(blocks)


def test_the_mean_call_is_that_of_its_verdict_and_only_claims_have_a_colour(pair: Pair) -> None:
    waiting = on_waiting(pair)
    call = pair.slowest_call_verdict()
    assert call is not None
    (judged,) = of_kind(listed(VIEW, pair), Judgements)
    assert [(row.name, row.verdict) for row in judged.rows] == [
        ("Input wait", waiting),
        ("Mean tf.data call (Host:0)", call.verdict),
    ]
    found = figures(pair)
    assert found["Mean tf.data call"].candidate == call.candidate_us
    assert (found["Input wait per step"].judgement == "neither") == (waiting.word not in ("faster", "slower"))
    assert found["Mean step time"].judgement == "better"
    assert found["Share of the step"].judgement == found["Input ops per step"].judgement == "neither"


def test_the_advice_is_on_what_the_candidate_spends_its_input_time_on(pair: Pair) -> None:
    (items,) = of_kind(listed(VIEW, pair), Items)
    ((_, advice),) = items.items
    assert "Give `map`" in advice and "https://www.tensorflow.org/guide/profiler" in advice


def annotated(us: float, name: str) -> Run:
    events = [
        one
        for number in range(12)
        for one in (
            event("train", 10_000 * number, us + 500, _r=1, step_num=number),
            event(name, 10_000 * number, us),
            event("m/MatMul:MatMul", 10_000 * number + us, 500),
        )
    ]
    return run_with(plane("/host:CPU", line("python", *events)))


def test_a_program_without_tf_data_is_told_what_its_annotations_say_of_its_input() -> None:
    found = listed(VIEW, only_pair(compare(annotated(500, "load_batch"), annotated(1500, "load_batch"))))
    assert words(found, "headline") == [
        "A spends 50.0 % of the step time in `load_batch`; B spends 75.0 % of the step time in `load_batch`"
    ]
    (rows,) = of_kind(found, Table)
    assert rows.rows["name"].tolist() == ["load_batch"]
    assert rows.rows["wall_time_us_candidate"].tolist() == [1500]
    assert "tf.data" not in " ".join(words(found, "notice"))


def test_without_such_annotations_it_is_told_how_to_make_them() -> None:
    found = listed(VIEW, only_pair(compare(annotated(500, "log"), annotated(1500, "log"))))
    assert words(found, "headline") == ["No step waits for input, and no input ops were recorded"]
    assert 'with tf.profiler.experimental.Trace("load_batch"): …' in words(found, "notice")[0]
    assert not of_kind(found, Table)
