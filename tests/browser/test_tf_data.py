"""The tf.data page in a real browser: graphs, choices that make links, and the numbers to take home."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import EVERYTHING, ROWS_SHOWN, downloaded, opened
from tests.profiles import SAMPLE_RUNS, loaded_run
from tfcompare import compare
from tfcompare.run import Run
from tfcompare.sources.logdir import find_runs

GRAPHS = ".js-plotly-plot:has-text('xecution')"
NAMES = ("filters_16_8", "filters_16_8_better_input")


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return [loaded_run(name) for name in NAMES]


def address(url: str, folder: Path, names: tuple[str, str], **more: str) -> str:
    ids = {run.path.parents[2].name: run.id for run in find_runs(folder)}
    roles = {role: ids[name] for role, name in zip(("baseline", "candidate"), names, strict=True)}
    return f"{url}/tf_data?{urlencode(roles | more)}"


@pytest.fixture(scope="module")
def samples_address(samples_url: str) -> str:
    return address(samples_url, SAMPLE_RUNS[NAMES[0]].parents[1], NAMES)


@pytest.fixture(scope="module")
def samples(tab: Page, samples_address: str) -> Page:
    """The page on the sample runs, opened once for all tests that leave it as they found it."""
    return opened(tab, samples_address)


def graph_texts(page: Page, nth: int) -> str:
    expect(page.locator(GRAPHS).nth(nth).locator(".textpoint text").first).to_be_attached()
    return " | ".join(page.locator(GRAPHS).nth(nth).locator(".textpoint text").all_text_contents())


def test_both_graphs_are_drawn_with_the_bottleneck_and_what_changed(samples: Page) -> None:
    expect(samples.locator(f"{GRAPHS} .gtitle")).to_have_text(
        [f"Slowest execution: baseline {NAMES[0]}", f"Slowest execution: candidate {NAMES[1]}"]
    )
    expect(samples.locator("h3").first).to_contain_text("B is not input-bound, A is (bottleneck: Map)")
    before, after = graph_texts(samples, 0), graph_texts(samples, 1)
    assert "Map▲ slowest · ≠ Map → ParallelMap" in before
    assert "Prefetch+ added" in after
    assert "ParallelMap▲ slowest · ≠ Map → ParallelMap" in after


def test_paired_iterators_stand_at_one_height_on_the_page(samples: Page) -> None:
    def top(nth: int, name: str) -> float:
        text = samples.locator(GRAPHS).nth(nth).locator(".textpoint text", has_text=name).first
        text.scroll_into_view_if_needed()
        places = [samples.locator(GRAPHS).nth(nth).bounding_box(), text.bounding_box()]
        assert places[0] is not None and places[1] is not None
        return places[1]["y"] + places[1]["height"] / 2 - places[0]["y"]

    assert top(0, "Batch") == pytest.approx(top(1, "Batch"), abs=2)
    assert top(0, "Root") == pytest.approx(top(1, "Root"), abs=2)


def test_hovering_tells_all_of_a_node(samples: Page) -> None:
    samples.locator(GRAPHS).nth(1).locator(".textpoint text", has_text="ParallelMap").first.hover(force=True)
    hover = samples.locator(GRAPHS).nth(1).locator(".hoverlayer")
    expect(hover).to_contain_text("Iterator::Root::Prefetch::BatchV2::ParallelMapV2")
    expect(hover).to_contain_text("parallelism: 2")
    expect(hover).to_contain_text("autotune: false")


def test_the_csvs_are_the_diffs(samples: Page, runs: list[Run]) -> None:
    diff = compare(*runs)
    pipelines, iterators = (
        downloaded(samples, EVERYTHING, nth, dtype={"iterator_id_candidate": "str"}) for nth in (0, 1)
    )
    expected = diff.table("tf_data")
    assert list(iterators.columns) == list(expected.columns)
    assert (
        iterators["iterator_id_candidate"].fillna("").tolist() == expected["iterator_id_candidate"].fillna("").tolist()
    )
    assert iterators["self_time_us_candidate"].tolist() == pytest.approx(
        expected["self_time_us_candidate"].tolist(), rel=1e-12, nan_ok=True
    )
    assert pipelines["max_latency_us_baseline"].tolist() == pytest.approx(
        diff.table("tf_data_pipelines")["max_latency_us_baseline"].tolist(), rel=1e-12
    )
    shown = downloaded(samples, ROWS_SHOWN, 1, dtype={"iterator_id_candidate": "str"})
    assert shown["iterator"].tolist()[0] == "Map"
    assert len(shown) == len(expected)
