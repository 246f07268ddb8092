"""From an event's name to an op: `docs/numbers.md`, rules 1 to 5."""

from __future__ import annotations

import pytest

from tests.frames.tables import lines
from tfcompare.frames.ops.op_names import parse_op

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
