"""The view of memory: its sentences, charts and rows, and the choice of memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.memory_runs import allocate, free, saved, step, work
from tests.views.flat import drawn, of_kind, only_pair, opened, pair_of, shown, texts, words
from tests.xspace_builder import Event
from tfcompare import compare, load
from tfcompare.compare.pair import Pair
from tfcompare.errors import Unknown
from tfcompare.views.blocks import Table, Text
from tfcompare.views.memory.choice import EACH
from tfcompare.views.memory.peak import buffer_key
from tfcompare.views.memory.view import VIEW, Options
from tfcompare.views.options import declared, options_with

STEPS = [event for i in range(2) for event in (step(i, 100.0 * i, 90), work(100.0 * i + 1))]
HELD = [allocate(10, 300, 300, 0x1, tf_op="m/conv"), free(120, 0, 300, 0x1)]


@pytest.fixture(scope="module")
def sample() -> Pair:
    return pair_of("filters_512_128", "filters_16_8")


def of_two(folder: Path, ours: list[Event], theirs: list[Event]) -> Pair:
    """Two tiny runs, `before` and `after`."""
    return only_pair(compare(load(saved(folder / "before", *ours)), load(saved(folder / "after", *theirs))))


def headline(pair: Pair, **options: Any) -> str:
    (found,) = [block.text for block in shown(VIEW, pair, Text, **options) if block.look == "headline"]
    return found


def table(pair: Pair, name: str, **options: Any) -> Table:
    (found,) = [block for block in shown(VIEW, pair, Table, **options) if block.name == name]
    return found


def offered(pair: Pair, name: str, **values: Any) -> list[str]:
    """The labels of what can be chosen; empty if nothing can be."""
    (option,) = [one for one in declared(Options) if one.name == name]
    options = options_with(Options, pair, values)
    choices = option.offered(pair, options)
    return list(choices.values()) if isinstance(choices, dict) and option.is_open(pair, options) else []


# Which memory


def test_memories_on_several_hosts_are_told_apart() -> None:
    pair = pair_of("tf_gpu", "tf_cpu_base")
    assert "GPU_4_bfc on 34.83.195.180_6003" in offered(pair, "memory_baseline")


def test_a_different_memory_can_be_chosen_for_each_run_where_names_match() -> None:
    pair = pair_of("jax_conv_08", "jax_conv_legacy")
    assert offered(pair, "memory")[-1] == "a different one for each run …"
    assert offered(pair, "memory_candidate") == []
    assert "GPU_5_bfc" in offered(pair, "memory_candidate", memory=EACH)
    assert "in `GPU_5_bfc` uses" in headline(pair, memory=EACH, memory_candidate="GPU_5_bfc")
    with pytest.raises(Unknown, match="unknown memory 'GPU_9_bfc'"):
        headline(pair, memory="GPU_9_bfc")


def test_a_single_memory_is_no_choice(sample: Pair) -> None:
    assert offered(sample, "memory") == []


# What is missing


@pytest.mark.parametrize(("ours", "theirs"), [(HELD, []), ([], HELD)])
def test_a_run_that_has_memory_events_stands_alone(tmp_path: Path, ours: list[Event], theirs: list[Event]) -> None:
    pair = of_two(tmp_path, [*STEPS, *ours], [*STEPS, *theirs])
    silent = "after" if ours else "before"
    assert texts(VIEW, pair)[0].startswith(f"`{silent}` has no memory events")
    other, without = ("A", "B") if ours else ("B", "A")
    assert headline(pair) == f"Only `{other}` has this memory: 300 B at its peak. `{without}` has no events of it."
    assert "Memory in use in one typical step" in drawn(VIEW, pair)


def test_without_steps_the_whole_run_is_shown_by_time_and_it_says_why(tmp_path: Path) -> None:
    pair = of_two(tmp_path, [work(0), *HELD], [*STEPS, *HELD])
    assert any(
        "A typical step needs step markers, but none were found in `before`." in text for text in texts(VIEW, pair)
    )
    assert offered(pair, "span") == offered(pair, "align") == []
    assert drawn(VIEW, pair)["Memory in use over time"].layout.xaxis.title.text.startswith("Time")


def test_a_run_that_only_freed_says_that_nothing_more_is_known(tmp_path: Path) -> None:
    pair = of_two(tmp_path, [*STEPS, free(10, 200, 100)], [*STEPS, *HELD])
    assert any("`before` only freed memory while it was profiled" in text for text in texts(VIEW, pair))
    assert "unused preallocated device memory" in table(pair, "memory_peak").rows["op_name"].tolist()


def test_a_memory_that_held_nothing_says_so(tmp_path: Path) -> None:
    empty = [allocate(10, 0, 0), free(20, 0, 0)]
    pair = of_two(tmp_path, [*STEPS, *empty], [*STEPS, *empty, allocate(30, 0, 0)])
    assert any("`before` used nothing of this memory" in text for text in texts(VIEW, pair))
    assert "the **same**" in headline(pair)


def test_a_memory_without_fragmentation_is_shown_without_its_panel(tmp_path: Path) -> None:
    unknown = [allocate(10, 300, 300, fragmentation=None)]
    pair = of_two(tmp_path, [*STEPS, *unknown], [*STEPS, *unknown, work(60)])
    assert "yaxis2" not in drawn(VIEW, pair, span="run")["Memory in use over time"].to_dict()["layout"]
    assert "No event reports fragmentation." in texts(VIEW, pair, span="run", level="fragmentation")


def test_a_row_opens_the_op_that_allocated_it(tmp_path: Path) -> None:
    pair = of_two(tmp_path, HELD, [allocate(10, 200, 200, 0x1, tf_op="m/conv"), free(120, 0, 200, 0x1)])
    found = table(pair, "memory_peak")
    keys = buffer_key(pair.diff("memory_peak"))
    assert keys.is_unique and sorted(keys) == sorted(buffer_key(found.rows))
    details = opened(found, keys.iloc[0])
    assert details is not None and details.title == "m/conv"
    assert words(details.blocks) == ["No time was recorded for this op."]
    assert opened(found, "nothing") is None


def test_allocations_below_a_thousandth_of_the_peak_are_one_row_that_opens_them(tmp_path: Path) -> None:
    def events(size: int) -> list[Event]:
        small = [
            allocate(20 + at, size + 10 * at, 10, at, tf_op=f"m/bias_{at}", bytes_available=0) for at in range(1, 4)
        ]
        return [allocate(10, size, size, 0x100, tf_op="m/conv", bytes_available=0), *small]

    pair = of_two(tmp_path, events(100_000), events(200_000))
    found, diff = table(pair, "memory_peak"), pair.diff("memory_peak")
    assert found.rows["op_name"].tolist() == ["m/conv", "3 smaller"]
    for column in ("allocation_bytes_baseline", "allocation_bytes_candidate", "occurrences_candidate"):
        assert found.rows[column].sum() == diff[column].sum()
    assert found.everything is None, "the file has the rows of the diff"
    details = opened(found, buffer_key(found.rows).iloc[-1])
    assert details is not None and details.title == "3 smaller"
    (small,) = of_kind(details.blocks, Table)
    assert sorted(small.rows["op_name"]) == ["m/bias_1", "m/bias_2", "m/bias_3"]


def test_ops_at_the_peaks_are_named_by_what_tells_them_apart(sample: Pair) -> None:
    (said,) = [text for text in texts(VIEW, sample) if text.startswith("The peaks are at different moments")]
    assert "`…decoder_outer_1" in said and "`…encoder_inner_1" in said


def test_a_single_small_allocation_keeps_its_row(tmp_path: Path) -> None:
    events = [allocate(10, 10_000, 10_000, 0x1, tf_op="m/conv", bytes_available=0)]
    events += [allocate(20, 10_001, 1, 0x2, tf_op="m/bias", bytes_available=0)]
    pair = of_two(tmp_path, events, [*events, work(60)])
    assert sorted(table(pair, "memory_peak").rows["op_name"]) == ["m/bias", "m/conv"]


def test_runs_without_memory_events_lead_to_what_xla_planned(sample) -> None:
    (links,) = VIEW.instead(pair_of("jax_filters_128_32", "jax_filters_16_8"))
    assert links.text.startswith("XLA's buffers of `jit_train_step`")
    assert [(link.view, link.parameters) for link in links.links] == [
        ("xla", {"program": "jit_train_step", "more": "true"})
    ]
    assert headline(pair_of("jax_tpu")) == "`tpu_inference_2` uses 21.5 GB at its peak."
    assert not list(VIEW.instead(sample))


def test_the_table_has_the_numbers_of_the_diff(sample: Pair) -> None:
    diff = sample.diff("memory_peak")
    peak = table(sample, "memory_peak")
    large = peak.rows.iloc[:-1]
    assert 10 < len(large) < len(diff)
    for column in ("allocation_bytes_baseline", "occurrences_candidate"):
        assert set(large[column].dropna()) <= set(diff[column].dropna())
        assert peak.rows[column].sum() == diff[column].sum()
    assert {"status", "match", "verdict", "requested_bytes_delta", "shape_candidate", "host"} <= set(peak.every)
    summary = table(sample, "memory_summary")
    assert {"peak_time_us_baseline", "stack_bytes_candidate", "fragmentation_delta"} <= set(summary.every)
    assert "peak_bytes_candidate" not in summary.names, "the cards show it"
