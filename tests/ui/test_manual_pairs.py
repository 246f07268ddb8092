"""Pairing by hand on the pages, run by Streamlit without a browser."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.pages import CONVOLUTION, CPU, GPU, id_of, opened, page_of, shown, table
from tfcompare.compare.matching.manual import ManualChoice
from tfcompare.compare.matching.manual_text import ELSEWHERE, ChoicesOfPair, to_address
from tfcompare.ui.frame.selection import Selection, from_query
from tfcompare.ui.pages.live import kernel_address

BEFORE, AFTER = map(id_of, CPU)
NAME = CONVOLUTION.rpartition(":")[2]
PART = ManualChoice(False, (NAME,), (NAME,))
FILE = "2_Op_stats"


def keys(page: AppTest) -> set[str]:
    return {str(button.key) for button in page.button if str(button.key).startswith("by_hand")}


def rows_of(page: AppTest, name: str) -> list[str]:
    frame = table(page)
    return sorted(frame.loc[frame["op_name"] == name, "verdict"])


def told(*choices: ManualChoice, **address: str) -> AppTest:
    return opened(FILE, *CPU, by_hand=to_address((ChoicesOfPair(BEFORE, AFTER, choices),)), **address)


def test_no_control_is_shown_where_it_can_do_nothing() -> None:
    assert keys(opened(FILE, *CPU, row="Host:IDLE:IDLE")) == set()


def test_a_pair_can_be_parted_and_made_again() -> None:
    page = opened(FILE, *CPU, row=CONVOLUTION)
    assert keys(page) == {"by_hand_part"}
    before = table(page)
    page.button(key="by_hand_part").click()
    assert rows_of(shown(page), NAME) == ["added", "removed"]
    assert {"by_hand_pair", "by_hand_undo 0", "by_hand_undo_all"} <= keys(page)
    page.button(key="by_hand_pair").click()
    shown(page)
    assert any("manual" in caption.value for caption in page.caption)
    assert table(page).equals(before)
    page.button(key="by_hand_undo_all").click()
    assert keys(shown(page)) == {"by_hand_part"}


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


@pytest.mark.parametrize("value", [ELSEWHERE, "nonsense"])
def test_a_link_that_does_not_hold_its_choices_says_so(value: str) -> None:
    page = opened(FILE, *CPU, by_hand=value)
    assert any("does not contain" in warning.value for warning in page.warning)


def test_more_choices_than_a_link_holds_are_kept_by_the_session() -> None:
    many = tuple(ManualChoice(False, (f"no_op_{i}",), (NAME,)) for i in range(60))
    page = told(PART)
    kept = (ChoicesOfPair(BEFORE, AFTER, (PART, *many)),)
    page.session_state["tfcompare.selection"] = Selection(BEFORE, (AFTER,), manual_pairs=kept)
    page.query_params["by_hand"] = ELSEWHERE
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


def test_kernels_are_parted_by_op_and_by_kernel() -> None:
    page = page_of("3_Kernel_stats", *GPU, by="op")
    op = str(table(shown(page))["op_name"].iloc[1])
    page.query_params["row"] = kernel_address((op,), ("op_name",), "matched")
    assert keys(shown(page)) == {"by_hand_part"}
    page.button(key="by_hand_part").click()
    names = table(shown(page))["op_name"].tolist()
    assert op in names and f"{op} (candidate's)" in names
    assert {"by_hand_pair", "by_hand_undo_all"} <= keys(page)
