"""Diffs of tf.data: iterators pair by place, pipelines by name or by graph; the change as a sentence and as a graph."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.profiles import compared_runs, loaded_run
from tests.tf_data_runs import STEPS, execution, plain, prefetched, write, zipped
from tfcompare import compare, load, schema
from tfcompare.compare.pairs import pairs_of
from tfcompare.compare.tf_data.pipelines import pair_pipelines
from tfcompare.compare.tf_data.tf_data_bottleneck import Analysis, analyse
from tfcompare.compare.tf_data.tf_data_graph import changed_settings, graphs
from tfcompare.comparison import Comparison
from tfcompare.render.inline import plain as plain_text
from tfcompare.run import Run
from tfcompare.views.advice.input_advice import tf_data_advice
from tfcompare.views.blocks import Table
from tfcompare.views.input.figures import wait_of
from tfcompare.views.schema_tables import diff_table
from tfcompare.views.tf_data.view import change


def analysis(run: Run) -> Analysis | None:
    return analyse(run.table("tf_data_pipelines"), run.table("tf_data"))


def sentence(ours: Run, theirs: Run) -> str:
    are_bound = wait_of(ours).is_bound, wait_of(theirs).is_bound
    sides, is_same = (analysis(ours), analysis(theirs)), ours.content_id == theirs.content_id
    return plain_text(change(sides, are_bound, ("A", "B"), identical=is_same))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("runs")
    steps = {
        "plain": [plain(i) for i in range(STEPS)],
        "faster": [plain(i, 1000) for i in range(STEPS)],
        "quick": [plain(i, -270) for i in range(STEPS)],
        "reading": [plain(i, read_us=3900) for i in range(STEPS)],
        "prefetched": [prefetched(i) for i in range(STEPS)],
        "zip_first": [zipped(i, 0) for i in range(STEPS)],
        "zip_second": [zipped(i, 1) for i in range(STEPS)],
        "none": [],
    }
    return {name: load(write(folder / name, made)) for name, made in steps.items()}


def iterators(comparison: Comparison) -> pd.DataFrame:
    return comparison.table("tf_data")


def test_one_prefetch_more_is_exactly_one_added_row(runs: dict[str, Run]) -> None:
    comparison = compare(runs["plain"], runs["prefetched"])
    there = iterators(comparison)
    assert there["status"].value_counts().to_dict() == {"matched": 4, "added": 1}
    added = there[there["status"] == "added"]
    assert added["iterator_candidate"].tolist() == ["Prefetch"]
    assert added["self_time_us_baseline"].isna().all()
    matched = there[there["status"] == "matched"].set_index("iterator_baseline")
    below = dict.fromkeys(("BatchV2", "Map", "TFRecord"), "structural")
    assert matched["match"].to_dict() == {"Root": "exact"} | below
    assert matched["iterator_id"].astype("uint64").min() >= 1 << 63
    back = iterators(compare(runs["prefetched"], runs["plain"]))
    assert back["status"].value_counts().to_dict() == {"matched": 4, "removed": 1}
    *_, table = diff_table(pairs_of(comparison)[0], "tf_data", idle=False, per_occurrence=False)
    assert isinstance(table, Table)
    chain = ["Iterator", "Root", "BatchV2", "Map", "TFRecord"]
    expected = ["::".join(chain[:length]) for length in (2, 3, 4, 5)]
    assert sorted(table.rows["long_name"]) == [*expected, "Iterator::Root::Prefetch"], (
        "the command line names each iterator"
    )


def test_the_reader_of_all_elements_pairs_and_the_one_asked_for_its_end_does_not() -> None:
    there = iterators(compared_runs("filters_512_128", "filters_16_8"))
    readers = there[there["iterator_baseline"] == "TFRecord"].set_index("status")
    paired, left_over = readers.loc["matched"], readers.loc["removed"]
    assert (paired["calls_baseline"], paired["calls_candidate"], paired["match"]) == (16, 16, "exact")
    assert left_over["calls_baseline"] == 1
    assert left_over["long_name_baseline"].endswith("FlatMap[1]::TFRecord")


def test_the_bottleneck_of_a_zip_is_on_the_slow_branch(runs: dict[str, Run]) -> None:
    for branch, name in enumerate(("zip_first", "zip_second")):
        found = analysis(runs[name])
        assert found is not None and found.bottleneck is not None
        assert found.bottleneck["long_name"] == f"Iterator::Root::Zip[{branch}]::Map"


@pytest.mark.parametrize(
    ("baseline", "candidate", "said"),
    [
        ("plain", "prefetched", "Bottleneck of both runs: Map. Mean call: B 500 µs, A 4.30 ms"),
        ("plain", "quick", "B is not input-bound, A is (bottleneck: Map). Mean call: B 30.0 µs, A 4.30 ms"),
        ("quick", "faster", "B is input-bound (bottleneck: Map), A is not. Mean call: B 1.30 ms, A 30.0 µs"),
        ("plain", "plain", "A and B are the same capture: the mean call takes 4.30 ms (bottleneck: Map)"),
        ("plain", "none", "No tf.data calls in B. In A, the mean call takes 4.30 ms (bottleneck: Map)"),
        ("zip_first", "zip_second", "Bottleneck: Map, in A Map (another step). Mean call: B 3.50 ms, A 3.50 ms"),
        ("none", "none", "No tf.data calls in either profile"),
        ("plain", "reading", "Bottleneck: TFRecord, in A Map. Mean call: B 4.30 ms, A 4.30 ms"),
        ("quick", "quick", "A and B are the same capture: the mean call takes 30.0 µs"),
    ],
)
def test_the_change_in_a_sentence(runs: dict[str, Run], baseline: str, candidate: str, said: str) -> None:
    assert sentence(runs[baseline], runs[candidate]) == said
    quick = analysis(runs["quick"])
    neither = "Neither run is input-bound. Mean call: B 30.0 µs, A 30.0 µs"
    assert change((quick, quick), (False, False), ("A", "B")) == neither


def test_one_slow_call_does_not_make_the_bottleneck(tmp_path: Path) -> None:
    """The slowest call, the first, waited for the reader; all calls together waited for the Map."""
    steps = [plain(0, read_us=3900), *(plain(i) for i in range(1, STEPS))]
    found = analysis(load(write(tmp_path / "first", steps)))
    assert found is not None and found.bottleneck is not None and found.usual_bottleneck is not None
    assert found.usual_bottleneck["iterator"] == "Map"


def test_a_run_that_only_feeds_devices_is_not_judged() -> None:
    gpu, zoo = (loaded_run(name) for name in ("tf_gpu", "tf_cpu_zoo"))
    said = sentence(gpu, zoo)
    assert said.startswith("A: only pipelines that pass elements to a device were recorded.")
    assert "In B, the mean call takes" in said


def test_a_map_made_parallel_on_the_samples_is_one_step_that_changed() -> None:
    naive, better = (loaded_run(name) for name in ("filters_16_8", "filters_16_8_better_input"))
    sides = analysis(naive), analysis(better)
    assert [side.bottleneck["iterator"] for side in sides] == ["Map", "ParallelMapV2"]
    assert not any(side.feeds_device_only for side in sides)
    said = change(sides, (True, True), ("A", "B"))
    assert said.startswith("Bottleneck: `ParallelMap`, in A `Map` (same step).")
    assert sentence(naive, better).startswith("B is not input-bound, A is (bottleneck: Map).")
    there = iterators(compared_runs("filters_16_8", "filters_16_8_better_input"))
    rows = there.set_index("iterator_candidate")
    assert rows.loc["ParallelMapV2", ["iterator_baseline", "status", "match"]].tolist() == [
        "Map",
        "matched",
        "structural",
    ]
    assert rows.loc["Prefetch", "status"] == "added"
    readers = there[(there["iterator_baseline"] == "TFRecord") & (there["status"] == "matched")]
    assert readers["long_name_baseline"].item().endswith("FlatMap[0]::TFRecord")
    assert readers["long_name_candidate"].item().endswith("ParallelInterleaveV4[0]::FlatMap[0]::TFRecord")


def of_pipeline(name: str, text: str) -> pd.DataFrame:
    return execution(text).assign(pipeline=name)


TRAIN = "Root 1\n BatchV2 2\n  Map 3\n   TFRecord 4"
TEST = "Root 1\n PaddedBatch 2\n  Filter 3\n   TextLine 4\n    Range 1"


def test_pipelines_of_the_same_names_pair_by_name() -> None:
    sides = [pd.concat([of_pipeline("Host:0", a), of_pipeline("Host:1", b)]) for a, b in ((TRAIN, TEST), (TEST, TRAIN))]
    assert pair_pipelines(*sides) == {("a", "Host:0"): "Host:0", ("a", "Host:1"): "Host:1"}


def test_pipelines_of_other_numbers_pair_by_their_graphs() -> None:
    both = pd.concat([of_pipeline("Host:0", TEST), of_pipeline("Host:1", TRAIN)], ignore_index=True)
    one = of_pipeline("Host:0", f"Root 1\n Prefetch 1\n{TRAIN.partition(chr(10))[2].replace(' ', '  ', 1)}")
    assert pair_pipelines(both, of_pipeline("Host:0", TRAIN)) == {("a", "Host:0"): "Host:1"}
    assert pair_pipelines(of_pipeline("Host:0", TRAIN), both) == {("a", "Host:1"): "Host:0"}
    assert pair_pipelines(both, one).get(("a", "Host:0")) == "Host:1"


def test_pipelines_with_little_in_common_do_not_pair() -> None:
    assert pair_pipelines(of_pipeline("Host:0", TEST), of_pipeline("Host:1", TRAIN)) == {}
    device = of_pipeline("Device:0", TRAIN)
    assert pair_pipelines(of_pipeline("Host:0", TRAIN), device) == {}


def test_the_diff_of_renumbered_pipelines_tells_both_names(tmp_path: Path) -> None:
    both = write(tmp_path / "both", [(zipped(i, 0)[0], plain(i)[0]) for i in range(STEPS)])
    one = write(tmp_path / "one", [plain(i) for i in range(STEPS)])
    comparison = compare(load(both), load(one))
    rows = comparison.table("tf_data_pipelines").set_index("status")
    assert rows.loc["matched", ["pipeline", "pipeline_candidate"]].tolist() in (
        ["Host:0", "Host:0"],
        ["Host:1", "Host:0"],
    )
    paired = comparison.table("tf_data").query("status == 'matched'")
    assert set(paired["iterator_baseline"]) == {"Root", "BatchV2", "Map", "TFRecord"}


def row(iterator: str, **told: object) -> pd.Series:
    found = execution(f"Root 1\n {iterator} 1").iloc[1].copy()
    for name, value in told.items():
        found[name] = value
    return found


@pytest.mark.parametrize(
    ("bottleneck", "words"),
    [
        (row("Map"), "`map` works on one element after the other"),
        (row("ParallelMapV2", parallelism=2, autotune="false"), "up to 2 calls in parallel, a fixed number"),
        (row("ParallelMapV2", parallelism=1, autotune="true"), "up to 1 call in parallel, a number that tf.data tunes"),
        (row("ParallelInterleaveV4", settings="cycle_length=2, deterministic=true"), "`cycle_length`, now 2"),
        (row("TFRecord", long_name="Root::ParallelInterleaveV4[0]::TFRecord"), "already read several at a time"),
        (row("BatchV2"), "`batch(…, num_parallel_calls=tf.data.AUTOTUNE)`"),
        (row("Prefetch", buffered_elements=2.0, buffer_limit=2), "held 2 of at most 2 elements"),
        (row("Prefetch", buffered_elements=0.0), "Its buffer was empty"),
        (row("Prefetch"), "Most likely its buffer was empty"),
        (row("Shuffle", settings="buffer_size=256"), "It holds 256 elements."),
        (row("SomethingNew"), "Make each call cheaper"),
    ],
)
def test_advice_fits_the_bottleneck_and_how_it_is_set_up(bottleneck: pd.Series, words: str) -> None:
    assert words in tf_data_advice(bottleneck)


BEFORE = """
Root 1 critical
 BatchV2 2 critical
  Map 90 critical blamed
   TFRecord 5
