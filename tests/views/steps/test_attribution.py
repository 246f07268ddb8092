"""What changed the step, on samples that were recorded to differ in known ways, and the waterfall of it."""

from __future__ import annotations

import html
from dataclasses import replace

import pandas as pd
import pytest

import tfcompare as tfc
from tests.frames.tables import run_with
from tests.laws import mostly_thorough
from tests.profiles import EACH_KIND, compared_runs, loaded_run
from tests.xspace_builder import event, line, plane
from tfcompare.compare.attribution import MOVE_COLUMNS, Waterfall, factor_moves
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.side import Side
from tfcompare.frames.tf_data.tf_data_functions import runs_ahead
from tfcompare.run import Run
from tfcompare.schema import STEP_PARTS
from tfcompare.views import chart_style as style
from tfcompare.views.chart_style import side_colour
from tfcompare.views.steps import attribution as step_attribution
from tfcompare.views.steps.attribution import Attribution, Within, attributed_steps, attribution, within
from tfcompare.views.steps.part_charts import UNEXPLAINED, part_waterfall, step_waterfall


def looked_into(one: str, other: str, part: str | None = None) -> tuple[Attribution, Within]:
    candidate = loaded_run(other)
    comparison = compared_runs(one, other)
    found = attribution(pair_with(comparison, candidate.id))
    chosen = part or found.moved_most
    assert chosen is not None
    inside = within(pair_with(comparison, candidate.id), chosen)
    assert inside.waterfall.levels_us.min() >= -1e-6
    return found, inside


def test_a_better_input_pipeline_is_credited_to_what_the_step_no_longer_waits_for():
    found, inside = looked_into("filters_16_8", "filters_16_8_better_input")
    assert found.sentence.startswith(
        "**−3.78 ms per step** = −6.45 ms input (above all `DecodePng` in `Iterator::Root::BatchV2::Map`) + "
    )
    first = inside.waterfall.moves.iloc[0]
    assert (first["name"], first["kind"]) == ("Iterator::Root::BatchV2::Map", "matched")
    left = inside.waterfall.moves.set_index("kind")["delta_us"].get("no op running", 0.0)
    assert abs(left) < 0.02 * abs(inside.waterfall.delta_us), "what stands before the step adds up to its waiting"
    assert inside.sentence == (
        "In the wall time of input, `Map` changed the most: it fell by 6.30 ms per step. In its function, most of that "
        "is `DecodePng` (−5.31 ms)."
    )


def test_on_a_gpu_less_to_compute_lays_the_launches_bare():
    found, inside = looked_into("gpu_filters_512_128", "gpu_filters_16_8")
    conv = "autoencoder_1/decoder_outer_1/conv_transpose"
    assert found.sentence == (
        f"**−5.26 ms per step** = −6.81 ms device compute (above all `{conv}`) + 1.56 ms kernel launch "
        "− 0.01 ms everything else."
    )
    assert [(one.part, one.op_name) for one in found.causes] == [("device_compute_us", conv)]
    assert inside.waterfall.moves["detail"].iloc[0].startswith("Conv2D")
    _, launches = looked_into("gpu_filters_512_128", "gpu_filters_16_8", "kernel_launch_us")
    assert launches.waterfall.moves["name"].tolist() == ["Time per launch while no device is busy"]


def loading(us: float, *, name: str = "load_batch") -> Run:
    """12 steps: some time in an annotation, which nothing else explains, then an op of 300 µs."""
    begins = [2000 + i * (us + 1000) for i in range(12)]
    events = [
        one
        for number, at in enumerate(begins)
        for one in (
            event("train", at, us + 500, _r=1, step_num=number),
            event(name, at + 10, us),
            event("m/MatMul:MatMul", at + us + 100, 300),
        )
    ]
    return run_with(plane("/host:CPU", line("python", *events)))


