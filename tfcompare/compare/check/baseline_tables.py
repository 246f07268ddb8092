"""The smallest tables of a side that `check` needs, as columns for a JSON file, and the runs that these make again.

Ops and kernels that take little time are one row together, so that sums over all of them stay as they were.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tfcompare.compare.matching.overlap import OTHERS
from tfcompare.compare.matching.scopes import UNTYPED
from tfcompare.compare.repeats import with_keys_of
from tfcompare.compare.side import Side
from tfcompare.frames import HostTables
from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.ops.op_parts import NO_STEP
from tfcompare.frames.origin import Origin
from tfcompare.run import Run
from tfcompare.schema import DEVICE, HOST_TABLES, KERNEL_STATS, STEP_PRECISIONS, HostColumn
from tfcompare.schema.arrays import Int64
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.machine_load import MachineLoad
from tfcompare.sources.step_choice import StepChoice
from tfcompare.store.contents import Damaged
from tfcompare.store.pack_checks import check_table
from tfcompare.tables.op_parts import OP
from tfcompare.tables.step_kinds import PROGRAM
from tfcompare.tables.step_times import host_starts_and_end
from tfcompare.xspace.space import PS_PER_US

_DECIMALS = 6
"""Times in µs are recorded in ps."""
_MOST_ROWS = 200_000
"""Of all tables: far more than a file has room for where each row has a value of its own."""

_MOST_NS = 1 << 63
"""Nanoseconds since 1970, until the year 2262."""

_COSTS = ("flops", "bytes_accessed")
_PEAKS = ("peak_flops_per_s", "peak_bytes_per_s")
_OP_SUMS = ("occurrences", "self_time_ps")
_HLO_SUMS = ("executions", "occurrences", "total_time_ps", "self_time_ps", *_COSTS)
_COLUMNS: dict[str, tuple[str, ...]] = {
    "recorded": tuple(HOST_TABLES["recorded"].columns),
    "steps": tuple(name for name in HOST_TABLES["steps"].columns if name not in STEP_PRECISIONS),
    "idle": tuple(HOST_TABLES["idle"].columns),
    "op_parts": ("device", *OP),
    "op_totals": ("part", "step", *_OP_SUMS),
    "op_cells": ("part", "step", *_OP_SUMS),
    "kernel_stats": ("kernel_name", "occurrences", "total_duration_us"),
    "kernel_cells": tuple(HOST_TABLES["kernel_cells"].columns),
    "hlo_ops": (
        *("hlo_op", "core_type", "occurrences", "executions", "total_time_us", "self_time_us", "is_rematerialized"),
        *(*_COSTS, *_PEAKS),
    ),
    "hlo_cells": tuple(HOST_TABLES["hlo_cells"].columns),
    "memory_events": ("memory_id", "row", "time_ps", "stack_bytes", "heap_bytes"),
    "memory_summary": tuple(HOST_TABLES["memory_summary"].columns),
    "tf_data_pipelines": ("pipeline", "calls", "feeds_device"),
    "tf_data_executions": ("pipeline", "execution", "iterator_id", "long_name", "parent_id", "shapes", "settings"),
    "tf_data_calls": ("pipeline", "call", "latency_us"),
}
"""What is written of which tables; what else a table has is unknown to runs made of a file."""

Value = int | float | bool | str | None


@dataclass(frozen=True)
class TableRecord:
    """A table: how many `rows`, and by column their values, or one value that all have; null is unknown."""

    rows: int
    columns: dict[str, list[Value] | Value]


@dataclass(frozen=True)
class HostRecord:
    """The tables of one host, and what `HostTables` has beside them."""

    host: str
    digest: str
    origin: Origin
    step_source: str
    why_untimed: str
    tables: dict[str, TableRecord]


@dataclass(frozen=True)
class CaptureRecord:
    """One capture; the fields are those of `Run`."""

    name: str
    content_id: str
    recorded: datetime
    recorded_source: str
    choice: StepChoice
    machine_load: MachineLoad | None
    hosts: tuple[HostRecord, ...]


@dataclass(frozen=True)
class LeftOut:
    """What has no rows of its own: the (name, type) of ops and the names of kernels, the longest times first, and how
    many more are not named."""

    ops: tuple[tuple[str, str], ...] = ()
    more_ops: int = 0
    kernels: tuple[str, ...] = ()
    more_kernels: int = 0


@dataclass(frozen=True, eq=False)
class _Host:
    """The tables of one host of a capture, with the names of the first capture."""

    run: Run
    tables: HostTables
    ops: pd.DataFrame
    kernels: pd.DataFrame

    def table(self, name: str) -> pd.DataFrame:
        return self.run.tables.host_table(name, host=self.tables.host)


@dataclass(frozen=True, eq=False)
class SideTables:
    """The tables of a side that are written, and the times of its `ops` (by name and type) and `kernels` (by name), the
    longest first."""

    side: Side
    hosts: list[list[_Host]]
    ops: pd.Series
    kernels: pd.Series

    @classmethod
    def of(cls, side: Side) -> SideTables:
        """Those of a side of a comparison."""
        hosts = [[_host(side, position, one) for one in side.runs[position].hosts] for position in side.positions]
        ops, kernels = [], []
        for one in (host for of_capture in hosts for host in of_capture):
            totals, cells = one.table("op_totals"), one.table("kernel_stats")
            times = totals["self_time_ps"].groupby(totals["part"]).sum().reindex(range(len(one.ops)), fill_value=0)
            ops.append(times.groupby([one.ops["op_name"].to_numpy(), one.ops["op_type"].to_numpy()]).sum())
            kernels.append(cells["total_duration_us"].groupby(one.kernels["kernel_name"].to_numpy()).sum())
        return cls(side, hosts, _longest_first(ops), _longest_first(kernels))

    def records(self, most: int) -> tuple[CaptureRecord, ...]:
        """The captures, with `most` ops and kernels in rows of their own."""
        ops, kernels = ({*times.index[:most]} for times in (self.ops, self.kernels))
        captures = []
        for run, hosts in zip(self.side.runs, self.hosts, strict=True):
            records = tuple(_record(one, ops, kernels) for one in hosts)
            found = run.found
            captures.append(
                CaptureRecord(
                    *(found.name, run.content_id, found.recorded, found.recorded_source, run.choice),
                    *(run.machine_load, records),
                )
            )
        return tuple(captures)


def _longest_first(times: Sequence[pd.Series]) -> pd.Series:
    whole = pd.concat(times)
    levels = list(range(whole.index.nlevels))
    sums: pd.Series = whole.groupby(level=levels).sum().sort_values(ascending=False, kind="stable")
    return sums


def _host(side: Side, position: int, tables: HostTables) -> _Host:
    run = side.runs[position]
    parts, kernels = (run.tables.host_table(name, host=tables.host) for name in ("op_parts", "kernel_stats"))
    ops = with_keys_of(side.keys(position, "op_stats"), parts, OP)
    return _Host(run, tables, ops, with_keys_of(side.keys(position, KERNEL_STATS.name), kernels))


def _record(one: _Host, ops: set[tuple[str, str]], kernels: set[str]) -> HostRecord:
    frames = {name: one.table(name) for name in ("recorded", "steps", "idle", "memory_summary", "tf_data_pipelines")}
    frames |= _op_tables(one, ops) | _kernel_tables(one, kernels) | _hlo_tables(one) | _tf_data_tables(one)
    frames["memory_events"] = _memory_events(one)
    facts, origin = one.tables, replace(one.tables.origin, remarks=())
    tables = {name: _columnar(name, frame) for name, frame in sorted(frames.items()) if len(frame)}
    return HostRecord(facts.host, facts.digest, origin, facts.step_source, facts.why_untimed, tables)


def _op_tables(one: _Host, kept: set[tuple[str, str]]) -> dict[str, pd.DataFrame]:
    """The ops that are kept, and the others of each program that JAX names in them as one: of all devices together, but
    for an op of each device that computed, so that these can be counted."""
    named = one.ops[["device", *OP]]
    is_kept = np.array([pair in kept for pair in zip(named["op_name"], named["op_type"], strict=True)], np.bool_)
    is_typed = ~named["op_type"].isin(UNTYPED)
    prefix = named["op_name"].str.extract(f"({PROGRAM.pattern})", expand=True)[0].fillna("")
    named = named.assign(
        op_name=named["op_name"].where(is_kept, prefix + OTHERS),
        op_type=named["op_type"].where(is_kept | ~is_typed, OTHERS),
    )
    on_devices = is_typed & (named["host_or_device"] == DEVICE)
    devices = named.loc[on_devices, "device"]
    named.loc[devices.index[devices.duplicated()], "device"] = devices.min()
    parts, code = _grouped(named)
    sums, totals, cells = list(_OP_SUMS), one.table("op_totals"), one.table("op_cells")
    cells = cells[cells["step"] != NO_STEP]
    of_all = totals.assign(part=code[totals["part"]]).groupby("part")[sums].sum().reset_index()
    return {
        "op_parts": parts,
        "op_totals": of_all.assign(step=NO_STEP),
        "op_cells": cells.assign(part=code[cells["part"]]).groupby(["part", "step"])[sums].sum().reset_index(),
    }


def _kernel_tables(one: _Host, kept: set[str]) -> dict[str, pd.DataFrame]:
    names = one.kernels["kernel_name"]
    rows, code = _grouped(pd.DataFrame({"kernel_name": names.where(names.isin(kept), OTHERS)}))
    sums = one.kernels[["occurrences", "total_duration_us"]].groupby(code).sum()
    cells = one.table("kernel_cells")
    of_rows = cells.assign(row=code[cells["row"]]).groupby(["row", "step"])[["occurrences", "time_us"]].sum()
    return {"kernel_stats": rows.join(sums), "kernel_cells": of_rows.reset_index()}


def _hlo_tables(one: _Host) -> dict[str, pd.DataFrame]:
    """The instructions, as one row for those of each core whose costs and peaks are known alike."""
    ops, cells = one.table("hlo_ops"), one.table("hlo_cells")
    of_cells = ops.iloc[cells["row"].to_numpy()].reset_index(drop=True)
    for cost in _COSTS:  # as `hlo_ops_in_steps`: by executions, unless each execution recorded it
        is_recorded = cells[cost].notna().groupby(cells["row"]).transform("all")
        by_executions = of_cells[cost] * cells["executions"] / of_cells["executions"].clip(lower=1)
        cells = cells.assign(**{cost: cells[cost].where(is_recorded, by_executions)})
    alike = ["core_type", "is_rematerialized", *_PEAKS]
    signs = {f"sign_of_{cost}": np.sign(ops[cost].to_numpy(np.float64)) for cost in _COSTS}
    rows, code = _grouped(ops[alike].assign(**signs))
    sums = ["occurrences", "executions", "total_time_us", "self_time_us", *_COSTS]
    named = rows.assign(hlo_op=[f"{OTHERS}{number}" for number in range(len(rows))])
    summed = ops[sums].groupby(code).sum(min_count=1)
    groups = cells.assign(row=code[cells["row"]]).groupby(["row", "step"])[list(_HLO_SUMS)]
    return {"hlo_ops": named.join(summed), "hlo_cells": groups.sum(min_count=1).reset_index()}


def _memory_events(one: _Host) -> pd.DataFrame:
    """Of each memory the last event before each step begins, and before the last one ends: the levels that
    `memory_growth` takes."""
    events, steps = one.table("memory_events"), one.table("steps")
    if steps.empty or events.empty:
        return events.iloc[:0]
    start, end = host_starts_and_end(steps)
    time_us = events["time_ps"].to_numpy() / PS_PER_US
    kept = np.zeros(len(events), np.bool_)
    for rows in events.groupby("memory_id").indices.values():
        at = np.searchsorted(time_us[rows], np.append(start, end), side="left") - 1
        kept[np.asarray(rows)[np.unique(at[at >= 0])]] = True
    return events[kept]


def _tf_data_tables(one: _Host) -> dict[str, pd.DataFrame]:
    """The calls of the slowest pipeline that the program asks, and what the iterators tell of the size of a batch."""
    calls, iterators = one.table("tf_data_calls"), one.table("tf_data_executions")
    means = calls.loc[calls["pipeline"].str.startswith("Host:")].groupby("pipeline", sort=False)["latency_us"].mean()
    slowest = means.idxmax() if len(means) else ""
    tells = (iterators["parent_id"] == "") | iterators["settings"].str.contains("batch_size=", regex=False)
    return {
        "tf_data_calls": calls[calls["pipeline"] == slowest],
        "tf_data_executions": iterators[(iterators["execution"] == 0) & tells],
    }


def _grouped(rows: pd.DataFrame) -> tuple[pd.DataFrame, Int64]:
    """(the distinct rows in order; which of them each row is)."""
    if rows.empty:
        return rows, np.zeros(0, np.int64)
    code: Int64 = rows.groupby(list(rows), sort=False, dropna=False).ngroup().to_numpy().astype(np.int64)
    return rows.drop_duplicates().reset_index(drop=True), code


def _columnar(name: str, frame: pd.DataFrame) -> TableRecord:
    columns: dict[str, list[Value] | Value] = {}
    for column in _COLUMNS[name]:
        values = [_plain(value) for value in frame[column].astype(object)]
        columns[column] = values[0] if all(value == values[0] for value in values) else values
    return TableRecord(len(frame), columns)


def _plain(value: Any) -> Value:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    return round(float(value), _DECIMALS) if isinstance(value, float) else getattr(value, "item", lambda: value)()


def restored(capture: CaptureRecord, place: PurePath) -> Run:
    """The run that makes these tables again, whose path is below `place`.

    Raises `Damaged` for values that tfcompare does not write.
    """
    if sum(table.rows for host in capture.hosts for table in host.tables.values()) > _MOST_ROWS:
        raise Damaged(f"has tables of more than {_MOST_ROWS:,} rows")
    if not capture.hosts or len({host.host for host in capture.hosts}) < len(capture.hosts):
        raise Damaged("has a capture without hosts, or with one twice")
    if not all(0 <= host.origin.start_ns < _MOST_NS for host in capture.hosts):
        raise Damaged("has a time of recording that cannot be")
    path = place / capture.name
    return Run(
        id=str(path),
        name=capture.name,
        path=path,
        content_id=capture.content_id,
        host_names=tuple(sorted(host.host for host in capture.hosts)),
        remarks=(),
        found=FoundRun(str(path), capture.name, path, (), (), capture.recorded, capture.recorded_source),
        hosts=tuple(map(_host_tables, sorted(capture.hosts, key=lambda host: host.host))),
        choice=capture.choice,
        machine_load=capture.machine_load,
    )


def _host_tables(record: HostRecord) -> HostTables:
    found = {name: _arrow(name, table) for name, table in record.tables.items() if table.rows}
    tables = {name: found[name] if name in found else empty(name) for name in HOST_TABLES}
    try:
        for name, table in found.items():
            check_table(name, table, _Tables(tables))
    except Damaged as error:
        raise Damaged(f"has numbers that cannot be ({error})") from None
    return HostTables(record.host, record.digest, record.origin, record.step_source, (), (), record.why_untimed, tables)


@dataclass(frozen=True)
class _Tables:
    """See `pack_checks.Packs`: those of one host."""

    tables: Mapping[str, pa.Table] = field(repr=False)

    def table(self, name: str) -> pa.Table:
        return self.tables[name]

    def rows(self, name: str) -> Int64:
        return np.array([len(self.tables[name])], np.int64)


def _arrow(name: str, table: TableRecord) -> pa.Table:
    """The Arrow table of a record. Raises `Damaged`."""
    if name not in _COLUMNS or not 0 <= table.rows <= _MOST_ROWS:
        raise Damaged(f"has a table {name!r} of {table.rows} rows, which cannot be")
    try:
        return host_table(name, dict(_cells(name, table)))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise Damaged(f"has values of another type, or too large ones, in its table {name}") from None


def _cells(name: str, table: TableRecord) -> Iterator[tuple[str, pa.Array]]:
    for column, declared in HOST_TABLES[name].columns.items():
        value = table.columns.get(column, _unknown(declared))
        values = value if isinstance(value, list) else [value] * table.rows
        if len(values) != table.rows:
            raise Damaged(f"has {len(values)} values of {column} in its table {name} of {table.rows} rows")
        if declared.dtype == "float64":
            values = [math.nan if one is None else one for one in values]
        elif declared.dtype not in ("Int64", "Float64") and None in values:
            raise Damaged(f"lacks a value of {column} in its table {name}")
        if declared.dtype == "str" and not all(isinstance(one, str) for one in values):
            raise Damaged(f"has a {column} that is no text in its table {name}")
        yield column, pa.array(values, pa.string() if declared.dtype == "str" else _arrow_type(declared))


def _unknown(declared: HostColumn) -> Value:
    """What a column has of which the file says nothing."""
    if declared.dtype in ("str", "bool"):
        return "" if declared.dtype == "str" else False
    if declared.may_be_nan or declared.dtype in ("Int64", "Float64"):
        return None
    return -1 if declared.least == -1 else 0


def _arrow_type(declared: HostColumn) -> pa.DataType:
    return pa.type_for_alias(declared.dtype.lower())
