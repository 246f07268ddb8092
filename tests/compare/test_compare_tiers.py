"""How kernels, memory and input ops pair, tier by tier, and what is said of them."""

from __future__ import annotations

import pandas as pd
import pytest
from compare_runs import FakeRun, diff, run, table

from tfcompare.comparison import compare


def pairs(rows: pd.DataFrame, key: str, other: str) -> set[tuple[str, str, str, str]]:
    """(baseline's key, candidate's key, status, tier); the absent side's is empty."""
    ours = rows[key].where(rows["status"] != "added", "")
    theirs = rows[other].where(rows["status"] != "removed", "")
    return set(zip(ours, theirs, rows["status"], rows["match"].fillna(""), strict=True))


def test_kernels_pair_by_launch_then_by_another_spelling_then_by_their_place() -> None:
    before = table(
        "kernel_stats",
        kernel_name=["k", "void f<int>(float*)", "big", "twice", "twice", "gone"],
        op_name=["a", "b", "c", "d", "d", "e"],
        grid_dim=["1,1,1", "2,1,1", "64,1,1", "1,1,1", "2,1,1", "1,1,1"],
    )
    after = table(
        "kernel_stats",
        kernel_name=["k", "f<int>(float*, long)", "big", "twice", "twice", "new"],
        op_name=["a", "b", "c", "d", "d", "f"],
        grid_dim=["1,1,1", "2,1,1", "8,1,1", "3,1,1", "4,1,1", "1,1,1"],
    )
    rows = diff("kernel_stats", before, after)
    assert pairs(rows, "kernel_name", "kernel_name_candidate") == {
        ("k", "k", "matched", "exact"),
        ("void f<int>(float*)", "f<int>(float*, long)", "matched", "canonical"),
        ("big", "big", "matched", "structural"),
        ("twice", "", "removed", ""),
        ("", "twice", "added", ""),
        ("gone", "", "removed", ""),
        ("", "new", "added", ""),
    }
    big = rows[rows["match"] == "structural"].iloc[0]
    assert (big["grid_dim"], big["grid_dim_candidate"]) == ("64,1,1", "8,1,1")


def test_registers_that_no_side_tells_are_equal() -> None:
    kernels = table("kernel_stats", kernel_name=["k", "k"], registers_per_thread=[None, 16])
    assert diff("kernel_stats", kernels, kernels)["match"].tolist() == ["exact", "exact"]


def test_memory_of_another_shape_is_the_same_memory_grown() -> None:
    sizes = {"memory_id": ["GPU"] * 3, "op_name": ["conv", "bias", "old"]}
    before = table("memory_peak", **sizes, shape=["[512]", "[8]", "[1]"], allocation_bytes=[4000, 32, 1])
    after = table("memory_peak", **sizes, shape=["[16]", "[8]", "[1]"], allocation_bytes=[5000, 16, 1])
    rows = diff("memory_peak", before, after).set_index("op_name")
    assert rows["match"].to_dict() == {"conv": "structural", "bias": "exact", "old": "exact"}
    assert rows["verdict"].to_dict() == {"conv": "more", "bias": "less", "old": "same"}
    assert rows.loc["conv", "shape_candidate"] == "[16]"
    assert rows.loc["conv", "allocation_bytes_delta"] == 1000


def test_bytes_are_judged_and_times_are_not() -> None:
    memory = table("memory_summary", memory_id=["GPU"], peak_bytes=[10])
    more = table("memory_summary", memory_id=["GPU"], peak_bytes=[11])
    assert diff("memory_summary", memory, more)["verdict"].tolist() == ["more"]
    assert diff("memory_summary", more, memory)["verdict"].tolist() == ["less"]
    assert diff("memory_summary", memory, table("memory_summary", memory_id=["CPU"])).isna()["verdict"].all()
    kernels = table("kernel_stats", kernel_name=["k"], total_duration_us=[5.0])
    assert diff("kernel_stats", kernels, kernels)["verdict"].tolist() == ["untested"]


@pytest.mark.parametrize(("per", "before", "after"), [("step", 2.5, 1.0), ("run", 10, 4)])
def test_sums_are_put_per_step_and_levels_are_not(per: str, before: float, after: float) -> None:
    ours, theirs = run("before", step_count=4), run("after", step_count=4)
    for each, count in ((ours, 10), (theirs, 4)):
        each.frames["memory_summary"] = table(
            "memory_summary", memory_id=["GPU"], allocations=[count], peak_bytes=[100]
        )
    row = compare(ours, theirs, per=per).table("memory_summary").iloc[0]
    name = "allocations_per_step" if per == "step" else "allocations"
    assert (row[f"{name}_baseline"], row[f"{name}_candidate"]) == (before, after)
    assert (row["peak_bytes_baseline"], row["peak_bytes_ratio"]) == (100, 1.0)


def test_each_host_of_the_candidate_stands_beside_its_counterpart() -> None:
    ours: FakeRun = run("before", hosts=("a", "b"))
    theirs: FakeRun = run("after", hosts=("b", "a"))
    ours.frames["copies"] = table("copies", host=["a", "b"], kind=["peer", "peer"], duration_us=[1.0, 2.0])
    theirs.frames["copies"] = table("copies", host=["b", "a"], kind=["peer", "peer"], duration_us=[2.0, 1.0])
    assert (compare(ours, theirs).table("copies")["duration_us_per_step_delta"] == 0).all()


def test_allocations_pair_by_op_before_shape() -> None:
    """With half the filters, the kernel of one side has the shape that the bias had, and is no bias."""
    op = {"op_name": ["conv"] * 2, "memory_id": ["gpu"] * 2, "region_type": ["output"] * 2, "data_type": ["float"] * 2}
    before = table("memory_peak", **op, shape=["[64,16]", "[16]"], allocation_bytes=[4096, 64])
    after = table("memory_peak", **op, shape=["[16]", "[4]"], allocation_bytes=[64, 16])
    rows = diff("memory_peak", before, after)
    assert pairs(rows, "shape", "shape_candidate") == {
        ("[64,16]", "[16]", "matched", "structural"),
        ("[16]", "[4]", "matched", "structural"),
    }
    less = table("memory_peak", **{key: texts[:1] for key, texts in op.items()}, shape=["[16]"], allocation_bytes=[64])
    assert pairs(diff("memory_peak", before, less), "shape", "shape_candidate") == {
        ("[64,16]", "", "removed", ""),
        ("[16]", "[16]", "matched", "exact"),
    }
    forged = table("memory_peak", **op, shape=[f"[{'9' * 5000}]", "[]"], allocation_bytes=[1, 1])
    assert set(diff("memory_peak", forged, forged)["status"]) == {"matched"}
