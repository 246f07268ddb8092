"""`hlo_ops` of profiles written by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.frames.tables import host, run_with
from tests.hlo.builder import BF16, F32, S8, computation, instruction, parameter, program
from tests.xspace_builder import U64, Event, Plane, chunk, event, integer, line, meta, plane
from tfcompare.hlo.stack_frames import MOST_FRAMES

DOT = chunk(30, chunk(1, b"\1") + chunk(2, b"\0"))
METADATA = chunk(2, "jit(f)/dot") + chunk(3, "model.py") + b"\x20\x07"
BODY = computation(
    1,
    parameter("p", BF16[1024, 2048]),
    parameter("q", BF16[2048, 4096], 1),
    instruction("dot.1", "dot", BF16[1024, 4096], "p", "q", others=DOT + chunk(7, METADATA)),
    instruction("negate.remat", "negate", BF16[1024, 4096], "dot.1"),
)
PROGRAM = program(BODY, name="jit_f", others=integer(6, 1))
LOOP = program(BODY, computation(2, instruction("while", "while", BF16[8])), name="jit_f", others=integer(6, 2))
FLOPS = 2 * 1024 * 2048 * 4096
BYTES = 2 * (1024 * 2048 + 2048 * 4096 + 1024 * 4096)


def metadata(proto: bytes = PROGRAM, **programs: int) -> Plane:
    """The plane with the program under each of these names and ids."""
    entries = [event(meta(f"{name}({number})", "", {"Hlo Proto": proto}), 0, 0) for name, number in programs.items()]
    return plane("/host:metadata", line("m", *entries))


def kernel(name: str, at: float, took: float, hlo_op: str, **stats: int | str) -> Event:
    return event(name, at, took, {"hlo_op": hlo_op, "hlo_module": "jit_f", "program_id": 7} | stats)


def gpu(*events: Event, number: int = 0, **stats: int | str) -> Plane:
    mi300 = {"device_vendor": "AMD", "compute_cap_major": 9, "compute_cap_minor": U64(4), "core_count": 304}
    mi300 |= {"clock_rate": 2_100_000, "memory_bandwidth": 5, "memory_size": U64(206_141_652_992)}
    return plane(f"/device:GPU:{number}", line("Stream #1(Kernel)", *events, id=1), stats=mi300 | stats)


def rows_of(*planes: Plane) -> pd.DataFrame:
    return run_with(*planes).table("hlo_ops").set_index("hlo_op")


def test_an_instruction_with_its_costs_and_roofs() -> None:
    row = rows_of(gpu(kernel("Cijk", 0, 40, "dot.1"), kernel("Cijk", 50, 60, "dot.1")), metadata(jit_f=7)).loc["dot.1"]
    assert (row["program"], row["category"], row["op_name"], row["source"]) == (
        "jit_f(7)",
        "dot",
        "jit(f)/dot",
        "model.py:7",
    )
    assert (row["occurrences"], row["executions"], row["total_time_us"], row["self_time_us"]) == (2, 2, 100, 100)
    assert (row["flops"], row["bytes_accessed"]) == (2 * FLOPS, 2 * BYTES)
    assert row["flops_per_s"] == pytest.approx(2 * FLOPS / 100e-6)
    assert row["bandwidth_bytes_per_s"] == pytest.approx(2 * BYTES / 100e-6)
    assert row["operational_intensity"] == pytest.approx(FLOPS / BYTES)
    assert row["peak_flops_per_s"] == pytest.approx(304 * 2048 * 2.1e9)  # 1,307 TFLOP/s, as in the data sheet
    assert row["peak_bytes_per_s"] == 5.3e12
    assert (row["bound_by"], row["is_rematerialized"]) == ("compute", False)


def in_order(*kernels: str) -> list[Event]:
    """Kernels of 10 µs one after the other, each written as `kernel instruction`."""
    return [kernel(name, 20 * i, 10, op) for i, (name, op) in enumerate(map(str.split, kernels))]


EXECUTIONS = {
    "one kernel": (["k dot.1", "k dot.1", "k dot.1"], 3),
    "two kernels": (["pad dot.1", "gemm dot.1"] * 3, 3),
    "one of them twice": (["clear dot.1", "clear dot.1", "gemm dot.1"] * 3, 3),
    "alone on its stream, every one of them twice": (["clear dot.1", "gemm dot.1"] * 6, 6),
    "every one of them twice": (["clear dot.1", "gemm dot.1", "clear dot.1", "gemm dot.1", "k negate.remat"] * 3, 3),
    "the same kernel twice": (["k dot.1", "k dot.1", "k negate.remat"] * 3, 3),
    "one of them the first time only": (["pad dot.1", *["gemm dot.1", "k negate.remat"] * 3], 3),
    "cut off at the start": (["gemm dot.1", "k negate.remat", *["pad dot.1", "gemm dot.1", "k negate.remat"] * 2], 3),
}


@pytest.mark.parametrize("kernels, count", EXECUTIONS.values(), ids=EXECUTIONS)
def test_an_instruction_ran_as_often_as_its_program_however_often_its_kernels(kernels: list[str], count: int) -> None:
    row = rows_of(gpu(*in_order(*kernels)), metadata(jit_f=7)).loc["dot.1"]
    ran = sum(name.endswith("dot.1") for name in kernels)
    assert (row["occurrences"], row["executions"]) == (ran, count)
    assert (row["flops"], row["bytes_accessed"]) == (count * FLOPS, count * BYTES)
    assert row["bandwidth_bytes_per_s"] == pytest.approx(count * BYTES / (ran * 10e-6))


IN_A_LOOP = {
    "alone in it": (["k negate.remat", *["k dot.1"] * 4] * 3, 12),
    "a kernel twice per iteration": (["clear dot.1", "clear dot.1", "gemm dot.1", "k negate.remat"] * 6, 6),
    "alone, a kernel twice per iteration": (["k negate.remat", *["clear dot.1", "clear dot.1", "gemm dot.1"] * 4], 4),
}


@pytest.mark.parametrize("kernels, count", IN_A_LOOP.values(), ids=IN_A_LOOP)
def test_an_instruction_in_a_loop_ran_once_per_iteration(kernels: list[str], count: int) -> None:
    row = rows_of(gpu(*in_order(*kernels)), metadata(LOOP, jit_f=7)).loc["dot.1"]
    assert (row["executions"], row["flops"]) == (count, count * FLOPS)


def test_kernels_on_several_streams_are_of_the_same_executions() -> None:
    clears = in_order("clear dot.1", "clear dot.1", "k negate.remat", "clear dot.1", "clear dot.1")
    streams = [line("Stream #1", *clears, id=1), line("Stream #2", *in_order("gemm dot.1", "gemm dot.1"), id=2)]
    row = rows_of(plane("/device:GPU:0", *streams), metadata(jit_f=7)).loc["dot.1"]
    assert (row["occurrences"], row["executions"]) == (6, 2)


def test_a_copy_between_kernels_interrupts_no_execution() -> None:
    events = [kernel("k", 0, 10, "dot.1"), event("MemcpyD2D", 12, 5), kernel("k", 20, 10, "dot.1")]
    row = rows_of(gpu(*events, kernel("k", 40, 10, "negate.remat")), metadata(jit_f=7)).loc["dot.1"]
    assert (row["occurrences"], row["executions"]) == (2, 1)


def test_executions_of_several_devices_add_up() -> None:
    first = in_order("pad dot.1", "gemm dot.1", "k negate.remat", "pad dot.1", "gemm dot.1")
    second = [kernel("pad", 0, 10, "main::dot.1"), kernel("gemm", 10, 40, "dot.1")]
    rows = rows_of(gpu(*first), gpu(*second, number=1), metadata(jit_f=7))
    assert (rows.loc["dot.1", "occurrences"], rows.loc["dot.1", "executions"]) == (6, 3)
    assert rows.loc["dot.1", "flops"] == 3 * FLOPS


def test_elementwise_work_is_bound_by_memory_and_a_remat_is_marked() -> None:
    row = rows_of(gpu(kernel("k", 0, 10, "negate.remat")), metadata(jit_f=7)).loc["negate.remat"]
    assert (row["category"], row["bound_by"], row["is_rematerialized"]) == ("non-fusion elementwise", "memory", True)
    assert (row["op_name"], row["source"]) == ("", "")


def test_a_product_of_8_bit_numbers_has_the_peak_of_these() -> None:
    narrow = computation(
        1,
        parameter("p", S8[1024, 2048]),
        parameter("q", S8[2048, 4096], 1),
        instruction("dot.1", "dot", F32[1024, 4096], "p", "q", others=DOT),
    )
    row = rows_of(gpu(kernel("Cijk", 0, 40, "dot.1")), metadata(program(narrow, name="jit_f"), jit_f=7)).loc["dot.1"]
    assert (row["flops"], row["peak_flops_per_s"]) == (FLOPS, pytest.approx(304 * 4096 * 2.1e9))


@pytest.mark.parametrize("other", [{"device_vendor": "Acme"}, {"compute_cap_major": 3}, {"clock_rate": 0}])
def test_an_unknown_device_has_no_roofs(other: dict[str, int | str]) -> None:
    row = rows_of(gpu(kernel("k", 0, 10, "dot.1"), **other), metadata(jit_f=7)).loc["dot.1"]
    assert pd.isna(row["peak_flops_per_s"])
    assert row["bound_by"] == ""
    assert row["flops"] == FLOPS


def test_equal_names_in_two_programs_are_two_rows() -> None:
    events = [kernel("k", 0, 10, "dot.1"), kernel("k", 20, 30, "dot.1", program_id=8)]
    rows = rows_of(gpu(*events), metadata(jit_f=7, jit_g=8))
    assert list(rows["program"]) == ["jit_g(8)", "jit_f(7)"]


def test_of_too_many_programs_the_largest_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfcompare.frames.origin.MOST_PROGRAMS", 1)
    monkeypatch.setattr("tfcompare.frames.hlo.programs.MOST_PROGRAMS", 1)
    events = kernel("Cijk", 0, 10, "dot.1"), kernel("Cijk", 20, 10, "dot.1", program_id=8)
    run = run_with(gpu(*events), metadata(jit_f=7), metadata(LOOP, jit_f=8))
    assert run.table("hlo_ops")["program"].tolist() == ["jit_f(8)"]
    assert any(remark.endswith("beyond the 1 largest: 1") for remark in run.remarks)


def test_a_program_without_an_id_in_its_name_has_that_of_its_entry() -> None:
    entry = event(meta("jit_f", "", {"Hlo Proto": PROGRAM}), 0, 0)
    metadata_plane = plane("/host:metadata", line("m", entry), ids={"jit_f": 7})
    assert rows_of(gpu(kernel("k", 0, 10, "dot.1")), metadata_plane).loc["dot.1", "program"] == "jit_f"


def test_kernels_without_an_instruction_and_of_unknown_programs_have_no_row() -> None:
    events = [event("copy", 0, 5), kernel("k", 10, 5, "dot.1", program_id=9), kernel("k", 20, 5, "dot.99")]
    for planes in ([gpu(*events), metadata(jit_f=7)], [gpu(*events)], [host(event("a:MatMul", 0, 5))]):
        assert rows_of(*planes).empty


def test_instructions_on_the_threads_of_a_host() -> None:
    """The time of an instruction within another is no self time of that one; a program may be missing."""
    outer = event("call.3", 0, 100, hlo_op="call.3", hlo_module="jit_f", program_id=7)
    inner = event("dot.1", 10, 40, hlo_op="dot.1", hlo_module="jit_f", program_id=7)
    unknown = event("x", 200, 5, hlo_op="x", hlo_module="jit_h", program_id=3)
    rows = rows_of(plane("/host:CPU", line("main", outer, inner, unknown), line("other", inner)), metadata(jit_f=7))
    assert rows["self_time_us"].to_dict() == {"dot.1": 80, "call.3": 60, "x": 5}
    assert rows["total_time_us"].to_dict() == {"dot.1": 80, "call.3": 100, "x": 5}
    assert rows["program"].to_dict() == {"dot.1": "jit_f(7)", "call.3": "jit_f(7)", "x": "jit_h(3)"}
    assert rows.loc["dot.1", "flops"] == 2 * FLOPS
    assert rows.loc[["call.3", "x"], "flops"].isna().all()
    assert rows["peak_flops_per_s"].isna().all()


def tpu(*events: Event) -> Plane:
    peaks = {"peak_teraflops_per_second": 918.0, "peak_hbm_bw_gigabytes_per_second": 1638.0}
    return plane("/device:TPU:0", line("XLA Ops", *events, id=3), stats=peaks)


def test_a_tpu_records_the_costs_itself() -> None:
    stats = {"hlo_category": "convolution fusion", "program_id": 7, "symbol_id": 4, "tf_op": "jit(f)/dot:"}
    stats |= {"flops": 1000, "bytes_accessed": 50, "source": "m.py:3"}
    fusion = meta("%fusion.1 = f32[] fusion()", "fusion.1", stats)
    start = meta("%copy-start.2 = f32[]", "copy-start.2", stats | {"hlo_category": "copy-start", "flops": 0})
    rows = rows_of(tpu(event(fusion, 0, 10), event(fusion, 20, 10), event(start, 40, 1)), metadata(jit_f=7))
    row = rows.loc["fusion.1"]
    assert (row["program"], row["category"], row["op_name"], row["source"]) == (
        "jit_f(7)",
        "convolution fusion",
        "jit(f)/dot",
        "m.py:3",
    )
    assert (row["occurrences"], row["flops"], row["bytes_accessed"]) == (2, 2000, 100)
    assert row["flops_per_s"] == pytest.approx(2000 / 20e-6)
    assert (row["peak_flops_per_s"], row["peak_bytes_per_s"]) == pytest.approx((918e12, 1638e9))
    assert row["bound_by"] == "memory"
    waiting = rows.loc["copy-start.2"]
    assert waiting["bytes_accessed"] == 50
    assert waiting[["flops_per_s", "bandwidth_bytes_per_s", "operational_intensity"]].isna().all()
    assert waiting["bound_by"] == ""


def tpu_costs(*runs: dict[str, int], category: str = "loop fusion", **of_metadata: int) -> list[float | None]:
    """FLOPs and bytes of an instruction whose metadata and whose events record these costs."""
    stats = {"program_id": 7, "symbol_id": 4, "hlo_category": category, **of_metadata}
    what = meta("%f.1 = f32[] f()", "f.1", stats)
    row = rows_of(tpu(*(event(what, 20 * i, 10, **costs) for i, costs in enumerate(runs)))).loc["f.1"]
    return [None if pd.isna(row[name]) else row[name] for name in ("flops", "bytes_accessed")]


COSTS_OF_EVENTS = {
    "of the metadata": ([{}, {}], {"flops": 10, "bytes_accessed": 5}, [20, 10]),
    "of the events": ([{"flops": 10, "bytes_accessed": 5}] * 2, {}, [20, 10]),
    "different from run to run": (
        [{"flops": 10, "bytes_accessed": 5}, {"flops": 30, "bytes_accessed": 0}],
        {},
        [40, 5],
    ),
    "of the events, though the metadata has some": ([{"flops": 7}, {}], {"flops": 10, "bytes_accessed": 5}, [17, 10]),
    "unknown of one run": ([{"flops": 10}, {"bytes_accessed": 5}], {}, [None, None]),
    "damaged": ([{"flops": -1, "bytes_accessed": 5}] * 2, {}, [None, 10]),
    "of the model": ([{"model_flops": 10}] * 2, {"bytes_accessed": 5}, [20, 10]),
    "of what takes none": ([{"flops": 0}] * 2, {"bytes_accessed": 0, "model_flops": 8}, [0, 0]),
}


@pytest.mark.parametrize("runs, of_metadata, known", COSTS_OF_EVENTS.values(), ids=COSTS_OF_EVENTS)
def test_costs_that_a_tpu_records_with_its_events(
    runs: list[dict[str, int]], of_metadata: dict[str, int], known: list[float | None]
) -> None:
    assert tpu_costs(*runs, **of_metadata) == known


@pytest.mark.parametrize("is_recorded", [True, False])
def test_costs_in_steps_are_those_of_the_executions_there(is_recorded: bool) -> None:
    """As recorded, they grow from step to step; else each execution has the same."""
    what = meta("%f.1 = f32[] f()", "f.1", {"program_id": 7, "symbol_id": 4, "flops": 100, "bytes_accessed": 8})
    steps = [event(str(i), 100 * i, 90) for i in range(6)]
    own = ({"flops": 10**i} if is_recorded else {} for i in range(6))
    ops = [event(what, 100 * i + 5, 50, **costs) for i, costs in enumerate(own)]
    run = run_with(plane("/device:TPU:0", line("Steps", *steps, id=1), line("XLA Ops", *ops, id=3)))
    included = run.steps.loc[run.steps["included"], "step"]
    assert 0 < len(included) < 6
    (row,) = run.tables.in_steps("hlo_ops").to_dict("records")
    assert row["executions"] == len(included)
    assert row["flops"] == (sum(10**i for i in included) if is_recorded else 100 * len(included))
    assert row["bytes_accessed"] == 8 * len(included)
    (whole,) = run.table("hlo_ops").to_dict("records")
    assert whole["flops"] == (111_111 if is_recorded else 600)


OPAQUE = {
    "0": ([{}, {}], {"flops": 0, "model_flops": 0, "bytes_accessed": 0}, [None, None]),
    "0 of the events": ([{"flops": 0, "bytes_accessed": 0}] * 2, {"flops": 9, "bytes_accessed": 9}, [None, None]),
    "0 of one event": ([{"flops": 0}, {"flops": 5}], {"bytes_accessed": 5}, [None, 10]),
    "an estimate of its author": ([{"flops": 0, "model_flops": 6, "bytes_accessed": 5}] * 2, {}, [12, 10]),
}


@pytest.mark.parametrize("runs, of_metadata, known", OPAQUE.values(), ids=OPAQUE)
def test_a_cost_of_0_of_a_custom_call_is_unknown(
    runs: list[dict[str, int]], of_metadata: dict[str, int], known: list[float | None]
) -> None:
    assert tpu_costs(*runs, category="custom-call", **of_metadata) == known


@pytest.mark.parametrize(
    ("flops", "runs_us", "known"), [(10**17, [0.000001], 10**17), (-1, [10, 10], None), ((1 << 63) - 1, [10, 10], None)]
)
def test_absurd_rates_and_costs_are_unknown(flops: int, runs_us: list[float], known: int | None) -> None:
    """A store's pack holds numbers of at most 1e18."""
    fusion = meta("%f", "f", {"program_id": 7, "symbol_id": 4, "flops": flops, "bytes_accessed": 50})
    row = rows_of(tpu(*(event(fusion, 20 * i, took) for i, took in enumerate(runs_us)))).loc["f"]
    assert (None if pd.isna(row["flops"]) else row["flops"], row["program"]) == (known, "(7)")
    assert pd.isna(row["flops_per_s"])
    assert row["bytes_accessed"] == 50 * len(runs_us)
    assert row["bandwidth_bytes_per_s"] == pytest.approx(row["bytes_accessed"] / sum(runs_us) * 1e6)


