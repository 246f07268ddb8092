"""The Series page, run by Streamlit without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import ROOT, run_path
from tests.store.runs_in_stores import put
from tests.ui.page_texts import texts
from tests.ui.test_hostile import live_parts
from tests.views.series.series_runs import BEFORE, nights
from tfcompare import settings
from tfcompare.settings import Settings
from tfcompare.store import cached_frames
from tfcompare.store.stored_run import StoredRun
from tfcompare.ui.frame.search import rescan

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("series")
    nights(folder / "logs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached_frames, "_SETTLED_NS", -1)
        put([folder / "logs"], folder / "store")
    return str(folder / "store")


@pytest.fixture
def page(store: str) -> Iterator[AppTest]:
    rescan()
    with settings.override(Settings(store_url=store)):
        yield AppTest.from_file(str(ROOT / "pages" / "10_Series.py"), default_timeout=90)


def opened(page: AppTest, **query: str) -> AppTest:
    for name, value in query.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def test_the_answer_the_changes_and_what_explains_them(page: AppTest) -> None:
    opened(page, every_op="true")
    assert f"### Step time rose by 17.7 % (16.4–19.1 %) at `c0ffee{BEFORE}` on 2026-03-13" in texts(page)
    assert "explained by `model/matmul` +296 µs of +293 µs per step." in texts(page)
    changes, moves, every_op, runs = (table.value.droplevel(0, axis=1) for table in page.dataframe)
    assert changes["label"].tolist() == [f"c0ffee{BEFORE}"]
    assert (moves["op_name"][0], round(moves["delta_us"][0])) == ("model/matmul", 296)
    assert str(moves.set_index("op_name")["delta_us"]["no op running"]) == "0.0", "what did not change has no sign"
    assert "1 of 3 tested ops changed." in texts(page)
    assert every_op["op_name"].tolist() == ["model/matmul"]
    assert runs["name"].tolist() == [f"night_{night:02}" for night in reversed(range(20))]
    labels = [f"CSV of {rows}" for rows in ("this row", "these 5 rows", "this row", "these 20 rows")]
    assert [button.label for button in page.get("download_button")] == labels
    assert len(page.get("plotly_chart")) == 1


def test_where_versions_of_tables_changed_stands_below_the_chart(page: AppTest, monkeypatch) -> None:
    monkeypatch.setattr(StoredRun, "version_of", lambda run, _: run.id.split("/")[1])
    assert texts(opened(page)).count("Different versions of tfcompare made `steps`, `summary`, which") == 1
    assert "changed at `c0ffee17`, `c0ffee18`, `c0ffee19` and 16 more." in texts(page)


def test_the_link_holds_metric_filter_and_order(page: AppTest) -> None:
    opened(page, metric="Op", pattern="*matmul", runs="night_0", order="build")
    assert "No change of op time of `*matmul` in the last 10 runs" in texts(page)
    assert page.get("download_button")[0].label == "CSV of these 10 rows"


def test_tags_leave_some_runs(page: AppTest) -> None:
    opened(page)
    assert "commit=c0ffee00" not in page.multiselect(key="tags").options
    page.multiselect(key="tags").set_value(["build=1", "build=2", "build=3"]).run()
    assert "3 runs with a value: at least 8 are needed to find changes. Capture 5 more" in texts(page)
    page.multiselect(key="tags").set_value(["build=1"]).run()
    assert "A series needs at least 3 runs, and 1 match: change the filter." in texts(page)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("Throughput", "No change of throughput in the last 20 runs."),  # steps begin every 4 ms, whatever they take
        ("Peak memory", "night_02 and 17 more: no memory is recorded."),
        ("Kernel", "Name an op or kernel"),
    ],
)
def test_what_is_said_of_a_metric(page: AppTest, metric: str, said: str) -> None:
    assert said in texts(opened(page, metric=metric))


def test_fewer_than_three_runs_and_unlike_ones_are_no_series() -> None:
    names = ("filters_16_8", "filters_512_128", "filters_16_8_again")
    rescan()
    with settings.override(Settings(places=tuple(map(run_path, names[:2])))):
        page = opened(AppTest.from_file(str(ROOT / "pages" / "10_Series.py"), default_timeout=90))
    assert "A series needs at least 3 runs, and there are 2." in texts(page)
    assert page.code[0].value.startswith("tfcompare ingest logs/tonight --store runs/ --tag program=my_model")
    rescan()
    with settings.override(Settings(places=tuple(map(run_path, names)))):
        opened(page)
    assert "A series needs at least 3 runs of one program; no program here has that many." in texts(page)
    assert "`tfcompare ingest --tag program=…`" in texts(page)
    assert not page.get("plotly_chart")


def test_names_and_tags_are_no_markup(tmp_path: Path) -> None:
    nights(tmp_path, 8, before=4)
    for file in tmp_path.rglob("tfcompare.json"):
        file.write_text(f'{{"commit": "{EVIL}", "tags": ["{EVIL}"]}}')
    rescan()
    with settings.override(Settings(places=(tmp_path,))):
        page = opened(AppTest.from_file(str(ROOT / "pages" / "10_Series.py"), default_timeout=90))
    assert all("<img" not in str(chart.proto.spec) for chart in page.get("plotly_chart"))
    assert f"`{EVIL[:10]}`" in texts(page), "a commit is shortened"
    for element in page.markdown:
        assert live_parts(element.value) == []


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of the nights of two programs, and one run of a third."""
    folder = tmp_path_factory.mktemp("programs")
    nights(folder / "logs" / "resnet", 8, before=4)
    nights(folder / "logs" / "bert", 6, before=6)
    nights(folder / "logs" / "gpt", 1)
    put([folder / "logs"], folder / "store")
    return str(folder / "store")


def test_programs_are_never_mixed_and_the_link_holds_one(programs: str) -> None:
    rescan()
    with settings.override(Settings(store_url=programs)):
        page, link = (AppTest.from_file(str(ROOT / "pages" / "10_Series.py"), default_timeout=90) for _ in range(2))
        opened(page, program="gone · CPU")
        program = page.selectbox(key="program")
        assert program.options == ["bert/night · CPU", "resnet/night · CPU"], "one run is no series"
        assert program.value == "resnet/night · CPU", "it has the most, and the one of the link is gone"
        assert "7 runs of other programs or devices not shown" in texts(page)
        assert page.get("download_button")[-1].label == "CSV of these 8 rows"
        baseline = AppTest.from_file(str(ROOT / "pages" / "10_Series.py"), default_timeout=90)
        opened(baseline, baseline="bert/night_03")
        assert baseline.selectbox(key="program").value == "bert/night · CPU", "that of the baseline"
        opened(link, program="bert/night · CPU")
        assert link.selectbox(key="program").value == "bert/night · CPU"
        assert "9 runs of other programs or devices not shown" in texts(link)
        assert "6 runs with a value: at least 8 are needed to find changes. Capture 2 more" in texts(link)
        assert link.get("download_button")[0].label == "CSV of these 6 rows"
