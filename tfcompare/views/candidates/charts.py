"""Charts of many runs: the step time of each, and the change in each of the ops that changed the most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from tfcompare.compare.diff import ADDED, MATCHED, REMOVED
from tfcompare.compare.stats.verdict import FASTER, SAME, SLOWER, UNCLEAR, UNTESTED
from tfcompare.schema import SIDES, place_word
from tfcompare.units import format_ratio, format_time_us
from tfcompare.views import chart_style as style
from tfcompare.views.icicles import CLIP, COLOURS, log_ratio
from tfcompare.views.verdict_marks import SIGNS, colour_of, text_of

if TYPE_CHECKING:
    import pandas as pd

RUN_LENGTH = 22
OP_LENGTH = 34
MAX_NUMERIC_COLUMNS = 12
"""With more columns, ratios do not fit into the cells, which then show only the direction."""
LOG_FROM = 5.0
"""The axis is logarithmic if the longest step time is more than this many times the shortest."""

_NEUTRAL = "#7A8798"
_SYMBOLS = {FASTER: "triangle-down", SLOWER: "triangle-up", SAME: "square", UNCLEAR: "circle-open", UNTESTED: "x-thin"}
_ABSENT = {ADDED: "+", REMOVED: "–", "neither": ""}
_ABSENT_WORDS = {
    ADDED: "new: the baseline does not have it",
    REMOVED: "gone: this run does not have it",
    "neither": "neither the baseline nor this run has it",
}
_ROW_PIXELS = 24
_NAMES_PIXELS = {0: 24, -35: 96, -60: 132}
"""The height of the runs' names below the columns, by their angle."""
_TICKS = {"tickvals": [-3, -2, -1, 0, 1, 2, 3], "ticktext": ["÷8", "÷4", "÷2", "equal", "×2", "×4", "×8"]}
_COLOUR_BAR = {"thickness": 10, "outlinewidth": 0, "xpad": 6, **_TICKS}
_NOTICEABLE = 1.02


def step_times(runs: pd.DataFrame) -> go.Figure:
    """The step time of each run, in row order, with a line at the baseline's.

    `runs` are rows of `tools.many_runs.runs_table` with a step time, oldest first. A thick line is the verdict's
    confidence interval, scaled to the baseline's step time; a thin one spans the middle 80 % of the steps.
    """
    scale = style.time_scale(runs["step_time_us_ninetieth"])
    thick = "thick: 95 % confidence interval; " if runs["interval_low"].notna().any() else ""
    notes = f"marker: mean step; {thick}thin: 80 % of the steps"
    result = style.figure("Step time of every run, oldest first", notes, height=420)
    baseline = float(runs.loc[runs["role"] == "baseline", "step_time_us_mean"].max())  # NaN without it
    runs = runs.assign(place=np.arange(len(runs), dtype=np.float64), baseline_us=baseline)
    result.add_trace(_vertical_lines(runs, "step_time_us_tenth", "step_time_us_ninetieth", scale, _NEUTRAL, 1.5))
    for word in ("", *SIGNS):
        for evidence, rows in runs[runs["verdict"] == word].groupby("evidence"):
            result.add_traces(_verdict_traces(word, str(evidence), rows, scale))
    if not np.isnan(baseline):
        result.add_hline(y=baseline / scale.size, line_width=1, line_dash="dash", line_color=style.BASELINE_COLOUR)
    labels = [style.safe(label) for label in style.shorten_distinct(runs["name"].tolist(), RUN_LENGTH)]
    result.update_xaxes(tickvals=runs["place"], ticktext=labels, tickangle=_angle(len(runs)))
    result.update_xaxes(range=[-0.6, len(runs) - 0.4], zeroline=False, showgrid=False)
    result.update_yaxes(**_time_axis(runs, scale))
    return result


def _angle(columns: int) -> int:
    return 0 if columns <= 4 else -35 if columns <= 12 else -60


def _time_axis(runs: pd.DataFrame, scale: style.Scale) -> dict[str, Any]:
    low, high = runs["step_time_us_tenth"].min(), runs["step_time_us_ninetieth"].max()
    title = f"Step time ({scale.unit})"
    if low > 0 and high / low > LOG_FROM:
        return {"title_text": f"{title}, logarithmic", "type": "log", "dtick": "D2", "tickformat": "~r"}
    return {"title_text": title, "tickformat": "~r", "zeroline": False}


