"""FLOPs, bytes and roofs of the ops in `op_stats`, from the instructions that they were compiled to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests import xprof_oracle
from tests.frames.tables import host, run_of, run_with, thorough_but
from tests.frames.test_hlo_ops import BYTES, FLOPS, gpu, kernel, metadata, tpu
from tests.profiles import loaded_run, run_path
from tests.xspace_builder import Event, Meta, Plane, event, meta, space
from tfcompare import schema

COSTS = ["flops", "bytes_accessed", "flops_per_s", "bandwidth_bytes_per_s", "operational_intensity"]


def ops_of(*planes: Plane) -> pd.DataFrame:
    return run_with(*planes).table("op_stats").set_index("op_name")


def dots(*kernels: Event) -> pd.DataFrame:
    """The ops of a GPU with these kernels, and of a program."""
    return ops_of(gpu(*kernels), metadata(jit_f=7))


def test_an_op_costs_what_its_instructions_cost() -> None:
    row = dots(kernel("Cijk", 0, 40, "dot.1"), kernel("Cijk", 50, 60, "dot.1")).loc["jit(f)/dot"]
    assert (row["flops"], row["bytes_accessed"], row["total_time_us"]) == (2 * FLOPS, 2 * BYTES, 100)
    assert row["flops_per_s"] == pytest.approx(2 * FLOPS / 100e-6)
    assert row["bandwidth_bytes_per_s"] == pytest.approx(2 * BYTES / 100e-6)
    assert row["operational_intensity"] == pytest.approx(FLOPS / BYTES)
    assert row["bound_by"] == "compute"


def test_an_instruction_without_an_op_is_an_op_of_its_own() -> None:
    row = dots(kernel("k", 0, 10, "negate.remat")).loc["negate.remat"]
    assert (row["flops"], row["bound_by"]) == (1024 * 4096, "memory")


def test_the_devices_of_a_run_are_summed() -> None:
    planes = [gpu(kernel("Cijk", 0, 40, "dot.1"), number=number) for number in (0, 1)]
    run = run_with(*planes, metadata(jit_f=7))
    row = run.table("op_stats").set_index("op_name").loc["jit(f)/dot"]
    assert (row["flops"], row["total_time_us"]) == (2 * FLOPS, 80)
    one = run.table("op_stats", device="/device:GPU:1").set_index("op_name").loc["jit(f)/dot"]
    assert one["total_time_us"] == 40
    assert one[COSTS].isna().all()  # instructions are not known by device
    two_hosts = run_of(*[space(planes[0], metadata(jit_f=7))] * 2).table("op_stats").set_index("op_name")
    assert two_hosts.loc["jit(f)/dot", "flops"] == 2 * FLOPS


def test_an_op_that_also_runs_outside_of_instructions_has_no_costs() -> None:
    row = dots(kernel("Cijk", 0, 40, "dot.1"), event("memset", 100, 5, tf_op="jit(f)/dot:dot")).loc["jit(f)/dot"]
    assert row["total_time_us"] == 45
    assert row[COSTS].isna().all()
    assert row["bound_by"] == ""


def test_costs_are_missing_not_zero_without_programs() -> None:
    rows = ops_of(host(event("a:MatMul", 0, 5)))
    assert list(rows.index) == ["a", schema.IDLE]
    assert rows[COSTS].isna().all(axis=None)
    assert set(rows["bound_by"]) == {""}


def tpu_op(name: str, op: str, category: str = "fusion", **stats: int) -> Meta:
    known = {"hlo_category": category, "program_id": 7, "symbol_id": 4, "tf_op": f"{op}:"}
    return meta(f"%{name}", name, known | stats)


def test_roofs_of_an_op_of_several_instructions() -> None:
    """100 GFLOP at 918 TFLOP/s take 0.109 ms, as much as 178 MB at 1,638 GB/s: what takes longer bounds the op."""
    dense, reads = tpu_op("a", "f", flops=10**11, bytes_accessed=10**6), tpu_op("b", "f", flops=0, bytes_accessed=10**8)
    row = ops_of(tpu(event(dense, 0, 200), event(reads, 200, 100)), metadata(jit_f=7)).loc["f"]
    assert (row["flops"], row["bytes_accessed"], row["bound_by"]) == (10**11, 101 * 10**6, "compute")
    assert row["flops_per_s"] == pytest.approx(10**11 / 300e-6)
    more = tpu_op("b", "f", flops=0, bytes_accessed=2 * 10**8)
    assert ops_of(tpu(event(dense, 0, 200), event(more, 200, 100)), metadata(jit_f=7)).loc["f", "bound_by"] == "memory"


def test_an_op_with_an_instruction_of_unknown_cost_has_no_costs() -> None:
    known, unknown = tpu_op("a", "f", flops=10, bytes_accessed=10), tpu_op("b", "f", flops=10)
    row = ops_of(tpu(event(known, 0, 20), event(unknown, 20, 10)), metadata(jit_f=7)).loc["f"]
    assert row["flops"] == 20
    assert row[["bytes_accessed", "bandwidth_bytes_per_s", "operational_intensity"]].isna().all()
    assert row["bound_by"] == ""


def test_an_asynchronous_transfer_has_no_rates() -> None:
    start = tpu_op("copy-start.1", "f", "copy-start", flops=0, bytes_accessed=1000)
    row = ops_of(tpu(event(start, 0, 20)), metadata(jit_f=7)).loc["f"]
    assert row["bytes_accessed"] == 1000
    assert row[["flops_per_s", "bandwidth_bytes_per_s", "operational_intensity"]].isna().all()


def both(name: str) -> pd.DataFrame:
    ours = loaded_run(name).table("op_stats").query("host_or_device == 'Device' and op_type != 'IDLE'")
    (file,) = run_path(name).rglob("*.xplane.pb")
    table = xprof_oracle.tool_data("framework_op_stats", file)[0]  # type: ignore[index]
    rows = [[cell["v"] for cell in row["c"]] for row in table["rows"]]
    theirs = pd.DataFrame(rows, columns=[column["id"] for column in table["cols"]])
    theirs = theirs[theirs["host_or_device"] == "Device"].set_index("operation")
    return ours.set_index("op_name").merge(
        theirs, left_index=True, right_index=True, suffixes=("", "_xprof"), validate="one_to_one"
    )


def test_on_a_tpu_the_rates_are_xprofs() -> None:
    rows = both("jax_tpu")
    timed = rows[rows["flops_per_s"].notna()]
    assert set(timed["op_type"]) == {"add", "reduce_sum", "broadcast_in_dim"}
    assert (timed["flops_per_s"] / 1e9).to_numpy() == pytest.approx(timed["measured_flop_rate"].to_numpy())
    measured = timed["measured_memory_bw"] * 2**30
    assert timed["bandwidth_bytes_per_s"].to_numpy() == pytest.approx(measured.to_numpy(), rel=1e-6)
    assert timed["operational_intensity"].to_numpy() == pytest.approx(timed["operational_intensity_xprof"].to_numpy())
    assert (set(timed["bound_by"]), set(timed["bound_by_xprof"])) == ({"memory"}, {"HBM"})
    waits = rows[rows["flops_per_s"].isna()]  # xprof gives a rate for the moments in which copies start and end
    assert waits.index.str.match(r"copy-(start|done)").all()


@pytest.mark.parametrize("name", thorough_but(["jax_elementwise", "jax_conv_08", "jax_conv_legacy"]))
def test_on_a_gpu_the_bandwidth_is_xprofs_but_where_it_counts_kernels_as_executions(name: str) -> None:
    rows = both(name)
    one_kernel = rows[rows["op_type"] != "conv_general_dilated"]
    assert len(one_kernel) >= 2
    measured = one_kernel["measured_memory_bw"] * 2**30
    assert one_kernel["bandwidth_bytes_per_s"].to_numpy() == pytest.approx(measured.to_numpy(), rel=1e-6)
    assert (set(rows["bound_by"]), set(rows["bound_by_xprof"])) == ({"memory"}, {"HBM"})
    twice = rows[rows["op_type"] == "conv_general_dilated"]
    rate = (twice["measured_flop_rate"] * 1e9).to_numpy()
    assert rate == pytest.approx(2 * twice["flops_per_s"].to_numpy(), rel=0.05)
    assert np.isfinite(rows["operational_intensity"]).all()
