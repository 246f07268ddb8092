"""The view of memory: its sentences, charts and rows, and the choice of memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.memory_runs import allocate, free, saved, step, work
from tests.profiles import compared_runs
from tests.xspace_builder import Event
from tfcompare import Comparison, compare, load
from tfcompare.charts.pair import Pair, pairs_of
from tfcompare.errors import Unknown
from tfcompare.views.blocks import Beside, Block, Cards, Chart, Facts, Section, Table, Text
from tfcompare.views.memory.memory import VIEW, Options
from tfcompare.views.memory.memory_choice import EACH
from tfcompare.views.memory.memory_peak import buffer_key
from tfcompare.views.options import declared, options_with

STEPS = [event for i in range(2) for event in (step(i, 100.0 * i, 90), work(100.0 * i + 1))]
HELD = [allocate(10, 300, 300, 0x1, tf_op="m/conv"), free(120, 0, 300, 0x1)]


@pytest.fixture(scope="module")
def sample() -> Pair:
    return pair_of(compared_runs("filters_512_128", "filters_16_8"))


def pair_of(comparison: Comparison) -> Pair:
    (found,) = pairs_of(comparison)
    return found


def of_two(folder: Path, ours: list[Event], theirs: list[Event]) -> Pair:
    """Two tiny runs, `before` and `after`."""
    return pair_of(compare(load(saved(folder / "before", *ours)), load(saved(folder / "after", *theirs))))


def flat(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield from flat(block.blocks) if isinstance(block, Section | Beside) else [block]


def shown(pair: Pair, **options: Any) -> list[Block]:
    return list(flat(VIEW.blocks(pair, **options)))


def told(pair: Pair, **options: Any) -> list[str]:
    return [block.text for block in shown(pair, **options) if isinstance(block, Text)]


def headline(pair: Pair, **options: Any) -> str:
    (found,) = [block.text for block in shown(pair, **options) if isinstance(block, Text) and block.look == "headline"]
    return found


def drawn(pair: Pair, **options: Any) -> dict[str, Any]:
    """The figures by their titles."""
    figures = [block.draw() for block in shown(pair, **options) if isinstance(block, Chart)]
    return {figure.layout.title.text: figure for figure in figures}


def table(pair: Pair, name: str, **options: Any) -> Table:
    (found,) = [block for block in shown(pair, **options) if isinstance(block, Table) and block.name == name]
    return found


def offered(pair: Pair, name: str, **values: Any) -> list[str]:
    """The labels of what can be chosen; empty if nothing can be."""
    (option,) = [one for one in declared(Options) if one.name == name]
    options = options_with(Options, pair, values)
    choices = option.offered(pair, options)
    return list(choices.values()) if isinstance(choices, dict) and option.is_open(pair, options) else []


@pytest.mark.parametrize(
    ("level", "title"),
    [
        ("in_use_bytes", "Memory in use"),
        ("stack_bytes", "Memory reserved for the stack"),
        ("free_bytes", "Memory free"),
        ("fragmentation", "Fragmentation"),
    ],
)
@pytest.mark.parametrize(("span", "ends"), [("step", "in one typical step"), ("run", "over time")])
def test_the_chosen_level_is_drawn_and_told(sample: Pair, level: str, title: str, span: str, ends: str) -> None:
    assert next(iter(drawn(sample, level=level, span=span))) == f"{title} {ends}"
    (facts,) = [one.facts for one in shown(sample, level=level, span=span) if isinstance(one, Chart) and one.facts]
    assert facts.header[0] == f"{title} {ends}"


def test_a_chart_over_time_answers_as_text(sample: Pair) -> None:
    def rows(**options: Any) -> list[list[str]]:
        (facts,) = [one.facts for one in shown(sample, **options) if isinstance(one, Chart) and one.facts]
        assert isinstance(facts, Facts)
        return [list(row) for row in facts.rows]

    assert rows()[0] == ["Typical peak", "167 MB", "68.8 MB"]
    assert rows(span="run") == [["Peak", "169 MB", "69.0 MB"]]
    assert rows(span="run", level="free_bytes")[0][0] == "Minimum"


@pytest.mark.parametrize(("align", "axis"), [("time", "Time since the first event (s)"), ("step", "Step, by position")])
def test_the_runs_are_above_each_other_as_chosen(sample: Pair, align: str, axis: str) -> None:
    assert drawn(sample, span="run", align=align)["Memory in use over time"].layout.xaxis.title.text == axis


@pytest.mark.parametrize(
    ("by", "axis"), [("time", "Time since the step's start (ms)"), ("share", "Share of the step (%)")]
)
def test_a_typical_step_has_the_chosen_axis(sample: Pair, by: str, axis: str) -> None:
    assert drawn(sample, axis=by)["Memory in use in one typical step"].layout.xaxis.title.text == axis


def test_the_treemap_by_region(sample: Pair) -> None:
    figure = drawn(sample, parts_by="region")["Live at the peak of each run, by region"]
    assert {"output", "temp"} <= set(figure.data[0].labels)


# Which memory


def test_memories_on_several_hosts_are_told_apart() -> None:
    pair = pair_of(compared_runs("tf_gpu", "tf_cpu_base"))
    assert "GPU_4_bfc on 34.83.195.180_6003" in offered(pair, "memory_baseline")


def test_a_different_memory_can_be_chosen_for_each_run_where_names_match() -> None:
    pair = pair_of(compared_runs("jax_conv_08", "jax_conv_legacy"))
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
    assert told(pair)[0].startswith(f"`{silent}` has no memory events")
    other, without = ("A", "B") if ours else ("B", "A")
    assert headline(pair) == f"Only `{other}` has this memory: 300 B at its peak. `{without}` has no events of it."
    assert "Memory in use in one typical step" in drawn(pair)


def test_without_steps_the_whole_run_is_shown_by_time_and_it_says_why(tmp_path: Path) -> None:
    pair = of_two(tmp_path, [work(0), *HELD], [*STEPS, *HELD])
    assert any("A typical step needs step markers, but none were found in `before`." in text for text in told(pair))
    assert offered(pair, "span") == offered(pair, "align") == []
    assert drawn(pair)["Memory in use over time"].layout.xaxis.title.text.startswith("Time")


def test_a_run_that_only_freed_says_that_nothing_more_is_known(tmp_path: Path) -> None:
    pair = of_two(tmp_path, [*STEPS, free(10, 200, 100)], [*STEPS, *HELD])
    assert any("`before` only freed memory while it was profiled" in text for text in told(pair))
    assert "unused preallocated device memory" in table(pair, "memory_peak").rows["op_name"].tolist()


def test_a_memory_that_held_nothing_says_so(tmp_path: Path) -> None:
    empty = [allocate(10, 0, 0), free(20, 0, 0)]
    pair = of_two(tmp_path, [*STEPS, *empty], [*STEPS, *empty, allocate(30, 0, 0)])
    assert any("`before` used nothing of this memory" in text for text in told(pair))
    assert "the **same**" in headline(pair)


def test_a_memory_without_fragmentation_is_shown_without_its_panel(tmp_path: Path) -> None:
    unknown = [allocate(10, 300, 300, fragmentation=None)]
    pair = of_two(tmp_path, [*STEPS, *unknown], [*STEPS, *unknown, work(60)])
    assert "yaxis2" not in drawn(pair, span="run")["Memory in use over time"].to_dict()["layout"]
    assert "No event reports fragmentation." in told(pair, span="run", level="fragmentation")


def test_two_copies_of_one_recording_are_the_same(tmp_path: Path) -> None:
    pair = of_two(tmp_path, [*STEPS, *HELD], [*STEPS, *HELD])
    assert "are the same capture" in headline(pair)
    (cards,) = [block for block in shown(pair) if isinstance(block, Cards)]
    assert all(figure.baseline == figure.candidate for figure in cards.figures)
    assert "Both runs have the same allocations at their peaks." in told(pair)


@pytest.mark.parametrize("name", ["tf_cpu_base", "tf_gpu", "jax_elementwise", "jax_tpu", "tf_cpu_sleepy"])
def test_every_kind_of_profile_is_shown(name: str) -> None:
    pair = pair_of(compared_runs(name, "jax_conv_08"))
    assert not table(pair, "memory_peak").rows.empty
    assert not table(pair, "memory_summary").rows.empty


def test_a_row_opens_the_op_that_allocated_it(tmp_path: Path) -> None:
    pair = of_two(tmp_path, HELD, [allocate(10, 200, 200, 0x1, tf_op="m/conv"), free(120, 0, 200, 0x1)])
    found = table(pair, "memory_peak")
    keys = buffer_key(pair.diff("memory_peak"))
    assert keys.is_unique and sorted(keys) == sorted(buffer_key(found.rows))
    assert found.opens is not None
    details = found.opens.details(keys.iloc[0])
    assert details is not None and details.title == "m/conv"
    assert [one.text for one in details.blocks if isinstance(one, Text)] == ["No time was recorded for this op."]
    assert found.opens.details("nothing") is None


def test_runs_without_memory_events_lead_to_what_xla_planned(sample) -> None:
    (links,) = VIEW.instead(pair_of(compared_runs("jax_filters_128_32", "jax_filters_16_8")))
    assert [link.view for link in links.links] == ["xla"]
    assert not list(VIEW.instead(sample))
