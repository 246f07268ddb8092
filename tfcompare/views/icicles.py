"""Icicle chart of the name scopes of ops: their time, and how it changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfcompare.schema import SIDES
from tfcompare.text import middle_ellipsis
from tfcompare.units import format_percent, format_percent_change, format_time_us
from tfcompare.views import chart_style as style
from tfcompare.views.verdict_marks import SIGNS, text_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEPTH = 5
LABEL_LENGTH = 24
SMALLEST_SHARE = 0.005
"""Scopes below this share of the whole are merged, as they would be too thin to see."""

SMALLER = "smaller"
CLIP = 3.0
"""The colour scale ends at ratios of 8 (2³) and ⅛."""

NEUTRAL_TILE = "#6B7380"
COLOURS = [[0.0, "#12509E"], [1 / 3, "#2C6DB8"], [0.5, NEUTRAL_TILE], [2 / 3, "#AD5A14"], [1.0, "#A34700"]]
"""Darker than the blue and orange of bars, to contrast with white text; saturated from half and twice the time on."""


def scope_icicle_alone(tree: pd.DataFrame, metric: str, *, per: str, place: str) -> go.Figure:
    """As `scope_icicle`, for the baseline alone: height is its self time."""
    nodes = fold_chains(merge_small_scopes(tree, metric))
    times = nodes[f"{metric}_baseline"]
    whole = float(times[nodes["parent"] == ""].sum()) or 1.0
    hover = [
        texts.tolist()
        for texts in ((times / whole).map(format_percent), nodes["node"].map(style.safe), times.map(format_time_us))
    ]
    result = _figure(place, f"height: self time per {per}; click a scope to enlarge it")
    tiles = icicle(nodes, times.to_numpy(dtype=np.float64), hover, {"colors": [NEUTRAL_TILE] * len(nodes)})
    template = "<b>%{customdata[1]}</b><br>%{customdata[2]}, %{customdata[0]}<extra></extra>"
    return result.add_trace(tiles.update(hovertemplate=template))


def scope_icicle(tree: pd.DataFrame, metric: str, *, per: str, place: str) -> go.Figure:
    """Icicle chart of name scopes, left to right: height is the self time of both runs together, colour the change.

    `tree` is one root of a `compare.scope_tree.scope_tree` and all rows below it, with `node`, `parent`, `label`,
    `<metric>_baseline`, `_candidate`, `status` and optionally `verdict` and `evidence`. `place` is where the ops ran
    (`host`). Scopes too thin to see are merged, so that the parts always add up to the whole.
    """
    nodes = fold_chains(merge_small_scopes(tree, metric))
    sides = [nodes[f"{metric}_{role}"].to_numpy(dtype=np.float64) for role in SIDES]
    result = _figure(place, f"height: self time per {per}, both runs together; colour: change; click to enlarge")
    marker = change_colours(sides[0], sides[1], "time")
    tiles = icicle(nodes, sides[0] + sides[1], _texts(nodes, metric), marker)
    template = (
        "<b>%{customdata[1]}</b><br>change %{customdata[0]}<br>baseline %{customdata[2]}"
        "<br>candidate %{customdata[3]}%{customdata[4]}<extra></extra>"
    )
    return result.add_trace(tiles.update(hovertemplate=template))


def _figure(place: str, subtitle: str) -> go.Figure:
    title = f"Self time on {place} by name scope"
    return style.figure(title, subtitle, height=460, legend_rows=0, uniformtext={"minsize": 9, "mode": "hide"})


def icicle(
    nodes: pd.DataFrame, values: NDArray[np.float64], hover: list[list[str]], marker: dict[str, object]
) -> go.Icicle:
    """Tiles of these values, each with its label and `hover[0]`; a node's value includes that of its children."""
    return go.Icicle(
        ids=nodes["node"],
        parents=nodes["parent"],
        labels=[style.safe(middle_ellipsis(label, LABEL_LENGTH)) for label in nodes["label"]],
        values=values,
        branchvalues="total",
        maxdepth=DEPTH,
        sort=True,
        tiling={"orientation": "h", "pad": 1},
        pathbar={"visible": True, "thickness": 22},
        texttemplate="%{label}  %{customdata[0]}",
        textfont={"color": "white"},
        customdata=np.column_stack(hover),
        marker=marker,
    )


