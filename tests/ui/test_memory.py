"""The memory page, run by Streamlit without a browser."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.memory_runs import allocate, free, saved, step, work
from tests.profiles import CORPUS, ROOT, loaded_run, run_path
from tests.xspace_builder import Event
from tfcompare import compare, settings
from tfcompare.export.csv import spreadsheet_csv
from tfcompare.settings import Settings
from tfcompare.ui.pages.live import memory_events_csv
from tfcompare.units import format_bytes
from tfcompare.views.memory.memory_choice import ONE_OF_EACH

STEPS = [event for i in range(2) for event in (step(i, 100.0 * i, 90), work(100.0 * i + 1))]
MEMORY_OF_EACH = ("memory_baseline", "memory_candidate")
HELD = [allocate(10, 300, 300, 0x1, tf_op="m/conv"), free(120, 0, 300, 0x1)]


@pytest.fixture
def page() -> Iterator[AppTest]:
    with settings.override(Settings()):
        yield AppTest.from_file(str(ROOT / "pages" / "4_Memory.py"), default_timeout=90)


def shown(page: AppTest) -> AppTest:
    page.run()
    assert not page.exception
    return page


def of_two(page: AppTest, folder: Path, ours: list[Event], theirs: list[Event]) -> AppTest:
    """The page on two tiny runs, `before` and `after`."""
    for role, name, events in (("baseline", "before", ours), ("candidate", "after", theirs)):
        logdir = folder / name
        if not logdir.exists():
            saved(logdir, *events)
        (run,) = (logdir / "plugins" / "profile").iterdir()
        page.query_params[role] = f"{folder.name}/{run.relative_to(folder)}"
    with settings.override(Settings(places=(folder,))):
        return shown(page)


def of_corpus(page: AppTest, baseline: str, candidate: str) -> AppTest:
    for role, name in (("baseline", baseline), ("candidate", candidate)):
        page.query_params[role] = f"corpus/{run_path(name).relative_to(CORPUS)}"
    with settings.override(Settings(places=(CORPUS,))):
        return shown(page)


def headline(page: AppTest) -> str:
    return next(text.value for text in page.markdown if text.value.startswith("### "))


def told(page: AppTest) -> str:
    return " ".join(element.value for kind in (page.info, page.caption) for element in kind)


def titles(page: AppTest) -> list[str]:
    figures = [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]
    return [figure["layout"]["title"]["text"] for figure in figures]


def memories_at_the_peak(page: AppTest) -> set[str]:
    return set(table(page, 0)["memory_id"])


def peak_of(run: str, memory_id: str) -> int:
    summary = loaded_run(run).table("memory_summary").set_index("memory_id")
    return int(summary.loc[memory_id, "peak_bytes"])


def table(page: AppTest, nth: int) -> pd.DataFrame:
    """A table as it is sent to the browser, by the frame's column names."""
    frame = page.dataframe[nth].value
    frame.columns = [column[-1] if isinstance(column, tuple) else column for column in frame.columns]
    return frame


# The samples


def test_the_headline_and_the_cards_are_those_of_the_tables(page: AppTest) -> None:
    shown(page)
    assert headline(page) == ("### `B` uses 59.1 % **less** memory at its peak than `A`: 69.0 MB vs 169 MB.")
    assert [(card.label, card.value, card.delta) for card in page.metric][:2] == [
        ("Peak in use", "69.0 MB", "−59.1 %"),
        ("Peak heap since start", "69.1 MB", "−59.3 %"),
    ]


def test_the_tables_have_the_numbers_of_the_diff(page: AppTest) -> None:
    ours, theirs = (loaded_run(name) for name in ("filters_512_128", "filters_16_8"))
    diff = compare(ours, theirs).table("memory_peak")
    shown(page)
    peak = table(page, 0)
    assert len(peak) == len(diff) > 20
    held = diff["allocation_bytes_baseline"].astype("float64") / 1e6
    assert peak["allocation_bytes_baseline"].tolist() == pytest.approx(held.tolist(), nan_ok=True)
    assert peak["occurrences_candidate"].dropna().tolist() == diff["occurrences_candidate"].dropna().tolist()
    summary = table(page, 1)
    assert summary["memory_id"].tolist() == ["bfc_cpu_allocator_for_gpu"]
    assert summary[["heap_bytes_baseline", "heap_bytes_candidate"]].to_numpy().tolist() == [
        pytest.approx([168.858112, 69.021456], rel=1e-3)
    ]
    assert "peak_bytes_candidate" not in summary, "the cards show it"


def test_the_address_says_what_is_drawn(page: AppTest) -> None:
    page.query_params.update({"level": "free", "span": "the whole run", "align": "by time", "parts_by": "region"})
    drawn = titles(shown(page))
    assert (drawn[0], drawn[-1]) == ("Memory free over time", "Live at the peak of each run, by region")
    figure = json.loads(page.get("plotly_chart")[0].proto.spec)
    assert figure["layout"]["xaxis"]["title"]["text"] == "Time since the first event (s)"


