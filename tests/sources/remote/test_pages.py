"""URLs in the app, without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.sources.remote.servers import Web, put_runs
from tests.store.runs_in_stores import SMALL, STAMP, small
from tests.ui.home_page import PATH_FIELD, table, texts
from tfcompare import settings
from tfcompare.settings import Settings, app_folder
from tfcompare.sources.remote import stores
from tfcompare.sources.remote.places import RemotePlace
from tfcompare.ui.frame.search import look, rescan
from tfcompare.ui.frame.selection import default_runs
from tfcompare.units import format_bytes


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    """The app for a browser on the same machine, with a sample run that is read in no time."""
    small("ours", tmp_path / "sample_logs")
    monkeypatch.setattr("tfcompare.settings.app_folder", lambda: tmp_path)
    monkeypatch.setattr("tfcompare.ui.frame.access.is_same_machine", lambda _: True)
    rescan()
    with settings.override(Settings()):
        yield AppTest.from_file(str(app_folder() / "app.py"), default_timeout=90)


@pytest.fixture
def logs(memory: Any) -> str:
    return put_runs(memory, *SMALL)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[RemotePlace]:
    """The places that are listed."""
    places: list[RemotePlace] = []
    connect = stores.connect
    monkeypatch.setattr(stores, "connect", lambda place: places.append(place) or connect(place))  # type: ignore[func-returns-value]
    return places


def typed(home: AppTest, place: str) -> AppTest:
    """The page once that place was typed."""
    home.text_input(key=PATH_FIELD).set_value("").run()
    return home.text_input(key=PATH_FIELD).set_value(place).run()


def downloads(cache_folder: Path) -> list[str]:
    name_of = {len(data): name for name, data in SMALL.items()}
    return sorted(name_of[copy.stat().st_size] for copy in cache_folder.iterdir())


def test_a_typed_url_is_listed_and_only_what_is_chosen_is_fetched(home: AppTest, cache_folder: Path, logs: str) -> None:
    typed(home.run(), f" {logs} ")
    assert not home.exception
    assert not home.error, home.error[0].value
    assert home.query_params["dir"] == logs
    assert set(table(home)["name"]) == set(SMALL)
    chosen = downloads(cache_folder)
    assert len(chosen) == 2, "the pair that is chosen"
    (left,) = set(SMALL) - set(chosen)
    steps = dict(zip(table(home)["name"], table(home)["steps"], strict=True))
    assert [steps[name] for name in chosen] == [{"ours": 12, "theirs": 14, "ours_again": 13}[name] for name in chosen]
    size = format_bytes(len(SMALL[left]))
    assert f"This run is on another machine ({size}) and will be downloaded when selected." in texts(home)
    (other,) = (run for run in home.multiselect[0].options if left in run.split("/"))
    home.multiselect[0].set_value([other]).run()
    assert downloads(cache_folder) == sorted(SMALL)


@pytest.mark.parametrize("page", ["app.py", "pages/1_Overview.py"])
@pytest.mark.usefixtures("home")
def test_a_link_makes_no_page_fetch_before_a_click(asked: list[RemotePlace], logs: str, page: str) -> None:
    app = AppTest.from_file(str(app_folder() / page), default_timeout=90)
    app.query_params["dir"] = logs
    app.query_params["baseline"] = "logs/ours"
    app.run()
    assert not app.exception
    assert "names runs on another machine" in app.warning[0].value
    assert [button.label.replace("\u2060", "").replace("\\", "") for button in app.button[:1]] == [f"Open {logs}"]
    assert asked == []
    assert app.query_params["baseline"] == "logs/ours"


def test_a_confirmed_place_is_opened_as_the_link_says_and_one_that_is_left_out_is_not_asked(
    home: AppTest, cache_folder: Path, asked: list[RemotePlace], logs: str
) -> None:
    link = {"baseline": f"logs/ours/plugins/profile/{STAMP}", "candidate": f"logs/ours_again/plugins/profile/{STAMP}"}
    home.query_params["dir"] = logs
    home.run().button(key="tfcompare.leave_out.0").click().run()
    assert not home.exception and not home.warning
    assert "dir" not in home.query_params
    assert asked == []
    home.query_params.update({"dir": [logs], **link})
    home.run().button(key="tfcompare.open.0").click().run()
    assert not home.exception and not home.error
    assert {role: home.query_params[role] for role in link} == link
    assert downloads(cache_folder) == ["ours", "ours_again"]
    home.run()
    assert not home.warning


def test_places_given_at_the_start_are_not_asked_for_and_one_that_is_down_costs_one_message(home, logs) -> None:
    with settings.override(Settings(places=("http://127.0.0.1:1/vm.xplane.pb", logs))):
        home.query_params["dir"] = logs
        home.run()
    assert not home.exception and not home.warning
    assert set(table(home)["name"]) == set(SMALL)
    assert "127.0.0.1:1 cannot be reached (connection refused)" in home.error[0].value.replace("\\", "")


def test_a_place_that_cannot_be_had_is_named_and_looked_for_anew_when_typed_again(home: AppTest, memory: Any) -> None:
    typed(home.run(), "https://me:hunter2@host/x")
    assert "credentials come from the environment" in home.error[0].value
    assert "hunter2" not in home.error[0].value
    typed(home, "memory://logs")
    assert "there is no such file or folder" in home.error[0].value
    assert "dir" not in home.query_params
    typed(home, put_runs(memory, "ours"))
    assert not home.error, home.error[0].value
    assert table(home)["name"] == ["ours"]


def test_a_signature_is_in_the_address_but_not_on_the_page(home: AppTest, web: Web) -> None:
    (web.folder / "vm.xplane.pb").write_bytes(SMALL["ours"])
    home.query_params["dir"] = f"{web.url}/vm.xplane.pb?sig=hunter2"
    home.run()
    assert "hunter2" not in "".join(button.label for button in home.button) + home.warning[0].value
    home.button(key="tfcompare.open.0").click().run()
    assert not home.exception
    labels = [button.label for button in home.button]
    assert f"`{web.url}/vm.xplane.pb`" in labels
    assert "hunter2" not in texts(home) + str(table(home)) + str(labels)


def test_of_two_places_the_first_is_the_baseline(memory: Any, tmp_path: Path) -> None:
    for name in ("early", "late"):
        memory.pipe_file(f"/{name}/vm.xplane.pb", SMALL["ours"])
    (tmp_path / "local").mkdir()
    (tmp_path / "local" / "vm.xplane.pb").write_bytes(SMALL["ours"])
    early, late, local = "memory://early", "memory://late", tmp_path / "local"
    found = look([early, late, local, "nope://x"])
    assert (len(found.found), len(found.problems)) == (3, 1)
    for places in ((late, early), (early, late), (local, early), (late, local)):
        assert default_runs(found.found, places) == tuple(str(place).rpartition("/")[2] for place in places)
    assert default_runs(found.found, [late, "nope://x"])
