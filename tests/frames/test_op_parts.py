"""From an event's name to an op (`docs/numbers.md`, rules 1 to 5), and the parts of all hosts of a run."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frames.tables import lines, rows
from tests.laws import law
from tfcompare.frames import HostTables
from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.ops.op_names import parse_op
from tfcompare.frames.ops.op_parts import NO_STEP
from tfcompare.frames.origin import Origin
from tfcompare.tables import op_parts
from tfcompare.tables.op_parts import Columns, OpTimes, Parts, merge_hosts, parts_of_hosts

_PARTS = ["device", "host_or_device", "op_type", "op_name", "part"]
_CELLS = ["step", "occurrences", "total_time_ps", "self_time_ps", "is_eager"]
_GPU, _CPU = "/device:GPU:0", "/host:CPU"
_FAR = 10**17

_Cell = tuple[tuple[str, str, str, str, str], int, int, int, int, bool]


def parts_of(*cells: _Cell) -> OpTimes:
    """Parts from (part, step, occurrences, total, own, eager)."""
    texts = list(dict.fromkeys(part for part, *_ in cells))
    told = [(texts.index(part), *numbers) for part, *numbers in cells]
    dtypes = dict.fromkeys(["part", *_CELLS[:-1]], "int64") | {"is_eager": "bool"}
    parts = Parts(pd.DataFrame(texts, columns=_PARTS, dtype="str"), [np.arange(len(texts))])
    return OpTimes(parts, of_frame(pd.DataFrame(told, columns=["part", *_CELLS]).astype(dtypes)), {})


def of_frame(frame: pd.DataFrame) -> Columns:
    return {str(name): values.to_numpy() for name, values in frame.items()}


def of_all(hosts: list[OpTimes]) -> OpTimes:
    """The parts of hosts with these parts and cells, put together."""
    origin = Origin("", "", "", "", 0, 0.0, 0, 0.0, (), (), "", ())
    rest = {"earliest": -1, "latest": -1, "shapes": ""}
    tables = [
        {
            "op_parts": host_table("op_parts", of_frame(host.parts.frame.assign(**rest))),
            "op_cells": host_table("op_cells", host.cells),
            "op_wall": empty("op_wall"),
        }
        for host in hosts
    ]
    every = [HostTables(str(i), "", origin, "", (), (), "", own) for i, own in enumerate(tables)]
    return merge_hosts(parts_of_hosts(every), every, "op_cells", "op_wall")


def test_cells_of_equal_parts_and_steps_add_up_over_hosts() -> None:
    conv, relu = (_GPU, "Device", "Conv", "c", "k1"), (_GPU, "Device", "Relu", "r", "k2")
    read = (_CPU, "Host", "Read", "h", "h")
    ours = parts_of((conv, NO_STEP, 1, 5, 5, False), (conv, 4, 1, 10, 9, False), (relu, 5, 2, 3, 3, False))
    theirs = parts_of((read, 4, 1, 7, 6, True), (relu, 5, 1, 30, 20, True), (conv, _FAR, 1, 2, 1, False))
    both = of_all([ours, theirs])
    texts = both.parts.frame.iloc[both.cells["part"]].reset_index(drop=True)
    assert rows(texts.join(pd.DataFrame(both.cells).drop(columns="part")), *_PARTS, *_CELLS[:-1]) == lines(f"""
        {_GPU} Device Conv c k1 -1      1  5  5
        {_GPU} Device Conv c k1 4       1 10  9
        {_GPU} Device Conv c k1 {_FAR}  1  2  1
        {_GPU} Device Relu r k2 5       3 33 23
        {_CPU} Host   Read h h  4       1  7  6
    """)
    assert both.cells["is_eager"].tolist() == [False, False, False, True, True]


def test_an_op_of_the_host_has_the_type_that_it_has_first() -> None:
    once = 0, 1, 1, 1, False
    ours = parts_of(((_CPU, "Host", "A", "x", ""), *once))
    theirs = parts_of(((_CPU, "Host", "B", "x", ""), *once), ((_GPU, "Device", "B", "x", ""), *once))
    assert of_all([ours, theirs]).parts.frame["op_type"].tolist() == ["A", "A", "B"]
    assert of_all([theirs]).parts.frame["op_type"].tolist() == ["B", "B"]


_CELL = st.tuples(
    st.sampled_from([(_GPU, "Device", "T", name, part) for name in "ab" for part in "kl"]),
    st.sampled_from([NO_STEP, 0, 1, 2, _FAR]),
    *[st.integers(0, 2**40)] * 3,
    st.booleans(),
)
_HOST = st.lists(_CELL, max_size=8, unique_by=lambda cell: cell[:2]).map(lambda cells: parts_of(*cells))


@law(25)
@given(st.lists(_HOST, min_size=2, max_size=5), st.sampled_from([0, 3, 1 << 18]))
def test_however_many_are_put_together_at_a_time_it_comes_to_the_sums_of_all(
    hosts: list[OpTimes], at_once: int
) -> None:
    every = pd.concat([pd.DataFrame(host.cells).assign(key=key_of(host)) for host in hosts])
    sums = every.groupby(["key", "step"])[_CELLS[1:-1]].sum()
    flags = every.groupby(["key", "step"])["is_eager"].any()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(op_parts, "_MERGE_ROWS", at_once)
        both = of_all(hosts)
    found = pd.DataFrame(both.cells).assign(key=key_of(both)).set_index(["key", "step"]).sort_index()
    assert found.index.is_unique
    pd.testing.assert_frame_equal(found[_CELLS[1:-1]], sums, check_index_type=False)
    assert found["is_eager"].tolist() == flags.tolist()


def key_of(parts: OpTimes) -> list[str]:
    """The name of each cell's op and part."""
    return ["".join(parts.parts.frame.loc[part, ["op_name", "part"]]) for part in parts.cells["part"]]


