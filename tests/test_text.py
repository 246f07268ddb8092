"""Names that may be meant."""

from __future__ import annotations

import pytest

from tfcompare.text import close_matches, did_you_mean

TABLES = ("op_stats", "op_steps", "steps", "Kernel_Stats")


@pytest.mark.parametrize(
    ("wanted", "most", "near"),
    [
        ("op_stat", 1, ["op_stats"]),
        ("op_stat", 2, ["op_stats", "op_steps"]),
        ("KERNEL_STATS", 1, ["Kernel_Stats"]),
        ("frobnicate", 3, []),
        ("", 3, []),
    ],
)
def test_the_nearest_comes_first_and_what_is_far_not_at_all(wanted: str, most: int, near: list[str]) -> None:
    assert close_matches(wanted, TABLES, most) == near


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ([], ""),
        (["a"], "; did you mean 'a'?"),
        (["a", "b"], "; did you mean 'a' or 'b'?"),
        (["a", "b", "c"], "; did you mean 'a', 'b' or 'c'?"),
    ],
)
def test_names_are_told_as_a_question(names: list[str], told: str) -> None:
    assert did_you_mean(names) == told
