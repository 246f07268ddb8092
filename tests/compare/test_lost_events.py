"""Captures of one compiled program of which one lost events in the middle."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest

from tests.frames.tables import run_of, threads
from tests.hlo.builder import F32, computation, instruction, metadata, parameter, program
from tests.xspace_builder import chunk, event, line, plane, space
from tfcompare.compare.check.conditions import check, parse_condition
from tfcompare.compare.pairs import pair_with
from tfcompare.comparison import Comparison, compare
from tfcompare.run import Run
from tfcompare.views.caveats import caveats

STEPS = 24
NAMES = ("negate.1", "tanh.2", "exp.3", "abs.4", "floor.5")


@cache
def capture(
    lost: tuple[tuple[str, int], ...] = (), loop: int = 1, opcode: str = "floor", kernel_us: float = 50.0
) -> Run:
    """Steps of one program, each instruction of which launches a kernel, the last three in a loop of `loop` rounds; of
    some instructions, events of as many steps as `lost` says are lost. `opcode` is the last instruction's."""
    missing: Mapping[str, int] = dict(lost)
    opcodes = ("negate", "tanh", "exponential", "abs", opcode)
    chain = [parameter("p", F32[64])]
    for name, code in zip(NAMES, opcodes, strict=True):
        origin = chunk(7, chunk(1, code) + chunk(2, f"jit(f)/{name.split('.')[0]}"))
        chain.append(instruction(name, code, F32[64], chain[-1].name, others=origin))
    host, kernels = [], []
    for step in range(STEPS):
        at = 2_000.0 * step
        host += [
            event("train", at, 1_900, _r=1, step_num=step),
            event("PjitFunction(f)", at + 1, 10),
            event("op:Op", at + 12, 9),
        ]
        rounds = [*NAMES[:2], *(NAMES[2:] * loop)]
        for place, name in enumerate(rounds):
            if not 5 <= step < 5 + missing.get(name, 0):
                stats = {
                    "hlo_op": name,
                    "hlo_module": "jit_f",
                    "program_id": 7,
                    "kernel_details": "regs:8 grid:1,1,1 block:64,1,1",
                }
                kernels.append(event(f"kernel_{name}", at + 20 + 60 * place, kernel_us, stats))
    protos = {"jit_f(7)": program(computation(1, *chain), name="jit_f")}
    return run_of(space(threads(host), plane("/device:GPU:0", line("Stream #1", *kernels, id=1)), metadata(protos)))


def lost(comparison: Comparison) -> list[tuple[str, str]]:
    rows = pair_with(comparison).lost_events()
    return list(zip(rows["hlo_op"], rows["side"], strict=True))


@pytest.mark.parametrize("loop", [1, 3])
def test_an_instruction_that_ran_less_often_than_its_like_lost_events_and_is_not_judged(loop: int) -> None:
    found = compare(capture(loop=loop), capture((("exp.3", 6),), loop=loop, kernel_us=50.5))
    assert lost(found) == [("exp.3", "candidate")]
    rows = found.table("op_stats").set_index("op_name")
    (touched,) = [name for name in rows.index if name.endswith("exp")]
    assert rows.loc[touched, "verdict"] == "untested"
    assert rows.loc[rows.index.str.endswith("abs"), "verdict"].iloc[0] != "untested"
    outcomes = [one.outcome for one in check(found, [parse_condition(f"op:*{of}>+50%") for of in ("exp", "abs")]).found]
    assert outcomes == ["untested", "passed"]
    assert [text for text in caveats(found) if "Lost events" in text]
    assert lost(compare(found.candidates[0], found.baseline)) == [("exp.3", "baseline")]


SAME = {
    "whole": (capture(), capture(kernel_us=60.0)),
    "another number of rounds": (capture(loop=3), capture(loop=2)),
    "another program": (capture(), capture((("exp.3", 6),), opcode="ceil")),
    "at the end of a capture": (capture(), capture((("exp.3", 1),))),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_other_counts_are_no_loss(one: Run, other: Run) -> None:
    assert lost(compare(one, other)) == []
