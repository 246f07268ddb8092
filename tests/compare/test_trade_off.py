"""What changes save and cost: recorded programs that recompute activations, and made-up loops of two kinds of steps
whose allocations are known."""

from __future__ import annotations

import pytest

from tests.compare.loops import loop
from tests.frames.tables import run_of
from tests.memory_runs import allocate, free
from tests.profiles import compared_runs, loaded_run
from tests.xspace_builder import Event, event, line, plane, space
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.steps.peak_memory import ALLOCATED, OF_RUN, PLANNED, peak_bytes, peak_memory_of_steps
from tfcompare.compare.steps.trade_off import DEVICE_TIME, HOST_TIME, STEP_TIME, Change, outer_scopes, trade_off
from tfcompare.comparison import compare
from tfcompare.run import Run
from tfcompare.views import answer
from tfcompare.views.steps.headline import headline

STORE, RECOMPUTE = (f"h100_{name}_activations" for name in ("store", "recompute"))
MB = 1_000_000


def pair_of(baseline: Run, candidate: Run) -> Pair:
    return pair_with(compare(baseline, candidate))


def in_turn(train_us: float, train_bytes: int, eval_us: float = 500, eval_bytes: int = 900 * MB) -> Run:
    """A loop that trains and evaluates in turn, each step with an allocation of so many bytes beside 100 MB."""
    return of_kinds([("train", train_us, train_bytes), ("eval", eval_us, eval_bytes)] * 12)


def of_kinds(steps: list[tuple[str, float, int]], held: int = 100 * MB) -> Run:
    """The run of a loop of these steps: marker, time in µs, bytes beside those `held`."""
    now = 0.0
    events: list[Event] = []
    for number, (marker, time_us, size) in enumerate(steps):
        took = time_us * (1 + 0.01 * (number * 7 % 5 - 2) / 2)
        events += [
            event(marker, now, took, _r=1, step_num=number),
            event(f"{marker}/op:MatMul", now + 1, took - 2),
            allocate(now + 2, held + size, size, bytes_available=10**10),
            free(now + 3, held, size, bytes_available=10**10),
        ]
        now += took + 1
    return run_of(space(plane("/host:CPU", line("python", *events, id=1), id=1)))


def test_a_kind_has_the_peak_of_its_own_steps_and_not_that_of_the_run() -> None:
    ours, theirs = in_turn(1000, 600 * MB), in_turn(5000, 200 * MB)
    pair = pair_of(ours, theirs)
    train, evaluate = (peak_memory_of_steps(pair, kind) for kind in ("train", "eval"))
    assert train is not None and (train.measured, train.peaks) == (ALLOCATED, (700 * MB, 300 * MB))
    assert evaluate is not None and evaluate.peaks == (1000 * MB, 1000 * MB)
    assert peak_bytes(ours, None) == peak_bytes(theirs, None) == 1000 * MB
    found = trade_off(pair)
    assert found is not None and found.kind == "train" and found.recomputed is None
    assert found.saved == Change(ALLOCATED, 700 * MB, 300 * MB)
    assert found.cost.measured == STEP_TIME and found.cost.delta == pytest.approx(4000, rel=0.01)


def test_steps_of_one_kind_have_the_peak_of_the_run() -> None:
    ours, theirs = (of_kinds([("train", time, size)] * 20) for time, size in ((1000, 600 * MB), (5000, 200 * MB)))
    found = trade_off(pair_of(ours, theirs))
    assert found is not None and (found.kind, found.saved) == ("", Change(OF_RUN, 700 * MB, 300 * MB))


def test_the_other_kind_is_found_where_the_first_has_no_trade_off() -> None:
    pair = pair_of(in_turn(9000, 600 * MB, 500, 900 * MB), in_turn(9000, 600 * MB, 4000, 300 * MB))
    found = trade_off(pair)
    assert pair.main_kind is not None and pair.main_kind.name == "train"
    assert found is not None and (found.kind, found.saved.delta) == ("eval", -600 * MB)
    assert "eval" not in " ".join(headline(pair).others), "its time is told with its memory"


def test_the_peak_of_the_run_is_said_of_no_kind() -> None:
    pair = pair_of(in_turn(1000, 600 * MB), in_turn(1000, 600 * MB, eval_bytes=500 * MB))
    said = answer.headline(pair)
    assert "peak memory of B, with steps of all kinds, is 0.700× that of A" in said and "for steps of `train`" in said


