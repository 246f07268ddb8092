"""What is compared: read from the address, remembered, settled against the runs there are."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tfcompare.logdir import FoundRun, HostFile
from tfcompare.ui.selection import Selection, default_pair, from_query, settle

CHOSEN = Selection("a", ("b", "c"), "run", "host-1", ("/logs",))


def found(run_id: str, *, folder: str = "/logs", readable: bool = True) -> FoundRun:
    path = Path(folder) / run_id
    files = (HostFile("vm", path / "vm.xplane.pb", 10, 1),) if readable else ()
    problems = () if readable else (f"{path}: is empty",)
    return FoundRun(run_id, run_id, path, files, problems, datetime(2026, 1, 1, tzinfo=UTC), "profile")


def no_default() -> None:
    return None


def test_an_address_says_what_a_selection_is() -> None:
    assert from_query(CHOSEN.as_query(), Selection()) == CHOSEN


def test_what_is_as_usual_is_left_out_of_the_address() -> None:
    query = Selection("a", ("b",)).as_query()
    assert {name: values for name, values in query.items() if values} == {"baseline": ["a"], "candidate": ["b"]}


def test_without_an_address_the_session_remembers() -> None:
    assert from_query({}, CHOSEN) == CHOSEN


def test_a_link_to_a_comparison_says_everything() -> None:
    assert from_query({"baseline": ["x"], "candidate": ["y"]}, CHOSEN) == Selection("x", ("y",))


def test_an_address_without_runs_changes_only_what_it_names() -> None:
    assert from_query({"per": ["step"]}, CHOSEN) == replace(CHOSEN, per="step")
    assert from_query({"dir": ["/other"]}, CHOSEN) == replace(CHOSEN, places=("/other",))


def test_nonsense_in_an_address_is_not_taken_over() -> None:
    query = {"baseline": ["", "a"], "candidate": ["b", "b", ""], "per": ["century"], "other": ["1"]}
    assert from_query(query, Selection()) == Selection("a", ("b",))


def test_swapping_keeps_the_other_candidates() -> None:
    assert Selection("a", ("b", "c")).swapped() == Selection("b", ("a", "c"))
    assert Selection("a", ("b", "c")).swapped().swapped() == Selection("a", ("b", "c"))
    assert Selection("a").swapped() == Selection("a")


@pytest.mark.parametrize(
    ("before", "run", "after"),
    [
        (Selection("a", ("b",)), "c", Selection("c", ("b",))),
        (Selection("a", ("b", "c")), "b", Selection("b", ("c",))),
        (Selection("a", ("b",)), "b", Selection("b", ("a",))),
        (Selection(None, ("b",)), "b", Selection("b", ())),
        (Selection("a", ("b",)), None, Selection(None, ("b",))),
        (Selection("a", ("b",)), "a", Selection("a", ("b",))),
    ],
)
def test_choosing_a_baseline(before: Selection, run: str | None, after: Selection) -> None:
    assert before.with_baseline(run) == after


def test_toggling_candidates() -> None:
    assert Selection("a", ("b",)).with_toggled("c") == Selection("a", ("b", "c"))
    assert Selection("a", ("b", "c")).with_toggled("b") == Selection("a", ("c",))
    assert Selection("a", ()).with_toggled("a") == Selection(None, ("a",)), "no run is compared with itself"


def test_settling_drops_what_is_not_there_and_says_so() -> None:
    runs = [found("a"), found("b"), found("bad", readable=False)]
    settled = settle(Selection("a", ("b", "gone", "bad", "a")), runs, no_default)
    assert settled.selection == Selection("a", ("b",))
    assert settled.unknown == ("gone",)
    assert [run.id for run in settled.unreadable] == ["bad"]


def test_a_wish_that_cannot_be_had_is_not_replaced_by_another() -> None:
    settled = settle(Selection("gone", ("b",)), [found("a"), found("b")], lambda: ("a", "b"))
    assert settled.selection == Selection(None, ("b",))


def test_the_default_is_taken_only_where_nothing_was_wished_for() -> None:
    runs = [found("a"), found("b")]
    assert settle(Selection(per="run"), runs, lambda: ("a", "b")).selection == Selection("a", ("b",), "run")
    assert settle(Selection(), runs, no_default).selection == Selection()


def test_the_newest_run_is_compared_with_the_one_before_it() -> None:
    runs = [found("a"), found("b"), found("c"), found("bad", readable=False)]
    assert default_pair(runs, [Path("/logs")]) == ("b", "c")
    assert default_pair(runs[:1], [Path("/logs")]) is None


def test_of_two_places_the_first_is_the_baseline() -> None:
    runs = [found("old", folder="/after"), found("a", folder="/before"), found("b", folder="/before")]
    assert default_pair(runs, [Path("/before"), Path("/after")]) == ("b", "old")
    assert default_pair(runs, [Path("/after"), Path("/before")]) == ("old", "b")


def test_the_samples_begin_with_the_guiding_example() -> None:
    runs = [found("autoencoder/filters_512_128/x"), found("autoencoder/filters_16_8/x"), found("z")]
    assert default_pair(runs, []) == ("autoencoder/filters_512_128/x", "autoencoder/filters_16_8/x")
