"""Repeats on a page: grouped by hand or by name in the sidebar, told above the page, and part of the verdict."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.model_family.family import recorded as family
from tests.profiles import SAMPLE_RUNS, SAMPLES, loaded_run, run_path
from tests.ui.found_runs import found
from tests.ui.sidebar_widgets import named, names
from tfcompare import settings
from tfcompare.compare.repeats import program_of
from tfcompare.settings import Settings, app_folder
from tfcompare.sources.logdir import find_runs
from tfcompare.ui.frame.selection import MOST_AT_ONCE, Selection, ungrouped, with_replicates

PAGE = """
import streamlit as st
from tfcompare import ui
from tfcompare.ui.pages.view import choose_pair

view = ui.setup("A page", needs="pair")
pair = choose_pair(view.comparison)
st.session_state["key"] = id(view.comparison)
st.session_state["words"] = {name: verdict.reason for name, verdict in view.comparison.verdict.items()}
st.session_state["ratio"] = view.comparison.verdict[pair.candidate.id].ratio
st.session_state["headline"] = view.comparison.headline()
st.session_state["shown"] = pair.candidate.found.name
"""

AUTOENCODER = SAMPLES / "autoencoder"
IDS = {run.name: run.id for run in find_runs(AUTOENCODER)}
LARGE, SMALL, AGAIN, OTHER = (IDS[f"filters_{name}"] for name in ("512_128", "16_8", "16_8_again", "16_8_better_input"))


@pytest.fixture
def page(tmp_path: Path) -> Iterator[AppTest]:
    """A page of the large run and the small one, on the recorded samples."""
    script = tmp_path / "page.py"
    script.write_text(PAGE, encoding="utf-8")
    with settings.override(Settings(places=(AUTOENCODER,))):
        page = AppTest.from_file(str(script), default_timeout=90)
        page.query_params["baseline"], page.query_params["candidate"] = LARGE, SMALL
        yield page


def chips(page: AppTest) -> str:
    assert not page.exception
    return " ".join(e.value for e in page.main.markdown if "-badge[" in e.value).replace("\\", "")


def reason(page: AppTest) -> str:
    (found,) = page.session_state["words"].values()
    return str(found)


def said(page: AppTest) -> str:
    return "\n".join(e.value for e in (*page.main.error, *page.main.warning, *page.main.info)).replace("\\", "")


def repeats_of(page: AppTest, run: str):
    return named(page.multiselect, f"tfcompare.repeats.{run}")


def test_grouping_by_name_takes_one_click_and_changes_what_the_verdict_rests_on(page: AppTest) -> None:
    page.run()
    assert chips(page) == ":gray-badge[**A** filters_512_128] :violet-badge[**B** filters_16_8]"
    assert "from 20 steps per run" in reason(page)
    alone = page.session_state["key"], page.session_state["ratio"]
    button = page.button(key="tfcompare.group")
    assert button.label == "Add filters_16_8_again as a replicate"
    assert "filters_16_8_again as replicates of filters_16_8" in button.help
    button.click().run()
    assert chips(page) == ":gray-badge[**A** filters_512_128] :violet-badge[**B** filters_16_8 (2 captures)]"
    assert "from 20 and 40 steps" in reason(page)
    assert page.query_params["repeat"] == f"1:{AGAIN}"
    assert (page.session_state["key"], page.session_state["ratio"]) != alone, "nothing stale is shown"
    assert "tfcompare.group" not in [button.key for button in page.button]


def test_repeats_are_chosen_by_hand_for_each_run_and_taken_away_again(page: AppTest) -> None:
    page.run()
    assert repeats_of(page, LARGE).label == "More captures of filters_512_128"
    repeats_of(page, LARGE).set_value([AGAIN, OTHER]).run()
    assert "**A** filters_512_128 (3 captures)" in chips(page)
    assert page.query_params["repeat"] == [f"0:{AGAIN}", f"0:{OTHER}"]
    assert "un-to-run variation is measured: " in reason(page)
    assert repeats_of(page, SMALL).options == [], "a recording belongs to one run"
    repeats_of(page, LARGE).set_value([]).run()
    assert "repeat" not in page.query_params
    assert "from 20 steps per run" in reason(page)


def test_what_stands_for_several_captures_can_be_chosen_and_no_verdict_changes(page: AppTest) -> None:
    page.query_params["repeat"] = f"1:{AGAIN}"
    page.run()
    usual = page.session_state["ratio"], page.session_state["shown"]
    other = ({SMALL, AGAIN} - {IDS[usual[1]]}).pop()
    named(page.selectbox, f"tfcompare.shown.{SMALL}").set_value(other).run()
    assert page.query_params["capture"] == other
    assert page.session_state["ratio"] == usual[0] and page.session_state["shown"] != usual[1]
    repeats_of(page, SMALL).set_value([]).run()
    assert "capture" not in page.query_params
    page.query_params["capture"] = "gone"
    assert page.run().session_state["shown"] == "filters_16_8", "one that is not there is left out"


def test_a_link_shows_the_same_and_swapping_keeps_repeats_with_their_run(page: AppTest) -> None:
    page.query_params["repeat"] = f"1:{AGAIN}"
    page.run()
    forth = page.session_state["ratio"]
    assert repeats_of(page, SMALL).value == [AGAIN]
    next(button for button in page.button if button.label == "Swap").click().run()
    assert page.query_params["repeat"] == f"0:{AGAIN}"
    assert chips(page) == ":gray-badge[**A** filters_16_8 (2 captures)] :violet-badge[**B** filters_512_128]"
    assert page.session_state["ratio"] == pytest.approx(1 / forth)


def test_a_run_that_is_chosen_comes_alone(page: AppTest) -> None:
    page.query_params["candidate"] = OTHER
    page.run()
    named(page.multiselect, "tfcompare.candidates").set_value([SMALL]).run()
    assert chips(page) == ":gray-badge[**A** filters_512_128] :violet-badge[**B** filters_16_8]"
    assert "repeat" not in page.query_params


def test_a_run_that_is_grouped_is_no_candidate_and_of_many_runs_the_repeats_of_one_are_shown_at_a_time(
    page: AppTest,
) -> None:
    page.query_params["candidate"] = [SMALL, AGAIN]
    page.run()
    page.button(key="tfcompare.group").click().run()
    assert page.query_params["candidate"] == SMALL
    assert page.query_params["repeat"] == f"1:{AGAIN}"
    named(page.multiselect, "tfcompare.candidates").set_value([SMALL, AGAIN, OTHER]).run()
    assert "repeat" not in page.query_params
    assert "**B** filters_16_8] :yellow-badge[**C** filters_16_8_again]" in chips(page)
    shown = [name for name in names(page.multiselect) if name.startswith("tfcompare.repeats.")]
    assert shown == [f"tfcompare.repeats.{LARGE}"]
    page.selectbox(key="tfcompare.repeated").set_value(OTHER).run()
    assert repeats_of(page, OTHER).label.endswith("input")


def test_what_cannot_be_a_repeat_is_told_and_left_out(page: AppTest) -> None:
    page.query_params["repeat"] = [f"1:{AGAIN}", f"0:{SMALL}", f"9:{OTHER}", "0:gone"]
    page.run()
    assert "filters_16_8 (2 captures)" in chips(page)
    assert page.query_params["repeat"] == f"1:{AGAIN}"
    assert "There is no run `gone` here" in said(page)
    assert "is not counted as a replicate: it is compared itself." in said(page)
    assert "is not counted as a replicate: there is no run '9' among those compared." in said(page)


def test_another_device_a_copy_and_a_damaged_file_are_told_in_a_sentence_each(page: AppTest, tmp_path: Path) -> None:
    copy = shutil.copytree(SAMPLE_RUNS["filters_16_8"], tmp_path / "copy")
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    content = bytearray(next(SAMPLE_RUNS["filters_16_8"].rglob("*.xplane.pb")).read_bytes())
    content[2000:60000] = b"\xff" * 58000
    (damaged / "vm.xplane.pb").write_bytes(content)
    names = ("filters_512_128", "filters_16_8", "filters_16_8_again")
    places = (*(SAMPLE_RUNS[name] for name in names), run_path("gpu_filters_16_8"), copy, damaged)
    ids = {place: run.id for run in find_runs(*places) for place in places if run.path.is_relative_to(place)}
    large, small, again, on_gpu, copied, broken = (ids[place] for place in places)
    page.query_params["baseline"], page.query_params["candidate"] = large, small
    page.query_params["repeat"] = [f"1:{run}" for run in (again, on_gpu, copied, broken)]
    with settings.override(Settings(places=places)):
        page.run()
    assert "filters_16_8 (2 captures)" in chips(page)
    assert "from 20 and 40 steps" in reason(page)
    assert said(page).count("not a readable profile") == 1
    folded = next(e for e in page.main.expander if e.label == "2 captures are not counted as replicates")
    listed = folded.markdown[0].value.replace("\\", "")
    assert "is not counted as a replicate of filters_16_8: the two differ in device type (CPU and GPU)" in listed
    assert "copy is not counted as a replicate of filters_16_8: it is a copy of filters_16_8" in listed


def test_the_home_page_tells_the_same_of_the_runs_and_their_repeats(page: AppTest) -> None:
    home = AppTest.from_file(str(app_folder() / "app.py"), default_timeout=90)
    for shown in (page, home):
        shown.query_params |= {"baseline": LARGE, "candidate": SMALL, "repeat": f"1:{AGAIN}"}
        shown.run()
        assert not shown.exception
    (headline,) = (one.value for one in home.main.markdown if " vs " in one.value)
    assert headline.rpartition(": ")[2] == page.session_state["headline"].rpartition(": ")[2]


def test_many_captures_are_not_grouped_unasked() -> None:
    runs = [found(f"after/run-{number}") for number in range(1, MOST_AT_ONCE + 3)]
    chosen = Selection("before", ("after/run-1",))
    assert with_replicates(chosen, [found("before"), *runs]) == chosen
    few = with_replicates(chosen, [found("before"), *runs[:3]])
    assert few.repeats_of("after/run-1") == ("after/run-2", "after/run-3")


def test_only_what_is_no_repeat_yet_is_offered() -> None:
    selection = Selection("a", ("b",), repeats=(("a", "a2"),))
    assert ungrouped(selection, {"a": ("a2", "a3"), "b": ("a2",)}) == {"a": ("a3",)}
    assert ungrouped(selection, {"a": ("a2",)}) == {}


def test_runs_that_may_be_replicates_are_offered_and_added_with_a_click(tmp_path: Path) -> None:
    """Their names say nothing, but ops, shapes and device are the same."""
    for name, run in (("monday", "filters_16_8"), ("tuesday", "filters_16_8_again"), ("other", "filters_512_128")):
        shutil.copytree(SAMPLE_RUNS[run], tmp_path / "logs" / name)
    script = tmp_path / "page.py"
    script.write_text(PAGE, encoding="utf-8")
    with settings.override(Settings(places=(tmp_path / "logs",))):
        ids = {run.name: run.id for run in find_runs(tmp_path / "logs")}
        page = AppTest.from_file(str(script), default_timeout=90)
        page.query_params["baseline"], page.query_params["candidate"] = ids["other"], ids["tuesday"]
        page.run()
        assert not any(button.key == "tfcompare.alike" for button in page.button), "monday was not read yet"
        page.query_params["candidate"] = [ids["monday"], ids["tuesday"]]
        page.run().run()
        assert not any(button.key == "tfcompare.alike" for button in page.button), "it is unclear whose it is"
        page.query_params["candidate"] = ids["tuesday"]
        page.run()
        button = page.button(key="tfcompare.alike")
        assert button.label == "Add 1 possible replicate"
        assert "monday as replicates of tuesday" in button.help
        button.click().run()
        assert chips(page).endswith("**B** tuesday (2 captures)]")


def test_what_differs_in_ops_shapes_or_device_is_no_replicate() -> None:
    programs = {
        name: program_of(loaded_run(name)) for name in ("filters_512_128", "filters_16_8", "filters_16_8_again")
    }
    assert programs["filters_16_8"].may_be(programs["filters_16_8_again"])
    assert not programs["filters_16_8"].may_be(programs["filters_512_128"]), "other shapes"
    assert not programs["filters_16_8"].may_be(program_of(loaded_run("gpu_filters_16_8"))), "another device"
    assert not program_of(family("auto")).may_be(program_of(family("inserted_same_width"))), "one layer more"
    unknown = program_of(family("jit"))
    assert not unknown.may_be(unknown), "no shapes are known"


def test_a_folder_of_captures_of_one_program_is_shown_as_one_run(page: AppTest) -> None:
    page.query_params.clear()
    with settings.override(Settings(places=(SAMPLES / "autoencoder_gpu" / "h100_16_8",))):
        page.run()
    assert "h100_16_8 (3 captures)" in chips(page)
    assert page.session_state["headline"]
