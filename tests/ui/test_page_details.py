"""What only some pages have: whole names of kernels, files of timelines, memories and pipelines that are chosen."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import CORPUS, ROOT, SIMULATED_RUNS, compared_runs, loaded_run
from tests.tf_data_runs import STEPS, plain, write, zipped
from tests.ui.pages import CPU, GPU, charts, opened, said, shown, table
from tfcompare import load, settings
from tfcompare.charts.verdicts import word_of
from tfcompare.compare.groups.kernel_groups import group_kernels
from tfcompare.export.csv import spreadsheet_csv
from tfcompare.settings import Settings
from tfcompare.tools.input.input_verdicts import on_waiting
from tfcompare.ui.pages.live import memory_events_csv
from tfcompare.units import format_ratio
from tfcompare.views.kernel_details import kernel_key

KERNEL_TIME = "total_duration_us_per_step"


def test_kernels_are_added_up_and_a_chosen_one_shows_its_whole_name_and_its_launches() -> None:
    diff = compared_runs(*GPU).table("kernel_stats")
    groups = group_kernels(diff, "kernel_name")
    name = next(name for name in groups["kernel_name"] if "scalar_cmp_op" in name)
    page = opened("3_Kernel_stats", *GPU, row=kernel_key(groups)[groups["kernel_name"] == name].iloc[0])
    frame = table(page)
    assert frame["kernel_name"].tolist() == groups["kernel_name"].tolist()
    times = [frame[f"{KERNEL_TIME}_{side}"].fillna(0) for side in ("baseline", "candidate")]
    change = (times[1] - times[0]).tolist()
    assert frame[f"{KERNEL_TIME}_delta"].tolist() == pytest.approx(change), "a missing side counts as 0 on the page"
    assert [code.value for code in page.code] == [name]
    (launches,) = (one for one in (table(page, n) for n in range(len(page.dataframe))) if "block_dim" in one)
    expected = diff[diff["kernel_name"] == name]
    assert len(launches) == len(expected)
    assert launches[f"{KERNEL_TIME}_candidate"].sum() == pytest.approx(expected[f"{KERNEL_TIME}_candidate"].sum())
    remarks = [text.value for text in page.markdown if all(f"`{name}`" in text.value for name in SIMULATED_RUNS)]
    assert sum("simulate.py" in remark for remark in remarks) == 1, "one remark on both"


@pytest.mark.parametrize("is_long", [False, True])
def test_the_file_of_a_timeline_of_memory_is_the_whole_table(is_long: bool) -> None:
    run = loaded_run("filters_16_8")
    data = memory_events_csv(run, None, is_long)
    assert (gzip.decompress(data) if is_long else data) == spreadsheet_csv(run.table("memory_timeline"))


@pytest.mark.skipif(not CORPUS.exists(), reason="the recorded profiles are not on this machine")
def test_memories_of_other_names_are_chosen_one_for_each_run() -> None:
    page = opened("4_Memory", "jax_elementwise", "jax_tpu", memory_candidate="2")
    assert page.selectbox(key="memory_baseline").value == "GPU_0_bfc"
    assert page.selectbox(key="memory_candidate").value == "2"
    assert "`B` in `2` uses **more** memory" in said(page)
    assert set(table(page)["op_name"]) == {"unused preallocated device memory", "stack", "(no op named)"}


def test_verdicts_have_what_they_rest_on_as_help_and_a_filter_may_leave_no_row() -> None:
    page, comparison = opened("5_Input_pipeline", *CPU), compared_runs(*CPU)
    lines = {line.value.replace("\\", ""): line.help.replace("\\", "") for line in page.markdown if line.help}
    candidate = comparison.candidates[0]
    call = comparison.slowest_call_verdict(candidate)
    assert call is not None
    verdicts = {"Input wait": on_waiting(comparison, candidate), "Mean tf.data call (Host:0)": call.verdict}
    for name, verdict in verdicts.items():
        badge = f":gray-badge[{word_of(verdict)} {format_ratio(verdict.ratio)}]"
        line = f"{name} {badge} 95 % CI {format_ratio(verdict.low)}–{format_ratio(verdict.high)}"
        assert lines[line] == f"{verdict.reason}."
    page.text_input(key="filter").set_value("no such op")
    assert "Clear it to see all" in said(shown(page))


def test_pipelines_are_chosen_by_name_and_the_longest_call_comes_first(tmp_path: Path) -> None:
    page = AppTest.from_file(str(ROOT / "pages" / "6_tf_data.py"), default_timeout=90)
    for role, name in (("baseline", "a"), ("candidate", "b")):
        write(tmp_path / name, [(zipped(i, 0)[0], plain(i)[0]) for i in range(STEPS)])
        page.query_params[role] = f"{tmp_path.name}/{name}/plugins/profile/2026_01_02_03_04_05"
    longest = load(tmp_path / "a").table("tf_data_pipelines").sort_values("max_latency_us")["pipeline"].tolist()
    page.query_params["pipeline"] = longest[0]
    with settings.override(Settings(places=(tmp_path,))):
        page.run()
        assert not page.exception
        assert page.selectbox(key="pipeline").options == longest[::-1]
        assert said(page).count(f"`{longest[0]}`: slowest of ") == 2
        page.number_input(key="rank").set_value(3).run()
    assert [title.partition(":")[0] for title in charts(page)] == ["Execution 3"] * 2
