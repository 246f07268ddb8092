"""What holds of any calls of tf.data, however absurd."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frames.tf_data_calls import Found, of_threads
from tests.laws import law
from tests.xspace_builder import U64, Event, Value, event
from tfcompare.frames.tf_data.tf_data_executions import MOST_ROWS
from tfcompare.schema.input import TF_DATA, TF_DATA_PIPELINES

NAMES = ("Iterator::Root", "Iterator::Root::Prefetch", "Iterator::Root::Prefetch::Map", "Iterator::Prefetch::Generator")
OTHERS = ("PrefetchProduce", "PrefetchConsume", "ParallelMapProduce", "ParallelMapConsume", "Function")
NUMBERS = st.sampled_from([1, 2, 3, -1, 0, U64(1), U64(2**64 - 1), U64(2**63), "none", 0.5])
EVENTS = st.builds(
    lambda name, start, duration, stats: event(name, start, duration, stats),
    st.sampled_from(NAMES * 2 + OTHERS),
    st.integers(0, 20),
    st.integers(0, 20),
    st.dictionaries(st.sampled_from(["id", "parent_id", "element_id", "parallelism"]), NUMBERS),
)


@law(40)
@given(threads=st.lists(st.lists(EVENTS, max_size=8), max_size=3), most_rows=st.sampled_from([0, 3, MOST_ROWS]))
def test_whatever_the_calls_are(threads: list[list[Event]], most_rows: int) -> None:
    found = of_threads(*threads, most_rows=most_rows)
    asked = [e for thread in threads for e in thread if e.name == "Iterator::Root" and has_number(e, "id")]
    check_pipelines(found, len(asked))
    assert len(found.executions) <= most_rows
    assert found.executions["calls"].sum() <= sum(map(len, threads))
    for _, execution in found.executions.groupby(["pipeline", "execution"]):
        check_execution(execution)


def has_number(event: Event, stat: str) -> bool:
    value: Value = dict(event.stats).get(stat, "none")
    return isinstance(value, int)


def check_pipelines(found: Found, calls: int) -> None:
    pipelines, executions = found.pipelines, found.executions
    for table, frame in ((TF_DATA_PIPELINES, pipelines), (TF_DATA, executions)):
        assert not frame[list(table.keys)].duplicated().any()
        assert {c: str(t) for c, t in frame.dtypes.items()} == {c.name: c.dtype for c in table.columns}
    assert pipelines["calls"].sum() == calls
    assert (pipelines["slow_calls"] <= pipelines["calls"]).all()
    assert (pipelines["min_latency_us"] <= pipelines["max_latency_us"]).all()
    kept = executions.groupby("pipeline")["execution"].nunique().reindex(pipelines["pipeline"], fill_value=0)
    assert kept.to_list() == pipelines["executions_kept"].to_list()
    assert bool(found.remarks) == (pipelines["executions_kept"] < pipelines["calls"]).any()


def check_execution(rows: pd.DataFrame) -> None:
    above = dict(zip(rows["iterator_id"], rows["parent_id"], strict=True))
    assert list(above.values()).count("") == 1
    for iterator in above:
        for _ in above:  # the way up ends at the pipeline's own iterator
            iterator = above[iterator] or iterator
        assert above[iterator] == ""
    assert rows["self_time_us"].between(0, rows["total_duration_us"]).all()
    blocking = rows[rows["on_critical_path"]]
    bottleneck = rows[rows["is_bottleneck"]]
    if rows["pipeline"].iloc[0].startswith("Host") and blocking["self_time_us"].max() > 0:
        assert bottleneck["self_time_us"].item() == pytest.approx(blocking["self_time_us"].max())
        assert bottleneck["on_critical_path"].all()
    else:
        assert bottleneck.empty