def change_colours(baseline: NDArray[np.float64], candidate: NDArray[np.float64], quantity: str) -> dict[str, object]:
    """The marker of tiles coloured by candidate ÷ baseline of a quantity (`time`), with its colour scale."""
    return {
        "colors": log_ratio(baseline, candidate),
        "colorscale": COLOURS,
        "cmin": -CLIP,
        "cmid": 0,
        "cmax": CLIP,
        "showscale": True,
        "colorbar": {
            "title": {"text": "candidate ÷ baseline", "side": "right"},
            "tickvals": [-3, -2, -1, 0, 1, 2, 3],
            "ticktext": [f"÷8 less {quantity}", "÷4", "÷2", "equal", "×2", "×4", f"×8 more {quantity}"],
            "thickness": 12,
            "outlinewidth": 0,
        },
    }


def changes(nodes: pd.DataFrame, metric: str) -> list[str]:
    """The change of each node as a text; `added` or `removed` for what only one run has."""
    cells = zip(nodes["status"], nodes[f"{metric}_baseline"], nodes[f"{metric}_candidate"], strict=True)
    return [
        status if status != "matched" else format_percent_change(theirs / ours if ours > 0 else None)
        for status, ours, theirs in cells
    ]


def _texts(nodes: pd.DataFrame, metric: str) -> list[list[str]]:
    """The change, the name, the time on both sides, and the verdict as an extra line, of each node."""
    times = [nodes[f"{metric}_{side}"].map(format_time_us).tolist() for side in SIDES]
    verdicts = [""] * len(nodes)
    if "verdict" in nodes:
        words = zip(nodes["verdict"], nodes["evidence"], strict=True)
        verdicts = [f"<br>{text_of(word, evidence)}" if word in SIGNS else "" for word, evidence in words]
    return [changes(nodes, metric), nodes["node"].map(style.safe).tolist(), *times, verdicts]


def log_ratio(baseline: NDArray[np.float64], candidate: NDArray[np.float64]) -> NDArray[np.float64]:
    """log₂(candidate ÷ baseline), clipped to ±`CLIP`: at the limit if only one side has any, 0 if neither has."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: NDArray[np.float64] = np.log2(candidate) - np.log2(baseline)
    return np.where(np.isnan(ratio), 0.0, np.clip(ratio, -CLIP, CLIP))


def merge_small_scopes(tree: pd.DataFrame, metric: str) -> pd.DataFrame:
    """`tree` with the small children of each node merged into one; each node is still the sum of its children."""
    sides = [f"{metric}_baseline", f"{metric}_candidate"]
    return merge_small(tree, tree[sides].sum(axis=1), sides, "/")


def merge_small(tree: pd.DataFrame, size: pd.Series, sums: list[str], separator: str) -> pd.DataFrame:
    """`tree` with the children of each node whose `size` is small merged into one, with the sums of these columns.

    What is below merged ones is left out. `separator` is what stands between the names in `node`.
    """
    whole = float(size[tree["parent"] == ""].sum())
    small = (size < SMALLEST_SHARE * whole) & (tree["parent"] != "")
    large = tree[~small]
    topmost = tree[small & tree["parent"].isin(large["node"])]
    merged = topmost.groupby("parent", as_index=False)[sums].sum()
    count = topmost.groupby("parent", as_index=False).size()["size"]
    merged = merged.assign(
        node=merged["parent"] + f"{separator}({SMALLER})", label=count.map("{:,} smaller".format), status="matched"
    )
    return pd.concat([large, merged], ignore_index=True)


def fold_chains(tree: pd.DataFrame) -> pd.DataFrame:
    """`tree` with each scope that contains only one other scope merged with it, as in `gradient_tape/model`."""
    parents = dict(zip(tree["node"], tree["parent"], strict=True))
    labels = dict(zip(tree["node"], tree["label"], strict=True))
    only_child = tree.drop_duplicates("parent", keep=False)
    only_child = only_child[~only_child["node"].str.endswith(f"/({SMALLER})")]
    for parent, node in zip(only_child["parent"], only_child["node"], strict=True):
        if parents.get(parent):  # not into a root: `Host` and `Device` are no scopes
            labels[node] = f"{labels[parent]}/{labels[node]}"
            parents[node] = parents.pop(parent)
    folded = tree[tree["node"].isin(parents)]
    return folded.assign(parent=folded["node"].map(parents), label=folded["node"].map(labels))
