"""How much of what a device could do a step uses, of profiles written by hand whose truth follows from their shapes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from tests import xprof_oracle
from tests.frames.test_hlo_ops import BODY, BYTES, FLOPS, gpu, kernel, metadata
from tests.hlo.builder import BF16, computation, instruction, program
from tests.profiles import compared_runs
from tests.xspace_builder import Plane, event, integer, line, meta, plane, space
from tfcompare import load
from tfcompare.compare.check.conditions import FAILED, MISSING, PASSED, check, parse_condition
from tfcompare.compare.pairs import pair_with, pairs_of
from tfcompare.compare.utilization import duty_cycle, time_at_peak_us
from tfcompare.comparison import Comparison, compare
from tfcompare.run import Run
from tfcompare.views.key_figures import KeyFigure
from tfcompare.views.steps.attribution import attribution_of
from tfcompare.views.steps.dashboard import dashboard

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


def test_flops_are_counted_per_step_and_unknown_where_costs_are(tmp_path: Path) -> None:
    one, two = (training(tmp_path / str(ops), 100, ops=("dot.1",) * ops) for ops in (2, 3))
    both_devices = training(tmp_path / "devices", 100, ops=("dot.1", "dot.1"), devices=2)
    conditions = [parse_condition(text) for text in ("flops>+49%", f"flops<={2 * FLOPS}", f"flops<={3 * FLOPS}")]
    found = check(compare(one, two), conditions).found
    assert [each.outcome for each in found] == [FAILED, PASSED, FAILED]
    assert (found[0].measured.baseline, found[0].candidate) == pytest.approx((2 * FLOPS, 3 * FLOPS))
    (mirrored,) = check(compare(two, one), [parse_condition("flops<-33%")]).found
    assert mirrored.outcome == FAILED
    (per_device,) = check(compare(one, both_devices), [parse_condition("flops>+0%")]).found
    assert (per_device.outcome, per_device.measured.verdict.ratio) == (PASSED, 1.0), "of each device"
    lacking = training(tmp_path / "lacking", 100, ops=("dot.1", "unknown.9"))
    for baseline, outcome, who in ((lacking, MISSING, "neither run"), (one, "untested", "the candidate")):
        (unknown,) = check(compare(baseline, lacking), [parse_condition("flops>+0%")]).found
        assert unknown.outcome == outcome
        assert unknown.reason.startswith(who) and unknown.reason.endswith("50.0 % of the device time has no known cost")


def test_unknown_costs_make_it_unknown(tmp_path: Path) -> None:
    lacking = training(tmp_path, 100, ops=("dot.1", "unknown.9"))
    assert math.isnan(time_at_peak_us(lacking, None, "flops"))
    (found,) = check(compare(lacking, lacking), [parse_condition("mfu<0.1")]).found
    assert (found.outcome, found.reason.rpartition(": ")[2]) == (MISSING, "50.0 % of the device time has no known cost")


def test_a_condition_fails_where_the_step_became_longer_for_certain(tmp_path: Path) -> None:
    fast, slow = training(tmp_path / "fast", 50), training(tmp_path / "slow", 150)
    conditions = [parse_condition(text) for text in ("mfu<-5%", "mfu<0.12", "hbm_share<0.0001", "mfu>+5%")]
    there, back = compare(fast, slow), compare(slow, fast)
    found = check(there, conditions).found
    assert [one.outcome for one in found] == [FAILED, FAILED, PASSED, PASSED]
    assert found[0].measured.verdict.ratio == pytest.approx(1 / 3)
    (mirrored,) = check(back, conditions[:1]).found
    assert found[0].measured.verdict.low == pytest.approx(1 / mirrored.measured.verdict.high)


def figures_of(comparison: Comparison) -> dict[str, KeyFigure]:
    (pair,) = pairs_of(comparison)
    return {
        figure.label: figure
        for figure in dashboard(pair_with(comparison, pair.candidate.id), attribution_of(pair).parts)
    }


def test_the_overview_has_the_same_numbers(tmp_path: Path) -> None:
    comparison = compare(training(tmp_path / "busy", 50), training(tmp_path / "idle", 100))
    figures = figures_of(comparison)
    for label, metric in (("FLOP utilization", "mfu"), ("Memory bandwidth", "hbm_share")):
        figure = figures[label]
        measured = check(comparison, [parse_condition(f"{metric}>2")]).found[0].measured
        assert (figure.baseline, figure.candidate) == pytest.approx((measured.baseline, measured.candidate))
    efficiency = figures["Roofline efficiency"]
    assert efficiency.baseline == efficiency.candidate == pytest.approx(max(FLOPS_US, BYTES_US) / 10)


def test_the_duty_cycle_is_of_the_time_from_first_to_last_event_with_steps_and_without(tmp_path: Path) -> None:
    timed = training(tmp_path / "timed", 50)
    chip = gpu(*(kernel("k", 200 * i, 10, "dot.1") for i in range(STEPS)))
    bare = run(tmp_path / "bare", chip, metadata(WITH_UNKNOWN, jit_f=7))
    duty = figures_of(compare(timed, bare))["Device duty cycle"]
    assert duty.baseline == duty.candidate == pytest.approx(STEPS * 10 / (200 * (STEPS - 1) + 10))
    on_cpu = run(tmp_path / "cpu", steps(50))
    assert "Device duty cycle" not in figures_of(compare(on_cpu, on_cpu))


def test_streams_that_overlap_count_once_and_copies_from_and_to_the_host_not(tmp_path: Path) -> None:
    kernels = [event("k", 0, 30), event("k", 100, 20)]
    others = [event("k", 20, 30), event("MemcpyH2D", 60, 10), event("MemcpyD2D", 75, 5), event("MemcpyD2H", 120, 80)]
    streams = line("Stream #1(Compute)", *kernels, id=1), line("Stream #2(Compute,Memcpy)", *others, id=2)
    found = run(tmp_path / "a", plane("/device:GPU:0", *streams))
    assert duty_cycle(found, None) == pytest.approx((50 + 5 + 20) / 200)


def tpu_core(number: int, *instructions: tuple[str, float, float], module_us: float) -> Plane:
    """A core that runs instructions, given by category, start and length, within one execution of a module."""
    ops = [
        event(meta(f"%{name}.{i}", "", program_id=1, symbol_id=1 + i, tf_op="op:A", hlo_category=name), start, length)
        for i, (name, start, length) in enumerate(instructions)
    ]
    modules = line("XLA Modules", event("jit_f(1)", 0, module_us), id=1)
    return plane(f"/device:TPU:{number}", modules, line("XLA Ops", *ops, id=2))


def test_the_duty_cycle_of_tpus_is_xprofs(tmp_path: Path) -> None:
    """Of two chips with time before, between and after their instructions, some of which are off duty."""
    off = ["infeed", "outfeed", "host send-done", "host recv", "async-done", "megacore fusion"]
    off_duty = [(name, 200 + 30 * i, 20) for i, name in enumerate(off)]
    first = tpu_core(0, ("convolution", 50, 70), ("while", 110, 40), ("copy-start", 170, 10), *off_duty, module_us=500)
    second = tpu_core(1, ("all-reduce", 100, 30), ("infeed fusion", 150, 40), module_us=600)
    found = run(tmp_path / "a", first, second)
    assert duty_cycle(found, None) == pytest.approx((100 + 10 + 30 + 40) / (500 + 600))
    (file,) = found.found.files
    shown = xprof_oracle.tool_data("overview_page", file.path)[0]["p"]["device_duty_cycle_percent"]  # type: ignore[index]
    assert shown == f"{duty_cycle(found, None):.1%}"


def test_a_tpu_that_waits_is_not_busy_nor_is_the_loop_around_the_wait(tmp_path: Path) -> None:
    """xprof leaves out `async-done` alone, and counts loops as a whole."""
    loop = ("while", 0, 100), ("convolution", 10, 20), ("copy-done", 30, 50)
    waiting = tpu_core(0, *loop, ("recv-done", 150, 40), ("async-done", 200, 40), module_us=300)
    waits = line("XLA TraceMe", event("barrier-cores", 250, 150), id=3)
    found = run(tmp_path / "a", replace(waiting, contents=(*waiting.contents, waits)))
    assert duty_cycle(found, None) == pytest.approx(50 / 300)
    (file,) = found.found.files
    shown = xprof_oracle.tool_data("overview_page", file.path)[0]["p"]["device_duty_cycle_percent"]  # type: ignore[index]
    assert shown == f"{140 / 300:.1%}"


@pytest.mark.parametrize("name", ["jax_filters_16_8", "filters_16_8"])
def test_without_a_known_peak_or_programs_it_is_missing_and_no_card(name: str) -> None:
    (found,) = check(compared_runs(name, name), [parse_condition("mfu<0.5")]).found
    assert found.outcome == MISSING and "peak is known" in found.reason


def test_a_real_gpu_uses_less_than_its_peak_and_the_larger_model_more_of_it() -> None:
    (found,) = check(compared_runs("h100_512_128", "h100_16_8"), [parse_condition("mfu<-50%")]).found
    assert 0 < found.measured.candidate < found.measured.baseline < 1
    assert found.outcome == FAILED
