"""Logging in: asked for on every page where a provider is configured, and nowhere else."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.profiles import ROOT, SAMPLES
from tfcompare import settings
from tfcompare.server import pages
from tfcompare.server import pages as login
from tfcompare.server.uploads import Arrival, Uploads
from tfcompare.settings import Settings
from tfcompare.ui.frame import access

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
