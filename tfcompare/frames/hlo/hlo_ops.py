"""`hlo_ops`: the instructions of XLA programs that ran on one host, with their costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfcompare import schema
from tfcompare.frames.combinations import combinations, sums
from tfcompare.frames.hlo.host_instructions import host_instructions, late_ps
from tfcompare.frames.hlo.programs import Programs, instruction_name, programs_of
from tfcompare.frames.nesting import order_by_start, self_times
from tfcompare.frames.ops.op_parts import OpEvents
from tfcompare.frames.planes import HLO_OP, device_kind
from tfcompare.hlo.category import category
from tfcompare.hlo.cost import Costs
from tfcompare.hlo.expression import expression
from tfcompare.hlo.neighbours import Neighbours
from tfcompare.hlo.peaks import Peaks, peaks_of
from tfcompare.hlo.program import Instruction, Program
from tfcompare.schema.hlo import TRANSFERS
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import PS_PER_US

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

_NAN = float("nan")
_LARGEST = 1e18  # costs and rates beyond that are damage
_PS_PER_S = 1e12
_LATE_SHARE, _LATE_PS = 0.1, 20_000_000
"""So late after its events an instruction may be marked as done; others go on elsewhere: their times tell no rate."""
_REMATERIALIZED = (".remat", "rematted_computation")  # in XLA's name of an instruction, in JAX's name of an op


@dataclass(frozen=True, eq=False)
class _Ran:
    """The events of instructions: their rows, and the times and number of occurrences and executions of each.

    `executions` is that of `OpEvents`; `late_ps`: how long after the event its work may have gone on elsewhere.
    """

    rows: Int32
    total_ps: Int64
    self_ps: Int64
    occurrences: Int64
    executions: Int64
    late_ps: Int64


class _Facts(NamedTuple):
    """What is known of an instruction; costs are those of one execution."""

    program: str
    hlo_op: str
    category: str
    op_name: str
    source: str
    expression: str
    operands: str
    users: str
    fused: str
    flops_each: float
    bytes_each: float
    peak_flops_per_s: float
    is_rematerialized: bool


def hlo_ops(space: XSpace, ops: Sequence[OpEvents], host: str) -> pd.DataFrame:
    """Columns of `schema.HLO_OPS`, longest self time first; no rows if no event names an instruction.

    `ops` are the op events of the host's devices. Without devices, the instructions that ran on the host's threads are
    shown. Raises `NotAProfile` for a damaged program.
    """
    kind, programs = device_kind(space), programs_of(space)
    ran = _on_host(space) if kind == "CPU" else _on_devices(space, ops, kind)
    if not len(ran.rows):
        return schema.HLO_OPS.empty()
    plane = space.plane_of_event[ran.rows]
    peaks = Peaks() if kind == "CPU" else peaks_of(space.planes[int(plane[0])].stats)
    read = _of_metadata if kind == "TPU" else _of_events
    facts, instruction = _distinct(*read(space, programs, ran.rows, peaks))
    figures = ("occurrences", "executions", "total_ps", "self_ps", "late_ps")
    rows = pd.DataFrame(facts).assign(**{name: sums(instruction, getattr(ran, name), len(facts)) for name in figures})
    return _table(rows.assign(host=host, peak_bytes_per_s=peaks.bandwidth))


def _table(rows: pd.DataFrame) -> pd.DataFrame:
    """The table, from one row per instruction with its times and facts."""
    flops, accessed = (_plausible(rows[cost] * rows["executions"]) for cost in ("flops_each", "bytes_each"))
    is_timed = (rows["total_ps"] > 0) & ~rows["category"].str.endswith(TRANSFERS)
    is_whole = rows["late_ps"] <= _LATE_SHARE * rows["total_ps"] + _LATE_PS * rows["occurrences"]
    total_s = (rows["total_ps"] / _PS_PER_S).where(is_timed & is_whole)
    intensity = (flops / accessed).where(is_timed & (accessed > 0))
    ridge = rows["peak_flops_per_s"] / rows["peak_bytes_per_s"]
    rows = rows.assign(
        total_time_us=rows["total_ps"] / PS_PER_US,
        self_time_us=rows["self_ps"] / PS_PER_US,
        flops=flops,
        bytes_accessed=accessed,
        flops_per_s=_plausible(flops / total_s),
        bandwidth_bytes_per_s=_plausible(accessed / total_s),
        operational_intensity=intensity,
        bound_by=np.select([intensity.isna() | ridge.isna(), intensity >= ridge], ["", "compute"], "memory"),
    )
    order = rows.sort_values(["self_ps", "program", "hlo_op"], ascending=[False, True, True])
    return schema.HLO_OPS.conform(order.reset_index(drop=True))


def _plausible(numbers: pd.Series) -> pd.Series:
    return numbers.where(numbers <= _LARGEST)


def _distinct(facts: list[_Facts], which: Int64) -> tuple[list[_Facts], Int64]:
    """The facts of each instruction once, and the instruction of each event."""
    position: dict[tuple[str, str, str], int] = {}
    distinct: list[_Facts] = []
    for one in facts:
        if one[:3] not in position:
            position[one[:3]] = len(distinct)
            distinct.append(one)
    return distinct, np.array([position[one[:3]] for one in facts], np.int64)[which]


def _on_devices(space: XSpace, ops: Sequence[OpEvents], kind: str) -> _Ran:
    """Events on TPU cores, or those on GPU streams that name an instruction."""
    on_devices = [part for part in ops if part.host_or_device == schema.DEVICE]
    rows = np.concatenate([part.rows for part in on_devices])
    named = space.strings(HLO_OP).spread(len(space.events))[rows] >= 0 if kind == "GPU" else np.ones(len(rows), bool)
    total, own, occurrences, executions = (
        np.concatenate([getattr(part, name) for part in on_devices])[named]
        for name in ("total_ps", "self_ps", "occurrences", "executions")
    )
    return _Ran(rows[named], total, own, occurrences, executions, np.zeros(len(total), np.int64))


def _on_host(space: XSpace) -> _Ran:
    """The instructions on the host's threads; self time is without that of those within their events."""
    events, rows = space.events, host_instructions(space)
    order_by_start(events.line, events.start_ps, events.duration_ps, rows)
    own = self_times(events.line, events.start_ps, events.duration_ps, rows)
    ones = np.ones(len(rows), np.int64)
    return _Ran(rows, events.duration_ps[rows], own, ones, ones, late_ps(space, rows))


