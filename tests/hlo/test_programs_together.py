"""Programs that are read together are what each is alone, whatever names and ids they share."""

from __future__ import annotations

import numpy as np
import pytest

from tests.hlo.builder import F32, computation, instruction, parameter, program
from tests.hlo.test_hostile import everything, programs
from tests.xspace_builder import chunk, integer
from tfcompare.errors import NotAProfile
from tfcompare.hlo.buffers import buffers
from tfcompare.hlo.cost import bytes_accessed, categories, flops, multiplied_types
from tfcompare.hlo.expression import digests, expressions
from tfcompare.hlo.neighbours import operand_texts, source_ops, user_texts
from tfcompare.hlo.program import Program, read_program, read_programs

OF_INSTRUCTIONS = (
    *(flops, bytes_accessed, categories, multiplied_types, expressions, digests, operand_texts, user_texts, source_ops),
    *(Program.names, Program.tf_ops, Program.sources, Program.stacks, Program.op_names, Program.types),
)
FRAMES = (
    chunk(1, "a.py")
    + chunk(2, "run")
    + chunk(3, integer(1, 1) + integer(2, 1) + integer(3, 7))
    + chunk(4, integer(1, 1))
)


def small(name: str, size: int, opcode: str, *, has_frames: bool) -> bytes:
    """A program of the same ids and names as the others: a parameter, which may be donated, and a fusion."""
    inner = computation(1, parameter("p", F32[size]), instruction("n", opcode, F32[size], "p"))
    frame = chunk(7, chunk(2, f"jit({name})/op") + integer(15, 1))
    fusion = instruction("fusion.1", "fusion", F32[size], "x", calls=(1,), others=frame)
    main = computation(2, parameter("x", F32[size]), fusion)
    donor = chunk(18, chunk(1, integer(1, 0)))
    return program(inner, main, name=name, others=integer(6, 2) + (chunk(17, FRAMES) if has_frames else donor))


def is_sound(proto: bytes) -> bool:
    try:
        everything(proto)
    except NotAProfile:
        return False
    return True


def together(protos: list[bytes]) -> Program:
    ends = np.cumsum([len(proto) + 3 for proto in protos])
    places = np.array([(end - len(proto), len(proto)) for end, proto in zip(ends.tolist(), protos, strict=True)])
    return read_programs(np.frombuffer(b"".join(b"\xff\xff\xff" + proto for proto in protos), np.uint8), places)


@pytest.fixture(scope="module")
def protos() -> list[bytes]:
    own = [small(f"f{n}", 8 * n, opcode, has_frames=n % 2 > 0) for n, opcode in enumerate(("negate", "tanh", "add"), 1)]
    return [*own, b"", *filter(is_sound, programs())]


def test_each_program_is_what_it_is_alone(protos: list[bytes]) -> None:
    every = together(protos)
    for number, proto in enumerate(protos):
        one, alone = every.only(number), read_program(memoryview(proto))
        for column in (
            "names_of_modules",
            "entry",
            "program",
            "ids",
            "root",
            "first",
            "computation",
            "number",
            "places",
        ):
            assert getattr(one, column).tolist() == getattr(alone, column).tolist(), column
        for lists in ("operands", "called"):
            ours, theirs = getattr(one, lists), getattr(alone, lists)
            assert (ours.first.tolist(), ours.items.tolist()) == (theirs.first.tolist(), theirs.items.tolist()), lists
        assert buffers(one) == buffers(alone)


@pytest.mark.parametrize("of_instructions", OF_INSTRUCTIONS, ids=lambda figure: figure.__name__)
def test_what_is_found_for_all_at_once_is_what_is_found_for_each(of_instructions, protos: list[bytes]) -> None:
    every = together(protos)
    found = np.array(of_instructions(every, every.every), object)
    each = [read_program(memoryview(proto)) for proto in protos]
    expected = np.concatenate([np.array(of_instructions(one, one.every), object) for one in each])
    assert [repr(one) for one in found.tolist()] == [repr(one) for one in expected.tolist()]
    assert len(found) > 100


def test_an_instruction_is_found_by_its_program_and_name(protos: list[bytes]) -> None:
    every = together(protos)
    rows = every.rows_named(["fusion.1", "fusion.1", "n", "nothing"], np.array([0, 2, 1, 1]))
    assert every.programs(rows[:3]).tolist() == [0, 2, 1] and rows[3] == -1
    assert every.names(rows[:3]).tolist() == ["fusion.1", "fusion.1", "n"]
    assert every.rows_named(["fusion.1"], 3).tolist() == [-1], "the fourth program has no instructions"
