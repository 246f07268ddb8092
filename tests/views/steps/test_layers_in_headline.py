"""Layers in the headline: the work of one, and the time of one that only one side has."""

from __future__ import annotations

import pytest

from tests.compare.compare_runs import FakeRun, op_stats, run, table
from tfcompare.compare.pairs import pair_with
from tfcompare.comparison import compare
from tfcompare.views.steps.causes import cause

Ops = dict[str, tuple[float, str, float]]
"""The time in µs, shape and FLOPs of each op."""


def working(name: str, ops: Ops) -> FakeRun:
    stats = op_stats([("Device", "dot_general", op, 1, us) for op, (us, _, _) in ops.items()])
    made = run(name, stats.assign(flops=[flops for _, _, flops in ops.values()], bound_by="compute"), content=name)
    made.frames["op_shapes"] = table(
        "op_shapes",
        op_name=list(ops),
        tensor=["result"] * len(ops),
        shape=[shape for _, shape, _ in ops.values()],
        dimensions=[""] * len(ops),
    )
    return made


@pytest.mark.parametrize(("unknown", "work"), [(False, ", 3× the FLOPs in `attention`"), (True, "")])
def test_the_work_of_a_layer_is_that_of_all_its_ops(unknown: bool, work: str) -> None:
    """The op that changed most does 4 times as much, another one of the layer twice as much."""
    project, score = (f"jit(f)/{scope}/dot_general" for scope in ("transpose(jvp(attention))", "jvp(attention)"))
    other = "jit(f)/jvp(mlp)/dot_general"
    ours = working("a", {project: (100, "f32[8,64]", 1e6), score: (50, "f32[8,64]", 1e6), other: (9, "f32[8]", 5e6)})
    twice = float("nan") if unknown else 2e6
    theirs = working(
        "b", {project: (400, "f32[8,128]", 4e6), score: (99, "f32[8,128]", twice), other: (9, "f32[8]", 5e6)}
    )
    found = cause(pair_with(compare(ours, theirs)), ("`a`", "`b`"), is_subject=True)  # type: ignore[arg-type]
    assert found == f"its matmuls have 64 → 128 columns{work}"


@pytest.mark.parametrize(("host", "of_hosts"), [(None, ", all hosts together"), ("x", "")])
def test_the_time_of_a_layer_is_said_to_be_that_of_all_hosts(host: str | None, of_hosts: str) -> None:
    first = [("Host", "MatMul", "model/first/MatMul", 1, 100.0), ("Host", "Relu", "model/first/Relu", 1, 9.0)]
    extra = [("Host", "MatMul", "model/inner/MatMul", 1, 50.0), ("Host", "Relu", "model/inner/Relu", 1, 10.0)]
    sides = []
    for name, rows in (("a", first), ("b", first + extra)):
        frames = {one: {"op_stats": op_stats(rows, one)} for one in ("x", "y")}
        sides.append(run(name, op_stats(rows), content=name, hosts=("x", "y"), by_host=frames))
    found = cause(pair_with(compare(*sides, host=host)), ("`a`", "`b`"), is_subject=True)  # type: ignore[arg-type]
    assert found == f"it has `inner`, which `a` lacks (60.0 µs per step{of_hosts})"
