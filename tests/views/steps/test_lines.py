"""The time of compiled programs by source line."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from tests.profiles import compared_runs
from tfcompare.compare.pairs import pairs_of
from tfcompare.schema import SIDES
from tfcompare.views.steps.source_lines import by_line

PAIRS = [
    ("jax_filters_128_32", "jax_filters_16_8"),
    ("h100_512_128", "h100_16_8"),
]


def rows(*cells: tuple[str | None, str | None, float, float]) -> pd.DataFrame:
    """Rows of a diff: source and self time of both sides; None for a side without the instruction."""
    status = ["added" if ours is None else "removed" if theirs is None else "matched" for ours, theirs, _, _ in cells]
    columns = ["source_baseline", "source_candidate", "self_time_us_baseline", "self_time_us_candidate"]
    frame = pd.DataFrame(cells, columns=columns)
    return frame.assign(status=status, self_time_us_delta=0.0)


def found(*cells: tuple[str | None, str | None, float, float]) -> dict[str, tuple[str, float, float]]:
    lines = by_line(rows(*cells))
    times = zip(lines["self_time_us_baseline"], lines["self_time_us_candidate"], strict=True)
    return {line: (now, *both) for line, now, both in zip(lines["line"], lines["line_candidate"], times, strict=True)}


def test_times_are_summed_by_line_and_the_largest_change_is_first() -> None:
    lines = found(
        ("a.py:1", "a.py:1", 5.0, 6.0),
        ("a.py:2", "a.py:2", 9.0, 1.0),
        ("a.py:1", None, 2.0, math.nan),
        ("a.py:3", "a.py:3", 4.0, 4.0),
    )
    assert lines == {"a.py:2": ("a.py:2", 9.0, 1.0), "a.py:1": ("a.py:1", 7.0, 6.0)}
    assert next(iter(lines)) == "a.py:2"


def test_a_line_that_moved_is_one_line_with_what_was_added_there() -> None:
    lines = found(("a.py:7", "a.py:9", 5.0, 6.0), (None, "a.py:9", math.nan, 3.0), (None, "a.py:4", math.nan, 1.0))
    assert lines == {"a.py:7": ("a.py:9", 5.0, 9.0), "a.py:4": ("a.py:4", 0.0, 1.0)}


def test_lines_below_an_inserted_one_have_all_moved_and_what_is_new_at_an_old_number_is_a_line_of_its_own() -> None:
    moved = [(f"a.py:{number}", f"a.py:{number + 1}", 5.0, 6.0 + number) for number in (4, 5, 6, 7)]
    lines = by_line(rows(*moved, (None, "a.py:4", math.nan, 1.0), (None, "a.py:6", math.nan, 2.0)))
    cells = lines[["line", "line_candidate", "self_time_us_baseline", "self_time_us_candidate"]]
    assert cells.to_numpy().tolist() == [
        ["a.py:5", "a.py:6", 5.0, 13.0],
        ["a.py:7", "a.py:8", 5.0, 13.0],
        ["a.py:6", "a.py:7", 5.0, 12.0],
        ["a.py:4", "a.py:5", 5.0, 10.0],
        ["a.py:4", "a.py:4", 0.0, 1.0],
    ]
    assert lines["instructions"].tolist() == [[1, 5], [3], [2], [0], [4]]


def test_what_was_added_on_a_line_of_several_stays_there() -> None:
    lines = found(("a.py:1", "a.py:3", 5.0, 5.0), ("a.py:2", "a.py:3", 5.0, 5.0), (None, "a.py:3", math.nan, 1.0))
    assert lines == {"a.py:3": ("a.py:3", 0.0, 1.0)}


def test_unknown_lines_are_left_out_and_one_that_only_the_candidate_knows_is_its() -> None:
    assert found(("", "", 1.0, 2.0), ("", "a.py:1", 1.0, 2.0)) == {"a.py:1": ("a.py:1", 1.0, 2.0)}
    assert found() == {}


@pytest.mark.parametrize("names", PAIRS)
def test_lines_and_instructions_without_one_add_up_to_the_program(names: tuple[str, str]) -> None:
    every = pairs_of(compared_runs(*names))[0].instructions()
    lines = by_line(every)
    known = every.loc[[row for of_line in lines["instructions"] for row in of_line]]
    for side in SIDES:
        whole = known[f"self_time_us_{side}"].sum()
        assert lines[f"self_time_us_{side}"].sum() == pytest.approx(whole)
    left = every.drop(known.index)
    sources = left[["source_baseline", "source_candidate"]].fillna("")
    assert ((sources == "").all(axis=1) | (left["self_time_us_delta"].fillna(0.0) == 0)).all()


@pytest.mark.parametrize("names", PAIRS)
def test_exchanged_sides_change_by_the_opposite(names: tuple[str, str]) -> None:
    there, back = (by_line(pairs_of(compared_runs(*one))[0].instructions()) for one in (names, names[::-1]))
    assert there["self_time_us_delta"].sum() == pytest.approx(-back["self_time_us_delta"].sum())


def test_a_run_alone_has_no_changes() -> None:
    alone = pairs_of(compared_runs("jax_filters_16_8", "jax_filters_16_8"))[0]
    assert by_line(alone.instructions()).empty