def _vertical_lines(
    runs: pd.DataFrame, low: str, high: str, scale: style.Scale, colour: str, width: float, **more: Any
) -> go.Scatter:
    """One line per run, from the value in column `low` to that in `high`."""
    y = np.column_stack([scale.of(runs[low]), scale.of(runs[high]), np.full(len(runs), np.nan)]).ravel()
    x, line = np.repeat(runs["place"].to_numpy(), 3), {"color": colour, "width": width}
    return go.Scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False, **more)


def _verdict_traces(word: str, evidence: str, rows: pd.DataFrame, scale: style.Scale) -> list[go.Scatter]:
    """The runs with the same verdict: their intervals and their markers."""
    colour = colour_of(word, evidence) if word else style.BASELINE_COLOUR
    ends = rows.assign(low=rows["baseline_us"] * rows["interval_low"], high=rows["baseline_us"] * rows["interval_high"])
    name = text_of(word, evidence) if word else "Baseline"
    symbol = _SYMBOLS.get(word, style.BASELINE_SYMBOL)
    outline = {"width": 2 if symbol.endswith(("-open", "-thin")) else 0, "color": colour}  # all of an open symbol
    marker = {"symbol": symbol, "size": 11, "color": colour, "line": outline}
    hover = [[style.wrap_text(row["name"]), "<br>".join(_run_lines(row, name))] for row in rows.to_dict("records")]
    template = "<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>"
    markers = go.Scatter(name=name, x=rows["place"], y=scale.of(rows["step_time_us_mean"]), mode="markers")
    markers.update(marker=marker, customdata=hover, hovertemplate=template)
    return [_vertical_lines(ends, "low", "high", scale, colour, 5, opacity=0.55), markers]


def _run_lines(row: Mapping[Any, Any], verdict: str) -> list[str]:
    """The hover text of a run, by line."""
    tenth, ninetieth = (format_time_us(row[f"step_time_us_{end}"]) for end in ("tenth", "ninetieth"))
    lines = [
        f"{verdict} · step time {format_time_us(row['step_time_us_mean'])}",
        f"median {format_time_us(row['step_time_us_median'])}",
        f"80 % of the steps: {tenth} to {ninetieth}",
    ]
    if not np.isnan(row["ratio"]):
        low, high = (row[f"interval_{end}"] for end in ("low", "high"))
        interval = "" if np.isnan(low) else f" ({format_ratio(low)} to {format_ratio(high)})"
        lines.append(f"candidate ÷ baseline: {format_ratio(row['ratio'])}{interval}")
    lines += [style.wrap_text(text) for text in (row["reason"], row["caveat"]) if text]
    return [*lines, f"recorded {row['start_time']:%Y-%m-%d %H:%M:%S} UTC"]


