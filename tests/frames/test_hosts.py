"""The table of hosts: steps on each device of each host."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frames.tables import lines, rows, run_of, run_with, threads
from tests.profiles import loaded_run
from tests.xspace_builder import Event, event, line, plane, space
from tfcompare import schema
from tfcompare.errors import Unknown

PARTS = list(schema.STEP_PARTS)
SKEWS = ("host", "device", "step", "duration_us", "busy_us", "collectives_us", "skew_us", "busy_skew_us")


def step(number: int, start: float, length: float, waits: float) -> list[Event]:
    """A step that computes first and waits in a collective at its end."""
    return [
        event("train", start, length, step_num=number, _r=1),
        event("layer:MatMul", start, length - waits, _ct=1, _c=number),
        event("sum:CollectiveReduceV2", start + length - waits, waits),
    ]


def worker(*steps: tuple[int, float, float, float]) -> bytes:
    return space(threads([*(one for each in steps for one in step(*each))]))


def test_skews_are_distances_from_the_median_of_the_same_step() -> None:
    fast, slow = worker((0, 0, 100, 40), (1, 100, 110, 60)), worker((0, 0, 100, 10), (1, 100, 100, 0.5))
    run = run_of(fast, slow, fast)
    assert rows(run.table("hosts"), *SKEWS) == lines("""
        a /host:CPU 0 100 60   40  0  0
        a /host:CPU 1 110 50   60  0  0
        b /host:CPU 0 100 90   10  0  30
        b /host:CPU 1 100 99.5 0.5 -10 49.5
        c /host:CPU 0 100 60   40  0  0
        c /host:CPU 1 110 50   60  0  0
    """)
    chosen = run.table("hosts", host="b")
    assert chosen["busy_skew_us"].tolist() == [30, 49.5], "the other hosts still count when one is chosen"


def test_steps_that_hosts_number_differently_are_joined_by_position() -> None:
    run = run_of(worker((0, 0, 100, 40), (1, 100, 100, 40)), worker((70, 0, 100, 20), (71, 100, 100, 30)))
    assert run.table("hosts")["busy_skew_us"].tolist() == [-10, -5, 10, 5]


def test_each_device_has_the_parts_that_the_step_would_have_without_the_others() -> None:
    host = threads([event("train", 0, 100, step_num=0, _r=1), event("a:A", 0, 100)])
    devices = [
        plane(f"/device:GPU:{number}", line("Stream #1(Compute)", *kernels, id=1))
        for number, kernels in enumerate(([event("k", 10, 20), event("nccl", 30, 40)], [event("k", 20, 50)]))
    ]
    run = run_with(host, *devices)
    table = run.table("hosts")
    columns = ("device", "duration_us", "busy_us", "device_compute_us", "device_collectives_us")
    assert rows(table, *columns) == ["/device:GPU:0 100 60 20 40", "/device:GPU:1 100 100 50 0"]
    assert run.table("steps")["device_compute_us"].tolist() == [60], "a host computes while any of its devices does"
    assert run.table("hosts", device="/device:GPU:1")["device"].tolist() == ["/device:GPU:1"]
    with pytest.raises(Unknown, match="GPU:7"):
        run.table("hosts", device="/device:GPU:7")


def test_a_profile_without_steps_has_no_rows() -> None:
    assert run_with(threads([event("a:A", 0, 5)])).table("hosts").empty


def test_cores_that_keep_arrays_on_the_host_compute_hardly_and_wait_for_copies() -> None:
    """As the self times of their ops tell, some of which reach beyond the steps that they belong to."""
    run = loaded_run("jax_tpu")
    of_devices = run.table("hosts").groupby("device")[["duration_us", "device_compute_us", "device_waits_us"]].sum()
    ops = run.table("op_steps")
    is_wait = ops["op_name"].str.startswith("copy-done")
    computing_us, waiting_us = (float(ops.loc[chosen, "self_time_us"].sum()) for chosen in (~is_wait, is_wait))
    assert of_devices["device_compute_us"].sum() == pytest.approx(computing_us, rel=0.03)
    assert of_devices["device_waits_us"].sum() == pytest.approx(waiting_us, rel=0.03)
    assert (of_devices["device_compute_us"] / of_devices["duration_us"]).between(0.028, 0.032).all()


@pytest.mark.parametrize("name", ["filters_16_8", "tf_gpu", "jax_conv_legacy", "jax_tpu", "workers_slow_input"])
def test_rows_agree_with_the_steps_of_every_profile(name: str) -> None:
    run = loaded_run(name)
    table, steps = run.table("hosts"), run.table("steps")
    assert np.allclose(table[PARTS].sum(axis=1), table["duration_us"], rtol=1e-12, atol=1e-6)
    assert np.allclose(table["busy_us"] + table["collectives_us"], table["duration_us"], rtol=1e-12, atol=1e-6)
    for host, of_host in steps.groupby("host"):
        own = table[table["host"] == host]
        of_each = [rows.reset_index(drop=True) for _, rows in own.groupby("device")]
        for rows_of_device in of_each:
            assert rows_of_device["step"].tolist() == of_host["step"].tolist()
            assert rows_of_device["duration_us"].tolist() == of_host["duration_us"].tolist()
        computing = np.array([rows_of_device["device_compute_us"] for rows_of_device in of_each])
        total = of_host["device_compute_us"].to_numpy()
        assert (computing.max(axis=0) <= total + 1e-6).all()
        assert (total <= computing.sum(axis=0) + 1e-6).all()
        if len(of_each) == 1:
            assert np.array_equal(of_each[0][PARTS], of_host[PARTS])
