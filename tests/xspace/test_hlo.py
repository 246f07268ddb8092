"""Names of HLO instructions, out of protos written by hand."""

from __future__ import annotations

import pytest

from tests.xspace.fuzz_inputs import hlo_proto
from tests.xspace_builder import chunk, fixed32, fixed64, integer
from tfcompare.errors import NotAProfile
from tfcompare.xspace.hlo import Instruction, instructions


def test_instructions_of_all_computations_by_name() -> None:
    one = hlo_proto(("dot.1", "MatMul", "model/dense/MatMul"), ("copy.2", "", ""), ("add.3", "", "jit(f)/add"))
    other = hlo_proto(("p0", "", ""))
    assert instructions(memoryview(one + other)) == {
        "dot.1": Instruction("dot.1", "model/dense/MatMul:MatMul"),
        "copy.2": Instruction("copy.2", ""),
        "add.3": Instruction("add.3", "jit(f)/add:"),
        "p0": Instruction("p0", ""),
    }


def test_fields_of_all_forms_are_skipped() -> None:
    others = b"".join([integer(1, 5), fixed64(2, b"12345678"), fixed32(3, b"1234"), chunk(9, b"\xff" * 200)])
    instruction = chunk(2, others + chunk(1, "dot") + others + chunk(7, others + chunk(2, "é\xff")))
    proto = others + chunk(1, others + chunk(3, others + instruction))
    assert instructions(memoryview(proto)) == {"dot": Instruction("dot", "é\xff:")}


def test_an_empty_proto_has_none() -> None:
    assert instructions(memoryview(b"")) == {}


@pytest.mark.parametrize(
    ("damaged", "told"),
    [
        (chunk(1, b"\x0a\x7f"), "expected a field that ends within its HLO module, found one that runs past its end"),
        (b"\x0a", "expected a number in an HLO module, found the end of its message, or more than ten bytes"),
        (b"\x08" + b"\xff" * 11, "expected a number in an HLO module"),
        (b"\x09\1\2", "expected a field that ends within its HLO module"),
        (b"\x0b", "expected the beginning of a field of an HLO module, found bytes that begin none"),
    ],
)
def test_damage_is_told(damaged: bytes, told: str) -> None:
    with pytest.raises(NotAProfile, match=told):
        instructions(memoryview(damaged))


F32, BF16, TUPLE = 11, 16, 13


def shape(kind: int, *parts: bytes) -> bytes:
    return integer(2, kind) + b"".join(chunk(4, part) for part in parts)


def test_an_instruction_has_the_types_of_what_it_makes_and_of_what_it_takes() -> None:
    param = chunk(1, "p") + chunk(3, shape(BF16)) + integer(35, 7)
    other = chunk(1, "q") + chunk(3, shape(TUPLE, shape(F32), shape(TUPLE, shape(4)))) + integer(35, 300)
    packed = chunk(1, "dot") + chunk(3, shape(F32)) + integer(35, 9) + chunk(36, b"\x07\x63")
    single = chunk(1, "get") + chunk(3, shape(BF16)) + integer(35, 10) + integer(36, 300)
    computation = b"".join(chunk(2, one) for one in (packed, single, param, other))
    elsewhere = chunk(2, chunk(1, "alone") + integer(35, 1) + chunk(36, b"\x07"))
    found = instructions(memoryview(chunk(1, chunk(3, computation) + chunk(3, elsewhere))))
    assert {name: set(one.types) for name, one in found.items()} == {
        "p": {BF16},
        "q": {TUPLE, F32, 4},
        "dot": {F32, BF16},
        "get": {BF16, TUPLE, F32, 4},
        "alone": set(),
    }


def test_shapes_within_shapes_without_end_are_read() -> None:
    deep = shape(F32)
    for _ in range(3000):
        deep = shape(TUPLE, deep)
    proto = chunk(1, chunk(3, chunk(2, chunk(1, "deep") + chunk(3, deep))))
    assert instructions(memoryview(proto))["deep"].types == {TUPLE, F32}
