"""Runs whose files change or go while they are on screen."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import ROOT, SAMPLE_RUNS
from tfcompare import settings
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_run
from tfcompare.ui.frame.on_disk import state_of
from tfcompare.ui.frame.search import rescan


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for name in ("before", "after"):
        file = next(SAMPLE_RUNS["filters_16_8"].rglob("*.xplane.pb"))
        (tmp_path / name).mkdir()
        shutil.copy(file, tmp_path / name / "vm.xplane.pb")
    return tmp_path


@pytest.fixture
def overview(logs: Path) -> Iterator[AppTest]:
    with settings.override(Settings(places=(logs / "before", logs / "after"))):
        rescan()
        yield AppTest.from_file(str(ROOT / "pages" / "1_Overview.py"), default_timeout=90).run()
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


def test_a_run_that_is_replaced_is_told_and_read_again(overview: AppTest, logs: Path) -> None:
    assert not overview.exception
    assert warnings(overview) == []
    shutil.copy(next(SAMPLE_RUNS["filters_512_128"].rglob("*.xplane.pb")), logs / "after" / "vm.xplane.pb")
    overview.run()
    assert warnings(overview) == ["`after` has changed on disk; what is shown is as it was read."]
    before = [text.value for text in overview.markdown]
    overview.button(key="tfcompare.on_disk.changed").click().run()
    assert warnings(overview) == []
    assert "213 ms" in "\n".join(text.value for text in overview.markdown)
    assert [text.value for text in overview.markdown] != before


def test_a_run_that_disappears_stays_on_screen_until_it_is_read_again(overview: AppTest, logs: Path) -> None:
    shutil.rmtree(logs / "after")
    overview.run()
    assert warnings(overview) == ["`after` is no longer on disk; what is shown was read before."]
    overview.button(key="tfcompare.on_disk.gone").click().run()
    assert not overview.exception
    said = "\n".join(text.value for text in (*overview.error, *overview.info))
    assert "there is no such file or folder" in said or "There is no run" in said


def test_a_run_that_is_still_being_written_costs_one_message_and_comes_when_it_is_whole(
    overview: AppTest, logs: Path
) -> None:
    file = logs / "after" / "vm.xplane.pb"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    overview.run()
    overview.button(key="tfcompare.on_disk.changed").click().run()
    assert not overview.exception
    assert "breaks off" in "\n".join(error.value for error in overview.error)
    file.write_bytes(whole)
    again = [button for button in overview.button if button.label == "Read again"]
    again[0].click().run()
    assert not overview.exception
    assert not overview.error
    assert ":violet-badge[**B** after]" in [text.value for text in overview.markdown]
