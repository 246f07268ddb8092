"""`hlo_ops`: the instructions of XLA programs that ran on one host, with their costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare import schema
from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.grouping import cells_by_step, combinations, distinct, sums
from tfcompare.frames.hlo.command_buffers import COMMAND_BUFFER, instructions_of
from tfcompare.frames.hlo.host_instructions import host_instructions, late_ps
from tfcompare.frames.hlo.programs import Programs, instruction_name, metadata_instructions, programs_of
from tfcompare.frames.nesting import order_by_start, self_times
from tfcompare.frames.ops.op_parts import OpEvents
from tfcompare.frames.planes import device_kind
from tfcompare.frames.steps.steps import Steps
from tfcompare.hlo.cost import bytes_accessed, categories, float_sums, flops, multiplied_types, plausible
from tfcompare.hlo.expression import expressions
from tfcompare.hlo.peaks import Peaks, peaks_of
from tfcompare.schema.arrays import Bools, Floats, Int32, Int64, Strings
from tfcompare.schema.hlo import TENSOR_CORE, TRANSFERS
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import PS_PER_US

Facts = dict[str, npt.NDArray[Any]]
"""Columns with a row for each instruction."""

_NAN = float("nan")
_PS_PER_S = 1e12
_FIGURES = ("occurrences", "executions", "total_ps", "self_ps", "late_ps")
_OF_CELLS = {name: name.replace("_time", "") for name in ("executions", "occurrences", "total_time_ps", "self_time_ps")}
_LATE_SHARE, _LATE_PS = 0.1, 20_000_000
"""So late after its events an instruction may be marked as done; others go on elsewhere: their times tell no rate."""
_STATS = {"flops": ("flops", "model_flops"), "bytes_accessed": ("bytes_accessed",)}
"""The stats in which TPUs record each cost, the first that is known."""
_OPAQUE = "custom-call"
"""The category of instructions that the compiler cannot look into: it records a cost of 0 where it knows none."""
_REMATERIALIZED = (".remat", "rematted_computation")  # in XLA's name of an instruction, in JAX's name of an op


@dataclass(frozen=True, eq=False)
class _Ran:
    """The events of instructions: their rows, and the times and number of occurrences and executions of each.

    `step` and `executions` are those of `OpEvents`; `late_ps`: how long after the event its work may have gone on
    elsewhere; `on_sparse_core`: whether a SparseCore ran it.
    """

    rows: Int32
    step: Int32
    total_ps: Int64
    self_ps: Int64
    occurrences: Int64
    executions: Int64
    late_ps: Int64
    on_sparse_core: Bools


@dataclass(frozen=True, eq=False)
class Instructions:
    """`ops` is the table `hlo_ops`, longest self time first; no rows if no event names an instruction.

    `cells` is `hlo_cells`, which breaks it down by step, without what ran outside all steps: row (in `ops`), step (its
    number), executions, occurrences, total_time_ps and self_time_ps, and flops and bytes_accessed if events record
    them, since these may differ from one execution to the next; NaN if not.
    """

    ops: pa.Table
    cells: pa.Table


def instructions(space: XSpace, ops: Sequence[OpEvents], steps: Steps) -> Instructions:
    """The instructions of one host.

    `ops` are the op events of the host's devices. Without devices, the instructions that ran on the host's threads are
    shown. Raises `NotAProfile` for a damaged program.
    """
    kind, programs = device_kind(space), programs_of(space)
    ran = [_on_host(space, steps)] if kind == "CPU" else _on_devices(space, ops, kind)
    rows = np.concatenate([events.rows for events in ran])
    if not len(rows):
        return Instructions(empty("hlo_ops"), empty("hlo_cells"))
    plane = int(space.planes_of(rows[:1])[0])
    peaks = Peaks() if kind == "CPU" else peaks_of(space.planes[plane].stats)
    read = _facts_of_metadata if kind == "TPU" else _facts_of_events
    facts, which, costs = read(space, programs, rows, peaks)
    if kind == "TPU":  # the instructions of each type of core; the peak that a file has is that of TensorCores
        size = len(facts["program"])
        used, which = distinct(which + size * np.concatenate([events.on_sparse_core for events in ran]), 2 * size)
        facts = {name: values[used % size] for name, values in facts.items()}
        facts["core_type"] = np.where(used >= size, schema.SPARSE_CORE, TENSOR_CORE).astype(object)
        facts["peak_flops_per_s"] = np.where(used >= size, _NAN, facts["peak_flops_per_s"])
    firsts, same = combinations(*(_codes(facts[key]) for key in ("program", "hlo_op", "category", "core_type")))
    instruction = same[which]

    def of_events(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(events, name) for events in ran])

    of_instructions: Facts = {name: sums(instruction, of_events(name), len(firsts)) for name in _FIGURES}
    costs = {name: each * of_events("executions") for name, each in costs.items()}
    of_instructions |= {name: float_sums(instruction, cost, len(firsts)) for name, cost in costs.items()}
    facts = {name: values[firsts] for name, values in facts.items()}
    table = _table(facts | of_instructions | {"peak_bytes_per_s": np.full(len(firsts), peaks.bandwidth)})
    order = _order(facts | of_instructions)
    own = {name: costs[name] for name, stats in _STATS.items() if any(len(space.numbers(stat)[0]) for stat in stats)}
    return Instructions(table.take(order), _cells(np.argsort(order)[instruction], of_events, own, steps))


def _cells(
    row: Int64, of_events: Callable[[str], npt.NDArray[Any]], costs: Mapping[str, Floats], steps: Steps
) -> pa.Table:
    """`hlo_cells` from the row in `hlo_ops`, the attributes of `_Ran` and the costs of each event."""
    rows, numbers, inside, code = cells_by_step(row, of_events("step"), steps.number)
    values = {name: sums(code, of_events(of)[inside], len(rows)) for name, of in _OF_CELLS.items()}
    of_cells = {name: plausible(float_sums(code, cost[inside], len(rows))) for name, cost in costs.items()}
    unknown = dict.fromkeys(_STATS, np.full(len(rows), _NAN))
    return host_table("hlo_cells", {"row": rows, "step": numbers, **values, **unknown, **of_cells})


def _order(facts: Facts) -> Int64:
    names = ("program", "hlo_op", "core_type")
    keys = pa.table({name: facts[name] for name in ("self_ps", *names)})
    by = [("self_ps", "descending"), *((name, "ascending") for name in names)]
    order: Int64 = pc.sort_indices(keys, by).to_numpy().astype(np.int64)
    return order


def _codes(texts: Strings) -> Int32:
    codes: Int32 = pa.array(texts, pa.string()).dictionary_encode().indices.to_numpy()
    return codes


def _table(facts: Facts) -> pa.Table:
    """`hlo_ops` in the order of the instructions, from the times and facts of each."""
    total_ps = facts["total_ps"]
    costs, accessed = (plausible(facts[cost]) for cost in _STATS)
    is_transfer = np.array([category.endswith(TRANSFERS) for category in facts["category"]], np.bool_)
    is_timed = (total_ps > 0) & ~is_transfer
    is_whole = facts["late_ps"] <= _LATE_SHARE * total_ps + _LATE_PS * facts["occurrences"]
    total_s = np.where(is_timed & is_whole, total_ps / _PS_PER_S, _NAN)
    intensity = costs / np.where(is_timed & (accessed > 0), accessed, _NAN)
    ridge = facts["peak_flops_per_s"] / facts["peak_bytes_per_s"]
    is_known = ~np.isnan(intensity) & ~np.isnan(ridge)
    derived = {
        "total_time_us": total_ps / PS_PER_US,
        "self_time_us": facts["self_ps"] / PS_PER_US,
        "flops": costs,
        "bytes_accessed": accessed,
        "flops_per_s": plausible(costs / total_s),
        "bandwidth_bytes_per_s": plausible(accessed / total_s),
        "operational_intensity": intensity,
        "bound_by": np.where(is_known, np.where(intensity >= ridge, "compute", "memory"), ""),
    }
    return host_table("hlo_ops", facts | derived)


def _on_devices(space: XSpace, ops: Sequence[OpEvents], kind: str) -> list[_Ran]:
    """Events on each TPU core, or those on each GPU's streams that name an instruction."""
    out = []
    ran_in_program = instructions_of(space).of_event >= 0 if kind == "GPU" else None
    for plane in ops:
        if plane.host_or_device != schema.HOST:
            times = plane.total_ps, plane.self_ps, plane.occurrences, plane.executions
            late = np.broadcast_to(np.int64(0), len(plane.rows))
            on_sparse_core = np.broadcast_to(plane.host_or_device == schema.SPARSE_CORE, len(plane.rows))
            ran = _Ran(plane.rows, plane.step, *times, late, on_sparse_core)
            if ran_in_program is not None:
                named = ran_in_program[plane.rows]
                ran = ran if named.all() else _Ran(*(getattr(ran, f.name)[named] for f in fields(ran)))
            out.append(ran)
    return out


