"""What the generator writes: every kind looks like a recording, and xprof reads it and comes to the same sums."""

from __future__ import annotations

import functools
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.generate import KINDS, generate
from tests import xprof_oracle
from tfcompare.frames.steps.steps import DEVICE_LINE
from tfcompare.run import Run, load
from tfcompare.xspace import XSpace, read

KEYS = ["host_or_device", "op_name", "op_type"]
TOLERANCE = 0.001
MEGABYTES = {"tf_cpu": 0.3, "tf_gpu": 0.4, "jax_tpu": 0.4, "jax_gpu": 0.8}
TABLES_OF_ALL = ("steps", "op_stats", "op_steps", "memory_summary", "memory_timeline", "memory_peak", "input_pipeline")
OF_DEVICE = {"tf_cpu": "CPU", "tf_gpu": "GPU", "jax_tpu": "TPU"}

PROGRAMS = "jax_gpu"
"""Compiled programs only: no steps, no ops of a host, no memory."""

all_kinds = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != PROGRAMS])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("generated")


@functools.cache
def file_of(kind: str, folder: Path) -> Path:
    path = folder / f"{kind}.xplane.pb"
    generate(path, MEGABYTES[kind], kind)
    return path


@functools.cache
def run_of(kind: str, folder: Path) -> Run:
    return load(file_of(kind, folder))


@functools.cache
def space_of(kind: str, folder: Path) -> XSpace:
    return read(file_of(kind, folder)).space


@all_kinds
def test_the_same_arguments_give_the_same_bytes_of_about_the_size_asked_for(
    kind: str, folder: Path, tmp_path: Path
) -> None:
    generate(tmp_path / "again", MEGABYTES[kind], kind)
    assert (tmp_path / "again").read_bytes() == file_of(kind, folder).read_bytes()
    generate(tmp_path / "other", MEGABYTES[kind], kind, seed=2)
    assert (tmp_path / "other").read_bytes() != file_of(kind, folder).read_bytes()
    assert file_of(kind, folder).stat().st_size == pytest.approx(MEGABYTES[kind] * 1e6, rel=0.4)


@all_kinds
def test_a_file_looks_like_a_recording_and_every_tool_finds_something_in_it(kind: str, folder: Path) -> None:
    run, space = run_of(kind, folder), space_of(kind, folder)
    assert run.info.device_type == OF_DEVICE[kind]
    assert run.info.has_steps
    assert run.remarks == ()
    assert 25 < len(space.buffer) / len(space.events) < 80
    assert 1 < len(space.event_stats.owner) / len(space.events) < 7
    assert not [table for table in (*TABLES_OF_ALL, "tf_data", "tf_data_pipelines") if run.table(table).empty]
    assert run.table("kernel_stats").empty == run.table("copies").empty == (OF_DEVICE[kind] != "GPU")
    steps = run.table("steps")
    assert steps["duration_us"].nunique() == len(steps) > 1
    assert (steps["input_us"] > 0).all()
    ops = run.table("op_steps").query("op_type in ['Conv2D', 'MatMul', 'dot_general']")
    of_each = ops.groupby(["host_or_device", "op_name"])["self_time_us"].nunique()
    assert of_each.eq(len(steps)).all()
    assert len(of_each) > 1
    in_use = space.numbers("bytes_allocated")[1]
    assert len(in_use) > 100
    assert in_use.min() > 0


def test_kernels_of_a_gpu_are_those_of_the_ops_that_launched_them(folder: Path) -> None:
    run = run_of("tf_gpu", folder)
    kernels, ops = run.table("kernel_stats"), run.table("op_stats").query("host_or_device == 'Device'")
    assert set(kernels["op_name"]) <= set(ops["op_name"])
    assert kernels["is_kernel_using_tensor_core"].any()
    assert kernels["registers_per_thread"].notna().all()
    assert set(run.table("copies")["kind"]) == {"host to device", "device to host", "memory set"}
    of_step = run.table("steps")["device_compute_us"]
    assert (of_step > 0.3 * run.table("steps")["duration_us"]).all()


def test_programs_of_a_gpu_are_in_the_file_with_what_they_cost(folder: Path) -> None:
    file, rows = file_of(PROGRAMS, folder), run_of(PROGRAMS, folder).table("hlo_ops")
    assert file.stat().st_size == pytest.approx(MEGABYTES[PROGRAMS] * 1e6, rel=0.4)
    assert rows.groupby("program").size().to_dict() == {"jit_stage_0(1)": 150, "jit_stage_1(2)": 150}
    assert (rows["category"] == "loop fusion").all()
    width = rows["program"].map({"jit_stage_0(1)": 128, "jit_stage_1(2)": 256})
    assert (rows["flops"] == 4 * 1024 * width * rows["executions"]).all()


def test_ops_of_a_tpu_nest_by_the_devices_own_clock(folder: Path) -> None:
    run, space = run_of("jax_tpu", folder), space_of("jax_tpu", folder)
    assert run.info.step_source == DEVICE_LINE
    assert run.info.device_count == 4
    rows, offset = space.numbers("device_offset_ps")
    assert (offset != space.events.start_ps[rows]).all()
    loops = run.table("op_stats").query("op_type == 'while'")
    assert (loops["self_time_us"] < 0.2 * loops["total_time_us"]).all()
    assert len(loops) > 1


@all_kinds
def test_xprof_reads_it_and_gives_the_same_op_stats(kind: str, folder: Path) -> None:
    ours = _comparable(run_of(kind, folder).table("op_stats"))
    xprof = _comparable(xprof_oracle.framework_op_stats(file_of(kind, folder)))
    both = ours.merge(xprof, on=KEYS, how="outer", suffixes=("", "_xprof"), indicator=True)
    assert both["_merge"].eq("both").all()
    difference = (both["self_time_us"] - both["self_time_us_xprof"]).abs()
    assert difference.le(TOLERANCE * both["self_time_us_xprof"]).all()


def _comparable(ops: pd.DataFrame) -> pd.DataFrame:
    """Without what xprof calls idle, on a TPU by two clocks, and copies from Python, which it leaves out."""
    return ops[~ops["op_type"].isin(["IDLE", "Unknown"])]


@all_kinds
def test_the_other_tools_of_xprof_find_as_much_in_it(kind: str, folder: Path) -> None:
    file, run = file_of(kind, folder), run_of(kind, folder)
    steps = run.table("steps")
    assert len(xprof_oracle.tool_data("overview_page", file)[1]["rows"]) in (len(steps), steps["included"].sum())  # type: ignore[index]
    memory = xprof_oracle.tool_data("memory_profile", file)["memoryProfilePerAllocator"]  # type: ignore[index]
    assert set(memory) == set(run.table("memory_summary")["memory_id"])


def test_xprof_finds_the_same_kernels(folder: Path) -> None:
    kernels = xprof_oracle.tool_data("kernel_stats", file_of("tf_gpu", folder))["rows"]  # type: ignore[index]
    assert len(kernels) == len(run_of("tf_gpu", folder).table("kernel_stats"))
