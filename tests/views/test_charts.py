"""Every chart of a comparison by its name: which runs have which, and what is wrong with a name that has none."""

from __future__ import annotations

import plotly.graph_objects as go
import pytest

from tests.profiles import compared_runs, loaded_run
from tests.views.flat import KNOWN_TRUTH
from tfcompare import Comparison, compare, load
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.views.registry import charts

STEPS = {"step_times", "step_distribution", "step_parts_baseline", "input_wait"}
PAIR = {*STEPS, "waterfall", "step_parts_candidate", "op_changes", "op_shares"}
INPUT = {"input_host", "tf_data_baseline", "tf_data_candidate"}
GPU = (
    PAIR
    | INPUT
    | {
        *("memory_step", "memory_run", "memory_peak", "memory_peak_changes", "scopes_host", "scopes_device"),
        *("kernel_changes", "tensor_cores"),
    }
)
WORKERS = (
    PAIR
    | INPUT
    | {
        *("scopes_host", "hosts_baseline", "hosts_candidate", "hosts_change", "host_parts", "input_by_core"),
    }
)
"""What the sample runs recorded (sample_logs/README.md), as charts."""


def test_runs_have_the_charts_that_they_have_data_for() -> None:
    comparison = compared_runs("filters_512_128_simulated", "filters_16_8_simulated")
    assert set(comparison.figure_names()) == GPU
    assert isinstance(comparison.figure("tensor_cores"), go.Figure)


def test_a_chart_without_data_is_refused_and_the_others_are_listed() -> None:
    with pytest.raises(TfcompareError) as caught:
        compared_runs("workers_balanced", "workers_slow_input").figure("roofline")
    listed = str(caught.value).removeprefix("these runs have nothing for the chart 'roofline'; they have: ").split(", ")
    assert set(listed) == WORKERS


@pytest.fixture(scope="module")
def several() -> Comparison:
    return compare(loaded_run("filters_512_128"), *map(loaded_run, ("filters_16_8", "filters_16_8_simulated")))


def test_a_candidate_is_chosen_by_its_id(several: Comparison) -> None:
    first, second = (run.id for run in several.candidates)
    assert several.figure("memory_step") == several.figure("memory_step", first)
    assert several.figure("memory_step") != several.figure("memory_step", second)


def test_unknown_names_and_candidates_are_refused(several: Comparison) -> None:
    with pytest.raises(Unknown, match="unknown chart 'pie'; must be one of: 'waterfall', "):
        several.figure("pie")
    for ask in (several.figure_names, lambda run: several.figure("waterfall", run)):
        with pytest.raises(Unknown, match="unknown candidate 'nobody'; must be one of: 'filters_16_8/"):
            ask("nobody")


def test_the_documentation_names_every_chart() -> None:
    assert [name for name in charts() if f"`{name}`" not in str(Comparison.__doc__)] == []


def test_a_single_step_is_a_figure_and_no_chart() -> None:
    workers = compare(*(load(KNOWN_TRUTH / name, steps="5:5") for name in ("workers_even", "workers_uneven")))
    names = set(workers.figure_names())
    assert not names & {*STEPS, "step_parts_candidate"}
    assert names & {"hosts_baseline", "hosts_candidate", "hosts_change", "host_parts"} == {"host_parts"}
    assert "Time without collectives and waits per step, by host" in str(workers.view("hosts"))
