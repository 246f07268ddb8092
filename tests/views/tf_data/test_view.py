"""What the view of tf.data says: the bottleneck of an execution, its iterators, and which one can be chosen."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.frames.tf_data_calls import call
from tests.profiles import loaded_run
from tests.tf_data_runs import STEP_US, STEPS, plain, prefetched, write
from tests.views.flat import links, listed, of_kind, only_pair, pair_of, shown, titles, words
from tests.xspace_builder import Event
from tfcompare import compare, load
from tfcompare.compare.pair import Pair
from tfcompare.views.blocks import Chart, Items, Table
from tfcompare.views.input.figures import wait_of
from tfcompare.views.options import options_with
from tfcompare.views.tf_data.view import VIEW

NAMES = ("filters_512_128", "filters_16_8")


@pytest.fixture(scope="module")
def pair() -> Pair:
    return pair_of(*NAMES)


def pair_in(folder: Path) -> Pair:
    """Two runs, `a` and `b`, below one folder."""
    return only_pair(compare(load(folder / "a"), load(folder / "b")))


def said(pair: Pair, **options: str | int) -> str:
    return "\n".join(words(listed(VIEW, pair, **options))).replace("\\", "")


def tables(pair: Pair, **options: str | int) -> tuple[Table, Table]:
    pipelines, iterators = shown(VIEW, pair, Table, **options)
    return pipelines, iterators


CRITICAL_PATHS = {
    "tf_cpu_zoo": (10, "8", "ParallelMap** (Root › Prefetch › Batch › Shuffle › ParallelMap)"),
    "tf_gpu": (2, "all", ""),
    "filters_16_8_better_input": (9, "5", "ParallelMap** (Root › Prefetch › Batch › ParallelMap)"),
}


@pytest.mark.parametrize("name", CRITICAL_PATHS)
def test_the_critical_path_is_told_whole_and_the_way_to_the_bottleneck_apart_from_it(name: str) -> None:
    took_part, waited_for, bottleneck = CRITICAL_PATHS[name]
    text = said(pair_of(name)).replace("`", "")  # around names
    slowest = "Bottleneck: **" if wait_of(loaded_run(name)).is_bound else "Slowest on it: **"
    last = f"{slowest}{bottleneck}, " if bottleneck else "No bottleneck: "
    assert text.count(f"{took_part} iterators, {waited_for} on the critical path  \n{last}") == 1


def test_one_iterator_alone_is_one_and_has_no_way_to_it(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, [(plain(i)[0][:1], []) for i in range(STEPS)])
    text = said(pair_in(tmp_path))
    assert text.count("1 iterator, all on the critical path") == 2
    assert text.count("Bottleneck: **`Root`**, 4.30 ms self time in 1 call") == 2


def test_both_places_are_told_where_two_iterators_of_one_name_stand_in_others(tmp_path: Path) -> None:
    write(tmp_path / "a", [read(i, 1, 2) for i in range(STEPS)])
    write(tmp_path / "b", [read(i, 2, 3) for i in range(STEPS)])
    rows = tables(pair_in(tmp_path))[1].rows
    assert [name for name in rows["iterator"] if name.startswith("TFRecord")] == [
        "TFRecord (FlatMap[1] → FlatMap[2])",
        "TFRecord (FlatMap[2] → FlatMap[3])",
    ]


def read(step: int, *files: int) -> tuple[list[Event], list[Event]]:
    """Root ← FlatMap ← a TFRecord for each of the files, the first the slowest."""
    at = step * STEP_US
    calls = [call("Root", at, 4000, 1), call("Root::FlatMap", at + 1, 3900, 2, 1)]
    for place, file in enumerate(files):
        calls.append(call(f"Root::FlatMap[{file}]::TFRecord", at + 10 + 2000 * place, 1500 - place, 10 + file, 2))
    return calls, []


def test_the_tables_are_the_diffs(pair: Pair) -> None:
    pipelines, iterators = tables(pair)
    expected = pair.diff("tf_data")
    rows = iterators.rows
    assert rows["iterator_id"].tolist() == expected["iterator_id"].tolist()
    for column in ("self_time_us_baseline", "calls_candidate", "on_critical_path_baseline"):
        assert column in iterators.every
        pd.testing.assert_series_equal(rows[column], expected[column], check_dtype=False)
    for column in ("min_latency_us_baseline", "max_latency_us_candidate", "slow_calls_baseline"):
        assert column in pipelines.every
        assert pipelines.rows[column].tolist() == pair.diff("tf_data_pipelines")[column].tolist()


def test_another_execution_is_chosen_by_its_rank(pair: Pair) -> None:
    latency = loaded_run("filters_512_128").table("tf_data").query("execution == 3 and parent_id == ''")
    roots = tables(pair, rank=3)[1].rows.query("iterator == 'Root'")
    assert roots["total_duration_us_baseline"].tolist() == latency["total_duration_us"].tolist()


def test_one_prefetch_more_is_one_added_iterator(tmp_path: Path) -> None:
    write(tmp_path / "a", [plain(i) for i in range(STEPS)])
    write(tmp_path / "b", [prefetched(i) for i in range(STEPS)])
    blocks = listed(VIEW, pair_in(tmp_path))
    rows = of_kind(blocks, Table)[1].rows
    assert rows.loc[rows["status"] != "matched", ["iterator", "status"]].to_numpy().tolist() == [["Prefetch", "added"]]
    drawn = [chart.draw().to_json() for chart in of_kind(blocks, Chart)]
    assert sum("added" in chart.split('"customdata"')[0] for chart in drawn) == 1


def test_an_execution_that_one_run_does_not_have_is_not_drawn(tmp_path: Path) -> None:
    write(tmp_path / "a", [plain(i) for i in range(STEPS)])
    write(tmp_path / "b", [plain(i) for i in range(2)])
    pair = pair_in(tmp_path)
    text = said(pair, rank=3)
    assert "no execution 3, only 2 calls." in text
    assert "`b` does not have this execution." in text
    blocks = listed(VIEW, pair, rank=3)
    assert len(titles(blocks)) == 1
    assert len([link for link in links(VIEW, pair, rank=3) if link.view == "timeline"]) == 1


def test_the_host_of_the_longest_call_is_first_and_decides_on_the_pipelines(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, [plain(i) for i in range(STEPS)], host="one")
        write(tmp_path / name, [plain(i, 6000) for i in range(STEPS)], host="two")
    pair = pair_in(tmp_path)
    assert options_with(VIEW.options, pair, {}).tf_host == "two"
    for host in ("one", "two"):
        assert said(pair, tf_host=host).count(f"on host `{host}`: slowest of ") == 2


@pytest.mark.parametrize(
    ("baseline", "candidate", "sentence"),
    [
        ("tf_cpu_zoo", "jax_tpu", "No tf.data calls in B."),
        ("tf_gpu", "tf_cpu_zoo", "A: only pipelines that pass elements to a device were recorded"),
    ],
)
def test_a_run_without_calls_is_named_and_how_to_record_them(baseline: str, candidate: str, sentence: str) -> None:
    pair = pair_of(baseline, candidate)
    blocks = listed(VIEW, pair)
    assert sentence in said(pair)
    assert len(titles(blocks)) == 1
    assert any("host_tracer_level=2" in text for text in words(blocks, "notice")) == ("No tf.data calls" in sentence)


def test_the_bottleneck_has_advice(pair: Pair) -> None:
    (items,) = shown(VIEW, pair, Items)
    ((_, advice),) = items.items
    assert "Give it `num_parallel_calls=tf.data.AUTOTUNE`" in advice
    assert "https://www.tensorflow.org/guide/data_performance_analysis" in advice
