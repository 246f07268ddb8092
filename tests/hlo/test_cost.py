"""Costs of instructions, and which types they multiply, worked out by hand."""

from __future__ import annotations

import json
import random

import pytest

from tests.hlo.builder import (
    BF16,
    C64,
    F32,
    PRED,
    S8,
    S32,
    U8,
    Instruction,
    Type,
    bytes_accessed,
    computation,
    flops,
    instruction,
    parameter,
    read,
    shapes,
)
from tests.xspace_builder import chunk, integer, varint
from tfcompare.hlo.convolution import WindowDimension, _positions
from tfcompare.hlo.cost import multiplied_types
from tfcompare.hlo.shapes import mask_of


def numbers(field: int, *values: int) -> bytes:
    return chunk(field, b"".join(map(varint, values)))


def contraction(left: int, right: int, *batch: int) -> bytes:
    """`dot_dimension_numbers` of one contracted dimension each."""
    return chunk(30, numbers(1, left) + numbers(2, right) + numbers(3, *batch) + numbers(4, *batch))


def entry(operands: dict[str, bytes], *instructions: Instruction) -> bytes:
    """A computation with these parameters and instructions."""
    return computation(
        9, *(parameter(name, shape, i) for i, (name, shape) in enumerate(operands.items())), *instructions
    )


def binary(opcode: str, shape: bytes, other: bytes, made: bytes, others: bytes = b"") -> bytes:
    """A computation with the instruction `x` on two parameters."""
    return entry({"a": shape, "b": other}, instruction("x", opcode, made, "a", "b", others=others))


ADD = computation(1, parameter("l", F32.scalar), parameter("r", F32.scalar, 1), instruction("s", "add", F32.scalar))


@pytest.mark.parametrize(
    ("opcode", "shape", "expected"),
    [
        ("add", F32[4, 8], 32),
        ("tanh", BF16[4, 8], 32),
        ("add", S32[4, 8], 0),  # no floating-point operation
        ("convert", BF16[4, 8], 0),
        ("select", F32[4, 8], 0),
        ("transpose", F32[4, 8], 0),
        ("while", F32[4, 8], 0),
        ("call", F32[4, 8], None),
        ("custom-call", F32[4, 8], None),
    ],
)
def test_elementwise(opcode: str, shape: bytes, expected: float | None) -> None:
    assert flops("x", binary(opcode, shape, shape, shape)) == expected


@pytest.mark.parametrize(
    ("left", "right", "made", "dimensions", "expected"),
    [
        (F32[5, 4, 7], F32[5, 7, 3], F32[5, 4, 3], (2, 1, 0), 2 * 5 * 4 * 3 * 7),
        (C64[4, 7], C64[7, 3], C64[4, 3], (1, 0), 8 * 4 * 3 * 7),
        (F32[4, 7], F32[7, 3], F32[4, 3], (5, 0), None),  # there is no such dimension
    ],
)
def test_a_dot_multiplies_and_adds_once_per_contracted_element(
    left: bytes, right: bytes, made: bytes, dimensions: tuple[int, ...], expected: float | None
) -> None:
    assert flops("x", binary("dot", left, right, made, contraction(*dimensions))) == expected


def window(*dimensions: tuple[int, int, int, int, int, int]) -> bytes:
    """Of each dimension: size, stride, low and high padding, dilation, dilation of the image."""
    return chunk(15, b"".join(chunk(1, b"".join(integer(i, n) for i, n in enumerate(d, 1))) for d in dimensions))


NHWC = chunk(
    16,
    b"".join(
        [
            *(integer(7, 0), integer(8, 3), numbers(11, 1, 2), integer(3, 2), integer(4, 3), numbers(6, 0, 1)),
            *(integer(9, 0), integer(10, 3), numbers(12, 1, 2)),
        ]
    ),
)
PLAIN = (3, 1, 0, 0, 1, 1)
SAME = (3, 1, 1, 1, 1, 1)
CROPPED = (3, 1, (1 << 64) - 1, (1 << 64) - 1, 1, 1)