def change_map(cells: pd.DataFrame, names: Mapping[str, str], *, per: str) -> go.Figure:
    """Heatmap of the change of self time: one row per op, one column per candidate.

    `cells` is the result of `tools.many_runs.changes_by_run`; `names` maps candidate ids to names, in column order.
    """
    by = "op_name" if "op_name" in cells.columns else "op_type"
    rows = cells.drop_duplicates("row").sort_values("row")
    title = f"Change of self time by {'op' if by == 'op_name' else 'op type'} and run, oldest run first"
    notes = f"candidate ÷ baseline, per {per}; blue: less, orange: more time; – gone, + new"
    angle = _angle(len(names))
    height = 72 + _ROW_PIXELS * max(len(rows), 3) + _NAMES_PIXELS[angle]
    result = style.figure(title, notes, height=height, legend_rows=0)
    texts = {part: _grid(cells, names, values) for part, values in _texts(cells, len(names)).items()}
    both = _grid(cells, names, (cells["status"] == MATCHED).tolist()).astype(bool)
    z = _grid(cells, names, log_ratio(*(cells[f"{side}_us"].to_numpy() for side in SIDES)).tolist())
    absent = {"colorscale": [[0, _NEUTRAL], [1, _NEUTRAL]], "opacity": 0.16, "showscale": False, "hoverinfo": "none"}
    result.add_heatmap(z=np.where(both, np.nan, 0.0), **absent)
    z = np.where(both, z.astype(np.float64), np.nan)
    text = {"text": texts["cell"], "texttemplate": "%{text}", "textfont": {"color": "white", "size": 11}}
    colours = {"zmin": -CLIP, "zmax": CLIP, "colorscale": COLOURS, "colorbar": _COLOUR_BAR}
    result.add_heatmap(z=z, customdata=texts["hover"], hoverongaps=False, **text, **colours)
    result.update_traces(xgap=2, ygap=2)
    y, x = np.nonzero(~both)  # the signs in cells of ops that only one side has
    sign = {"mode": "text", "text": texts["cell"][y, x], "textfont": {"color": _NEUTRAL, "size": 14}}
    result.add_scatter(x=x, y=y, **sign, customdata=texts["hover"][y, x], showlegend=False)
    for trace in result.data[1:]:
        trace.hovertemplate = "%{customdata}<extra></extra>"
    labels = style.shorten_distinct(rows[by].tolist(), OP_LENGTH)
    if rows["host_or_device"].nunique() > 1:
        labels = [f"{label} · {place_word(place)}" for label, place in zip(labels, rows["host_or_device"], strict=True)]
    runs = style.shorten_distinct(list(names.values()), RUN_LENGTH)
    result.update_xaxes(tickvals=list(range(len(names))), ticktext=list(map(style.safe, runs)), tickangle=angle)
    result.update_xaxes(showgrid=False, zeroline=False, range=[-0.5, len(names) - 0.5])
    result.update_yaxes(tickvals=list(range(len(rows))), ticktext=list(map(style.safe, labels)))
    return result.update_yaxes(showgrid=False, zeroline=False, range=[len(rows) - 0.5, -0.5])


def _grid(cells: pd.DataFrame, names: Mapping[str, str], values: list[Any]) -> Any:
    """The cells' values as a 2-D array (rows, columns)."""
    place = {run: column for column, run in enumerate(names)}
    grid = np.full((int(cells["row"].max()) + 1 if len(cells) else 0, len(names)), "", dtype=object)
    for row, run, value in zip(cells["row"], cells["candidate"], values, strict=True):
        grid[row, place[run]] = value
    return grid


def _texts(cells: pd.DataFrame, columns: int) -> dict[str, list[str]]:
    write = _ratio_text if columns <= MAX_NUMERIC_COLUMNS else _direction
    ratios = zip(cells["status"], cells["ratio"], strict=True)
    texts = [write(ratio) if status == MATCHED else _ABSENT[status] for status, ratio in ratios]
    return {"cell": texts, "hover": [_hover(row) for row in cells.itertuples()]}


def _ratio_text(ratio: float) -> str:
    """A ratio with two digits, as short as possible."""
    if not np.isfinite(ratio):
        return "∞"
    if ratio >= 9.95:
        return f"{ratio:,.0f}" if ratio < 9999 else ">9,999"
    return f"{ratio:.1f}" if ratio >= 1.95 else f"{ratio:.2f}" if ratio >= 0.01 else "<0.01"


def _direction(ratio: float) -> str:
    return "▲" if ratio > _NOTICEABLE else "▼" if ratio < 1 / _NOTICEABLE else "="


def _hover(row: Any) -> str:
    place = f"on {place_word(row.host_or_device)}"
    if hasattr(row, "op_name"):
        lines = [f"<b>{style.wrap_text(row.op_name)}</b>", f"{style.safe(row.op_type)} {place}"]
    else:
        lines = [f"<b>{style.safe(row.op_type)}</b> {place}"]
    lines.append(f"baseline {format_time_us(row.baseline_us)}, candidate {format_time_us(row.candidate_us)}")
    if row.status == MATCHED:
        verdict = f" · {text_of(row.verdict, row.evidence)}" if row.verdict else ""
        lines.append(f"{format_ratio(row.ratio)}{verdict}")
    else:
        lines.append(_ABSENT_WORDS[row.status])
    return "<br>".join(lines)
