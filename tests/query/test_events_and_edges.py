"""`spans` and `hlo_edges`: one value for each quantity, nothing where nothing was recorded, and bounded in size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pytest

from tests.frames.tables import run_of, run_with
from tests.hlo.builder import F32, S32, computation, instruction, metadata, parameter, program, shapes
from tests.profiles import loaded_run
from tests.xspace_builder import event, line, plane, space
from tfcompare import schema
from tfcompare.errors import TfcompareError
from tfcompare.frames.arrow import host_table
from tfcompare.query.asking import ask
from tfcompare.query.tables import RunTables
from tfcompare.run import Run
from tfcompare.tables import run_tables
from tfcompare.xspace.limits import Limits

KINDS = ("filters_512_128", "gpu_filters_16_8", "h100_16_8", "h100_no_command_buffers", "jax_filters_128_32")
KINDS = (*KINDS, "tensorflow_filters_128_32", "workers_slow_input")
COMPILED = KINDS[2:-1]


def rows(sql: str, run: Run) -> pd.DataFrame:
    return ask(sql, RunTables.of([run])).named()


def sums(sql: str, run: Run, keys: Sequence[str]) -> dict[object, float]:
    found: dict[object, float] = rows(sql, run).set_index(list(keys)).iloc[:, 0].to_dict()
    return found


@pytest.mark.parametrize("name", KINDS)
def test_durations_of_spans_add_up_to_the_times_of_ops_kernels_and_instructions(name: str) -> None:
    run = loaded_run(name)
    op, instruction = ["host_or_device", "op_type", "op_name"], ["program", "hlo_op"]
    of_ops = sums(f"SELECT {', '.join(op)}, sum(duration_us) FROM spans WHERE op_name <> '' GROUP BY ALL", run, op)
    table = run.table("op_stats")
    assert of_ops == pytest.approx(table[table["op_type"] != schema.IDLE].set_index(op)["total_time_us"].to_dict())
    kernels = sums(
        "SELECT name, sum(duration_us) FROM spans WHERE host_or_device = 'Device' GROUP BY ALL", run, ["name"]
    )
    expected = run.table("kernel_stats").groupby("kernel_name")["total_duration_us"].sum().to_dict()
    assert {kernel: kernels[kernel] for kernel in expected} == pytest.approx(expected)
    of_instructions = sums(
        "SELECT program, hlo_op, sum(duration_us) FROM spans WHERE program <> '' AND hlo_op <> '' GROUP BY ALL",
        run,
        instruction,
    )
    expected = run.table("hlo_ops").groupby(instruction)["total_time_us"].sum()
    assert of_instructions == pytest.approx(expected.loc[list(of_instructions)].to_dict())
    assert bool(of_instructions) == (name in COMPILED)
    if "jax_filters" in name:
        assert len(of_instructions) == len(expected), "events on a CPU are named by their instructions"


def test_a_span_has_its_place_step_and_launch_and_derived_lines_are_left_out() -> None:
    python = line(
        "python",
        event("train", 0, 100, _r=1, step_num=7),
        event("model/MatMul:MatMul", 10, 20),
        event("cudaLaunchKernel", 12, 2, correlation_id=5),
        event("later", 200, 1),
    )
    kernel = event("gemm", 40, 30.5, correlation_id=5, tf_op="model/MatMul:MatMul")
    derived = line("TensorFlow Ops", event("model/MatMul", 40, 30.5), id=-559038737 + 1)
    device = plane("/device:GPU:0", derived, line("Stream #1", kernel, id=1))
    columns = "span, plane, line, host_or_device, name, op_type, op_name, step, start_us, duration_us, launched_by"
    found = rows(f"SELECT {columns} FROM spans ORDER BY start_us", run_with(plane("/host:CPU", python), device))
    assert found.fillna(-1).to_numpy().tolist() == [
        [0, "/host:CPU", "python", "Host", "train", "", "", 7, 0.0, 100.0, -1],
        [1, "/host:CPU", "python", "Host", "model/MatMul:MatMul", "MatMul", "model/MatMul", 7, 10.0, 20.0, -1],
        [2, "/host:CPU", "python", "Host", "cudaLaunchKernel", "", "", 7, 12.0, 2.0, -1],
        [5, "/device:GPU:0", "Stream #1", "Device", "gemm", "MatMul", "model/MatMul", 7, 40.0, 30.5, 2],
        [3, "/host:CPU", "python", "Host", "later", "", "", -1, 200.0, 1.0, -1],
    ]


def test_spans_of_several_hosts_have_the_steps_of_the_run() -> None:
    def host(first: int) -> bytes:
        steps = [event("train", 100 * i, 90, _r=1, step_num=first + i) for i in range(4)]
        return space(plane("/host:CPU", line("python", *steps, event("MatMul:MatMul", 110, 20))))

    run = run_of(host(1), host(51))
    found = rows("SELECT host, step FROM spans WHERE op_name <> '' ORDER BY host", run)
    in_table = rows("SELECT step FROM op_steps", run)["step"].tolist()
    assert found["host"].tolist() == ["a", "b"]
    assert found["step"].nunique() == len(in_table) == 1
    assert set(found["step"]) == set(in_table)


BODY = computation(1, parameter("p", F32[8]), instruction("inner", "negate", F32[8], "p"))
ENTRY = computation(
    2,
    parameter("x", F32[8, 4]),
    instruction("pair", "sort", shapes(F32[8], S32[2]), "x", "nowhere"),
    instruction("fusion", "fusion", F32[8], "pair", "x", calls=(1,)),
)
RAN = {"hlo_op": "fusion", "hlo_module": "jit_f", "program_id": 7}
DEVICE = plane("/device:GPU:0", line("Stream #1(Kernel)", event("k", 0, 5, RAN), id=1))


def test_edges_lead_from_makers_to_users_with_the_shapes_of_their_values() -> None:
    run = run_with(DEVICE, metadata({"jit_f(7)": program(BODY, ENTRY, name="jit_f")}))
    sql = """SELECT to_hlo_op, number, kind, from_hlo_op, from_position, shape, size_bytes FROM hlo_edges
             ORDER BY to_position, number"""
    found = rows(sql, run)
    assert found.fillna(-1).to_numpy().tolist() == [
        ["inner", 0, "operand", "p", 0, "f32[8]", 32.0],
        ["pair", 0, "operand", "x", 2, "f32[8,4]", 128.0],
        ["pair", 1, "", "", -1, "", -1.0],
        ["fusion", 0, "operand", "pair", 3, "(f32[8], s32[2])", 40.0],
        ["fusion", 1, "operand", "x", 2, "f32[8,4]", 128.0],
        ["fusion", 2, "call", "inner", 1, "f32[8]", 32.0],
    ]
    made = rows(
        "SELECT count(*) AS n FROM hlo_edges JOIN hlo_programs p USING (run, host, program) "
        "WHERE p.position = from_position AND p.hlo_op = from_hlo_op",
        run,
    )
    assert made["n"].tolist() == [5]


@pytest.mark.parametrize("name", KINDS)
def test_edges_are_those_of_the_programs_and_none_without_any(name: str) -> None:
    run = loaded_run(name)
    edges = run.table("hlo_edges")
    assert len(edges) == run.table("hlo_programs")["operands"].str.split().str.len().sum()
    assert edges.empty == (name not in COMPILED)
    assert (edges["from_hlo_op"] != "").all()
    assert edges["size_bytes"].notna().all()
    assert rows("SELECT count(*) AS n FROM hlo_edges", run)["n"].tolist() == [len(edges)]


@pytest.mark.parametrize("table", ["spans", "hlo_edges"])
def test_a_table_is_measured_before_it_is_made(table: str) -> None:
    run = loaded_run("h100_16_8")
    made = run.table(table).memory_usage(deep=True).sum()
    assert 0.8 * made < run.tables.derived_bytes(table) < 1.25 * made
    with pytest.raises(
        TfcompareError, match=f"The table {table} of these runs takes .*B, and a query may read 1.00 kB"
    ):
        ask(f"FROM {table}", replace(RunTables.of([run]), most_bytes=1_000))


def test_a_table_is_bounded_for_show_and_python_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tables, "LIMITS", Limits(table_bytes=1_000))
    with pytest.raises(TfcompareError, match=r"run-1: the table spans takes .* MB, and a table may take 1.00 kB: "):
        loaded_run("h100_16_8").table("spans")


def test_edges_of_a_small_file_that_has_very_many_are_counted_and_not_made() -> None:
    names = {"computation": "c", "hlo_op": "x", "expression": "%x = f32[8] add()", "digest": ""}
    operands = pa.array([" ".join(["0"] * 1_000)]).dictionary_encode().take(pa.array([0] * 100_000))
    columns = {"program": "f", "position": range(100_000), "operands": operands, **names}
    run = run_with(DEVICE)
    (host,) = run.hosts
    many = replace(host, tables={**host.tables, "hlo_programs": host_table("hlo_programs", columns)}, late=None)
    with pytest.raises(TfcompareError, match="its programs have 100,000,000 edges, and at most 20,000,000 are read"):
        ask("FROM hlo_edges", RunTables.of([replace(run, hosts=(many,))]))