EXPECTED = """
    1  MemcpyHToD                                    MemcpyHToD                         MemcpyHToD
    1  MEMCPYDtoD                                    MEMCPYDtoD                         MemcpyDToD
    1  MemcpyHtoH_to_somewhere                       MemcpyHtoH_to_somewhere            MemcpyHToH
    1  MemcpyH2D                                     no op
    1  ExecutorState::Process                        no op
    2  Iterator::Root::Prefetch::Map                 Iterator::Root::Prefetch::Map      Dataset
    2  Iterator:                                     Iterator:                          Dataset
    2  Iterators::Root                               no op
    3  model/dense/MatMul:MatMul                     model/dense/MatMul                 MatMul
    3  a_1/b-2>c.d:_FusedMatMul                      a_1/b-2>c.d                        _FusedMatMul
    3  .hidden:Add2                                  .hidden                            Add2
    3  _leading:MatMul                               no op
    3  with[brackets]:MatMul                         no op
    3  a:MatMul#id=1#                                no op
    3  a:b:C                                         no op
    3  a::C                                          no op
    4  jit(f)/mul:mul                                jit(f)/mul                         mul
    4  jit(f)/dot:dot_general[dims=(1,2)]            jit(f)/dot                         dot_general
    4  anything?at!all:_lower9                       anything?at!all                    _lower9
    4  a:Mul[x]                                      no op
    4  jit(f)/while/body/add:                        jit(f)/while/body/add              add
    4  jit(f)/reduce_sum[axes=(0,)]:                 jit(f)/reduce_sum[axes=(0,)]       reduce_sum
    4  scatter-add_2:                                scatter-add_2                      scatter-add
    4  jit(f)/pjit[name=a/b]:                        jit(f)/pjit[name=a/b]              b]
    4  XlaModule:                                    XlaModule                          XlaModule
    4  model/Dense_3:                                model/Dense_3                      Dense
    5  a:(B)                                         no op
    5  é:É                                           no op
"""


@pytest.mark.parametrize("line", lines(EXPECTED))
def test_the_op_in_a_name(line: str) -> None:
    _, full_name, *expected = line.split(" ")
    op = parse_op(full_name)
    assert (list(op) if op else ["no", "op"]) == expected


def test_names_that_no_table_shows() -> None:
    assert parse_op("") is None
    assert parse_op("a:B\n") is None
    assert parse_op("a b:MatMul") is None
    assert parse_op("a b:mul") == ("a b", "mul")
    assert parse_op(":") == ("", "")
    assert parse_op("jit(f)/dot:dot_general[a\nb]") == ("jit(f)/dot", "dot_general")