def test_time_outside_of_ops_is_named_by_the_annotation_that_runs() -> None:
    before, after = loading(100), loading(2000)
    pair = pair_with(tfc.compare(before, after))
    found = attribution(pair)
    assert found.sentence.endswith("**+1.90 ms per step** = 1.90 ms host compute in `load_batch`.")
    assert [(one.around, one.op_name) for one in found.causes] == [("load_batch", "")]
    inside = within(pair, "host_compute_us")
    moves = inside.waterfall.moves.set_index("name")
    assert moves.loc["load_batch", ["detail", "kind", "delta_us"]].tolist() == ["annotation", "matched", 1900]
    assert inside.waterfall.levels_us[-1] == pytest.approx(inside.waterfall.candidate_us)
    assert inside.sentence.endswith("`load_batch` changed the most: it grew by 1.90 ms per step.")
    back = within(pair_with(tfc.compare(after, before)), "host_compute_us").waterfall
    assert back.moves["delta_us"].tolist() == (-inside.waterfall.moves["delta_us"]).tolist()


def test_annotations_of_several_captures_are_means_as_the_step_is() -> None:
    first, second = replace(loading(2000), id="run-1"), replace(loading(4000), id="run-2")
    pair = pair_with(tfc.compare(loading(100), first, repeats={first.id: [second]}))
    assert attribution(pair).sentence.endswith("**+2.90 ms per step** = 2.90 ms host compute in `load_batch`.")
    assert step_attribution.getting_input(pair)[1][0].to_dict() == {"load_batch": pytest.approx(3000)}


def test_an_annotation_of_one_side_alone_is_added() -> None:
    pair = pair_with(tfc.compare(loading(100, name="warm_up"), loading(2000)))
    kinds = within(pair, "host_compute_us").waterfall.moves.set_index("name")["kind"]
    assert kinds[["load_batch", "warm_up"]].tolist() == ["added", "removed"]


def test_functions_that_one_profiler_traced_alone_are_no_change() -> None:
    traced = loading(2000, name="$loader.py:12 __next__")
    found = attribution(pair_with(tfc.compare(loading(100), traced)))
    assert found.sentence.endswith("**+1.90 ms per step** = 1.90 ms host compute.")
    both = attribution(pair_with(tfc.compare(loading(100, name="$loader.py:10 __next__"), traced)))
    assert both.sentence.endswith("**+1.90 ms per step** = 1.90 ms host compute in `loader.py __next__`.")


