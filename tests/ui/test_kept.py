"""A store that takes nothing, on screen."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import ROOT, SAMPLE_RUNS
from tfcompare import settings
from tfcompare.settings import Settings
from tfcompare.store.cached_frames import frame_cache
from tfcompare.ui.frame.loading import _run_cache


def test_a_data_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(SAMPLE_RUNS["filters_16_8"], data / "captures" / "planted")
    data.chmod(0o777)
    with settings.override(Settings(places=(SAMPLE_RUNS["filters_512_128"],), data_folder=data)):
        home = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90).run()
    assert not home.exception
    assert "are not shown, since other users can write to it" in home.error[0].value
    assert len(home.dataframe[0].value) == 1
    assert not home.get("file_uploader")


def test_a_store_that_takes_nothing_is_told_beside_a_page_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_folder = tmp_path / "no_folder"
    no_folder.write_text("")
    monkeypatch.setenv("TFCOMPARE_STORE", str(no_folder / "store"))
    _run_cache.clear()
    with settings.override(Settings(places=(SAMPLE_RUNS["filters_512_128"], SAMPLE_RUNS["filters_16_8"]))):
        page = AppTest.from_file(str(ROOT / "pages" / "6_tf_data.py"), default_timeout=90).run()
        frame_cache().flush()
        page.run()
    assert not page.exception
    assert not page.error
    (warning,) = (w.value.replace("\\", "") for w in page.sidebar.warning)
    assert (
        "cannot be cached there (Not a directory), so profiles are read anew each time; make room, or name" in warning
    )
    assert page.get("plotly_chart")
