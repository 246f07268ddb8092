"""What changed in the arrays that ops work on: the shapes of rows, and the sizes and types that explain a change."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from tests.compare.compare_runs import FakeRun, op_stats, run, table
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.work.changes import ChangedSize, ChangedType, WorkChange, changed_work
from tfcompare.compare.work.shapes import arrays, shape_texts
from tfcompare.comparison import compare
from tfcompare.tables.op_shapes import op_shapes
from tfcompare.views.ops.shapes import SHAPE, instructions_with_shapes, kernels_with_shapes, ops_with_shapes
from tfcompare.views.steps.shape_words import shapes_clause

IMAGE, KERNEL = "batch,height,width,filters", "height,width,channels,filters"


def recorded(name: str, *lines: str) -> FakeRun:
    """A run with an op for each line, `type name µs [shape [dimensions]]`."""
    ops, shapes = [], []
    for line in lines:
        kind, op, time, *known = line.split()
        ops.append(("Host", kind, op, 1, float(time)))
        shapes += [(op, *known, "")[:3]] if known else []
    of_ops = pd.DataFrame(shapes, columns=["op_name", "shape", "dimensions"]).assign(tensor="result")
    made = run(name, op_stats(ops), content=name)
    made.frames["op_shapes"] = table("op_shapes", **{key: list(of_ops[key]) for key in of_ops})
    return made


def pair_of(baseline: FakeRun, candidate: FakeRun) -> Pair:
    return pair_with(compare(baseline, candidate))  # type: ignore[arg-type]


def compiled(name: str, *lines: str) -> FakeRun:
    """A run with an instruction for each line, `op µs expression`."""
    rows = [line.split(maxsplit=2) for line in lines]
    times: dict[str, float] = {}
    for op, us, _ in rows:
        times[op] = times.get(op, 0.0) + float(us)
    made = run(name, op_stats([("Device", "fusion", op, 1, us) for op, us in times.items()]), content=name)
    made.frames["hlo_ops"] = table(
        "hlo_ops",
        program=["jit_f(7)"] * len(rows),
        hlo_op=[expression.split()[0].removeprefix("%") for _, _, expression in rows],
        category=["fusion"] * len(rows),
        op_name=[op for op, _, _ in rows],
        expression=[expression for _, _, expression in rows],
        self_time_us=[float(us) for _, us, _ in rows],
    )
    no_parts = pd.DataFrame(columns=["host", "op_name", "op_type"])
    none = pa.table(
        {name: pa.array([], pa.string()) for name in ("host", "op_name", "data_type", "shape", "region_type")}
    )
    none = none.append_column("is_allocation", pa.array([], pa.bool_()))
    no_operands = pd.DataFrame({name: [] for name in ("host", "op_name", "operands")}, dtype="str")
    no_operands = no_operands.assign(occurrences=0)
    made.frames["op_shapes"] = op_shapes(none, made.frames["hlo_ops"], no_parts, no_operands)
    return made


def texts_of(pair: Pair) -> dict[str, str]:
    rows = ops_with_shapes(pair).dropna(subset=[SHAPE])
    return dict(zip(rows["op_name"], rows[SHAPE], strict=True))


WIDE = recorded(
    "wide",
    f"Conv2DBackpropFilter gradient_tape/conv/Conv2DBackpropFilter 900 f32[3,3,512,128] {KERNEL}",
    f"Conv2D conv 400 f32[16,8,8,128] {IMAGE}",
    f"Conv2D first 3 f32[16,16,16,512] {IMAGE}",
    "Relu relu 100",
    "Mean mean 10 f32[]",
    "Cast gone 5 f32[16,3]",
)
NARROW = recorded(
    "narrow",
    f"Conv2DBackpropFilter gradient_tape/conv/Conv2DBackpropFilter 90 f32[3,3,16,8] {KERNEL}",
    f"Conv2D conv 40 f32[16,8,8,8] {IMAGE}",
    f"Conv2D first 1 f32[16,16,16,16] {IMAGE}",
    "Relu relu 20",
    "Mean mean 10 f32[]",
)


def test_the_shape_of_an_op_on_both_sides() -> None:
    assert texts_of(pair_of(WIDE, NARROW)) == {
        "gradient_tape/conv/Conv2DBackpropFilter": "[3,3,512,128] → [3,3,16,8]",
        "conv": "[16,8,8,128] → [16,8,8,8]",
        "first": "[16,16,16,512] → [16,16,16,16]",
        "mean": "[]",
        "gone": "[16,3]",
    }


def test_sizes_that_explain_the_change_and_their_mirror() -> None:
    pair, back = pair_of(WIDE, NARROW), pair_of(NARROW, WIDE)
    assert shapes_clause(pair) == "its convolutions have 512 → 16 and 128 → 8 filters"
    assert shapes_clause(back) == "its convolutions have 16 → 512 and 8 → 128 filters"
    ours, theirs = changed_work(pair), changed_work(back)
    mirrored = [(one.name, one.after, one.before, one.kind, one.share) for one in theirs.sizes]
    assert [(one.name, one.before, one.after, one.kind, one.share) for one in ours.sizes] == mirrored
    whole = 810 + 360 + 2 + 80 + 5
    assert [one.share for one in ours.sizes] == pytest.approx([(810 + 360) / whole, (810 + 2) / whole])


def test_the_same_work_has_each_shape_once_and_no_change() -> None:
    pair = pair_of(WIDE, recorded("again", *(f"Conv2D conv {us} f32[16,8,8,128] {IMAGE}" for us in (390,))))
    assert texts_of(pair)["conv"] == "[16,8,8,128]"
    itself = pair_of(WIDE, WIDE)
    assert set(texts_of(itself).values()) == {"[3,3,512,128]", "[16,8,8,128]", "[16,16,16,512]", "[]", "[16,3]"}
    assert changed_work(itself) == changed_work(pair) == WorkChange()
    assert shapes_clause(itself) == ""


@pytest.mark.parametrize(
    ("before", "after", "clause"),
    [
        ("Relu x 90 f32[64,512]", "Relu x 9 f32[64,16]", "its ops have 512 → 16 in dimension 1 of `[64,512]`"),
        ("MatMul x 90 f32[64,512] 0,features", "MatMul x 9 f32[64,16] 0,features", "its matmuls are 512 → 16 wide"),
        (
            "MatMul x 90 f32[64,512] 0,features",
            "MatMul x 9 bf16[64,16] 0,features",
            "its matmuls are 512 → 16 wide and went from f32 to bf16",
        ),
        ("MatMul x 90 f32[64,512]", "MatMul x 9 bf16[64,512]", "its matmuls went from f32 to bf16"),
        (
            "GatherV2 x 90 f32[8,512,64] batch,sequence,features",
            "GatherV2 x 9 f32[8,256,64] batch,sequence,features",
            "its sequences are 256 instead of 512 long",
        ),
        (f"Conv2D x 90 f32[64,8,8,4] {IMAGE}", f"Conv2D x 9 f32[32,8,8,4] {IMAGE}", "its batch is 32 instead of 64"),
        (
            f"Conv2D x 90 f32[64,56,56,4] {IMAGE}",
            f"Conv2D x 9 f32[64,28,28,4] {IMAGE}",
            "its convolutions work on a width of 56 → 28",
        ),
        (
            f"Conv2DBackpropFilter x 90 f32[3,3,3,64] {KERNEL}",
            f"Conv2DBackpropFilter x 9 f32[3,3,4,32] {KERNEL}",
            "its convolutions have 64 → 32 filters and 3 → 4 channels",
        ),
        (
            f"Conv2DBackpropFilter x 90 f32[7,7,3,64] {KERNEL}",
            f"Conv2DBackpropFilter x 9 f32[3,3,3,64] {KERNEL}",
            "its convolutions have kernels of size 7 → 3",
        ),
        # The same array in another layout, reshaped, or split: no size changed.
        (f"Conv2D x 90 f32[64,8,8,4] {IMAGE}", "Conv2D x 9 f32[64,4,8,8] batch,filters,height,width", ""),
        ("MatMul x 90 f32[128,512]", "MatMul x 9 f32[16,8,512]", ""),
        ("MatMul x 90 f32[128,512]", "MatMul x 9 f32[16,4,512]", ""),
        # In another layout, and narrower.
        (
            f"Conv2D x 90 f32[64,8,8,16] {IMAGE}",
            "Conv2D x 9 f32[64,4,8,8] batch,filters,height,width",
            "its convolutions have 16 → 4 filters",
        ),
    ],
)
def test_what_changed_in_words(before: str, after: str, clause: str) -> None:
    assert shapes_clause(pair_of(recorded("a", before), recorded("b", after))) == clause


def test_a_size_is_named_only_if_ops_with_it_account_for_half_of_the_change() -> None:
    ours = recorded("a", "Relu x 50 f32[64,512]", "Cast other 100 f32[8]")
    for other_us, is_named in ((61.0, True), (59.0, False)):
        theirs = recorded("b", "Relu x 10 f32[64,16]", f"Cast other {other_us} f32[8]")
        assert bool(shapes_clause(pair_of(ours, theirs))) == is_named


def test_a_product_of_sizes_changed_because_a_part_of_it_did() -> None:
    gather = "batch,sequence,features"
    ours = recorded("a", f"GatherV2 e 10 f32[16,512,64] {gather}", "MatMul x 90 f32[8192,64]")
    theirs = recorded("b", f"GatherV2 e 5 f32[32,512,64] {gather}", "MatMul x 9 f32[16384,64]")
    assert shapes_clause(pair_of(ours, theirs)) == "its batch is 32 instead of 16"


def test_what_a_compiler_pads_is_no_change_of_the_program() -> None:
    ours = compiled("a", "jit(f)/x 90 %x = f32[64,30] add(f32[64,30] %p)")
    theirs = compiled("b", "jit(f)/x 9 %x = f32[64,32] add(f32[64,32] %p)")
    assert shapes_clause(pair_of(ours, theirs)) == "its ops have 30 → 32 in dimension 1 of `[64,30]`"
    for one in (ours, theirs):
        one.frames["hlo_memory"] = table("hlo_memory", kind=["parameter"], shape=["f32[64,30]"])
    assert shapes_clause(pair_of(ours, theirs)) == ""


def test_groups_of_a_convolution_are_no_channels() -> None:
    """Its kernel has the channels of a group: with twice the groups, half as many."""
    of_group = "jit(f)/conv/conv_general_dilated {us} %c.1 = f32[2,8,8,64] convolution(f32[2,8,8,64] %p, {kernel} %q)"
    labels = ", dim_labels=b01f_01io->b01f"
    ours = compiled("a", of_group.format(us=90, kernel="f32[3,3,8,64]") + labels)
    theirs = compiled("b", of_group.format(us=50, kernel="f32[3,3,4,64]") + labels)
    assert shapes_clause(pair_of(ours, theirs)) == "its ops have 8 → 4 in dimension 2 of `[3,3,8,64]`"


DOT, SUM = "jit(f)/dense/dot", "jit(f)/dense/sum"


def test_instructions_of_an_op_are_compared_with_those_that_they_are_matched_with() -> None:
    """On each side another of the two instructions takes longest."""
    ours = compiled(
        "a",
        f"{DOT} 90 %big.1 = f32[512,64] dot(f32[512,8] %p, f32[8,64] %q)",
        f"{DOT} 20 %small.1 = f32[8,64] dot(f32[8,512] %p, f32[512,64] %q)",
        f"{SUM} 10 %sum.1 = f32[64] reduce(f32[512,64] %big)",
    )
    theirs = compiled(
        "b",
        f"{DOT} 5 %big.1 = f32[16,64] dot(f32[16,8] %p, f32[8,64] %q)",
        f"{DOT} 9 %small.1 = f32[8,64] dot(f32[8,16] %p, f32[16,64] %q)",
        f"{SUM} 2 %sum.1 = f32[64] reduce(f32[16,64] %big)",
    )
    pair = pair_of(ours, theirs)
    assert texts_of(pair) == {DOT: "[512,64] → [16,64]", SUM: "[512,64] → [16,64]"}
    of_instructions = instructions_with_shapes(pair.diff("hlo_ops")).set_index("hlo_op")[SHAPE]
    assert of_instructions.to_dict() == {
        "big.1": "[512,64] → [16,64]",
        "small.1": "[8,512] → [8,16]",
        "sum.1": "[512,64] → [16,64]",
    }
    assert set(arrays(pair)["number"]) == {0, 1, 2}
    for one in (ours, theirs):
        one.frames["kernel_stats"] = table("kernel_stats", kernel_name=["gemm", "copy", "sum"], op_name=[DOT, "", SUM])
    kernels = kernels_with_shapes(pair_of(ours, theirs), pd.DataFrame({"op_name": [DOT, "", SUM]}))[SHAPE]
    assert kernels.fillna("–").tolist() == ["[512,64] → [16,64]", "–", "[512,64] → [16,64]"]


def test_operands_of_unlike_types_are_not_the_same_operand() -> None:
    """Fusions list their operands in any order."""
    ours = compiled("a", f"{SUM} 9 %sum.1 = f32[64] fusion(pred[64] %p, f32[64] %q), kind=kLoop")
    theirs = compiled("b", f"{SUM} 8 %sum.1 = f32[64] fusion(f32[64] %q, pred[64] %p), kind=kLoop")
    assert texts_of(pair_of(ours, theirs)) == {SUM: "[64]"}


def test_several_instructions_without_a_sure_pair_have_no_known_shape() -> None:
    several = (f"{DOT} 9 %u.1 = f32[8,64] dot(f32[8,8] %p)", f"{DOT} 8 %v.1 = f32[4,64] dot(f32[4,8] %p)")
    ours, theirs = compiled("a", *several), compiled("b", f"{DOT} 9 %w.1 = f32[2,64] fusion(f32[2,8] %p), kind=kLoop")
    theirs.frames["hlo_ops"] = theirs.frames["hlo_ops"].assign(program="jit_g(8)", category="dot")
    assert texts_of(pair_of(ours, theirs)) == {}
    alone = compiled("a", several[0])
    assert texts_of(pair_of(alone, theirs)) == {DOT: "[8,64] → [2,64]"}


def test_types_are_shown_where_they_differ() -> None:
    every = pd.DataFrame(
        [(0, 0, "f32[8,64]", "bf16[8,64]"), (1, 0, "f32[8]", "f32[4]"), (2, 0, "f32[8]", None), (3, 0, None, "s32[2]")],
        columns=["row", "number", "shape_baseline", "shape_candidate"],
    ).astype({"shape_baseline": "str", "shape_candidate": "str"})
    assert shape_texts(every).tolist() == ["f32[8,64] → bf16[8,64]", "[8] → [4]", "[8]", "[2]"]


def test_a_changed_work_as_data() -> None:
    ours, theirs = (
        recorded("a", "MatMul x 90 f32[64,512] 0,features"),
        recorded("b", "MatMul x 10 bf16[64,16] 0,features"),
    )
    assert changed_work(pair_of(ours, theirs)) == WorkChange(
        (ChangedSize("features", 512, 16, "matmuls", 1.0, 1, "f32[64,512]"),),
        ChangedType("f32", "bf16", "matmuls", 1.0),
    )
