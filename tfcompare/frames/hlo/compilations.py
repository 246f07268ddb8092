"""The table of compilations, and the events of compiling that it is made of."""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tfcompare.errors import NotAProfile
from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.hlo.programs import Programs, programs_of
from tfcompare.frames.nesting import enclosing, order_by_start
from tfcompare.frames.planes import host_plane, recorded_on
from tfcompare.hlo.names import function_name
from tfcompare.hlo.program import PARAMETER_NUMBER
from tfcompare.schema.arrays import Bools, Int32, Strings
from tfcompare.schema.hlo import COMPILING, LOWERING, TRACING
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import PS_PER_US

_MOST_PROGRAMS, _MOST_PARAMETERS = 8, 4  # whose shapes are listed
_PHASE = re.compile(
    rf"(?P<{TRACING}>trace_to_jaxpr\w*|tf\.function-graph_building)"
    rf"|(?P<{LOWERING}>lower_(?:sharding_computation|parallel_callable|xla_callable))"
    rf"|(?P<{COMPILING}>backend_compile(?:_and_load)?|(?:PjRt|Tfrt|NanoRt)\w*::Compile\w*"
    r"|CpuCompiler::(?:RunBackend|CompileCpuExecutable)|(?:TSL:)?XlaCompile:.*)"
)
"""The phase that an event's name implies. Those of compiling enclose one another, in different ways by backend."""
_CALL = re.compile(r"(?:Pjit|Pmap)Function\((.+)\)")
_MODULE = re.compile(r"(?:TSL:)?XlaCompile:#module=([^,#]+)")
_MODULE_STAT = "name"  # of the events of `CpuCompiler`
TF_CALL_STAT = "tf_function_call"


def compilations(space: XSpace) -> pa.Table:
    """Columns of `schema.COMPILATIONS`, longest total time first; no rows if nothing was traced or compiled."""
    found = compile_events(space)
    if not len(found.rows):
        return empty("compilations")
    times: dict[tuple[str, str], list[int]] = defaultdict(list)
    for *key, took_ps in zip(found.functions, found.phases, space.events.duration_ps[found.rows].tolist(), strict=True):
        times[key[0], key[1]].append(took_ps)
    total_ps = {key: sum(each) for key, each in times.items()}
    keys = sorted(times, key=lambda key: (-total_ps[key], key))
    programs = programs_of(space)
    ids: dict[str, list[int]] = defaultdict(list)
    for program_id in sorted(programs.ids):
        ids[function_name(programs.name(program_id))].append(program_id)
    shapes = {name: _differing_shapes(programs, ids[name]) for name, _ in keys if len(ids[name]) > 1}
    columns = {
        "function": [function for function, _ in keys],
        "phase": [phase for _, phase in keys],
        "occurrences": np.array([len(times[key]) for key in keys]),
        "total_time_us": np.array([total_ps[key] for key in keys]) / PS_PER_US,
        "longest_us": np.array([max(times[key]) for key in keys]) / PS_PER_US,
        "programs": np.array([len(ids[function]) for function, _ in keys]),
        "shapes": [shapes.get(function, "") for function, _ in keys],
    }
    return host_table("compilations", columns)


def _differing_shapes(programs: Programs, ids: list[int]) -> str:
    """The parameters in which these programs differ, such as `f32[8,128]; f32[9,128]`, but for damaged ones; empty if
    they do not differ, or not in the shapes of as many parameters."""
    found: dict[tuple[str, ...], None] = {}
    for program_id in ids:
        with suppress(NotAProfile):
            program = programs.program(program_id)
            if program is not None and program.entry[0] >= 0:
                entry = program.instructions_of(program.entry)
                parameters = entry[program.has_opcode(entry, "parameter".__eq__)]
                numbers = program.integers(parameters, PARAMETER_NUMBER)
                rows = parameters[np.argsort(numbers, kind="stable")].tolist()
                found[tuple(", ".join(map(str, program.shape_of(row).arrays)) for row in rows)] = None
    signatures = list(filter(None, found))
    if len(signatures) < 2 or len({len(signature) for signature in signatures}) > 1:
        return ""
    differing = [i for i, shapes in enumerate(zip(*signatures, strict=True)) if len(set(shapes)) > 1]
    more = ", …" if len(differing) > _MOST_PARAMETERS else ""
    texts = [", ".join(one[i] for i in differing[:_MOST_PARAMETERS]) + more for one in signatures[:_MOST_PROGRAMS]]
    return "; ".join([*texts, *(["…"] if len(signatures) > _MOST_PROGRAMS else [])])


class CompileEvents(NamedTuple):
    """Events that are about one tracing, lowering or compilation each: their rows, phases and functions."""

    rows: Int32
    phases: list[str]
    functions: list[str]


