"""Shapes and places of ops, as profiles have them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from tests.frames.tables import host, run_with
from tests.model_family.family import recorded
from tests.profiles import loaded_run
from tests.xspace_builder import event, plane
from tfcompare.frames.ops.op_parts import PART_TEXTS, OpEvents, op_parts
from tfcompare.tables.op_evidence import op_evidence

_PARTS = pa.record_batch([list("ABC"), list("abc"), [""] * 3, [""] * 3], PART_TEXTS)


def places(part: list[int], step: list[int], start_ps: list[int]) -> dict[str, tuple[int, int]]:
    """The first and last place of each part of some events, which are sorted by start."""
    ones = np.ones(len(part), np.int64)
    numbers = dict.fromkeys(("occurrences", "executions", "total_ps", "self_ps"), ones)
    rows, part_of, step_of = (np.array(values, np.int32) for values in (range(len(part)), part, step))
    of_events = {"rows": rows, "part": part_of, "step": step_of, "start_ps": np.array(start_ps, np.int64)}
    where = {"device": "/host:CPU", "host_or_device": "Host", "parts": _PARTS, "idle_ps": 0}
    found = op_parts([OpEvents(**where, **of_events, **numbers, is_eager=ones > 1)], np.array([5, 6])).parts
    return {row["op_name"]: (row["earliest"], row["latest"]) for row in found.to_pylist()}


def test_a_place_is_that_of_the_first_event_in_each_step() -> None:
    assert places([0, 1, 0, 1, 0], [0, 0, 0, 1, 1], [10, 20, 30, 40, 50]) == {"a": (0, 1), "b": (0, 1)}
    assert places([0, 1, 0, 1], [0, 0, 1, 1], [10, 20, 40, 50]) == {"a": (0, 0), "b": (1, 1)}


def test_what_runs_outside_of_all_steps_has_a_place_only_where_there_are_no_steps() -> None:
    assert places([0, 1, 2], [-1, 0, 0], [10, 20, 30]) == {"a": (-1, -1), "b": (0, 0), "c": (1, 1)}
    assert places([0, 1], [-1, -1], [20, 10]) == {"a": (1, 1), "b": (0, 0)}


def test_shapes_are_those_of_the_allocations_of_an_op() -> None:
    evidence = recorded("auto").tables.op_evidence()
    assert evidence.shapes["model_1/dense_1/Relu"] == "[64,96]"
    assert evidence.shapes["gradient_tape/model_1/dense_3_1/MatMul/MatMul_1"] == "[128,160]"
    forward = [f"model_1/{layer}/Relu" for layer in ("dense_1", "dense_1_2", "dense_2_1", "dense_3_1")]
    found = [evidence.places[name] for name in forward]
    assert found == sorted(found)


def test_shapes_are_no_evidence_of_an_op_with_one_that_is_cut() -> None:
    allocations = [
        event("MemoryAllocation", at, 0, tf_op=op, shape=shape, addr=at, bytes_allocated=1)
        for at, (op, shape) in enumerate([("pool", "[5]"), ("pool", "\x00250"), ("relu", "\x00250]")])
    ]
    ops = [event("pool:MaxPool", 10, 2), event("relu:Relu", 14, 2)]
    parts = run_with(host(*ops, *allocations)).hosts[0].table("op_parts").to_pylist()
    assert {part["op_name"]: part["shapes"] for part in parts} == {"pool": "", "relu": "[250]"}


def test_kernels_have_launches() -> None:
    run = loaded_run("gpu_filters_16_8")
    evidence = run.tables.op_evidence()
    named = run.table("kernel_stats").query("op_name != ''")
    assert set(evidence.launches) == set(named["op_name"])
    assert set(evidence.names) >= set(evidence.places)


def test_evidence_of_several_hosts_spans_their_places() -> None:
    columns = ["host_or_device", "op_name", "shapes", "earliest", "latest"]
    hosts = [pd.DataFrame([row], columns=columns) for row in (("Host", "a", "", 3, 4), ("Host", "a", "[2]", 1, 2))]
    kernels = pd.DataFrame({"op_name": [], "grid_dim": [], "block_dim": []}, dtype="str")
    programs = pd.DataFrame({"category": ["loop fusion", "dot", "fusion"], "op_name": ["a", "b", ""]}, dtype="str")
    evidence = op_evidence(pd.concat(hosts), kernels, programs)
    assert evidence.fusions == {"a"}
    assert evidence.places == {"a": (1, 4)}
    assert evidence.shapes == {"a": "[2]"}


def test_a_profile_without_ops_has_no_evidence() -> None:
    assert run_with(plane("/host:metadata")).tables.op_evidence().names == frozenset()
