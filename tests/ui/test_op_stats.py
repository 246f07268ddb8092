"""The table of op stats on its page: sorted, paged and narrow; and pairing its rows by hand."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import compared_runs
from tests.ui.pages import CONVOLUTION, CPU, id_of, opened, page_of, said, shown, table
from tfcompare.compare.matching.manual import ManualChoice
from tfcompare.compare.matching.manual_text import ELSEWHERE, ChoicesOfPair, to_address
from tfcompare.ui.frame import narrow
from tfcompare.ui.frame.selection import Selection, from_query
from tfcompare.ui.widgets import tables
from tfcompare.views.columns import innermost_first

FILE = "2_Op_stats"
BEFORE, AFTER = map(id_of, CPU)
NAME = CONVOLUTION.rpartition(":")[2]
PART = ManualChoice(False, (NAME,), (NAME,))
TIMES = [f"self_time_us_per_step_{role}" for role in ("baseline", "candidate", "delta")]


@pytest.fixture(scope="module")
def busy() -> pd.DataFrame:
    """The diff without the time in which no op ran."""
    rows = compared_runs(*CPU).table("op_stats")
    return rows[rows["op_type"] != "IDLE"]


@pytest.mark.parametrize(("sort", "falling"), [("-self_time_us_per_step_candidate", True), ("op_name", False)])
def test_the_order_and_all_columns_in_the_address_are_those_of_the_table(
    busy: pd.DataFrame, sort: str, falling: bool
) -> None:
    rows = table(opened(FILE, *CPU, sort=sort, all_columns="true"))
    as_shown = (lambda names: names.map(innermost_first)) if sort == "op_name" else None
    expected = busy.sort_values(sort.lstrip("-"), ascending=not falling, kind="stable", key=as_shown)
    for column in TIMES:
        assert rows[column].tolist() == expected[column].tolist()
    assert {"rank_baseline", "match", "op_name_candidate"} <= set(rows.columns)


def test_a_switch_acts_on_the_blocks_below_it() -> None:
    page = opened(FILE, *CPU)
    assert "IDLE" not in table(page)["op_name"].tolist()
    page.toggle(key="idle").set_value(True)
    assert table(shown(page))["op_name"].tolist().count("IDLE") == 1


def test_a_long_table_is_sent_a_page_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PAGE_ROWS", 100)
    page = opened(FILE, *CPU)
    assert len(table(page)) == 100
    assert "Rows 1 to 100 of 345" in said(page)


def test_a_narrow_page_has_the_figures_before_the_types() -> None:
    page = page_of(FILE, *CPU, sort=f"-{TIMES[0]}")
    page.session_state[narrow._IS_NARROW] = True
    frame = table(shown(page))
    assert list(frame.columns)[:4] == ["op_name", *TIMES]
    assert frame[TIMES[0]].is_monotonic_decreasing
    assert "verdict" in frame


# --- manual pairs; `test_an_op_is_chosen_separated_and_paired` of `tests/browser` pairs again what it separated


def keys(page: AppTest) -> set[str]:
    return {str(button.key) for button in page.button if str(button.key).startswith("by_hand")}


def rows_of(page: AppTest, name: str) -> list[str]:
    frame = table(page)
    return sorted(frame.loc[frame["op_name"] == name, "verdict"])


def told(*choices: ManualChoice, **address: str) -> AppTest:
    return opened(FILE, *CPU, by_hand=to_address((ChoicesOfPair(BEFORE, AFTER, choices),)), **address)


def test_a_link_with_choices_says_what_holds_and_an_added_row_is_offered_what_was_removed() -> None:
    page = told(PART, ManualChoice(True, ("nowhere",), (NAME,)), row=f"+{CONVOLUTION}")
    assert rows_of(page, NAME) == ["added", "removed"]
    offer = next(box for box in page.selectbox if box.label.startswith("Pair with"))
    assert offer.options[0].startswith(f"{NAME} · Conv2D · ")
    assert offer.label.endswith("of the baseline")
    assert any("there is no “nowhere”" in text.value.replace("\\", "") for text in [*page.markdown, *page.info])
    assert any("no effect" in markdown.value for markdown in page.markdown)
    assert {"by_hand_undo 0", "by_hand_undo 1", "by_hand_undo_all"} <= keys(page)
    page.button(key="by_hand_undo 1").click()
    assert "by_hand_undo 1" not in keys(shown(page)) >= {"by_hand_undo 0", "by_hand_undo_all"}


def test_a_link_that_does_not_hold_its_choices_says_so_and_an_op_that_is_none_has_no_control() -> None:
    page = page_of(FILE, *CPU, row="Host:IDLE:IDLE")
    for value in (ELSEWHERE, "nonsense"):
        page.query_params["by_hand"] = value
        assert any("does not contain" in warning.value for warning in shown(page).warning)
        assert keys(page) == set()


def test_more_choices_than_a_link_holds_are_kept_by_the_session() -> None:
    many = tuple(ManualChoice(False, (f"no_op_{i}",), (NAME,)) for i in range(60))
    page = page_of(FILE, *CPU, by_hand=ELSEWHERE)
    kept = (ChoicesOfPair(BEFORE, AFTER, (PART, *many)),)
    page.session_state["tfcompare.selection"] = Selection(BEFORE, (AFTER,), manual_pairs=kept)
    shown(page)
    assert rows_of(page, NAME) == ["added", "removed"]
    assert any("Too many for the link" in warning.value for warning in page.warning)


def test_the_address_says_everything_on_choices_unless_it_says_that_it_does_not() -> None:
    kept = (ChoicesOfPair("a", "b", (PART,)),)
    remembered = Selection("a", ("b",), manual_pairs=kept)
    assert from_query(remembered.as_query(), Selection()) == remembered
    assert from_query({"baseline": ["a"], "candidate": ["b"]}, remembered).manual_pairs == ()
    assert from_query({}, remembered).manual_pairs == kept
    elsewhere = {"baseline": ["a"], "candidate": ["b"], "by_hand": [ELSEWHERE]}
    assert from_query(elsewhere, remembered) == remembered
    assert from_query(elsewhere, Selection()).are_manual_pairs_lost
    assert json.loads(remembered.as_query()["by_hand"][0]) == ["a", "b", ["!", NAME, NAME]]
