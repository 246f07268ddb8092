"""The home page with uploads and who may do what there; logging in."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.profiles import ROOT, SAMPLE_RUNS, SAMPLES
from tests.ui.home_page import PATH_FIELD, table, texts
from tests.views.series.series_runs import profile as small_profile
from tfcompare import settings
from tfcompare.server import pages
from tfcompare.server import pages as login
from tfcompare.server.uploads import Arrival, Uploads
from tfcompare.settings import Settings
from tfcompare.ui.frame import access
from tfcompare.ui.frame.search import rescan
from tfcompare.ui.pages import home_filters


def upload(home: AppTest, here: Settings, **profiles: bytes) -> None:
    """Store these profiles as if this browser had just sent them, and draw the page."""
    arrivals = [Arrival(f"{name}.xplane.pb", io.BytesIO(data), len(data)) for name, data in profiles.items()]
    home.session_state[pages._ARRIVED] = Uploads(here.data_folder, pages.LOCAL).receive(arrivals).place
    rescan()
    home.run()


def test_uploaded_runs_are_selected_and_listed_first(home: AppTest, tmp_path: Path) -> None:
    here = Settings(places=(SAMPLE_RUNS["filters_16_8"],), data_folder=tmp_path / "data")
    with settings.override(here):
        home.run()
        upload(home, here, mine=next(SAMPLE_RUNS["filters_512_128"].rglob("*.xplane.pb")).read_bytes())
    assert home.query_params["baseline"] == "mine/mine"
    assert "candidate" not in home.query_params, "nothing else is selected"
    assert table(home)["name"] == ["mine", "filters_16_8"], "although it was recorded before"
    assert "`mine`: " in texts(home)


def test_the_first_upload_replaces_the_selected_samples(bare_home: AppTest, tmp_path: Path) -> None:
    here = Settings(data_folder=tmp_path / "data")
    with settings.override(here):
        bare_home.run()
        assert bare_home.selectbox[0].value.startswith("sample_logs/")
        random = np.random.default_rng(7)
        upload(bare_home, here, one=small_profile(random), two=small_profile(random))
    assert bare_home.query_params["baseline"].endswith("/one")
    assert bare_home.query_params["candidate"].endswith("/two")


WAYS = {"path": "Open a path or URL", "upload": "Upload", "capture": "Capture", "samples": "Try the sample runs"}


@pytest.mark.parametrize(
    ("is_here", "roots", "allow_capture", "is_private", "expected"),
    [
        (True, False, False, True, ["path", "upload", "capture", "samples"]),
        (True, False, False, False, ["path", "samples"]),
        (False, True, False, True, ["path", "upload"]),
        (False, False, True, True, ["upload", "capture"]),
        (False, False, False, False, []),
    ],
)
def test_a_folder_without_runs_leads_to_the_ways_in_that_are_allowed(
    tmp_path: Path,
    home: AppTest,
    monkeypatch: pytest.MonkeyPatch,
    is_here: bool,
    roots: bool,
    allow_capture: bool,
    is_private: bool,
    expected: list[str],
) -> None:
    (tmp_path / "data").mkdir(mode=0o700 if is_private else 0o777)
    (tmp_path / "data").chmod(0o700 if is_private else 0o777)
    (tmp_path / "logs").mkdir()
    monkeypatch.setattr("tfcompare.ui.frame.access.is_same_machine", lambda _: is_here)
    here = Settings(
        places=(tmp_path / "logs",),
        roots=(tmp_path,) * roots,
        allow_capture=allow_capture,
        data_folder=tmp_path / "data",
    )
    with settings.override(here):
        home.run()
    assert not home.exception
    assert sum("no profile run here" in error.value.replace("\\", "") for error in home.error) == 1
    bold = [element.value.strip("*") for element in home.main.markdown if element.value.startswith("**")]
    assert bold == [WAYS[way] for way in expected]
    assert ("This browser may not add runs" in texts(home)) == (not expected)
    assert bool([field for field in home.text_input if field.key == PATH_FIELD]) == ("path" in expected)
    assert not home.dataframe and not home.selectbox and not home.multiselect
    assert not [field for field in home.text_input if field.key == home_filters.TEXT]


AUTH = {"redirect_uri": "http://localhost/oauth2callback", "cookie_secret": "s", "client_id": "c"}
PAGES = ["app.py", *sorted(f"pages/{path.name}" for path in (ROOT / "pages").glob("[0-9]*.py"))]


class User:
    """What `st.user` is to us."""

    def __init__(self, **told: Any) -> None:
        self._told = told

    def to_dict(self) -> Mapping[str, Any]:
        return self._told


def be(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "user", user)


@pytest.mark.parametrize("page", PAGES)
def test_without_a_login_no_page_shows_a_run(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    be(User(is_logged_in=False), monkeypatch)
    with settings.override(Settings(places=(SAMPLES / "autoencoder",))):
        app = AppTest.from_file(str(ROOT / page), default_timeout=60)
        app.secrets["auth"] = AUTH
        app.run()
    assert not app.exception
    assert [button.label for button in app.button] == ["Log in"]
    assert not app.dataframe
    assert "filters" not in "\n".join(text.value for text in (*app.markdown, *app.caption, *app.info, *app.error))
    assert not app.sidebar.selectbox


def test_who_is_logged_in_sees_the_page_and_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    be(User(is_logged_in=True, email="ann@example.com", sub="1", iss="https://provider"), monkeypatch)
    with settings.override(Settings(places=(SAMPLES / "autoencoder",))):
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    assert not app.exception
    assert "Log out" in [button.label for button in app.sidebar.button]
    assert "`ann@example.com`" in [caption.value for caption in app.sidebar.caption]
    assert app.dataframe


def test_each_provider_has_a_button() -> None:
    assert login.providers(AUTH) == [""]
    named = {"cookie_secret": "s", "okta": {"client_id": "o"}, "google": {"client_id": "g"}, "client_kwargs": {"a": 1}}
    assert login.providers(named) == ["okta", "google"]


@pytest.mark.parametrize(
    ("user", "account"),
    [
        ({}, ""),
        ({"is_logged_in": False, "sub": "1"}, ""),
        ({"is_logged_in": True, "iss": "https://provider", "sub": "1", "email": "a@b"}, "https://provider 1"),
        ({"email": "set by the proxy"}, "set by the proxy"),
    ],
)
def test_an_account_is_who_the_provider_says(user, account: str, monkeypatch: pytest.MonkeyPatch) -> None:
    be(User(**user), monkeypatch)
    assert login.account_name() == account


def test_uploads_belong_to_the_account_or_else_to_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Settings(data_folder=tmp_path)
    mine = {"ann": User(is_logged_in=True, sub="1"), "bob": User(is_logged_in=True, sub="2"), "nobody": User()}
    of_session = Uploads(tmp_path, "session-of-this-test")
    monkeypatch.setattr(pages, "_session_uploads", lambda *_: of_session)
    monkeypatch.setattr(access, "is_same_machine", lambda _: False)
    profile = next(SAMPLES.rglob("*.xplane.pb")).read_bytes()
    for name, user in mine.items():
        be(user, monkeypatch)
        pages.own_uploads(here).receive([Arrival(f"{name}.xplane.pb", io.BytesIO(profile), len(profile))])
    for name, user in mine.items():
        be(user, monkeypatch)
        assert [upload.name for upload in pages.own_uploads(here).all()] == [name]
    monkeypatch.setattr(access, "is_same_machine", lambda _: True)
    assert pages.own_uploads(here).all() == []
