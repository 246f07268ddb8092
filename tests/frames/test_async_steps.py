"""The step of a program with asynchronous dispatch is the device's, as in xprof; of a synchronous one the host's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import xprof_oracle
from tests.frames.async_gpu import DISPATCH_US, AsyncProgram
from tests.frames.tables import run_of, run_with, threads
from tests.xspace_builder import event, line, meta, plane
from tfcompare.run import Run
from tfcompare.schema import STEP_PARTS


def included(run: Run):
    return run.table("steps").query("included")


@pytest.mark.parametrize("kernel_us", [2_000.0, 4_000.0])
def test_the_step_is_the_devices_and_xprofs(kernel_us: float, tmp_path: Path) -> None:
    program = AsyncProgram(kernel_us)
    file = tmp_path / "h.xplane.pb"
    file.write_bytes(program.profile())
    steps = included(run_of(program.profile()))
    assert steps["duration_us"].to_numpy() == pytest.approx(program.device_us)
    assert steps["device_span_us"].to_numpy() == pytest.approx(program.device_us)
    assert steps["host_span_us"].to_numpy() == pytest.approx(DISPATCH_US)
    assert xprof_oracle.step_table(file)["duration_us"].to_numpy() == pytest.approx(steps["duration_us"].to_numpy())
    assert steps[list(STEP_PARTS)].sum(axis=1).to_numpy() == pytest.approx(program.device_us)
    assert steps["device_compute_us"].to_numpy() == pytest.approx(5 * kernel_us)


def test_kernels_and_ops_belong_to_the_step_that_launched_them() -> None:
    program = AsyncProgram(2_000.0)
    run = run_of(program.profile())
    ops = run.table("op_steps")
    on_device = ops[ops["host_or_device"] == "Device"]
    for cells in (on_device, ops[ops["host_or_device"] == "Host"], run.table("kernel_steps")):
        assert cells.groupby("step")["occurrences"].sum().to_list() == [5] * program.steps
    for times in (
        on_device.groupby("step")["self_time_us"],
        run.table("kernel_steps").groupby("step")["total_duration_us"],
    ):
        assert times.sum().to_numpy() == pytest.approx(5 * 2_000)


def test_each_step_follows_the_rule_by_itself() -> None:
    program = AsyncProgram(2_000.0, steps=12, waits_from=6)
    steps = run_of(program.profile()).table("steps")
    assert (steps["host_span_us"] > steps["device_span_us"]).tolist() == [False] * 6 + [True] * 6
    is_host = (steps["duration_us"] == steps["host_span_us"]).to_numpy()
    # The marker of step 6 includes its kernels, and those of the five steps before: their time is not step 6's.
    assert is_host.tolist() == [False] * 6 + [False] + [True] * 5
    assert steps["host_span_us"][6] > 5 * program.device_us
    assert steps["duration_us"][6] == pytest.approx(program.device_us, rel=0.01)
    assert steps["step"].is_monotonic_increasing


def test_an_input_copy_made_ahead_does_not_begin_the_step() -> None:
    """The host runs ahead, so each step's copy is made while the device computes an earlier step."""
    without, program = AsyncProgram(2_000.0), AsyncProgram(2_000.0, copy_us=300.0)
    steps = included(run_of(program.profile()))
    assert steps["duration_us"].to_numpy() == pytest.approx(without.device_us)
    assert steps["input_us"].max() < 0.01 * program.device_us


def test_a_copy_that_the_device_waits_for_begins_the_step() -> None:
    program = AsyncProgram(20.0, steps=12, copy_us=300.0, waits_from=0)
    steps = included(run_of(program.profile()))
    assert (steps["device_span_us"] > 300).all()
    assert (steps["input_us"] > 100).all()


def test_on_tpu_cores_a_program_belongs_to_the_step_that_started_its_run() -> None:
    """A host that starts runs and waits for none, without a `Steps` line: `run_id` leads from the one to the other."""
    hosts, modules, ops = [], [], []
    fusion = meta("%fusion.1", "fusion.1", program_id=7, symbol_id=1, hlo_category="fusion", tf_op="jit(f)/dot:")
    for number in range(8):
        begin, start = 200.0 * number, 300.0 + 1_000 * number
        hosts += [
            event("train", begin, 100, step_num=number, _r=1),
            event("DoEnqueueProgram", begin + 10, 5, run_id=900 + number),
            event("CompleteCallbacks", begin + 5_000, 5, run_id=900 + number),
        ]
        modules.append(event("jit_f(7)", start, 900, run_id=900 + number))
        ops.append(event(fusion, start, 880))
    lanes = [line("XLA Modules", *modules, id=2), line("XLA Ops", *ops, id=3)]
    run = run_with(threads(hosts), plane("/device:TPU:0", *lanes))
    steps = run.table("steps")
    assert steps["duration_us"].tolist() == [900.0] * 8
    assert steps["host_span_us"].tolist() == [100.0] * 8
    assert steps["device_compute_us"].tolist() == [880.0] * 8
    cells = run.table("op_steps").query("host_or_device == 'Device'")
    assert cells["step"].tolist() == list(range(8))
    assert cells["wall_time_us"].tolist() == [880.0] * 8


def test_a_kernel_within_a_longer_step_is_not_lost_where_a_shorter_one_has_ended() -> None:
    """The device span of the first step lies in the marker of the second, which has no device events of its own."""
    host = [
        event("train", 0, 100, step_num=1, _r=1),
        event("cuLaunchKernel", 10, 5, correlation_id=1),
        event("a:A", 20, 1),
        event("train", 100, 100, step_num=2, _r=1),
        event("b:B", 101, 1),
    ]
    kernels = [event("k", 150, 6, correlation_id=1), event("lost", 160, 7, correlation_id=9)]
    run = run_with(threads(host), plane("/device:GPU:0", line("Stream #1", *kernels)))
    cells = run.table("op_steps").query("host_or_device == 'Device'")
    assert cells[["op_name", "step", "wall_time_us"]].to_numpy().tolist() == [["k", 1, 6.0], ["lost", 2, 7.0]]
