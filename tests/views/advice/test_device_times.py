"""The time of each device's ops, found in one pass: a table for each would take half a minute for 1,000 planes; and the
parts of a step as each device sees them."""

from __future__ import annotations

import pytest

from tests.frames.tables import kernel, run_of, stream
from tests.xspace_builder import Plane, event, line, plane, space
from tfcompare.run import Run
from tfcompare.schema import STEP_PARTS
from tfcompare.views.advice import device_rules, facts_of


def gpu(number: int) -> Plane:
    ops = [event("k", 10 * i, number + 1, tf_op=f"op{i}:A") for i in range(3)]
    return plane(f"/device:GPU:{number}", line("Stream", *ops))


def test_they_are_those_of_each_devices_table() -> None:
    host = plane("/host:CPU", line("t", event("op:B", 0, 500)))
    run = run_of(space(host, gpu(2), gpu(0), plane("/device:GPU:1")), space(host, gpu(0)))
    for name in (None, "a", "b"):
        by_table = {d: run.table("op_stats", host=name, device=d).query("op_type != 'IDLE'") for d in run.devices}
        expected = {d: ops["self_time_us"].sum() for d, ops in by_table.items() if len(ops)}
        assert facts_of(run, name).device_us == pytest.approx(expected)
    assert facts_of(run).device_us == {"/device:GPU:0": 6.0, "/device:GPU:2": 9.0}


def exchanging(devices: int) -> Run:
    """Steps of 1 ms. The first device exchanges data for 400 µs, while the second one computes; then both compute."""
    host = [event("train", 1_000 * i, 1_000, _r=1, step_num=i) for i in range(4)]
    host += [event("cuLaunchKernel", 1_000 * i + 10, 1, correlation_id=i) for i in range(4)]
    names = (("ncclDevKernel_AllReduce", "gemm"), ("gemm", "gemm"))[:devices]
    planes = []
    for number, (first, second) in enumerate(names):
        kernels = [(first, 100, 400), (second, 500, 400)]
        events = [kernel(name, 1_000 * i + at, us, correlation_id=i) for i in range(4) for name, at, us in kernels]
        planes.append(stream(*events, device=number))
    return run_of(space(plane("/host:CPU", line("python", *host)), *planes))


def test_an_exchange_is_exposed_where_its_own_device_computes_nothing() -> None:
    found = facts_of(exchanging(2))
    assert found.part_us("device_collectives_us") == 0, "another device computes"
    assert found.device_part_us("device_collectives_us") == pytest.approx(200), "400 on one device, 0 on the other"
    advice = device_rules.collectives(found)
    assert advice is not None and advice.title == "Exchanges between devices take 20.0 % of the step"
    assert "For 200 µs of each step, on average over the devices, a device exchanges data" in advice.text


def test_of_one_device_the_parts_are_those_of_the_step() -> None:
    found = facts_of(exchanging(1))
    parts = {part: found.part_us(part) for part in STEP_PARTS}
    assert found.device_parts == pytest.approx(parts) and parts["device_collectives_us"] == pytest.approx(400)