def test_the_instructions_around_another_are_a_table_of_their_own() -> None:
    kernels = [
        kernel("k", 0, 10, "dot.1"),
        kernel("k", 20, 30, "negate.remat"),
        kernel("k", 60, 1, "dot.1", program_id=8),
    ]
    texts = run_with(gpu(*kernels), metadata(jit_f=7, jit_g=8)).table("hlo_texts")
    assert list(zip(texts["program"], texts["hlo_op"], strict=True)) == [
        ("jit_f(7)", "negate.remat"),
        ("jit_f(7)", "dot.1"),
        ("jit_g(8)", "dot.1"),
    ]
    of_dot = texts.iloc[1]
    assert of_dot["operands"].splitlines() == ["%p = bf16[1024,2048] parameter", "%q = bf16[2048,4096] parameter"]
    assert (of_dot["users"], of_dot["fused"]) == ("%negate.remat = bf16[1024,4096] negate", "")
    assert texts.iloc[0]["operands"] == "%dot.1 = bf16[1024,4096] dot"


def test_instructions_of_programs_that_the_file_lacks_have_empty_texts_and_programs_that_ran_all_instructions() -> None:
    unknown = event("x", 200, 5, hlo_op="x", hlo_module="jit_h", program_id=3)
    texts = run_with(host(unknown), metadata(jit_f=7)).table("hlo_texts")
    assert texts[["program", "hlo_op", "operands", "users", "fused"]].values.tolist() == [["jit_h(3)", "x", "", "", ""]]
    rows = run_with(gpu(kernel("k", 0, 10, "dot.1"), unknown), metadata(jit_f=7, jit_g=8)).table("hlo_programs")
    assert rows["program"].unique().tolist() == ["jit_f(7)"]
    assert rows["position"].tolist() == list(range(len(rows)))
    by_name = rows.set_index("hlo_op")
    dot = "%dot.1 = bf16[1024,4096] dot(bf16[1024,2048] %p, bf16[2048,4096] %q)"
    assert by_name.loc["dot.1", "expression"] == dot
    assert by_name.loc["dot.1", "operands"] == " ".join(str(by_name.loc[name, "position"]) for name in "pq")
    assert rows["digest"].nunique() == len(rows)


