"""What changed the step, on real runs: the samples were recorded to differ in known ways."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tfcompare as tfc
from tests.frames.tables import run_with
from tests.laws import mostly_thorough
from tests.profiles import EACH_KIND, compared_runs, loaded_run
from tests.xspace_builder import event, line, plane
from tfcompare.compare.pairs import pair_with
from tfcompare.frames.tf_data.tf_data_functions import runs_ahead
from tfcompare.run import Run
from tfcompare.schema import STEP_PARTS
from tfcompare.views.steps import attribution as step_attribution
from tfcompare.views.steps.attribution import Attribution, Within, attributed_steps, attribution, within


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
    found, inside = looked_into("filters_512_128_simulated", "filters_16_8_simulated")
    conv = "autoencoder_1/decoder_outer_1/conv_transpose"
    assert found.sentence == (
        f"**−5.00 ms per step** = −7.02 ms device compute (above all `{conv}`) + 2.08 ms kernel launch "
        "− 0.06 ms everything else."
    )
    assert [(one.part, one.op_name) for one in found.causes] == [("device_compute_us", conv)]
    assert inside.waterfall.moves["detail"].iloc[0].startswith("Conv2D")
    _, launches = looked_into("filters_512_128_simulated", "filters_16_8_simulated", "kernel_launch_us")
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
    ("filters_512_128_simulated", "filters_16_8_simulated"),
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


@pytest.mark.parametrize("name", mostly_thorough(EACH_KIND, "filters_16_8_simulated", "jax_conv_08"))
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
