"""The surroundings of instructions in programs written by hand."""

from __future__ import annotations

from tests.hlo.builder import F32, S32, computation, instruction, parameter, read, shapes
from tfcompare.hlo.neighbours import fused_texts, operand_texts, user_texts
from tfcompare.hlo.program import Program

FUSED = computation(
    1,
    parameter("p0", F32[8]),
    instruction("neg", "negate", F32[8], "p0"),
    instruction("sum", "add", F32[8], "neg", "p0"),
)
ENTRY = computation(
    2,
    parameter("x", F32[8]),
    instruction("pair", "sort", shapes(F32[8], S32[8]), "x"),
    instruction("first", "get-tuple-element", F32[8], "pair"),
    instruction("view", "bitcast", F32[4, 2], "first"),
    instruction("fusion", "fusion", F32[8], "view", "x", "view", calls=(1,)),
    instruction("copy", "copy", F32[8], "fusion"),
    instruction("out", "tuple", shapes(F32[8]), "copy"),
)


def around(found: Program, name: str) -> list[list[str]]:
    """The lines of what the instruction of that name uses, of what uses it, and of what is fused in it."""
    texts = (text_of(found, found.rows_named([name]))[0] for text_of in (operand_texts, user_texts, fused_texts))
    return [text.splitlines() for text in texts]


def test_neighbours_are_those_that_compute_not_those_that_hand_on() -> None:
    found = read(FUSED, ENTRY)
    assert around(found, "fusion") == [
        ["%x = f32[8] parameter", "%pair = (f32[8], s32[8]) sort"],
        ["%copy = f32[8] copy"],
        ["%p0 = f32[8] parameter()", "%neg = f32[8] negate(f32[8] %p0)", "%sum = f32[8] add(f32[8] %neg, f32[8] %p0)"],
    ]
    assert around(found, "pair") == [["%x = f32[8] parameter"], ["%fusion = f32[8] fusion"], []]
    assert around(found, "copy") == [["%fusion = f32[8] fusion"], [], []]
    assert around(found, "neg") == [["%p0 = f32[8] parameter"], ["%sum = f32[8] add"], []]


def test_many_neighbours_are_cut() -> None:
    names = [f"p{i}" for i in range(50)]
    found = read(
        computation(1, *(parameter(name, F32[8]) for name in names), instruction("all", "concatenate", F32[8], *names)),
        computation(2, *(instruction(f"n{i}", "negate", F32[8]) for i in range(50))),
        computation(3, instruction("big", "fusion", F32[8], calls=(2,))),
    )
    for lines in (around(found, "all")[0], around(found, "big")[2]):
        assert len(lines) == 32 and lines[-1] == "…"


def test_a_circle_of_tuples_ends() -> None:
    """No program has one, but a damaged file may."""
    found = read(
        computation(
            1,
            instruction("a", "tuple", F32[8], "b"),
            instruction("b", "tuple", F32[8], "a"),
            instruction("n", "negate", F32[8], "a", "missing"),
        )
    )
    assert around(found, "n")[0] == []
    assert around(found, "a")[1] == ["%n = f32[8] negate"]
