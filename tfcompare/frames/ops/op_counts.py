"""How often instructions and ops ran, from their events on one plane.

Each event has its own count, so the counts of steps, devices and hosts are sums.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from tfcompare.frames.grouping import combinations, largest
from tfcompare.schema.arrays import Bools, Int32, Int64

_PROGRAM_OR_NUMBER = re.compile(r"^[^/]*/|\.\d+$")


def executions_on_streams(instruction: Int64, program: Int64, runs_once: Bools, kernel: Int32, line: Int32) -> Int64:
    """For each event of a GPU, how many executions of its instruction begin with it: 1 or 0.

    GPUs record kernels, no executions, and an instruction may run one kernel several times. A stream runs one
    instruction after the other, so an execution is a series of events that no other instruction interrupts, on the
    stream with the most of them. An instruction may follow itself, though, where it is alone on its stream or in a
    loop: it ran at least as often as its kernel that ran least often. With `runs_once` (an instruction of the entry
    computation) it ran at most as often as its program, which is counted by those of these instructions that share a
    stream: they cannot follow themselves. And it ran at most as often as its kernel that ran most often.

    `instruction` and `program` are numbers from 0 up, −1 for events of none, which begin none; events are sorted by
    line and start.
    """
    begins = np.zeros(len(instruction), np.int64)
    rows = np.flatnonzero(instruction >= 0)
    if not len(rows):
        return begins
    ran, on, run_by = instruction[rows], line[rows], kernel[rows]
    is_first = np.append(True, (ran[1:] != ran[:-1]) | (on[1:] != on[:-1]))
    stream, runs = _most_frequent(ran, on, is_first.astype(np.int64))
    each = np.ones(len(rows), np.int64)
    most_kernel, most = _most_frequent(ran, run_by, each)
    least_kernel, negative = _most_frequent(ran, run_by, -each)
    limit = np.minimum(most, _program_executions(ran, program[rows], runs_once[rows], on, runs))
    is_too_few, is_too_many = (runs < np.minimum(-negative, limit))[ran], (runs > most)[ran]
    begins[rows] = np.select(
        [is_too_few, is_too_many],
        [run_by == least_kernel[ran], run_by == most_kernel[ran]],
        is_first & (on == stream[ran]),
    )
    return begins


def _program_executions(ran: Int64, program: Int64, runs_once: Bools, line: Int32, runs: Int64) -> Int64:
    """For each instruction, how often its program ran; no limit if it may run more than once per execution, or if no
    stream has two that cannot."""
    out = np.full(len(runs), np.iinfo(np.int64).max)
    once = np.flatnonzero(runs_once)
    firsts, _ = combinations(program[once], line[once], ran[once])
    program, line, ran = program[once[firsts]], line[once[firsts]], ran[once[firsts]]
    _, stream = combinations(program, line)
    is_shared = np.bincount(stream)[stream] > 1
    limit = largest(program[is_shared], runs[ran[is_shared]], int(program.max(initial=-1)) + 1)
    is_limited = limit[program] >= 0
    out[ran[is_limited]] = limit[program[is_limited]]
    return out


def op_occurrences(parts: pa.RecordBatch, part: Int32 | Int64, executions: Int64) -> Int64:
    """For each event of a plane, how many occurrences of its op begin with it.

    An op may be several instructions of one program, or several kernels outside of programs: it ran as often as the one
    of them that ran most often, whose executions are its occurrences. Instructions that are the op itself by their
    name, such as two calls `attention.12` and `attention.18` of type `attention`, count as one that ran so much more
    often. Over different programs they add up: a function that was compiled anew is another program. `parts` is that of
    `OpEvents`; `part` a row of it for each event.
    """
    code = {name: parts[name].dictionary_encode().indices.to_numpy() for name in parts.schema.names}
    ops, op_of_part = combinations(code["op_type"], code["op_name"], code["program"])
    if len(ops) == len(parts):
        return executions
    named = zip(parts["part"].to_pylist(), parts["op_type"].to_pylist(), strict=True)
    text = [kind if _PROGRAM_OR_NUMBER.sub("", name) == kind else name for name, kind in named]
    texts, text_of_part = combinations(op_of_part, pa.array(text, pa.string()).dictionary_encode().indices.to_numpy())
    if len(texts) == len(ops):  # one part per op and program
        return executions
    op, text_of_event = op_of_part[part], text_of_part[part]
    chosen, _ = _most_frequent(op, text_of_event, executions)
    return np.where(text_of_event == chosen[op], executions, 0)


def _most_frequent(group: Int64, member: Int64 | Int32, counts: Int64) -> tuple[Int64, Int64]:
    """(the member with the largest sum of counts in each group, that sum); of equal ones that which comes first.

    Groups are numbers from 0 up; those without events have the member −1 and the sum 0.
    """
    firsts, pair = combinations(group, member)
    total = np.zeros(len(firsts), np.int64)
    np.add.at(total, pair, counts)
    order = np.lexsort((firsts, -total, group[firsts]))
    groups, at = np.unique(group[firsts][order], return_index=True)
    size = int(groups[-1]) + 1 if len(groups) else 0
    members, most = np.full(size, -1, np.int64), np.zeros(size, np.int64)
    members[groups], most[groups] = member[firsts][order][at], total[order][at]
    return members, most
