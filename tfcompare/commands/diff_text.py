"""Formats a diff for a terminal: the keys, the main metric in four columns, then how the row was matched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare import schema
from tfcompare.render.colour import Tone, tone_of
from tfcompare.render.text_table import ColumnScale, TextColumn, column_scale, number_column, text_column
from tfcompare.schema import SIDES
from tfcompare.units import format_ratio

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.compare.diff import SumsPer

KEY_RANKS = {
    "op_type": 4,
    "host_or_device": 3,
    "category": 4,
    "core_type": 4,
    "memory_id": 2,
    "region_type": 4,
    "data_type": 4,
    "shape": 4,
    "execution": 40,
    "iterator_id": 40,
    "block_dim": 40,
    "grid_dim": 40,
    "registers_per_thread": 40,
    "shared_memory_bytes": 40,
}
"""The ranks (`TextColumn.rank`) of keys that say less than the names beside them."""
_COUNT_RANK, _MATCH_RANK, _CHANGE_RANK = 8, 7, 1


def as_text(frame: pd.DataFrame, table: schema.Table, per: SumsPer) -> list[TextColumn]:
    """The diff's columns for a terminal, its sums `per` what they are. A table with one row per run (`run_info`) is
    transposed."""
    if table.keys == ("run",):
        return _transposed(frame, table, per)
    columns = [text_column(name, frame[name], rank=KEY_RANKS.get(name, 0)) for name in _key_columns(frame, table)]
    if "long_name_baseline" in frame:  # ids of iterators mean nothing to a reader
        names = frame["long_name_baseline"].where(frame["status"] != "added", frame["long_name_candidate"])
        columns.append(text_column("long name", names))
    outcomes = _outcomes(frame)
    tones = [tone_of(one) for one in outcomes]
    main = table.headline or next(c.name for c in table.metrics if c.is_number)
    columns += _metric_columns(frame, table.column(main), per, tones)
    for metric in table.metrics:
        if metric.kind == "sum" and not metric.unit:
            columns += _both_sides(frame, metric, per, rank=_COUNT_RANK)
    status = frame["status"]
    if not outcomes:
        return [*columns, text_column("match", frame["match"].where(status == "matched", status))]
    return [
        *columns,
        text_column("match", frame["match"], rank=_MATCH_RANK),
        text_column("verdict", outcomes, tones=tones),
    ]


def _outcomes(frame: pd.DataFrame) -> list[str]:
    """What became of each row, in words; none if nothing was tested."""
    from tfcompare.compare.diff import outcome

    if "verdict" not in frame or not set(frame["verdict"].dropna()) - {"untested"}:
        return []
    return list(map(outcome, frame["status"], frame["verdict"], frame["evidence"]))


def _key_columns(frame: pd.DataFrame, table: schema.Table) -> list[str]:
    """The candidate and key columns, without those that have the same value in every row."""
    names = [n for n in ("candidate", *table.keys) if n in frame]
    return [n for n in names if n not in ("candidate", "host", "host_or_device", "core_type") or frame[n].nunique() > 1]


def _label(metric: schema.Column, per: SumsPer, unit: str) -> str:
    of_one = f"/{per.of(metric)}" if per.of(metric) else ""
    return f"{metric.label.lower()} ({unit}{of_one})" if unit else f"{metric.label.lower()}{of_one}"


def _scale_of(frame: pd.DataFrame, metric: schema.Column) -> ColumnScale:
    values = [v for side in SIDES for v in frame[f"{metric.name}_{side}"]]
    return column_scale(metric.unit, values)


def _both_sides(frame: pd.DataFrame, metric: schema.Column, per: SumsPer, rank: int = 0) -> list[TextColumn]:
    shown = _scale_of(frame, metric)
    group = _label(metric, per, shown.unit)
    return [
        number_column(side, frame[f"{metric.name}_{side}"] * shown.factor, shown.decimals, group=group, rank=rank)
        for side in SIDES
    ]


def _metric_columns(frame: pd.DataFrame, metric: schema.Column, per: SumsPer, tones: list[Tone]) -> list[TextColumn]:
    shown = _scale_of(frame, metric)
    group = _label(metric, per, shown.unit)
    change = frame[f"{metric.name}_delta"] * shown.factor
    ratios = [format_ratio(r) for r in frame[f"{metric.name}_ratio"]]
    return [
        *_both_sides(frame, metric, per),
        number_column("change", change, shown.decimals, sign="+", group=group, rank=_CHANGE_RANK, tones=tones),
        TextColumn("ratio", ratios, is_number=True, group=group, tones=tones),
    ]


def _transposed(frame: pd.DataFrame, table: schema.Table, per: SumsPer) -> list[TextColumn]:
    """One line per metric: its label, the baseline's value, and each candidate's."""
    labels: list[str] = []
    cells: list[list[str]] = []
    for metric in table.metrics:
        values = [frame[f"{metric.name}_baseline"].iloc[0], *frame[f"{metric.name}_candidate"]]
        shown = column_scale(metric.unit, values) if metric.is_number else ColumnScale(1.0, "", 0)
        labels.append(_label(metric, per, shown.unit))
        if metric.is_number:
            cells.append(number_column("", [v * shown.factor for v in values], shown.decimals).cells)
        else:
            cells.append(text_column("", values).cells)
    candidates = list(frame["candidate"]) if len(frame) > 1 else ["candidate"]
    sides = [list(side) for side in zip(*cells, strict=True)]
    named = zip(["baseline", *candidates], sides, strict=True)
    return [TextColumn("", labels), *(TextColumn(name, values) for name, values in named)]
