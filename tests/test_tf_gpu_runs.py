"""The runs of TensorFlow on a GPU that are written by hand: xprof reads from them what tfcompare does."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests import xprof_oracle
from tests.frames.tables import kernel_stats
from tests.profiles import compared_runs, loaded_run, run_path
from tests.tf_gpu_runs import FILTERS, STEPS, training_step
from tfcompare import schema
from tfcompare.frames.planes import device_planes, device_rows, host_plane
from tfcompare.frames.steps import groups as grouping
from tfcompare.frames.steps.step_sources import find_steps
from tfcompare.xspace import read

each_run = pytest.mark.parametrize("name", FILTERS)


def file_of(name: str) -> Path:
    (path,) = run_path(name).glob("plugins/profile/*/*.xplane.pb")
    return path


@cache
def xprofs(tool: str, name: str, table: int | None = None) -> pd.DataFrame:
    found: Any = xprof_oracle.tool_data(tool, file_of(name))
    found = found if table is None else found[table]
    ids = [column["id"] for column in found["cols"]]
    return pd.DataFrame([[cell["v"] for cell in row["c"]] for row in found["rows"]], columns=ids)


@each_run
def test_device_compute_is_what_the_kernels_were_written_to_take(name: str) -> None:
    written = sum(work.us for op in training_step(*FILTERS[name]) for work in op.work if not work.copied)
    steps = loaded_run(name).table("steps")
    assert (len(steps), steps["included"].sum()) == (STEPS, STEPS - 2)
    assert steps.query("included")["device_compute_us"].to_numpy() == pytest.approx(written, rel=0.011)


@each_run
def test_steps_and_device_compute_are_xprofs(name: str) -> None:
    """To xprof, compute and copies are one on a GPU, and everything else is "other"."""
    ours, xprof = loaded_run(name).table("steps").query("included"), xprof_oracle.step_table(file_of(name))
    assert xprof["duration_us"].to_numpy() == pytest.approx(ours["device_span_us"].to_numpy(), rel=1e-6)
    parts = xprofs("overview_page", name, 1)
    both = ours[["device_compute_us", "input_us", "output_us"]].sum(axis=1) / 1000
    assert parts["deviceComputeTimeMs"].mean() <= both.mean()
    assert parts["deviceComputeTimeMs"].mean() == pytest.approx(
        ours["device_compute_us"].mean() / 1000 + 0.25, abs=0.02
    )
    others = {"hostComputeTimeMs", "kernelLaunchTimeMs", "infeedTimeMs", "outfeedTimeMs", "deviceToDeviceTimeMs"}
    assert not parts[list(others)].to_numpy().any()


@each_run
def test_kernels_belong_to_the_step_that_launched_them(name: str) -> None:
    xspace = read(file_of(name)).space
    steps = find_steps(xspace, grouping.group_events(xspace, grouping.make_links(xspace), None))
    (device,), host = device_planes(xspace), host_plane(xspace)
    assert host is not None
    on_device = device_rows(xspace)
    rows, ids = xspace.numbers("correlation_id")
    call = dict(zip(ids[rows < device.events.start].tolist(), rows[rows < device.events.start].tolist(), strict=True))
    launched_in = [steps.of_event[call[i]] for i in ids[np.isin(rows, on_device)].tolist()]
    assert np.isin(on_device, rows).all(), "every event on a stream has a call"
    assert steps.of_event[rows[np.isin(rows, on_device)]].tolist() == launched_in
    assert np.bincount(launched_in).tolist() == [len(on_device) // STEPS] * STEPS


@each_run
def test_ops_are_xprofs(name: str) -> None:
    """xprof cannot name copies, and counts an allocation for an op as an occurrence."""
    keys = ["host_or_device", "op_name", "op_type"]
    ours, xprof = loaded_run(name).table("op_stats"), xprof_oracle.framework_op_stats(file_of(name))
    rows = ours.merge(xprof, on=keys, how="outer", suffixes=("", "_xprof"), indicator=True)
    rows = rows[rows["op_type"] != schema.IDLE]
    unnamed = rows[rows["_merge"] != "both"]
    assert set(zip(unnamed["host_or_device"], unnamed["op_name"], strict=True)) == {
        (schema.DEVICE, "MemcpyH2D"),
        (schema.DEVICE, "MemcpyD2H"),
    }
    both = rows[rows["_merge"] == "both"]
    assert len(both) > 100
    for metric in ("self_time_us", "total_time_us"):
        assert both[metric].to_numpy() == pytest.approx(both[f"{metric}_xprof"].to_numpy(), rel=1e-6)
    on_device = both[both["host_or_device"] == schema.DEVICE]
    assert (on_device["occurrences"] == on_device["occurrences_xprof"]).all()
    assert (on_device["occurrences"] % STEPS == 0).all()


@each_run
def test_kernels_are_xprofs(name: str) -> None:
    """But for shared memory, which xprof does not read from AMD's details."""
    ours, xprof = kernel_stats(read(file_of(name)).space, "localhost"), xprofs("kernel_stats", name)
    keys = ["kernel_name", "op_name", "block_dim", "grid_dim"]
    both = ours.merge(xprof, on=keys, how="outer", suffixes=("", "_xprof"), indicator=True)
    assert (both["_merge"] == "both").all()
    assert len(both) == len(ours) == len(xprof) > 50
    for column in ("occurrences", "is_op_tensor_core_eligible", "is_kernel_using_tensor_core"):
        assert (both[column] == both[f"{column}_xprof"]).all()
    for column in ("total_duration_us", "avg_duration_us", "min_duration_us", "max_duration_us"):
        assert both[column].to_numpy() == pytest.approx(both[f"{column}_xprof"].to_numpy(), abs=0.001)
    assert both["shared_memory_bytes"].max() > 0


def test_wide_convolutions_use_matrix_cores_and_narrow_ones_do_not() -> None:
    wide, narrow = (loaded_run(name).table("kernel_stats") for name in FILTERS)
    assert wide["is_kernel_using_tensor_core"].sum() == 14
    assert not narrow["is_kernel_using_tensor_core"].any()


def test_the_same_ops_ran_in_both() -> None:
    diff = compared_runs(*FILTERS).table("op_stats")
    assert (diff["status"] == "matched").all()
    assert (diff["match"] == "exact").all()
