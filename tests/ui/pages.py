"""The pages of views, run by Streamlit without a browser, and what stands on them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pandas as pd
from streamlit.testing.v1 import AppTest

from tests.profiles import CORPUS, ROOT, SAMPLES, run_path
from tfcompare import settings
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pairs_of
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.ui.frame.loading import compared, run_cache
from tfcompare.ui.frame.search import search
from tfcompare.ui.frame.selection import Selection

PLACES = Settings(places=(SAMPLES, *([CORPUS] if CORPUS.is_dir() else [])))
CPU = ("filters_512_128", "filters_16_8")
GPU = ("h100_512_128", "h100_16_8")
XLA = ("jax_filters_128_32", "jax_filters_16_8")
WORKERS = ("workers_balanced", "workers_slow_input")
CONVOLUTION = "Host:Conv2D:autoencoder_1/image_1/convolution"


def id_of(name: str) -> str:
    """The id of a sample or of a run of the corpus."""
    (run,) = find_runs(run_path(name))
    place = SAMPLES if run.path.is_relative_to(SAMPLES) else CORPUS
    return f"{place.name}/{run.path.relative_to(place)}"


def pair_on(baseline: str, *candidates: str) -> Pair:
    """The pair that a page on these runs shows: what is made of it here, the page need not make again."""
    with settings.override(PLACES):
        found = {run.id: run for run in search(PLACES, ()).found}
        ids = [id_of(name) for name in (baseline, *candidates)]
        loaded = {run_id: run_cache(PLACES).request(found[run_id]).result() for run_id in ids}
        comparison, _ = compared(Selection(ids[0], tuple(ids[1:])), loaded)
        return pairs_of(comparison)[0]


def page_of(file: str, baseline: str, *candidates: str, **address: str) -> AppTest:
    """The page in this file on the runs of these names, with this address; it has not run yet."""
    page = AppTest.from_file(str(ROOT / "pages" / f"{file}.py"), default_timeout=90)
    page.query_params["baseline"], page.query_params["repeat"] = id_of(baseline), ""
    page.query_params["candidate"] = [id_of(name) for name in candidates] or ""
    page.query_params |= address
    return page


def shown(page: AppTest) -> AppTest:
    """The page after it ran once more."""
    with settings.override(PLACES):
        page.run()
    assert not page.exception
    return page


def opened(file: str, baseline: str, *candidates: str, **address: str) -> AppTest:
    """The page of `page_of` after it ran."""
    return shown(page_of(file, baseline, *candidates, **address))


def table(page: AppTest, position: int = 0) -> pd.DataFrame:
    """A table as it is sent to the browser, by the frame's column names."""
    frame: pd.DataFrame = page.dataframe[position].value
    frame.columns = [column if isinstance(column, str) else column[-1] for column in frame.columns]
    return frame


def charts(page: AppTest) -> dict[str, dict[str, Any]]:
    """What is drawn, by title."""
    specs: Iterable[dict[str, Any]] = (json.loads(chart.proto.spec) for chart in page.get("plotly_chart"))
    return {spec["layout"]["title"]["text"]: spec for spec in specs}


def said(page: AppTest) -> str:
    """Its texts, the titles of its parts, what unfolds, and what is on its buttons."""
    kinds = (page.markdown, page.caption, page.info, page.warning, page.subheader, page.code)
    labels = [one.label for kind in (page.expander, page.button) for one in kind]
    return "\n".join([*(one.value for kind in kinds for one in kind), *labels])
