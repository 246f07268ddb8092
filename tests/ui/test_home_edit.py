"""Renaming, tagging and hiding runs on the home page, and what others see of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import SAMPLE_RUNS, SAMPLES, loaded_run
from tests.ui.home_page import table, texts
from tfcompare import settings
from tfcompare.settings import Settings, app_folder
from tfcompare.sources.logdir import find_runs
from tfcompare.store.annotations import Annotation, path_in, read_annotations, write_annotation
from tfcompare.ui.frame import annotated
from tfcompare.ui.frame.hooks import Hooks
from tfcompare.ui.pages import home_filters
from tfcompare.ui.pages import home_runs as home_edit

PLACE = SAMPLES / "autoencoder"
RUNS = {run.name: run for run in find_runs(PLACE)}
AGAIN = RUNS["filters_16_8_again"]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[AppTest]:
    """The home page for a browser on the same machine, with a data folder of its own."""
    monkeypatch.setattr("tfcompare.ui.frame.access.is_same_machine", lambda _: True)
    with settings.override(Settings(places=(PLACE,), data_folder=tmp_path / "data")):
        yield AppTest.from_file(str(app_folder() / "app.py"), default_timeout=90)


def data() -> Path:
    return settings.current().data_folder


def annotate(name: str, annotation: Annotation) -> None:
    """Store an annotation of a sample run, which is recognized by its files."""
    found = replace(annotation, stat_keys=(RUNS[name].stat_key,))
    write_annotation(data(), loaded_run(name).content_id, found)


def edit(home: AppTest, edited: str, **fields: object) -> AppTest:
    """Fill in the dialog for a run, and save it."""
    run = RUNS[edited]
    home.session_state[home_edit._EDITED] = run.id
    home.run()
    if "name" in fields:
        home.text_input(key=f"{home_edit._NAME}.{run.id}").set_value(str(fields["name"]))
    if "tags" in fields:
        home.multiselect(key=f"{home_edit._TAGS}.{run.id}").set_value(fields["tags"])  # type: ignore[arg-type]
    if "hidden" in fields:
        home.checkbox(key=f"{home_edit._HIDDEN}.{run.id}").set_value(bool(fields["hidden"]))
    return home.button(key=home_edit._SAVE).click().run()


def test_a_renamed_run_has_its_name_everywhere_and_again_after_a_restart(
    home: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.run()
    edit(home, "filters_16_8", name="filters_512_128")
    assert "Another run is named `filters_512_128`. Choose another name." in texts(home)
    assert read_annotations(data()) == {}
    edit(home, "filters_16_8", name="  Small   model ", tags=["small", " small", "cnn"])
    assert not home.exception
    assert home.session_state[home_edit._EDITED] is None, "the dialog is closed"
    assert dict(zip(table(home)["name"], table(home)["tags"], strict=True))["Small model"] == "small, cnn"
    assert "`Small model` is 20× faster than `filters_512_128`" in texts(home)
    monkeypatch.setattr(annotated, "_content_ids", {})
    other = AppTest.from_file(str(app_folder() / "app.py"), default_timeout=90).run()
    assert "Small model" in table(other)["name"]
    edit(home, "filters_16_8", name="", tags=[])
    assert read_annotations(data()) == {}
    assert "filters_16_8" in table(home)["name"]


def test_a_link_by_the_new_name_works(home: AppTest) -> None:
    annotate("filters_16_8_again", Annotation("Second try"))
    home.query_params["baseline"] = "filters_512_128"
    home.query_params["candidate"] = "Second try"
    home.run()
    assert not home.error
    assert home.query_params["candidate"] == AGAIN.id
    assert "`Second try` is" in texts(home)


def test_a_copy_of_a_run_has_its_name_once_it_is_read(home: AppTest, tmp_path: Path) -> None:
    annotate("filters_16_8", Annotation("Small model"))
    copy = tmp_path / "elsewhere" / "vm.xplane.pb"
    copy.parent.mkdir()
    copy.write_bytes(next(SAMPLE_RUNS["filters_16_8"].rglob("*.xplane.pb")).read_bytes())
    with settings.override(Settings(places=(copy,), data_folder=data())):
        home.run()
        home.run()
        assert table(home)["name"] == ["Small model"]


def test_hidden_runs_are_listed_on_request_only(home: AppTest) -> None:
    home.run()
    edit(home, "filters_16_8_again", hidden=True)
    assert "filters_16_8_again" not in table(home)["name"]
    assert "3 of 4 runs, 1 hidden" in texts(home)
    assert AGAIN.id not in home.multiselect[0].options, "the sidebar does not offer it"
    home.toggle(key=home_filters.SHOW_HIDDEN).set_value(True).run()
    assert "filters_16_8_again" in table(home)["name"]


def test_a_hidden_run_that_a_link_selects_is_shown_and_no_default_has_one(home: AppTest) -> None:
    annotate("filters_16_8", Annotation(is_hidden=True))
    home.run()
    assert RUNS["filters_16_8"].id not in (home.selectbox[0].value, *home.multiselect[0].value)
    home.query_params["baseline"] = RUNS["filters_512_128"].id
    home.query_params["candidate"] = RUNS["filters_16_8"].id
    home.run()
    assert "filters_16_8" in table(home)["name"]
    assert "`filters_16_8` is" in texts(home)


def test_runs_are_filtered_by_tag(home: AppTest) -> None:
    annotate("filters_16_8", Annotation(tags=("small", "cnn")))
    annotate("filters_16_8_again", Annotation(tags=("small",)))
    home.run()
    home.multiselect(key=home_filters.TAG).set_value(["small"]).run()
    assert set(table(home)["name"]) == {"filters_16_8", "filters_16_8_again"}
    home.multiselect(key=home_filters.TAG).set_value(["cnn"]).run()
    assert table(home)["name"] == ["filters_16_8"]
    annotate("filters_16_8", Annotation(tags=("small",)))
    assert len(table(home.run())["name"]) == 4, "one tag is left, which needs no filter"


def test_others_see_names_and_only_an_account_may_change_them(home: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    annotate("filters_16_8", Annotation("Small model"))
    account = ""
    monkeypatch.setattr("tfcompare.ui.frame.access.is_same_machine", lambda _: False)
    monkeypatch.setattr(annotated, "hooks", lambda: Hooks(account=lambda: account))
    home.session_state[home_edit._EDITED] = RUNS["filters_16_8"].id
    home.run()
    assert not home.exception
    assert "Small model" in table(home)["name"]
    assert "edit" not in home.dataframe[0].proto.column_order
    assert not [button for button in home.button if button.key == home_edit._SAVE]
    account = "https://idp ada"
    assert "edit" in home.run().dataframe[0].proto.column_order


def test_a_damaged_file_costs_the_names_alone(home: AppTest) -> None:
    annotate("filters_16_8", Annotation("Small model"))
    path_in(data()).write_bytes(b"{")
    home.run()
    assert not home.exception
    assert "annotations.json: expected names and tags of runs" in home.error[0].value.replace("\\", "")
    assert "filters_16_8" in table(home)["name"]
