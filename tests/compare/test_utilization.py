"""How much of what a device could do a step uses, of profiles written by hand whose truth follows from their shapes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.frames.test_hlo_ops import BODY, BYTES, FLOPS, gpu, kernel, metadata
from tests.hlo.builder import BF16, computation, instruction, program
from tests.profiles import compared_runs
from tests.xspace_builder import Plane, event, integer, line, plane, space
from tfcompare import load
from tfcompare.charts.pair import pairs_of
from tfcompare.compare import Comparison, compare
from tfcompare.compare.check.conditions import FAILED, MISSING, PASSED, check, parse_condition
from tfcompare.compare.utilization import time_at_peak_us
from tfcompare.run import Run
from tfcompare.tools.key_figures import KeyFigure
from tfcompare.tools.overview import dashboard

PEAK_FLOPS, PEAK_BYTES = 304 * 2048 * 2.1e9, 5.3e12  # of `gpu`, an MI300X
STEPS = 20
WITH_UNKNOWN = program(
    computation(2, instruction("unknown.9", "custom-call", BF16[8])), BODY, name="jit_f", others=integer(6, 1)
)
FLOPS_US, BYTES_US = FLOPS / PEAK_FLOPS * 1e6, BYTES / PEAK_BYTES * 1e6


def steps(length_us: float, begin: float = 0) -> Plane:
    markers = [event("train", begin + 200 * i, length_us, _r=1, step_num=i) for i in range(STEPS)]
    calls = [event("dispatch:XlaRun", begin + 200 * i + 1, 5) for i in range(STEPS)]
    return plane("/host:CPU", line("python", *markers, *calls))


def run(folder: Path, *planes: Plane) -> Run:
    place = folder / "logs" / "plugins" / "profile" / "run"
    place.mkdir(parents=True)
    (place / "vm.xplane.pb").write_bytes(space(*planes))
    return load(place)


def training(folder: Path, step_us: float, *, ops: tuple[str, ...] = ("dot.1",), devices: int = 1) -> Run:
    """A run whose every step runs these instructions on each device, for 10 µs each."""
    chips = [
        gpu(*(kernel("k", 200 * i + 11 * at, 10, op) for i in range(STEPS) for at, op in enumerate(ops)), number=number)
        for number in range(devices)
    ]
    return run(folder, steps(step_us), *chips, metadata(WITH_UNKNOWN, jit_f=7))


def test_work_outside_of_the_steps_is_in_no_figure_per_step(tmp_path: Path) -> None:
    """Warm-up before the first step, as long as all steps together."""
    warm_up = [kernel("k", 200 * i, 10, "dot.1") for i in range(STEPS)]
    in_steps = [kernel("k", 10_000 + 200 * i, 10, "dot.1") for i in range(STEPS)]
    warm = run(tmp_path / "warm", steps(100, begin=10_000), gpu(*warm_up, *in_steps), metadata(WITH_UNKNOWN, jit_f=7))
    plain = training(tmp_path / "plain", 100)
    assert shares(warm) == pytest.approx(shares(plain))
    assert warm.table("hlo_ops")["executions"].sum() == 2 * STEPS
    (row,) = compare(warm, warm).table("hlo_ops").to_dict("records")
    assert row["self_time_us_per_step_baseline"] == pytest.approx(10)
    assert row["executions_per_step_baseline"] == 1
    assert row["flops_per_step_baseline"] == pytest.approx(FLOPS)
    (per_run,) = compare(warm, warm, per="run").table("hlo_ops").to_dict("records")
    assert per_run["self_time_us_baseline"] == pytest.approx(2 * STEPS * 10)


def shares(run: Run) -> list[float]:
    """Of the peaks of FLOPs and of bandwidth."""
    conditions = [parse_condition(f"{metric}>2") for metric in ("mfu", "hbm_share")]
    return [found.measured.candidate for found in check(compare(run, run), conditions).found]


def test_shares_follow_from_shapes_and_the_data_sheet(tmp_path: Path) -> None:
    one = training(tmp_path / "one", 100)
    assert time_at_peak_us(one, None, "flops") == pytest.approx(FLOPS_US)
    assert shares(one) == pytest.approx([FLOPS_US / 100, BYTES_US / 100])
    four = training(tmp_path / "four", 50, devices=4)
    assert shares(four)[0] == pytest.approx(FLOPS_US / 50), "each device does as much as it did alone"


def test_what_only_recomputes_a_value_is_no_model_flop_but_moves_bytes(tmp_path: Path) -> None:
    again = training(tmp_path, 100, ops=("dot.1", "negate.remat"))
    of_flops, of_bytes = shares(again)
    assert of_flops == pytest.approx(FLOPS_US / 100)
    assert of_bytes > BYTES_US / 100


def test_unknown_costs_make_it_unknown(tmp_path: Path) -> None:
    assert math.isnan(time_at_peak_us(training(tmp_path, 100, ops=("dot.1", "unknown.9")), None, "flops"))


def test_a_condition_fails_where_the_step_became_longer_for_certain(tmp_path: Path) -> None:
    fast, slow = training(tmp_path / "fast", 50), training(tmp_path / "slow", 150)
    conditions = [parse_condition(text) for text in ("mfu<-5%", "mfu<0.1", "hbm_share<0.0001", "mfu>+5%")]
    there, back = compare(fast, slow), compare(slow, fast)
    found = check(there, conditions).found
    assert [one.outcome for one in found] == [FAILED, FAILED, PASSED, PASSED]
    assert found[0].measured.verdict.ratio == pytest.approx(1 / 3)
    (mirrored,) = check(back, conditions[:1]).found
    assert found[0].measured.verdict.low == pytest.approx(1 / mirrored.measured.verdict.high)


def figures_of(comparison: Comparison) -> dict[str, KeyFigure]:
    (pair,) = pairs_of(comparison)
    return {figure.label: figure for figure in dashboard(comparison, pair.candidate, pair.attribution.parts)}


def test_the_overview_has_the_same_numbers_and_idle_time_lowers_the_duty_cycle_alone(tmp_path: Path) -> None:
    comparison = compare(training(tmp_path / "busy", 50), training(tmp_path / "idle", 100))
    figures = figures_of(comparison)
    for label, metric in (("FLOP utilization", "mfu"), ("Memory bandwidth", "hbm_share")):
        figure = figures[label]
        measured = check(comparison, [parse_condition(f"{metric}>2")]).found[0].measured
        assert (figure.baseline, figure.candidate) == pytest.approx((measured.baseline, measured.candidate))
    duty, efficiency = figures["Device duty cycle"], figures["Roofline efficiency"]
    assert (duty.baseline, duty.candidate) == pytest.approx((10 / 50, 10 / 100))
    assert efficiency.baseline == efficiency.candidate == pytest.approx(max(FLOPS_US, BYTES_US) / 10)


def test_a_run_without_steps_beside_one_with_them_has_no_duty_cycle_whichever_comes_first(tmp_path: Path) -> None:
    timed = training(tmp_path / "timed", 50)
    chip = gpu(*(kernel("k", 200 * i, 10, "dot.1") for i in range(STEPS)))
    bare = run(tmp_path / "bare", chip, metadata(WITH_UNKNOWN, jit_f=7))
    for runs in ((timed, bare), (bare, timed)):
        duty = figures_of(compare(*runs))["Device duty cycle"]
        of_steps, other = (duty.baseline, duty.candidate)[:: 1 if runs[0] is timed else -1]
        assert 0 < of_steps < 1 and math.isnan(other)


@pytest.mark.parametrize("name", ["jax_filters_16_8", "filters_16_8"])
def test_without_a_known_peak_or_programs_it_is_missing_and_no_card(name: str) -> None:
    (found,) = check(compared_runs(name, name), [parse_condition("mfu<0.5")]).found
    assert found.outcome == MISSING and "peak is known" in found.reason


def test_a_real_gpu_uses_less_than_its_peak_and_the_larger_model_more_of_it() -> None:
    (found,) = check(compared_runs("h100_512_128", "h100_16_8"), [parse_condition("mfu<-50%")]).found
    assert 0 < found.measured.candidate < found.measured.baseline < 1
    assert found.outcome == FAILED
