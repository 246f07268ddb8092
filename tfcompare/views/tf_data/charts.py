"""Charts of a tf.data execution: its graph of iterators, with their texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfcompare.compare.side import Side
from tfcompare.compare.tf_data.iterator_tree import display_name
from tfcompare.compare.tf_data.tf_data_graph import Graph
from tfcompare.text import middle_ellipsis
from tfcompare.units import MINUS, format_bytes, format_count, format_time_us
from tfcompare.views import chart_style as style
from tfcompare.views.chart_style import side_colour

LINE_PIXELS = 17
GAP_PIXELS = 34
PADDING_PIXELS = 8
TOP_PIXELS = 84
CHARACTER_PIXELS = 6.4
WIDTH_PIXELS = 470
"""Width of one graph in a 1440 px window; texts are shortened to fit it."""

MAX_BOX_WIDTH = 0.66
"""Maximum width of a box, as a share of the figure's."""

BOX_FILL = 0.92
"""Share of the available width that a box takes."""
MAX_LINES = 4
MIN_CHARACTERS = 16
"""Narrower nodes show only signs and the self time."""


MARKS = {
    "added": "+ added",
    "removed": f"{MINUS} removed",
    "changed": "≠ ",
    "not called": "○ not called on the other side",
}
"""Hover text of nodes that differ between the sides."""

MARKS_IN_NODES = MARKS | {"not called": "○ only here"}
"""Text inside such nodes, short enough for the narrowest that shows words."""


@dataclass(frozen=True)
class Box:
    """Position of a node: middle `x` and half width as shares of the width, `top` and `height` in pixels."""

    x: float
    top: float
    half: float
    height: float


@dataclass(frozen=True, eq=False)
class _Layout:
    """The nodes of one side, with the text lines and the box of each."""

    nodes: pd.DataFrame
    texts: list[list[str]]
    boxes: list[Box]


def pipeline_graphs(
    sides: tuple[tuple[Side, Graph, str], tuple[Side, Graph, str]], execution: str
) -> tuple[go.Figure, go.Figure]:
    """The two graphs, with equal heights; the text given with each graph is its subtitle.

    Data flows up to `Root`. What the execution waited for has bold outlines and edges, the rest dashed ones; the
    bottleneck has a second outline and a label. `execution` describes both, e.g. `Slowest execution`.
    """
    branches = max(_leaf_count(graph.nodes) for _, graph, _ in sides)
    across = [_horizontal_layout(graph.nodes, branches) for _, graph, _ in sides]
    lines = [_texts(graph, spans) for (_, graph, _), spans in zip(sides, across, strict=True)]
    levels = 1 + max((int(graph.nodes["level"].max()) for _, graph, _ in sides if len(graph.nodes)), default=0)
    heights = np.full(levels, 2)
    for (_, graph, _), texts in zip(sides, lines, strict=True):
        np.maximum.at(heights, graph.nodes["level"].to_numpy(), [len(text) for text in texts])
    box_heights = heights * float(LINE_PIXELS) + 2 * PADDING_PIXELS
    tops = np.concatenate([[0], np.cumsum(box_heights + GAP_PIXELS)])
    tops[-1] -= GAP_PIXELS - 2 * PADDING_PIXELS
    figures = []
    for (side, graph, text), texts, spans in zip(sides, lines, across, strict=True):
        down = [(float(tops[level]), float(box_heights[level])) for level in graph.nodes["level"]]
        boxes = [Box(x, top, half, height) for (x, half), (top, height) in zip(spans, down, strict=True)]
        figures.append(_figure(side, text, execution, float(tops[-1]), _Layout(graph.nodes, texts, boxes)))
    return figures[0], figures[1]


def _figure(side: Side, text: str, execution: str, bottom: float, drawn: _Layout) -> go.Figure:
    nodes, boxes = drawn.nodes, drawn.boxes
    name = style.safe(middle_ellipsis(side.name, 34))
    title = f"{execution}: {name if side.sides == 1 else f'{side.role_in_text} {name}'}"
    hover = {"showlegend": False, "hovermode": "closest", "hoverdistance": 60, "dragmode": False}
    result = style.figure(title, text, height=int(bottom) + TOP_PIXELS, legend_rows=0, **hover)
    result.layout.shapes = _edges(nodes, boxes, side) + _outlines(nodes, boxes, side)
    result.add_traces([_labels(drawn.texts, boxes), _hover(nodes, boxes)])
    hidden = {"visible": False, "fixedrange": True}
    result.update_xaxes(range=[0, 1], **hidden)
    result.update_yaxes(range=[bottom, -PADDING_PIXELS], **hidden)
    result.update_layout(margin={"t": 62})
    return result


def _leaf_count(nodes: pd.DataFrame) -> int:
    """Number of nodes without children: how many are side by side."""
    return max(len(nodes) - len(set(nodes["above"]) - {-1}), 1)


