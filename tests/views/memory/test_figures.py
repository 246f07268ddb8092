"""Which memories of two runs stand beside each other, what is said of them, and what they hold at their peaks."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from tests.laws import mostly_thorough
from tests.memory_runs import allocate, free, loaded, step, work
from tests.profiles import EACH_KIND, loaded_run
from tfcompare import compare
from tfcompare.compare.matching.matching import pair_hosts
from tfcompare.compare.stats.verdict import verdict_on_size
from tfcompare.run import Run
from tfcompare.views.key_figures import KeyFigure
from tfcompare.views.memory.curve import Memory
from tfcompare.views.memory.figures import (
    BOTH,
    MemoryPair,
    by_peak,
    figures,
    headline,
    headline_alone,
    memory_pairs,
    peak_diff,
    peak_tree,
    tree_alone,
    with_labels,
)

A, B = Memory("vm", "a"), Memory("vm", "b")


def summary(text: str) -> pd.DataFrame:
    """A `memory_summary` from lines of `host memory_id peak_bytes`."""
    rows = [line.split() for line in text.strip().splitlines()]
    frame = pd.DataFrame(rows, columns=["host", "memory_id", "peak_bytes"])
    return frame.astype({"peak_bytes": "int64"})


def diff_of(ours: Run, theirs: Run, pair: MemoryPair) -> pd.DataFrame:
    whole = compare(ours, theirs).table("memory_peak")
    hosts = pair_hosts(ours.host_names, theirs.host_names)
    tables = ours.table("memory_peak"), theirs.table("memory_peak")
    return peak_diff(whole, pair, hosts, tables, identical=ours.content_id == theirs.content_id)


# Which stand beside each other


def test_memories_pair_by_name_on_hosts_that_pair_the_largest_peak_first() -> None:
    ours = summary("one gpu 10\none cpu 30\none old 99")
    theirs = summary("two cpu 5\ntwo gpu 70\ntwo new 1")
    assert memory_pairs(ours, theirs, {"two": "one"}) == [
        MemoryPair(Memory("one", "gpu"), Memory("two", "gpu")),
        MemoryPair(Memory("one", "cpu"), Memory("two", "cpu")),
        MemoryPair(Memory("one", "old"), None),
        MemoryPair(None, Memory("two", "new")),
    ]


def test_hosts_without_counterpart_share_no_memory() -> None:
    pairs = memory_pairs(summary("one gpu 10"), summary("one gpu 1\ntwo gpu 2"), {"one": "one"})
    assert pairs == [MemoryPair(Memory("one", "gpu"), Memory("one", "gpu")), MemoryPair(None, Memory("two", "gpu"))]


def test_the_memories_of_one_run_come_by_their_peaks() -> None:
    assert by_peak(summary("vm b 1\nvm a 2")) == [A, B]


def test_a_pair_knows_whether_its_sides_go_by_one_name() -> None:
    assert MemoryPair(A, Memory("other", "a")).has_one_name
    assert MemoryPair(None, A).has_one_name
    assert not MemoryPair(A, B).has_one_name
    assert MemoryPair(None, B).memory_id == "b"


# What is said of them


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Run, Run]:
    """Two steps each; the memory is `a` in the one and `b` in the other."""
    marked = [step(0, 0, 40), work(1), step(1, 50, 40), work(51)]
    ours = [
        allocate(10, 300, 300, 0x1, "a", tf_op="m/conv", region_type="output", shape="[300]"),
        allocate(20, 400, 100, 0x2, "a", tf_op="m/mul", region_type="temp"),
        free(60, 300, 100, 0x2, "a"),
    ]
    theirs = [
        allocate(10, 200, 200, 0x1, "b", tf_op="m/conv", region_type="output", shape="[300]"),
        free(60, 0, 200, 0x1, "b"),
    ]
    return loaded(tmp_path / "ours", *marked, *ours), loaded(tmp_path / "theirs", *marked, *theirs)


def test_figures_are_those_of_the_diff_each_side_from_its_own_memory(runs: tuple[Run, Run]) -> None:
    diff = compare(*runs).diffs("memory_summary")
    values = figures(diff, MemoryPair(A, B), {"vm": "vm"})
    assert values["allocations"] == (1.0, 0.5)
    assert values["peak_bytes"] == (400, 200)
    assert values["peak_time_us"] == (20, 10)
    assert values["capacity_bytes"] == (1000, 1000)
    alone = figures(diff, MemoryPair(A, None), {"vm": "vm"})
    assert alone["peak_bytes"][0] == 400
    assert all(math.isnan(theirs) for _, theirs in alone.values())


def test_figures_find_a_candidate_on_a_host_of_another_name(tmp_path: Path) -> None:
    ours = loaded(tmp_path / "ours", allocate(1, 100, 100))
    theirs = loaded(tmp_path / "theirs", allocate(1, 50, 50), hosts=("elsewhere",))
    diff = compare(ours, theirs, per="run").diffs("memory_summary")
    pair = MemoryPair(Memory("vm", "gpu"), Memory("elsewhere", "gpu"))
    assert figures(diff, pair, {"elsewhere": "vm"})["peak_bytes"] == (100, 50)


@pytest.mark.parametrize(
    ("peaks", "word"),
    [
        *(((2, 1), "less"), ((1, 2), "more"), ((2, 2), "same"), ((0, 0), "same"), ((0, 1), "more"), ((1, 0), "less")),
        *(((1000, 1009), "same"), ((1000, 991), "same"), ((1000, 1011), "more"), ((1000, 989), "less")),
    ],
)
def test_sizes_that_differ_by_less_than_a_hundredth_are_the_same(peaks: tuple[float, float], word: str) -> None:
    assert verdict_on_size(*peaks) == word
    figure = KeyFigure("Peak", "bytes", *peaks, "lower", "")
    assert figure.judgement == {"less": "better", "more": "worse", "same": "same"}[word]
    assert f"**{word}**" in headline(MemoryPair(A, A), peaks, ("`x`", "`y`"), identical=False)


def test_the_sentence_gives_both_peaks_and_the_change() -> None:
    sentence = headline(MemoryPair(A, A), (200e6, 150e6), ("`x`", "`y`"), identical=False)
    assert sentence == "`y` uses 25.0 % **less** memory at its peak than `x`: 150 MB vs 200 MB."
    for before, end in ((2, "**more** memory at its peak than `x`: 5 B vs 2 B (2.50×)."), (0, "`x`: 5 B vs 0 B.")):
        assert headline(MemoryPair(A, A), (before, 5), ("`x`", "`y`"), identical=False).endswith(end)
    assert headline_alone(200e6, "`x`") == "`x` uses 200 MB at its peak."


def test_the_sentence_on_one_recording_says_so() -> None:
    sentence = headline(MemoryPair(A, A), (5, 5), ("`x`", "`y`"), identical=True)
    assert "are the same capture" in sentence
    assert "**same**" in sentence


def test_a_memory_of_one_run_is_no_change() -> None:
    for pair, holder in ((MemoryPair(A, None), "`x`"), (MemoryPair(None, A), "`y`")):
        peaks = (7.0, math.nan) if pair.baseline else (math.nan, 7.0)
        sentence = headline(pair, peaks, ("`x`", "`y`"), identical=False)
        assert sentence.startswith(f"Only {holder} has this memory: 7 B at its peak.")


# What they hold


def test_two_memories_of_other_names_are_compared_row_by_row(runs: tuple[Run, Run]) -> None:
    rows = diff_of(*runs, MemoryPair(A, B)).set_index("op_name")
    assert rows["memory_id"].tolist() == ["a", "a"]
    assert rows["status"].to_dict() == {"m/conv": "matched", "m/mul": "removed"}
    assert rows.loc["m/conv", "allocation_bytes_delta"] == -100
    assert pd.isna(rows.loc["m/mul", "allocation_bytes_candidate"])
    assert rows.loc["m/conv", "verdict"] == "less"


def test_a_memory_that_stands_alone_is_all_removed_or_all_added(runs: tuple[Run, Run]) -> None:
    assert set(diff_of(*runs, MemoryPair(A, None))["status"]) == {"removed"}
    assert set(diff_of(*runs, MemoryPair(None, B))["status"]) == {"added"}


def test_names_for_charts_tell_op_and_shape_or_that_none_is_known(runs: tuple[Run, Run]) -> None:
    rows = with_labels(diff_of(*runs, MemoryPair(A, B)))
    assert set(rows["what"]) == {"m/conv [300]", "m/mul"}
    assert rows.set_index("what")["detail"]["m/conv [300]"] == "output · 1 allocation"
    unnamed = rows.assign(op_name="", shape=["unknown", ""])
    assert set(with_labels(unnamed)["what"]) == {"(no op named)"}


def test_the_tree_by_hand(runs: tuple[Run, Run]) -> None:
    tree = peak_tree(diff_of(*runs, MemoryPair(A, B)), "region")
    shown = tree[["node", "parent", "label", "bytes", "baseline_bytes", "candidate_bytes"]]
    assert shown.to_csv(index=False, float_format="%g", lineterminator="\n").strip() == (
        "node,parent,label,bytes,baseline_bytes,candidate_bytes\n"
        "both runs,,both runs,600,400,200\n"
        "baseline,both runs,baseline,400,400,200\n"
        "baseline:output,baseline,output,300,300,200\n"
        "baseline:temp,baseline,temp,100,100,0\n"
        "baseline/0,baseline:output,conv,300,300,200\n"
        "baseline/1,baseline:temp,mul,100,100,0\n"
        "candidate,both runs,candidate,200,400,200\n"
        "candidate:output,candidate,output,200,300,200\n"
        "candidate/0,candidate:output,conv,200,300,200"
    )


def test_the_tree_of_a_run_alone_has_its_side_as_the_root(runs: tuple[Run, Run]) -> None:
    run = runs[0]
    tree = tree_alone(peak_tree(diff_of(run, run, MemoryPair(A, A)), "region")).set_index("node")
    assert tree["parent"].to_dict() == {
        "baseline": "",
        "baseline:output": "baseline",
        "baseline:temp": "baseline",
        "baseline/0": "baseline:output",
        "baseline/1": "baseline:temp",
    }
    assert tree.loc["baseline", "bytes"] == 400


def test_small_parts_are_drawn_as_one(tmp_path: Path) -> None:
    small = [allocate(10 + i, 900 + i, 1, 0x10 + i, tf_op=f"m/op_{i}", region_type="temp") for i in range(3)]
    large = allocate(1, 900, 900, 0x1, tf_op="m/large", region_type="temp")
    run = loaded(tmp_path, large, *small)
    tree = peak_tree(diff_of(run, run, MemoryPair(Memory("vm", "gpu"), None)), "scope")
    assert [label for label in tree["label"] if "smaller" in label] == ["3 smaller", "3 smaller"]


# On real profiles


@pytest.fixture(scope="module", params=mostly_thorough(EACH_KIND, "filters_16_8", "gpu_filters_16_8"))
def run(request: pytest.FixtureRequest) -> Run:
    return loaded_run(request.param)


@pytest.mark.parametrize("by", ["scope", "region"])
def test_parts_of_the_tree_add_up_to_the_peak_of_each_side(run: Run, by: str) -> None:
    peaks = run.table("memory_summary").set_index(["host", "memory_id"])["peak_bytes"]
    for memory in by_peak(run.table("memory_summary")):
        tree = peak_tree(diff_of(run, run, MemoryPair(memory, memory)), by)  # type: ignore[arg-type]
        peak = peaks[memory.host, memory.memory_id]
        sizes = tree.set_index("node")["bytes"]
        assert sizes[BOTH] == 2 * peak
        assert tree["node"].is_unique
        sums = tree[tree["parent"] != ""].groupby("parent")["bytes"].sum()
        assert sums.to_dict() == sizes[sums.index].to_dict()


def test_swapped_sides_mirror_each_other() -> None:
    ours, theirs = loaded_run("filters_512_128"), loaded_run("filters_16_8")
    (memory,) = by_peak(ours.table("memory_summary"))
    pair = MemoryPair(memory, memory)
    there, back = diff_of(ours, theirs, pair), diff_of(theirs, ours, pair)
    assert there["allocation_bytes_delta"].sum() == -back["allocation_bytes_delta"].sum()
    trees = [
        peak_tree(diff, "region").groupby("label")[["baseline_bytes", "candidate_bytes"]].max()
        for diff in (there, back)
    ]
    regions = ["output", "temp"]
    assert trees[0].loc[regions, "baseline_bytes"].tolist() == trees[1].loc[regions, "candidate_bytes"].tolist()
