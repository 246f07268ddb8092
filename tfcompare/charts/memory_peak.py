"""The chart of what runs have allocated at their peaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from tfcompare.charts import style
from tfcompare.charts.scopes import change_colours
from tfcompare.charts.style import Quantity, side_label
from tfcompare.compare.side import Side
from tfcompare.compare.stats.verdict import SMALLEST_SIZE
from tfcompare.schema import SIDES
from tfcompare.text import middle_ellipsis
from tfcompare.units import format_bytes, format_percent_change

if TYPE_CHECKING:
    import pandas as pd

TILE_LENGTH = 24

LIVE = Quantity("memory at the peak", "bytes", "less memory", "more memory")


def peak_treemap(tree: pd.DataFrame, sides: Sequence[Side], *, by: str) -> go.Figure:
    """What runs have allocated at their peaks, on one scale: area is bytes; of two runs, colour is the change.

    `tree` is the result of `tools.memory.peak_tree`; `by` names its groups (`name scope`).
    """
    alone = len(sides) == 1
    result = style.figure(
        f"Live at the peak{'' if alone else ' of each run'}, by {by}",
        "area: bytes" if alone else "area: bytes, both runs on one scale; colour: change",
        height=460,
        legend_rows=0,
        uniformtext={"minsize": 9, "mode": "hide"},
    )
    before, after = tree["baseline_bytes"], tree["candidate_bytes"]
    titles = {role: side_label(side) for role, side in zip(SIDES, sides, strict=False)}
    changes = [""] * len(tree) if alone else _changes(tree)
    result.add_trace(
        go.Treemap(
            ids=tree["node"],
            parents=tree["parent"],
            labels=[titles.get(label) or style.safe(middle_ellipsis(label, TILE_LENGTH)) for label in tree["label"]],
            values=tree["bytes"],
            branchvalues="total",
            sort=False,
            tiling={"pad": 2},
            texttemplate="%{label}<br>%{customdata[1]}",
            textfont={"color": "white"},
            pathbar={"visible": True, "thickness": 22},
            customdata=np.column_stack([_names(tree, titles), tree["bytes"].map(format_bytes), changes]),
            hovertemplate=f"%{{customdata[0]}}<br>%{{customdata[{1 if alone else 2}]}}<extra></extra>",
            marker={"colors": [style.NEUTRAL] * len(tree)}
            if alone
            else change_colours(before.to_numpy(), _unless_same(before, after).to_numpy(), "memory"),
        )
    )
    return result


def _unless_same(before: pd.Series, after: pd.Series) -> pd.Series:
    """`after`, or `before` where the difference is too small to count."""
    return after.where((after - before).abs() >= SMALLEST_SIZE * before, before)


def _names(tree: pd.DataFrame, titles: dict[str, str]) -> list[str]:
    """The full name of each tile, and its details."""
    names = [titles.get(what) or style.safe(what) for what in tree["what"]]
    details = (f"<br>{style.safe(detail)}" if detail else "" for detail in tree["detail"])
    return [f"<b>{name}</b>{detail}" for name, detail in zip(names, details, strict=True)]


def _changes(tree: pd.DataFrame) -> list[str]:
    """Both sides of each tile, and the change."""
    return [
        f"baseline {format_bytes(before)}, candidate {format_bytes(after)}: {_change(before, after)}"
        for before, after in zip(tree["baseline_bytes"], tree["candidate_bytes"], strict=True)
    ]


def _change(before: float, after: float) -> str:
    if before == 0 or after == 0:
        return "only the candidate has it" if before == 0 else "only the baseline has it"
    return format_percent_change(after / before)
