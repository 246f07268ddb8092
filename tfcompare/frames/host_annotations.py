"""`host_annotations`: what the program annotates on its threads, and Python functions: what the host does outside of
ops."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare.frames.arrow import host_table
from tfcompare.frames.grouping import sums
from tfcompare.frames.nesting import are_within, enclosing, order_by_start, self_times
from tfcompare.frames.ops.op_parts import OpEvents
from tfcompare.frames.ops.op_segments import AROUND, NO_SEGMENTS, OpSegments, clip_to_steps, innermost
from tfcompare.frames.spans import NO_SPANS
from tfcompare.frames.steps.host_activities import timed_host_events
from tfcompare.frames.steps.step_parts import Activities, one_of_each_host_part
from tfcompare.frames.steps.steps import Steps
from tfcompare.schema import HOST
from tfcompare.schema.arrays import Bools, Int8, Int32, Int64
from tfcompare.schema.ops import ANNOTATION, FUNCTION
from tfcompare.xspace import XSpace, lookup
from tfcompare.xspace.space import LONGEST_PS, PS_PER_US

MOST_NAMES = 10_000
"""Names of annotations and functions, the longest in total: a program of a million lines calls about as many functions
while it trains. Names of the rest, such as those with the number of a step in them, say nothing by themselves."""

_FUNCTION = re.compile(r"\$(.+?)(?::\d+)? (\S+)")
"""As Python tracers write functions: `$loader.py:12 __next__`, `$builtins isinstance`. Lines move with every edit."""
_CALLED_BY_PYTHON = re.compile(r"(PjitFunction|PmapFunction)\(|TFE_Py_|PythonRefManager::|DevicePut|ParseArguments")
"""What TensorFlow and JAX record on the threads that run Python alone."""
_RUNTIME = re.compile(
    rf"({_CALLED_BY_PYTHON.pattern}|TFE_|PJRT_|Eager[A-Z]|FunctionRun|SessionRun|RunGraph|Executor|Thunk|Memory[AD]"
    r"|(cu|cuda|hip|nccl|rccl)[A-Z]|batched_copy|Batched[A-Z]|Build buffer|Xla[A-Z]).*"
    r"|.*::.*|np\.asarray\(jax\.Array\)|.*\bcopy_to_host_async|ExecuteReplicated\.__call__|shard_args"
    r"|cpp_pjit\w*|backend_compile\w*|trace_to_jaxpr\w*|lower_(sharding_computation|xla_callable)|pickle_util\.\w+"
    r"|tf\.constant|tf\.function-graph_building|convert_to_tensor|ValidateInputTypeAndPlacement"
    r"|Wait for (usage|donation) holds|\[\d+\] .*|<UNKNOWN>",
    re.DOTALL,
)
"""What TensorFlow, JAX and XLA record of themselves: nothing in the file tells it from what a program annotates. Names
below these on a thread, such as those of XLA's thunks, need not be known."""
_NO_NAME, _OF_RUNTIME, _OF_PYTHON, _IS_FUNCTION, _GETS_INPUT, _IS_ANNOTATION = np.arange(6, dtype=np.int8)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_GETTING = frozenset(
    {"fetch", "fetching", "get", "iter", "iterator", "load", "loader", "loading", "make", "next", "pipeline", "prepare"}
    | {"read", "reading", "wait", "waiting"}
)
_INPUT = frozenset({"batch", "batches", "data", "dataset", "example", "examples", "input", "inputs", "samples"})
_ITERATORS = frozenset({"dataloader", "datapipe", "grain", "iterator", "prefetch"})
_OF_OTHERS = frozenset(
    {"dtype", "mask", "masks", "norm", "normalization", "parallel", "param", "parameters", "params", "shape", "shapes"}
    | {"sharding", "shardings", "signature", "size", "spec", "specs", "stats", "weight", "weights"}
)
"""`get_batch_norm_stats`, `make_data_parallel` and `get_input_shape` get no input."""
_FUNCTIONS = ("__next__", "_next_data")
_FILES = _INPUT | _ITERATORS | {"loader", "pipeline", "reader"}
"""Of iterators over input; `__next__` is also that of a progress bar."""
_TORCH_LOADER = "dataloader.py"
_OF_LIBRARIES = "_get_"
"""How helpers of libraries begin, as Keras' `layer.py _get_input_masks`."""


def gets_input(kind: str, name: str) -> bool:
    """Whether an annotation or Python function gets the program's input, by its name: `load_batch`, `next(iterator)`,
    `data`, `enumerate(DataLoader)#…`, `dataloader.py _next_data`, `loader.py __next__`."""
    if kind == FUNCTION:
        file, _, name = name.rpartition(" ")
        if file == _TORCH_LOADER:
            return True
        if name in _FUNCTIONS:
            return not _words(file).isdisjoint(_FILES)
        if name.startswith(_OF_LIBRARIES):
            return False
    words = _words(name)
    if not words or not words.isdisjoint(_OF_OTHERS):
        return False
    is_got = not (words.isdisjoint(_INPUT) or words.isdisjoint(_GETTING))
    return is_got or words <= _INPUT or not words.isdisjoint(_ITERATORS)


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORDS.findall(name)}