def _on_host(space: XSpace, steps: Steps) -> _Ran:
    """The instructions on the host's threads; self time is without that of those within their events."""
    events, rows = space.events, host_instructions(space)
    order_by_start(events.line, events.start_ps, events.duration_ps, rows)
    own = self_times(events.line, events.start_ps, events.duration_ps, rows)
    ones = np.ones(len(rows), np.int64)
    times = events.duration_ps[rows], own, ones, ones, late_ps(space, rows)
    return _Ran(rows, steps.of_event[rows], *times, np.zeros(len(rows), np.bool_))


def _facts_of_events(space: XSpace, programs: Programs, rows: Int32, peaks: Peaks) -> tuple[Facts, Int64, Facts]:
    """(the facts of the distinct instructions, the instruction of each row, the costs of an execution of it), from the
    stats of events and the programs."""
    ran, modules = instructions_of(space), space.strings("hlo_module")
    number, module = ran.of_event[rows], modules.spread()[rows]
    firsts, which = combinations(number, module)
    number = number[firsts]
    ids, ops = ran.program_ids[number], ran.hlo_ops[number]
    facts, costs = _facts(len(firsts)), {name: np.full(len(firsts), _NAN) for name in _STATS}
    facts["program"][:] = list(map(programs.name, ids.tolist(), modules.texts(rows[firsts]).tolist()))
    facts["hlo_op"][:] = list(map(instruction_name, ops.tolist()))
    for program, at, found in ran.found_among(number):
        origins = program.origins(found)
        facts["category"][at] = categories(program, found)
        facts["op_name"][at] = program.op_names(origins)
        facts["source"][at] = program.sources(origins)
        facts["expression"][at] = expressions(program, found)
        costs["flops"][at] = flops(program, found)
        costs["bytes_accessed"][at] = bytes_accessed(program, found)
        facts["peak_flops_per_s"][at] = _peaks(peaks, multiplied_types(program, found))
        facts["is_rematerialized"][at] = _are_rematerialized(program.names(found), program.op_names(found))
    facts["category"][np.isin(ops, list(ran.buffers))] = COMMAND_BUFFER
    return facts, which, {name: each[which] for name, each in costs.items()}