"""
AFTER = """
Root 1 critical
 Prefetch 1 critical
  BatchV2 2 critical
   ParallelMapV2 30 critical blamed
    TFRecord 5
"""


def names(frame: pd.DataFrame) -> set[str]:
    return set(frame["long_name"])


def levels(nodes: pd.DataFrame) -> dict[str, int]:
    return dict(zip(nodes["iterator"], nodes["level"], strict=True))


def both(before: str, after: str, most: int = 60) -> list[pd.DataFrame]:
    ours, theirs = execution(before), execution(after)
    return [graph.nodes for graph in graphs(ours, theirs, (names(ours), names(theirs)), most)]


def test_paired_nodes_stand_on_one_level() -> None:
    ours, theirs = both(BEFORE, AFTER)
    assert levels(ours) == {"Root": 0, "BatchV2": 2, "Map": 3, "TFRecord": 4}
    assert levels(theirs) == {"Root": 0, "Prefetch": 1, "BatchV2": 2, "ParallelMapV2": 3, "TFRecord": 4}
    assert theirs["mark"].tolist() == ["", "added", "", "changed", ""]
    assert theirs["change"].tolist()[3] == ours["change"].tolist()[2] == "Map → ParallelMap"


def test_what_the_other_pipeline_has_but_did_not_call_is_not_removed() -> None:
    ours, theirs = execution(BEFORE), execution(BEFORE.replace("\n   TFRecord 5", ""))
    left, _ = graphs(ours, theirs, (names(ours), names(ours)))
    assert left.nodes["mark"].tolist() == ["", "", "", "not called"]
    left, _ = graphs(ours, theirs, (names(ours), names(theirs)))
    assert left.nodes["mark"].tolist() == ["", "", "", "removed"]


def test_beside_nothing_nothing_is_marked() -> None:
    left, right = graphs(execution(BEFORE), schema.TF_DATA.empty(), (set(), set()))
    assert left.nodes["mark"].tolist() == [""] * 4
    assert right.nodes.empty


FILES = "Root 1 critical\n Interleave 2 critical\n" + "".join(
    f"  FlatMap 3{' critical' if i == 5 else ''}\n   TFRecord {10 + i}{' critical blamed' if i == 5 else ''}\n"
    for i in range(16)
)


def test_siblings_that_are_alike_are_one_node_that_adds_them_up() -> None:
    nodes, _ = both(FILES, FILES)
    assert nodes["iterator"].tolist() == ["Root", "Interleave", "FlatMap", "TFRecord", "FlatMap", "TFRecord"]
    assert sorted(nodes["alike"]) == [1, 1, 1, 1, 15, 15]
    assert nodes["self_time_us"].sum() == execution(FILES)["self_time_us"].sum()
    assert nodes["calls"].sum() == 34
    blamed = nodes[nodes["is_bottleneck"]].iloc[0]
    assert (blamed["iterator"], blamed["alike"], blamed["self_time_us"]) == ("TFRecord", 1, 15)


def test_of_a_large_graph_the_bottleneck_the_top_and_the_critical_path_are_kept() -> None:
    deep = "Root 1 critical\n" + "".join(
        " " * (i + 1) + f"Map {i}{' critical blamed' if i == 90 else ' critical' if i < 90 else ''}\n"
        for i in range(200)
    )
    ours, theirs = execution(deep), execution(BEFORE)
    graph, _ = graphs(ours, theirs, (names(ours), names(theirs)), 10)
    nodes = graph.nodes
    assert len(nodes) == 10
    assert graph.left_out == 191
    assert nodes["is_bottleneck"].sum() == 1
    assert nodes["iterator"].iloc[0] == "Root"
    assert nodes["self_time_us"].tolist() == [1, *range(82, 91)]
    assert nodes["skipped"].tolist() == [0, 82, *[0] * 8]
    assert nodes["above"].tolist() == [-1, *range(9)]


def test_levels_without_nodes_are_left_out() -> None:
    wide = "Root 1\n" + "".join(f" Zip {i}\n  Map {i} \n" for i in range(4))
    ours, theirs = both(wide, wide, 3)
    assert set(ours["level"]) | set(theirs["level"]) == set(range(1 + max(ours["level"].max(), theirs["level"].max())))


def test_settings_that_only_one_side_tells_did_not_change() -> None:
    told = {"parallelism": 2, "settings": "cycle_length=4, ram_budget=9", "autotune": "true"}
    was, now = (execution("Interleave 1").iloc[0].copy() for _ in range(2))
    for name, value in told.items():
        was[name] = value
    assert changed_settings(was, now) == ""
    for name, value in {"parallelism": 8, "settings": "cycle_length=2, ram_budget=1", "autotune": "true"}.items():
        now[name] = value
    assert changed_settings(was, now) == "parallelism 2 → 8, cycle_length 4 → 2"