@pytest.mark.parametrize(
    ("each", "image", "kernel", "made", "expected"),
    [
        (PLAIN, F32[2, 8, 8, 4], F32[3, 3, 4, 16], F32[2, 6, 6, 16], 2 * 2 * 36 * 9 * 4 * 16),
        # With padding, 3 × 8 − 2 of the pairs along a side of 8 meet the image: its two ends miss one each.
        (SAME, F32[2, 8, 8, 4], F32[3, 3, 4, 16], F32[2, 8, 8, 16], 2 * 2 * 22 * 22 * 4 * 16),
        ((3, 2, 0, 0, 1, 1), F32[2, 9, 9, 4], F32[3, 3, 4, 16], F32[2, 4, 4, 16], 2 * 2 * 16 * 9 * 4 * 16),
        # Dilated by 2, positions 0, 2, 4 of each of the 4 windows along a side.
        ((3, 1, 0, 0, 2, 1), F32[2, 8, 8, 4], F32[3, 3, 4, 16], F32[2, 4, 4, 16], 2 * 2 * 16 * 9 * 4 * 16),
        # An image of 3 with a hole between its elements, x.x.x: the windows of 3 meet 2, 1 and 2 elements.
        ((3, 1, 0, 0, 1, 2), F32[2, 3, 3, 4], F32[3, 3, 4, 16], F32[2, 3, 3, 16], 2 * 2 * 25 * 4 * 16),
        # Strided by 2 over it, both windows begin with an element and meet 2.
        ((3, 2, 0, 0, 1, 2), F32[2, 3, 3, 4], F32[3, 3, 4, 16], F32[2, 2, 2, 16], 2 * 2 * 16 * 4 * 16),
        # Negative padding crops the image.
        (CROPPED, F32[2, 8, 8, 4], F32[3, 3, 4, 16], F32[2, 4, 4, 16], 2 * 2 * 16 * 9 * 4 * 16),
        # Grouped: 4 input features in 2 groups of 2 each.
        (PLAIN, F32[2, 8, 8, 4], F32[3, 3, 2, 16], F32[2, 6, 6, 16], 2 * 2 * 36 * 9 * 2 * 16),
        ((3, 1, 1 << 62, 0, 1, 1), F32[2, 8, 8, 4], F32[3, 3, 4, 16], F32[2, 6, 6, 16], None),
        ((1 << 40, 1, 0, 0, 1, 1), F32[2, 8, 8, 4], F32[3, 3, 4, 16], F32[2, 6, 6, 16], None),
        ((3, 1, 0, 0, 1, 1 << 20), F32[2, 8, 8, 4], F32[3, 3, 4, 16], F32[2, 6, 6, 16], None),
    ],
)
def test_convolutions_count_what_meets_the_image(
    each: tuple[int, int, int, int, int, int], image: bytes, kernel: bytes, made: bytes, expected: float | None
) -> None:
    assert flops("x", binary("convolution", image, kernel, made, window(each, each) + NHWC)) == expected


def test_positions_of_a_window_are_counted_as_by_going_through_them() -> None:
    rng = random.Random(3)
    for _ in range(500):
        size, result, width = (rng.randrange(9) for _ in range(3))
        stride, dilation, base, low = rng.randint(1, 6), rng.randint(1, 4), rng.randint(1, 6), rng.randrange(-9, 9)
        places = [o * stride + w * dilation - low for o in range(result) for w in range(width)]
        met = sum(0 <= place <= (size - 1) * base and place % base == 0 for place in places)
        assert _positions(WindowDimension(width, stride, low, dilation, base), size, result) == met


def test_a_convolution_without_dimensions_is_unknown() -> None:
    assert flops("x", binary("convolution", F32[2, 8], F32[3, 4], F32[2, 6])) is None
    assert flops("x", binary("convolution", F32[2], F32[3], F32[2], window(PLAIN, PLAIN) + NHWC)) is None


def test_a_reduction_applies_its_computation_once_less_than_it_has_elements() -> None:
    windows = window((1, 1, 0, 0, 1, 1), PLAIN)
    whole = entry(
        {"a": F32[4, 8], "z": F32.scalar},
        instruction("x", "reduce", F32[4], "a", "z", calls=(1,)),
        instruction("w", "reduce-window", F32[4, 6], "a", "z", calls=(1,), others=windows),
    )
    assert (flops("x", ADD, whole), flops("w", ADD, whole)) == (32 - 4, 24 * 2)
    assert bytes_accessed("x", ADD, whole) == 4 * (32 + 1 + 4)


