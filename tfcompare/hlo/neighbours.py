"""What surrounds instructions in their program, as lines of text: operands, users, and the parts of fusions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from tfcompare.hlo.contents import Lists
from tfcompare.hlo.expression import expressions, signatures
from tfcompare.hlo.program import Program
from tfcompare.schema.arrays import Int64

_PASSING = frozenset({"bitcast", "get-tuple-element", "tuple"})
"""They only hand on what others computed, and never run."""
_NOTHING_COMPUTED = _PASSING | {"parameter", "constant"}
"""Their ops are those whose values they stand for."""
_MOST_LINES = 32
_MOST_PASSED = 100


def operand_texts(program: Program, rows: Int64) -> list[str]:
    """The instructions whose values each one uses, one per line, for instance `%dot.1 = f32[8,4] dot`.

    Behind bitcasts, tuples and their elements, those from which they come. Raises `NotAProfile` for damage.
    """
    operands = Lists.grouped(*program.operands.known(program.every), len(program))
    return _lines(program, _reachable(program, rows, operands), signatures)


def user_texts(program: Program, rows: Int64) -> list[str]:
    """The instructions that use the value of each one, as `operand_texts`. Raises `NotAProfile` for damage."""
    user, used = program.operands.known(program.every)
    pairs = np.unique(used * len(program) + user)
    users = Lists.grouped(*np.divmod(pairs, max(1, len(program))), len(program))
    return _lines(program, _reachable(program, rows, users), signatures)


def fused_texts(program: Program, rows: Int64) -> list[str]:
    """The instructions that each fusion consists of, one per line, as `expressions`; empty for others.

    Raises `NotAProfile` for damage.
    """
    fusions = np.flatnonzero(program.has_opcode(rows, "fusion".__eq__))
    owner, called = program.called.known(rows[fusions])
    inner = Lists(program.first, program.every)
    parts: list[list[int]] = [[] for _ in rows]
    for fusion, computation in zip(fusions[owner].tolist(), called.tolist(), strict=True):
        if len(parts[fusion]) <= _MOST_LINES:
            parts[fusion] += inner.of(computation, _MOST_LINES + 1)
    return _lines(program, parts, expressions)


def source_ops(program: Program, rows: Int64) -> list[str]:
    """The framework's ops that each instruction computes, one per line, sorted; of a fusion those of its parts.

    Empty where unknown. Raises `NotAProfile` for damage.
    """
    fusions = np.flatnonzero(program.has_opcode(rows, "fusion".__eq__))
    owner, called = program.called.known(rows[fusions])
    inside, _, parts = Lists(program.first, program.every).flat(called)
    owners = np.concatenate([np.arange(len(rows)), fusions[owner[inside]]])
    every = np.concatenate([rows, parts])
    counts = ~program.has_opcode(every, _NOTHING_COMPUTED.__contains__)
    ops: list[set[str]] = [set() for _ in rows]
    for at, name in zip(owners[counts].tolist(), program.op_names(every[counts]).tolist(), strict=True):
        if name and len(ops[at]) < _MOST_LINES:
            ops[at].add(name)
    return ["\n".join(sorted(names)) for names in ops]


def _reachable(program: Program, rows: Int64, following: Lists) -> list[list[int]]:
    """The instructions that follow each one directly or after those that only hand on, each once; the first few."""
    is_passing = program.has_opcode(program.every, _PASSING.__contains__)
    out: list[list[int]] = [[] for _ in rows]
    for row, found in zip(rows.tolist(), out, strict=True):
        seen: set[int] = set()
        waiting, passed = [row], 0
        while waiting and passed < _MOST_PASSED and len(found) <= _MOST_LINES:
            passed += 1
            for one in following.of(waiting.pop(), _MOST_LINES + 1):
                if one not in seen:
                    seen.add(one)
                    (waiting if is_passing[one] else found).append(one)
    return out


def _lines(
    program: Program, rows: Sequence[Sequence[int]], texts_of: Callable[[Program, Int64], list[str]]
) -> list[str]:
    """For each of `rows` the texts of its instructions, at most `_MOST_LINES`, with `…` as the last of more."""
    shown = [some if len(some) <= _MOST_LINES else some[: _MOST_LINES - 1] for some in rows]
    found = np.unique(np.fromiter(chain.from_iterable(shown), np.int64))
    texts = dict(zip(found.tolist(), texts_of(program, found), strict=True))
    return [
        "\n".join([*map(texts.__getitem__, some), *(["…"] if len(every) > _MOST_LINES else [])])
        for some, every in zip(shown, rows, strict=True)
    ]
