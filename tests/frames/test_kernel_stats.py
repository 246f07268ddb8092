"""`kernel_stats`: against xprof's on every GPU profile at hand, and by hand on tiny ones."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from tests.frames.gpu_kernels import gpu, kernel, stream, xprof_kernels
from tests.frames.tables import kernel_stats
from tests.profiles import run_path
from tests.xspace_builder import Plane, Value, chunk, event, line, meta, plane, space
from tfcompare.frames.ops.kernel_details import KernelDetails, parse_kernel_details
from tfcompare.frames.planes import events_of_lines
from tfcompare.schema.kernels import KERNEL_STATS
from tfcompare.xspace import read

GPU_RUNS = ["tf_gpu", "jax_elementwise", "jax_conv_08", "jax_conv_legacy"]
OTHER_RUNS = ["tf_cpu_base", "jax_tpu", "filters_16_8"]
LAUNCH = ["kernel_name", "block_dim", "grid_dim"]
TIMES = ["total_duration_us", "avg_duration_us", "min_duration_us", "max_duration_us"]
TOLERANCE = 0.001
GARBAGE = 1024
"""More registers than any GPU has."""


def files_of(name: str) -> list[Path]:
    return sorted(run_path(name).rglob("*.xplane.pb"))


def our_kernels(name: str) -> pd.DataFrame:
    return pd.concat([kernel_stats(read(file).space, file.name) for file in files_of(name)], ignore_index=True)


def with_ops_of(ours: pd.DataFrame, xprof: pd.DataFrame) -> pd.DataFrame:
    """Our rows, those put together whose op xprof does not know."""
    key = [*LAUNCH, "op_name"]
    is_known = pd.MultiIndex.from_frame(ours[key]).isin(pd.MultiIndex.from_frame(xprof[key]))
    rows = ours.assign(op_name=ours["op_name"].where(is_known, ""), registers=ours["registers_per_thread"].fillna(0))
    out = rows.groupby(["host", *key, "registers"], as_index=False).agg(
        occurrences=("occurrences", "sum"),
        total_duration_us=("total_duration_us", "sum"),
        min_duration_us=("min_duration_us", "min"),
        max_duration_us=("max_duration_us", "max"),
        is_op_tensor_core_eligible=("is_op_tensor_core_eligible", "any"),
        is_kernel_using_tensor_core=("is_kernel_using_tensor_core", "any"),
    )
    return out.assign(avg_duration_us=out["total_duration_us"] / out["occurrences"])


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values([*LAUNCH, "op_name", "registers", "occurrences"], ignore_index=True)


@pytest.mark.parametrize("name", GPU_RUNS)
def test_rows_are_xprofs(name: str) -> None:
    """Names, dimensions, registers, occurrences, times and flags; each host adds rows of its own."""
    xprof = xprof_kernels(*files_of(name))
    registers = xprof["registers_per_thread"].where(xprof["registers_per_thread"] <= GARBAGE, 0)
    expected = in_order(xprof.assign(registers=registers))
    found = in_order(with_ops_of(our_kernels(name), xprof))
    same = [*LAUNCH, "op_name", "registers", "occurrences", "is_kernel_using_tensor_core"]
    pd.testing.assert_frame_equal(found[same], expected[same], check_dtype=False)
    is_named = expected["op_name"] != ""
    eligible = found["is_op_tensor_core_eligible"]
    assert (eligible == expected["is_op_tensor_core_eligible"])[is_named].all()
    for time in TIMES:
        assert ((found[time] - expected[time]).abs() <= TOLERANCE * expected[time]).all()


@pytest.mark.parametrize("name", GPU_RUNS)
def test_the_longest_kernels_come_first_as_in_xprof(name: str) -> None:
    for file in files_of(name)[:1]:
        ours, xprof = kernel_stats(read(file).space, "h"), xprof_kernels(file)
        assert ours["total_duration_us"].is_monotonic_decreasing
        if len(ours) == len(xprof):
            assert ours["kernel_name"].to_list() == xprof["kernel_name"].to_list()


@pytest.mark.parametrize("name", GPU_RUNS)
def test_a_row_is_told_by_its_keys_and_its_times_fit_together(name: str) -> None:
    ours = our_kernels(name)
    assert not ours[list(KERNEL_STATS.keys)].duplicated().any()
    assert {c: str(t) for c, t in ours.dtypes.items()} == {c.name: c.dtype for c in KERNEL_STATS.columns}
    assert (ours["min_duration_us"] <= ours["avg_duration_us"] * (1 + 1e-12)).all()
    assert (ours["avg_duration_us"] <= ours["max_duration_us"] * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", OTHER_RUNS)
def test_a_profile_without_gpu_has_no_rows(name: str) -> None:
    ours = kernel_stats(read(files_of(name)[0]).space, "h")
    assert ours.empty
    assert list(ours.columns) == KERNEL_STATS.column_names


# What ours knows and xprof does not


def test_ops_of_old_files_are_those_on_their_derived_line() -> None:
    """xprof 2.24 names none of them; the file itself, of 2020, has a line that does."""
    file = files_of("tf_gpu")[0]
    assert set(xprof_kernels(file)["op_name"]) == {""}
    profile = read(file).space
    rows = events_of_lines(profile, [i for i, name in enumerate(profile.lines.name) if name == "TensorFlow Ops"])
    derived = pd.DataFrame(
        {"op": profile.metadata_names[profile.events.metadata[rows]], "us": profile.events.duration_ps[rows] / 1e6}
    )
    expected = derived.assign(op=derived["op"].str.partition(":")[0]).groupby("op")["us"].sum()
    ours = kernel_stats(profile, "h").groupby("op_name")["total_duration_us"].sum()
    pd.testing.assert_series_equal(ours, expected, check_names=False)


def test_ops_of_fusions_are_those_that_xla_wrote_beside_them() -> None:
    """The HLO instruction of a fusion often names no op, and xprof goes by nothing else. Of the ops in a fusion, XLA
    writes the last one beside it."""
    file = files_of("jax_elementwise")[0]
    xprof, ours = xprof_kernels(file), kernel_stats(read(file).space, "h")
    known = set(ours["op_name"]) - set(xprof["op_name"])
    annotated = {"jit(add)/add", "jit(sin)/sin", "jit(cos)/cos", "jit(multiply)/mul", "jit(relu)/max"}
    assert known == annotated | {"jit(_std)/sqrt", "jit(subtract)/sub", "jit(true_divide)/div"}
    fusions = set(ours.loc[ours["op_name"].isin(known), "kernel_name"])
    assert all("fusion" in kernel for kernel in fusions)
    assert set(ours.loc[ours["op_name"].isin(annotated), "kernel_name"]) == {"loop_convert_fusion.kd"}


def test_shared_memory_of_amd_kernels_is_their_group_memory() -> None:
    file = files_of("jax_conv_08")[0]
    assert set(xprof_kernels(file)["shared_memory_bytes"]) == {0}
    ours = kernel_stats(read(file).space, "h")
    assert dict(zip(ours["kernel_name"].str[:24], ours["shared_memory_bytes"], strict=True)) == {
        "input_transpose_fusion.k": 8192,
        "Cijk_Ailk_Bljk_BBS_BH_MT": 49280,
        "Im3d2Col.kd": 0,
        "__amd_rocclr_copyBuffer.": 0,
        "input_transpose_fusion_1": 2112,
        "loop_transpose_fusion.kd": 0,
    }


def test_an_address_in_place_of_registers_is_no_number_of_registers() -> None:
    """Old AMD profilers never filled the fields in: read together they are addresses that lie close to each other."""
    file = files_of("jax_conv_legacy")[0]
    xprof = xprof_kernels(file)
    addresses = 2**32 * xprof["shared_memory_bytes"] + xprof["registers_per_thread"]
    assert {hex(address)[:10] for address in addresses} == {"0x7ece829f"}
    ours = kernel_stats(read(file).space, "h")
    assert ours["registers_per_thread"].isna().all()
    assert ours["shared_memory_bytes"].isna().all()


# Tiny profiles


def test_runs_of_a_kernel_add_up_over_streams_and_devices() -> None:
    named: dict[str, Value] = {"tf_op": "net/dense/MatMul:MatMul"}
    first = plane(
        "/device:GPU:0",
        line("Stream #7(Compute)", kernel("gemm", 0, 3, **named), kernel("relu", 5, 4, tf_op="net/Relu:Relu"), id=7),
        line("Stream #8(Compute)", kernel("gemm", 1, 1.5, **named), id=8),
    )
    frame = kernel_stats(gpu(first, stream(kernel("gemm", 2, 6, **named), device=1)), "worker")
    columns = ["host", "kernel_name", "op_name", "occurrences", *TIMES]
    assert frame[columns].to_numpy().tolist() == [
        ["worker", "gemm", "net/dense/MatMul", 3, 10.5, 3.5, 1.5, 6.0],
        ["worker", "relu", "net/Relu", 1, 4.0, 4.0, 4.0, 4.0],
    ]


def test_a_kernel_launched_in_another_way_or_for_another_op_is_another_row() -> None:
    frame = kernel_stats(
        gpu(
            stream(
                kernel("k", 0, 1),
                kernel("k", 2, 1, tf_op="a:A"),
                kernel("k", 4, 1, "regs:17 grid:2,1,1 block:64,1,1"),
                kernel("k", 6, 1, "regs:16 grid:3,1,1 block:64,1,1"),
                kernel("k", 8, 1, "regs:16 grid:2,1,1 block:64,2,1"),
                kernel("k", 10, 1, "regs:16 static_shared:8 dynamic_shared:8 grid:2,1,1 block:64,1,1"),
                kernel("k", 12, 1, "regs:16 dynamic_shared:16 grid:2,1,1 block:64,1,1"),
            )
        ),
        "h",
    )
    assert sorted(frame["occurrences"]) == [1, 1, 1, 1, 1, 2]
    assert not frame[list(KERNEL_STATS.keys)].duplicated().any()


def test_what_tells_no_launch_took_no_time_or_was_derived_is_no_kernel() -> None:
    frame = kernel_stats(
        gpu(
            plane(
                "/device:GPU:0",
                line(
                    "Stream #7",
                    kernel("k", 0, 1),
                    kernel("none", 2, 0),
                    kernel("empty", 3, 1, ""),
                    event("MemcpyH2D", 5, 1),
                ),
                line("TensorFlow Ops", kernel("derived", 0, 1), id=-559038734),
            ),
            plane("/host:CPU", line("thread", kernel("launch", 0, 1))),
        ),
        "h",
    )
    assert frame["kernel_name"].to_list() == ["k"]


def test_kernels_of_amd_that_copy_stay_kernels() -> None:
    frame = kernel_stats(
        gpu(stream(kernel("__amd_rocclr_copyBuffer", 0, 1), kernel("__amd_rocclr_fillBuffer", 2, 1))), "h"
    )
    assert len(frame) == 2


def hlo_module(program: int, *instructions: tuple[str, str]) -> Plane:
    """A metadata plane with an `HloProto` whose instructions are (name, op name)."""
    messages = [chunk(2, chunk(1, name) + (chunk(7, chunk(2, op)) if op else b"")) for name, op in instructions]
    proto = chunk(1, chunk(3, b"".join(messages)))
    module = meta("jit_f", "", {"Hlo Proto": proto})
    return plane("/host:metadata", line("", event(module, 0, 0)), ids={"jit_f": program})


@pytest.mark.parametrize(
    ("stats", "expected"),
    [
        ({}, ""),
        ({"tf_op": "net/Relu:Relu"}, "net/Relu"),
        ({"tf_op": "net/Relu:Relu", "annotation": "net/Add:Add"}, "net/Relu"),
        ({"annotation": "net/Add:Add#shape=(float[2])#::net/Mul:Mul"}, "net/Add"),
        ({"annotation": "no op", "level 0": "net/Sub:Sub"}, "net/Sub"),
        ({"annotation": "no op"}, ""),
        ({"hlo_op": "dot.1", "program_id": 5, "tf_op": "XlaModule:", "name": "x"}, "jit(f)/dot_general"),
        ({"hlo_op": "call::fusion.2", "program_id": 5, "tf_op": "XlaModule:", "name": "jit(f)/add"}, "jit(f)/add"),
        ({"hlo_op": "fusion.2", "program_id": 5, "tf_op": "XlaModule:"}, ""),
        ({"hlo_op": "dot.1", "program_id": 6, "tf_op": "XlaModule:", "name": "jit(g)/dot"}, "jit(g)/dot"),
        ({"hlo_op": "dot.1", "program_id": 6, "tf_op": "XlaModule:"}, ""),
    ],
)
def test_the_op_is_named_by_the_first_that_knows_it(stats: dict[str, Value], expected: str) -> None:
    module = hlo_module(5, ("dot.1", "jit(f)/dot_general"), ("fusion.2", ""))
    frame = kernel_stats(gpu(module, stream(kernel("k", 0, 1, **stats))), "h")
    assert frame["op_name"].to_list() == [expected]


DETAILS = {
    "regs:16 shm:12 grid:160,1,1 block:1024,1,1": KernelDetails("1024,1,1", "160,1,1", 16, 12),
    "regs:32\nstatic_shared:1\ndynamic_shared:16384\ngrid:3,2,1\nblock:64,1,1\nocc_pct:25.0": KernelDetails(
        "64,1,1", "3,2,1", 32, 16385
    ),
    " grid:16,1,1 block:512,1,1 private_mem:4 group_mem:2112 occ_pct:0": KernelDetails(
        "512,1,1", "16,1,1", None, 2112
    ),
    "regs:2191500840 static_shared:32462 dynamic_shared:0 grid:16,1,1 block:512,1,1": KernelDetails(
        "512,1,1", "16,1,1", None, None
    ),
    "regs:255 grid:02,1,1": KernelDetails("1,1,1", "2,1,1", 255, None),
    "regs:16 regs:18": KernelDetails("1,1,1", "1,1,1", 18, None),
    "regs:-1 grid:1,2 block:1,2,3,4": KernelDetails("1,1,1", "1,1,1", None, None),
    "regs:1:2 grid:a,b,c block:-1,1,1": KernelDetails("1,1,1", "1,1,1", None, None),
    "regs:99999999999999999999999 static_shared:4294967296": KernelDetails("1,1,1", "1,1,1", None, None),
    "nothing of use": KernelDetails("1,1,1", "1,1,1", None, None),
}  # fmt: skip


@pytest.mark.parametrize("details", DETAILS)
def test_details_are_read_in_every_dialect(details: str) -> None:
    assert parse_kernel_details(details) == DETAILS[details]


def test_details_are_read_as_xprof_reads_them(tmp_path: Path) -> None:
    """But for `shm`, `group_mem` and garbage; what is not told is 0 in xprof."""
    file = tmp_path / "h.xplane.pb"
    file.write_bytes(space(stream(*(kernel(str(i), 4 * i, 1, details) for i, details in enumerate(DETAILS)))))
    xprof = xprof_kernels(file).set_index("kernel_name")
    ours = kernel_stats(read(file).space, "h").set_index("kernel_name").loc[xprof.index]
    assert ours["block_dim"].to_list() == xprof["block_dim"].to_list()
    assert ours["grid_dim"].to_list() == xprof["grid_dim"].to_list()
    is_like_xprof = [not re.search("shm|group_mem|2191500840", list(DETAILS)[int(name)]) for name in xprof.index]
    for column in ("registers_per_thread", "shared_memory_bytes"):
        assert ours.loc[is_like_xprof, column].fillna(0).to_list() == xprof.loc[is_like_xprof, column].to_list()


def test_the_order_of_events_does_not_matter() -> None:
    events = [kernel("k", 0, 1), kernel("k", 2, 2, tf_op="a:A"), kernel("l", 5, 2), kernel("k", 8, 1)]
    assert kernel_stats(gpu(stream(*events)), "h").equals(kernel_stats(gpu(stream(*events[::-1])), "h"))
