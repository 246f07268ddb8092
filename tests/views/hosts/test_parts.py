"""The parts of one step in each host: which hosts have bars, and what is said of the slowest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.profiles import loaded_run
from tests.views.flat import only_pair, pair_of, shown, texts
from tests.views.hosts.test_figures import MS, worker
from tfcompare import compare, load
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pairs_of
from tfcompare.schema import STEP_PARTS
from tfcompare.views.blocks import Chart
from tfcompare.views.hosts import parts as host_parts
from tfcompare.views.hosts.view import VIEW


@pytest.fixture(scope="module")
def workers() -> Pair:
    return pair_of("workers_balanced", "workers_slow_input")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """20 hosts, of which the candidate's `host-11` is slow."""
    folder = tmp_path_factory.mktemp("many")
    for run, slow_ms in (("even", 0), ("uneven", 5)):
        (folder / run).mkdir()
        for i in range(20):
            data = worker(layer=6 + 0.01 * i + slow_ms * (i == 11))
            (folder / run / f"host-{i}.xplane.pb").write_bytes(data)
    return only_pair(compare(load(folder / "even"), load(folder / "uneven")))


def bars(pair: Pair, **options: Any) -> Any:
    (chart,) = [one for one in shown(VIEW, pair, Chart, **options) if one.name == "host_parts"]
    return chart.draw()


def labels(figure: Any) -> list[str]:
    return [one.text for one in figure.layout.annotations]


def test_the_steps_are_chosen_by_position_and_the_average_comes_first(workers: Pair) -> None:
    (at_step,) = [one for one in VIEW.options.__dataclass_fields__.values() if one.name == "at_step"]
    offered = at_step.metadata["option"].choices(workers, VIEW.options())
    included = [run.table("steps").query("included") for run in workers.runs]
    assert len(offered) > max(steps["step"].nunique() for steps in included) - 1
    assert next(iter(offered.items())) == (host_parts.AVERAGE, "average")


def test_the_bars_of_a_step_are_the_parts_in_the_table_of_hosts(workers: Pair) -> None:
    figure = bars(workers, at_step=7)
    run = workers.candidate
    steps = run.table("steps").query("host == 'worker1'").reset_index(drop=True)
    row = steps.iloc[6]
    total = sum(
        float(x)
        for trace in figure.data
        for text, x in zip(trace.customdata, trace.x, strict=True)
        if text.startswith("<b>worker1</b> (Candidate)")
    )
    assert total * MS == pytest.approx(float(row[list(STEP_PARTS)].sum()), rel=0.01)


def test_a_step_that_a_run_lacks_is_said(workers: Pair) -> None:
    assert any("there is no such step." in text for text in texts(VIEW, workers, at_step=25))


def test_hosts_stand_in_the_order_of_their_numbers_and_the_slowest_is_marked(workers: Pair) -> None:
    assert labels(bars(workers)) == ["worker0", "worker1: slowest in B", "worker2: slowest in A"]
    assert labels(bars(pair_of("workers_slow_input"))) == ["worker0", "worker1: slowest", "worker2"]


def test_the_second_candidate_is_called_by_its_own_letter() -> None:
    runs = [loaded_run(name) for name in ("workers_balanced", "filters_16_8", "workers_slow_input")]
    assert labels(bars(pairs_of(compare(*runs))[1])) == ["worker0", "worker1: slowest in C", "worker2: slowest in A"]


def test_of_many_hosts_the_slowest_and_the_middle_one_are_shown(many: Pair) -> None:
    found = labels(bars(many))
    assert found == [
        "host-11: slowest in B",
        "host-19: slowest in A",
        *(f"host-{i}" for i in (18, 17, 16, 15, 14, 13, 12, 10)),
        "host-9: median",
    ]
    assert "The 10 slowest of 20 hosts and the one in the middle, as in B." in texts(VIEW, many)


def test_all_of_many_hosts_are_shown_on_demand(many: Pair) -> None:
    figure = bars(many, every_host=True, at_step=3)
    names = [name for name, _ in figure.data[0].customdata]
    assert names == [f"host-{i}" for i in range(20)]
    assert not any(text.startswith("The 10 slowest") for text in texts(VIEW, many, every_host=True))
