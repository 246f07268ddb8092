"""What a card says of a change."""

from __future__ import annotations

import math

import pytest

from tfcompare.views.key_figures import KeyFigure, before_text, change_text


@pytest.mark.parametrize(
    ("unit", "before", "after", "said"),
    [
        ("share", 0.25, 0.372, "+12.2 pp"),
        ("share", 0.0025, 0.001, "−0.15 pp"),
        ("share", 0.0113, 0.0112, "−0.01 pp"),
        ("share", 0.0113, 0.01134, "unchanged"),
        ("share", 0.5, 0.5, "unchanged"),
        ("share", 0.000301, 0.000278, "−0.002 pp"),
        ("share", 0.000301, 0.000302, "unchanged"),
        ("share", 0.0, 0.00003, "+0.003 pp"),
        ("ms", 10.0, 5.0, "−50.0 %"),
        ("ms", 5.0, 49.9, "+898 %"),
        ("steps/s", 4.7, 91.8, "19.5×"),
        ("ms", math.nan, 5.0, ""),
        ("ms", 0.0, 5.0, ""),
    ],
)
def test_a_change_is_told_with_digits_that_show_it(unit, before, after, said):
    assert change_text(KeyFigure("x", unit, before, after, "lower", "x")) == said


@pytest.mark.parametrize(
    ("unit", "before", "said"),
    [
        ("share", 0.658, "from 65.8"),
        ("share", 0.00381, "from 0.38"),
        ("share", 0.000906, "from 0.0906"),
        ("share", 0.00003, "from < 0.01"),
        ("share", 0.0, "from 0"),
        ("ms", 213.0, "from 213"),
    ],
)
def test_the_value_before_fits_beside_the_change(unit, before, said):
    assert before_text(KeyFigure("x", unit, before, before / 2, "lower", "x")) == said
