"""Runs whose files change or go while they are on screen, and which paths a browser may name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.fence_yard import WAYS_OUT, yard
from tests.profiles import SAMPLE_RUNS
from tests.ui.home_page import few_samples
from tfcompare import settings
from tfcompare.settings import Settings, app_folder
from tfcompare.sources.logdir import find_run, find_runs
from tfcompare.ui.frame import search
from tfcompare.ui.frame.access import is_same_machine, may_type, without_ways_out
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


@pytest.mark.parametrize(
    "host", ["localhost:8501", "127.0.0.1", "127.8.9.1:80", "[::1]:8501", "LOCALHOST", "a.localhost"]
)
def test_loopback_hosts_are_this_machine(host: str) -> None:
    assert is_same_machine({"Host": host})


@pytest.mark.parametrize(
    "host",
    ["", "example.com", "192.168.1.5:8501", "localhost.example.com", "127.0.0.1.example.com", "[::2]", "[", "0.0.0.0"],
)
def test_other_hosts_are_not(host: str) -> None:
    assert not is_same_machine({"Host": host})


@pytest.mark.parametrize("header", ["X-Forwarded-For", "x-forwarded-host", "Forwarded", "Via", "X-Real-Ip"])
def test_what_comes_through_a_proxy_is_not(header: str) -> None:
    assert not is_same_machine({"Host": "localhost:8501", header: "127.0.0.1"})


def test_without_headers_nobody_is() -> None:
    assert not is_same_machine({})


__all__ = ["yard"]

HERE = {"Host": "localhost:8501"}
ELSEWHERE = [{"Host": "profiles.example.com"}, {"Host": "localhost:8501", "X-Forwarded-For": "10.0.0.7"}, {}]


@pytest.mark.parametrize("headers", ELSEWHERE)
def test_from_elsewhere_paths_are_named_only_below_roots(headers: dict[str, str]) -> None:
    assert may_type(Settings(), HERE)
    assert not may_type(Settings(), headers)
    assert may_type(Settings(roots=(Path("/srv"),)), headers)


@pytest.fixture
def fenced_home(
    yard: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AppTest]:
    """The app with `root` as its root, for a browser elsewhere; below it a run, and beside it a secret one."""
    for place in ("root/runs", "secret"):
        shutil.copytree(SAMPLE_RUNS["filters_16_8"], yard / place, dirs_exist_ok=True)
    few_samples(tmp_path_factory.getbasetemp() / "few_samples", monkeypatch)
    monkeypatch.setattr("tfcompare.ui.pages.home.QUIET_S", 90)  # a page that is drawn again shows no error twice
    monkeypatch.setattr("tfcompare.ui.frame.access.is_same_machine", lambda _: False)
    with settings.override(Settings(roots=(yard / "root",))):
        yield AppTest.from_file(str(app_folder() / "app.py"), default_timeout=90)


def errors(home: AppTest) -> str:
    return "\n".join(error.value for error in home.error)


def test_a_typed_path_below_a_root_is_opened_and_one_outside_is_not(fenced_home: AppTest, yard: Path) -> None:
    fenced_home.run()
    fenced_home.text_input(key="tfcompare.path").set_value("runs").run()
    assert fenced_home.query_params["dir"] == str(yard / "root" / "runs")
    assert not fenced_home.exception
    for way in ("../secret", str(yard / "secret"), "out"):
        fenced_home.text_input(key="tfcompare.path").set_value(way).run()
        assert "nothing else may be opened here" in errors(fenced_home)
        assert fenced_home.query_params["dir"] == str(yard / "root" / "runs")


def test_a_place_whose_name_is_not_utf_8_is_refused_in_a_sentence(fenced_home: AppTest, yard: Path) -> None:
    target = yard / "root" / os.fsdecode(b"\xff")
    shutil.copytree(SAMPLE_RUNS["filters_16_8"], target)
    (yard / "root" / "plain").symlink_to(target, target_is_directory=True)
    fenced_home.query_params["dir"] = "plain"
    fenced_home.run()
    assert not fenced_home.exception
    assert "a link cannot contain a name that is not UTF" in errors(fenced_home)


def test_a_link_leads_nowhere_outside(fenced_home: AppTest, yard: Path) -> None:
    ways = [way.replace("{yard}", str(yard)) for way in WAYS_OUT if way]
    assert len(ways) >= 20
    fenced_home.query_params["dir"] = ways
    fenced_home.run()
    assert not fenced_home.exception
    assert errors(fenced_home).count("nothing else may be opened here") == len(set(ways))
    assert "dir" not in fenced_home.query_params
    assert "sample runs" in "\n".join(caption.value for caption in fenced_home.caption)


def test_a_link_below_a_root_that_leads_out_of_it_shows_no_run(yard: Path) -> None:
    for place in ("root/runs", "secret"):
        shutil.copytree(SAMPLE_RUNS["filters_16_8"], yard / place, dirs_exist_ok=True)
    fence = Settings(roots=(yard / "root",))
    typed = [str(yard / "root")]
    found = find_runs(*typed)
    assert any("secret" in str(run.path.resolve()) for run in found), "the links are followed as such"
    (left,) = without_ways_out(fence, typed, [run for run in found if run.is_readable])
    assert left.path.is_relative_to(yard / "root" / "runs")
    given = Settings(roots=(yard / "root",), places=(yard / "root",))
    assert list(without_ways_out(given, typed, found)) == found, "a place given at the start is trusted"
