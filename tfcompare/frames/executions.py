"""Executions of XLA programs on a host's own threads, and the calls that launched them.

JAX dispatches them asynchronously: the call returns at once, and a thread of the runtime runs the program when its
inputs are there. XLA's CPU client records no context that leads from one to the other if an input was not there yet. So
they are linked by `run_id` where the call has it, as in JAX 0.8 and on several devices, else by function and order: the
n-th call of a function launched its n-th execution, if there are equally many of both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare.frames.edges import contexts
from tfcompare.frames.hlo.host_instructions import host_instructions
from tfcompare.xspace import XSpace

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_LAUNCH = re.compile(
    r"(TfrtCpuExecutable|PjRtCpuExecutable)::ExecuteHelper|CommonPjRtLoadedExecutable::Execute(Helper.*| \(.*)"
)
_WAIT = "ThunkExecutor::Execute (wait for completion)"
_CALL = re.compile(r"PjitFunction\((.*)\)", re.DOTALL)
_MODULE_PREFIX = re.compile(r"(jit|pjit|pmap|xla_pmap)_")
_NO_LETTER_OR_DIGIT = re.compile(r"\W|_")
_UNNAMED = ""
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


def no_executions() -> Executions:
    """The executions of a profile without calls that launch them on the host."""
    return Executions(*(np.zeros(0, np.int64) for _ in range(3)))


def find_executions(space: XSpace, around: Int32) -> Executions:
    """The executions on the host's threads. `around` is the result of `links.directly_around`."""
    calls = _launch_calls(space)
    instructions = host_instructions(space)
    waits = space.rows_named(_WAIT).astype(np.int64)
    if not len(calls):
        return no_executions()
    if not len(instructions):
        return Executions(waits, np.full(len(waits), -1), calls)
    ran = _instructions(space, instructions, _calls_by_context(space, instructions, calls, around))
    run, has_run = space.numbers_of("run_id", calls)
    call_of_run = pd.Series(calls[has_run], run[has_run]).groupby(level=0).first()
    launch = np.where(ran["has_run"], ran["run"].map(call_of_run).fillna(-1), -1).astype(np.int64)
    rest = np.flatnonzero(launch < 0)
    launch[rest] = _by_order(ran.iloc[rest].reset_index(drop=True), _described(space, calls[~has_run], around))
    waits = waits[space.have("run_id", waits)]
    rows = np.concatenate([instructions.astype(np.int64), waits])
    launch = np.append(launch, _of_waits(space.number_of("run_id", waits, 0), ran, launch))
    return Executions(rows, launch, calls[~np.isin(calls, launch)])


def _launch_calls(space: XSpace) -> Int64:
    """The rows of the calls that launch a program, in order of time."""
    named = np.array([_LAUNCH.fullmatch(name) is not None for name in space.metadata_names], np.bool_)
    rows = space.rows_of_entries(named)
    return rows[np.argsort(space.events.start_ps[rows], kind="stable")].astype(np.int64)


def _described(space: XSpace, calls: Int64, around: Int32) -> pd.DataFrame:
    """`row`, `start` and `function` of each call; the function is that of the innermost `PjitFunction` around it."""
    functions = np.array([_function_called(name) for name in space.metadata_names], dtype=object)
    is_call = functions != _UNNAMED
    found = _innermost(is_call[space.events.metadata], calls, around)
    names = np.where(found >= 0, functions[space.events.metadata[found]], _UNNAMED)
    return pd.DataFrame({"row": calls, "start": space.events.start_ps[calls], "function": names})


def _function_called(name: str) -> str:
    found = _CALL.fullmatch(name)
    return _comparable(found[1]) if found else _UNNAMED


def _innermost(is_wanted: Bools, rows: Int64, around: Int32) -> Int64:
    """The innermost of the wanted events that is around each of `rows` or is that row, −1 for none."""
    found = rows.copy()
    while (on := np.flatnonzero((found >= 0) & ~is_wanted[found])).size:
        found[on] = around[found[on]]
    return found


def _calls_by_context(space: XSpace, instructions: Int32, calls: Int64, around: Int32) -> Int64:
    """The call that is around each instruction, or that started the thread-pool region around it; −1 for none.

    Not every region with instructions was started by their call: one that waited for an input was not.
    """
    is_call = np.zeros(len(space.events), np.bool_)
    is_call[calls] = True
    is_region = space.named(REGION_START)
    found = _innermost(is_call | is_region, instructions.astype(np.int64), around)
    started = np.arange(len(space.events))
    producers, consumers, _ = contexts(space)
    by_context = pd.Series(producers[0], producers[1]).groupby(level=0).first()
    regions = is_region[consumers[1]]
    starters = pd.Series(consumers[0][regions]).map(by_context).fillna(-1).to_numpy(np.int64)
    started[is_region] = -1
    started[consumers[1][regions]] = _innermost(is_call | is_region, starters, around)
    out = np.where(found >= 0, started[found], -1)
    return np.where((out >= 0) & is_call[out], out, -1)


