"""Executions of XLA programs on a host's own threads, and the calls that launched them.

JAX dispatches them asynchronously: the call returns at once, and a thread of the runtime runs the program when its
inputs are there. XLA's CPU client records no context that leads from one to the other if an input was not there yet. So
they are linked by `run_id` where the call has it, as in JAX 0.8 and on several devices, else by function and order: the
n-th call of a function launched its n-th execution, if there are equally many of both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

import numpy as np

from tfcompare.frames.edges import contexts
from tfcompare.frames.grouping import combinations, largest, smallest
from tfcompare.frames.hlo.host_instructions import host_instructions
from tfcompare.schema.arrays import Bools, Int32, Int64
from tfcompare.xspace import XSpace, lookup

_LAUNCH = re.compile(
    r"(TfrtCpuExecutable|PjRtCpuExecutable)::ExecuteHelper|CommonPjRtLoadedExecutable::Execute(Helper.*| \(.*)"
)
_WAIT = "ThunkExecutor::Execute (wait for completion)"
_CALL = re.compile(r"PjitFunction\((.*)\)", re.DOTALL)
_MODULE_PREFIX = re.compile(r"(jit|pjit|pmap|xla_pmap)_")
_NO_LETTER_OR_DIGIT = re.compile(r"\W|_")
_UNNAMED, _NO_FUNCTION = "", 0
REGION_START = "ThreadpoolListener::StartRegion"


@dataclass(frozen=True, eq=False)
class Executions:
    """The events of executions of XLA programs, and what launched them.

    `rows` are instructions and, with a `run_id`, waits for the last of them; `launch` is the row of the call that
    launched the execution of each, −1 if unknown. `unlinked` are the calls whose execution is unknown.
    """

    rows: Int64
    launch: Int64
    unlinked: Int64

    @property
    def linked(self) -> tuple[Int64, Int64]:
        """(rows of the calls, rows of the events that they launched)."""
        known = self.launch >= 0
        return self.launch[known], self.rows[known]


@dataclass(frozen=True, eq=False)
class _Instructions:
    """Instructions that ran, one element each.

    `function` is a number of `_functions`, `program` the program's id, `instruction` a row of event metadata, `run` the
    run id, valid where `has_run` is set; `call` is the result of `_calls_by_context`.
    """

    start_ps: Int64
    end_ps: Int64
    function: Int32
    program: Int64
    instruction: Int32
    run: Int64
    has_run: Bools
    call: Int64

    def take(self, rows: Int64) -> _Instructions:
        """The instructions in `rows`."""
        return _Instructions(*(getattr(self, field.name)[rows] for field in fields(self)))


NO_EXECUTIONS = Executions(*(np.zeros(0, np.int64) for _ in range(3)))
"""Those of a profile without calls that launch them on the host."""


def find_executions(space: XSpace, around: Int32) -> Executions:
    """The executions on the host's threads. `around` is the result of `links.directly_around`."""
    is_launch = np.array([_LAUNCH.fullmatch(name) is not None for name in space.metadata_names], np.bool_)
    calls = space.rows_of_entries(is_launch)
    calls = calls[np.argsort(space.events.start_ps[calls], kind="stable")]
    instructions = host_instructions(space)
    waits = space.rows_named(_WAIT)
    if not len(calls):
        return NO_EXECUTIONS
    if not len(instructions):
        return Executions(waits, np.full(len(waits), -1), calls)
    called, compiled = _functions(space)
    ran = _instructions(space, instructions, compiled, _calls_by_context(space, instructions, calls, around))
    run, has_run = space.numbers_of("run_id", calls)
    launch = np.where(ran.has_run, _value_of_first(run[has_run], calls[has_run], ran.run), -1)
    rest = np.flatnonzero(launch < 0)
    others, metadata = calls[~has_run], space.events.metadata
    callers = _innermost((called != _NO_FUNCTION)[metadata], others, around)
    functions = np.where(callers >= 0, called[metadata[callers]], _NO_FUNCTION)
    launch[rest] = _by_order(ran.take(rest), others, space.events.start_ps[others], functions)
    waits = waits[space.have("run_id", waits)]
    known = np.flatnonzero((launch >= 0) & ran.has_run)
    of_waits = _value_of_first(ran.run[known], launch[known], space.number_of("run_id", waits, 0))
    rows, launch = np.append(instructions.astype(np.int64), waits), np.append(launch, of_waits)
    return Executions(rows, launch, calls[~np.isin(calls, launch)])


def _functions(space: XSpace) -> tuple[Int32, Int32]:
    """(the function that each event metadata entry is a call of; that of each module of `hlo_module`, and last that of
    none), as numbers that are the same for the same name as far as both have it."""
    numbers = {_UNNAMED: _NO_FUNCTION}
    called = (_CALL.fullmatch(name) for name in space.metadata_names)
    modules = (_MODULE_PREFIX.sub("", name, 1) for name in space.strings("hlo_module").labels)
    of_calls = [numbers.setdefault(_comparable(found[1]) if found else _UNNAMED, len(numbers)) for found in called]
    of_modules = [numbers.setdefault(_comparable(name), len(numbers)) for name in modules]
    return np.array(of_calls, np.int32), np.array([*of_modules, _NO_FUNCTION], np.int32)


def _comparable(function: str) -> str:
    """A function's name as far as both a call and a module have it: `<lambda>` is `_lambda` in a module's name."""
    return _NO_LETTER_OR_DIGIT.sub("", function)


def _innermost(is_wanted: Bools, rows: Int64, around: Int32) -> Int64:
    """The innermost of the wanted events that is around each of `rows` or is that row, −1 for none."""
    found = rows.copy()
    while (on := np.flatnonzero((found >= 0) & ~is_wanted[found])).size:
        found[on] = around[found[on]]
    return found


