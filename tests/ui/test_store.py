"""Runs of a store among those of places."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.profiles import SAMPLE_RUNS
from tests.store.runs_in_stores import copied, put, stored
from tfcompare import settings as settings_module
from tfcompare.commands.serve import command_line
from tfcompare.errors import TfcompareError
from tfcompare.settings import Settings
from tfcompare.sources.replicates import is_copy
from tfcompare.store.stored_run import StoredRun
from tfcompare.ui.frame import search
from tfcompare.ui.frame.access import without_ways_out
from tfcompare.ui.frame.on_disk import state_of

OURS, THEIRS = "filters_16_8", "filters_512_128"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of two runs, of which one still lies where it was, in `logs`."""
    folder = tmp_path_factory.mktemp("stored")
    for name in (OURS, THEIRS):
        copied(name, folder / "logs")
    put([folder / "logs"], folder / "store")
    shutil.rmtree(folder / "logs" / THEIRS)
    return folder


@pytest.fixture
def store(place: Path) -> str:
    return str(place / "store")


def test_a_run_that_lies_in_a_place_is_shown_as_it_is_there(store: str, place: Path) -> None:
    result = search.look([place / "logs"], store=store)
    assert [(run.name, run.is_stored) for run in result.found] == [(THEIRS, True), (OURS, False)]
    assert result.problems == ()


def test_runs_of_the_store_that_others_hide_are_told(store: str, place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "logs", tmp_path / "logs")
    result = search.look([tmp_path / "logs"], store=store)
    assert len(result.found) == 2
    assert result.problems == (
        "1 runs of the store are not shown, since others here go by their ids, such as "
        "logs/filters_16_8/plugins/profile/2026_11_20_11_13_16",
    )


def test_a_store_without_places_shows_no_samples(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_cached_search", lambda places, store, _: search.look(places, store=store))
    result = search.search(Settings(store_url=store), ())
    assert [run.name for run in result.found] == [THEIRS, OURS]
    assert not result.are_samples


def test_what_is_wrong_with_the_store_is_a_problem_of_the_page(tmp_path: Path) -> None:
    result = search.look([SAMPLE_RUNS[OURS]], store=str(tmp_path / "nowhere"))
    assert len(result.found) == 1
    assert result.problems[0].startswith(f"{tmp_path / 'nowhere'}: is no store of tfcompare")


def test_a_stored_run_is_as_it_was_read_whatever_becomes_of_its_profile(store: str) -> None:
    assert {state_of(run) for run in stored(store).values()} == {"as read"}


def test_runs_of_a_store_are_shown_inside_of_a_fence(store: str, tmp_path: Path) -> None:
    runs = tuple(stored(store).values())
    settings = Settings(store_url=store, roots=(tmp_path / "elsewhere",))
    assert without_ways_out(settings, [str(tmp_path)], runs) == runs


def test_copies_are_told_by_what_they_hold(store: str) -> None:
    run = stored(store)[OURS]
    again = StoredRun.of(replace(run.row, run="again"), run.store)
    assert is_copy(run, again)
    assert not is_copy(run, stored(store)[THEIRS])


def test_the_store_is_named_at_the_start(tmp_path: Path) -> None:
    assert settings_module.read(["--store", "s3://bucket/store", "logs"], {}).store_url == "s3://bucket/store"
    assert settings_module.read(["--store=/data/store"], {}).store_url == "/data/store"
    assert settings_module.read([], {"TFCOMPARE_STORE_URL": "gs://bucket/store"}).store_url == "gs://bucket/store"
    assert settings_module.read([], {}).store_url is None
    with pytest.raises(TfcompareError, match="--store: expected one argument"):
        settings_module.read(["--store"], {})
    words = command_line([tmp_path], None, store="relative/store")
    assert words[-3:] == ["--store", str(Path.cwd() / "relative" / "store"), str(tmp_path)]