def compile_events(space: XSpace) -> CompileEvents:
    """The outermost events of each phase.

    An event within another one of its phase on the same thread is part of it. So is a compiling event on another thread
    within the time of one with another name: compilers have threads of their own. The function is that of the compiled
    module where the event names it, else that of the call around the event, else that of the module that events within
    its time name; empty where nothing does.
    """
    names = map(_PHASE.fullmatch, space.metadata_names.tolist())
    phase = np.array([str(name.lastgroup) if name else "" for name in names], object)
    plane = host_plane(space)
    rows = space.rows_of_entries(phase != "").astype(np.int32)
    if plane is not None and len(rows):
        rows = rows[recorded_on(space, plane)[rows] & (space.events.duration_ps[rows] > 0)]
    if plane is None or not len(rows):
        return CompileEvents(np.zeros(0, np.int32), [], [])
    phases = phase[space.events.metadata[rows]]
    around, is_outermost = _enclosing(space, rows, phases)
    compiling = np.flatnonzero(is_outermost & (phases == COMPILING))
    is_outermost[compiling[_is_within_another(space, rows[compiling])]] = False
    modules = _modules(space, rows)
    functions = np.where(modules != "", modules, around)
    unnamed = np.flatnonzero(is_outermost & (functions == "") & (phases == COMPILING))
    functions[unnamed] = _modules_within(space, rows[unnamed], rows[modules != ""], modules[modules != ""])
    return CompileEvents(rows[is_outermost], phases[is_outermost].tolist(), functions[is_outermost].tolist())


def _enclosing(space: XSpace, rows: Int32, phases: Strings) -> tuple[Strings, Bools]:
    """(the function whose call encloses each of these events, whether no event of its phase encloses it)."""
    events = space.events
    calls = _calls(space, np.unique(events.line[rows]))
    order = np.union1d(rows, np.array(list(calls), np.int32))
    order_by_start(events.line, events.start_ps, events.duration_ps, order)
    around = enclosing(events.line, events.start_ps, events.duration_ps, order)
    phase_of = dict(zip(rows.tolist(), phases.tolist(), strict=True))
    inside: list[tuple[frozenset[str], str]] = []
    found: dict[int, tuple[str, bool]] = {}
    for row, outer in zip(order.tolist(), around.tolist(), strict=True):
        within, function = inside[outer] if outer >= 0 else (frozenset(), "")
        phase = phase_of.get(row)
        if phase is not None:
            found[row] = function, phase not in within
            within |= {phase}
        inside.append((within, calls.get(row, function)))
    of_rows = [found[row] for row in rows.tolist()]
    return np.array([function for function, _ in of_rows], object), np.array([is_first for _, is_first in of_rows])


def _calls(space: XSpace, lines: Int32) -> dict[int, str]:
    """The function that each event is a call of, for the calls on these lines."""
    names = [_CALL.fullmatch(name) for name in space.metadata_names.tolist()]
    of_jax = space.rows_of_entries(np.array([found is not None for found in names], np.bool_))
    of_tensorflow = np.flatnonzero(space.has(TF_CALL_STAT))
    rows = np.concatenate([of_jax, of_tensorflow])
    rows = rows[np.isin(space.events.line[rows], lines)]
    found: dict[int, str] = {}
    for row, entry in zip(rows.tolist(), space.events.metadata[rows].tolist(), strict=True):
        call = names[entry]
        found[row] = call[1] if call is not None else str(space.metadata_names[entry])
    return found


def _is_within_another(space: XSpace, rows: Int32) -> Bools:
    """Whether each of these events is within the time of one that has another name."""
    start, duration = space.events.start_ps[rows], space.events.duration_ps[rows]
    entry = space.events.metadata[rows].tolist()
    out = np.zeros(len(rows), np.bool_)
    latest: list[tuple[int, int]] = []  # (end, name) of the event that ends last, and of the last with another name
    for i in np.lexsort((-duration, start)).tolist():
        end = int(start[i] + duration[i])
        out[i] = any(until >= end for until, name in latest if name != entry[i])
        others = [one for one in latest if one[1] != entry[i]]
        own = max([(end, entry[i]), *(one for one in latest if one[1] == entry[i])])
        latest = sorted([own, *others], reverse=True)[:2]
    return out


def _modules(space: XSpace, rows: Int32) -> Strings:
    """The function of the module that each of these events names, empty where it names none."""
    entries = space.events.metadata[rows]
    named = space.strings(_MODULE_STAT)
    code = named.spread()[rows]
    out = np.full(len(rows), "", object)
    for i, (entry, which) in enumerate(zip(entries.tolist(), code.tolist(), strict=True)):
        name = str(space.metadata_names[entry])
        found = _MODULE.match(name)
        if found:
            out[i] = function_name(found[1])
        elif which >= 0 and name.startswith("CpuCompiler::"):
            out[i] = function_name(named.labels[which])
    return out


def _modules_within(space: XSpace, rows: Int32, hints: Int32, modules: Strings) -> Strings:
    """The one function that all `hints` that start within the time of each event are about; empty without one."""
    start = space.events.start_ps
    order = np.argsort(start[hints], kind="stable")
    times, names = start[hints][order], modules[order]
    changes = np.append(0, np.cumsum(names[1:] != names[:-1]))
    begin = np.searchsorted(times, start[rows])
    end = np.searchsorted(times, start[rows] + space.events.duration_ps[rows], side="right")
    out = np.full(len(rows), "", object)
    for i, (first, last) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        if first < last and changes[first] == changes[last - 1]:
            out[i] = names[first]
    return out
