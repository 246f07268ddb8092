"""Shapes as text."""

from __future__ import annotations

import math

import pytest

from tfcompare.hlo.shapes import size_of_text


@pytest.mark.parametrize(
    ("text", "size"),
    [("bf16[8,128]", 2048), ("f32[]", 4), ("s4[3]", 1.5), ("pred[0,7]", 0), (f"f32[{'9' * 400}]", math.inf)],
)
def test_the_size_of_a_shape_as_text(text: str, size: float) -> None:
    assert size_of_text(text) == size


@pytest.mark.parametrize("text", ["", "f32", "f32[8", "what[8]", "f32[8,-1]", "f32[a]", "(f32[8], f32[8])"])
def test_the_size_of_another_text_is_unknown(text: str) -> None:
    assert math.isnan(size_of_text(text))
