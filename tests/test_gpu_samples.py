"""The simulated GPU pair: what was published for this example, said the same by xprof and by tfcompare."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests import xprof_oracle
from tests.frames.tables import kernel_stats
from tests.protobufs import messages
from tests.published import PUBLISHED
from tfcompare import schema
from tfcompare.comparison import compare
from tfcompare.frames.planes import device_planes, device_rows, host_plane
from tfcompare.frames.steps import groups as grouping
from tfcompare.frames.steps.step_sources import find_steps
from tfcompare.run import Run, load
from tfcompare.xspace import read

SAMPLES = Path(__file__).parents[1] / "sample_logs"
SIMULATED = SAMPLES / "autoencoder_gpu_simulated"
STEPS = 21


LOGDIRS = list(PUBLISHED)
each_run = pytest.mark.parametrize("logdir", LOGDIRS)


def sample(logdir: str) -> Path:
    (path,) = (SIMULATED / logdir).glob("plugins/profile/*/*.xplane.pb")
    return path


@cache
def run(logdir: str) -> Run:
    return load(SIMULATED / logdir)


@cache
def space(logdir: str) -> Any:
    return messages("tsl.profiler.protobuf.xplane_pb2").XSpace.FromString(sample(logdir).read_bytes())


# What the files are


@pytest.mark.thorough
def test_simulating_them_again_gives_the_same_bytes(tmp_path: Path) -> None:
    command = [sys.executable, str(SIMULATED / "simulate.py"), "--out", str(tmp_path)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    written = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {sample(logdir).relative_to(SIMULATED): sample(logdir).read_bytes() for logdir in LOGDIRS}


@each_run
def test_sample_is_small(logdir: str) -> None:
    assert sample(logdir).stat().st_size < 1_500_000


@each_run
def test_sample_says_that_it_is_simulated(logdir: str) -> None:
    assert logdir.endswith("_simulated")
    assert list(space(logdir).hostnames) == ["simulated"]
    (warning,) = space(logdir).warnings
    assert warning.startswith("simulated: ")
    assert run(logdir).info.warnings == warning
    assert run(logdir).info.host_names == "simulated"


@each_run
def test_readme_tells_of_every_sample(logdir: str) -> None:
    assert f"`{logdir}`" in (SAMPLES / "README.md").read_text(encoding="utf-8")


# Steps and their parts


@each_run
def test_steps_take_what_was_published(logdir: str) -> None:
    info = run(logdir).info
    assert (info.device_type, info.device_count, info.step_source) == ("GPU", 1, "step markers")
    assert (info.step_count, info.steps_included) == (STEPS, STEPS - 2)
    assert info.step_time_ms_mean == pytest.approx(PUBLISHED[logdir].step, rel=1e-4)
    assert info.step_time_ms_median == pytest.approx(PUBLISHED[logdir].step, rel=0.02)


@each_run
def test_steps_differ_by_a_few_percent(logdir: str) -> None:
    steps = run(logdir).steps.query("included")["duration_us"]
    assert 0.01 < steps.std() / steps.mean() < 0.06
    assert steps.is_unique


@each_run
def test_xprof_sees_the_same_steps(logdir: str) -> None:
    ours = run(logdir).steps.query("included")["duration_us"].to_numpy()
    xprof = xprof_oracle.step_table(sample(logdir))
    assert xprof["step"].to_list() == [str(n) for n in range(1, STEPS - 1)], "on GPU it counts them instead"
    assert xprof["duration_us"].to_numpy() == pytest.approx(ours, rel=0.005)  # theirs lack the host's first and last µs
    assert xprof["duration_us"].mean() / 1000 == pytest.approx(PUBLISHED[logdir].step, rel=0.01)


@each_run
def test_device_compute_of_xprof_is_compute_and_copies(logdir: str) -> None:
    table = xprof_oracle.tool_data("overview_page", sample(logdir))[1]  # type: ignore[index]
    ids = [column["id"] for column in table["cols"]]
    steps = pd.DataFrame([[cell["v"] for cell in row["c"]] for row in table["rows"]], columns=ids)
    published = PUBLISHED[logdir]
    assert steps["deviceComputeTimeMs"].mean() == pytest.approx(published.compute + published.copies, rel=0.05)
    others = {"hostComputeTimeMs", "kernelLaunchTimeMs", "infeedTimeMs", "outfeedTimeMs", "deviceToDeviceTimeMs"}
    assert not steps[list(others)].to_numpy().any(), "xprof shows no other part on GPU"


# Ops and kernels


@each_run
def test_kernels_belong_to_the_step_that_launched_them(logdir: str) -> None:
    xspace = read(sample(logdir).resolve()).space
    links = grouping.make_links(xspace)
    steps = find_steps(xspace, grouping.group_events(xspace, links, None))
    (device,), host = device_planes(xspace), host_plane(xspace)
    assert host is not None
    on_device = device_rows(xspace)
    rows, ids = xspace.numbers("correlation_id")
    call = dict(zip(ids[rows < device.first_event].tolist(), rows[rows < device.first_event].tolist(), strict=True))
    launched_in = [steps.of_event[call[i]] for i in ids[np.isin(rows, on_device)].tolist()]
    assert np.isin(on_device, rows).all(), "every event on a stream has a call"
    assert steps.of_event[rows[np.isin(rows, on_device)]].tolist() == launched_in
    assert np.bincount(launched_in).tolist() == [len(on_device) // STEPS] * STEPS


@each_run
def test_shares_of_ops_are_those_published(logdir: str) -> None:
    ops = run(logdir).table("op_stats").query("host_or_device == 'Device' and op_type != 'IDLE'")
    shares = ops.groupby("op_type")["self_time_us"].sum() / ops["self_time_us"].sum()
    for op_type, share in PUBLISHED[logdir].shares.items():
        assert shares[op_type] == pytest.approx(share, abs=0.01)


@each_run
def test_ops_are_xprofs(logdir: str) -> None:
    """xprof cannot name copies and ops that Python asks for, and counts an allocation for an op as an occurrence."""
    keys = ["host_or_device", "op_name", "op_type"]
    ours, xprof = run(logdir).table("op_stats"), xprof_oracle.framework_op_stats(sample(logdir))
    rows = ours.merge(xprof, on=keys, how="outer", suffixes=("", "_xprof"), indicator=True)
    rows = rows[rows["op_type"] != schema.IDLE]
    unnamed = rows[rows["_merge"] != "both"]
    assert set(zip(unnamed["host_or_device"], unnamed["op_name"], strict=True)) == {
        (schema.DEVICE, "MemcpyH2D"),
        (schema.DEVICE, "MemcpyD2H"),
        (schema.HOST, "EagerLocalExecute: _EagerConst"),
    }
    both = rows[rows["_merge"] == "both"]
    assert len(both) > 500
    for metric in ("self_time_us", "total_time_us"):
        assert both[metric].to_numpy() == pytest.approx(both[f"{metric}_xprof"].to_numpy(), rel=1e-6)
    assert (both["is_eager"] == (both["eager"] == "Eager")).all()
    on_device = both[both["host_or_device"] == schema.DEVICE]
    assert (on_device["occurrences"] == on_device["occurrences_xprof"]).all()
    assert (on_device["occurrences"] % STEPS == 0).all()


@each_run
def test_kernels_are_xprofs(logdir: str) -> None:
    """But for shared memory, which xprof does not read from AMD's details."""
    table: Any = xprof_oracle.tool_data("kernel_stats", sample(logdir))
    ids = [column["id"] for column in table["cols"]]
    xprof = pd.DataFrame([[cell["v"] for cell in row["c"]] for row in table["rows"]], columns=ids)
    ours = kernel_stats(read(sample(logdir)).space, "simulated")
    keys = ["kernel_name", "op_name", "block_dim", "grid_dim"]
    both = ours.merge(xprof, on=keys, how="outer", suffixes=("", "_xprof"), indicator=True)
    assert (both["_merge"] == "both").all()
    assert len(both) == len(ours) == len(xprof) > 200
    for column in ("occurrences", "is_op_tensor_core_eligible", "is_kernel_using_tensor_core"):
        assert (both[column] == both[f"{column}_xprof"]).all()
    for column in ("total_duration_us", "avg_duration_us", "min_duration_us", "max_duration_us"):
        assert both[column].to_numpy() == pytest.approx(both[f"{column}_xprof"].to_numpy(), abs=0.001)
    assert both["shared_memory_bytes"].max() > 0


def test_wide_convolutions_use_matrix_cores_and_narrow_ones_do_not() -> None:
    wide, narrow = (kernel_stats(read(sample(logdir)).space, "simulated") for logdir in LOGDIRS)
    assert wide["is_kernel_using_tensor_core"].sum() == 14
    assert not narrow["is_kernel_using_tensor_core"].any()


def test_the_same_ops_ran_in_both() -> None:
    diff = compare(run(LOGDIRS[0]), run(LOGDIRS[1])).table("op_stats")
    assert (diff["status"] == "matched").all()
    assert (diff["match"] == "exact").all()
