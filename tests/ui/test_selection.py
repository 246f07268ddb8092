"""What is compared: read from the address, remembered, settled against the runs there are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.found_runs import found
from tfcompare.loading import Question
from tfcompare.sources.step_choice import StepChoice
from tfcompare.ui.frame.selection import Selection, default_runs, from_query, resolve_selection

CHOSEN = Selection(
    "a",
    ("b", "c"),
    "run",
    "host-1",
    ("/logs",),
    step_marker="train_step",
    step_range="5:25",
    step_kind="train",
    counts_stray=True,
)


def no_default() -> tuple[str, ...]:
    return ()


def test_an_address_says_what_a_selection_is_and_leaves_out_what_is_as_usual() -> None:
    assert from_query(CHOSEN.as_query(), Selection()) == CHOSEN
    query = Selection("a", ("b",)).as_query()
    assert {name: values for name, values in query.items() if values} == {"baseline": ["a"], "candidate": ["b"]}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, CHOSEN),  # the session remembers
        ({"baseline": ["x"], "candidate": ["y"]}, Selection("x", ("y",))),  # a link says everything
        ({"per": ["step"]}, replace(CHOSEN, per="step")),
        ({"dir": ["/other"]}, replace(CHOSEN, places=("/other",))),
        ({"stray": ["exclude"]}, replace(CHOSEN, counts_stray=False)),
    ],
)
def test_what_an_address_changes_of_what_was_chosen_before(query: dict[str, list[str]], expected: Selection) -> None:
    assert from_query(query, CHOSEN) == expected


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
    assert Selection("a", ("b",)).with_toggled(["c"]) == Selection("a", ("b", "c"))
    assert Selection("a", ("b", "c")).with_toggled(["b"]) == Selection("a", ("c",))
    assert Selection("a", ()).with_toggled(["a"]) == Selection(None, ("a",)), "no run is compared with itself"


def test_a_tick_takes_all_captures_of_a_program_as_one_side() -> None:
    ticked = Selection().with_baseline_side(["a1", "a2"]).with_toggled(["b1", "b2", "b3"])
    assert ticked == Selection("a1", ("b1",), repeats=(("a1", "a2"), ("b1", "b2"), ("b1", "b3")))
    assert ticked.swapped().swapped() == ticked
    assert ticked.with_toggled(["b1", "b2", "b3"]) == Selection("a1", repeats=(("a1", "a2"),))
    assert ticked.with_baseline_side(["b1", "b2", "b3"]).question.repeats == (("b2", "b3"), ("a2",)), "they swap"
    assert ticked.with_baseline_side(["c"]) == Selection("c", ("b1",), repeats=(("b1", "b2"), ("b1", "b3")))


def test_a_tick_of_one_capture_is_of_that_one_alone() -> None:
    sides = Selection("a1", ("b1",), repeats=(("a1", "a2"), ("b1", "b2")))
    program = ["b1", "b2", "b3"]
    assert sides.with_toggled(["b3"], program).side_of("b1") == ("b1", "b2", "b3")
    assert sides.with_toggled(["b1"], program) == Selection("a1", ("b2",), repeats=(("a1", "a2"),))
    assert sides.with_toggled(["b3"]).candidates == ("b1", "b3")
    assert sides.with_toggled(["a1"], ["a1", "a2"]).compared == ("a2", "b1", "a1"), "of one program, both sides"
    assert sides.with_baseline_side(["b2"]) == Selection("b2", ("b1",))
    partly = Selection("a1", ("c", "b2"), repeats=(("c", "b1"),))
    assert partly.with_toggled(program) == Selection("a1", ("c",), repeats=(("c", "b1"), ("c", "b2"), ("c", "b3")))


def test_a_ticked_baseline_drops_the_candidates_that_nobody_ticked() -> None:
    default = Selection("a", ("b",))
    assert default.with_ticked_baseline(["c", "c2"], default) == Selection("c", repeats=(("c", "c2"),))
    assert default.with_toggled(["d"]).with_ticked_baseline(["c"], default) == Selection("c", ("d",))
    assert default.with_ticked_baseline(["b"], default) == Selection("b", ("a",)), "they swap"
    assert Selection("x", ("b",)).with_ticked_baseline(["c"], default) == Selection("c", ("b",)), "it was chosen"
    assert default.with_ticked_baseline(["c"], Selection()) == Selection("c", ("b",)), "so it was here"


def test_settling_drops_what_is_not_there_and_says_so() -> None:
    runs = [found("a"), found("b"), found("bad", readable=False)]
    settled = resolve_selection(Selection("a", ("b", "gone", "bad", "a")), runs, no_default)
    assert settled.selection == Selection("a", ("b",))
    assert settled.unknown == ("gone",)
    assert [run.id for run in settled.unreadable] == ["bad"]


def test_that_a_run_is_gone_is_not_said_again_of_its_replicates() -> None:
    wish = Selection("gone", ("b",), repeats=(("gone", "a"), ("b", "c")))
    settled = resolve_selection(wish, [found("a"), found("b"), found("c")], no_default)
    assert (settled.unknown, settled.misplaced) == (("gone",), ())
    assert settled.selection == Selection(None, ("b",), repeats=(("b", "c"),))


def test_a_wish_that_cannot_be_had_is_not_replaced_by_another() -> None:
    settled = resolve_selection(Selection("gone", ("b",)), [found("a"), found("b")], lambda: ("a", "b"))
    assert settled.selection == Selection(None, ("b",))


def test_the_default_is_taken_only_where_nothing_was_wished_for() -> None:
    runs = [found("a"), found("b")]
    assert resolve_selection(Selection(per="run"), runs, lambda: ("a", "b")).selection == Selection("a", ("b",), "run")
    assert resolve_selection(Selection(), runs, no_default).selection == Selection()


def test_the_newest_run_is_compared_with_the_one_before_it() -> None:
    runs = [found("a"), found("b"), found("c"), found("bad", readable=False)]
    assert default_runs(runs, [Path("/logs")]) == ("b", "c")


def test_captures_of_one_program_are_one_side() -> None:
    runs = [found(f"logs/before/run-{number}") for number in (1, 2, 3)]
    assert default_runs(runs, [Path("/logs/before")]) == (runs[0].id,)
    several = [*runs, found("logs/after/run-1")]
    assert default_runs(several, [Path("/logs")]) == (runs[2].id, several[3].id)


def test_a_selection_asks_one_question() -> None:
    grouped = Selection("a", ("b",), "run", "host-1", repeats=(("a", "a2"), ("b", "b2")), step_range="5:25")
    assert grouped.question == Question(
        ("a", "b"), (("a2",), ("b2",)), steps=StepChoice(first=5, last=25), per="run", host="host-1", pairs=((),)
    )


def test_added_runs_become_candidates_or_the_missing_baseline() -> None:
    assert Selection("a", ("b",)).with_added(["c", "b", "d"]) == Selection("a", ("b", "c", "d"))
    assert Selection().with_added(["c", "d"]) == Selection("c", ("d",))
    assert Selection(None, ("b",)).with_added(["c"]) == Selection("c", ("b",))
    assert Selection("a").with_added(["a"]) == Selection("a")
    assert GROUPED.with_added(["a2"]).repeats == (("a", "a3"), ("c", "c2")), "a replicate that is added is compared"


def test_one_run_alone_is_the_baseline_by_default() -> None:
    runs = [found("a"), found("bad", readable=False)]
    assert default_runs(runs, [Path("/logs")]) == ("a",)
    assert default_runs(runs[1:], [Path("/logs")]) == ()
    assert resolve_selection(Selection(), runs, lambda: ("a",)).selection == Selection("a")


def test_a_link_may_name_runs_by_their_display_names() -> None:
    runs = [replace(found(f"logs/{name}/1"), name=name) for name in ("a", "b", "c")]
    query = {"baseline": ["a"], "candidate": ["logs/b/1", "d"], "repeat": ["0:c"]}
    settled = resolve_selection(from_query(query, Selection()), runs, no_default)
    assert settled.selection == Selection("logs/a/1", ("logs/b/1",), repeats=(("logs/a/1", "logs/c/1"),))
    assert settled.unknown == ("d",)


def test_an_id_comes_before_the_name_of_another_run() -> None:
    runs = [replace(found("a"), name="b"), replace(found("b"), name="c")]
    assert resolve_selection(Selection("b"), runs, no_default).selection == Selection("b")


def test_of_two_places_the_first_is_the_baseline() -> None:
    runs = [found("old", folder="/after"), found("a", folder="/before"), found("b", folder="/before")]
    assert default_runs(runs, [Path("/before"), Path("/after")]) == ("b", "old")
    assert default_runs(runs, [Path("/after"), Path("/before")]) == ("old", "b")


def test_the_samples_begin_with_the_guiding_example() -> None:
    runs = [found("autoencoder/filters_512_128/x"), found("autoencoder/filters_16_8/x"), found("z")]
    assert default_runs(runs, []) == ("autoencoder/filters_512_128/x", "autoencoder/filters_16_8/x")


GROUPED = Selection("a", ("b", "c"), repeats=(("a", "a2"), ("a", "a3"), ("c", "c2")))


def test_the_address_names_repeats_by_the_place_of_their_run() -> None:
    assert GROUPED.as_query()["repeat"] == ["0:a2", "0:a3", "2:c2"]
    shown = replace(GROUPED, captures=("a3", "c"))
    assert from_query(shown.as_query(), Selection()) == shown
    assert from_query(GROUPED.as_query(), Selection()) == GROUPED
    colons = Selection("a", ("b",), repeats=(("b", "logs/10:30/x"),))
    assert from_query(colons.as_query(), Selection()) == colons, "a run's id may hold colons"


def test_a_link_without_repeats_has_none_and_without_an_address_they_are_remembered() -> None:
    assert from_query({"baseline": ["a"], "candidate": ["b"]}, GROUPED).repeats == ()
    assert from_query({}, GROUPED) == GROUPED


def test_swapping_keeps_repeats_with_their_run() -> None:
    swapped = GROUPED.swapped()
    assert (swapped.repeats_of("a"), swapped.repeats_of("b"), swapped.repeats_of("c")) == (("a2", "a3"), (), ("c2",))
    assert swapped.as_query()["repeat"] == ["1:a2", "1:a3", "2:c2"]
    assert swapped.swapped() == GROUPED


def test_repeats_go_when_their_run_does() -> None:
    assert GROUPED.with_toggled(["c", "c2"]) == Selection("a", ("b",), repeats=(("a", "a2"), ("a", "a3")))
    assert GROUPED.with_toggled(["b"]).repeats == GROUPED.repeats
    assert GROUPED.with_baseline("c") == Selection("c", ("b",), repeats=(("c", "c2"),))
    assert GROUPED.with_candidates(["b"]).repeats == (("a", "a2"), ("a", "a3"))


def test_a_repeat_that_is_compared_is_none_any_more() -> None:
    assert GROUPED.with_toggled(["a2"]) == Selection("a", ("b", "c", "a2"), repeats=(("a", "a3"), ("c", "c2")))
    assert GROUPED.with_baseline("c2") == Selection("c2", ("b", "c"))


def test_grouped_runs_are_no_candidates_and_stand_beside_one_run() -> None:
    grouped = GROUPED.with_repeats("b", ("c", "a2", "b"))
    assert grouped == Selection("a", ("b",), repeats=(("a", "a3"), ("b", "c"), ("b", "a2")))
    assert GROUPED.with_repeats("a", ()).repeats == (("c", "c2"),)
    assert GROUPED.with_repeats("b", ("a",)) == GROUPED, "the baseline stays what it is"


def test_settling_tells_which_repeats_cannot_be_had() -> None:
    runs = [found(run) for run in ("a", "b", "c", "a2")] + [found("bad", readable=False)]
    wish = from_query(
        {
            "baseline": ["a"],
            "candidate": ["b"],
            "repeat": ["0:a2", "0:b", "1:a2", "7:c", "gone:c", "1:missing", "1:bad", "nonsense"],
        },
        Selection(),
    )
    settled = resolve_selection(wish, runs, no_default)
    assert settled.selection == Selection("a", ("b",), repeats=(("a", "a2"),))
    assert settled.unknown == ("missing", "nonsense")
    assert [run.id for run in settled.unreadable] == ["bad"]
    assert [(bad.run, bad.why) for bad in settled.misplaced] == [
        ("b", "it is compared itself"),
        ("a2", "it was given for two runs, and counts for the first of them"),
        ("c", "there is no run '7' among those compared"),
        ("c", "there is no run 'gone' among those compared"),
    ]


def test_repeats_of_runs_that_were_not_chosen_go_to_no_default() -> None:
    runs = [found(run) for run in ("a", "b", "c")]
    settled = resolve_selection(from_query({"repeat": ["0:c"]}, Selection()), runs, lambda: ("a", "b"))
    assert settled.selection == Selection("a", ("b",))
    assert [bad.run for bad in settled.misplaced] == ["c"]


def test_the_sidebar_is_drawn_anew_whenever_others_change_what_is_selected() -> None:
    def script() -> None:
        import streamlit as st

        from tfcompare.ui.frame.selection import Selection
        from tfcompare.ui.frame.state import choose, widget_key

        keys = []
        for selection, by_its_widget in [
            (Selection("a", ("b",)), False),
            (Selection("a", ("b",)), False),
            (Selection("a", ("c",)), True),
            (Selection("c", ("a",)), False),
        ]:
            choose(selection, by_its_widget=by_its_widget)
            keys.append(widget_key("candidates"))
        st.session_state["keys"] = keys

    keys = AppTest.from_function(script, default_timeout=90).run().session_state["keys"]
    assert keys[0] == keys[1] == keys[2], "a widget that a user just changed keeps its focus"
    assert keys[2] != keys[3], "what a browser still sends of the selection before is not taken for a choice"


def test_a_widget_that_shows_what_it_showed_was_not_changed() -> None:
    def script() -> None:
        import streamlit as st

        from tfcompare.ui.frame.sidebar import showing

        chosen: list[str] = []
        widget = showing("per", "step", chosen.append)
        widget["on_change"](*widget["args"])
        st.session_state["before"] = list(chosen)
        st.session_state[widget["key"]] = "run"
        widget["on_change"](*widget["args"])
        st.session_state["after"] = chosen

    page = AppTest.from_function(script, default_timeout=90).run()
    assert (page.session_state["before"], page.session_state["after"]) == ([], ["run"])
