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
