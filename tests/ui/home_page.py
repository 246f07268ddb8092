"""What stands on the home page."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import SAMPLES

PATH_FIELD = "tfcompare.path"


def table(home: AppTest) -> dict[str, list[object]]:
    return home.dataframe[0].value.to_dict("list")


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
