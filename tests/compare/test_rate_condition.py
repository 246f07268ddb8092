"""Conditions on the rate at which ops work: what is slower for more work, and what at the same work."""

from __future__ import annotations

from functools import cache

import pytest

from tests.compare.loops import loop
from tests.compare.test_utilization import STEPS, steps
from tests.frames.tables import run_with
from tests.frames.test_hlo_ops import DOT, gpu, kernel, metadata
from tests.hlo.builder import BF16, computation, instruction, parameter, program
from tests.xspace_builder import chunk, event, integer
from tfcompare.compare.check.conditions import Finding, check, parse_condition
from tfcompare.comparison import compare
from tfcompare.run import Run

SIZE = 4096


@cache
def training(rows: int, dot_us: float, negate_us: float = 20) -> Run:
    """Each step multiplies so many rows by a matrix, and negates the product; `c` is of no program."""
    made = BF16[rows, SIZE]
    dot = instruction("dot.1", "dot", made, "p", "q", others=DOT + chunk(7, chunk(2, "jit(f)/dense/dot_general")))
    body = computation(
        1,
        parameter("p", BF16[rows, SIZE]),
        parameter("q", BF16[SIZE, SIZE], 1),
        dot,
        instruction("n", "negate", made, "dot.1"),
    )
    events = []
    for i in range(STEPS):
        events.append(event("memset", 200 * i + 155, 10, {"tf_op": "c:c"}))
        for name, at, took in (("dot.1", 0, dot_us), ("n", 110, negate_us)):
            events.append(kernel(name, 200 * i + 1 + at, took * (1 + 0.001 * (i % 3)), name))
    proto = program(body, name="jit_f", others=integer(6, 1))
    return run_with(steps(190), gpu(*events), metadata(proto, jit_f=7))


def found(ours: Run, theirs: Run, condition: str) -> Finding:
    (finding,) = check(compare(ours, theirs), [parse_condition(condition)]).found
    return finding


@pytest.mark.parametrize(
    ("rows", "dot_us", "of_time", "of_rate"),
    [
        (4096, 100, "failed", "passed"),  # twice the work in twice the time
        (2048, 100, "failed", "failed"),  # the same work in twice the time
        (1024, 50, "passed", "failed"),  # half the work in the same time
        (1024, 25, "passed", "passed"),
    ],
)
def test_more_work_is_told_from_a_lower_rate(rows: int, dot_us: float, of_time: str, of_rate: str) -> None:
    ours, theirs = training(2048, 50), training(rows, dot_us)
    assert found(ours, theirs, "op:*dot*>+30%").outcome == of_time
    finding = found(ours, theirs, "rate:*dot*<-30%")
    assert finding.outcome == of_rate
    assert finding.measured.unit == "FLOP/s"
    before, after = 2 * 2048 * SIZE**2 / 50.05e-6, 2 * rows * SIZE**2 / (dot_us * 1.001e-6)
    assert finding.measured.baseline == pytest.approx(before, rel=1e-3)
    assert finding.candidate == pytest.approx(after, rel=1e-3)
    assert finding.measured.verdict.word == ("slower" if of_rate == "failed" else "unclear")
    back = found(theirs, ours, "rate:*dot*<-30%").measured.verdict
    assert (back.ratio, back.low) == pytest.approx((before / after, 1 / finding.measured.verdict.high), rel=1e-3)


def test_a_value_is_the_rate_of_the_candidate_and_what_moves_data_has_a_bandwidth() -> None:
    ours, theirs = training(2048, 50), training(2048, 50, negate_us=40)
    per_s = 2 * 2 * 2048 * SIZE / 40e-6  # two bytes for each number, read and written
    finding = found(ours, theirs, f"rate:n<{1.5 * per_s:.3e}")
    assert (finding.outcome, finding.measured.unit) == ("failed", "bytes/s")
    assert finding.candidate == pytest.approx(per_s, rel=2e-3)
    assert found(ours, theirs, f"rate:n<{0.5 * per_s:.3e}").outcome == "passed"
    assert found(ours, ours, "rate:n<-1%").measured.verdict.word == "same"


def test_what_has_no_known_work_is_not_judged() -> None:
    one = training(2048, 50)
    without = run_with(steps(190), gpu(*(event("k", 200 * i + 1, 50, {"tf_op": "dot:dot"}) for i in range(STEPS))))
    finding = found(one, one, "rate:c<-5%")
    assert (finding.outcome, finding.reason) == (
        "missing",
        "neither run has a record of the work of ops that match 'c': 100 % of their time has no known work",
    )
    mixed = found(one, one, "rate:[nc]<-5%")
    assert mixed.outcome == "missing"
    assert mixed.reason.endswith("33.3 % of their time has no known work")
    finding = found(one, without, "rate:*dot*<-5%")
    assert (finding.outcome, finding.reason.partition(":")[0]) == (
        "untested",
        "the candidate has no record of the work of ops that match '*dot*'",
    )
    assert found(one, one, "rate:no such op<-5%").outcome == "missing"


def test_in_steps_of_several_kinds_the_work_of_each_is_unknown() -> None:
    steps_ = [("train", [("a", 500.0)]), ("train", [("a", 500.0)]), ("evaluate", [("b", 100.0)])] * 12
    finding = found(loop(steps_), loop(steps_, seed=1), "rate:a<-5%")
    assert (finding.outcome, finding.reason) == (
        "untested",
        "the work in steps of each kind is not known; choose a kind (--step-kind)",
    )
