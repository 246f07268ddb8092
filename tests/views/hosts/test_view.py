"""The hosts view: what it says of hosts and devices side by side."""

from __future__ import annotations

import pytest

from tests.profiles import loaded_run
from tests.views.flat import links, of_kind, only_pair, pair_of, shown, texts
from tfcompare import compare
from tfcompare.compare.pair import Pair
from tfcompare.views import answer
from tfcompare.views.blocks import Chart, Links, Section, Table, Text
from tfcompare.views.hosts.view import VIEW
from tfcompare.views.registry import charts

MAPS = ["hosts_baseline", "hosts_candidate", "hosts_change"]


@pytest.fixture(scope="module")
def workers() -> Pair:
    return pair_of("workers_balanced", "workers_slow_input")


def test_the_chosen_time_is_in_the_table_of_steps_and_the_host_that_changed_most_comes_first(workers: Pair) -> None:
    (facts,) = [one.facts for one in shown(VIEW, workers, Chart, metric="input_us") if one.name == MAPS[0]]
    assert facts is not None and facts.findings[0].id == "host:worker1:input_us"
    (table,), (without,) = shown(VIEW, workers, Table, metric="input_us"), shown(VIEW, workers, Table)
    assert "input_us_baseline" in table.names and "input_us_baseline" not in without.names


def test_the_table_of_steps_has_at_first_no_more_columns_than_a_page_has_room_for(workers: Pair) -> None:
    (table,) = shown(VIEW, workers, Table)
    kinds = dict.fromkeys(name.rpartition("_")[0] for name in table.names if name.endswith("_delta"))
    assert list(kinds) == ["busy_us", "busy_skew_us", "duration_us"]
    assert "collectives_us_delta" in table.every


def test_figures_by_name_are_those_of_the_view(workers: Pair) -> None:
    drawn = {chart.name: chart.draw() for chart in shown(VIEW, workers, Chart)}
    assert list(drawn) == ["host_parts", *MAPS]
    assert all(charts()[name](workers) == figure for name, figure in drawn.items())
    titles = [drawn[name].layout.title.text for name in MAPS]
    assert [title.split(": ")[0] for title in titles] == ["A", "B", "B − A"], "titles of narrow charts are cut"


def test_the_overview_says_once_who_is_slowest(workers: Pair) -> None:
    said = " ".join([answer.headline(workers), *(one.text for one in of_kind(answer.below(workers), Text))])
    assert said.count("7.27 ms") == said.count("of its input pipeline") == 1
    assert "The others wait for `worker1` in `CollectiveReduceV2`" in said


def test_links_lead_to_the_slowest_host_first(workers: Pair) -> None:
    found = links(VIEW, workers)
    assert [link.label for link in found[:4]] == ["Overview", "Op stats", "Input pipeline", "tf.data"]
    assert all(link.host == "worker1" for link in found[:4])
    step, beside = found[4:]
    assert step.view == beside.view == "timeline"
    assert step.label.startswith("Show step ")
    assert beside.label.startswith("Show worker1 beside worker")
    assert {link.host for link in links(VIEW, workers, one_host="worker0")[:4]} == {"worker0"}


def test_a_host_of_the_candidate_alone_has_no_links_to_pages() -> None:
    pair = pair_of("filters_16_8", "workers_slow_input")
    assert {link.view for link in links(VIEW, pair)} == {"timeline"}


def test_devices_of_one_host_are_compared() -> None:
    pair = pair_of("jax_tpu")
    assert texts(VIEW, pair)[0].startswith("No device stands out: the slowest, `TPU:3`, is the slowest in 52 of 98")
    assert not shown(VIEW, pair, Links)


def test_hosts_and_devices_can_be_chosen() -> None:
    pair = pair_of("tf_gpu")
    found = texts(VIEW, pair, by="device", metric="device_compute_us")
    assert found[0].startswith("No host usually takes longer than the others without collectives and waits")
    titles = [block.title for block in VIEW.blocks(pair, by="device") if isinstance(block, Section)]
    assert "Where each device's time goes" in titles


def test_runs_of_several_devices_without_steps_say_so() -> None:
    pair = pair_of("jax_elementwise")
    assert VIEW.why_not(pair) in (
        "The runs have one host and at most one device.",
        "`jax08_elementwise` has no steps on more than one host or device, so there is nothing to compare between "
        "hosts.",
    )


def test_a_candidate_with_one_host_leaves_the_verdict_on_the_baseline() -> None:
    found = texts(VIEW, pair_of("workers_slow_input", "filters_16_8"))
    assert found[0].startswith("B has fewer than two hosts with common steps. A: Slowest host: `worker1` in ")


def test_a_side_without_steps_has_no_heat_map() -> None:
    pair = pair_of("workers_slow_input", "jax_elementwise")
    assert "B (candidate) has no hosts with common steps." in texts(VIEW, pair)
    assert [chart.name for chart in shown(VIEW, pair, Chart)] == ["host_parts", "hosts_baseline"]
    assert all(chart.draw() is not None for chart in shown(VIEW, pair, Chart))


def test_a_chosen_host_is_said_to_restrict_the_table_only() -> None:
    runs = loaded_run("workers_balanced"), loaded_run("workers_slow_input")
    pair = only_pair(compare(*runs, host="worker1"))
    notes = "All hosts are compared here; only the table of steps is of `worker1` alone."
    assert any(text.endswith(notes) for text in texts(VIEW, pair))
    (table,) = shown(VIEW, pair, Table)
    assert table.title == "Every step of the chosen host"
    assert set(table.rows["host"]) == {"worker1"}