def _calls_by_context(space: XSpace, instructions: Int32, calls: Int64, around: Int32) -> Int64:
    """The call that is around each instruction, or that started the thread-pool region around it; −1 for none, as in a
    region that waited for an input."""
    is_call = np.zeros(len(space.events), np.bool_)
    is_call[calls] = True
    is_region = space.events_named(REGION_START)
    found = _innermost(is_call | is_region, instructions.astype(np.int64), around)
    started = np.arange(len(space.events))
    producers, consumers, _ = contexts(space)
    regions = is_region[consumers[1]]
    starters = _value_of_first(producers[1], producers[0], consumers[0][regions])
    started[is_region] = -1
    started[consumers[1][regions]] = _innermost(is_call | is_region, starters, around)
    out = np.where(found >= 0, started[found], -1)
    return np.where((out >= 0) & is_call[out], out, -1)


def _instructions(space: XSpace, rows: Int32, functions: Int32, call: Int64) -> _Instructions:
    run, has_run = space.numbers_of("run_id", rows)
    start = space.events.start_ps[rows]
    return _Instructions(
        start_ps=start,
        end_ps=start + space.events.duration_ps[rows],
        function=functions[space.strings("hlo_module").spread()[rows]],
        program=space.number_of("program_id", rows, -1),
        instruction=space.events.metadata[rows],
        run=run,
        has_run=has_run,
        call=call,
    )


def _by_order(ran: _Instructions, calls: Int64, called_ps: Int64, called: Int32) -> Int64:
    """The row of the call that launched each instruction, −1 if unknown. `calls` are in order of time, `called` is the
    `_functions` number of the innermost `PjitFunction` around each. Calls of unknown functions are those of the only
    function of which there is no other call."""
    launch = np.full(len(ran.run), -1, np.int64)
    without_call = np.setdiff1d(ran.function, called)
    if len(without_call) == 1:
        called = np.where(np.isin(called, ran.function), called, without_call[0])
    count = 1 + max(ran.function.max(initial=0), called.max(initial=0))
    (first_run, runs), (first_call, order) = lookup.grouped(ran.function, count), lookup.grouped(called, count)
    for function in np.intersect1d(ran.function, called):
        rows = runs[first_run[function] : first_run[function + 1]]
        own = order[first_call[function] : first_call[function + 1]]
        launch[rows] = _launch_in_order(ran.take(rows), calls[own], called_ps[own])
    return launch


def _launch_in_order(ran: _Instructions, calls: Int64, called_ps: Int64) -> Int64:
    """The row of the call, of `calls` at the times `called_ps`, that launched each instruction of one function; −1 for
    all unless there is one execution for each call, none of which starts before its call.

    There may be more executions that began before the profile did, if a context says which one the calls begin with.
    """
    execution = _executions_by_run(ran) if ran.has_run.all() else _executions_by_count(ran, len(calls))
    before = np.unique((execution - _value_of_first(calls, np.arange(len(calls)), ran.call))[ran.call >= 0])
    shift = int(before[0]) if len(before) else 0
    start = _spans(ran, np.unique(execution, return_inverse=True)[1])[0][shift:]
    if len(before) > 1 or shift < 0 or len(start) != len(calls) or (start < called_ps).any():
        return np.full(len(execution), -1, np.int64)
    return np.where(execution >= shift, calls[execution - shift], -1)


def _executions_by_run(ran: _Instructions) -> Int64:
    """The position of each instruction's execution in the order of launch, by `run_id`; −1 where that is unknown.

    Run ids count the executions of a program. Those of several programs of one name are in the order in which they
    start, if none starts before the one before it ends.
    """
    firsts, code = combinations(ran.program, ran.run)
    program = ran.program[firsts]
    order = np.lexsort((ran.run[firsts], program))
    if (program != program[0]).any():
        start, end = _spans(ran, code)
        order = order[np.argsort(start[order], kind="stable")]
        if _overlap(start[order], end[order]):
            return np.full(len(code), -1, np.int64)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[code]


def _executions_by_count(ran: _Instructions, count: int) -> Int64:
    """The position of each instruction's execution, of `count` executions of a program in which it ran equally often;
    −1 where that is unknown, unless each execution ends before the next one starts."""
    _, code = combinations(ran.instruction)
    times = np.bincount(code)
    order = np.lexsort((ran.start_ps, code))
    place = np.empty(len(code), np.int64)
    place[order] = np.arange(len(code))
    execution = (place - (np.cumsum(times) - times)[code]) // np.maximum(times // count, 1)[code]
    is_of_several = (ran.program != ran.program[0]).any()
    if is_of_several or (times % count).any() or _overlap(*_spans(ran, execution)):
        return np.full(len(code), -1, np.int64)
    return execution


def _spans(ran: _Instructions, execution: Int64) -> tuple[Int64, Int64]:
    """(the start, the end of each execution), given the execution of each instruction, from 0."""
    count = int(execution.max(initial=-1)) + 1
    return smallest(execution, ran.start_ps, count), largest(execution, ran.end_ps, count)


def _overlap(start: Int64, end: Int64) -> bool:
    """Whether any of the spans, in order of start, starts before the one before it ends."""
    return bool((start[1:] < end[:-1]).any())


def _value_of_first(keys: Int64, values: Int64, wanted: Int64) -> Int64:
    """The value of the first of `keys` that equals each of `wanted`, −1 for none."""
    return np.append(values[::-1], -1)[lookup.last_rows(keys[::-1], wanted)]
