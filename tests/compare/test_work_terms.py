"""Changes of time as products: laws, and terms worked out by hand for a convolution, a matmul and attention."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frames.tables import host, run_with
from tests.frames.test_hlo_ops import gpu, kernel, metadata
from tests.hlo.builder import BF16, U8, Instruction, computation, instruction, parameter, program, shapes
from tests.hlo.test_cost import NHWC, PLAIN, contraction, library, window
from tests.laws import law
from tests.xspace_builder import chunk, event, integer
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.work.terms import (
    BYTES,
    FLOPS,
    LESS_WORK,
    MORE_WORK,
    OF_OPS,
    SAME_WORK,
    with_work_terms,
    work_changes,
)
from tfcompare.comparison import compare
from tfcompare.run import Run
from tfcompare.schema import SIDES
from tfcompare.views.kernels.details import rows_of
from tfcompare.views.ops.figures import most_changed, ops_of
from tfcompare.views.ops.work_words import work_done, work_sentence

COLUMNS = (
    *("occurrences", "self_time_us", "total_time_us", "flops", "bytes_accessed", "flops_per_s"),
    *("bandwidth_bytes_per_s", "bound_by"),
)
RATIOS = ["count_ratio", "work_ratio", "time_per_work_ratio", "time_each_ratio"]
NUMBERS = {
    "occurrences": st.integers(0, 9).map(float),
    "self_time_us": st.sampled_from([0.0, 1.0, 7.5, 4e6]),
    "flops": st.sampled_from([math.nan, 0.0, 5.0, 3e12]),
    "bytes_accessed": st.sampled_from([math.nan, 0.0, 6.0, 8e9]),
    "nested_us": st.sampled_from([0.0, 0.0, 3.0]),
    "is_timed": st.booleans(),
    "bound_by": st.sampled_from(["", "compute", "memory"]),
}


@st.composite
def diffs(draw: st.DrawFn) -> pd.DataFrame:
    """Rows of a diff of ops, with what is unknown, none, or only on one side."""
    rows = []
    for status in draw(st.lists(st.sampled_from(["matched", "matched", "added", "removed"]), min_size=1, max_size=5)):
        row = {"status": status}
        for role in SIDES:
            side = {name: draw(numbers) for name, numbers in NUMBERS.items()}
            took, flops, moved = side["self_time_us"] or math.nan, side["flops"], side["bytes_accessed"]
            side["total_time_us"] = side["self_time_us"] + side.pop("nested_us")
            is_timed = side.pop("is_timed")
            rates = (cost / took if is_timed else math.nan for cost in (flops, moved))
            side["flops_per_s"], side["bandwidth_bytes_per_s"] = rates
            row |= {f"{name}_{role}": value for name, value in side.items()}
        rows.append(row)
    return pd.DataFrame(rows)


def swapped(rows: pd.DataFrame) -> pd.DataFrame:
    names = (tuple(f"{name}_{role}" for role in SIDES) for name in COLUMNS)
    return rows.rename(
        columns={one: other for ours, theirs in names for one, other in ((ours, theirs), (theirs, ours))}
    )


@law(300)
@given(diffs())
def test_the_terms_multiply_to_the_ratio_of_the_time(rows: pd.DataFrame) -> None:
    found = with_work_terms(rows, OF_OPS)
    ratio = (rows["self_time_us_candidate"] / rows["self_time_us_baseline"]).to_numpy()
    for terms in (RATIOS[:3], ["count_ratio", "time_each_ratio"]):
        product = found[terms].product(axis=1, skipna=False).to_numpy()
        known = ~np.isnan(product)
        assert product[known] == pytest.approx(ratio[known])
    assert not np.isinf(found[RATIOS].to_numpy()).any()
    only_one = found[found["status"] != "matched"]
    assert only_one[[*RATIOS, "work_in", "work_rate_baseline", "work_rate_candidate"]].isna().all(axis=None)
    rates = found["work_rate_baseline"] / found["work_rate_candidate"]
    assert rates.to_numpy() == pytest.approx(found["time_per_work_ratio"].to_numpy(), nan_ok=True)
    assert (found["work_in"].notna() == found["work_ratio"].notna()).all()


@law(200)
@given(diffs())
def test_swapped_sides_have_the_reciprocals_and_a_side_has_no_change_from_itself(rows: pd.DataFrame) -> None:
    found, back = with_work_terms(rows, OF_OPS), with_work_terms(swapped(rows), OF_OPS)
    assert (1 / back[RATIOS]).to_numpy() == pytest.approx(found[RATIOS].to_numpy(), nan_ok=True)
    assert back["work_in"].equals(found["work_in"])
    mirror = {MORE_WORK: LESS_WORK, LESS_WORK: MORE_WORK}
    assert [mirror.get(word, word) for word in work_changes(back)] == work_changes(found).tolist()
    same = rows.assign(**{f"{name}_candidate": rows[f"{name}_baseline"] for name in COLUMNS})
    itself = with_work_terms(same, OF_OPS)
    assert np.nan_to_num(itself[RATIOS].to_numpy(), nan=1.0) == pytest.approx(1.0)
    assert set(work_changes(itself)) <= {SAME_WORK, ""}


def of(name: str) -> bytes:
    return chunk(7, chunk(2, f"jit(f)/{name}"))


def run(times_us: dict[str, float], *instructions: Instruction, executions: int = 1) -> Run:
    """A run in which each of these instructions of a program took so long in each execution."""
    proto = program(computation(1, *instructions), name="jit_f", others=integer(6, 1))
    names = [(name, took) for _ in range(executions) for name, took in times_us.items()]
    kernels = [kernel("k", 10_000 * at, took, name) for at, (name, took) in enumerate(names)]
    return run_with(gpu(*kernels), metadata(proto, jit_f=7))


def pair_of(ours: Run, theirs: Run) -> Pair:
    return pair_with(compare(ours, theirs))


def only_op(pair: Pair) -> pd.Series:
    (row,) = (row for _, row in ops_of(pair, idle=False).iterrows())
    return row


def assert_terms(row: pd.Series, measure: str, count: float, work: float, per_work: float) -> None:
    assert row["work_in"] == measure
    assert row[RATIOS[:3]].tolist() == pytest.approx([count, work, per_work])


def matmul(m: int, k: int, n: int, took_us: float, executions: int = 1) -> Run:
    operands = parameter("a", BF16[m, k]), parameter("b", BF16[k, n], 1)
    dot = instruction("dot.1", "dot", BF16[m, n], "a", "b", others=contraction(1, 0) + of("dense/dot_general"))
    return run({"dot.1": took_us}, *operands, dot, executions=executions)


def test_a_matmul_of_an_eighth_of_the_rows_at_half_the_rate() -> None:
    """2·m·k·n: 137 GFLOP in 400 µs are 344 TFLOP/s; an eighth in a quarter of the time is half of that."""
    pair = pair_of(matmul(4096, 4096, 4096, 400), matmul(512, 4096, 4096, 100))
    row = only_op(pair)
    assert_terms(row, FLOPS, 1, 1 / 8, 2)
    assert row["work_rate_baseline"] == pytest.approx(2 * 4096**3 / 400e-6)
    assert row["work_rate_candidate"] == pytest.approx(2 * 512 * 4096**2 / 100e-6)
    assert work_sentence(row) == "Less work: 1/8 of the FLOPs at 1/2 of the rate (344 → 172 TFLOP/s)."
    changed = most_changed(pair)
    assert changed is not None
    assert work_done(changed) == "1/8 of the FLOPs"
    (instruction_,) = pair.instructions().to_dict("records")
    assert_terms(pd.Series(instruction_), FLOPS, 1, 1 / 8, 2)
    assert instruction_["execution_time_us_ratio"] == pytest.approx(1 / 4)


def test_what_runs_more_often_does_more_work_and_an_execution_of_its_program_the_same() -> None:
    pair = pair_of(matmul(4096, 4096, 4096, 400), matmul(4096, 4096, 4096, 410, executions=3))
    row = only_op(pair)
    assert_terms(row, FLOPS, 3, 1, 410 / 400)
    often = "More work: 3× as often, the same FLOPs each at about the same rate (344 → 335 TFLOP/s)."
    assert work_sentence(row) == often
    assert_terms(pair.instructions().iloc[0], FLOPS, 1, 1, 410 / 400)


def convolution(images: int, size: int, channels: int, filters: int, took_us: float) -> Run:
    made = BF16[images, size - 2, size - 2, filters]
    operands = parameter("x", BF16[images, size, size, channels]), parameter("w", BF16[3, 3, channels, filters], 1)
    others = window(PLAIN, PLAIN) + NHWC + of("conv/conv_general_dilated")
    return run({"conv": took_us}, *operands, instruction("conv", "convolution", made, "x", "w", others=others))


def test_a_convolution_of_a_sixteenth_of_the_channels_and_filters() -> None:
    """2 · images · 62 · 62 · 3 · 3 · channels · filters, as no window of 3 × 3 reaches beyond the image."""
    row = only_op(pair_of(convolution(32, 64, 512, 512, 5000), convolution(32, 64, 32, 32, 200)))
    assert_terms(row, FLOPS, 1, 1 / 256, 256 / 25)
    assert row["work_rate_baseline"] == pytest.approx(2 * 32 * 62 * 62 * 9 * 512 * 512 / 5000e-6)
    assert work_sentence(row) == "Less work: 1/256 of the FLOPs at 1/10 of the rate (116 → 11.3 TFLOP/s)."


def scores(length: int, took_us: float) -> Run:
    """Queries by keys of 16 heads of 64 numbers."""
    operands = parameter("q", BF16[16, length, 64]), parameter("k", BF16[16, length, 64], 1)
    others = contraction(2, 2, 0) + of("attention/scores")
    return run(
        {"dot": took_us}, *operands, instruction("dot", "dot", BF16[16, length, length], "q", "k", others=others)
    )


def fused_attention(length: int, took_us: float) -> Run:
    batches = {f"{side}_batch_dimensions": ["0", "1"] for side in ("lhs", "rhs")}
    first = {"lhs_contracting_dimensions": ["3"], "rhs_contracting_dimensions": ["3"], **batches}
    second = {"lhs_contracting_dimensions": ["3"], "rhs_contracting_dimensions": ["2"], **batches}
    config = {"cudnn_fmha_backend_config": {"bmm1_dot_dimension_numbers": first, "bmm2_dot_dimension_numbers": second}}
    operands = [parameter(name, BF16[1, 16, length, 64], i) for i, name in enumerate("qkv")]
    others = library("__cudnn$fmhaSoftmax", config) + of("attention/fused")
    made = shapes(BF16[1, 16, length, 64], U8[0])
    return run({"x": took_us}, *operands, instruction("x", "custom-call", made, "q", "k", "v", others=others))


def test_attention_on_a_sequence_of_twice_the_length() -> None:
    """Fused, it computes: 4 · heads · length² · 64 FLOPs. The scores alone move 2 bytes for each number."""
    row = only_op(pair_of(fused_attention(4096, 500), fused_attention(8192, 2000)))
    assert_terms(row, FLOPS, 1, 4, 1)
    assert row["work_rate_baseline"] == pytest.approx(4 * 16 * 4096**2 * 64 / 500e-6)
    assert work_sentence(row) == "More work: 4× the FLOPs at about the same rate (137 → 137 TFLOP/s)."
    row = only_op(pair_of(scores(1024, 20), scores(2048, 60)))
    moved = [2 * (2 * 16 * length * 64 + 16 * length**2) for length in (1024, 2048)]
    assert_terms(row, BYTES, 1, moved[1] / moved[0], 3 / (moved[1] / moved[0]))
    assert row["work_rate_candidate"] == pytest.approx(moved[1] / 60e-6)


def test_without_programs_only_how_often_is_known() -> None:
    ours, theirs = (run_with(host(*(event("d:MatMul", 20 * i, 5) for i in range(n)))) for n in (2, 4))
    row = only_op(pair_of(ours, theirs))
    assert row[RATIOS].tolist() == pytest.approx([2, math.nan, math.nan, 1], nan_ok=True)
    assert work_sentence(row) == "2× as often, about the same time each."
    assert work_sentence(only_op(pair_of(ours, ours))) == ""
    assert work_done(row) == ""


def row_of(status: str = "matched", **sides: tuple[float | str, float | str]) -> pd.DataFrame:
    known = {"occurrences": (1, 1), "self_time_us": (10, 10), "total_time_us": (10, 10), "flops": (1e6, 2e6)}
    known |= {"bytes_accessed": (1e6, 1e6), "flops_per_s": (1e11, 2e11), "bandwidth_bytes_per_s": (1e11, 1e11)}
    cells = known | {"bound_by": ("memory", "compute")} | sides
    columns = {f"{name}_{role}": [both[at]] for name, both in cells.items() for at, role in enumerate(SIDES)}
    return pd.DataFrame({"status": [status], **columns})


@pytest.mark.parametrize(
    ("sides", "measure", "work", "has_rate"),
    [
        ({}, FLOPS, 2, True),  # one side computes: both are measured in FLOPs
        ({"bound_by": ("memory", "memory")}, BYTES, 1, True),
        ({"bound_by": ("", "")}, BYTES, 1, True),  # 1 and 2 FLOP/byte, of unknown peaks
        ({"bound_by": ("", ""), "flops": (1e6, 6e6)}, FLOPS, 6, True),
        ({"flops": (math.nan, 2e6)}, BYTES, 1, True),
        ({"bytes_accessed": (math.nan, 1e6), "bound_by": ("", "")}, FLOPS, 2, True),
        ({"flops": (0, 2e6), "bytes_accessed": (math.nan, 1e6)}, None, math.nan, False),
        ({"total_time_us": (10, 15)}, FLOPS, 2, False),  # another op runs within it
        ({"flops_per_s": (math.nan, 2e11)}, FLOPS, 2, False),  # part of the work is done elsewhere
        ({"status": "added"}, None, math.nan, False),
    ],
)
def test_what_work_is_measured_in_and_when_there_is_a_rate(
    sides: dict[str, tuple[float, float]], measure: str | None, work: float, has_rate: bool
) -> None:
    (row,) = with_work_terms(row_of(**sides), OF_OPS).to_dict("records")
    assert (row["work_in"] if measure else None) == measure
    assert row["work_ratio"] == pytest.approx(work, nan_ok=True)
    assert (not math.isnan(row["time_per_work_ratio"])) == has_rate


def kernels_of(ours: Run, theirs: Run, by: str) -> pd.DataFrame:
    return rows_of(pair_of(ours, theirs), by).set_index("kernel_name" if by != "op_name" else by)  # type: ignore[arg-type]


def launching(rows: int, *kernels: tuple[str, float, str]) -> Run:
    """A run of a matmul of so many rows, and of a negation, with these kernels, each with its time and instruction."""
    dot = instruction("dot", "dot", BF16[rows, 4096], "a", "b", others=contraction(1, 0) + of("dense/dot"))
    body = [parameter("a", BF16[rows, 4096]), parameter("b", BF16[4096, 4096], 1), dot]
    body += [instruction("n", "negate", BF16[rows, 4096], "dot", others=of("neg"))]
    proto = program(computation(1, *body), name="jit_f", others=integer(6, 1))
    details = "regs:16 static_shared:0 dynamic_shared:0 grid:1,1,1 block:64,1,1 occ_pct:50"
    events = [kernel(name, 1000 * at, took, op, kernel_details=details) for at, (name, took, op) in enumerate(kernels)]
    return run_with(gpu(*events), metadata(proto, jit_f=7))


def test_a_kernel_does_the_work_of_its_op_where_it_is_the_only_one() -> None:
    ours = launching(4096, ("gemm", 400, "dot"), ("neg", 20, "n"))
    theirs = launching(2048, ("gemm", 100, "dot"), ("neg", 20, "n"))
    for by in ("launch", "kernel_name", "kernel_and_op"):
        found = kernels_of(ours, theirs, by)
        assert_terms(found.loc["gemm"], FLOPS, 1, 1 / 2, 1 / 2)
        assert_terms(found.loc["neg"], BYTES, 1, 1 / 2, 2)


def test_the_work_of_an_op_with_several_kernels_is_that_of_the_op() -> None:
    ours = launching(4096, ("gemm", 300, "dot"), ("gemm", 90, "dot"), ("split", 10, "dot"))
    theirs = launching(2048, ("gemm", 95, "dot"), ("split", 5, "dot"))
    of_kernels = kernels_of(ours, theirs, "kernel_name")
    assert of_kernels[["work_ratio", "time_per_work_ratio"]].isna().all(axis=None)
    assert of_kernels.loc["gemm", RATIOS].tolist() == pytest.approx([1 / 2, math.nan, math.nan, 95 / 195], nan_ok=True)
    op = kernels_of(ours, theirs, "op_name").loc["jit(f)/dense/dot"]
    assert_terms(op, FLOPS, 1, 1 / 2, (100 / 400) / (1 / 2))


def test_one_kernel_of_two_ops_does_the_work_of_both() -> None:
    ours, theirs = (
        launching(rows, ("k", 2 * took, "dot"), ("k", took, "n")) for rows, took in ((4096, 100), (2048, 50))
    )
    found = kernels_of(ours, theirs, "kernel_name").loc["k"]
    assert found["count_ratio"] * found["work_ratio"] * found["time_per_work_ratio"] == pytest.approx(1 / 2)
    assert found["work_in"] == FLOPS
    assert found["work_ratio"] == pytest.approx(1 / 2)
