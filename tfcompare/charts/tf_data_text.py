"""Texts of the nodes of a tf.data graph: inside them, and on hover."""

from __future__ import annotations

import pandas as pd

from tfcompare.charts import style
from tfcompare.compare.tf_data.iterator_tree import display_name
from tfcompare.text import middle_ellipsis
from tfcompare.units import MINUS, format_bytes, format_count, format_time_us

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


def call_start(nodes: pd.DataFrame) -> float:
    """When the execution began; some of its iterators may have started earlier."""
    return float(nodes.loc[nodes["above"] < 0, "start_us"].min()) if len(nodes) else 0.0


def node_lines(row: pd.Series, call_start_us: float, characters: int) -> list[str]:
    """A node's name and as many facts as fit, in lines of `characters` characters, escaped for Plotly."""
    many = f" ×{row['alike']}" if row["alike"] > 1 else ""
    out = [f"<b>{style.safe(middle_ellipsis(display_name(row['iterator']), characters - len(many)))}</b>{many}"]
    facts = _few_facts(row) if characters < MIN_CHARACTERS else _facts(row, call_start_us)
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


def _few_facts(row: pd.Series) -> list[str]:
    """The facts for a narrow node: signs and the self time."""
    signs = ["▲"] if row["is_bottleneck"] else []
    signs += [MARKS_IN_NODES[row["mark"]][0]] if row["mark"] else []
    return [*([" ".join(signs)] if signs else []), format_time_us(row["self_time_us"])]


def node_details(row: pd.Series, call_start_us: float) -> str:
    """All facts about a node."""
    several = f" ({row['alike']} of the same kind, summed)" if row["alike"] > 1 else ""
    facts = [f"<b>{style.safe(row['iterator'])}</b>{several}", *_wrapped(row["long_name"], "::")]
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
        "parallelism": _or_empty(row["parallelism"]),
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
            facts += _wrapped(f"{name}: {value}", ", ")
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


def _or_empty(value: object) -> str:
    return "" if pd.isna(value) else str(value)  # type: ignore[call-overload]


def _wrapped(text: str, at: str, width: int = 70) -> list[str]:
    """The text in lines of about this width, broken after `at`; escaped."""
    lines = [""]
    parts = text.split(at)
    for number, part in enumerate(parts):
        part = part + (at if number < len(parts) - 1 else "")
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return [style.safe(line.strip()) for line in lines]