def test_a_scatter_applies_its_computation_to_each_update() -> None:
    operands = {"a": F32[100, 8], "i": S32[5, 1], "u": F32[5, 8]}
    whole = entry(operands, instruction("x", "scatter", F32[100, 8], "a", "i", "u", calls=(1,)))
    assert flops("x", ADD, whole) == 40
    assert bytes_accessed("x", ADD, whole) == 4 * 5 + 3 * 4 * 40  # indices; updates; what they change, read and written


def test_a_fusion_costs_what_is_in_it_and_moves_its_operands_and_results() -> None:
    fused = computation(
        2,
        parameter("p", F32[4, 7]),
        parameter("q", F32[7, 3], 1),
        instruction("d", "dot", F32[4, 3], "p", "q", others=contraction(1, 0)),
        instruction("e", "exponential", F32[4, 3], "d"),
        instruction("c", "convert", BF16[4, 3], "e"),
    )
    whole = entry({"a": F32[4, 7], "b": F32[7, 3]}, instruction("x", "fusion", BF16[4, 3], "a", "b", calls=(2,)))
    assert flops("x", fused, whole) == 2 * 12 * 7 + 12
    assert bytes_accessed("x", fused, whole) == 4 * (28 + 21) + 2 * 12


def test_a_fusion_with_an_unknown_part_is_unknown() -> None:
    fused = computation(2, parameter("p", F32[4]), instruction("c", "custom-call", F32[4], "p"))
    whole = entry({"a": F32[4]}, instruction("x", "fusion", F32[4], "a", calls=(2,)))
    assert flops("x", fused, whole) is flops("x", whole) is bytes_accessed("x", whole) is None


def test_bytes_that_are_read_twice_shared_masked_or_copied() -> None:
    """An operand that is used twice is read once; a mask has a byte an element; a copy moves its operand once each way
    and its end nothing."""
    both = shapes(F32[100], F32[100], S32.scalar)
    whole = entry(
        {"a": F32[8], "c": F32[100]},
        instruction("twice", "multiply", F32[8], "a", "a"),
        instruction("mask", "compare", PRED[8], "a", "a"),
        instruction("start", "copy-start", both, "c"),
        instruction("done", "copy-done", F32[100], "start"),
    )
    assert [bytes_accessed(name, whole) for name in ("twice", "mask", "start", "done")] == [4 * (8 + 8), 32 + 8, 800, 0]


def test_slices_and_updates_touch_what_they_take_and_change() -> None:
    whole = entry(
        {"a": F32[1000, 8], "u": F32[2, 8], "i": S32.scalar, "j": S32[5, 1]},
        instruction("s", "dynamic-slice", F32[2, 8], "a", "i", "i"),
        instruction("g", "gather", F32[5, 8], "a", "j"),
        instruction("d", "dynamic-update-slice", F32[1000, 8], "a", "u", "i", "i"),
    )
    assert [bytes_accessed(name, whole) for name in "sgd"] == [64 + 8 + 64, 160 + 20 + 160, 64 + 8 + 64]


def fused_slice(*more: Instruction, made: bytes = F32[1000, 8]) -> float | None:
    """Bytes of a fusion that takes a slice of a large array through a bitcast, and updates it in place."""
    inside = computation(
        2,
        parameter("p", F32[1000, 8]),
        parameter("q", S32.scalar, 1),
        parameter("r", F32[1000, 8], 2),
        instruction("v", "bitcast", F32[8000], "p"),
        instruction("s", "dynamic-slice", F32[8], "v", "q"),
        instruction("n", "negate", F32[8], "s"),
        instruction("u", "dynamic-update-slice", F32[1000, 8], "r", "n", "q"),
        *more,
    )
    operands = {"a": F32[1000, 8], "i": S32.scalar, "b": F32[1000, 8]}
    return bytes_accessed("x", inside, entry(operands, instruction("x", "fusion", made, "a", "i", "b", calls=(2,))))


