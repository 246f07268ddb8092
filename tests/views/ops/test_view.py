"""The view of op stats: its rows, columns and verdicts, and what opens for an op."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.profiles import loaded_run, run_path
from tests.views.flat import drawn, listed, of_kind, only_pair, opened, pair_of, shown, texts, titles, words
from tfcompare import compare, load
from tfcompare.compare.groups.aggregate import group_diff
from tfcompare.compare.pair import Pair
from tfcompare.units import format_percent, format_ratio, format_time_us
from tfcompare.views.blocks import Facts, FlameGraph, Table
from tfcompare.views.ops.figures import op_table, ops_of
from tfcompare.views.ops.view import VIEW
from tfcompare.views.verdict_marks import text_of
from tfcompare.views.view import NOTHING_TESTED

TIME = "self_time_us"
CONVOLUTION = "Host:Conv2D:autoencoder_1/image_1/convolution"
COMPILED = ("tensorflow_filters_128_32", "tensorflow_filters_16_8")


@pytest.fixture(scope="module")
def pair() -> Pair:
    return pair_of("filters_512_128", "filters_16_8")


@pytest.fixture(scope="module")
def diff(pair: Pair) -> pd.DataFrame:
    rows = pair.diff()
    return rows[rows["op_type"] != "IDLE"].reset_index(drop=True)


def table(pair: Pair, **options: Any) -> Table:
    found, *_ = shown(VIEW, pair, Table, **options)
    return found


def test_the_table_has_the_numbers_of_the_diff_and_idle_is_an_op_only_when_asked_for(
    pair: Pair, diff: pd.DataFrame
) -> None:
    found = table(pair)
    times = [f"{TIME}_{part}" for part in ("baseline", "candidate", "delta", "ratio")]
    assert found.names == ["op_name", *times, "verdict", "array_shape"]
    pd.testing.assert_frame_equal(found.rows[["op_type", *times]].reset_index(drop=True), diff[["op_type", *times]])
    assert table(pair, idle=True).rows["op_type"].tolist().count("IDLE") == 1


def test_the_flame_graph_is_above_the_table_which_a_click_on_a_bar_makes_shorter(pair: Pair) -> None:
    (graph,) = shown(VIEW, pair, FlameGraph)
    kinds = [type(block) for block in listed(VIEW, pair)]
    assert kinds.index(FlameGraph) < kinds.index(Table)
    node = graph.draw().loc[lambda tree: tree["depth"] == 2, "node"].iloc[0]
    assert len(table(pair, scope=node).rows) < len(table(pair).rows)


def test_all_columns_are_those_of_tensorboard_and_the_diff(pair: Pair) -> None:
    columns = set(table(pair).every)
    for name in ("rank", "total_time_us", "avg_time_us", "avg_self_time_us", "self_share", "cumulative_share"):
        assert {f"{name}_baseline", f"{name}_candidate"} <= columns
    assert {"is_eager_baseline", "occurrences_candidate", "match", "verdict", "op_name_candidate"} <= columns
    assert "flops_per_s_baseline" not in columns, "no op has costs"


@pytest.mark.parametrize("by", ["op_name", "op_type", "scope"])
def test_every_grouping_adds_up_and_has_verdicts_of_its_own_and_the_chart_their_intervals(
    pair: Pair, diff: pd.DataFrame, by: Any
) -> None:
    rows = table(pair, by=by).rows.reset_index(drop=True)
    for role in ("baseline", "candidate"):
        assert rows[f"{TIME}_{role}"].sum() == pytest.approx(diff[f"{TIME}_{role}"].sum())
    assert rows[by].is_unique
    groups = group_diff(pair.diff(), by, pair.group_verdicts)
    expected = groups[groups[by] != "IDLE"].set_index(by)["verdict"]
    assert (expected == "faster").any()
    own = rows if by == "op_name" else rows[rows["status"] == "matched"]
    assert own.set_index(by)["verdict"].to_dict() == expected.to_dict()
    assert own["interval_low"].notna().equals(~own["verdict"].isin(["untested"]))
    figure = drawn(VIEW, pair, by=by)["The 15 largest changes of self time"]
    signs = ("▼ ", "▲ ", "= ", "? ", "– ")
    words = [one.text.partition(" · ")[0] for one in figure.layout.annotations if one.text[:2] in signs]
    first = rows[:15]
    assert words == [text_of(*row) for row in zip(first["verdict"], first["evidence"], strict=True)]
    assert set(rows["evidence"].dropna()) == {"single"}
    tested = first.dropna(subset="interval_low")
    found = [x for trace in figure.data if trace.type == "scatter" for x in np.array(trace.x, dtype=float)]
    found = [x for x in found if not np.isnan(x)]
    ends = [(tested[end] - 1) * tested[f"{TIME}_baseline"] / 1000 for end in ("interval_low", "interval_high")]
    assert sorted(found) == pytest.approx(np.sort(np.concatenate(ends)).tolist())


def test_an_op_opens_with_its_verdict_numbers_and_steps(pair: Pair, diff: pd.DataFrame) -> None:
    details = opened(table(pair), CONVOLUTION)
    assert details is not None
    row = diff[diff["op_name"] == CONVOLUTION.rpartition(":")[2]].iloc[0]
    (verdict,) = [text for text in words(details.blocks) if "confidence interval" in text]
    assert f"likely faster**: {format_ratio(row[f'{TIME}_ratio'])} self time" in verdict
    assert f"{format_ratio(row['interval_low'])} to {format_ratio(row['interval_high'])}" in verdict
    facts = of_kind(details.blocks, Facts)[-1]
    cells = {label: dict(zip(facts.header[1:], values, strict=True)) for label, *values in facts.rows}
    assert cells["Self time per step"]["Candidate"] == format_time_us(row[f"{TIME}_candidate"])
    ops = op_table(loaded_run("filters_512_128").tables.in_steps("op_stats"), idle=False).set_index("op_name")
    assert cells["Share of self time"]["Baseline"] == format_percent(ops["host_self_share"][row["op_name"]])
    assert any("Self time in every step" in title for title in titles(details.blocks))
    assert opened(table(pair), "Host:Nothing:at/all") is None


def test_costs_are_among_all_columns_where_they_are_known() -> None:
    pair = pair_of(*COMPILED)
    found = table(pair)
    assert not [name for name in found.names if name.startswith("flops")]
    expected = pair.diff().set_index("op_name")
    rows = found.rows.set_index("op_name")
    for role in ("baseline", "candidate"):
        for name in ("operational_intensity", "flops", "flops_per_s"):
            column = f"{name}_{role}"
            assert column in found.every
            assert rows.loc["decoder_inner/Relu", column] == expected.loc["decoder_inner/Relu", column] > 0


def test_where_nothing_could_be_tested_no_interval_is_drawn_and_it_says_why() -> None:
    pair = pair_of("jax_conv_legacy", "jax_conv_08")
    (figure,) = [figure for title, figure in drawn(VIEW, pair).items() if "largest change" in title]
    assert {trace.type for trace in figure.data} == {"bar"}
    assert NOTHING_TESTED in texts(VIEW, pair)


def test_host_and_device_are_chosen_where_there_are_both() -> None:
    pair = pair_of("tf_gpu", "tf_cpu_base")
    assert set(table(pair).rows["host_or_device"]) == {"Host", "Device"}
    assert "host_or_device" in table(pair).names and "host_or_device" not in table(pair, where="Device").names


def test_per_run_an_interval_is_of_the_ratio_that_is_shown() -> None:
    """Runs with different numbers of steps have another ratio per run than per step."""
    long, short = (
        load(run_path(name), steps=steps) for name, steps in (("filters_512_128", None), ("filters_16_8", "1:10"))
    )
    pair = only_pair(compare(long, short, per="run"))
    assert "self_time_us_baseline" in table(pair).names
    rows = ops_of(pair, idle=False)
    tested = rows[rows["interval_low"].notna()]
    assert len(tested) > 5
    for (_, row), ratio in zip(tested.iterrows(), tested["self_time_us_ratio"], strict=True):
        low, high = pair.interval(row)
        assert low <= ratio <= high


def test_per_occurrence_divides_the_table_by_what_ran() -> None:
    """One GPU against eight: per device 131 µs less, and per occurrence 26 µs."""
    pair = pair_of("jax_conv_legacy", "jax_conv_08")
    found = table(pair, per_occurrence=True)
    assert {"occurrences_baseline", "occurrences_candidate"} <= set(found.names)
    row = found.rows.set_index("op_name").loc["jit(forward_3d_conv)/jit(main)/conv_general_dilated"]
    every = pair.rows_per_occurrence(pair.diff(), "op_stats")
    expected = every.set_index("op_name").loc[row.name]
    for name in ("self_time_us_baseline", "self_time_us_candidate"):
        assert row[name] == pytest.approx(expected[name])
    assert row["self_time_us_baseline"] == pytest.approx(698.2, abs=0.1)


def test_annotations_have_a_table_of_their_own_where_there_are_any() -> None:
    _, annotations = shown(VIEW, pair_of("filters_512_128", "filters_16_8"), Table)
    assert annotations.rows["name"].tolist() == ["train_step"]
    assert annotations.names == [
        "name",
        "kind",
        *(f"wall_time_us_{role}" for role in ("baseline", "candidate", "delta", "ratio")),
    ]
    assert len(shown(VIEW, pair_of("jax_filters_128_32", "jax_filters_16_8"), Table)) == 1