def test_stack_heap_and_free_are_drawn_for_each_run_when_asked_for(page: AppTest) -> None:
    page.query_params["span"] = "the whole run"
    assert not any("Stack, heap" in title for title in titles(shown(page)))
    page.toggle(key="parts").set_value(True)
    stacked = [title for title in titles(shown(page)) if "Stack, heap" in title]
    assert [title.rpartition(" ")[2] for title in stacked] == ["filters_512_128", "filters_16_8"]


def test_all_columns_are_there_when_asked_for(page: AppTest) -> None:
    page.query_params["all_columns"] = page.query_params["all_columns_summary"] = "true"
    shown(page)
    wanted = {"status", "match", "verdict", "requested_bytes_delta", "shape_candidate", "host", "memory_id"}
    assert wanted <= set(table(page, 0).columns)
    assert {"peak_time_us_baseline", "stack_bytes_candidate", "fragmentation_delta"} <= set(table(page, 1).columns)


@pytest.mark.parametrize("is_long", [False, True])
def test_the_file_of_a_timeline_is_the_whole_table(is_long: bool) -> None:
    run = loaded_run("filters_16_8")
    data = memory_events_csv(run, None, is_long)
    whole = gzip.decompress(data) if is_long else data
    assert whole == spreadsheet_csv(run.table("memory_timeline"))


# One run alone


def test_a_run_alone_is_not_compared_with_anything(page: AppTest) -> None:
    page.query_params["baseline"] = f"corpus/{run_path('jax_tpu').relative_to(CORPUS)}"
    page.query_params["all_columns"] = page.query_params["all_columns_summary"] = "true"
    page.query_params["candidate"] = ""
    with settings.override(Settings(places=(CORPUS,))):
        shown(page)
    assert headline(page) == "### `tpu_inference_2` uses 21.5 GB at its peak."
    assert [card.delta for card in page.metric] == [""] * 5
    words = " ".join([told(page), *titles(page), *(control.label for control in page.selectbox)]).lower()
    assert "candidate" not in words.partition("per step")[0]
    assert not any("both runs" in title or "changes" in title for title in titles(page))
    for nth in (0, 1):
        assert not [name for name in table(page, nth) if name.endswith(("_candidate", "_delta", "_ratio"))]


def test_a_run_alone_without_memory_events_says_how_to_record_them(page: AppTest, tmp_path: Path) -> None:
    (run,) = (saved(tmp_path / "before", *STEPS) / "plugins" / "profile").iterdir()
    page.query_params["baseline"], page.query_params["candidate"] = f"{tmp_path.name}/{run.relative_to(tmp_path)}", ""
    with settings.override(Settings(places=(tmp_path,))):
        shown(page)
    assert "No memory events were captured." in told(page)
    assert not page.metric


# Which memory


def test_a_memory_of_several_is_chosen_by_its_name_in_the_address(page: AppTest) -> None:
    page.query_params["memory"], page.query_params["all_columns"] = "GPU_3_bfc", "true"
    of_corpus(page, "jax_conv_08", "jax_conv_legacy")
    assert page.selectbox(key="memory").value == "GPU_3_bfc"
    assert memories_at_the_peak(page) == {"GPU_3_bfc"}


def test_a_memory_there_is_not_is_no_error(page: AppTest) -> None:
    page.query_params["memory"] = "no such"
    of_corpus(page, "jax_conv_08", "jax_conv_legacy")
    assert page.selectbox(key="memory").value == "GPU_1_bfc"


def test_memories_of_other_names_are_chosen_one_for_each_run(page: AppTest) -> None:
    page.query_params["memory_candidate"] = "2"
    of_corpus(page, "jax_elementwise", "jax_tpu")
    assert (page.selectbox(key="memory_baseline").value, page.selectbox(key="memory_candidate").value) == (
        "GPU_0_bfc",
        "2",
    )
    assert "`B` in `2` uses **more** memory" in headline(page)
    assert set(table(page, 0)["op_name"]) == {"unused preallocated device memory", "stack", "(no op named)"}


def test_where_names_pair_one_of_each_can_still_be_chosen(page: AppTest) -> None:
    page.query_params["memory"] = ONE_OF_EACH
    page.query_params["memory_candidate"] = "GPU_5_bfc"
    of_corpus(page, "jax_conv_08", "jax_conv_legacy")
    assert [box.value for box in page.selectbox if box.key in MEMORY_OF_EACH] == ["GPU_1_bfc", "GPU_5_bfc"]
    assert page.metric[0].value == format_bytes(peak_of("jax_conv_legacy", "GPU_5_bfc"))


# What there is not


def test_without_memory_events_the_page_says_how_to_record_them(page: AppTest, tmp_path: Path) -> None:
    of_two(page, tmp_path, STEPS, [*STEPS, work(50)])
    assert "No memory events were captured." in told(page)
    assert "host_tracer_level=2" in told(page)
    assert not page.metric
