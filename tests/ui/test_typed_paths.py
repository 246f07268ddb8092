"""Paths that a browser names: from where, and below which roots."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.fence_yard import WAYS_OUT, yard
from tests.profiles import SAMPLE_RUNS
from tests.ui.home_page import few_samples
from tfcompare import settings
from tfcompare.settings import Settings, app_folder
from tfcompare.sources.logdir import find_runs
from tfcompare.ui.frame.access import may_type, without_ways_out

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
