"""The activity of each event on the host's threads."""

from __future__ import annotations

import re

import numpy as np

from tfcompare.frames.grouping import combinations
from tfcompare.frames.nesting import count_started, enclosing, order_by_start
from tfcompare.frames.ops.op_names import DATASET, Op, named_ops
from tfcompare.frames.planes import device_kind, host_plane, recorded_on
from tfcompare.frames.steps import groups as grouping
from tfcompare.frames.steps.activities import NONE, Activity
from tfcompare.frames.tf_data.tf_data_functions import TfDataFunctions, tf_data_functions
from tfcompare.schema.arrays import Bools, Int8, Int32
from tfcompare.xspace import XSpace, lookup

_NO_ACTIVITY = ("EagerExecute", "EagerLocalExecute", "EagerKernelExecute", "FunctionRun")
_GET_NEXT = ("IteratorGetNext", "MultiDeviceIteratorGetNext")
COLLECTIVE_OP = re.compile(r"(Collective(Reduce|Gather|Bcast|AllToAll|Permute)|_?Nccl(AllReduce|Reduce|Broadcast))")
_AGREEING = "CollectiveExecutor::CompleteParams"
"""Hosts agree on a collective: the others ask the first one and wait for its answer before they exchange data."""
_COMPILING = re.compile(
    r"(TSL:)?Xla(Compil|Pass|Autotun|MemoryScheduler|BufferAssignment|CreateGpuExecutable)"
    r"|(\$[^ ]* )?(backend_compile|compile_or_get_cached)"
    r"|[^$]*(Compiler|Client|CompilationCache)::\w*Compile(?!d)"
    r"|[^$]*:_XlaCompile"
)
_LAUNCHING = re.compile(r"(cuda|cu|hip)\w*Launch(Kernel|CooperativeKernel|Grid|HostFunc)|LaunchKernel")
_SYNCHRONIZING = re.compile(r".*Synchronize", re.DOTALL)
_EXECUTING = re.compile(
    r"ExecutorState::Process|PJRT_LoadedExecutable_Execute|(Scheduled )?\w*LoadedExecutable::E(xecute|nqueue)"
    r"|GpuExecutable::Execute|tpu::System::Execute$|Thunks::",
    re.I,
)


def host_activities(space: XSpace, rows: Int32, functions: TfDataFunctions | None = None) -> Int8:
    """The activity of each of these host events.

    `NONE` for events that only enclose others, for step markers, and for events in a function that tf.data calls: the
    step's wait for tf.data explains that time. `functions` is the result of `tf_data_functions`, computed if not given.
    """
    has_device = device_kind(space) != "CPU"
    metadata = space.events.metadata.take(rows)
    of_name = np.full(len(space.metadata_names), NONE, np.int8)
    named = named_ops(space)
    for row in lookup.used(metadata, len(of_name)).tolist():
        of_name[row] = _activity_of_name(space.metadata_names[row], named[row], has_device)
    out = of_name.take(metadata)
    out[_root_stages(space, rows)] = Activity.WAIT_FOR_INPUT
    if has_device:
        launches = _launch_calls(space, rows)
        ops = np.flatnonzero(out == Activity.HOST_OP)
        out[ops[_any_within(space, rows[launches], rows[ops])]] = Activity.LAUNCHING_OP
        out[launches] = Activity.LAUNCH_CALL
    is_marker = grouping.is_marker_name(space).take(metadata)
    is_marker |= space.has("step_name").take(rows)
    in_functions = (functions or tf_data_functions(space)).part_around(space, rows) >= 0
    out[is_marker | in_functions] = NONE
    return out


def is_collective(space: XSpace) -> Bools:
    """Whether each event is an op in which hosts exchange data, or agree on it; no link leads to its thread."""
    names = space.metadata_names
    is_one = [name == _AGREEING or COLLECTIVE_OP.match(name.partition(":")[2]) is not None for name in names]
    return np.array(is_one, np.bool_)[space.events.metadata]


