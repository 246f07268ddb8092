"""What the differences between two texts of a program are, summed up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.frames.tables import run_of
from tests.hlo.builder import BF16, F32, Instruction, computation, instruction, parameter, shapes
from tests.hlo.profiles import host_of
from tests.profiles import compared_runs
from tests.views.xla.test_program import profile
from tests.xspace_builder import chunk, integer
from tfcompare.compare.pairs import pairs_of
from tfcompare.comparison import compare
from tfcompare.views.steps.what_differs import program_changes_clause
from tfcompare.views.xla.program import ProgramDiff, program_diff
from tfcompare.views.xla.program_words import Kinds

X = parameter("x", F32[8, 8])


def kinds(ours: bytes, theirs: bytes, recomputed: tuple[int, int] = (0, 0)) -> Kinds:
    """Of programs in two profiles; the mirrored comparison must say as much."""
    before, after = (run_of(one).table("hlo_programs") for one in (ours, theirs))
    found, mirrored = program_diff(before, after, recomputed), program_diff(after, before, recomputed[::-1])
    assert len(found.kinds.telling) == len(mirrored.kinds.telling)
    assert len(found.kinds.others) == len(mirrored.kinds.others)
    return found.kinds


def dots(shapes: Sequence[bytes], *others: Instruction) -> bytes:
    return profile(X, *(instruction(f"dot.{i}", "dot", shape, "x", "x") for i, shape in enumerate(shapes)), *others)


def fused(inside: Sequence[str], outside: Sequence[str]) -> bytes:
    """A program with instructions of these opcodes in one fusion, and others of its own."""
    called = computation(2, X, *(instruction(f"{one}.{i}", one, F32[8, 8], "x") for i, one in enumerate(inside)))
    own = [instruction(f"own_{one}.{i}", one, F32[8, 8], "x") for i, one in enumerate(outside)]
    return profile(X, *own, instruction("out", "fusion", F32[8, 8], "x", calls=(2,)), called=[called])


OF_F32 = [F32[8, 8]] * 6
CASES = {
    "types by opcode, those of most work first": (
        dots(OF_F32, instruction("tanh.1", "tanh", F32[8, 8], "x")),
        dots([*OF_F32[:2], *[BF16[8, 8]] * 4], instruction("tanh.1", "tanh", BF16[8, 8], "x")),
        ["4 of 6 `dot` and 1 other instruction went from f32 to bf16"],
        [],
    ),
    "all of an opcode": (dots(OF_F32), dots([BF16[8, 8]] * 6), ["all 6 `dot` went from f32 to bf16"], []),
    "shapes": (dots(OF_F32), dots([F32[8, 16]] * 3 + OF_F32[:3]), [], ["3 of 6 `dot` have another shape"]),
    "more of an opcode": (dots(OF_F32), dots(OF_F32 * 2), ["6 `dot` became 12"], []),
    "cheap instructions": (
        dots(OF_F32),
        dots(OF_F32, instruction("tanh.1", "tanh", F32[8, 8], "x")),
        [],
        ["1 `tanh` was added"],
    ),
    "copies, of which nothing tells whether they are for another layout": (
        dots(OF_F32),
        dots(OF_F32, *(instruction(f"copy.{i}", "copy", F32[8, 8], "x") for i in range(2))),
        ["2 `copy` were added"],
        [],
    ),
    "fusion": (
        fused(["tanh"], ["sine", "sine", "negate"]),
        fused(["tanh", "sine", "sine", "negate"], []),
        ["3 instructions moved into fusions (`sine`, `negate`)"],
        [],
    ),
    "fission": (
        fused(["tanh", "sine"], []),
        fused(["tanh"], ["sine"]),
        ["1 instruction moved out of fusions (`sine`)"],
        [],
    ),
}


@pytest.mark.parametrize(("ours", "theirs", "telling", "others"), CASES.values(), ids=CASES)
def test_changes_of_one_kind_are_summed_up(ours: bytes, theirs: bytes, telling: list[str], others: list[str]) -> None:
    found = kinds(ours, theirs)
    following = [*filter(None, [found.shapes]), *(one for one in found.others if "other attributes" not in one)]
    assert (found.telling, following) == (telling, others)
    assert kinds(ours, ours) == Kinds([], [])


def test_what_follows_from_other_differences_is_left_out_of_the_brief_sentence() -> None:
    added, shapes = ["1 `tanh` was added"], "3 of 6 `dot` have another shape"
    found = [ProgramDiff(8, 1, 0, 3, [], one).brief for one in (Kinds([], added, shapes=shapes), Kinds([], added))]
    summary = "4 of 8 instructions differ: 1 added, 3 changed"
    assert found == [f"{summary}; {shapes}", f"{summary}; {added[0]}"]


@pytest.mark.parametrize(
    ("recomputed", "said"),
    [
        ((0, 1), "1 instruction is computed again"),
        ((26, 0), "26 instructions are no longer computed again"),
        ((4, 26), "26 instead of 4 instructions are computed again"),
    ],
)
def test_recomputation_is_named(recomputed: tuple[int, int], said: str) -> None:
    assert kinds(dots(OF_F32), dots(OF_F32), recomputed).telling == [said]


def test_sharding_is_named_and_is_no_other_attribute() -> None:
    def sharded(devices: int) -> bytes:
        sharding = chunk(40, integer(1, 3) + chunk(3, bytes([devices, 1])) + chunk(4, bytes(range(devices))))
        return profile(instruction("w", "parameter", F32[8, 8], others=integer(9, 0) + sharding))

    found = kinds(sharded(2), sharded(4))
    said = "1 instruction divided among devices in another way"
    assert found == Kinds([said], [], said)


def test_an_empty_tuple_has_no_type_to_go_from() -> None:
    def with_result(shape: bytes) -> bytes:
        return profile(X, parameter("state", shape, 1), instruction("wait.2", "custom-call", shape, "x"))

    found = kinds(with_result(shapes()), with_result(F32[4, 4]))
    assert found == Kinds([], [], shapes="`wait.2` and 1 other instruction have another shape")


def test_the_most_telling_change_of_two_runs() -> None:
    stored, again = "h100_store_activations", "h100_recompute_activations"

    def clause(baseline: str, candidate: str) -> str:
        return program_changes_clause(pairs_of(compared_runs(baseline, candidate))[0])

    assert clause(stored, again) == "26 instructions are computed again"
    assert clause(again, stored) == "26 instructions are no longer computed again"
    assert clause("h100_16_8", "h100_512_128") == "", "of other shapes alone, others tell"
    assert clause("h100_16_8", stored) == "", "of other programs, nothing"
    same = [run_of(host_of(("jit_f", time, [X]))) for time in (5, 6)]
    assert program_changes_clause(pairs_of(compare(*same))[0]) == ""


@pytest.mark.parametrize(("changed", "said"), [(2, "the input went from f32 to bf16"), (3, "")])
def test_only_the_longest_programs_are_compared_for_a_headline(changed: int, said: str) -> None:
    """An eager run has hundreds."""

    def side(shape: bytes) -> bytes:
        inputs = [parameter("x", shape if number == changed else F32[8, 8]) for number in range(6)]
        return host_of(*((f"jit_f{number}", 60 - 10 * number, [one]) for number, one in enumerate(inputs)))

    pair = pairs_of(compare(*(run_of(side(shape)) for shape in (F32[8, 8], BF16[8, 8]))))[0]
    assert program_changes_clause(pair) == said
