"""Every table's columns, declared once: name, dtype, kind, unit, label, meaning.

Frames, diffs, the command line, CSV headers and pages all read the columns from here. Times are microseconds as float64
unless a name says otherwise.
"""

from __future__ import annotations

from tfcompare.errors import Unknown
from tfcompare.schema.columns import ALL_HOSTS, DEVICE, HOST, IDLE, SIDES, SPARSE_CORE, Column, Kind, Table, place_word
from tfcompare.schema.hlo import COMPILATIONS, HLO_EDGES, HLO_MEMORY, HLO_OPS, HLO_PROGRAMS, HLO_TEXTS, OP_PROFILE
from tfcompare.schema.host_tables import HOST_TABLES, Group, HostColumn, HostTable
from tfcompare.schema.input import INPUT_PIPELINE, TF_DATA, TF_DATA_CALLS, TF_DATA_PIPELINES
from tfcompare.schema.kernels import COPIES, KERNEL_STATS, KERNEL_STEPS
from tfcompare.schema.memory import MEMORY_PEAK, MEMORY_SUMMARY, MEMORY_TIMELINE
from tfcompare.schema.ops import HOST_ANNOTATIONS, IDLE_GAPS, OP_SHAPES, OP_STATS, OP_STEPS
from tfcompare.schema.runs import (
    DEVICE_BUSY_PARTS,
    HOSTS,
    RECORDED,
    RUN_INFO,
    SLOW_STEPS,
    STEP_PARTS,
    STEP_PRECISIONS,
    STEPS,
    UNEXPLAINED_PARTS,
)
from tfcompare.schema.timeline import SPANS

__all__ = [
    "ALL_HOSTS",
    "COMPILATIONS",
    "COPIES",
    "DEVICE",
    "DEVICE_BUSY_PARTS",
    "HLO_EDGES",
    "HLO_MEMORY",
    "HLO_OPS",
    "HLO_PROGRAMS",
    "HLO_TEXTS",
    "HOST",
    "HOSTS",
    "HOST_ANNOTATIONS",
    "HOST_TABLES",
    "IDLE",
    "IDLE_GAPS",
    "INPUT_PIPELINE",
    "IN_STEPS",
    "KERNEL_STATS",
    "KERNEL_STEPS",
    "MEMORY_PEAK",
    "MEMORY_SUMMARY",
    "MEMORY_TIMELINE",
    "NOT_BY_STEP",
    "OF_DEVICES",
    "OF_EACH",
    "OF_EACH_HOST",
    "OP_PROFILE",
    "OP_SHAPES",
    "OP_STATS",
    "OP_STEPS",
    "RECORDED",
    "RUN_INFO",
    "SIDES",
    "SLOW_STEPS",
    "SPANS",
    "SPARSE_CORE",
    "STEPS",
    "STEP_PARTS",
    "STEP_PRECISIONS",
    "STEP_TABLES",
    "TABLES",
    "TF_DATA",
    "TF_DATA_CALLS",
    "TF_DATA_PIPELINES",
    "UNEXPLAINED_PARTS",
    "Column",
    "Group",
    "HostColumn",
    "HostTable",
    "Kind",
    "Table",
    "place_word",
    "table",
]

_TABLES = (
    *(RUN_INFO, RECORDED, STEPS, SLOW_STEPS, HOSTS, OP_STATS, OP_STEPS, OP_SHAPES, HOST_ANNOTATIONS, IDLE_GAPS),
    *(SPANS, KERNEL_STATS, KERNEL_STEPS, COPIES, HLO_OPS, HLO_TEXTS, HLO_PROGRAMS, HLO_EDGES, OP_PROFILE, HLO_MEMORY),
    *(
        COMPILATIONS,
        MEMORY_SUMMARY,
        MEMORY_TIMELINE,
        MEMORY_PEAK,
        INPUT_PIPELINE,
        TF_DATA_PIPELINES,
        TF_DATA_CALLS,
        TF_DATA,
    ),
)
TABLES: dict[str, Table] = {table.name: table for table in _TABLES}

STEP_TABLES = (OP_STATS.name, KERNEL_STATS.name)
"""Tables with values for each step, so that differences can be tested."""

OF_DEVICES = (KERNEL_STATS.name, COPIES.name, HLO_OPS.name, HOSTS.name)
"""Tables of what ran on devices, and of nothing else where there are any."""

OF_EACH_HOST = (INPUT_PIPELINE.name, HOST_ANNOTATIONS.name)
OF_EACH = (OP_STATS.name, KERNEL_STATS.name, COPIES.name, HLO_OPS.name, OP_PROFILE.name, *OF_EACH_HOST)
"""Tables with sums over devices or hosts; where the compared runs have other numbers of them, the sums are of each."""

IN_STEPS = (*STEP_TABLES, HLO_OPS.name)
"""Tables whose sums are known for the included steps alone (`RunTables.in_steps`)."""

NOT_BY_STEP = ("flops", "bytes_accessed")
"""Sums in `IN_STEPS` that are known for the whole profile only: those of steps are by occurrences or executions."""


def table(name: str) -> Table:
    """The declared table of that name. Raises `Unknown` if there is none."""
    if name not in TABLES:
        raise Unknown("table", name, sorted(TABLES))
    return TABLES[name]