def timed_host_events(space: XSpace, among: Bools | None = None) -> Int32:
    """Rows of the events with a duration on the host's recorded threads, thread by thread, or only of those `among`."""
    host = host_plane(space)
    if host is None:
        return np.zeros(0, np.int32)
    chosen = recorded_on(space, host)
    chosen &= space.events.duration_ps > 0
    if among is not None:
        chosen &= among
    return np.flatnonzero(chosen).astype(np.int32)


def _activity_of_name(name: str, op: Op | None, has_device: bool) -> int:
    """The activity that the event's name, or the op in it, implies. Launching differs from computing only if there is a
    device."""
    if name.startswith(_NO_ACTIVITY):
        return NONE
    op_type = op.type if op else ""
    if op_type.startswith("InfeedEnqueue") or op_type.lower().startswith("memcpyhtod"):
        return Activity.ENQUEUE_INPUT
    if op_type.lower().startswith("memcpyhtoh"):
        return Activity.HOST_COPY
    if name.lower().startswith("iteratorgetnext") or op_type.startswith(_GET_NEXT):
        return Activity.WAIT_FOR_INPUT
    if _COMPILING.match(name):
        return Activity.COMPILE
    if name == _AGREEING or COLLECTIVE_OP.match(op_type):
        return Activity.HOST_COLLECTIVE
    if has_device and _EXECUTING.match(name):
        return Activity.EXECUTOR
    return Activity.HOST_OP if op and op.type != DATASET else Activity.HOST_COMPUTE


def _launch_calls(space: XSpace, rows: Int32) -> Bools:
    """Which events are calls that launch a kernel or copy: device events refer to them by `correlation_id`, and older
    files name them after the kernel."""
    metadata = space.events.metadata[rows]
    launch = space.has("correlation_id")[rows] & ~grouping.names_matching(space, _SYNCHRONIZING)[metadata]
    is_named = np.array([_LAUNCHING.match(name) is not None for name in space.metadata_names], np.bool_)
    return launch | is_named[metadata]


def _any_within(space: XSpace, inner: Int32, outer: Int32) -> Bools:
    """Whether any event of `inner` starts within each event of `outer`, on the same line."""
    line, start = space.events.line, space.events.start_ps
    inner = inner[np.lexsort((start[inner], line[inner]))]
    before = start[outer] - 1
    until = before + space.events.duration_ps[outer]
    started = [count_started(line[inner], start[inner], line[outer], times) for times in (before, until)]
    return np.asarray(started[1] > started[0])


def _root_stages(space: XSpace, rows: Int32) -> Bools:
    """Which events are outermost stages of an input pipeline that the program marks itself, enclosed and fed by no
    other: whatever takes their result waits for input."""
    out = np.zeros(len(rows), np.bool_)
    if "_ipl_stage_name" not in space.stat_names and "_ipl_stage_id" not in space.stat_names:
        return out
    events = space.events
    is_stage = (space.has("_ipl_stage_name") | space.has("_ipl_stage_id"))[rows]
    stages = rows[is_stage]
    order_by_start(events.line, events.start_ps, events.duration_ps, stages)
    is_outermost = enclosing(events.line, events.start_ps, events.duration_ps, stages) < 0
    made = np.flatnonzero(space.has("_pt") & space.has("_p"))
    kinds = np.concatenate([space.number_of("_pt", made, -1), space.number_of("_ct", stages, -1)])
    ids = np.concatenate([space.number_of("_p", made, -1), space.number_of("_c", stages, -1)])
    code = combinations(kinds, ids)[1]
    is_fed = np.isin(code[len(made) :], code[: len(made)]) & space.have("_ct", stages) & space.have("_c", stages)
    root = np.zeros(len(events), np.bool_)
    root[stages] = is_outermost & ~is_fed
    return root[rows]