def test_the_stack_of_an_instruction_is_that_of_its_program_or_what_a_tpu_records() -> None:
    frames = chunk(1, "a.py") + chunk(2, "f") + chunk(3, integer(1, 1) + integer(2, 1) + integer(3, 7))
    frames += chunk(4, integer(1, 1))
    known = instruction("known.1", "negate", F32[2], others=chunk(7, integer(15, 1)))
    fusion = instruction("fusion.2", "fusion", F32[2], calls=(1,))
    inner = instruction("inner", "negate", F32[2], others=chunk(7, chunk(2, "op") + integer(15, 1)))
    proto = program(computation(1, inner), computation(2, known, fusion), others=chunk(17, frames))
    stack = "<embedded 'run'>:1:2\nm/my model.py:30:8 \n"
    cut = "m.py:1:2\n" + "long_name.py:5:6\n" * 500
    recorded = {"known.1": stack, "fusion.2": "", "other.3": stack, "cut.4": cut}
    events = [
        event(
            meta(
                f"%{name} = f32[]",
                name,
                {
                    "hlo_category": "negate",
                    "symbol_id": at + 1,
                    "program_id": 7,
                    **({"source_stack": text} if text else {}),
                },
            ),
            10 * at,
            5,
        )
        for at, (name, text) in enumerate(recorded.items())
    ]
    texts = run_with(tpu(*events), metadata(proto, jit_f=7)).table("hlo_texts").set_index("hlo_op")["source_stack"]
    assert texts[["known.1", "fusion.2", "other.3"]].tolist() == [
        *["f (a.py:7)"] * 2,
        "<embedded 'run'>:1:2\nm/my model.py:30:8",
    ]
    calls = texts["cut.4"].split("\n")
    assert len(calls) == MOST_FRAMES + 1 and (calls[0], calls[-1]) == ("…", "long_name.py:5:6")
    assert set(calls[1:-1]) == {"long_name.py:5:6", "…"}, "a long text is recorded without its middle"
