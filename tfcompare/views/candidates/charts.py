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
_NOTICEABLE = 1.02


def step_times(runs: pd.DataFrame) -> go.Figure:
    """The step time of each run, in row order, with a line at the baseline's.

    `runs` are rows of `tools.many_runs.runs_table` with a step time, oldest first. A thick line is the verdict's
    confidence interval, scaled to the baseline's step time; a thin one spans the middle 80 % of the steps.
    """
    scale = style.time_scale(runs["step_time_us_ninetieth"])
    thick = "thick: 95 % confidence interval; " if runs["interval_low"].notna().any() else ""
    result = style.figure(
        "Step time of every run, oldest first",
        f"marker: mean step; {thick}thin: 80 % of the steps",
        height=420,
    )
    runs = runs.assign(place=np.arange(len(runs), dtype=np.float64), baseline_us=_baseline_us(runs))
    result.add_trace(_vertical_lines(runs, "step_time_us_tenth", "step_time_us_ninetieth", scale, _NEUTRAL, 1.5))
    for word in ("", *SIGNS):
        for evidence, rows in runs[runs["verdict"] == word].groupby("evidence"):
            result.add_traces(_verdict_traces(word, str(evidence), rows, scale))
    if not np.isnan(baseline := float(runs["baseline_us"].max())):
        result.add_hline(y=baseline / scale.size, line_width=1, line_dash="dash", line_color=style.BASELINE_COLOUR)
    labels = [style.safe(label) for label in style.shorten_distinct(runs["name"].tolist(), RUN_LENGTH)]
    result.update_xaxes(
        tickvals=runs["place"], ticktext=labels, range=[-0.6, len(runs) - 0.4], zeroline=False, showgrid=False,
        tickangle=_angle(len(runs)),
    )  # fmt: skip
    result.update_yaxes(**_time_axis(runs, scale))
    return result


def _baseline_us(runs: pd.DataFrame) -> float:
    of_baseline = runs.loc[runs["role"] == "baseline", "step_time_us_mean"]
    return float(of_baseline.iloc[0]) if len(of_baseline) else float("nan")


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
    gap = np.full(len(runs), np.nan)
    y = np.column_stack([scale.of(runs[low]), scale.of(runs[high]), gap]).ravel()
    return go.Scatter(
        x=np.repeat(runs["place"].to_numpy(), 3), y=y, mode="lines", line={"color": colour, "width": width},
        hoverinfo="skip", showlegend=False, **more,
    )  # fmt: skip


def _verdict_traces(word: str, evidence: str, rows: pd.DataFrame, scale: style.Scale) -> list[go.Scatter]:
    """The runs with the same verdict: their intervals and their markers."""
    colour = colour_of(word, evidence) if word else style.BASELINE_COLOUR
    ends = rows.assign(low=rows["baseline_us"] * rows["interval_low"], high=rows["baseline_us"] * rows["interval_high"])
    name = text_of(word, evidence) if word else "Baseline"
    symbol = _SYMBOLS.get(word, style.BASELINE_SYMBOL)
    markers = go.Scatter(
        name=name,
        x=rows["place"],
        y=scale.of(rows["step_time_us_mean"]),
        mode="markers",
        marker={"symbol": symbol, "size": 11, "color": colour, "line": _outline(symbol, colour)},
        customdata=_run_texts(rows, name),
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>",
    )
    return [_vertical_lines(ends, "low", "high", scale, colour, 5, opacity=0.55), markers]


def _outline(symbol: str, colour: str) -> dict[str, Any]:
    """The outline of a marker; open symbols consist of it alone."""
    return {"width": 2 if symbol.endswith(("-open", "-thin")) else 0, "color": colour}


def _run_texts(rows: pd.DataFrame, name: str) -> list[list[str]]:
    return [[style.wrap_text(row["name"]), "<br>".join(_run_lines(row, name))] for row in rows.to_dict("records")]


def _run_lines(row: Mapping[Any, Any], verdict: str) -> list[str]:
    """The hover text of a run, by line."""
    tenth, ninetieth = (format_time_us(row[f"step_time_us_{end}"]) for end in ("tenth", "ninetieth"))
    lines = [
        f"{verdict} · step time {format_time_us(row['step_time_us_mean'])}",
        f"median {format_time_us(row['step_time_us_median'])}",
        f"80 % of the steps: {tenth} to {ninetieth}",
    ]
    if not np.isnan(row["interval_low"]):
        interval = f"{format_ratio(row['interval_low'])} to {format_ratio(row['interval_high'])}"
        lines.append(f"candidate ÷ baseline: {format_ratio(row['ratio'])} ({interval})")
    elif not np.isnan(row["ratio"]):
        lines.append(f"candidate ÷ baseline: {format_ratio(row['ratio'])}")
    lines += [style.wrap_text(text) for text in (row["reason"], row["caveat"]) if text]
    return [*lines, f"recorded {row['start_time']:%Y-%m-%d %H:%M:%S} UTC"]


