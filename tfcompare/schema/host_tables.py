"""The tables that are made of one host file, and what holds of the values in them.

Those that users see are declared with their meaning in the other modules, and are here without their column `host`; the
others are parts of which the tables of a run are made (`tables`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tfcompare.schema.columns import Table
from tfcompare.schema.hlo import COMPILATIONS, HLO_MEMORY, HLO_OPS, HLO_PROGRAMS, HLO_TEXTS
from tfcompare.schema.input import TF_DATA, TF_DATA_CALLS, TF_DATA_PIPELINES
from tfcompare.schema.kernels import COPIES, KERNEL_STATS
from tfcompare.schema.memory import MEMORY_PEAK, MEMORY_SUMMARY
from tfcompare.schema.ops import HOST_ANNOTATIONS, IDLE_GAPS
from tfcompare.schema.runs import RECORDED, STEP_PARTS, STEP_PRECISIONS, STEPS

Group = Literal["core", "steps", "timeline", "programs"]
"""What is kept together. `core` and `steps`, which answers and verdicts need, are built when a file is read …"""

LATE: tuple[Group, ...] = ("timeline", "programs")
"""… and these when one of their tables is asked for."""

_LARGEST_SUM = 1 << 62
_LARGEST = 1e18


@dataclass(frozen=True)
class HostColumn:
    """A column: its dtype (`int8`, `int32`, `int64`, `float64`, `bool`, `str`, or the nullable `Int64` and `Float64`),
    and the range of its numbers, which are not NaN unless `may_be_nan`. `is_summed`: their sum is in range too; `kind`:
    that of `Column`, of a column that users see."""

    dtype: str
    least: float = 0.0
    most: float = _LARGEST
    may_be_nan: bool = False
    is_summed: bool = False
    kind: str = ""


@dataclass(frozen=True)
class HostTable:
    """A table of one host file. `unique`: the columns that identify a row; `rows_of`: columns whose numbers are rows of
    another table, or −1 where their least value is −1; `of_steps`: its `step` is one of `steps`, or −1 outside all of
    them."""

    name: str
    group: Group
    columns: Mapping[str, HostColumn]
    unique: tuple[str, ...] = ()
    rows_of: Mapping[str, str] = field(default_factory=dict)
    of_steps: bool = False

    @property
    def declaration(self) -> list[tuple[str, ...]]:
        """What its values mean, without prose: a version of the table depends on it. In any order of the columns."""
        return sorted((name, c.dtype, c.kind, self.rows_of.get(name, "")) for name, c in self.columns.items())


_MAY_BE_NAN = frozenset(
    {"host_start_us", "host_span_us", "device_span_us", "buffered_elements", "fragmentation", *STEP_PRECISIONS}
    | {"flops", "bytes_accessed", "flops_per_s", "bandwidth_bytes_per_s", "operational_intensity"}
    | {"peak_flops_per_s", "peak_bytes_per_s", "first_us", "last_us", "busy_ps", "span_ps", "sparse_core_busy_us"}
)
_SIGNED = frozenset({"start_us", "start_ps", "host_start_us", "time_ps", "peak_time_us", "first_us", "last_us"})
_OR_NONE = frozenset(
    {"earliest", "latest", "stage", "step_part", "launch", "following", "requested_bytes", "allocation_bytes"}
)
"""Integers for which −1 means none."""
_SUMMED = frozenset({"occurrences", "total_time_ps", "self_time_ps", "idle_ps", "calls"})


def _column(name: str, dtype: str) -> HostColumn:
    if name == "step" and dtype == "int64":
        return HostColumn(dtype, least=-float(1 << 63), most=float(1 << 63))
    if name == "step_part":
        return HostColumn(dtype, least=-1, most=len(STEP_PARTS) - 1)
    return HostColumn(
        dtype,
        least=-_LARGEST if name in _SIGNED else -1 if name in _OR_NONE else 0,
        most=_LARGEST_SUM if "int" in dtype.lower() else _LARGEST,
        may_be_nan=name in _MAY_BE_NAN,
        is_summed=name in _SUMMED,
    )


def _table(
    name: str,
    group: Group,
    columns: str,
    unique: tuple[str, ...] = (),
    rows_of: Mapping[str, str] | None = None,
    of_steps: bool = False,
) -> HostTable:
    """A table that users do not see; `columns`: names before their dtype, as in `device name str, step int64`."""
    dtypes = {name: dtype for *names, dtype in map(str.split, columns.split(",")) for name in names}
    found = {name: _column(name, dtype) for name, dtype in dtypes.items()}
    return HostTable(name, group, found, unique, rows_of or {}, of_steps)


def _host_table_of(
    table: Table,
    group: Group = "core",
    *,
    name: str = "",
    unique: tuple[str, ...] = (),
    of_steps: bool = False,
    may_be_nan: Collection[str] = (),
) -> HostTable:
    columns = {c.name: replace(_column(c.name, c.dtype), kind=c.kind) for c in table.columns if c.name != "host"}
    columns |= {column: replace(columns[column], may_be_nan=True) for column in may_be_nan}
    keys = tuple(key for key in unique if key != "host")
    return HostTable(name or table.name, group, columns, keys, of_steps=of_steps)


_OP_SUMS = "part step occurrences total_time_ps self_time_ps int64, is_eager bool"
_OF_PARTS = {"part": "op_parts"}

_TABLES = (
    _host_table_of(RECORDED, unique=RECORDED.keys),
    _host_table_of(
        STEPS, unique=("step",), may_be_nan=("duration_us", *STEP_PARTS)
    ),  # of steps not recorded as a whole
    _table(
        "device_steps",
        "core",
        f"device str, step int64, {' '.join(STEP_PARTS)} sparse_core_busy_us float64",
        ("device", "step"),
        of_steps=True,
    ),
    _table("collectives", "core", "step int64, name str, start_ps duration_ps int64", ("step",), of_steps=True),
    _table("op_parts", "core", "device host_or_device op_type op_name part str, earliest latest int64, shapes str"),
    _table("op_operands", "core", "op_name operands str, occurrences int64"),
    _table("op_totals", "core", _OP_SUMS, ("part",), _OF_PARTS),
    _table("op_wall_totals", "core", "part int32, wall_time_ps float64", ("part",), _OF_PARTS),
    _table("idle", "core", "device host_or_device str, idle_ps int64, busy_ps span_ps float64"),
    _host_table_of(HOST_ANNOTATIONS, unique=HOST_ANNOTATIONS.keys, may_be_nan=("wall_time_us",)),
    _host_table_of(KERNEL_STATS, unique=KERNEL_STATS.keys),
    _host_table_of(COPIES),
    _host_table_of(HLO_OPS, unique=HLO_OPS.keys),
    _table("hlo_contents", "core", "program str, instructions int64, content str", ("program",)),
    _host_table_of(HLO_MEMORY, unique=HLO_MEMORY.keys),
    _host_table_of(COMPILATIONS, unique=COMPILATIONS.keys),
    _table(
        "memory_events",
        "core",
        "memory_id str, row time_ps int64, is_allocation bool, following stack_bytes heap_bytes free_bytes "
        "lifetime_peak_bytes int64, fragmentation float64, requested_bytes allocation_bytes int64, "
        "op_name region_type data_type shape str, step int64, in_step bool",
        ("row",),
        {"following": "memory_events"},
    ),
    _host_table_of(MEMORY_SUMMARY, unique=("memory_id",)),
    _host_table_of(MEMORY_PEAK, unique=MEMORY_PEAK.keys),
    _host_table_of(TF_DATA_PIPELINES, unique=("pipeline",)),
    _host_table_of(TF_DATA, name="tf_data_executions"),
    _host_table_of(TF_DATA_CALLS, unique=("pipeline", "call")),
    _host_table_of(IDLE_GAPS, "steps", unique=("step",), of_steps=True),
    _table("op_cells", "steps", _OP_SUMS, ("part", "step"), _OF_PARTS, of_steps=True),
    _table(
        "op_wall",
        "steps",
        "part int32, step int64, step_part int8, stage int32, wall_time_ps float64",
        rows_of={"part": "op_parts", "stage": "op_parts"},
        of_steps=True,
    ),
    _table(
        "annotation_wall",
        "steps",
        "annotation int32, step int64, step_part int8, wall_time_ps float64",
        ("annotation", "step", "step_part"),
        {"annotation": "host_annotations"},
        of_steps=True,
    ),
    _table(
        "kernel_cells",
        "steps",
        "row step occurrences int64, time_us float64",
        ("row", "step"),
        {"row": "kernel_stats"},
        of_steps=True,
    ),
    _table(
        "hlo_cells",
        "steps",
        "row step executions occurrences total_time_ps self_time_ps int64, flops bytes_accessed float64",
        ("row", "step"),
        {"row": "hlo_ops"},
        of_steps=True,
    ),
    _table("timeline_lanes", "timeline", "plane line line_id str, is_recorded bool"),
    _table(
        "timeline_spans",
        "timeline",
        "lane int32, start_ps duration_ps int64, name op_type op_name str, step int64, launch int32",
        rows_of={"lane": "timeline_lanes", "launch": "timeline_spans"},
    ),
    _host_table_of(HLO_TEXTS, "programs", unique=HLO_TEXTS.keys),
    _host_table_of(HLO_PROGRAMS, "programs", unique=HLO_PROGRAMS.keys),
)
HOST_TABLES: dict[str, HostTable] = {table.name: table for table in _TABLES}
"""Every table of a host file, group by group."""
