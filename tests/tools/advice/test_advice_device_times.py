"""The time of each device's ops, found in one pass: a table for each would take half a minute for 1,000 planes."""

from __future__ import annotations

import pytest

from tests.frames.tables import run_of
from tests.xspace_builder import Plane, event, line, plane, space
from tfcompare.tools.advice import facts_of


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
