"""`op_shapes` of profiles written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import memory_runs
from tests.frames.tables import run_with
from tests.frames.test_hlo_ops import gpu, kernel, metadata
from tests.hlo.builder import BF16, F32, Instruction, computation, instruction, parameter, program
from tests.hlo.test_cost import NHWC
from tests.xspace_builder import Event, chunk, event, integer
from tfcompare.run import Run
from tfcompare.tables.op_shapes import sizes_of

FLOAT, RESOURCE, BFLOAT16 = 1, 20, 14


def allocated(op: str, shape: str, kind: int = FLOAT, region: str = "output", at: float = 1) -> Event:
    return memory_runs.allocate(at, 0, 0, tf_op=op, shape=shape, data_type=kind, region_type=region)


def shapes_of(run: Run) -> dict[tuple[str, str], tuple[str, str, int]]:
    rows = run.table("op_shapes")
    values = zip(rows["shape"], rows["dimensions"], rows["occurrences"], strict=True)
    return dict(zip(zip(rows["op_name"], rows["tensor"], strict=True), values, strict=True))


def test_the_result_of_an_op_is_what_it_allocates_most_often_as_output(tmp_path: Path) -> None:
    run = memory_runs.loaded(
        tmp_path,
        *(allocated("dense/Relu", "[32,64]", at=at) for at in (1, 2)),
        allocated("dense/Relu", "[7,64]", at=3),  # the last batch
        allocated("dense/Relu", "[4096]", region="temp", at=4),
        *(allocated("norm/FusedBatchNormV3", shape, BFLOAT16, at=5) for shape in ("[8]", "[32,4,4,8]", "[8,1]")),
        allocated("handle", "[]", RESOURCE, at=6),
        allocated("cut", "[32,…", at=7),
        event("train/dense/Relu:Relu", 8, 1),
    )
    assert shapes_of(run) == {
        ("dense/Relu", "result"): ("f32[32,64]", "", 2),
        ("norm/FusedBatchNormV3", "result"): ("bf16[32,4,4,8]", "", 1),
    }


KERNEL_GRADIENT = "Conv2DBackpropFilter"
NHWC_IMAGE, NCHW_IMAGE = "batch,height,width,filters", "batch,filters,height,width"


@pytest.mark.parametrize(
    ("op", "shape", "dimensions"),
    [
        ("enc/conv:Conv2D", "[16,8,8,128]", NHWC_IMAGE),
        ("enc/conv:Conv2D", "[16,128,8,8]", NCHW_IMAGE),
        ("enc/conv:Conv2D", "[16,8,9,128]", "batch,1,2,3"),  # another layout is as likely
        ("dec/conv:Conv2DBackpropInput", "[16,8,8,128]", NHWC_IMAGE),
        ("gradient_tape/m/enc/conv/Conv2DBackpropInput:Conv2DBackpropInput", "[16,8,8,128]", ""),
        ("gradients/enc/conv_grad/Conv2D:Conv2D", "[16,8,8,128]", ""),
        (f"gradient_tape/enc/conv/{KERNEL_GRADIENT}:{KERNEL_GRADIENT}", "[3,3,4,8]", "height,width,channels,filters"),
        (f"gradient_tape/dec/up/{KERNEL_GRADIENT}:{KERNEL_GRADIENT}", "[3,3,4,8]", "height,width,filters,channels"),
        ("dense/MatMul:MatMul", "[32,64]", "0,features"),
        ("gradient_tape/dense/MatMul:MatMul", "[32,64]", ""),
        ("embedding/lookup:ResourceGather", "[32,100,64]", "batch,sequence,features"),
        ("token_embedding/take:GatherV2", "[32,100,64]", "batch,sequence,features"),
        ("labels/take:GatherV2", "[32,100,64]", ""),
        ("dense/Relu:Relu", "[32,64]", ""),
    ],
)
def test_dimensions_have_names_where_the_op_tells(tmp_path: Path, op: str, shape: str, dimensions: str) -> None:
    name = op.partition(":")[0]
    transposed = event("dec/up:Conv2DBackpropInput", 30, 1)
    run = memory_runs.loaded(tmp_path, allocated(name, shape), event(op, 10, 1), transposed)
    assert shapes_of(run)[name, "result"] == (f"f32{shape}", dimensions, 1)


def named(op: str) -> bytes:
    return chunk(7, chunk(2, op))


def of_program(*made: Instruction, took: dict[str, float]) -> Run:
    operands = {"image": F32[2, 8, 8, 4], "kernel": F32[3, 3, 4, 16], "rows": BF16[32, 64], "weights": BF16[64, 128]}
    body = computation(1, *(parameter(name, shape, i) for i, (name, shape) in enumerate(operands.items())), *made)
    proto = program(body, name="jit_f", others=integer(6, 1))
    ran = [kernel("k", 1000 * at, us, name) for at, (name, us) in enumerate(took.items())]
    return run_with(gpu(*ran), metadata(proto, jit_f=7))


def test_of_a_compiled_op_its_longest_instruction_counts() -> None:
    forward, backward = "jit(f)/jvp(enc)/conv_general_dilated", "jit(f)/transpose(jvp(enc))/conv_general_dilated"
    convolution = instruction(
        "conv.1", "convolution", F32[2, 6, 6, 16], "image", "kernel", others=NHWC + named(forward)
    )
    gradient = instruction("conv.2", "convolution", F32[3, 3, 4, 16], "image", "conv.1", others=NHWC + named(backward))
    copy = instruction("copy.1", "copy", F32[2, 8, 8, 4], "image", others=named(forward))
    product = instruction("dot.1", "dot", BF16[32, 128], "rows", "weights", others=named("jit(f)/dense/dot_general"))
    took = {"conv.1": 50.0, "conv.2": 40.0, "copy.1": 10.0, "dot.1": 30.0}
    assert shapes_of(of_program(convolution, gradient, copy, product, took=took)) == {
        (forward, "result"): ("f32[2,6,6,16]", "batch,height,width,filters", 1),
        (forward, "operand 1"): ("f32[2,8,8,4]", "batch,height,width,channels", 1),
        (forward, "operand 2"): ("f32[3,3,4,16]", "height,width,channels,filters", 1),
        (backward, "result"): ("f32[3,3,4,16]", "", 1),
        (backward, "operand 1"): ("f32[2,8,8,4]", "", 1),
        (backward, "operand 2"): ("f32[2,6,6,16]", "", 1),
        ("jit(f)/dense/dot_general", "result"): ("bf16[32,128]", "0,features", 1),
        ("jit(f)/dense/dot_general", "operand 1"): ("bf16[32,64]", "", 1),
        ("jit(f)/dense/dot_general", "operand 2"): ("bf16[64,128]", "", 1),
    }


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ("f32[3,3,512]", (3, 3, 512)),
        ("[16]", (16,)),
        ("f32[]", ()),
        ("f32[3,x]", ()),
        (f"f32[{'9' * 5000}]", ()),
        (f"f32[{','.join('1' * 100)}]", ()),
    ],
)
def test_sizes_in_a_text(shape: str, sizes: tuple[int, ...]) -> None:
    assert sizes_of(shape) == sizes


def ran(op: str, at: float, operands: str | None = None) -> Event:
    return event(op, at, 1, **({} if operands is None else {"shape": operands}))


def test_operands_are_those_with_which_an_op_ran_most_often(tmp_path: Path) -> None:
    many = ";".join(f"float[{n}]" for n in range(100))
    run = memory_runs.loaded(
        tmp_path,
        allocated("dense/MatMul", "[32,128]", at=1),
        *(ran("dense/MatMul:MatMul", at, "(float[32,64];half[64,128])") for at in (10, 20)),
        ran("dense/MatMul:MatMul", 30, "(float[7,64];half[64,128])"),  # the last batch
        ran("dense/Relu:Relu", 40, "(bfloat16[32,128])"),  # its result has the memory of its operand
        ran("next:IteratorGetNext", 50, "(;;float[?,3];int64[])"),
        ran("empty:NoOp", 60, "()"),
        ran("sum:AddN", 70, f"({many})"),
        ran("dense/Other:Relu", 80),
        hosts=("a", "b"),
    )
    assert set(run.table("op_shapes")["host"]) == {"a", "b"}
    found = shapes_of(run)
    assert {key: cells for key, cells in found.items() if key[0] != "sum"} == {
        ("dense/MatMul", "result"): ("f32[32,128]", "0,features", 1),
        ("dense/MatMul", "operand 1"): ("f32[32,64]", "", 2),
        ("dense/MatMul", "operand 2"): ("f16[64,128]", "", 2),
        ("dense/Relu", "operand 1"): ("bf16[32,128]", "", 1),
        ("next", "operand 4"): ("s64[]", "", 1),
    }
    assert [found["sum", f"operand {n}"][0] for n in (1, 64)] == ["f32[0]", "f32[63]"]
    assert ("sum", "operand 65") not in found


def test_without_allocations_and_programs_there_are_no_rows(tmp_path: Path) -> None:
    assert shapes_of(memory_runs.loaded(tmp_path, event("dense/Relu:Relu", 8, 1))) == {}
