"""Runs whose files change or go while they are on screen."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import SAMPLE_RUNS
from tfcompare import settings
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_run
from tfcompare.ui.frame import search
from tfcompare.ui.frame.on_disk import state_of
from tfcompare.ui.frame.search import rescan


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for name in ("before", "after"):
        file = next(SAMPLE_RUNS["filters_16_8"].rglob("*.xplane.pb"))
        (tmp_path / name).mkdir()
        shutil.copy(file, tmp_path / name / "vm.xplane.pb")
    return tmp_path


PAGE = """
import streamlit as st
from tfcompare import ui

with ui.page("A page", needs="pair") as view:
    st.markdown(f"took {view.comparison.candidates[0].info.step_time_ms_mean:.0f} ms")
"""


@pytest.fixture
def page(logs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    """A page that only says how long the steps of the candidate take; places are searched again only when asked for."""
    kept = cache(search.look)
    monkeypatch.setattr(search, "_cached_search", lambda places, store, _: kept(places, store=store))
    monkeypatch.setattr(search._cached_search, "clear", kept.cache_clear, raising=False)
    (logs / "page.py").write_text(PAGE, encoding="utf-8")
    with settings.override(Settings(places=(logs / "before", logs / "after"))):
        rescan()
        yield AppTest.from_file(str(logs / "page.py"), default_timeout=90).run()
        rescan()


def warnings(page: AppTest) -> list[str]:
    return [warning.value for warning in page.warning if "disk" in warning.value]


def test_a_file_is_as_read_changed_or_gone(logs: Path) -> None:
    found = find_run(logs / "after")
    file = logs / "after" / "vm.xplane.pb"
    assert state_of(found) == "as read"
    os.utime(file, ns=(1, 1))
    assert state_of(found) == "changed"
    os.utime(file, ns=(found.files[0].modified_ns,) * 2)
    with file.open("ab") as grown:
        grown.write(b"more")
    assert state_of(found) == "changed"
    file.unlink()
    assert state_of(found) == "gone"


def test_a_run_that_is_replaced_is_told_and_read_again(page: AppTest, logs: Path) -> None:
    assert not page.exception
    assert warnings(page) == []
    shutil.copy(next(SAMPLE_RUNS["filters_512_128"].rglob("*.xplane.pb")), logs / "after" / "vm.xplane.pb")
    page.run()
    assert warnings(page) == ["`after` has changed on disk; what is shown is as it was read."]
    page.button(key="tfcompare.on_disk.changed").click().run()
    assert warnings(page) == []
    assert "took 213 ms" in [text.value for text in page.markdown]


def test_a_run_that_disappears_stays_on_screen_until_it_is_read_again(page: AppTest, logs: Path) -> None:
    shutil.rmtree(logs / "after")
    page.run()
    assert warnings(page) == ["`after` is no longer on disk; what is shown was read before."]
    page.button(key="tfcompare.on_disk.gone").click().run()
    assert not page.exception
    said = "\n".join(text.value for text in (*page.error, *page.info))
    assert "there is no such file or folder" in said or "There is no run" in said


def test_a_run_that_is_still_being_written_costs_one_message_and_comes_when_it_is_whole(
    page: AppTest, logs: Path
) -> None:
    file = logs / "after" / "vm.xplane.pb"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    page.run()
    page.button(key="tfcompare.on_disk.changed").click().run()
    assert not page.exception
    assert "breaks off" in "\n".join(error.value for error in page.error)
    file.write_bytes(whole)
    again = [button for button in page.button if button.label == "Read again"]
    again[0].click().run()
    assert not page.exception
    assert not page.error
    assert ":violet-badge[**B** after]" in [text.value for text in page.markdown]
