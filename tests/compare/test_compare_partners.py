"""What is offered to be paired by hand: what has no partner, the most alike first."""

from __future__ import annotations

from compare_runs import op_stats, run
from test_compare_tiers import diff, table

from tfcompare.compare import compare
from tfcompare.compare.matching.partners import free_names, most_alike_first

BEFORE = op_stats([("Host", "MatMul", "net/query/MatMul", 1, 10.0), ("Host", "Relu", "act", 1, 5.0)])
AFTER = op_stats(
    [
        ("Host", "Relu", "act", 1, 5.0),
        ("Host", "Softmax", "sampler/top_k", 1, 10.0),
        ("Host", "Einsum", "net/fused_query/MatMul_q", 1, 4.0),
        ("Host", "BiasAdd", "net/fused_query/MatMul_q", 1, 2.0),
        ("Host", "IDLE", "IDLE", 1, 99.0),
    ]
)


def test_only_what_has_no_partner_is_offered_each_name_once() -> None:
    rows = compare(run("a", BEFORE), run("b", AFTER), per="run").table("op_stats")
    ours, theirs = (free_names(rows, side, ["op_name"], "self_time_us") for side in ("baseline", "candidate"))
    assert ours["name"].tolist() == [("net/query/MatMul",)]
    assert theirs["name"].tolist() == [("sampler/top_k",), ("net/fused_query/MatMul_q",)]
    assert theirs["time_us"].tolist() == [10.0, 6.0]


def test_the_most_alike_comes_first() -> None:
    rows = compare(run("a", BEFORE), run("b", AFTER), per="run").table("op_stats")
    free = free_names(rows, "candidate", ["op_name"], "self_time_us")
    alike = most_alike_first(free, ("net/query/MatMul",), "MatMul", 10.0)
    assert alike["name"].tolist() == [("net/fused_query/MatMul_q",), ("sampler/top_k",)]
    assert most_alike_first(free.iloc[:0], ("x",), "", 1.0).empty


def test_kernels_are_offered_with_their_ops_and_never_without_one() -> None:
    before = table("kernel_stats", kernel_name=["k"], op_name=["op"], total_duration_us=[1.0])
    after = table("kernel_stats", kernel_name=["fast", "slow", "k"], op_name=["op", "", "op"], grid_dim=["1", "1", "2"])
    free = free_names(diff("kernel_stats", before, after), "candidate", ["op_name", "kernel_name"], "total_duration_us")
    assert free["name"].tolist() == [("op", "fast")]