@pytest.mark.parametrize(
    ("time_us", "size"),
    [
        (5000, 900 * MB),  # more of both
        (1000, 200 * MB),  # no other time
        (5000, 570 * MB),  # 4.3 % less
    ],
)
def test_only_changes_in_opposite_directions_beyond_their_limits(time_us: float, size: int) -> None:
    assert trade_off(pair_of(in_turn(1000, 600 * MB), in_turn(time_us, size))) is None


def test_a_run_trades_nothing_for_itself() -> None:
    run = in_turn(1000, 600 * MB)
    pair = pair_of(run, run)
    assert trade_off(pair) is None and headline(pair).trade_off == ""


@pytest.mark.parametrize(("saved", "is_one"), [(15_000_000, False), (17_000_000, True)])
def test_less_memory_than_limits_any_program_is_none_to_trade(saved: int, is_one: bool) -> None:
    ours, theirs = (
        of_kinds([("train", time, size)] * 20, held=0) for time, size in ((1000, 50 * MB), (5000, 50 * MB - saved))
    )
    assert (trade_off(pair_of(ours, theirs)) is not None) == is_one


def test_host_time_is_traded_for_device_time() -> None:
    ours, theirs = (
        loop([("train", [("host/map", on_host), ("dense/dot", on_device)])] * 20, on_devices=1)
        for on_host, on_device in ((9000, 1000), (1000, 6000))
    )
    found, back = trade_off(pair_of(ours, theirs)), trade_off(pair_of(theirs, ours))
    assert found is not None and back is not None
    assert (found.saved.measured, found.cost.measured) == (HOST_TIME, DEVICE_TIME)
    assert found.saved.delta == pytest.approx(-8000, rel=0.01) and found.cost.delta == pytest.approx(5000, rel=0.01)
    assert (back.saved.measured, back.saved.delta) == (DEVICE_TIME, -found.cost.delta)


def test_a_longer_kernel_that_hides_launches_trades_nothing() -> None:
    assert trade_off(pair_with(compared_runs("gpu_filters_16_8", "gpu_filters_512_128"))) is None


def test_of_compiled_programs_it_is_the_sum_of_the_buffers_of_those_in_the_steps() -> None:
    pair = pair_with(compared_runs(STORE, RECOMPUTE))
    for kind in ("train_step", "evaluate"):
        sums = []
        for name in (STORE, RECOMPUTE):
            rows = loaded_run(name).table("hlo_memory")
            rows = rows[rows["program"].str.startswith(f"jit_{kind}(") & rows["is_live_at_peak"]]
            assert (rows["memory_space"] == 0).all()
            sums.append(rows["size_bytes"].sum())
        found = peak_memory_of_steps(pair, kind)
        assert found is not None and (found.measured, found.peaks) == (PLANNED, tuple(sums))
    assert sums[0] == sums[1], "the evaluation stores nothing"


def test_what_is_computed_again_is_why_a_program_takes_less_memory_and_more_time() -> None:
    there, back = (trade_off(pair_with(compared_runs(*names))) for names in ((STORE, RECOMPUTE), (RECOMPUTE, STORE)))
    assert there is not None and there.is_by_recomputing and there.recomputed is not None
    ours, theirs = there.recomputed
    assert (ours.count, theirs.count, theirs.scopes) == (0, 26, ("attention", "mlp"))
    rows = loaded_run(RECOMPUTE).tables.in_steps("hlo_ops")
    rows = rows[rows["is_rematerialized"]]
    assert len(rows) == 26 and theirs.time_us == pytest.approx(rows["self_time_us"].sum() / 11)
    assert back is not None and back.is_by_recomputing and back.recomputed == (theirs, ours)
    assert (back.saved.baseline, back.saved.candidate) == (there.cost.candidate, there.cost.baseline)
    assert (back.cost.baseline, back.cost.candidate) == (there.saved.candidate, there.saved.baseline)


@pytest.mark.parametrize(
    ("op_names", "expected"),
    [
        (["jit(f)/transpose(jvp(jvp()))/checkpoint/rematted_computation/mlp/mul"], ["mlp"]),
        (
            ["jit(f)/transpose(jvp(mlp))/dot_general", "jit(f)/jvp(mlp)/mul", "jit(f)/attention/mul"],
            ["mlp", "attention"],
        ),
        (["jit(f)/net/layer_0/mlp/mul", "jit(f)/net/layer_1/mlp/mul", "jit(f)/net/layer_1/x"], ["layer_1", "layer_0"]),
        (["jit(f)/mul", ""], []),
    ],
)
def test_scopes_are_the_outermost_that_differ(op_names: list[str], expected: list[str]) -> None:
    assert list(outer_scopes(op_names)) == expected
