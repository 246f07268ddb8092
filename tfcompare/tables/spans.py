"""`spans`: the recorded events of a run's timeline, with the instruction of a compiled program that each ran."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from tfcompare import schema
from tfcompare.frames import HostTables, table_of_hosts
from tfcompare.frames.arrow import texts, with_labels_once
from tfcompare.frames.grouping import combinations
from tfcompare.frames.ops.op_parts import NO_STEP
from tfcompare.frames.planes import names_instructions, place_of
from tfcompare.schema.arrays import Int64
from tfcompare.tables.host_frames import CommonSteps
from tfcompare.tables.op_stats import ops_of_instructions
from tfcompare.xspace.space import PS_PER_US

_PLACES = (schema.HOST, schema.DEVICE, schema.SPARSE_CORE)


def spans(hosts: Sequence[HostTables], instructions: pd.DataFrame, common_steps: CommonSteps | None) -> pa.Table:
    """Columns of `schema.SPANS` of these hosts, texts as dictionaries.

    `instructions` are their `hlo_ops` with `host_or_device`; `common_steps` gives the steps of the run for those of a
    host, None where they are the same. Raises a `TfcompareError` if a profile is not there any more.
    """
    (lanes, of_lanes), (rows, of_rows) = (table_of_hosts(f"timeline_{name}", hosts) for name in ("lanes", "spans"))
    lanes, rows = with_labels_once(lanes), with_labels_once(rows)
    host, span = _numbered(of_rows)
    lane = rows["lane"].to_numpy() + _firsts(of_lanes)[host]
    shown = np.flatnonzero(lanes["is_recorded"].to_numpy(zero_copy_only=False)[lane])
    rows, host, span, lane = rows.take(shown).combine_chunks(), host[shown], span[shown], lane[shown]
    planes = lanes["plane"].combine_chunks().take(lane)
    labels = planes.dictionary.to_pylist()
    place = np.array([_PLACES.index(place_of(name)) for name in labels], np.int32)[planes.indices.to_numpy()]
    is_named = np.array([names_instructions(name) for name in labels], np.int64)[planes.indices.to_numpy()]
    names = [one.host for one in hosts]
    step, launch = rows["step"].to_numpy(), rows["launch"].to_numpy()
    if common_steps is not None:
        own = np.split(step, np.searchsorted(host, np.arange(1, len(hosts))))
        step = np.concatenate([common_steps(name, one) for name, one in zip(names, own, strict=True)])
    ops = {name: rows[name].combine_chunks() for name in ("name", "op_type", "op_name")}
    columns = {
        "host": texts(host, names),
        "span": span,
        "plane": planes,
        **{name: lanes[name].combine_chunks().take(lane) for name in ("line", "line_id")},
        "host_or_device": texts(place, _PLACES),
        **ops,
        **_instructions([host, place, is_named], ops["op_name"], ops["name"], _ops(names, instructions)),
        "step": pa.array(step, mask=step == NO_STEP),
        "start_us": rows["start_ps"].to_numpy() / PS_PER_US,
        "duration_us": rows["duration_ps"].to_numpy() / PS_PER_US,
        "launched_by": pa.array(launch.astype(np.int64), mask=launch < 0),
    }
    return pa.table({name: columns[name] for name in schema.SPANS.column_names})


def _numbered(counts: Sequence[int]) -> tuple[Int64, Int64]:
    """For each row of tables with so many rows: (the number of its table, its number in it)."""
    table = np.repeat(np.arange(len(counts)), counts)
    return table, np.arange(len(table)) - _firsts(counts)[table]


def _firsts(counts: Sequence[int]) -> Int64:
    return np.cumsum([0, *counts[:-1]])


def _ops(hosts: Sequence[str], instructions: pd.DataFrame) -> pd.DataFrame:
    """Columns `host` (its number), `place` (a position in `_PLACES`), `op`, `program` and `hlo_op`."""
    columns = {
        "host": instructions["host"].map({name: number for number, name in enumerate(hosts)}).to_numpy(),
        "place": instructions["host_or_device"].map({name: at for at, name in enumerate(_PLACES)}).to_numpy(),
        "op": ops_of_instructions(instructions),
    }
    return pd.DataFrame(columns).assign(**{name: instructions[name].array for name in ("program", "hlo_op")})


def _instructions(
    where: Sequence[Int64], op: pa.DictionaryArray, name: pa.DictionaryArray, known: pd.DataFrame
) -> dict[str, pa.DictionaryArray]:
    """`program` and `hlo_op` of each event: of the op's instructions that of the event's name, or the only one.

    `where`: of each event its host, its place, and 1 if it has the name of an instruction, else 0.
    """
    firsts, code = combinations(*where, op.indices.to_numpy(), name.indices.to_numpy())
    host, place, is_named = (column[firsts] for column in where)
    ops, names = (pd.array(column.take(firsts).to_pylist(), "str") for column in (op, name))
    place = np.where(ops == "", -1, place)  # no op: as none of the instructions
    keys = ["host", "place", "op"]
    events = pd.DataFrame({"host": host, "place": place, "op": ops, "hlo_op": names})
    of_name = events.merge(_only(known, [*keys, "hlo_op"], "program"), "left", [*keys, "hlo_op"])
    of_op = events[keys].merge(_only(known, keys, "program", "hlo_op"), "left", keys)
    is_known = (is_named > 0) & of_name["program"].notna()
    columns = {key: of_name[key].where(is_known, of_op[key]) for key in ("program", "hlo_op")}
    found = {key: pa.array(each.fillna("").tolist(), pa.string()) for key, each in columns.items()}
    return {key: each.dictionary_encode().take(code) for key, each in found.items()}


def _only(known: pd.DataFrame, keys: list[str], *columns: str) -> pd.DataFrame:
    """The value of each of these columns for each combination of keys; empty where there are several."""
    groups = known.groupby(keys, sort=False)
    return pd.DataFrame(
        {one: groups[one].first().where(groups[one].nunique() == 1, "") for one in columns}
    ).reset_index()
