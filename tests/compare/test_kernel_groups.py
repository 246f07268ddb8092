"""Kernels and copies added up: each side first, then compared, and nothing lost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from compare_runs import diff, run, table, text
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tests.profiles import compared_runs, loaded_run
from tfcompare import compare
from tfcompare.compare.groups.aggregate import group_copies
from tfcompare.compare.groups.kernel_groups import KEYS, group_kernels
from tfcompare.compare.per_device import workers_of
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


def both(metric: str) -> list[str]:
    return [f"{metric}_baseline", f"{metric}_candidate"]


def grouped(before: pd.DataFrame, after: pd.DataFrame, by: str = "kernel_name") -> pd.DataFrame:
    return group_kernels(diff("kernel_stats", before, after, per="run"), by)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (
            "kernel_name",  # of two spellings, it counts under the baseline's
            [
                "gemm 148.0 50.0 matched exact",
                "old 5.0 – removed –",
                "fast_gemm – 4.0 added –",
                "void f<int>(float*) 12.0 15.0 matched canonical",
            ],
        ),
        (
            "op_name",  # a layer numbered anew counts under the baseline's name whatever kernel it runs
            [
                "dense/MatMul 140.0 50.0 matched canonical",
                "elu – 9.0 added –",
                "relu 12.0 6.0 matched exact",
                " 5.0 – removed –",
                "dense_1/MatMul 8.0 4.0 matched canonical",
            ],
        ),
    ],
)
def test_what_has_another_name_counts_under_the_baselines(by: str, expected: list[str]) -> None:
    assert text(grouped(BEFORE, AFTER, by), [by, *both("total_duration_us"), "status", "match"]) == expected


def test_averages_are_those_of_all_runs_and_shortest_and_longest_of_all_rows() -> None:
    groups = grouped(BEFORE, AFTER).set_index("kernel_name")
    gemm = groups.loc["gemm"]
    assert gemm["avg_duration_us_baseline"] == 148 / 16
    assert (gemm["min_duration_us_baseline"], gemm["max_duration_us_baseline"]) == (1.0, 21.0)
    assert gemm["avg_duration_us_delta"] == 5.0 - 148 / 16
    assert gemm["max_duration_us_ratio"] == 6 / 21
    assert bool(gemm["is_op_tensor_core_eligible_baseline"]) is True
    assert pd.isna(groups.loc["old", "avg_duration_us_candidate"])
    assert pd.isna(groups.loc["old", "is_kernel_using_tensor_core_candidate"])
    assert bool(groups.loc["fast_gemm", "is_kernel_using_tensor_core_candidate"]) is True


def test_candidates_stay_apart_and_in_their_order_and_another_grouping_is_an_error() -> None:
    ours, first, second = run("before"), run("z"), run("a")
    ours.frames["kernel_stats"] = BEFORE
    first.frames["kernel_stats"] = second.frames["kernel_stats"] = AFTER
    rows = compare(ours, first, second).diffs("kernel_stats")
    groups = group_kernels(rows, "kernel_name")
    assert groups["candidate"].drop_duplicates().tolist() == ["z", "a"]
    assert len(groups) == 8
    with pytest.raises(Unknown, match="unknown grouping 'color'"):
        group_kernels(rows, "color")  # type: ignore[arg-type]


def kernels(*rows: tuple[str, str, float], **more: list[str]) -> pd.DataFrame:
    """`kernel_stats` from each kernel's name, its op and its time."""
    names, ops, times = (list(cells) for cells in zip(*rows, strict=True))
    return table("kernel_stats", kernel_name=names, op_name=ops, total_duration_us=times, **more)


AGAIN = "jit(step)/checkpoint/rematted_computation/dot"
STORED = kernels(("dot_fusion_50", "jit(step)/attention/dot", 33.4), ("dot_fusion_44", "jit(step)/out/dot", 40.8))
RECOMPUTED = kernels(
    ("dot_fusion_58", "jit(step)/attention/dot", 33.5),
    ("dot_fusion_50", "jit(step)/out/dot", 38.8),
    ("dot_fusion_50", AGAIN, 40.7),
)


