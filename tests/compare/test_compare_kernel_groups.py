"""Kernels and copies added up: each side first, then compared, and nothing lost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from compare_runs import run
from hypothesis import given
from hypothesis import strategies as st
from test_compare_tiers import diff, table

from tests.laws import law
from tests.profiles import compared_runs, loaded_run
from tfcompare import compare
from tfcompare.compare.groups.aggregate import group_copies
from tfcompare.compare.groups.kernel_groups import KEYS, counted_under, group_kernels
from tfcompare.errors import Unknown

BEFORE = table(
    "kernel_stats",
    kernel_name=["gemm", "gemm", "gemm", "void f<int>(float*)", "old"],
    op_name=["dense/MatMul", "dense/MatMul", "dense_1/MatMul", "relu", ""],
    grid_dim=["1,1,1", "2,1,1", "1,1,1", "1,1,1", "1,1,1"],
    occurrences=[10, 2, 4, 6, 1],
    total_duration_us=[100.0, 40.0, 8.0, 12.0, 5.0],
    avg_duration_us=[10.0, 20.0, 2.0, 2.0, 5.0],
    min_duration_us=[9.0, 19.0, 1.0, 1.5, 5.0],
    max_duration_us=[12.0, 21.0, 3.0, 2.5, 5.0],
    is_op_tensor_core_eligible=[True, True, True, False, False],
)
AFTER = table(
    "kernel_stats",
    kernel_name=["gemm", "fast_gemm", "f<int>(float*, long)", "f<int>(float*, long)"],
    op_name=["dense_2/MatMul", "dense_3/MatMul", "relu", "elu"],
    occurrences=[10, 4, 6, 2],
    total_duration_us=[50.0, 4.0, 6.0, 9.0],
    avg_duration_us=[5.0, 1.0, 1.0, 4.5],
    min_duration_us=[4.0, 0.5, 0.5, 4.0],
    max_duration_us=[6.0, 1.5, 1.5, 5.0],
    is_op_tensor_core_eligible=[True, True, False, False],
    is_kernel_using_tensor_core=[False, True, False, False],
)
METRICS = ("occurrences", "total_duration_us")


def texts(frame: pd.DataFrame, columns: list[str]) -> list[str]:
    return [" ".join("–" if pd.isna(v) else str(v) for v in row) for row in frame[columns].itertuples(index=False)]


def both(metric: str) -> list[str]:
    return [f"{metric}_baseline", f"{metric}_candidate"]


def test_by_kernel_a_kernel_of_two_spellings_counts_under_the_baselines() -> None:
    groups = group_kernels(diff("kernel_stats", BEFORE, AFTER), "kernel_name")
    per_step = both("total_duration_us_per_step")
    assert texts(groups, ["kernel_name", *per_step, "status", "match"]) == [
        "gemm 148.0 50.0 matched exact",
        "old 5.0 – removed –",
        "fast_gemm – 4.0 added –",
        "void f<int>(float*) 12.0 15.0 matched canonical",
    ]


def test_by_op_a_layer_numbered_anew_counts_under_the_baselines_name_whatever_kernel_it_runs() -> None:
    groups = group_kernels(diff("kernel_stats", BEFORE, AFTER, per="run"), "op_name")
    assert texts(groups, ["op_name", *both("total_duration_us"), "status", "match"]) == [
        "dense/MatMul 140.0 50.0 matched canonical",
        "elu – 9.0 added –",
        "relu 12.0 6.0 matched exact",
        " 5.0 – removed –",
        "dense_1/MatMul 8.0 4.0 matched canonical",
    ]


def test_averages_are_those_of_all_runs_and_shortest_and_longest_of_all_rows() -> None:
    groups = group_kernels(diff("kernel_stats", BEFORE, AFTER, per="run"), "kernel_name").set_index("kernel_name")
    gemm = groups.loc["gemm"]
    assert gemm["avg_duration_us_baseline"] == 148 / 16
    assert (gemm["min_duration_us_baseline"], gemm["max_duration_us_baseline"]) == (1.0, 21.0)
    assert gemm["avg_duration_us_delta"] == 5.0 - 148 / 16
    assert gemm["max_duration_us_ratio"] == 6 / 21
    assert bool(gemm["is_op_tensor_core_eligible_baseline"]) is True
    assert pd.isna(groups.loc["old", "avg_duration_us_candidate"])
    assert pd.isna(groups.loc["old", "is_kernel_using_tensor_core_candidate"])
    assert bool(groups.loc["fast_gemm", "is_kernel_using_tensor_core_candidate"]) is True


def test_hosts_and_launches_are_added_up() -> None:
    rows = table(
        "kernel_stats",
        host=["a", "a", "b"],
        kernel_name=["k"] * 3,
        op_name=["x", "x", "x"],
        grid_dim=["1,1,1", "2,1,1", "1,1,1"],
        occurrences=[1, 2, 3],
    )
    groups = group_kernels(diff("kernel_stats", rows, rows, per="run"), "kernel_and_op")
    assert texts(groups, ["kernel_name", "op_name", *both("occurrences"), "status"]) == ["k x 6 6 matched"]


def test_two_kernels_whose_names_differ_in_their_template_stay_two() -> None:
    before = table("kernel_stats", kernel_name=["void gemm<128>(float*)"])
    after = table("kernel_stats", kernel_name=["void gemm<64>(float*)"])
    assert set(group_kernels(diff("kernel_stats", before, after), "kernel_name")["status"]) == {"added", "removed"}


ATTENTION, OUT, AGAIN = (
    f"jit(step)/{op}" for op in ("attention/dot", "out/dot", "checkpoint/rematted_computation/dot")
)
STORED = table(
    "kernel_stats",
    kernel_name=["gemm_fusion_dot_50", "gemm_fusion_dot_44"],
    op_name=[ATTENTION, OUT],
    occurrences=[1, 1],
    total_duration_us=[33.4, 40.8],
)
RECOMPUTED = table(
    "kernel_stats",
    kernel_name=["gemm_fusion_dot_58", "gemm_fusion_dot_50", "gemm_fusion_dot_50"],
    op_name=[ATTENTION, OUT, AGAIN],
    occurrences=[1, 1, 1],
    total_duration_us=[33.5, 38.8, 40.7],
)


def test_kernels_that_xla_numbered_group_as_their_rows_are_matched() -> None:
    columns = ["kernel_name", *both("total_duration_us"), "status", "match"]
    there = group_kernels(diff("kernel_stats", STORED, RECOMPUTED, per="run"), "kernel_name")
    assert texts(there, columns) == [
        "gemm_fusion_dot_50 (candidate's) – 40.7 added –",
        "gemm_fusion_dot_44 40.8 38.8 matched canonical",
        "gemm_fusion_dot_50 33.4 33.5 matched canonical",
    ]
    back = group_kernels(diff("kernel_stats", RECOMPUTED, STORED, per="run"), "kernel_name")
    assert texts(back, columns) == [
        "gemm_fusion_dot_50 (baseline's) 40.7 – removed –",
        "gemm_fusion_dot_50 38.8 40.8 matched canonical",
        "gemm_fusion_dot_58 33.5 33.4 matched canonical",
    ]


def notes(before: pd.DataFrame, after: pd.DataFrame) -> tuple[str, ...]:
    ours, theirs = run("before"), run("after")
    ours.frames["kernel_stats"], theirs.frames["kernel_stats"] = before, after
    return compare(ours, theirs).notes


def test_the_note_on_names_of_kernels_names_matched_ones_alone() -> None:
    assert notes(STORED, RECOMPUTED) == (
        "Kernel names without what compilers add are compared: `gemm_fusion_dot_44` of the baseline is "
        "`gemm_fusion_dot_50` of the candidate (and 1 more).",
    )
    removed = table("kernel_stats", kernel_name=["fusion_105"], op_name=[ATTENTION])
    added = table("kernel_stats", kernel_name=["fusion_157"], op_name=[AGAIN])
    assert set(diff("kernel_stats", removed, added)["status"]) == {"removed", "added"}
    assert notes(removed, added) == ()


def test_a_kernel_that_is_two_in_the_other_run_is_two_groups() -> None:
    ours = table("kernel_stats", kernel_name=["fusion_1", "fusion_1"], op_name=["a", "b"], occurrences=[1, 1])
    theirs = table("kernel_stats", kernel_name=["fusion_2", "fusion_3"], op_name=["a", "b"], occurrences=[1, 1])
    for one, other, names in (
        (ours, theirs, {"fusion_1", "fusion_1 → fusion_3"}),
        (theirs, ours, {"fusion_2", "fusion_3"}),
    ):
        groups = group_kernels(diff("kernel_stats", one, other, per="run"), "kernel_name")
        assert set(groups["kernel_name"]) == names
        assert set(groups["status"]) == {"matched"}
    by_both = group_kernels(diff("kernel_stats", ours, theirs, per="run"), "kernel_and_op")
    assert texts(by_both, ["kernel_name", "op_name"]) == ["fusion_1 a", "fusion_1 b"], "the op tells them apart"


def test_a_host_of_one_run_alone_counts_with_the_same_kernels_of_other_hosts() -> None:
    ours = table("kernel_stats", host=["a", "b"], kernel_name=["fusion_1"] * 2, op_name=["x"] * 2, occurrences=[1, 2])
    theirs = table("kernel_stats", host=["a"], kernel_name=["fusion_7"], op_name=["x"], occurrences=[4])
    groups = group_kernels(diff("kernel_stats", ours, theirs, per="run"), "kernel_name")
    assert texts(groups, ["kernel_name", *both("occurrences"), "status"]) == ["fusion_1 3 4 matched"]


def test_each_row_counts_under_one_kernel_and_op() -> None:
    rows = diff("kernel_stats", BEFORE, AFTER)
    counted = counted_under(rows)
    added = rows["kernel_name"] == "f<int>(float*, long)"
    assert counted.loc[added, "kernel_name"].tolist() == ["void f<int>(float*)"]
    fast = rows["kernel_name"] == "fast_gemm"
    assert counted.loc[fast, "op_name"].tolist() == ["dense_1/MatMul"]


def test_candidates_stay_apart_and_in_their_order() -> None:
    ours, first, second = run("before"), run("z"), run("a")
    ours.frames["kernel_stats"] = BEFORE
    first.frames["kernel_stats"] = second.frames["kernel_stats"] = AFTER
    groups = group_kernels(compare(ours, first, second).table("kernel_stats"), "kernel_name")
    assert groups["candidate"].drop_duplicates().tolist() == ["z", "a"]
    assert len(groups) == 8


def test_a_grouping_there_is_not_is_an_error() -> None:
    with pytest.raises(Unknown, match="unknown grouping 'color'"):
        group_kernels(diff("kernel_stats", BEFORE, AFTER), "color")  # type: ignore[arg-type]


def test_without_kernels_there_are_no_groups() -> None:
    empty = table("kernel_stats", kernel_name=[])
    for by in KEYS:
        assert group_kernels(diff("kernel_stats", empty, empty), by).empty


kernel_rows = st.lists(
    st.tuples(
        st.sampled_from(["k", "void f<int>(float*)", "f<int>(float*, long)", "fusion_1", "fusion_2"]),
        st.sampled_from(["", "a", "a_1", "a_2", "b/c"]),
        st.sampled_from(["1,1,1", "2,1,1"]),
        st.integers(1, 9),
    ),
    max_size=8,
    unique_by=lambda row: row[:3],
)


def frame_of(rows: list[tuple[str, str, str, int]]) -> pd.DataFrame:
    columns = dict(zip(("kernel_name", "op_name", "grid_dim", "occurrences"), zip(*rows, strict=True), strict=False))
    lists = {name: list(values) for name, values in columns.items()} or {"kernel_name": []}
    counts = lists.get("occurrences", [])
    return table("kernel_stats", **lists, total_duration_us=[float(2 * n) for n in counts])


@law(15)
@given(kernel_rows, kernel_rows, st.sampled_from(list(KEYS)))
def test_grouping_loses_nothing(before, after, by) -> None:
    rows = diff("kernel_stats", frame_of(before), frame_of(after), per="run")
    groups = group_kernels(rows, by)
    assert not groups.duplicated(["candidate", *KEYS[by]]).any()
    for column in (c for metric in METRICS for c in both(metric)):
        assert groups[column].sum() == pytest.approx(rows[column].sum())
    there = groups["occurrences_baseline"].notna()
    assert (groups["avg_duration_us_baseline"][there] == 2.0).all()


@law(15)
@given(kernel_rows, kernel_rows, st.sampled_from(list(KEYS)))
def test_swapped_groups_are_the_mirror_image(before, after, by) -> None:
    frames = frame_of(before), frame_of(after)
    there, back = (group_kernels(diff("kernel_stats", *of, per="run"), by) for of in (frames, frames[::-1]))
    cells, mirrored = (
        sorted(frame[both("total_duration_us")[::order]].fillna(0).itertuples(index=False, name=None))
        for frame, order in ((there, 1), (back, -1))
    )
    assert cells == mirrored


PAIRS = [
    ("filters_512_128_simulated", "filters_16_8_simulated"),
    ("jax_conv_08", "jax_conv_legacy"),
    ("jax_elementwise", "jax_conv_08"),
    ("tf_gpu", "filters_16_8_simulated"),
    ("h100_store_activations", "h100_recompute_activations"),
    ("h100_16_8", "h100_512_128"),
]


@pytest.mark.parametrize("by", list(KEYS))
@pytest.mark.parametrize("names", PAIRS)
def test_real_kernels_swapped_are_the_mirror_image_and_sum_to_the_whole(names, by) -> None:
    ours, theirs = (loaded_run(name) for name in names)
    columns = ["total_duration_us", "occurrences", "avg_duration_us", "min_duration_us", "max_duration_us"]
    there = group_kernels(compared_runs(*names, per="run").table("kernel_stats"), by)
    back = group_kernels(compared_runs(*names[::-1], per="run").table("kernel_stats"), by)
    for side, other, run_ in (("baseline", "candidate", ours), ("candidate", "baseline", theirs)):
        cells, mirrored = (
            frame[[f"{name}_{role}" for name in columns]].astype("float64").dropna().round(6).to_numpy().tolist()
            for frame, role in ((there, side), (back, other))
        )
        np.testing.assert_allclose(sorted(cells), sorted(mirrored))
        whole = run_.table("kernel_stats")["total_duration_us"].sum()
        assert there[f"total_duration_us_{side}"].sum() == pytest.approx(whole)
    assert sorted(there["status"].replace({"added": "removed", "removed": "added"})) == sorted(back["status"])


def test_kernels_that_a_newer_profiler_calls_kd_are_the_same_kernels() -> None:
    ours, theirs = loaded_run("jax_conv_08"), loaded_run("jax_conv_legacy")
    groups = group_kernels(compare(ours, theirs).table("kernel_stats"), "kernel_name")
    matched = groups[groups["status"] == "matched"]
    assert len(matched) == theirs.table("kernel_stats")["kernel_name"].nunique()
    assert set(matched["match"]) == {"canonical"}


COPIES = table(
    "copies",
    device=["0", "1", "0"],
    kind=["host to device", "host to device", "device to host"],
    occurrences=[2, 3, 1],
    size_bytes=[1000, 3000, None],
    duration_us=[10.0, 30.0, 5.0],
    bandwidth_bytes_per_s=[1e8, 1e8, None],
)


def test_copies_add_up_by_kind_and_bandwidth_is_bytes_by_time() -> None:
    half = COPIES.assign(size_bytes=[1000, 6000, 500], bandwidth_bytes_per_s=[1e8, 2e8, 1e8])
    groups = group_copies(diff("copies", COPIES, half, per="run"))
    metrics = ["occurrences", "size_bytes", "duration_us", "bandwidth_bytes_per_s"]
    assert texts(groups, ["kind", *(c for metric in metrics for c in both(metric)), "status"]) == [
        "host to device 5 5 4000 7000 40.0 40.0 100000000.0 175000000.0 matched",
        "device to host 1 1 – 500 5.0 5.0 – 100000000.0 matched",
    ]


def test_a_size_that_one_copy_does_not_tell_is_missing_from_the_sum() -> None:
    some = COPIES.assign(size_bytes=pd.array([1000, None, None], dtype="Int64"))
    groups = group_copies(diff("copies", some, COPIES, per="run")).set_index("kind")
    assert pd.isna(groups.loc["host to device", "size_bytes_baseline"])
    assert groups.loc["host to device", "size_bytes_candidate"] == 4000


@pytest.mark.parametrize("name", ["tf_gpu", "jax_conv_legacy", "filters_16_8_simulated"])
def test_bandwidth_of_real_copies_is_all_bytes_by_all_time(name) -> None:
    copies = loaded_run(name).table("copies")
    groups = group_copies(diff("copies", copies, copies.iloc[:0], per="run"))
    expected = groups["size_bytes_baseline"] / groups["duration_us_baseline"] * 1e6
    assert groups["bandwidth_bytes_per_s_baseline"].tolist() == pytest.approx(expected.tolist())