def change_map(cells: pd.DataFrame, names: Mapping[str, str], *, per: str) -> go.Figure:
    """Heatmap of the change of self time: one row per op, one column per candidate.

    `cells` is the result of `tools.many_runs.changes_by_run`; `names` maps candidate ids to names, in column order.
    """
    by_type = "op_name" not in cells.columns
    rows = cells.drop_duplicates("row").sort_values("row")
    result = style.figure(
        f"Change of self time by {'op type' if by_type else 'op'} and run, oldest run first",
        f"candidate ÷ baseline, per {per}; blue: less, orange: more time; – gone, + new",
        height=72 + _ROW_PIXELS * max(len(rows), 3) + _names_pixels(len(names)),
        legend_rows=0,
    )
    texts = {part: _grid(cells, names, values) for part, values in _texts(cells, len(names)).items()}
    both = _grid(cells, names, (cells["status"] == MATCHED).tolist()).astype(bool)
    z = _grid(cells, names, log_ratio(*(cells[f"{side}_us"].to_numpy() for side in SIDES)).tolist())
    shared = {"customdata": texts["hover"], "hovertemplate": "%{customdata}<extra></extra>", "xgap": 2, "ygap": 2}
    absent = {"colorscale": [[0, _NEUTRAL], [1, _NEUTRAL]], "opacity": 0.16, "showscale": False, "hoverinfo": "none"}
    result.add_trace(go.Heatmap(z=np.where(both, np.nan, 0.0), **absent, xgap=2, ygap=2))
    result.add_trace(
        go.Heatmap(
            z=np.where(both, z.astype(np.float64), np.nan), text=texts["cell"], texttemplate="%{text}",
            textfont={"color": "white", "size": 11}, zmin=-CLIP, zmax=CLIP, colorscale=COLOURS,
            colorbar=_colorbar(), hoverongaps=False, **shared,
        )
    )  # fmt: skip
    result.add_trace(_absent_marks(both, texts))
    result.update_xaxes(
        tickvals=list(range(len(names))), showgrid=False, zeroline=False, range=[-0.5, len(names) - 0.5],
        ticktext=[style.safe(label) for label in style.shorten_distinct(list(names.values()), RUN_LENGTH)],
        tickangle=_angle(len(names)),
    )  # fmt: skip
    result.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=_row_labels(rows), showgrid=False, zeroline=False,
        range=[len(rows) - 0.5, -0.5],
    )  # fmt: skip
    return result


def _names_pixels(columns: int) -> int:
    """Height for the runs' names below the columns."""
    return {0: 24, -35: 96, -60: 132}[_angle(columns)]


def _grid(cells: pd.DataFrame, names: Mapping[str, str], values: list[Any]) -> Any:
    """The cells' values as a 2-D array (rows, columns)."""
    place = {run: column for column, run in enumerate(names)}
    grid = np.full((int(cells["row"].max()) + 1 if len(cells) else 0, len(names)), "", dtype=object)
    for row, run, value in zip(cells["row"], cells["candidate"], values, strict=True):
        grid[row, place[run]] = value
    return grid


def _texts(cells: pd.DataFrame, columns: int) -> dict[str, list[str]]:
    write = _ratio_text if columns <= MAX_NUMERIC_COLUMNS else _direction
    return {
        "cell": [
            write(ratio) if status == MATCHED else _ABSENT[status]
            for status, ratio in zip(cells["status"], cells["ratio"], strict=True)
        ],
        "hover": [_hover(row) for row in cells.itertuples()],
    }


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


def _absent_marks(both: Any, texts: dict[str, Any]) -> go.Scatter:
    """The signs in cells of ops that only one side has."""
    y, x = np.nonzero(~both)
    return go.Scatter(
        x=x, y=y, mode="text", text=texts["cell"][y, x], textfont={"color": _NEUTRAL, "size": 14}, showlegend=False,
        customdata=texts["hover"][y, x], hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip


def _row_labels(rows: pd.DataFrame) -> list[str]:
    names = rows["op_name" if "op_name" in rows else "op_type"].tolist()
    labels = style.shorten_distinct(names, OP_LENGTH)
    if rows["host_or_device"].nunique() > 1:
        labels = [f"{label} · {place_word(place)}" for label, place in zip(labels, rows["host_or_device"], strict=True)]
    return [style.safe(label) for label in labels]


def _colorbar() -> dict[str, Any]:
    return {
        "thickness": 10, "outlinewidth": 0, "xpad": 6, "tickvals": [-3, -2, -1, 0, 1, 2, 3],
        "ticktext": ["÷8", "÷4", "÷2", "equal", "×2", "×4", "×8"],
    }  # fmt: skip