def _facts_of_metadata(space: XSpace, programs: Programs, rows: Int32, peaks: Peaks) -> tuple[Facts, Int64, Facts]:
    """(the facts of the distinct instructions, the instruction of each row, its costs), from the metadata of events,
    which TPUs record, and from the events where these record costs."""
    entries, which = distinct(space.events.metadata.take(rows), len(space.metadata_names))
    names, facts = space.metadata_names[entries], _facts(len(entries))
    ids, facts["hlo_op"] = metadata_instructions(space, entries)
    facts["program"][:] = list(map(programs.name, ids.tolist()))
    for column, stat in (("category", "hlo_category"), ("op_name", "tf_op"), ("source", "source")):
        facts[column] = space.metadata_strings(stat).texts(entries)
    facts["op_name"][:] = [text.rpartition(":")[0] or text for text in facts["op_name"].tolist()]
    facts["expression"][:] = [name if name.startswith("%") else "" for name in names.tolist()]
    facts["peak_flops_per_s"][:] = peaks.flops_16_bit
    for program, at, found in programs.find(ids, facts["hlo_op"]):
        facts["peak_flops_per_s"][at] = _peaks(peaks, multiplied_types(program, found))
    facts["is_rematerialized"][:] = _are_rematerialized(facts["hlo_op"], facts["op_name"])
    return facts, which, _recorded_costs(space, rows, (facts["category"] == _OPAQUE)[which])


def _recorded_costs(space: XSpace, rows: Int32, is_opaque: Bools) -> Facts:
    """The costs of each of the events `rows`: what it records, else what its metadata does. NaN where unknown, such as
    a cost of 0 of an opaque instruction."""
    out: Facts = {}
    for name, stats in _STATS.items():
        out[name] = np.full(len(rows), _NAN)
        for stat in stats:
            of_metadata = np.where(*space.metadata_numbers(stat)[::-1], _NAN)
            own, is_own = space.numbers_of(stat, rows)
            costs = np.where(is_own, own, of_metadata[space.events.metadata[rows]])
            is_known = (costs > 0) | ((costs == 0) & ~is_opaque)
            out[name] = np.where(np.isnan(out[name]) & is_known, costs, out[name])
    return out


def _facts(size: int) -> Facts:
    """What is known of so many instructions at first."""
    texts = ("program", "hlo_op", "category", "core_type", "op_name", "source", "expression")
    facts: Facts = {name: np.full(size, "", object) for name in texts}
    return facts | {"peak_flops_per_s": np.full(size, _NAN), "is_rematerialized": np.zeros(size, np.bool_)}


def _peaks(peaks: Peaks, types: Int64) -> Floats:
    found, which = np.unique(types, return_inverse=True)
    return np.array([peaks.flops(mask) for mask in found.tolist()], np.float64)[which]


def _are_rematerialized(hlo_ops: Strings, op_names: Strings) -> list[bool]:
    cells = zip(hlo_ops.tolist(), op_names.tolist(), strict=True)
    return [_REMATERIALIZED[0] in hlo_op or _REMATERIALIZED[1] in op_name for hlo_op, op_name in cells]
