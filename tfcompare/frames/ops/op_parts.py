"""Times of ops by step and part, and how often each op ran.

A part is one op as run by one kernel (or HLO instruction of one program). All its numbers add up: over steps, devices
and hosts, and over the parts of an op. Of parts that are one occurrence together, one has it (`op_counts`).

Each event has its own count, so the counts of steps, devices and hosts are sums.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.grouping import any_of, combinations, distinct, largest, smallest, sums
from tfcompare.schema.arrays import Bools, Int32, Int64
from tfcompare.xspace import lookup

NO_STEP = -1

PART_TEXTS = pa.schema([(name, pa.string()) for name in ("op_type", "op_name", "part", "program")])
"""The texts of a part; `program` is empty outside of XLA programs."""

SUMMED = ["occurrences", "total_time_ps", "self_time_ps"]
_PROGRAM_OR_NUMBER = re.compile(r"^[^/]*/|\.\d+$")


@dataclass(frozen=True, eq=False)
class OpParts:
    """The parts of ops that have events, and the time of each in each step.

    `parts` is the table `op_parts`: device (of `OpEvents`), host_or_device, op_type, op_name, part, earliest and
    latest (first and last position of the part in the order in which the parts of a step start; −1 outside all steps),
    and shapes, which are empty (`framework_ops.with_shapes` sets them). `cells` is `op_cells`: part (a row of `parts`),
    step (its number, `NO_STEP` outside all steps), occurrences, total_time_ps, self_time_ps, is_eager. `totals` is
    `op_totals`, the same summed over all steps and the time outside them: one row per part. `row` is the row in `parts`
    of each part of the first plane, of the second and so on, −1 for parts without events.
    """

    parts: pa.Table
    cells: pa.Table
    totals: pa.Table
    row: Int32


@dataclass(frozen=True, eq=False)
class OpEvents:
    """The op events of one plane, sorted as by `nesting.order_by_start`.

    `device` is the plane's name, of a SparseCore that of the chip's own plane; `host_or_device` may be `SPARSE_CORE`.
    `rows` are their rows in the XSpace, `parts` the parts of this plane (`PART_TEXTS`), `part` a row of `parts`, `step`
    the position of the step, −1 outside all steps. `occurrences` is how many events each stands for, `executions` how
    many executions of its instruction or kernel begin with it.
    """

    device: str
    host_or_device: str
    rows: Int32
    parts: pa.RecordBatch
    part: Int32 | Int64
    step: Int32
    start_ps: Int64
    occurrences: Int64
    executions: Int64
    total_ps: Int64
    self_ps: Int64
    is_eager: Bools
    idle_ps: int


@dataclass(frozen=True, eq=False)
class _PlaneCells:
    """The cells of one plane: `part` is a position in `used`, the parts that have events; `step` the position of the
    step + 1, 0 outside all steps; `earliest` and `latest` are those of each part in `used`, as in `OpParts`."""

    used: Int64
    part: Int32
    step: Int64
    earliest: Int64
    latest: Int64
    occurrences: Int64
    total_time_ps: Int64
    self_time_ps: Int64
    is_eager: Bools


def op_parts(ops: Sequence[OpEvents], step_numbers: Int64) -> OpParts:
    """The parts of all planes of one host. `step_numbers` is the number of the step at each position."""
    if not ops:
        return OpParts(empty("op_parts"), empty("op_cells"), empty("op_totals"), np.zeros(0, np.int32))
    planes = [_cells_of(plane, len(step_numbers) + 1) for plane in ops]
    counts = [len(plane.used) for plane in planes]
    first, count = np.cumsum([0, *counts[:-1]]), sum(counts)
    for plane, n in zip(planes, first, strict=True):
        plane.part[:] += n
    names = ("part", "step", "earliest", "latest", *SUMMED)
    columns = {name: _together([getattr(plane, name) for plane in planes]) for name in names}
    part, summed = columns["part"], {name: columns[name] for name in SUMMED}
    is_eager = np.concatenate([plane.is_eager for plane in planes])
    texts = pa.Table.from_batches([plane.parts.take(cells.used) for plane, cells in zip(ops, planes, strict=True)])
    plane_of_part = np.repeat(np.arange(len(ops)), counts)
    parts = {
        "device": pa.array([plane.device for plane in ops]).take(plane_of_part),
        "host_or_device": pa.array([plane.host_or_device for plane in ops]).take(plane_of_part),
        **{name: texts[name].combine_chunks() for name in ("op_type", "op_name", "part")},
        "earliest": columns["earliest"],
        "latest": columns["latest"],
        "shapes": "",
    }
    cells = {"part": part, "step": np.append(NO_STEP, step_numbers)[columns["step"]], **summed, "is_eager": is_eager}
    totals = {
        "part": np.arange(count),
        "step": np.full(count, NO_STEP),
        **{name: sums(part, values, count) for name, values in summed.items()},
        "is_eager": any_of(part, is_eager, count),
    }
    offsets = np.cumsum([0, *(len(plane.parts) for plane in ops)])
    row = np.full(offsets[-1], -1, np.int32)
    row[np.concatenate([plane.used + n for plane, n in zip(planes, offsets, strict=False)])] = np.arange(count)
    return OpParts(host_table("op_parts", parts), host_table("op_cells", cells), host_table("op_totals", totals), row)


def _together(arrays: list[Int64]) -> Int64:
    return np.concatenate(arrays) if len(arrays) > 1 else arrays[0]


def _cells_of(ops: OpEvents, width: int) -> _PlaneCells:
    """The cells of one plane; `width` is the number of steps + 1."""
    key = ops.part.astype(np.int64)  # part and step as one number, computed in place to save memory
    key *= width
    key += ops.step
    key += 1
    cells, code = distinct(key, len(ops.parts) * width)
    del key
    part_of_cell, step = np.divmod(cells, width)
    used, part = distinct(part_of_cell, len(ops.parts))
    earliest, latest = _order_in_step(part, step, smallest(code, ops.start_ps, len(cells)))
    return _PlaneCells(
        used=used,
        part=part.astype(np.int32),
        step=step,
        earliest=earliest,
        latest=latest,
        occurrences=sums(code, op_occurrences(ops.parts, ops.part, ops.executions), len(cells)),
        total_time_ps=sums(code, ops.total_ps, len(cells)),
        self_time_ps=sums(code, ops.self_ps, len(cells)),
        is_eager=any_of(code, ops.is_eager, len(cells)),
    )


def _order_in_step(part: Int64, step: Int64, begin: Int64) -> tuple[Int64, Int64]:
    """(the first, the last position of each part in the order of a step), from when each part began in each step.

    Cells are sorted by part. Step 0 stands for outside all steps, and is used only if there is no other step.
    """
    in_time = np.argsort(begin, kind="stable")
    first, order = lookup.grouped(step.take(in_time).astype(np.int32), int(step.max(initial=0)) + 1)
    place = np.empty(len(step), np.int64)
    place[in_time.take(order)] = np.arange(len(step)) - np.repeat(first[:-1], np.diff(first))
    is_outside = (step == 0) & step.any()
    parts = np.flatnonzero(np.diff(part, prepend=-1))
    latest = np.maximum.reduceat(np.where(is_outside, -1, place), parts)
    earliest = np.minimum.reduceat(np.where(is_outside, len(step), place), parts)
    return np.where(latest < 0, -1, earliest), latest


def executions_on_streams(instruction: Int32, program: Int32, runs_once: Bools, kernel: Int32, line: Int32) -> Int64:
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
    each = np.broadcast_to(np.int64(1), len(rows))
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


def _program_executions(ran: Int32, program: Int32, runs_once: Bools, line: Int32, runs: Int64) -> Int64:
    """For each instruction, how often its program ran; no limit if it may run more often, or if that is unknown."""
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


def _most_frequent(group: Int32 | Int64, member: Int64 | Int32, counts: Int64) -> tuple[Int64, Int64]:
    """(the member with the largest sum of counts in each group, that sum); of equal ones that which comes first, and of
    groups without events −1 and 0. Groups are numbers from 0 up."""
    firsts, pair = combinations(group, member)
    total = sums(pair, counts, len(firsts))
    order = np.lexsort((firsts, -total, group[firsts]))
    groups, at = np.unique(group[firsts][order], return_index=True)
    size = int(groups[-1]) + 1 if len(groups) else 0
    members, most = np.full(size, -1, np.int64), np.zeros(size, np.int64)
    members[groups], most[groups] = member[firsts][order][at], total[order][at]
    return members, most
