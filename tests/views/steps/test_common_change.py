"""What the Overview says of ops that did not change."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.profiles import loaded_run
from tests.views.flat import only_pair, words
from tfcompare import compare
from tfcompare.compare.controls import Controls
from tfcompare.compare.pair import Pair
from tfcompare.schema import DEVICE, HOST
from tfcompare.views import answer
from tfcompare.views.steps import common_change as module
from tfcompare.views.steps.common_change import common_change


def controls(ratio: float, reach: float = 1.05, time_ratio: float = math.nan) -> Controls:
    one = np.ones(1)
    return Controls(one, ratio * one, one, (0.9, 0.9), ratio, ratio / reach, ratio * reach, 0.01, time_ratio, "")


def a_pair() -> Pair:
    return only_pair(compare(loaded_run("filters_16_8"), loaded_run("filters_16_8_again")))


SETTING = "or a setting that touches everything."


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            {HOST: controls(1.6)},
            "What did not change takes **1.60×** as long (1.52×–1.68× in these captures) in B: a busier or slower "
            f"machine, other threads of the program, {SETTING}",
        ),
        (
            {HOST: controls(1.0), DEVICE: controls(0.8)},
            "What did not change takes **0.800×** as long on devices (0.762×–0.840× in these captures) in B: a "
            f"slower or busier device, another clock, {SETTING}",
        ),
        (
            {HOST: controls(1.6), DEVICE: controls(1.0)},
            "What did not change takes **1.60×** as long on hosts (1.52×–1.68× in these captures) in B: a busier or "
            f"slower machine, other threads of the program, {SETTING}",
        ),
        (
            {HOST: controls(1.6), DEVICE: controls(1.5)},
            "What did not change takes **1.60×** as long on hosts (1.52×–1.68× in these captures) and **1.50×** as "
            f"long on devices (1.43×–1.58× in these captures) in B: a busier or slower machine, {SETTING}",
        ),
        ({HOST: controls(1.0), DEVICE: controls(1.0)}, ""),
        ({}, ""),
    ],
    ids=["a CPU", "devices alone", "hosts alone", "both", "nothing changed", "one capture twice"],
)
def test_the_sentence_is_on_what_is_clear(
    found: dict[str, Controls], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "are_identical", lambda _: False)
    monkeypatch.setattr(Pair, "controls", found)
    pair = a_pair()
    assert common_change(pair) == sentence
    assert [text for text in words(answer.first(pair)) if "did not change" in text] == [sentence] * bool(sentence)


def test_of_identical_programs_the_rest_is_given_net_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "are_identical", lambda _: True)
    monkeypatch.setattr(Pair, "controls", {DEVICE: controls(1.25, time_ratio=1.5)})
    found = common_change(a_pair())
    assert found.endswith(" The programs are identical; net of this, all ops on devices together take 1.20× as long.")
    monkeypatch.setattr(Pair, "controls", {HOST: controls(1.25, time_ratio=1.5)})
    assert "net of" not in common_change(a_pair())
