"""The hosts view: what it says of hosts and devices side by side."""

from __future__ import annotations

from typing import Any

import pytest

from tests.profiles import compared_runs, loaded_run
from tests.views.flat import flat, shown, texts
from tfcompare import compare
from tfcompare.charts.pair import Pair, pairs_of
from tfcompare.views.blocks import Chart, Facts, Link, Links, Section, Table
from tfcompare.views.hosts.hosts import VIEW
from tfcompare.views.registry import charts

MAPS = ["hosts_baseline", "hosts_candidate", "hosts_change"]


def pair_of(*names: str) -> Pair:
    (pair,) = pairs_of(compared_runs(names[0], names[-1]) if names[1:] else compare(*[loaded_run(names[0])] * 2))
    return pair


@pytest.fixture(scope="module")
def workers() -> Pair:
    return pair_of("workers_balanced", "workers_slow_input")


def links(pair: Pair, **options: Any) -> list[Link]:
    (found,) = shown(VIEW, pair, Links, **options)
    return list(found.links)


def test_a_pair_begins_with_the_verdict(workers: Pair) -> None:
    first, *others = texts(VIEW, workers)
    assert first.startswith("Slowest host: `worker1` in ")
    assert "in the baseline no host stood out." in first
    assert "Hosts are paired by name." in others
    assert any(text.startswith("**B:** `worker1` in ") for text in others)
    (table,) = shown(VIEW, workers, Table)
    assert len(table.rows) > 20


def test_a_run_alone_has_no_baseline() -> None:
    alone = pair_of("workers_slow_input")
    found = texts(VIEW, alone)
    assert found[0].startswith("Slowest host: `worker1` in ")
    assert "baseline" not in " ".join(found)
    assert [chart.name for chart in shown(VIEW, alone, Chart)] == ["hosts_baseline", "host_parts"]


def test_the_chosen_time_is_drawn_and_in_the_table_of_means(workers: Pair) -> None:
    (section,) = [
        block.title for later in VIEW.blocks(workers, metric="input_us") if isinstance(later, Section)
        for block in later.blocks if isinstance(block, Section) and block.title.endswith("of each step")
    ]  # fmt: skip
    assert section == "Input of each step"
    maps = [chart for chart in shown(VIEW, workers, Chart, metric="input_us") if chart.name in MAPS]
    assert [chart.draw().layout.title.text for chart in maps] == [
        "Input of each step, A", "Input of each step, B", "Input of each step, B − A"
    ]  # fmt: skip
    facts = maps[0].facts
    assert facts is not None and facts.header == ["Input per step, by host", "A", "B", "Change"]
    assert facts.findings[0].id == "host:worker1:input_us"
    (table,) = shown(VIEW, workers, Table, metric="input_us")
    assert "input_us_baseline" in table.names and "input_us_baseline" not in shown(VIEW, workers, Table)[0].names


def test_figures_by_name_are_those_of_the_view(workers: Pair) -> None:
    drawn = {chart.name: chart.draw() for chart in shown(VIEW, workers, Chart)}
    assert list(drawn) == [*MAPS, "host_parts"]
    assert all(charts()[name](workers) == figure for name, figure in drawn.items())


def test_links_lead_to_the_slowest_host_first(workers: Pair) -> None:
    found = links(workers)
    assert [link.label for link in found[:4]] == ["Overview", "Op stats", "Input pipeline", "tf.data"]
    assert all(link.host == "worker1" for link in found[:4])
    step, beside = found[4:]
    assert step.view == beside.view == "timeline"
    assert step.label.startswith("Show step ")
    assert beside.label.startswith("Show worker1 beside worker")
    assert {link.host for link in links(workers, one_host="worker0")[:4]} == {"worker0"}


def test_a_host_of_the_candidate_alone_has_no_links_to_pages() -> None:
    pair = pair_of("filters_16_8", "workers_slow_input")
    assert {link.view for link in links(pair)} == {"timeline"}


def test_the_clocks_of_the_hosts_have_offsets(workers: Pair) -> None:
    tables = [block for block in shown(VIEW, workers, Facts) if block.header[0] == "Host"]
    assert [[row[0] for row in table.rows] for table in tables] == [["worker0", "worker1", "worker2"]] * 2


def test_devices_of_one_host_are_compared() -> None:
    pair = pair_of("jax_tpu")
    assert texts(VIEW, pair)[0].startswith("No device is usually busy longer than the others.")
    assert not shown(VIEW, pair, Links)


def test_hosts_and_devices_can_be_chosen() -> None:
    pair = pair_of("tf_gpu")
    found = texts(VIEW, pair, by="device", metric="device_compute_us")
    assert found[0].startswith("No host is usually busy longer than the others")
    titles = [block.title for block in VIEW.blocks(pair, by="device") if isinstance(block, Section)]
    assert "Where each device's time goes" in titles


def test_runs_with_one_host_say_why_there_is_nothing() -> None:
    assert VIEW.why_not(pair_of("filters_16_8")) == "The runs have one host and at most one device."


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
    assert [chart.name for chart in shown(VIEW, pair, Chart)] == ["hosts_baseline", "host_parts"]
    assert all(chart.draw() is not None for chart in shown(VIEW, pair, Chart))


def test_a_chosen_host_is_said_to_restrict_the_table_only() -> None:
    runs = loaded_run("workers_balanced"), loaded_run("workers_slow_input")
    (pair,) = pairs_of(compare(*runs, host="worker1"))
    notes = "All hosts are compared here; only the table of steps is of `worker1` alone."
    assert any(text.endswith(notes) for text in texts(VIEW, pair))
    (table,) = shown(VIEW, pair, Table)
    assert table.title == "Every step of the chosen host"
    assert set(table.rows["host"]) == {"worker1"}


def test_every_block_is_shown_for_identical_runs() -> None:
    pair = pair_of("workers_balanced", "workers_balanced")
    assert list(flat(VIEW.blocks(pair)))