def _of_events(space: XSpace, programs: Programs, rows: Int32, peaks: Peaks) -> tuple[list[_Facts], Int64]:
    """(the distinct instructions, the instruction of each row), from the stats of events."""
    named, modules = space.strings(HLO_OP), space.strings("hlo_module")
    name, module = named.spread(len(space.events))[rows], modules.spread(len(space.events))[rows]
    program_id = space.number_of("program_id", rows, 0)
    firsts, which = combinations(program_id, name, module)
    costs: dict[int, Costs] = {}
    neighbours: dict[int, Neighbours] = {}
    out = []
    for i in firsts.tolist():
        hlo_op, own_id = named.labels[name[i]], int(program_id[i])
        program = programs.name(own_id, modules.labels[module[i]] if module[i] >= 0 else "")
        found = programs.find(own_id, hlo_op)
        out.append(
            _facts_of(
                program,
                *found,
                costs.setdefault(own_id, Costs(found[0])),
                neighbours.setdefault(own_id, Neighbours(found[0])),
                peaks,
            )
            if found is not None
            else _Facts(program, instruction_name(hlo_op), "", "", "", "", "", "", "", _NAN, _NAN, _NAN, False)
        )
    return out, which


def _facts_of(
    name: str, program: Program, instruction: Instruction, costs: Costs, neighbours: Neighbours, peaks: Peaks
) -> _Facts:
    flops, accessed = costs.flops(instruction), costs.bytes_accessed(instruction)
    origin = program.origin(instruction)
    return _Facts(
        program=name,
        hlo_op=instruction.name,
        category=category(instruction),
        op_name=origin.op_name,
        source=program.source(origin),
        expression=expression(program, instruction),
        operands=neighbours.operands(instruction),
        users=neighbours.users(instruction),
        fused=neighbours.fused(instruction),
        flops_each=_NAN if flops is None else flops,
        bytes_each=_NAN if accessed is None else accessed,
        peak_flops_per_s=peaks.flops(program.types(instruction)),
        is_rematerialized=_is_rematerialized(instruction.name, instruction.op_name),
    )


def _of_metadata(space: XSpace, programs: Programs, rows: Int32, peaks: Peaks) -> tuple[list[_Facts], Int64]:
    """(the distinct instructions, the instruction of each row), from the metadata of events, which TPUs record."""
    entries, which = np.unique(space.events.metadata[rows], return_inverse=True)
    size = len(space.metadata_names)
    texts = {name: space.metadata_strings(name) for name in ("hlo_category", "tf_op", "source")}
    codes = {name: stat.spread(size).tolist() for name, stat in texts.items()}
    numbers = {name: np.full(size, _NAN) for name in ("flops", "bytes_accessed")}
    for name, values in numbers.items():
        owners, found = space.metadata_numbers(name)
        values[owners] = np.where(found >= 0, found, _NAN)
    program_id = np.zeros(size, np.int64)
    owners, found = space.metadata_numbers("program_id")
    program_id[owners] = found
    neighbours: dict[int, Neighbours] = {}
    out = []
    for entry in entries.tolist():
        text = {
            name: stat.labels[codes[name][entry]] if codes[name][entry] >= 0 else "" for name, stat in texts.items()
        }
        name = str(space.metadata_names[entry])
        hlo_op = str(space.metadata_display_names[entry] or name)
        op_name = text["tf_op"].rpartition(":")[0] or text["tf_op"]
        known = programs.find(int(program_id[entry]), hlo_op)
        near = neighbours.setdefault(int(program_id[entry]), Neighbours(known[0])) if known is not None else None
        out.append(
            _Facts(
                program=programs.name(int(program_id[entry])),
                hlo_op=hlo_op,
                category=text["hlo_category"],
                op_name=op_name,
                source=text["source"],
                expression=name if name.startswith("%") else "",
                operands=near.operands(known[1]) if near is not None and known is not None else "",
                users=near.users(known[1]) if near is not None and known is not None else "",
                fused=near.fused(known[1]) if near is not None and known is not None else "",
                flops_each=float(numbers["flops"][entry]),
                bytes_each=float(numbers["bytes_accessed"][entry]),
                peak_flops_per_s=peaks.flops(known[0].types(known[1])) if known is not None else peaks.flops_16_bit,
                is_rematerialized=_is_rematerialized(hlo_op, op_name),
            )
        )
    return out, which


def _is_rematerialized(hlo_op: str, op_name: str) -> bool:
    return _REMATERIALIZED[0] in hlo_op or _REMATERIALIZED[1] in op_name
