"""What a card says of a change."""

from __future__ import annotations

import math

import pytest

from tfcompare.tools.key_figures import KeyFigure
from tfcompare.ui.widgets.cards import _change


@pytest.mark.parametrize(
    ("unit", "before", "after", "said"),
    [
        ("share", 0.25, 0.372, "+12.2 pp"),
        ("share", 0.0025, 0.001, "−0.150 pp"),
        ("share", 0.0113, 0.0112, "−0.0100 pp"),
        ("share", 0.0113, 0.011300001, "unchanged"),
        ("share", 0.5, 0.5, "unchanged"),
        ("ms", 10.0, 5.0, "−50.0 %"),
        ("ms", math.nan, 5.0, None),
        ("ms", 0.0, 5.0, None),
    ],
)
def test_a_change_is_told_with_digits_that_show_it(unit, before, after, said):
    assert _change(KeyFigure("x", unit, before, after, "lower", "x")) == said
