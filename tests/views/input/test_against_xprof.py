"""Shares, spreads and words on the waiting for input, held against xprof's input pipeline analyzer."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.laws import mostly_thorough
from tests.profiles import ALL_RUNS, GPU_RUNS, TRANSFORMER_RUNS, WORKER_RUNS, XLA_RUNS, loaded_run, run_path
from tests.views.input.test_figures import wait_of
from tests.xprof_oracle import tool_data
from tfcompare import compare
from tfcompare.schema.input import ENQUEUING, IN_ADVANCE, ON_DEMAND, OTHER_INPUT, PREPROCESSING
from tfcompare.sources.logdir import find_run
from tfcompare.tables.step_times import on_slowest_host
from tfcompare.views.input import ops as input_ops

ON_CPU = [
    *("tf_cpu_base", "tf_cpu_zoo", "tf_cpu_sleepy", "filters_16_8", "filters_16_8_again", "filters_16_8_better_input"),
    "filters_512_128",
]
TF_ON_GPU = ["tf_gpu", "gpu_filters_16_8", "gpu_filters_512_128"]
ON_GPU = [*TF_ON_GPU, *GPU_RUNS]
CPU_CASES = mostly_thorough(ON_CPU, "tf_cpu_base", "filters_16_8")
GPU_CASES = mostly_thorough(ON_GPU, "gpu_filters_16_8", next(iter(TRANSFORMER_RUNS)))

_POTENTIALLY = 0.03  # the unexplained share from which xprof calls a program potentially input-bound
WORDS = {"HIGHLY": "highly", "MODERATELY": "moderately", "NOT": "not"}

BREAKDOWN = {
    ON_DEMAND: "demanded_file_read_us",
    IN_ADVANCE: "advanced_file_read_us",
    PREPROCESSING: "preprocessing_us",
    ENQUEUING: "enqueue_us",
    OTHER_INPUT: "unclassified_nonequeue_us",
}


def theirs(name: str) -> Any:
    return tool_data("input_pipeline_analyzer", *(file.path for file in find_run(run_path(name)).files))


def properties(name: str, table: int) -> dict[str, str]:
    properties: dict[str, str] = theirs(name)[table]["p"]
    return properties


@pytest.mark.parametrize("name", CPU_CASES)
def test_words_and_share_on_cpu(name):
    said = properties(name, 1)["input_conclusion"]
    found = re.match(r"Your program is (\w+) input-bound because (?:only )?([\d.]+)%", said)
    assert found, said
    wait = wait_of(name)
    if found[1] == "POTENTIALLY":  # little waiting, but some time that nothing explains: here that is no input
        assert wait.level == "not"
        assert 100 * wait.unexplained == pytest.approx(float(found[2]), abs=0.051)
        return
    assert wait.level == WORDS[found[1]]
    assert 100 * wait.share.average == pytest.approx(float(found[2]), abs=0.051)


@pytest.mark.parametrize("name", CPU_CASES)
def test_average_deviation_and_range_on_cpu(name):
    said, wait = properties(name, 1), wait_of(name)
    for figure, ours_us in (
        ("steptime_ms_average", wait.step_time_us.average),
        ("steptime_ms_standard_deviation", wait.step_time_us.deviation),
        ("steptime_ms_minimum", wait.step_time_us.smallest),
        ("steptime_ms_maximum", wait.step_time_us.largest),
        ("infeed_time_ms_avg", wait.input_time_us.average),
        ("infeed_time_ms_sdv", wait.input_time_us.deviation),
    ):
        assert ours_us / 1e3 == pytest.approx(float(said[figure]), abs=0.051), figure


@pytest.mark.parametrize("name", CPU_CASES)
def test_the_share_of_every_step_on_cpu(name):
    table = theirs(name)[1]
    ids = [column["id"] for column in table["cols"]]
    rows = [dict(zip(ids, (cell["v"] for cell in row["c"]), strict=True)) for row in table["rows"]]
    steps = on_slowest_host(loaded_run(name).table("steps"))
    counted = steps[steps["included"]]
    assert (counted["input_us"] / counted["duration_us"]).tolist() == pytest.approx(
        [row["infeedTimeMs"] / row["stepTimeMs"] for row in rows], abs=1e-3
    )


@pytest.mark.parametrize("name", GPU_CASES)
def test_on_gpu_xprof_sees_no_waiting_and_what_it_cannot_explain_is_explained_here(name):
    said = properties(name, 1)
    assert float(said["infeed_time_ms_avg"]) == 0.0
    found = re.search(r"is (POTENTIALLY|NOT) input-bound because (?:only )?([\d.]+)%", said["input_conclusion"])
    assert found, said["input_conclusion"]
    unexplained = float(found[2]) / 100 if found[1] == "POTENTIALLY" else _POTENTIALLY  # it tells no share below that
    wait = wait_of(name)
    # A step of xprof is what the device did for it, without what goes before: nor does it explain that.
    explained = (1 - unexplained) * float(said["steptime_ms_average"]) * 1e3 / wait.step_time_us.average
    assert (wait.share.average > 0) == (name not in TRANSFORMER_RUNS)
    assert wait.share.average + wait.unexplained < 1 - explained


WITHOUT_STEPS = sorted({*ALL_RUNS} - {*ON_CPU, *ON_GPU, *XLA_RUNS, *WORKER_RUNS})


@pytest.mark.parametrize("name", mostly_thorough(WITHOUT_STEPS, "jax_conv_08"))
def test_where_xprof_cannot_tell_neither_can_we(name):
    assert "cannot tell" in properties(name, 1)["input_conclusion"]
    assert not wait_of(name).is_known


@pytest.mark.parametrize("name", mostly_thorough([*ON_CPU, *TF_ON_GPU], "filters_16_8", "gpu_filters_16_8"))
def test_the_host_spends_its_time_in_the_same_categories(name):
    said = properties(name, 2)
    run = loaded_run(name)
    categories = input_ops.category_times(compare(run, run, per="run").table("input_pipeline"))
    times = dict(zip(categories["category"], categories["self_time_us_candidate"], strict=True))
    for category, key in BREAKDOWN.items():
        assert times.get(category, 0.0) == pytest.approx(float(said[key]), abs=2e-3), category
