"""The kernel stats page, run by Streamlit without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import CORPUS, ROOT, SAMPLES, SIMULATED_RUNS, loaded_run, run_path
from tfcompare import compare, settings
from tfcompare.compare.groups.kernel_groups import group_kernels
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.views.kernel_details import kernel_key

IDS = {run.path.parents[2].name: run.id for run in find_runs(SAMPLES)}
SIMULATED = ("filters_512_128_simulated", "filters_16_8_simulated")
TIME = "total_duration_us_per_step"


@pytest.fixture
def page() -> Iterator[AppTest]:
    with settings.override(Settings()):
        made = AppTest.from_file(str(ROOT / "pages" / "3_Kernel_stats.py"), default_timeout=90)
        choose(made, *SIMULATED)
        yield made


@pytest.fixture(scope="module")
def diff() -> pd.DataFrame:
    return compare(*(loaded_run(name) for name in SIMULATED)).table("kernel_stats")


def choose(page: AppTest, baseline: str, candidate: str) -> None:
    for role, name in (("baseline", baseline), ("candidate", candidate)):
        page.query_params[role] = IDS[name]


def shown(page: AppTest) -> AppTest:
    page.run()
    assert not page.exception
    return page


def of_corpus(page: AppTest, baseline: str, candidate: str) -> AppTest:
    for role, name in (("baseline", baseline), ("candidate", candidate)):
        page.query_params[role] = f"corpus/{run_path(name).relative_to(CORPUS)}"
    with settings.override(Settings(places=(CORPUS,))):
        return shown(page)


def table(page: AppTest, position: int = 0) -> pd.DataFrame:
    """A table as it is sent to the browser, by the frame's column names."""
    frame = page.dataframe[position].value
    frame.columns = [column[-1] for column in frame.columns]
    return frame


def cards(page: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in page.metric}


def texts(page: AppTest) -> str:
    return "\n".join(element.value for element in [*page.markdown, *page.info, *page.caption, *page.warning])


def test_the_top_says_what_became_of_the_kernels_and_that_they_were_simulated(page):
    shown(page)
    assert "Kernel time per step fell from 8.10 ms to 1.08 ms" in texts(page)
    assert cards(page)["Kernel time per step"] == "1.08 ms"
    assert cards(page)["Launches per step"] == "282"
    remarks = [text.value for text in page.markdown if all(f"`{name}`" in text.value for name in SIMULATED_RUNS)]
    assert sum("simulate.py" in remark for remark in remarks) == 1, "one remark on both"


def test_the_table_adds_kernels_up_and_keeps_their_whole_names(page, diff):
    frame = table(shown(page))
    expected = group_kernels(diff, "kernel_name")
    assert frame["kernel_name"].tolist() == expected["kernel_name"].tolist()
    for column in (f"{TIME}_{part}" for part in ("baseline", "candidate")):
        assert frame[column].tolist() == pytest.approx(expected[column].tolist(), nan_ok=True)
    change = frame[f"{TIME}_candidate"].fillna(0) - frame[f"{TIME}_baseline"].fillna(0)
    assert frame[f"{TIME}_delta"].tolist() == pytest.approx(change.tolist()), "a missing side counts as 0 on the page"
    assert frame[f"{TIME}_baseline"].sum() == pytest.approx(diff[f"{TIME}_baseline"].sum())


def test_a_chosen_row_shows_its_whole_name_and_its_launches(page, diff):
    groups = group_kernels(diff, "kernel_name")
    name = next(name for name in groups["kernel_name"] if "scalar_cmp_op" in name)
    page.query_params["row"] = kernel_key(groups)[groups["kernel_name"] == name].iloc[0]
    shown(page)
    assert [code.value for code in page.code] == [name]
    launches = next(frame for frame in map(partial(table, page), range(len(page.dataframe))) if "block_dim" in frame)
    expected = diff[diff["kernel_name"] == name]
    assert len(launches) == len(expected)
    assert launches[f"{TIME}_candidate"].sum() == pytest.approx(expected[f"{TIME}_candidate"].sum())


def test_a_run_alone_has_no_baseline_and_no_changes(page):
    del page.query_params["candidate"]
    shown(page)
    assert "Kernels take 8.10 ms per step, in 282 launches." in texts(page)
    assert "Time with a counterpart" not in cards(page)
    assert not {"verdict", f"{TIME}_candidate"} & set(table(page))
    assert not any("largest changes" in chart.proto.spec for chart in page.get("plotly_chart"))
    assert not {"baseline", "candidate", "both"} & set(texts(page).lower().split())


def test_copies_can_be_shown_device_by_device(page):
    of_corpus(page, "tf_gpu", "jax_conv_legacy")
    assert len(table(page, -1)) == 3
    page.toggle(key="by_device").set_value(True)
    with settings.override(Settings(places=(CORPUS,))):
        shown(page)
    frame = table(page, -1)
    assert len(frame) == 11
    assert {"host", "device"} <= set(frame)


def test_two_runs_without_a_gpu_are_told_how_to_record_kernels(page):
    choose(page, "filters_512_128", "filters_16_8")
    shown(page)
    assert "No kernels." in texts(page)
    assert "NVreg_RestrictProfilingToAdminUsers=0" in texts(page)
    assert not page.dataframe


def test_tpu_runs_are_sent_to_op_stats(page):
    of_corpus(page, "jax_tpu", "tf_cpu_base")
    assert "whose programs have no kernels" in texts(page)
    assert "Show the ops instead" in texts(page)