PAIRS = [
    ("filters_512_128", "filters_16_8"),
    ("gpu_filters_512_128", "gpu_filters_16_8"),
    pytest.param("tf_gpu", "jax_tpu", marks=pytest.mark.thorough),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_waterfalls_add_up_to_the_mean_step_and_mirror(one: str, other: str) -> None:
    a, b = loaded_run(one), loaded_run(other)
    forth, back = compared_runs(one, other), compared_runs(other, one)
    there, again = attribution(pair_with(forth, b.id)), attribution(pair_with(back, a.id))
    assert there.waterfall.baseline_us == pytest.approx(a.info.step_time_ms_mean * 1000, abs=1e-3)
    assert there.waterfall.levels_us[-1] == pytest.approx(b.info.step_time_ms_mean * 1000, abs=1e-3)
    assert (there.waterfall.moves["delta_us"] == -again.waterfall.moves["delta_us"]).all()
    for part in STEP_PARTS:
        inside, mirrored = within(pair_with(forth, b.id), part).waterfall, within(pair_with(back, a.id), part).waterfall
        assert (inside is None) == (mirrored is None)
        if inside is not None and mirrored is not None:
            assert inside.levels_us[-1] == pytest.approx(inside.candidate_us, abs=1e-3)
            assert inside.levels_us.min() >= -1e-6
            assert inside.moves["delta_us"].tolist() == pytest.approx((-mirrored.moves["delta_us"]).tolist(), abs=1e-6)


@pytest.mark.parametrize("name", mostly_thorough(EACH_KIND, "gpu_filters_16_8", "jax_conv_08"))
def test_a_run_beside_itself_has_an_empty_waterfall_or_none(name: str) -> None:
    run = loaded_run(name)
    comparison = compared_runs(name, name)
    found = attribution(pair_with(comparison, run.id))
    assert found.moved_most is None
    if found.waterfall is None:
        assert "no step markers" in found.sentence
        return
    assert found.waterfall.is_empty
    assert "same capture" in found.sentence
    for part in STEP_PARTS:
        inside = within(pair_with(comparison, run.id), part).waterfall
        assert inside is None or inside.is_empty


def test_without_steps_there_is_no_waterfall_and_it_says_whose_and_what_to_do():
    candidate = loaded_run("jax_conv_08")
    found = attribution(pair_with(compared_runs("filters_16_8", "jax_conv_08"), candidate.id))
    assert found.waterfall is None
    assert "`jax_conv_minimal_08` has no step markers" in found.sentence
    assert "StepTraceAnnotation" in found.sentence


def test_of_a_chosen_host_its_own_steps_count():
    run = loaded_run("workers_slow_input")
    host = run.host_names[-1]
    comparison = tfc.compare(run, run, host=host)
    assert [set(steps["host"]) for steps in attributed_steps(pair_with(comparison, run.id))] == [{host}, {host}]
    assert within(pair_with(comparison, run.id), "host_compute_us").waterfall is not None


@pytest.mark.parametrize(
    ("name", "ahead"),
    [
        ("Iterator::Root::Prefetch", False),
        ("Iterator::Root::Prefetch::BatchV2", True),
        ("Iterator::Root::BatchV2::Map", False),
        ("Iterator::Root::ParallelMapV2", False),
        ("Iterator::Root::ParallelMapV2::ParallelInterleaveV4[2]::FlatMap[0]::TFRecord", True),
        ("read::Prefetch::images", False),
    ],
)
def test_which_stages_run_ahead_of_the_step(name: str, ahead: bool) -> None:
    assert runs_ahead(name) is ahead


SIDES = (Side("before", 0), Side("after <b>", 1))
NAN = float("nan")
STEP = Waterfall(
    9500.0,
    4500.0,
    pd.DataFrame(
        [
            ("Kernel launch", "giving work", "part", 700.0, 2720.0, 2020.0),
            ("Host compute", "computing", "part", 30.0, 30.0, 0.0),
            ("Device compute", "computing", "part", 8100.0, 1080.0, -7020.0),
        ],
        columns=MOVE_COLUMNS,
    ),
)
WITHIN = Waterfall(
    100.0,
    20.0,
    pd.DataFrame(
        [
            ("conv<1>", "Conv2D", "matched", 90.0, 10.0, -80.0),
            ("old", "Relu", "removed", 8.0, NAN, -8.0),
            ("new", "Gelu", "added", NAN, 5.0, 5.0),
            ("No op running", "rest", "no op running", 2.0, 5.0, 3.0),
        ],
        columns=MOVE_COLUMNS,
    ),
)


def ends_of(bars) -> list[tuple[float, float]]:
    return [(base, base + length) for base, length in zip(bars.base, bars.x, strict=True)]


def test_bars_begin_where_the_one_before_ended_and_say_what_they_are():
    figure = step_waterfall(STEP, SIDES)
    connectors, baseline, candidate, moves = figure.data
    assert ends_of(baseline) == [(0, 9.5)]
    assert ends_of(candidate) == [(0, 4.5)]
    assert [pytest.approx(end) for end in ends_of(moves)] == [(9.5, 11.52), (11.52, 11.52), (4.5, 11.52)]
    assert [x for x in connectors.x if x is not None][::2] == pytest.approx([9.5, 11.52, 11.52, 4.5])
    assert (baseline.marker.color, candidate.marker.color) == (side_colour(SIDES[0]), side_colour(SIDES[1]))
    assert list(moves.text) == ["▲ +2.02 ms (+289 %)", "unchanged", "▼ −7.02 ms (−86.7 %)"]
    assert [moves.marker.color[0], moves.marker.color[2]] == [style.WORSE, style.BETTER]
    assert figure.layout.title.text == "Average step by part: 9.50 ms → 4.50 ms"
    assert list(figure.layout.yaxis.ticktext) == [
        *("Baseline", "Kernel launch", "Host compute", "Device compute", "Candidate")
    ]
    bars = [trace for trace in figure.data if trace.type == "bar"]
    assert sorted(y for bar in bars for y in bar.y) == list(figure.layout.yaxis.tickvals), "each label is at its bar"


def test_what_one_side_lacks_and_time_in_which_no_op_ran_is_hatched_and_named():
    figure = part_waterfall(WITHIN, SIDES, "Host compute")
    moves = figure.data[-1]
    assert list(moves.text) == [
        "▼ −80.0 µs (−88.9 %)",
        "▼ −8.00 µs (removed)",
        "▲ +5.00 µs (added)",
        "▲ +3.00 µs (+150 %)",
    ]
    assert list(moves.marker.pattern.shape) == ["", "x", "/", "."]
    assert moves.marker.color[3] == UNEXPLAINED
    notes = figure.layout.title.subtitle.text
    assert "hatched: only one side has it; dotted: no op was running" in notes
    assert "below 0" not in notes
    assert figure.layout.xaxis.range[0] == 0
    assert moves.customdata[0].tolist()[:2] == ["conv&lt;1&gt;", "Conv2D"]
    assert moves.customdata[1].tolist()[4] == "–", "the absent side is no 0"


def test_small_changes_of_a_long_step_are_not_slivers():
    moves = pd.DataFrame([("Input", "", "part", 500.0, 510.0, 10.0)], columns=MOVE_COLUMNS)
    figure = step_waterfall(Waterfall(1000.0, 1010.0, moves), SIDES)
    low, high = figure.layout.xaxis.range
    assert (high - low) / 2 < 0.010, "in milliseconds: the change takes more than half of the axis"
    assert "does not begin at 0" in figure.layout.title.subtitle.text
    assert step_waterfall(STEP, SIDES).layout.title.subtitle.text is None


def test_where_nothing_moved_there_is_no_bar_between_and_it_says_so():
    figure = step_waterfall(Waterfall(100.0, 100.0, STEP.moves.assign(delta_us=0.0)), SIDES)
    assert [trace.type for trace in figure.data] == ["scatter", "bar", "bar"]
    assert "no part changed" in figure.layout.title.subtitle.text
    assert ends_of(figure.data[1]) == ends_of(figure.data[2]) == [(0, 100)]


def test_factors_show_what_they_were_and_also_below_0():
    moves = factor_moves((100, 100), (2.0, 4.0), ("Launches", "Time each"))
    figure = part_waterfall(Waterfall(200.0, 400.0, moves), SIDES, "Kernel launch")
    assert list(figure.data[-1].text) == ["unchanged", "▲ +200 µs (from 2.00 µs to 4.00 µs)"]
    assert figure.layout.title.text.startswith("Kernel launch by factor")
    few_and_long = Waterfall(2000.0, 500.0, factor_moves((1000, 10), (2.0, 50.0), ("Launches", "Time each")))
    assert few_and_long.levels_us.tolist() == [2000, -23740, 500]
    layout = part_waterfall(few_and_long, SIDES, "Kernel launch").layout
    assert (layout.xaxis.range[0], layout.xaxis.zeroline) == (pytest.approx(-23.740), True)
    assert "below 0" in layout.title.subtitle.text


def test_on_a_narrow_page_half_of_the_width_is_for_text_and_names_are_short():
    long = WITHIN.moves.assign(name=[f"{at}{'scope/' * 20}{name}" for at, name in enumerate(WITHIN.moves["name"])])
    wide, narrow = (part_waterfall(Waterfall(100.0, 20.0, long), SIDES, "Host", narrow=n) for n in (False, True))
    longest = {False: 100 / wide.layout.xaxis.range[1], True: 100 / narrow.layout.xaxis.range[1]}
    assert longest[False] > 0.7
    assert 0.4 < longest[True] < 0.55
    assert [max(len(html.unescape(one.text)) for one in f.layout.annotations) for f in (wide, narrow)] == [72, 48]