@dataclass(frozen=True, eq=False)
class HostAnnotations:
    """The annotations and Python functions of one host, one element for each name, and the stretches of time in which
    each is the innermost on its thread.

    A function within an annotation is part of it; one that gets input (`gets_input`) counts as an annotation here.
    `rows` are the events of the stretches, `name` their names; `is_on_marker`: on a thread that marks steps.
    """

    names: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    occurrences: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    total_ps: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    self_ps: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    name: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    rows: Int32 = field(default_factory=lambda: np.zeros(0, np.int32))
    start_ps: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    end_ps: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    is_on_marker: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    remark: str = ""

    def table(self, wall: pa.Table | None) -> pa.Table:
        """The table `host_annotations`, with the sums of `annotation_wall`, missing without steps."""
        wall_ps = np.full(len(self.names), np.nan)
        if wall is not None:
            in_steps = wall.filter(pc.greater_equal(wall["step_part"], 0))
            wall_ps = np.bincount(in_steps["annotation"], in_steps["wall_time_ps"], len(self.names))
        columns = {
            "kind": self.kinds,
            "name": self.names,
            "occurrences": self.occurrences,
            "total_time_us": self.total_ps / PS_PER_US,
            "self_time_us": self.self_ps / PS_PER_US,
            "wall_time_us": wall_ps / PS_PER_US,
        }
        return host_table("host_annotations", columns)

    def between_steps(self, steps: Steps) -> dict[str, Int64]:
        """Rows of `annotation_wall` for the time between the first and the last step that is in none of them, on the
        threads of their markers."""
        of_steps = NO_SPANS.union(steps.start_ps, steps.end_ps)
        on_marker = np.flatnonzero(self.is_on_marker)
        window = steps.start_ps.min(initial=LONGEST_PS), max(int(steps.end_ps.max(initial=0)), 0)
        begin, end = (np.clip(times[on_marker], *window) for times in (self.start_ps, self.end_ps))
        outside = end - begin - of_steps.covered_between(begin, end)
        time_ps = sums(self.name[on_marker], outside, len(self.names))
        names = np.flatnonzero(time_ps)
        none = np.full(len(names), -1)
        return {"annotation": names, "step": none, "step_part": none, "wall_time_ps": time_ps[names]}

    def segments(self, steps: Steps, activities: Activities, first: int) -> OpSegments:
        """Segments that get the time of each part of the steps in which no op runs; `first` is the op of the first
        name. Those on the thread of a step's marker share its time: what is linked to it."""
        step = steps.of_event.take(self.rows)
        linked = np.flatnonzero(steps.is_linked.take(self.rows) & (step >= 0))
        parts = one_of_each_host_part(activities)
        if not len(linked) or not len(parts):
            return NO_SEGMENTS
        count = len(linked) * len(parts)
        every = np.tile(linked, len(parts))
        segments = OpSegments(
            op=(first + self.name.take(every)).astype(np.int32),
            start_ps=self.start_ps.take(every),
            end_ps=self.end_ps.take(every),
            step=step.take(every),
            activity=np.repeat(parts, len(linked)),
            rank=np.full(count, AROUND, np.int8),
            stage=np.full(count, -1, np.int32),
        )
        return clip_to_steps(segments, steps)


def find_annotations(
    space: XSpace, steps: Steps, ops: Sequence[OpEvents], marker: str | None = None
) -> HostAnnotations:
    """What the program annotates on threads that run Python, and Python functions; `ops` are those of all planes, and
    `marker` is the name of the events that were chosen to begin each step."""
    is_op = np.zeros(len(space.events), np.bool_)
    for plane in ops:
        is_op[plane.rows] |= plane.host_or_device == HOST
    every = timed_host_events(space)
    runs_op, line = is_op.take(every), space.events.line.take(every)
    kind_of_name = _kinds(space, every.take(np.flatnonzero(~runs_op)))
    kind = kind_of_name.take(space.events.metadata.take(every))
    kind[runs_op] = _NO_NAME
    is_marker = _are_markers(space, steps, every)
    if marker is not None:
        is_marker |= space.events_named(marker).take(every)
    kind[is_marker] = _NO_NAME
    is_of_python = is_marker | np.isin(kind, (_OF_PYTHON, _IS_FUNCTION, _GETS_INPUT))
    lines = lookup.used(line[is_of_python], len(space.lines.name))
    threads = [name.partition("/")[0] for name in space.lines.name]  # all that Python starts have the process' name
    names = {threads[line] for line in lines.tolist()}
    on_python = np.array([name in names for name in threads], np.bool_)
    chosen = on_python.take(line) & (runs_op | is_marker | (kind != _NO_NAME))
    if not (chosen & (kind > _OF_PYTHON)).any():
        return HostAnnotations()
    is_op[every[is_marker]] = True  # a step is no part of a function around it, either
    marked = lookup.used(line[is_marker], len(on_python))
    return _of_events(space, every[chosen], is_op, kind_of_name, marked)