def _horizontal_layout(nodes: pd.DataFrame, branches: int) -> list[tuple[float, float]]:
    """(middle, half width) of each node as shares of the width, which has room for `branches` leaves; all centred."""
    children: list[list[int]] = [[] for _ in range(len(nodes))]
    for row, above in enumerate(nodes["above"]):
        if above >= 0:
            children[above].append(row)
    own = _leaf_count(nodes)
    left, x, right = [0.0] * len(nodes), [0.0] * len(nodes), [0.0] * len(nodes)
    at = (branches - own) / 2
    for row in range(len(nodes)):
        if not children[row]:
            left[row], x[row], right[row] = (at / branches, (at + 0.5) / branches, (at + 1) / branches)
            at += 1
    for row in range(len(nodes) - 1, -1, -1):
        if children[row]:
            first, last = children[row][0], children[row][-1]
            left[row], x[row], right[row] = left[first], (x[first] + x[last]) / 2, right[last]
    is_over_all = [(r - le) * branches > own - 0.5 for le, r in zip(left, right, strict=True)]
    spans = zip(left, x, right, is_over_all, strict=True)
    room = [min(m, 1 - m) if alone else min(m - le, r - m) for le, m, r, alone in spans]
    return [(m, BOX_FILL * min(half, MAX_BOX_WIDTH / 2)) for m, half in zip(x, room, strict=True)]


def _edges(nodes: pd.DataFrame, boxes: list[Box], side: Side) -> list[dict[str, object]]:
    """Paths from each node up and across to the middle of its parent, without crossing a box."""
    out: list[dict[str, object]] = []
    for box, above, critical in zip(boxes, nodes["above"], nodes["on_critical_path"], strict=True):
        if above < 0:
            continue
        upper = boxes[above]
        bottom = upper.top + upper.height
        turn = bottom + GAP_PIXELS / 2
        path = f"M {box.x} {box.top} L {box.x} {turn} L {upper.x} {turn} L {upper.x} {bottom}"
        out.append({"type": "path", "path": path, "layer": "below", "line": _line(side, critical, 3.5)})
    return out


def _outlines(nodes: pd.DataFrame, boxes: list[Box], side: Side) -> list[dict[str, object]]:
    out: list[dict[str, object]] = []
    for box, critical, blamed in zip(boxes, nodes["on_critical_path"], nodes["is_bottleneck"], strict=True):
        outline: dict[str, object] = {"type": "rect", "x0": box.x - box.half, "x1": box.x + box.half}
        outline |= {"y0": box.top, "y1": box.top + box.height, "layer": "below"}
        out.append(outline | {"line": _line(side, critical, 2.5), "fillcolor": "rgba(128,136,148,0.10)"})
        if blamed:
            inner = {"x0": box.x - box.half * 0.985, "x1": box.x + box.half * 0.985}
            inner |= {"y0": box.top + 4, "y1": box.top + box.height - 4}
            out.append(outline | inner | {"line": {"color": style.WORSE, "width": 3}})
    return out


def _line(side: Side, critical: bool, bold: float) -> dict[str, object]:
    if critical:
        return {"color": side_colour(side), "width": bold, "dash": "solid"}
    return {"color": style.BASELINE_COLOUR, "width": 1.2, "dash": "dash"}


def _labels(texts: list[list[str]], boxes: list[Box]) -> go.Scatter:
    return go.Scatter(
        x=[box.x for box in boxes],
        y=[box.top + box.height / 2 for box in boxes],
        mode="text",
        text=["<br>".join(text) for text in texts],
        textposition="middle center",
        textfont={"size": 12},
        hoverinfo="skip",
        cliponaxis=False,
    )