def _instructions(space: XSpace, rows: Int32, call: Int64) -> pd.DataFrame:
    """`start`, `end`, `function`, `program`, `instruction`, `run`, `has_run` and `call` of each instruction; `call` is
    the result of `_calls_by_context`."""
    module = space.strings("hlo_module")
    functions = np.array([*(_comparable(_MODULE_PREFIX.sub("", name, 1)) for name in module.labels), _UNNAMED])
    run, has_run = space.numbers_of("run_id", rows)
    start = space.events.start_ps[rows]
    return pd.DataFrame(
        {
            "start": start,
            "end": start + space.events.duration_ps[rows],
            "function": functions[module.spread(len(space.events))[rows]],
            "program": space.number_of("program_id", rows, -1),
            "instruction": space.events.metadata[rows],
            "run": run,
            "has_run": has_run,
            "call": call,
        }
    )


def _comparable(function: str) -> str:
    """A function's name as far as both a call and a module have it: `<lambda>` is `_lambda` in a module's name."""
    return _NO_LETTER_OR_DIGIT.sub("", function)


def _by_order(ran: pd.DataFrame, calls: pd.DataFrame) -> Int64:
    """The row of the call that launched each instruction, −1 if unknown.

    Calls of unknown functions are those of the only function of which there is no other call.
    """
    launch = np.full(len(ran), -1, np.int64)
    without_call = set(ran["function"]) - set(calls["function"])
    names = calls["function"]
    if len(without_call) == 1:
        names = names.where(names.isin(ran["function"]), without_call.pop())
    instructions_of = ran.groupby("function").indices
    for function, own in calls.groupby(names):
        rows = instructions_of.get(function)
        if rows is not None:
            launch[rows] = _launch_in_order(
                ran.iloc[rows].reset_index(drop=True), own["row"].to_numpy(), own["start"].to_numpy()
            )
    return launch


def _launch_in_order(ran: pd.DataFrame, calls: Int64, called: Int64) -> Int64:
    """The row of the call, of `calls` at the times `called`, that launched each instruction of one function; −1 for all
    unless there is one execution for each call, none of which starts before its call.

    There may be more executions that began before the profile did, if a context says which one the calls begin with.
    """
    execution = _executions_by_run(ran) if ran["has_run"].all() else _executions_by_count(ran, len(calls))
    known = ran["call"].to_numpy() >= 0
    before = np.unique((execution - pd.Index(calls).get_indexer(pd.Index(ran["call"])))[known])
    shift = int(before[0]) if len(before) else 0
    start = ran["start"].groupby(execution).min().to_numpy()[shift:]
    if len(before) > 1 or shift < 0 or len(start) != len(calls) or (start < called).any():
        return np.full(len(ran), -1, np.int64)
    return np.where(execution >= shift, calls[execution - shift], -1)


def _executions_by_run(ran: pd.DataFrame) -> Int64:
    """The position of each instruction's execution in the order of launch, by `run_id`; −1 where that is unknown.

    Run ids count the executions of a program. Those of several programs of one name are in the order in which they
    start, if none starts before the one before it ends.
    """
    runs = ran.groupby(["program", "run"])
    span = pd.DataFrame({"start": runs["start"].min(), "end": runs["end"].max()})
    if ran["program"].nunique() > 1:
        span = span.sort_values("start", kind="stable")
        if _overlap(span):
            return np.full(len(ran), -1, np.int64)
    span["execution"] = np.arange(len(span))
    return ran[["program", "run"]].join(span["execution"], on=["program", "run"])["execution"].to_numpy(np.int64)


def _executions_by_count(ran: pd.DataFrame, count: int) -> Int64:
    """The position of each instruction's execution, of `count` executions of a program in which it ran equally often;
    −1 where that is unknown, unless each execution ends before the next one starts."""
    ordered = ran.sort_values("start", kind="stable")
    of_instruction = ordered.groupby("instruction")
    times = of_instruction["start"].transform("size")
    execution = (of_instruction.cumcount() // (times // count).clip(lower=1)).reindex(ran.index).to_numpy(np.int64)
    spans = ran.groupby(execution).agg({"start": "min", "end": "max"})
    if ran["program"].nunique() > 1 or (times % count).any() or _overlap(spans):
        return np.full(len(ran), -1, np.int64)
    return execution


def _overlap(spans: pd.DataFrame) -> bool:
    """Whether any of the spans, in order of start, starts before the one before it ends."""
    return bool((spans["start"].to_numpy()[1:] < spans["end"].to_numpy()[:-1]).any())


def _of_waits(run_of_wait: Int64, ran: pd.DataFrame, launch: Int64) -> Int64:
    """The row of the call that launched the execution that each wait of these runs waits for, −1 if unknown."""
    known = np.flatnonzero((launch >= 0) & ran["has_run"].to_numpy())
    call_of_run = pd.Series(launch[known], ran["run"].to_numpy()[known]).groupby(level=0).first()
    return pd.Series(run_of_wait).map(call_of_run).fillna(-1).to_numpy(np.int64)