def test_a_fused_slice_touches_the_slice_only() -> None:
    """An updated array that is no result is read, and the result written; of several results only the updated array is
    written in part."""
    assert fused_slice() == 32 + 4 + 0 + 32
    assert fused_slice(instruction("o", "bitcast", F32[1000, 8], "u")) == 32 + 4 + 0 + 32
    assert fused_slice(instruction("o", "add", F32[1000, 8], "u", "u")) == 32 + 4 + 32_000 + 32_000
    two = shapes(F32[1000, 8], F32[8])
    assert fused_slice(instruction("o", "tuple", two, "u", "n"), made=two) == 32 + 4 + 0 + 32 + 32


def test_a_program_that_calls_itself_ends() -> None:
    loop = computation(
        2, parameter("p", F32[4]), *(instruction(f"f{i}", "fusion", F32[4], "p", calls=(2,)) for i in range(9))
    )
    assert flops("f0", loop) is None


def test_absurd_costs_are_unknown() -> None:
    huge = F32[1 << 40, 1 << 20]
    assert flops("x", binary("add", huge, huge, huge)) is None
    assert bytes_accessed("x", binary("add", huge, huge, huge)) is None


def library(target: str, config: object) -> bytes:
    return chunk(28, target) + chunk(43, config if isinstance(config, bytes) else json.dumps(config))


def test_cublas_and_hipblaslt_calls_cost_what_their_dot_costs() -> None:
    product = {
        "dot_dimension_numbers": {
            "lhs_contracting_dimensions": ["2"],
            "rhs_contracting_dimensions": ["2"],
            "lhs_batch_dimensions": ["0"],
            "rhs_batch_dimensions": ["0"],
        }
    }
    workspaces = (U8, S8, S8)
    targets = ("__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8")
    for target, workspace in zip(targets, workspaces, strict=True):
        made = shapes(BF16[5, 4, 3], workspace[1 << 20])
        call = binary(
            "custom-call", BF16[5, 4, 7], BF16[5, 3, 7], made, library(target, {"gemm_backend_config": product})
        )
        assert flops("x", call) == 2 * 5 * 4 * 3 * 7
        assert bytes_accessed("x", call) == 2 * (5 * 4 * 7 + 5 * 3 * 7 + 5 * 4 * 3)  # without the workspace


@pytest.mark.parametrize(
    "config",
    [
        {},
        [],
        {"gemm_backend_config": 5},
        {"gemm_backend_config": {"dot_dimension_numbers": {"rhs_contracting_dimensions": ["9"]}}},
        {"gemm_backend_config": {"dot_dimension_numbers": {"rhs_contracting_dimensions": [{}]}}},
        {"gemm_backend_config": {"dot_dimension_numbers": {"rhs_contracting_dimensions": 3}}},
        b"[" * 100_000,
        b"\xff",
        b"",
    ],
)
def test_calls_with_a_damaged_configuration_are_unknown(config: object) -> None:
    call = binary("custom-call", F32[4, 7], F32[7, 3], F32[4, 3], library("__cublas$gemm", config))
    assert flops("x", call) is None


def test_what_a_call_moves_that_has_neither_operands_nor_results_is_unknown() -> None:
    call, other = (instruction("x", opcode, shapes()) for opcode in ("custom-call", "tuple"))
    assert bytes_accessed("x", computation(1, call)) is None
    assert bytes_accessed("x", computation(1, other)) == 0


@pytest.mark.parametrize(
    ("target", "left", "right", "made"),
    [
        ("__cudnn$convForward", F32[2, 8, 8, 4], F32[3, 3, 4, 16], F32[2, 6, 6, 16]),
        ("__cudnn$convBackwardInput", F32[2, 6, 6, 16], F32[3, 3, 4, 16], F32[2, 8, 8, 4]),
        ("__cudnn$convBackwardFilter", F32[2, 8, 8, 4], F32[2, 6, 6, 16], F32[3, 3, 4, 16]),
    ],
)
def test_a_convolution_and_its_gradients_cost_the_same(target: str, left: bytes, right: bytes, made: bytes) -> None:
    others = window(PLAIN, PLAIN) + NHWC + chunk(28, target)
    call = binary("custom-call", left, right, shapes(made, U8[99]), others)
    assert flops("x", call) == 2 * 2 * 36 * 9 * 4 * 16


