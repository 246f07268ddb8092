"""The home page with uploads, and who may do what there."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import SAMPLE_RUNS
from tests.ui.home_page import PATH_FIELD, table, texts
from tests.views.series.series_runs import profile as small_profile
from tfcompare import settings
from tfcompare.server import pages
from tfcompare.server.uploads import Arrival, Uploads
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
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
    assert home.query_params["baseline"] == find_runs(SAMPLE_RUNS["filters_16_8"])[0].id
    assert home.query_params["candidate"] == "mine/mine"
    assert table(home)["name"] == ["mine", "filters_16_8"], "although it was recorded before"
    assert "`mine` is" in texts(home)


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
