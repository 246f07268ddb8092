"""TensorBoard's table, and the sentences and figures on top of the op stats page."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests import xprof_oracle
from tests.compare.compare_runs import WITHOUT_COSTS
from tests.laws import mostly_thorough
from tests.profiles import run_path
from tests.views import chart_samples as samples
from tests.views.chart_samples import FAST, OPS, SLOW
from tfcompare import schema
from tfcompare.compare.groups.aggregate import group_diff
from tfcompare.schema import DEVICE, HOST, SIDES
from tfcompare.text import middle_ellipsis
from tfcompare.views.ops import figures as tf_stats
from tfcompare.views.ops.figures import (
    NAME_LENGTH,
    NO_OPS,
    OTHER,
    figures,
    largest_bar,
    longest_first,
    main_side,
    matched_time,
    op_table,
    own_side_shares,
    sentence,
    sentence_alone,
    side_by_side,
    time_shares,
    with_words,
)

XPROF = {
    "avg_time": "avg_time_us",
    "avg_self_time": "avg_self_time_us",
    "device_total_self_time_percent": "device_self_share",
    "device_cumulative_total_self_time_percent": "device_cumulative_share",
    "host_total_self_time_percent": "host_self_share",
    "Host_cumulative_total_self_time_percent": "host_cumulative_share",
}


@pytest.mark.parametrize(
    "name", mostly_thorough(["filters_16_8", "tf_cpu_base", "jax_conv_08", "jax_tpu"], "filters_16_8", "jax_tpu")
)
@pytest.mark.parametrize("idle", [True, False])
def test_ranks_averages_and_shares_are_xprofs(name, idle):
    """xprof's own rows, shuffled, get back xprof's ranks, averages and shares."""
    xprof = xprof_table(sorted(run_path(name).rglob("*.xplane.pb")), idle)
    rows = pd.DataFrame(
        {
            "host": schema.ALL_HOSTS,
            "host_or_device": xprof["host_or_device"],
            "op_type": xprof["type"],
            "op_name": xprof["operation"],
            "occurrences": xprof["occurrences"],
            "total_time_us": xprof["total_time"],
            "self_time_us": xprof["total_self_time"],
            "wall_time_us": np.nan,  # xprof has none
            "is_eager": xprof["eager"] == "Eager",
            **WITHOUT_COSTS,
        }
    )
    ours = op_table(schema.OP_STATS.conform(rows.sample(frac=1, random_state=1)), idle=idle)
    assert ours["rank"].tolist() == xprof["rank"].tolist()
    assert ours["op_name"].tolist() == xprof["operation"].tolist()
    for theirs, column in XPROF.items():
        np.testing.assert_allclose(ours[column], xprof[theirs], rtol=1e-9, atol=1e-12, err_msg=column)


def xprof_table(files: list[Path], idle: bool) -> pd.DataFrame:
    table = xprof_oracle.tool_data("framework_op_stats", *files)[0 if idle else 1]
    columns = [column["id"] for column in table["cols"]]
    return pd.DataFrame([[cell["v"] for cell in row["c"]] for row in table["rows"]], columns=columns)


def test_an_empty_table_has_all_columns():
    empty = op_table(schema.OP_STATS.empty(), idle=True)
    assert empty.empty
    assert {"rank", "avg_time_us", "device_cumulative_share"} < set(empty.columns)
    assert own_side_shares(empty).columns[-2:].tolist() == ["self_share", "cumulative_share"]


def test_the_side_to_show_first_is_the_device_where_anything_ran_there():
    assert main_side(samples.op_stats()) == "Host"
    assert main_side(samples.op_stats(place=schema.DEVICE)) == "Device"
    only_idle = samples.op_stats(place=schema.DEVICE).tail(1)
    assert main_side(pd.concat([samples.op_stats(), only_idle])) == "Host"


def test_both_sides_of_a_diff_have_the_ranks_of_their_own_table():
    rows = side_by_side(samples.diff(), idle=True)
    for which, role in ((SLOW, "baseline"), (FAST, "candidate")):
        ranked = own_side_shares(op_table(samples.op_stats(which), idle=True)).set_index("op_name")
        for name in tf_stats.ROW_COLUMNS:
            expected = ranked[name].reindex(rows["op_name"]).to_numpy(dtype=float)
            np.testing.assert_allclose(rows[f"{name}_{role}"].astype(float), expected, err_msg=f"{name}_{role}")


def test_the_absent_side_of_a_row_has_no_rank_and_no_share():
    diff = samples.diff(candidate=samples.op_stats(FAST, without="Relu"))
    rows = side_by_side(diff, idle=False).set_index("op_name")
    relu = rows.loc["autoencoder/conv2d/Relu"]
    assert relu["rank_baseline"] == 6
    assert relu[[f"{name}_candidate" for name in tf_stats.ROW_COLUMNS]].isna().all()
    assert rows["self_share_candidate"].sum() == pytest.approx(1.0)
    assert "IDLE" not in rows.index


def test_shares_of_groups_and_the_rest_add_up():
    groups = group_diff(samples.diff(), "op_type")
    shares = time_shares(groups, "op_type", count=3)
    assert shares["group"].tolist() == ["IDLE", "Conv2DBackpropFilter", "Conv2DBackpropInput", OTHER]
    assert shares["others"].tolist() == [0, 0, 0, len(groups) - 3]
    for role in SIDES:
        assert shares[f"share_{role}"].sum() == pytest.approx(1.0)
        assert shares[f"self_time_us_{role}"].sum() == pytest.approx(groups[f"{samples.METRIC}_{role}"].sum())
    assert time_shares(groups, "op_type", count=99)["others"].sum() == 0


def test_groups_by_time_have_the_longest_first_and_the_rest_last():
    shares = pd.DataFrame(
        {
            "group": ["a", "b", "c", OTHER],
            "others": [0, 0, 0, 7],
            "t_baseline": [9.0, 1, 5, 99],
            "t_candidate": [1, 10.0, 2, 99],
        }
    )
    assert longest_first(shares, "t")["group"].tolist() == ["b", "a", "c", OTHER]


def test_shares_within_groups_are_of_their_own_side():
    both = pd.concat([samples.op_stats(SLOW), samples.op_stats(SLOW, place=schema.DEVICE)], ignore_index=True)
    groups = tf_stats.with_shares(group_diff(samples.diff(both, both), "op_type"))
    assert groups.groupby("host_or_device")["self_share_baseline"].sum().tolist() == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 12),
        ("  ", 12),
        ("conv2d", 6),
        ("CONV2D_1 backprop", 2),
        ("Conv2D/Conv2D", 3),
        ("dataset", 1),
        ("(", 0),
        ("nothing of the kind", 0),
    ],
)
def test_a_filter_keeps_the_rows_that_hold_every_word(text, expected):
    rows = side_by_side(samples.diff(), idle=False)
    assert len(with_words(rows, text, ["op_name", "op_type", "op_name_candidate"])) == expected


def test_a_filter_looks_at_the_candidates_name_too_and_at_rows_without_one():
    diff = samples.diff(candidate=samples.op_stats(FAST, without="Relu"))
    assert len(with_words(side_by_side(diff, idle=False), "relu", ["op_name", "op_name_candidate"])) == 1


ROWS = side_by_side(samples.diff(), idle=False)
LONGEST = OPS[0][1]


def test_the_sentence_gives_the_sums_and_the_largest_change():
    ours, theirs = (sum(op[side] for op in OPS) for side in (2, 3))
    assert (ours, theirs) == (316_800.0, 16_895.0)
    assert sentence(ROWS, "step").startswith("Self time on the host per step fell from 317 ms to 16.9 ms (−94.7 %).")
    assert sentence(ROWS, "step").endswith(f"Largest change: `{middle_ellipsis(LONGEST, NAME_LENGTH)}` (−116 ms).")


def test_the_sentence_is_about_the_device_if_any_op_ran_there():
    diff = samples.diff(samples.op_stats(SLOW, place=DEVICE), samples.op_stats(FAST, place=DEVICE))
    assert sentence(side_by_side(diff, idle=False), "step").startswith("Self time on the device per step fell")


def test_a_larger_change_on_the_host_is_told_beside_that_on_the_device():
    on_device = samples.op_stats(SLOW, place=DEVICE)
    slow, fast = (pd.concat([samples.op_stats(of, place=HOST), on_device], ignore_index=True) for of in (SLOW, FAST))
    fast.loc[fast["host_or_device"] == DEVICE, "self_time_us"] -= 1.0
    text = sentence(side_by_side(samples.diff(slow, fast), idle=False), "step")
    assert text.startswith("Self time on the device per step fell")
    assert text.endswith(f" Larger on the host: `{middle_ellipsis(LONGEST, NAME_LENGTH)}` (−116 ms).")
    slow_device = samples.diff(samples.op_stats(SLOW, place=DEVICE), samples.op_stats(FAST, place=DEVICE))
    assert "on the host" not in sentence(side_by_side(slow_device, idle=False), "step")


def test_a_run_alone_is_described_by_its_longest_op():
    text = sentence_alone(ROWS, "step")
    assert text.startswith("Self time on the host per step: 317 ms. Longest op: `")
    assert text.endswith("` (37.9 %).")


def test_without_ops_the_sentence_says_so():
    assert sentence(ROWS.iloc[:0], "step") == sentence_alone(ROWS.iloc[:0], "step") == NO_OPS


def test_the_figures_are_sums_and_counts_of_each_side():
    diff = samples.diff(samples.op_stats(SLOW), samples.op_stats(FAST, without="Prefetch"))
    found = {f.label: (f.baseline, f.candidate) for f in figures(side_by_side(diff, idle=False), lambda _: "step")}
    assert found["Self time on host per step"] == pytest.approx((316_800.0, 14_895.0))
    assert found["Ops"] == (12, 11)
    assert "Self time on device per step" not in found


def test_matched_time_has_no_baseline():
    figure = matched_time(0.9, 0.8)
    assert math.isnan(figure.baseline) and figure.candidate == 0.9
    assert "80.0 % under the same name" in figure.meaning


@pytest.mark.parametrize(("sides", "expected"), [(1, 4_000.0), (2, 120_000.0)])
def test_the_largest_bar_is_that_of_the_sides_shown(sides, expected):
    rows = side_by_side(samples.diff(samples.op_stats(FAST), samples.op_stats(SLOW)), idle=False)
    times = time_shares(rows, "op_name", count=20)
    assert largest_bar([times], "self_time_us", sides, as_shares=False) == expected
    assert largest_bar([], "self_time_us", sides, as_shares=False) == 0.0
    assert largest_bar([times], "self_time_us", 1, as_shares=True) == pytest.approx(4_000 / 16_895)
