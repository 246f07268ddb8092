"""Which types instructions multiply, of programs written by hand."""

from __future__ import annotations

import pytest

from tests.hlo.builder import BF16, F32, S8, S32, U8, Type, computation, instruction, parameter, read, shapes
from tests.xspace_builder import chunk
from tfcompare.hlo.cost import multiplied_types
from tfcompare.hlo.shapes import mask_of

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
