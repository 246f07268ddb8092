"""The rows of the table on Home: programs and their captures."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pandas as pd

from tests.ui.found_runs import found
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.logdir.found_run import RunSummary
from tfcompare.sources.replicates import names_of
from tfcompare.ui.frame.selection import Selection
from tfcompare.ui.pages.home_programs import MOST_CAPTURES, by_row, pages, programs, rows_of, selected_elsewhere
from tfcompare.views.run_listing import listing

BEFORE = [found(f"before_run-{number}") for number in (1, 2, 3)]
AFTER = [found("after")]
OTHER = [found("other_again"), found("other")]
RUNS = [*BEFORE, *AFTER, *OTHER]
PROGRAM_OF = names_of(RUNS)
ALL = programs(RUNS, PROGRAM_OF)


def names(selection: Selection, unfolded: set[str] | None = None) -> list[str]:
    return [row.name for row in rows_of(ALL, selection, unfolded or set())]


def test_a_program_is_one_row_until_it_is_unfolded() -> None:
    assert names(Selection()) == ["before", "after", "other"]
    below = [f"\u2003run-{number}" for number in (1, 2, 3)]
    assert names(Selection(), {"before_run-2"}) == ["before", *below, "after", "other"]
    ticked = Selection().with_baseline_side([run.id for run in BEFORE])
    assert names(ticked) == ["before", "after", "other"], "all captures are ticked by the row"


def test_a_program_of_which_some_captures_are_selected_is_unfolded() -> None:
    for partly in (
        Selection("after", ("other",)),
        Selection("other", ("other_again",)),
        Selection("after", ("other", "other_again")),
    ):
        assert names(partly)[:2] == ["before", "after"]
        assert set(names(partly)[3:]) == {"\u2003other_again", "\u2003other"}


def test_what_a_filter_or_a_page_hides_stays_in_view_if_it_is_selected() -> None:
    selection = Selection("after", ("before_run-2",), repeats=(("before_run-2", "before_run-1"),))
    page = programs([BEFORE[1]], PROGRAM_OF)
    kept = selected_elsewhere(RUNS, PROGRAM_OF, selection, page)
    assert [[run.id for run in program] for program in kept] == [["after"], ["before_run-1"]]
    assert selected_elsewhere(RUNS, PROGRAM_OF, selection, ALL) == []


def test_a_page_ends_before_a_program_that_has_no_room_on_it() -> None:
    large = tuple(found(f"large_run-{number}") for number in range(MOST_CAPTURES + 1))
    assert pages([(BEFORE[0],), large, *ALL]) == [[(BEFORE[0],)], [large], ALL]
    assert pages([]) == [[]]


def read(run: FoundRun, step_ms: float | None, hour: int) -> FoundRun:
    """As `run`, with the facts from when it was read; without step times if `step_ms` is None."""
    times = None if step_ms is None else (step_ms, step_ms)
    summary = RunSummary("GPU", "H100", 2, step_ms, times, "", step_time_ms_mean=step_ms)
    return replace(run, summary=summary, recorded=datetime(2026, 1, 2, hour, tzinfo=UTC))


def line(captures: list[FoundRun]) -> pd.Series:
    shown = rows_of([tuple(captures)], Selection(), set())
    return by_row(listing(captures, {}), shown).iloc[0]


def test_a_program_has_the_mean_and_the_range_of_its_captures() -> None:
    of_all = line([read(run, ms, hour) for run, ms, hour in zip(BEFORE, (30.0, 28.0, 29.0), (1, 3, 2), strict=True)])
    assert (of_all["step_time_ms_mean"], of_all["least_ms"], of_all["most_ms"]) == (29.0, 28.0, 30.0)
    assert (of_all["steps"], of_all["size_bytes"], of_all["device"]) == (6, 30, "GPU")
    assert of_all["step_times_ms"] == [30.0, 30.0, 28.0, 28.0, 29.0, 29.0]
    assert of_all["recorded"] == pd.Timestamp("2026-01-02 03:00", tz=UTC)


def test_what_is_not_known_of_a_capture_is_missing_for_its_program() -> None:
    unread = line([read(BEFORE[0], 30.0, 1), BEFORE[1]])
    assert pd.isna(unread["step_time_ms_mean"]) and pd.isna(unread["most_ms"]) and pd.isna(unread["steps"])
    without_steps = line([read(BEFORE[0], None, 1), read(BEFORE[1], None, 2)])
    assert pd.isna(without_steps["step_time_ms_mean"]) and without_steps["step_times_ms"] is None