def test_kernels_that_xla_numbered_group_as_their_rows_are_matched() -> None:
    columns = ["kernel_name", *both("total_duration_us"), "status", "match"]
    assert text(grouped(STORED, RECOMPUTED), columns) == [
        "dot_fusion_50 (candidate's) – 40.7 added –",
        "dot_fusion_44 40.8 38.8 matched canonical",
        "dot_fusion_50 33.4 33.5 matched canonical",
    ]
    assert text(grouped(RECOMPUTED, STORED), columns) == [
        "dot_fusion_50 (baseline's) 40.7 – removed –",
        "dot_fusion_50 38.8 40.8 matched canonical",
        "dot_fusion_58 33.5 33.4 matched canonical",
    ]


def test_the_note_on_names_of_kernels_names_matched_ones_alone() -> None:
    def notes(before: pd.DataFrame, after: pd.DataFrame) -> tuple[str, ...]:
        ours, theirs = run("before"), run("after")
        ours.frames["kernel_stats"], theirs.frames["kernel_stats"] = before, after
        return compare(ours, theirs).notes

    assert notes(STORED, RECOMPUTED) == (
        "Kernel names are compared without what compilers add: “dot_fusion_44” of the baseline is "
        "“dot_fusion_50” of the candidate (and 1 more).",
    )
    removed, added = kernels(("fusion_105", "jit(step)/attention/dot", 1.0)), kernels(("fusion_157", AGAIN, 1.0))
    assert set(diff("kernel_stats", removed, added)["status"]) == {"removed", "added"}
    assert notes(removed, added) == ()


def test_a_kernel_that_is_two_in_the_other_run_is_two_groups() -> None:
    ours = kernels(("fusion_1", "a", 1.0), ("fusion_1", "b", 1.0))
    theirs = kernels(("fusion_2", "a", 1.0), ("fusion_3", "b", 1.0))
    for sides, names in (
        ((ours, theirs), {"fusion_1", "fusion_1 → fusion_3"}),
        ((theirs, ours), {"fusion_2", "fusion_3"}),
    ):
        groups = grouped(*sides)
        assert set(groups["kernel_name"]) == names
        assert set(groups["status"]) == {"matched"}
    by_both = grouped(ours, theirs, "kernel_and_op")
    assert text(by_both, ["kernel_name", "op_name"]) == ["fusion_1 a", "fusion_1 b"], "the op tells them apart"


def test_the_same_kernels_of_all_hosts_count_together() -> None:
    launches = kernels(*[("k", "x", 1.0)] * 3, host=["a", "a", "b"], grid_dim=["1,1,1", "2,1,1", "1,1,1"])
    columns = ["kernel_name", *both("total_duration_us"), "status"]
    assert text(grouped(launches, launches, "kernel_and_op"), columns) == ["k 3.0 3.0 matched"]
    ours, theirs = kernels(*[("fusion_1", "x", 1.5)] * 2, host=["a", "b"]), kernels(("fusion_7", "x", 4.0), host=["a"])
    assert text(grouped(ours, theirs), columns) == ["fusion_1 3.0 4.0 matched"], "one run has a host alone"


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
    names, ops, grids, counts = ([row[i] for row in rows] for i in range(4))
    times = [float(2 * count) for count in counts]
    return table(
        "kernel_stats", kernel_name=names, op_name=ops, grid_dim=grids, occurrences=counts, total_duration_us=times
    )


