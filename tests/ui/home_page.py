"""The home page on samples, and what stands on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import SAMPLES
from tfcompare import settings
from tfcompare.settings import Settings, app_folder

PATH_FIELD = "tfcompare.path"


def table(home: AppTest) -> dict[str, list[object]]:
    """The table's cells by column; names without the indentation of captures in an unfolded program."""
    cells = home.dataframe[0].value
    return cells.assign(name=cells["name"].str.strip()).to_dict("list")


def texts(home: AppTest) -> str:
    return "\n".join(element.value for element in (*home.markdown, *home.caption, *home.error, *home.info))


def few_samples(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the sample runs, only the four of the autoencoder on a CPU: to read all of them takes long.

    Tests that name the same folder read them once.
    """
    if not folder.exists():
        (folder / "sample_logs").mkdir(parents=True)
        (folder / "sample_logs" / "autoencoder").symlink_to(SAMPLES / "autoencoder")
    monkeypatch.setattr("tfcompare.settings.app_folder", lambda: folder)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    """The app on the recorded samples, for a browser on the same machine; drawn once they have been read."""
    monkeypatch.setattr("tfcompare.ui.pages.home.QUIET_S", 90)
    monkeypatch.setattr("tfcompare.ui.frame.access.is_same_machine", lambda _: True)
    with settings.override(Settings(places=(SAMPLES / "autoencoder",))):
        yield AppTest.from_file(str(app_folder() / "app.py"), default_timeout=90)


@pytest.fixture
def bare_home(
    home: AppTest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AppTest]:
    """The app as it shows itself where no place was named, with four sample runs."""
    few_samples(tmp_path_factory.getbasetemp() / "few_samples", monkeypatch)
    with settings.override(Settings()):
        yield home
