"""Where the time of an XLA program goes, as an icicle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from tfcompare.charts import style
from tfcompare.charts.scopes import CLIP, COLOURS, NEUTRAL_TILE, change_colours, changes, icicle, log_ratio, merge_small
from tfcompare.compare.diff import ADDED, MATCHED, REMOVED
from tfcompare.schema import SIDES
from tfcompare.units import format_percent, format_time_us

if TYPE_CHECKING:
    from numpy.typing import NDArray

PATTERNS = {MATCHED: "", ADDED: "/", REMOVED: "\\"}
_TIME = "execution_time_us"


def time_icicle(tree: pd.DataFrame, *, by: str, alone: bool, width: str = "width_us") -> go.Figure:
    """Icicle chart of a program: height is `width`, colour the change; added and removed parts are hatched.

    `tree` is the result of `tools.xla_tree.time_tree`; `by` names its groups (`category`); `width` is `width_us` or
    `change_us`. Parts too thin to see are merged. With `alone`, the baseline is shown without colours.
    """
    sums = [*(f"{_TIME}_{role}" for role in SIDES), "width_us", "change_us"]
    nodes = merge_small(tree, tree[width], sums, "\n")
    title = f"Time per execution by {by}"
    what = {"width_us": "the longer time of both runs", "change_us": "size of the change"}[width]
    subtitle = f"height: {what}; colour: change; hatched: in one run only" if not alone else "height: time"
    result = style.figure(title, subtitle, height=460, legend_rows=0, uniformtext={"minsize": 9, "mode": "hide"})
    before, after = (nodes[f"{_TIME}_{role}"].to_numpy(np.float64) for role in SIDES)
    if alone:
        total = float(before[0]) or 1.0
        texts = [format_percent(time / total) for time in before]
        marker: dict[str, object] = {"colors": [NEUTRAL_TILE] * len(nodes)}
        template = "<b>%{customdata[1]}</b><br>%{customdata[2]}, %{customdata[0]}<extra></extra>"
    else:
        texts = changes(nodes, _TIME)
        marker = _hatched(change_colours(before, after, "time"), log_ratio(before, after), nodes["status"])
        template = (
            "<b>%{customdata[1]}</b><br>change %{customdata[0]}<br>baseline %{customdata[2]}"
            "<br>candidate %{customdata[3]}<extra></extra>"
        )
    is_parent = nodes["node"].isin(nodes["parent"])
    names = nodes["label"].map(style.wrap_text).tolist()
    hover = [texts, names, *(nodes[f"{_TIME}_{role}"].map(format_time_us).tolist() for role in SIDES)]
    values = nodes[width].mask(is_parent, 0.0).to_numpy(np.float64)
    tiles = icicle(nodes, values, hover, marker)
    tiles.update(branchvalues="remainder", maxdepth=-1, leaf={"opacity": 1}, hovertemplate=template)
    return result.add_trace(tiles)


def _hatched(marker: dict[str, object], ratios: NDArray[np.float64], status: pd.Series) -> dict[str, object]:
    """The marker with hatched tiles where `status` is `added` or `removed`.

    Plotly paints tiles with patterns black unless their colours are given one by one.
    """
    colours = sample_colorscale(COLOURS, ((ratios + CLIP) / (2 * CLIP)).tolist())
    hatching = {"shape": status.map(PATTERNS).tolist(), "bgcolor": colours, "fgcolor": "rgba(255,255,255,0.35)"}
    return marker | {"colors": colours, "pattern": hatching | {"fillmode": "replace"}}
