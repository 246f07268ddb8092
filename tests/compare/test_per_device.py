"""Equal work on other numbers of devices and hosts, whose truth is known: per device, and per host, nothing changed."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from tests.checked import checked
from tests.frames.tables import kernel, run_of, threads
from tests.xspace_builder import Event, Plane, event, line, plane, space
from tfcompare.compare.check.conditions import parse_condition
from tfcompare.compare.diff import ADDED, MATCHED, REMOVED, SUMS_OF
from tfcompare.compare.pairs import pairs_of
from tfcompare.comparison import Comparison, compare
from tfcompare.run import Run
from tfcompare.schema import ALL_HOSTS, HOST, OF_EACH, TABLES
from tfcompare.views.candidates.figures import side_by_side

STEPS, PERIOD_US = 20, 1_000.0
MATMUL_US, RELU_US, COPY_US, DECODE_US = 300.0, 200.0, 50.0, 80.0


def program(devices: int, hosts: int = 1, *, matmul_us: float = MATMUL_US, relu: bool = True) -> Run:
    """A step of two kernels and a copy on each device, and of an op on each host."""
    of_host = [_host(), *(_device(i, matmul_us, relu) for i in range(devices))]
    return run_of(*(space(*of_host, hostnames=[f"h{i}"]) for i in range(hosts)))


def _host(*, launches: bool = True) -> Plane:
    events: list[Event] = []
    for i in range(STEPS):
        at = i * PERIOD_US
        events += [
            event("train", at, 900, _r=1, step_num=i),
            event("loader/Decode:DecodeJpeg", at + 10, DECODE_US),
        ]
        events += [event("cuLaunchKernel", at + 100, 1, {"correlation_id": i + 1})] if launches else []
    return threads(events)


def _device(number: int, matmul_us: float, relu: bool) -> Plane:
    events: list[Event] = []
    for i in range(STEPS):
        at, launch = i * PERIOD_US + 110, {"correlation_id": i + 1}
        events.append(kernel("gemm", at, matmul_us, tf_op="dense/MatMul:MatMul", **launch))
        if relu:
            events.append(kernel("relu", at + matmul_us, RELU_US, tf_op="act/Relu:Relu", **launch))
        size = {"memcpy_details": "kind:MEMCPY_D2D size:1024 dest:0 async:1"} | launch
        events.append(event("MemcpyD2D", at + matmul_us + RELU_US, COPY_US, size))
    return plane(f"/device:GPU:{number}", line("Stream #1", *events, id=number + 7))


def by_op(comparison: Comparison, name: str = "op_stats") -> pd.DataFrame:
    rows = comparison.table(name)
    return rows[~rows["op_type"].isin(["IDLE", "Unknown"])].set_index("op_type") if name == "op_stats" else rows


@pytest.mark.parametrize(("baseline", "candidate"), [((1, 1), (4, 1)), ((4, 1), (2, 3)), ((2, 1), (2, 2))])
def test_equal_work_on_each_device_is_no_change(baseline: Any, candidate: Any) -> None:
    comparison = compare(program(*baseline), program(*candidate))
    for name in OF_EACH:
        rows = comparison.table(name)
        if name == "op_stats":
            rows = rows[rows["op_type"] != "IDLE"]
        sums = [f"{column.name}_per_step_ratio" for column in TABLES[name].metrics if column.kind == "sum"]
        known = [column for column in sums if rows[column].notna().any()]
        assert set(rows["status"]) <= {MATCHED}
        assert (rows[known].fillna(1.0).to_numpy("float64") == pytest.approx(1.0)) or not len(rows)
        assert not set(rows["verdict"]) & {"slower", "faster"}
    ops = by_op(comparison)
    assert ops[SUMS_OF].to_dict() == {"MatMul": "device", "Relu": "device", "DecodeJpeg": "host"}
    assert ops["self_time_us_per_step_baseline"].to_dict() == pytest.approx(
        {"MatMul": MATMUL_US, "Relu": RELU_US, "DecodeJpeg": DECODE_US}
    )
    kernels = comparison.table("kernel_stats").set_index("kernel_name")
    assert kernels["total_duration_us_per_step_candidate"].to_dict() == pytest.approx(
        {"gemm": MATMUL_US, "relu": RELU_US}
    )
    (copies,) = comparison.table("copies").to_dict("records")
    assert (copies["device"], copies["duration_us_per_step_candidate"]) == (ALL_HOSTS, pytest.approx(COPY_US))
    assert [comparison.per_what, pairs_of(comparison)[0].per_on(HOST)] == ["step and device", "step and host"]
    (note,) = [note for note in comparison.notes if "per device" in note]
    for run, (devices, hosts) in zip(comparison.runs, (baseline, candidate), strict=True):
        of_hosts = f" of {hosts} host{'s' * (hosts > 1)}" * (max(baseline[1], candidate[1]) > 1)
        assert f"{run.name} on {devices * hosts} device{'s' * (devices * hosts > 1)}{of_hosts}" in note


@pytest.mark.parametrize("candidate", [(4, 1), (2, 2)])
def test_a_change_on_each_device_has_its_ratio_verdict_and_mirror(candidate: tuple[int, int]) -> None:
    runs = program(1), program(*candidate, matmul_us=2 * MATMUL_US, relu=False)
    there, back = (by_op(compare(*pair)) for pair in (runs, runs[::-1]))
    matmul = there.loc["MatMul"]
    assert matmul["self_time_us_per_step_delta"] == pytest.approx(MATMUL_US)
    assert (matmul["verdict"], matmul["interval_low"] < 2 < matmul["interval_high"]) == ("slower", True)
    assert back.loc["MatMul", "interval_low"] == pytest.approx(1 / matmul["interval_high"])
    assert (there.loc["Relu", "status"], back.loc["Relu", "status"]) == (REMOVED, ADDED)
    assert back.loc["Relu", "self_time_us_per_step_delta"] == pytest.approx(RELU_US)
    kernels = compare(*runs).table("kernel_stats").set_index("kernel_name")
    assert kernels.loc["gemm", "total_duration_us_per_step_ratio"] == pytest.approx(2)
    assert kernels.loc["gemm", "verdict"] == "slower"


def test_conditions_are_per_device() -> None:
    conditions = list(
        map(parse_condition, ["op:*MatMul*>+5%", "kernel:gemm>+5%", "kernel_launches>+5%", "op:Decode*>+5%"])
    )
    alike = checked(program(1), program(2, 2), conditions)
    assert [one.outcome for one in alike.found] == ["passed"] * 4
    slower = checked(program(2, 2), program(1, matmul_us=2 * MATMUL_US), conditions[:2])
    assert [one.outcome for one in slower.found] == ["failed"] * 2


def test_sums_are_of_all_where_both_ran_on_as_many() -> None:
    comparison = compare(program(2, 2), program(2, 2, matmul_us=2 * MATMUL_US))
    ops = by_op(comparison)
    assert (comparison.of_each, comparison.per_what, set(ops[SUMS_OF])) == ("", "step", {"all"})
    assert ops.loc["MatMul", "self_time_us_per_step_baseline"] == pytest.approx(4 * MATMUL_US)
    assert set(comparison.table("kernel_stats")["host"]) == {"a", "b"}


def test_per_run_is_per_device_where_their_numbers_differ() -> None:
    comparison = compare(program(1), program(4), per="run")
    matmul = by_op(comparison).loc["MatMul"]
    assert (comparison.per, matmul["self_time_us_per_device_candidate"]) == ("device", pytest.approx(STEPS * MATMUL_US))
    assert matmul["interval_low"] < 1 < matmul["interval_high"]


def test_a_run_without_devices_is_on_none_and_its_ops_are_of_its_host() -> None:
    comparison = compare(run_of(space(_host(launches=False), hostnames=["h"])), program(4))
    (note,) = [note for note in comparison.notes if "given per device" in note]
    assert f"{comparison.baseline.name} on no devices, " in note and " on 4 devices" in note
    ops = by_op(comparison)
    assert ops.loc["DecodeJpeg", "self_time_us_per_step_ratio"] == pytest.approx(1)
    assert ops.loc["MatMul", "self_time_us_per_step_candidate"] == pytest.approx(MATMUL_US)


def test_hosts_alone_are_told_per_host() -> None:
    one, two = (run_of(*[space(_host(launches=False), hostnames=[f"h{i}"]) for i in range(hosts)]) for hosts in (1, 2))
    comparison = compare(one, two)
    (pair,) = pairs_of(comparison)
    assert (comparison.per_what, pair.per_on(HOST), set(by_op(comparison)[SUMS_OF])) == ("step and host",) * 2 + (
        {"host"},
    )
    assert by_op(comparison).loc["DecodeJpeg", "self_time_us_per_step_ratio"] == pytest.approx(1)
    assert compare(one, one, per="device").per_what == "host"


def test_idle_time_is_of_each_recorded_device() -> None:
    """Three of four devices only copied."""
    copying = [
        plane(f"/device:GPU:{i}", line("Stream #1", event("MemcpyD2D", i, COPY_US), id=i + 7)) for i in (1, 2, 3)
    ]
    busy = _device(0, MATMUL_US, relu=True)
    comparison = compare(run_of(space(_host(), busy, *copying)), program(2))
    (note,) = [note for note in comparison.notes if "given per device" in note]
    assert "on 1 of 4 devices, " in note
    rows = comparison.table("op_stats")
    idle = rows[(rows["op_type"] == "IDLE") & (rows["host_or_device"] == "Device")]
    assert idle["self_time_us_per_step_baseline"].item() < PERIOD_US


@pytest.mark.parametrize("of_baseline", [False, True])
def test_replicates_on_one_side_alone_are_per_step_as_the_other(of_baseline: bool) -> None:
    one, again = program(1), program(1, matmul_us=1.01 * MATMUL_US)
    other = program(1, matmul_us=2 * MATMUL_US)
    runs = (one, other) if of_baseline else (other, one)
    matmul = by_op(compare(*runs, repeats={one.id: [again]})).loc["MatMul"]
    sides = ("baseline", "candidate") if of_baseline else ("candidate", "baseline")
    times = [matmul[f"self_time_us_per_step_{side}"] for side in sides]
    assert times == pytest.approx([1.005 * MATMUL_US, 2 * MATMUL_US])
    assert not pd.isna(matmul["evidence"])


def test_rows_of_all_runs_are_of_the_same_hosts() -> None:
    comparison = compare(program(1), program(2), program(2, 2))
    kernels = side_by_side(comparison, "kernel_stats").set_index("kernel_name")
    assert kernels.loc["gemm", ["value_0", "value_1", "value_2"]].tolist() == pytest.approx([MATMUL_US] * 3)
    assert len(kernels) == 2
