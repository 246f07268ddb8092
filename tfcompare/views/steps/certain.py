"""What is certain where the step time is not: ops whose change is significant, and compiled programs that are equal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tfcompare.compare.groups.fused_rows import row_name_as_code
from tfcompare.compare.stats.verdict import FASTER, SLOWER, UNCLEAR, UNTESTED, wording
from tfcompare.compare.steps.step_time_verdict import step_time_us
from tfcompare.schema import DEVICE_BUSY_PARTS
from tfcompare.units import format_ratio, format_time_us
from tfcompare.views.advice.model import WORTH_IT

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair

MOST_NAMED = 2
"""Ops that a sentence names."""
_NAME_LETTERS = 48
_INPUT = "input_us"


@dataclass(frozen=True)
class CertainOp:
    """An op whose own change is significant: its `name` in Markdown, what it adds to the mean step, the ratio's
    interval between captures, and the evidence."""

    name: str
    delta_us: float
    low: float
    high: float
    evidence: str

    @property
    def clause(self) -> str:
        """`` `dense/MatMul` likely takes 2.40 ms more per step (1.35×–2.90×) ``"""
        much = f"{format_time_us(abs(self.delta_us))} {'more' if self.delta_us > 0 else 'less'} per step"
        interval = f"{format_ratio(self.low)}–{format_ratio(self.high)}"
        return f"{self.name} {likely(self.evidence)}takes {much} ({interval})"


def likely(evidence: str) -> str:
    """`likely `, or nothing where there are enough captures."""
    return wording(SLOWER, evidence).removesuffix(SLOWER)


def certain_ops(pair: Pair) -> list[CertainOp]:
    """The ops whose change is significant, and as large as is worth a change to a program, the largest first."""
    return pair.cached("certain ops", partial(_certain_ops, pair))


def _certain_ops(pair: Pair) -> list[CertainOp]:
    if pair.is_identical or pair.verdict.word == UNTESTED:
        return []
    diff = pair.diff()
    rows = diff[diff["verdict"].isin([FASTER, SLOWER])]
    delta = rows["wall_time_us_delta"].astype("float64")
    rows = rows[delta.abs() >= WORTH_IT * max(map(step_time_us, pair.sides))]
    rows = rows.loc[delta[rows.index].abs().sort_values(ascending=False, kind="stable").index]
    columns = ["op_name", "op_type", "wall_time_us_delta", "interval_low", "interval_high", "evidence"]
    return [
        CertainOp(row_name_as_code(name, op_type, _NAME_LETTERS), delta_us, low, high, evidence)
        for name, op_type, delta_us, low, high, evidence in rows[columns].itertuples(index=False)
    ]


def with_equal_programs(pair: Pair) -> bool:
    """Whether a change of the step time, claimed or not, cannot come from the compiled programs."""
    return not pair.is_identical and pair.headline_verdict.word != UNTESTED and have_equal_programs(pair)


def have_equal_programs(pair: Pair) -> bool:
    """Whether both sides compiled the same programs, and some."""
    from tfcompare.views.xla.program import are_identical  # it loads Plotly, and `check` does without

    has_programs = pair.diff()["bytes_accessed_baseline"].notna().any()  # ops that XLA compiled, without reading those
    return bool(has_programs) and are_identical(pair)


def what_it_can_be(pair: Pair, moved_most: str | None) -> str:
    """What a difference between steps of the same compiled programs can be, by the part that changed most, in Markdown;
    empty where the programs differ, or the steps do not."""
    verdict = pair.headline_verdict
    if not (verdict.is_claim or verdict.word == UNCLEAR) or not with_equal_programs(pair):
        return ""
    if moved_most in DEVICE_BUSY_PARTS:
        can_be = "the clock of the device, or what else it had to do"
    elif moved_most == _INPUT:
        can_be = "the input, or the load of the machine"
    else:
        can_be = "launch jitter or the load of the machine, unless the program around them changed"
    return f"Since the compiled programs are the same, the difference is {can_be}."