def _kinds(space: XSpace, rows: Int32) -> Int8:
    """What the name of each event metadata entry says, `_NO_NAME` for those without any of these events."""
    out = np.full(len(space.metadata_names), _NO_NAME, np.int8)
    for row in lookup.used(space.events.metadata[rows], len(out)).tolist():
        name = str(space.metadata_names[row])
        if (function := _FUNCTION.fullmatch(name)) is not None:
            out[row] = _GETS_INPUT if gets_input(FUNCTION, _without_line(function)) else _IS_FUNCTION
        elif _RUNTIME.fullmatch(name) is not None:
            out[row] = _OF_PYTHON if _CALLED_BY_PYTHON.match(name) else _OF_RUNTIME
        elif name.strip():
            out[row] = _IS_ANNOTATION
    return out


def _without_line(function: re.Match[str]) -> str:
    return f"{function[1]} {function[2]}"


def _are_markers(space: XSpace, steps: Steps, rows: Int32) -> Bools:
    """Which events mark a step, or are the root of what TensorFlow groups."""
    start, end = steps.host.start_ps[steps.host.exist], steps.host.end_ps[steps.host.exist]
    order = np.argsort(start, kind="stable")
    start, end = np.append(start[order], -1), np.append(end[order], -2)
    begins = space.events.start_ps.take(rows)
    at = np.searchsorted(start[:-1], begins)
    out = np.asarray((start.take(at) == begins) & (end.take(at) == begins + space.events.duration_ps.take(rows)))
    out |= (space.has("step_num") | space.has("step_name")).take(rows)
    return out


def _of_events(space: XSpace, rows: Int32, is_op: Bools, kind_of_name: Int8, marked: Int64) -> HostAnnotations:
    """The annotations and functions among these events of threads that run Python, ops and markers of steps
    (`is_op`), and what runtimes record; `marked` are the lines of markers."""
    events = space.events
    line, start, duration = events.line, events.start_ps, events.duration_ps
    order_by_start(line, start, duration, rows)
    is_op = is_op[rows]
    kind = np.where(is_op, _NO_NAME, kind_of_name[events.metadata[rows]])
    is_runtime = (kind == _OF_RUNTIME) | (kind == _OF_PYTHON)
    around = enclosing(line, start, duration, rows)
    is_annotation = (kind == _IS_ANNOTATION) & ~are_within(around, is_runtime)
    is_function = (kind == _IS_FUNCTION) | (kind == _GETS_INPUT)
    names, name_of, remark = _names(space, rows[is_annotation | is_function], kind_of_name)
    name = np.where(is_annotation | is_function, name_of[events.metadata[rows]], -1)
    is_annotation &= name >= 0
    is_function &= name >= 0
    self_ps = np.zeros(len(rows), np.int64)
    for among in (is_op | is_annotation | is_function, is_op | is_annotation):  # functions are part of annotations
        self_ps[among] = self_times(line, start, duration, rows[among])
    code, count = name[name >= 0], len(names)
    is_inside = are_within(around, is_annotation | (kind == _GETS_INPUT))
    among = np.flatnonzero(is_op | is_annotation | (is_function & ~is_inside))
    position, begin, end = innermost(space, rows[among])
    at = among[position]
    named = np.flatnonzero(name[at] >= 0)
    return HostAnnotations(
        kinds=[kind for kind, _ in names],
        names=[text for _, text in names],
        occurrences=np.bincount(code, minlength=count),
        total_ps=sums(code, duration[rows[name >= 0]], count),
        self_ps=sums(code, self_ps[name >= 0], count),
        name=name[at[named]],
        rows=rows[at[named]],
        start_ps=begin[named],
        end_ps=end[named],
        is_on_marker=np.isin(line[rows[at[named]]], marked),
        remark=remark,
    )


def _names(space: XSpace, rows: Int32, kind_of_name: Int8) -> tuple[list[tuple[str, str]], Int64, str]:
    """(the kind and name of these events, those with the longest total first; the position of that of each event
    metadata entry, −1 for none; what was left out)."""
    used = lookup.used(space.events.metadata[rows], len(kind_of_name))
    total_ps = sums(space.events.metadata[rows], space.events.duration_ps[rows], len(kind_of_name))
    positions: dict[tuple[str, str], int] = {}
    out = np.full(len(kind_of_name), -1)
    for row in used[np.argsort(-total_ps[used], kind="stable")].tolist():
        text = str(space.metadata_names[row])
        function = _FUNCTION.fullmatch(text) if kind_of_name[row] != _IS_ANNOTATION else None
        key = (ANNOTATION, text) if function is None else (FUNCTION, _without_line(function))
        if key in positions or len(positions) < MOST_NAMES:
            out[row] = positions.setdefault(key, len(positions))
    left_out = int((out[used] < 0).sum())
    remark = f"annotations and Python functions beyond the {MOST_NAMES:,} longest are left out: {left_out:,}"
    return list(positions), out, remark if left_out else ""