@law(5)
@given(kernel_rows, kernel_rows, st.sampled_from(list(KEYS)))
def test_grouping_loses_nothing_and_swapped_groups_are_the_mirror_image(before, after, by) -> None:
    frames = frame_of(before), frame_of(after)
    rows, mirrored_rows = (diff("kernel_stats", *of, per="run") for of in (frames, frames[::-1]))
    groups, back = (group_kernels(of, by) for of in (rows, mirrored_rows))
    assert not groups.duplicated(["candidate", *KEYS[by]]).any()
    for column in (c for metric in ("occurrences", "total_duration_us") for c in both(metric)):
        assert groups[column].sum() == pytest.approx(rows[column].sum())
    there = groups["occurrences_baseline"].notna()
    assert (groups["avg_duration_us_baseline"][there] == 2.0).all()
    cells, mirrored = (
        sorted(frame[both("total_duration_us")[::order]].fillna(0).itertuples(index=False, name=None))
        for frame, order in ((groups, 1), (back, -1))
    )
    assert cells == mirrored


PAIRS = [
    ("gpu_filters_512_128", "gpu_filters_16_8"),
    pytest.param("jax_conv_08", "jax_conv_legacy", marks=pytest.mark.thorough),
    pytest.param("tf_gpu", "gpu_filters_16_8", marks=pytest.mark.thorough),
    pytest.param("h100_store_activations", "h100_recompute_activations", marks=pytest.mark.thorough),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_real_kernels_swapped_are_the_mirror_image_and_sum_to_the_whole(one: str, other: str) -> None:
    columns = ["total_duration_us", "occurrences", "avg_duration_us", "min_duration_us", "max_duration_us"]
    forth, back = compared_runs(one, other, "run"), compared_runs(other, one, "run")
    for by in KEYS:
        there, again = (group_kernels(both_ways.diffs("kernel_stats"), by) for both_ways in (forth, back))
        for side, mirrored, name in (("baseline", "candidate", one), ("candidate", "baseline", other)):
            cells = (
                frame[[f"{column}_{role}" for column in columns]].astype("float64").dropna().round(6).to_numpy()
                for frame, role in ((there, side), (again, mirrored))
            )
            np.testing.assert_allclose(*(sorted(rows.tolist()) for rows in cells))
            devices = workers_of(loaded_run(name), None).devices if forth.of_each else 1
            whole = loaded_run(name).table("kernel_stats")["total_duration_us"].sum() / devices
            assert there[f"total_duration_us_{side}"].sum() == pytest.approx(whole)
        assert sorted(there["status"].replace({"added": "removed", "removed": "added"})) == sorted(again["status"])


def test_kernels_that_a_newer_profiler_calls_kd_are_the_same_kernels() -> None:
    groups = group_kernels(compared_runs("jax_conv_08", "jax_conv_legacy", "run").diffs("kernel_stats"), "kernel_name")
    matched = groups[groups["status"] == "matched"]
    assert len(matched) == loaded_run("jax_conv_legacy").table("kernel_stats")["kernel_name"].nunique()
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
    assert text(groups, ["kind", *(c for metric in metrics for c in both(metric)), "status"]) == [
        "host to device 5 5 4000 7000 40.0 40.0 100000000.0 175000000.0 matched",
        "device to host 1 1 – 500 5.0 5.0 – 100000000.0 matched",
    ]


def test_a_size_that_one_copy_does_not_tell_is_missing_from_the_sum() -> None:
    some = COPIES.assign(size_bytes=pd.array([1000, None, None], dtype="Int64"))
    groups = group_copies(diff("copies", some, COPIES, per="run")).set_index("kind")
    assert pd.isna(groups.loc["host to device", "size_bytes_baseline"])
    assert groups.loc["host to device", "size_bytes_candidate"] == 4000


def test_bandwidth_of_real_copies_is_all_bytes_by_all_time() -> None:
    copies = loaded_run("gpu_filters_16_8").table("copies")
    groups = group_copies(diff("copies", copies, copies.iloc[:0], per="run"))
    expected = groups["size_bytes_baseline"] / groups["duration_us_baseline"] * 1e6
    assert groups["bandwidth_bytes_per_s_baseline"].tolist() == pytest.approx(expected.tolist())