def _hover(nodes: pd.DataFrame, boxes: list[Box]) -> go.Scatter:
    """Invisible points along each box, so that hovering works all over it."""
    along = (-0.8, -0.4, 0.0, 0.4, 0.8)
    details = [node_details(row, call_start(nodes)) for _, row in nodes.iterrows()]
    return go.Scatter(
        x=[box.x + part * box.half for box in boxes for part in along],
        y=[box.top + box.height / 2 for box in boxes for _ in along],
        mode="markers",
        marker={"size": 30, "opacity": 0},
        customdata=[detail for detail in details for _ in along],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _texts(graph: Graph, across: list[tuple[float, float]]) -> list[list[str]]:
    """The text lines of each node, shortened to its width."""
    start = call_start(graph.nodes)
    characters = [max(int((2 * half * WIDTH_PIXELS - 2 * PADDING_PIXELS) / CHARACTER_PIXELS), 5) for _, half in across]
    return [node_lines(row, start, fit) for (_, row), fit in zip(graph.nodes.iterrows(), characters, strict=True)]


def call_start(nodes: pd.DataFrame) -> float:
    """When the execution began; some of its iterators may have started earlier."""
    return float(nodes.loc[nodes["above"] < 0, "start_us"].min()) if len(nodes) else 0.0


def node_lines(row: pd.Series, call_start_us: float, characters: int) -> list[str]:
    """A node's name and as many facts as fit, in lines of `characters` characters, escaped for Plotly."""
    many = f" ×{row['alike']}" if row["alike"] > 1 else ""
    out = [f"<b>{style.safe(middle_ellipsis(display_name(row['iterator']), characters - len(many)))}</b>{many}"]
    facts = _facts(row, call_start_us)
    if characters < MIN_CHARACTERS:  # signs and the self time
        signs = ["▲"] if row["is_bottleneck"] else []
        signs += [MARKS_IN_NODES[row["mark"]][0]] if row["mark"] else []
        facts = [*filter(None, [" ".join(signs)]), format_time_us(row["self_time_us"])]
    for fact in facts:
        fact = middle_ellipsis(fact, characters)
        if len(out) > 1 and len(out[-1]) + 3 + len(fact) <= characters:
            out[-1] += f" · {fact}"
        elif len(out) <= MAX_LINES:
            out.append(fact)
        else:
            break
    return [out[0], *(style.safe(line) for line in out[1:])]


def _facts(row: pd.Series, call_start_us: float) -> list[str]:
    """The facts about a node, the most important first."""
    facts = ["▲ slowest"] if row["is_bottleneck"] else []
    facts += [f"{MARKS_IN_NODES[row['mark']]}{row['change']}"] if row["mark"] else []
    facts += [
        f"self {format_time_us(row['self_time_us'])}",
        f"total {format_time_us(row['total_duration_us'])}",
        f"{format_count(row['calls'])} call{'s' if row['calls'] != 1 else ''}",
        f"start {_since(row['start_us'] - call_start_us)}",
    ]
    if pd.notna(row["parallelism"]):
        facts.append(f"parallel {row['parallelism']}{' (tuned)' if row['autotune'] == 'true' else ''}")
    if pd.notna(row["buffered_elements"]) or pd.notna(row["buffer_limit"]):
        facts.append(f"buffer {_fill(row)}")
    return facts


def node_details(row: pd.Series, call_start_us: float) -> str:
    """All facts about a node."""
    several = f" ({row['alike']} of the same kind, summed)" if row["alike"] > 1 else ""
    facts = [f"<b>{style.safe(row['iterator'])}</b>{several}", *_wrap(row["long_name"], "::")]
    if row["mark"]:
        facts.append(style.safe(f"{MARKS[row['mark']]}{row['change']}"))
    if row["skipped"]:
        facts.append(f"{row['skipped']:,} iterators between this one and the one above are not shown")
    facts += [
        "on the critical path" if row["on_critical_path"] else "not waited for",
        *(["the slowest on the critical path"] if row["is_bottleneck"] else []),
        f"start {_since(row['start_us'] - call_start_us)} from the start of the call, "
        f"{format_time_us(row['start_us'])} into the profile",
        f"total {format_time_us(row['total_duration_us'])}, self {format_time_us(row['self_time_us'])}, "
        f"{format_count(row['calls'])} call{'s' if row['calls'] != 1 else ''}",
    ]
    details = {
        "parallelism": "" if pd.isna(row["parallelism"]) else str(row["parallelism"]),
        "buffer": _fill(row) if pd.notna(row["buffered_elements"]) or pd.notna(row["buffer_limit"]) else "",
        "autotune": row["autotune"],
        "element size": format_bytes(row["element_size_bytes"]) if pd.notna(row["element_size_bytes"]) else "",
        "shapes": row["shapes"],
        "types": row["types"],
        "dataset": row["dataset"],
        "iterator id": row["iterator_id"],
        "settings": row["settings"],
    }
    for name, value in details.items():
        if value:
            facts += _wrap(f"{name}: {value}", ", ")
    return "<br>".join(facts)


def _since(us: float) -> str:
    """A time relative to the start of the call: `+12.3 µs`, or `−4.19 ms` if earlier."""
    text = format_time_us(us)
    return text if text.startswith((MINUS, "0 ")) else f"+{text}"


def _fill(row: pd.Series) -> str:
    fill, limit = row["buffered_elements"], row["buffer_limit"]
    if pd.isna(fill):
        return f"up to {limit}"
    return f"{round(fill, 1):,g}{f' of {limit}' if pd.notna(limit) else ''}"


def _wrap(text: str, at: str, width: int = 70) -> list[str]:
    """The text in lines of about this width, broken after `at`; escaped."""
    lines = [""]
    parts = text.split(at)
    for number, part in enumerate(parts):
        part = part + (at if number < len(parts) - 1 else "")
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return [style.safe(line.strip()) for line in lines]