def test_attention_multiplies_queries_and_keys_then_scores_and_values() -> None:
    """2 heads of 3 batches, 10 queries, 20 keys, a depth of 64, and values of 32."""
    batches = {f"{side}_batch_dimensions": ["0", "1"] for side in ("lhs", "rhs")}
    first = {"lhs_contracting_dimensions": ["3"], "rhs_contracting_dimensions": ["3"], **batches}
    second = {"lhs_contracting_dimensions": ["3"], "rhs_contracting_dimensions": ["2"], **batches}
    config = {"cudnn_fmha_backend_config": {"bmm1_dot_dimension_numbers": first, "bmm2_dot_dimension_numbers": second}}
    operands = {"q": BF16[3, 2, 10, 64], "k": BF16[3, 2, 20, 64], "v": BF16[3, 2, 20, 32]}
    made = shapes(BF16[3, 2, 10, 32], U8[0])
    call = instruction("x", "custom-call", made, "q", "k", "v", others=library("__cudnn$fmhaSoftmax", config))
    assert flops("x", entry(operands, call)) == 2 * 6 * 10 * 20 * (64 + 32)


F8 = Type(20)
GEMM, OTHER = chunk(28, "__cublas$lt$matmul$f8"), chunk(28, "te_fused_attn")


def types_of(
    made: bytes,
    opcode: str,
    *operands: bytes,
    calls: tuple[int, ...] = (),
    others: bytes = b"",
    inner: tuple[bytes, ...] = (),
) -> int:
    parameters = [parameter(f"p{i}", shape, i) for i, shape in enumerate(operands)]
    x = instruction("x", opcode, made, *(one.name for one in parameters), calls=calls, others=others)
    program = read(*inner, computation(1, *parameters, x))
    return int(multiplied_types(program, program.rows_named(["x"]))[0])


FUSED = {
    "a product in it": computation(
        2,
        parameter("a", F8[8, 8]),
        instruction("d", "dot", F32[8, 8], "a", "a"),
        instruction("c", "convert", BF16[8, 8], "d"),
    ),
    "numbers that become wider before they are multiplied": computation(
        2,
        parameter("a", S8[8, 8]),
        instruction("c", "convert", BF16[8, 8], "a"),
        instruction("d", "dot", F32[8, 8], "c", "c"),
    ),
}
NESTED = (
    FUSED["a product in it"],
    computation(3, parameter("b", BF16[8, 8]), instruction("f", "fusion", BF16[8, 8], "b", calls=(2,))),
)


def test_the_operands_of_a_product_count_and_neither_its_result_nor_scales() -> None:
    assert types_of(F32[8, 8], "dot", BF16[8, 8], BF16[8, 8]) == mask_of({16})
    assert types_of(S32[8, 8], "convolution", S8[8, 8], S8[8, 8]) == mask_of({2})
    made = shapes(BF16[8, 8], U8[99])
    assert types_of(made, "custom-call", F8[8, 8], F8[8, 8], F32.scalar, F32.scalar, others=GEMM) == mask_of({20})


def test_of_other_instructions_all_types_count() -> None:
    assert types_of(BF16[8], "convert", F32[8]) == mask_of({11, 16})
    assert types_of(BF16[8], "custom-call", F8[8], F32[8], others=OTHER) == mask_of({11, 16, 20})
    assert types_of(F32[8], "dot") == mask_of({11}), "a damaged one"


@pytest.mark.parametrize(
    ("inner", "calls", "found"),
    [
        ((FUSED["a product in it"],), 2, {20}),
        ((FUSED["numbers that become wider before they are multiplied"],), 2, {16}),
        (NESTED, 3, {20}),
    ],
)
def test_a_fusion_multiplies_what_the_products_in_it_do(inner: tuple[bytes, ...], calls: int, found: set[int]) -> None:
    assert types_of(BF16[8, 8], "fusion", F8[8, 8], calls=(calls,), inner=inner) == mask_of(found)
