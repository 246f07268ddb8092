"""The home page, without a browser: finding, renaming, tagging and hiding runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import SAMPLE_RUNS, SAMPLES, loaded_run, run_path
from tests.sources.test_hosts_of_runs import STAMPS, files, profile
from tests.ui.found_runs import found
from tests.ui.home_page import PATH_FIELD, table, texts
from tests.ui.sidebar_widgets import named
from tfcompare import settings
from tfcompare.errors import TfcompareError
from tfcompare.settings import Settings, app_folder
from tfcompare.sources.logdir import FoundRun, find_runs
from tfcompare.store.annotations import Annotation, path_in, read_annotations, write_annotation
from tfcompare.ui.frame import annotated, narrow
from tfcompare.ui.frame.hooks import Hooks
from tfcompare.ui.frame.search import Search
from tfcompare.ui.frame.selection import Selection
from tfcompare.ui.pages import home_filters, home_runs
from tfcompare.ui.pages import home_runs as home_edit
from tfcompare.ui.pages.home_programs import by_row, rows_of
from tfcompare.ui.pages.home_runs import BASELINE_OFF, BASELINE_ON, CANDIDATE_OFF, CANDIDATE_ON
from tfcompare.ui.widgets.table_layout import NARROW_PAGE_PIXELS
from tfcompare.units import format_ms
from tfcompare.views.run_listing import listing


def test_without_a_place_the_samples_are_shown_until_a_place_is_typed(bare_home: AppTest) -> None:
    bare_home.run()
    assert not bare_home.exception
    assert "sample runs that come with tfcompare" in texts(bare_home)
    assert "/filters_512_128/" in bare_home.query_params["baseline"]
    assert "/filters_16_8/" in bare_home.query_params["candidate"]
    place = str(SAMPLE_RUNS["filters_16_8"])
    bare_home.text_input(key=PATH_FIELD).set_value(place).run()
    assert bare_home.query_params["dir"] == place
    assert table(bare_home)["name"] == ["filters_16_8"]
    assert bare_home.text_input(key=PATH_FIELD).value == ""
    bare_home.button(key="tfcompare.remove.0").click().run()
    assert "dir" not in bare_home.query_params
    assert "sample runs that come with tfcompare" in texts(bare_home)


def test_runs_their_changes_and_the_choice_stand_in_the_table(home: AppTest) -> None:
    home.run()
    assert not home.exception
    runs = table(home)
    chosen = dict(zip(runs["name"], zip(runs["baseline"], runs["candidate"], strict=True), strict=True))
    assert chosen["filters_512_128"] == (BASELINE_ON, CANDIDATE_OFF)
    assert chosen["filters_16_8"] == (BASELINE_OFF, CANDIDATE_ON)
    unfolded = [name for name, captures in zip(runs["name"], runs["captures"], strict=True) if captures]
    assert unfolded == ["filters_16_8"], "of its two captures one is selected"
    assert set(runs["steps"]) == {22, 44}
    assert changes(home) == {
        "filters_512_128": "baseline",
        "filters_16_8": "20× faster",
        "filters_16_8_again": "18× faster",
        "filters_16_8_better_input": "30× faster",
    }
    assert "× faster than" in texts(home)
    assert "Not tested" not in texts(home), "a verdict needs no more words here"
    before = (home.selectbox[0].value, home.multiselect[0].value)
    next(button for button in home.button if button.label == "Swap").click().run()
    assert (home.selectbox[0].value, home.multiselect[0].value) == (before[1][0], [before[0]])
    assert "× slower than" in texts(home)
    assert changes(home)["filters_512_128"] == "20× slower"
    other = next(run for run in home.multiselect[0].options if run.endswith("_better_input"))
    home.multiselect[0].set_value([other]).run()
    assert "`filters_16_8_better_input` is" in texts(home)
    assert "filters_16_8_better_input" in home.query_params["candidate"]


def changes(home: AppTest) -> dict[object, object]:
    """The changes of the step time to the baseline, by run."""
    return dict(zip(table(home)["name"], table(home)["change"], strict=True))


@pytest.mark.thorough  # `test_shell.py` chooses them for every page
def test_steps_that_begin_with_a_chosen_event_are_those_of_the_headline(home: AppTest) -> None:
    paths = [run_path(name) for name in ("jax_conv_legacy", "jax_conv_08")]
    with settings.override(Settings(places=tuple(paths))):
        home.run()
        assert "“Steps begin with” in the sidebar" in texts(home)
        named(home.selectbox, "tfcompare.step_marker").set_value("PjitFunction(forward_3d_conv)").run()
    assert not home.exception
    assert "Not tested: too few steps" in texts(home)
    assert "The runs differ in devices, which alone can change times." in texts(home)
    captions = [caption.value for caption in home.caption]
    assert "Per step and device; steps that begin with `PjitFunction(forward_3d_conv)`." in captions
    assert pd.isna(table(home)["steps"]).all(), "the table tells what the profiles mark themselves"


def test_one_run_alone_is_selected_and_can_be_opened(home: AppTest) -> None:
    with settings.override(Settings(places=(SAMPLE_RUNS["filters_16_8"],))):
        home.run()
    assert not home.exception
    assert home.selectbox[0].value == find_runs(SAMPLE_RUNS["filters_16_8"])[0].id
    time = format_ms(loaded_run("filters_16_8").info.step_time_ms_mean)
    assert f"`filters_16_8`: {time} per step (mean of 20), CPU." in texts(home)
    assert [button.label for button in home.button if button.label in ("Open", "See what changed")] == ["Open"]


def test_runs_of_another_device_are_not_compared_and_can_be_filtered(home: AppTest) -> None:
    with settings.override(Settings(places=(SAMPLES / "autoencoder", run_path("gpu_filters_16_8").parent))):
        home.query_params["baseline"] = "filters_512_128"
        home.run()
        home.run()  # the runs have been read
        assert {name for name, change in changes(home).items() if change} == {*SAMPLE_RUNS} - {"filters_16_8_again"}
        home.multiselect(key=home_filters.DEVICE).set_value(["GPU"]).run()
        assert table(home)["device"] == ["CPU", "GPU", "GPU"]
        home.text_input(key=home_filters.TEXT).set_value("gpu_filters_16").run()
        assert table(home)["name"] == ["filters_512_128", "gpu_filters_16_8"]


def test_without_a_baseline_there_is_no_change(home: AppTest) -> None:
    home.query_params["candidate"] = "filters_16_8"
    home.run()
    assert set(table(home)["change"]) == {""}
    assert "**Select a baseline**" in texts(home)


def test_filtering(home: AppTest) -> None:
    home.run()
    assert not [field for field in home.multiselect if field.key in (home_filters.DEVICE, home_filters.HOST)]
    home.text_input(key=home_filters.TEXT).set_value("BETTER input").run()
    assert table(home)["name"] == ["filters_512_128", "filters_16_8", "filters_16_8_better_input"]
    assert "1 of 4 runs; the first 2 are the selected ones" in texts(home), "nothing is selected out of sight"
    home.text_input(key=home_filters.TEXT).set_value("nothing like it").run()
    assert not home.exception
    assert "0 of 4" in texts(home)
    assert "No run matches" in texts(home)


def test_a_place_that_is_not_there_is_named_and_not_taken(home: AppTest) -> None:
    home.run()
    home.text_input(key=PATH_FIELD).set_value("/no/such/place").run()
    assert "there is no such file or folder" in home.error[0].value
    assert "dir" not in home.query_params
    home.run()
    assert not home.error


def test_a_path_that_is_added_or_is_searched_already_says_so_and_a_file_that_is_no_profile_is_refused(
    home: AppTest, tmp_path: Path
) -> None:
    (tmp_path / "README.md").write_text("# No profile", encoding="utf-8")
    home.run()
    home.text_input(key=PATH_FIELD).set_value(str(tmp_path / "README.md")).run()
    assert "README.md: not a readable profile" in home.error[0].value.replace("\\", "")
    assert "dir" not in home.query_params
    for said in ("was added.", "is searched already."):
        home.text_input(key=PATH_FIELD).set_value(str(SAMPLES / "workers")).run()
        assert [toast.value for toast in home.toast] == [f"`{SAMPLES / 'workers'}` {said}"]
        assert home.query_params["dir"] == str(SAMPLES / "workers")
    home.text_input(key=PATH_FIELD).set_value(str(SAMPLES / "autoencoder")).run()
    assert "is searched already." in home.toast[0].value, "it was given at the start"


def test_paths_are_refused_to_a_browser_elsewhere(home: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfcompare.ui.frame.access.is_same_machine", lambda _: False)
    home.query_params["dir"] = str(SAMPLES / "autoencoder")
    home.run()
    assert "only for a browser on the machine" in home.error[0].value
    assert "dir" not in home.query_params
    assert not [field for field in home.text_input if field.key == PATH_FIELD]


def test_broken_runs_stand_beside_good_ones(tmp_path: Path, home: AppTest) -> None:
    damaged = bytearray(next(SAMPLE_RUNS["filters_16_8"].rglob("*.xplane.pb")).read_bytes())
    damaged[2000:60000] = b"\xff" * 58000
    for name, data in (("empty", b""), ("damaged", damaged)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vm.xplane.pb").write_bytes(data)
    places = (SAMPLE_RUNS["filters_16_8"], tmp_path / "empty", tmp_path / "damaged")
    with settings.override(Settings(places=places)):
        home.run()
    runs = table(home)
    assert not home.exception
    remarks = dict(zip(runs["name"], zip(runs["remarks"], runs["baseline"], strict=True), strict=True))
    assert "is empty (0 bytes)" in remarks["⚠ empty"][0]
    assert "not a readable profile" in remarks["⚠ damaged"][0]
    assert remarks["⚠ empty"][1] == "", "what cannot be read cannot be chosen"


def test_a_home_page_without_runs_opens_the_samples(tmp_path: Path, bare_home: AppTest) -> None:
    (tmp_path / "mine").mkdir()
    with settings.override(Settings(places=(tmp_path / "mine",))):
        bare_home.run()
        next(button for button in bare_home.button if button.label == "Open the samples").click().run()
        assert not bare_home.exception
        assert "× faster than" in texts(bare_home)
        assert bare_home.query_params["dir"] == str(settings.sample_runs())
        assert "repeat" not in bare_home.query_params


def test_of_a_thousand_runs_only_the_page_in_view_is_read(home: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = tuple(found(f"run{number:04}x") for number in range(1000))
    asked: list[str] = []

    def refuse(run: FoundRun, *, build: object, **how: str | None) -> None:
        assert how == {"step_marker": None, "steps": None, "stray": "exclude", "step_kind": None, "fetching": None}
        assert callable(build)
        asked.append(run.id)
        raise TfcompareError(f"{run.id}: cannot be read")

    monkeypatch.setattr("tfcompare.ui.frame.search._cached_search", lambda places, *_: Search(places, runs, ()))
    monkeypatch.setattr("tfcompare.loading.load", refuse)
    with settings.override(Settings(cache_bytes=12_345)):  # a size of its own: a cache of its own
        home.run()
    assert not home.exception
    in_view = [f"run{number:04}x" for number in range(999, 949, -1)]
    assert [str(name).removeprefix("⚠ ") for name in table(home)["name"]] == in_view
    assert sorted(asked) == sorted(in_view)
    assert "1,000 sample runs" in texts(home)


# --- the parts that are plain functions


def test_words_of_the_filter_may_stand_anywhere() -> None:
    runs = [found("autoencoder/Filters_16"), found("autoencoder/filters_512"), found("resnet/base")]
    assert [run.id for run in home_filters.matching(runs, "FILTERS auto")] == [runs[0].id, runs[1].id]
    assert home_filters.matching(runs, "vm base") == [runs[2]], "hosts are searched, too"
    assert home_filters.matching(runs, " ") == runs


def test_times_are_on_the_browsers_clock_and_the_fallback_is_marked() -> None:
    when = datetime(2026, 11, 20, 11, 13, 5, tzinfo=UTC)
    assert home_runs.recorded_text(when, ZoneInfo("Europe/Vienna"), is_sure=True) == "2026-11-20 12:13:05"
    assert home_runs.recorded_text(when, UTC, is_sure=False) == "2026-11-20 11:13:05 *"


def test_many_steps_become_few_bars_that_still_show_the_slowest() -> None:
    assert home_runs.bars([1.0, 2.0, 3.0]) == [1.0, 2.0, 3.0]
    many = [1.0] * 1000
    many[777] = 9.0
    few = home_runs.bars(many, most=60)
    assert len(few) <= 60
    assert max(few) == 9.0


def test_a_narrow_page_shows_the_step_times_beside_the_names(home: AppTest) -> None:
    home.session_state[narrow._IS_NARROW] = True
    home.run()
    assert not home.exception
    table = home.dataframe[0].proto
    assert list(table.column_order)[:4] == ["baseline", "candidate", "name", "step_time_ms_mean"]
    config = json.loads(table.columns)
    assert sum(config[name]["width"] for name in list(table.column_order)[:4]) <= NARROW_PAGE_PIXELS


def test_names_that_would_read_alike_are_not_cut_in_their_middle(tmp_path: Path) -> None:
    names = {"filters_512_128_with_mixed_precision", "filters_16_8_with_mixed_precision"}
    for name in names:
        files(tmp_path / name / "plugins" / "profile" / STAMPS[0], a=profile(0.0))
    found_programs = [(run,) for run in find_runs(tmp_path)]
    shown = rows_of(found_programs, Selection(), set())
    table = home_runs.rows(by_row(listing([one for (one,) in found_programs], {}), shown), shown, Selection(), UTC, 17)
    assert set(table["name"]) == names


def test_no_column_is_lost_on_a_narrow_page() -> None:
    assert sorted(home_runs.NARROW_COLUMNS) == sorted(home_runs.COLUMNS)


def test_hosts_of_one_run_that_lie_apart_are_joined_with_a_click(tmp_path: Path, home: AppTest) -> None:
    logdir = tmp_path / "logs"
    for stamp, host in zip(STAMPS, ("a", "b"), strict=True):
        files(logdir / "plugins" / "profile" / stamp, **{host: profile(0.0)})
    with settings.override(Settings(places=(logdir,))):
        home.run()
        assert any(caption.value.startswith("2 runs seem to be hosts of one run") for caption in home.caption)
        assert len(table(home)["run"]) == 2
        next(button for button in home.button if button.label == "Join them").click().run()
        assert not home.exception
        assert len(table(home)["run"]) == 1
        assert home.query_params["join"] in ("hosts", ["hosts"])
        next(button for button in home.button if button.label == "Take apart").click().run()
        assert len(table(home)["run"]) == 2
        assert "join" not in home.query_params


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
    selected = ["filters_512_128"]
    assert set(table(home)["name"]) == {"filters_16_8", "filters_16_8_again", *selected}
    home.multiselect(key=home_filters.TAG).set_value(["cnn"]).run()
    assert table(home)["name"] == [*selected, "filters_16_8"]
    annotate("filters_16_8", Annotation(tags=("small",)))
    assert set(table(home.run())["name"]) == {*SAMPLE_RUNS}, "one tag is left, which needs no filter"


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
