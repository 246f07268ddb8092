"""The timeline in words: the places that buttons lead to, and steps that are not compared."""

from __future__ import annotations

from dataclasses import replace

from tests.views.timeline.cases import GPU_PAIR, aligned_pair
from tfcompare.views.timeline import words
from tfcompare.views.timeline.drawing import Viewport, drawing
from tfcompare.views.timeline.losses import losses

GRADIENT = "jit(train_step)/transpose(jvp(decoder_outer))/conv_general_dilated"
INNER = "jit(train_step)/transpose(jvp(decoder_inner))/conv_general_dilated"


def buttons(*places: dict[str, object]) -> list[str]:
    """The texts of buttons that lead to losses of 1 ms with these attributes."""
    aligned = aligned_pair(*GPU_PAIR)
    loss = replace(losses(aligned)[0], lost_us=-1_000.0)
    found = words.jumps(aligned, Viewport(), [replace(loss, **place) for place in places], ["A", "B"])
    return [jump.text for jump in found]


def test_buttons_of_ops_with_long_names_show_the_scopes_that_tell_them_apart() -> None:
    assert buttons({"op_name": GRADIENT}, {"op_name": INNER}, {"op_name": "MemcpyH2D", "is_wait": True}) == [
        "−1.00 ms in …/transpose(jvp(decoder_outer))/conv_general_dilated",
        "−1.00 ms in …/transpose(jvp(decoder_inner))/conv_general_dilated",
        "−1.00 ms waiting before MemcpyH2D",
    ]
    long = [f"{scope}/{'x' * 70}/mul" for scope in ("first", "second")]
    first, second = buttons(*({"op_name": name} for name in long))
    assert first != second, "where the innermost scopes are the same"
    assert max(len(first), len(second)) < 80


def test_a_place_that_one_side_alone_has_names_that_side() -> None:
    assert buttons({"unmatched": "net/conv"}, {"unmatched": "net/conv", "lost_us": 1_000.0}) == [
        "−1.00 ms in net/conv, only in A",
        "+1.00 ms in net/conv, only in B",
    ]


def test_steps_of_programs_that_have_nothing_in_common_are_neither_faster_nor_slower() -> None:
    aligned = aligned_pair(*GPU_PAIR).without_pairs()
    drawn = drawing(aligned, Viewport())
    assert set(drawn["spans"]["status"]) == {0}
    assert set(drawn["spans"]["partner"]) == {-1}
    assert not drawn["is_compared"]
    assert len(drawn["drift"]) == 0
    assert losses(aligned) == []
    assert words.lengths(aligned, ["A", "B"]) == "Step 6 of B takes **7.41 ms**, step 4 of A **30.4 ms**."
