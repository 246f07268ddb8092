"""Sentences on what a change saves and what it costs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.profiles import compared_runs
from tests.views.flat import flat
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.steps.iterations import ALIKE
from tfcompare.compare.steps.peak_memory import ALLOCATED, OF_RUN, PLANNED
from tfcompare.compare.steps.trade_off import DEVICE_TIME, HOST_TIME, STEP_TIME, Change, Recomputed, TradeOff
from tfcompare.views import answer
from tfcompare.views.blocks import Verdict
from tfcompare.views.steps.trade_off_words import trade_off_sentence

LESS = Change(PLANNED, 600e6, 300e6)
MORE = Change(PLANNED, 300e6, 600e6)
SLOWER = Change(STEP_TIME, 2000.0, 2500.0)
FASTER = Change(STEP_TIME, 2500.0, 2000.0)
NONE = Recomputed(0)
SOME = Recomputed(26, ("attention", "mlp"), 400.0)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            TradeOff("train", LESS, SLOWER, (NONE, SOME), True),
            "Recomputing saves 300 MB of XLA's buffers (−50.0 %) for +500 µs per step of `train` (+25.0 %); 26 "
            "instructions of `attention` and `mlp` are computed again.",
        ),
        (
            TradeOff("train", FASTER, MORE, (SOME, NONE), True),
            "Not recomputing saves 500 µs per step of `train` (−20.0 %) for +300 MB of XLA's buffers (+100 %); 26 "
            "instructions of `attention` and `mlp` are no longer computed again.",
        ),
        (
            TradeOff("", LESS, SLOWER, (SOME, Recomputed(27, ("a", "b", "c", "d"), 900.0)), True),
            "Recomputing more saves 300 MB of XLA's buffers (−50.0 %) for +500 µs per step (+25.0 %); 1 more "
            "instruction of `a`, `b`, `c` and 1 more is computed again.",
        ),
        (
            TradeOff("", Change(OF_RUN, 600e6, 300e6), SLOWER, (NONE, Recomputed(2))),
            "B saves 300 MB of peak memory (−50.0 %) for +500 µs per step (+25.0 %); 2 instructions are computed "
            "again.",
        ),
        (
            TradeOff("train", FASTER, Change(ALLOCATED, 300e6, 600e6)),
            "B saves 500 µs per step of `train` (−20.0 %) for +300 MB of allocated memory (+100 %).",
        ),
        (
            TradeOff("", Change(HOST_TIME, 9000.0, 1000.0), Change(DEVICE_TIME, 1000.0, 6000.0)),
            "B saves 8.00 ms of host op time per step (−88.9 %) for +5.00 ms of device time per step (6.00×).",
        ),
    ],
)
def test_both_directions(found: TradeOff, expected: str) -> None:
    pair: Any = SimpleNamespace(iterations=ALIKE)
    assert trade_off_sentence(pair, found, "B") == expected


def test_the_verdict_has_it_first_and_says_the_time_of_the_kind_once_more_only() -> None:
    pair = pair_with(compared_runs("h100_store_activations", "h100_recompute_activations"))
    blocks = list(flat(answer.first(pair)))
    (verdict,) = (block for block in blocks if isinstance(block, Verdict))
    assert ". Recomputing saves 302 MB of XLA's buffers (−43.4 %) for +423 µs per step; 26 instr" in verdict.headline
    assert verdict.headline in answer.headline(pair, whole=True)
    assert "Recomputing" not in " ".join(verdict.basis)
