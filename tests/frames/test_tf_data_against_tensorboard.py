"""tf.data on real profiles: against TensorBoard's last plugin that had the tool, and against what the samples are."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from tests.frames.tf_data_calls import Found, found_in
from tests.profiles import CORPUS, run_path
from tfcompare.sources.logdir import find_run
from tfcompare.xspace import read

ORACLE = CORPUS.parent / "oracle"
SIGNED = 1 << 63
PS_PER_US = 1e6


def analysis_of(name: str) -> Found:
    file = find_run(run_path(name)).files[0]
    return found_in(read(file.path).space, file.host)


def oracle_of(name: str) -> dict[str, Any]:
    """What plugin 2.19.0 gives for the corpus run; ids beyond the signed range are all `0` there."""
    path = ORACLE / f"tf_data_{name.removeprefix('tf_cpu_')}.json"
    if not path.exists():
        pytest.skip(f"no tf.data analysis by TensorBoard at {path}")
    return json.loads(path.read_text())  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", ["tf_cpu_zoo", "tf_cpu_sleepy"])
def test_pipelines_are_tensorboards(name: str) -> None:
    ours, oracle = analysis_of(name).pipelines, oracle_of(name)
    ((host, theirs),) = oracle["hosts"].items()
    assert ours["host"].to_list() == [host] * len(theirs["pipelines"])
    for (_, row), expected in zip(ours.iterrows(), theirs["pipelines"], strict=True):
        assert row["pipeline"] == expected["name"]
        assert (row["calls"], row["slow_calls"]) == (expected["n_stats"], expected["num_slow_calls"])
        latencies = row[["min_latency_us", "mean_latency_us", "max_latency_us"]].to_list()
        assert latencies == pytest.approx([expected[k] / PS_PER_US for k in ("min_ps", "avg_ps", "max_ps")], abs=1e-6)
    (blamed,) = oracle["bottleneck"]
    assert ours["bottleneck"].to_list() == [blamed["long_name"]]
    assert ours["bottleneck_self_time_us"].item() == pytest.approx(blamed["latency_ps"] / PS_PER_US)


@pytest.mark.parametrize("name", ["tf_cpu_zoo", "tf_cpu_sleepy"])
def test_the_slowest_executions_are_tensorboards_once_ids_are_folded(name: str) -> None:
    ours, oracle = analysis_of(name).executions, oracle_of(name)
    (theirs,) = oracle["hosts"].values()
    for rank, stats in enumerate(theirs["pipelines"][0]["stats"]):
        rows = ours[ours["execution"] == rank]
        folded = rows["iterator_id"].where(rows["iterator_id"].astype("uint64") < SIGNED, "0")
        sums = rows.groupby(folded)[["total_duration_us", "self_time_us", "calls"]].sum()
        expected = pd.DataFrame.from_dict(stats["iterators"], orient="index").iloc[:, [1, 2, 4]]
        assert set(sums.index) == set(expected.index)
        sums = sums.loc[expected.index]
        assert sums["calls"].to_list() == expected[4].to_list()
        assert sums["total_duration_us"].to_list() == pytest.approx((expected[1] / PS_PER_US).to_list())
        assert sums["self_time_us"].to_list() == pytest.approx((expected[2] / PS_PER_US).to_list())
        waited_for = rows.groupby(folded)["on_critical_path"].any()
        assert waited_for.to_dict() == {id: stat[3] for id, stat in stats["iterators"].items()}
        assert rows.loc[rows["is_bottleneck"], "iterator_id"].to_list() == [str(stats["bottleneck"])]


def test_ids_beyond_the_signed_range_are_iterators_of_their_own() -> None:
    slowest = analysis_of("tf_cpu_zoo").executions.query("execution == 0")
    assert "0" not in set(slowest["iterator_id"])
    assert (slowest["iterator_id"].astype("uint64") >= SIGNED).sum() == 5
    path = "Root::Prefetch::BatchV2::Shuffle::ParallelMapV2::ParallelInterleaveV4"
    parts = path.split("::")
    branches = [f"{path}[{i}]::{rest}" for i in (0, 1) for rest in ("FlatMap", "FlatMap[0]::TFRecord")]
    expected = ["::".join(parts[:depth]) for depth in range(1, len(parts) + 1)] + branches
    assert [name.removeprefix("Iterator::") for name in slowest["long_name"]] == expected


def test_the_decoding_of_images_is_what_keeps_the_samples_waiting() -> None:
    """`sample_logs/autoencoder/record.py` decodes, shrinks and noises in a `map`; better input does so in parallel, so
    that an element is there before it is asked for."""
    naive, better = (analysis_of(name).pipelines.iloc[0] for name in ("filters_16_8", "filters_16_8_better_input"))
    assert naive[["pipeline", "calls", "slow_calls"]].to_list() == ["Host:0", 22, 22]
    assert (naive["bottleneck"], better["bottleneck"]) == (
        "Iterator::Root::BatchV2::Map",
        "Iterator::Root::Prefetch::BatchV2::ParallelMapV2",
    )
    assert (better["pipeline"], better["calls"]) == ("Host:0", 22)
    assert better["mean_latency_us"] < naive["mean_latency_us"] / 4
    assert better["slow_calls"] < naive["slow_calls"]


def test_pipelines_that_feed_gpus_are_known_as_such() -> None:
    pipelines = analysis_of("tf_gpu").pipelines
    assert pipelines["pipeline"].to_list() == ["Device:0", "Device:1"]
    assert pipelines["max_latency_us"].to_list() == [7077.234, 6524.644]
    assert pipelines["bottleneck"].to_list() == ["", ""]


@pytest.mark.parametrize("name", ["tf_cpu_zoo", "tf_gpu", "filters_16_8_better_input", "h100_16_8"])
def test_who_called_an_iterator_is_whom_it_names_as_its_parent(name: str) -> None:
    file = find_run(run_path(name)).files[0]
    space = read(file.path).space
    recorded = dict(zip(*(values.astype("uint64").tolist() for values in pairs_of(space)), strict=True))
    executions = found_in(space, file.host).executions
    below = executions[executions["parent_id"] != ""]
    told = below[below["iterator_id"].map(int).isin(recorded)]
    assert [recorded[int(id)] for id in told["iterator_id"]] == [int(id) for id in told["parent_id"]]


def pairs_of(space: Any) -> tuple[Any, Any]:
    """(id, parent_id) of the events that have both."""
    ids, parents = space.numbers("id"), space.numbers("parent_id")
    of_row = dict(zip(ids[0].tolist(), ids[1].tolist(), strict=True))
    pairs = pd.DataFrame([(of_row[row], parent) for row, parent in zip(*parents, strict=True) if row in of_row])
    return (pairs[0].to_numpy(), pairs[1].to_numpy()) if len(pairs) else (pairs.to_numpy(), pairs.to_numpy())
