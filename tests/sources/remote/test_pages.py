"""URLs in the app, without a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import SAMPLE_RUNS
from tests.sources.remote.servers import Web, put_runs
from tests.ui.home_page import PATH_FIELD, table, texts
from tfcompare import settings
from tfcompare.settings import Settings, app_folder
from tfcompare.sources.remote import stores
from tfcompare.sources.remote.places import RemotePlace
from tfcompare.ui.frame.search import look, rescan
from tfcompare.ui.frame.selection import default_runs


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    """The app for a browser on the same machine."""
    monkeypatch.setattr("tfcompare.ui.frame.access.access.is_same_machine", lambda _: True)
    rescan()
    with settings.override(Settings()):
        yield AppTest.from_file(str(app_folder() / "app.py"), default_timeout=90)


@pytest.fixture
def logs(memory: Any) -> str:
    return put_runs(memory, *SAMPLE_RUNS)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[RemotePlace]:
    """The places that are listed."""
    places: list[RemotePlace] = []
    connect = stores.connect
    monkeypatch.setattr(stores, "connect", lambda place: places.append(place) or connect(place))  # type: ignore[func-returns-value]
    return places


def downloads(cache_folder: Path) -> list[str]:
    name_of = {next(run.rglob("*.xplane.pb")).stat().st_size: name for name, run in SAMPLE_RUNS.items()}
    return sorted(name_of[copy.stat().st_size] for copy in cache_folder.iterdir())


def test_a_typed_url_is_listed_and_only_what_is_chosen_is_fetched(home: AppTest, cache_folder: Path, logs: str) -> None:
    home.run()
    home.text_input(key=PATH_FIELD).set_value(f" {logs} ").run()
    assert not home.exception
    assert not home.error, home.error[0].value
    assert home.query_params["dir"] == logs
    assert set(table(home)["name"]) == set(SAMPLE_RUNS)
    assert downloads(cache_folder) == ["filters_16_8", "filters_512_128"], "the pair that is chosen"
    steps = dict(zip(table(home)["name"], table(home)["steps"], strict=True))
    assert steps["filters_16_8"] == 22
    assert steps["filters_16_8_again"] != 22
    assert "2 of these runs are on another machine (3.19 MB) and will be downloaded when selected." in texts(home)
    other = next(run for run in home.multiselect[0].options if run.endswith("_better_input"))
    home.multiselect[0].set_value([other]).run()
    assert downloads(cache_folder) == ["filters_16_8", "filters_16_8_better_input", "filters_512_128"]


@pytest.mark.parametrize("page", ["app.py", "pages/1_Overview.py"])
@pytest.mark.usefixtures("home")
def test_a_link_makes_no_page_fetch_before_a_click(asked: list[RemotePlace], logs: str, page: str) -> None:
    app = AppTest.from_file(str(app_folder() / page), default_timeout=90)
    app.query_params["dir"] = logs
    app.query_params["baseline"] = "logs/filters_16_8"
    app.run()
    assert not app.exception
    assert "names runs on another machine" in app.warning[0].value
    assert [button.label.replace("\u2060", "").replace("\\", "") for button in app.button[:1]] == [f"Open {logs}"]
    assert asked == []
    assert app.query_params["baseline"] == "logs/filters_16_8"


def test_a_confirmed_place_is_opened_as_the_link_says_and_not_asked_for_again(
    home: AppTest, cache_folder: Path, logs: str
) -> None:
    stamps = {name: next(run.rglob("*.xplane.pb")).parent.relative_to(run) for name, run in SAMPLE_RUNS.items()}
    link = {role: f"logs/{name}/{stamps[name]}" for role, name in
            (("baseline", "filters_16_8"), ("candidate", "filters_16_8_again"))}  # fmt: skip
    home.query_params.update({"dir": [logs], **link})
    home.run()
    home.button(key="tfcompare.open.0").click().run()
    assert not home.exception and not home.error
    assert {role: home.query_params[role] for role in link} == link
    assert downloads(cache_folder) == ["filters_16_8", "filters_16_8_again"]
    home.run()
    assert not home.warning


def test_a_place_that_is_left_out_is_not_asked(home: AppTest, asked: list[RemotePlace], logs: str) -> None:
    home.query_params["dir"] = logs
    home.run()
    home.button(key="tfcompare.leave_out.0").click().run()
    assert not home.exception and not home.warning
    assert "dir" not in home.query_params
    assert asked == []


def test_a_place_given_at_the_start_is_not_asked_for(home: AppTest, logs: str) -> None:
    with settings.override(Settings(places=(logs,))):
        home.query_params["dir"] = logs
        home.run()
    assert not home.exception and not home.warning
    assert set(table(home)["name"]) == set(SAMPLE_RUNS)


def test_a_place_that_cannot_be_had_is_named_and_not_taken(home: AppTest, web: Web) -> None:
    home.run()
    for typed, said in {
        f"{web.url}/nothing": "there is no such file or folder",
        "file:///etc/passwd": "name the path itself",
        "simplecache::s3://bucket/x": "is a chain of URLs",
        "https://me:hunter2@host/x": "credentials come from the environment",
    }.items():
        home.text_input(key=PATH_FIELD).set_value(typed).run()
        assert said in home.error[0].value.replace("\\", "")
        assert "hunter2" not in home.error[0].value
        assert "dir" not in home.query_params


def test_a_place_that_was_not_there_is_looked_for_anew_when_typed_again(home: AppTest, memory: Any) -> None:
    home.run()
    home.text_input(key=PATH_FIELD).set_value("memory://logs").run()
    assert home.error
    place = put_runs(memory, "filters_16_8")
    home.text_input(key=PATH_FIELD).set_value("").run()
    home.text_input(key=PATH_FIELD).set_value(place).run()
    assert not home.error, home.error[0].value
    assert table(home)["name"] == ["filters_16_8"]


def test_a_signature_is_in_the_address_but_not_on_the_page(home: AppTest, web: Web) -> None:
    (profile,) = SAMPLE_RUNS["filters_16_8"].rglob("*.xplane.pb")
    shutil.copy(profile, web.folder / "vm.xplane.pb")
    home.query_params["dir"] = f"{web.url}/vm.xplane.pb?sig=hunter2"
    home.run()
    assert "hunter2" not in "".join(button.label for button in home.button) + home.warning[0].value
    home.button(key="tfcompare.open.0").click().run()
    assert not home.exception
    labels = [button.label for button in home.button]
    assert f"`{web.url}/vm.xplane.pb`" in labels
    assert "hunter2" not in texts(home) + str(table(home)) + str(labels)


def test_a_server_that_is_down_costs_one_message_and_the_others_nothing(memory: Any, home: AppTest) -> None:
    place = put_runs(memory, "filters_16_8")
    with settings.override(Settings(places=("http://127.0.0.1:1/vm.xplane.pb", place))):
        home.run()
    assert not home.exception
    assert len(table(home)["name"]) == 1
    assert "127.0.0.1:1 cannot be reached (connection refused)" in home.error[0].value.replace("\\", "")


def test_of_two_places_the_first_is_the_baseline(memory: Any, tmp_path: Path) -> None:
    (profile,) = SAMPLE_RUNS["filters_16_8"].rglob("*.xplane.pb")
    for name in ("early", "late"):
        memory.pipe_file(f"/{name}/vm.xplane.pb", profile.read_bytes())
    local = tmp_path / "local"
    local.mkdir()
    shutil.copy2(profile, local / "vm.xplane.pb")
    early, late = "memory://early", "memory://late"
    found = look([early, late, local, "nope://x"])
    assert (len(found.found), len(found.problems)) == (3, 1)
    for places in ((late, early), (early, late), (local, early), (late, local)):
        pair = default_runs(found.found, places)
        assert pair == tuple(str(place).rpartition("/")[2] for place in places)
    assert default_runs(found.found, [late, "nope://x"])
