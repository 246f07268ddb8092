"""About where Plotly's own ranges end, for axes that are left to it.

A chart that is handed to Plotly a second time, unchanged, is not drawn again, and so its ranges are not found again:
Plotly takes those that it is given. Where none were, it would go on with an empty chart's.
"""

from __future__ import annotations

from typing import Any

PADDING = 0.05
"""What Plotly leaves free beyond the outermost point, of the axis."""

MARKERS = 0.015
"""What it leaves more for a marker, about."""


def with_ranges(layout: dict[str, Any], traces: list[dict[str, Any]], axes: list[str]) -> bool:
    """Give each of the axes a range; False where there is one of which it cannot be told."""
    for name in axes:
        axis = layout.setdefault(name, {})
        if axis.get("range") is not None and None not in axis["range"]:
            continue
        found = None if "autorange" in axis else _range(layout, traces, name)
        if found is None:
            return False
        axis |= {"range": found, "autorange": True}
    return True


def _range(layout: dict[str, Any], traces: list[dict[str, Any]], name: str) -> list[float] | None:
    letter, axis = name[0], f"{name[0]}{name[5:]}"
    drawn = [trace for trace in traces if trace.get(f"{letter}axis", letter) == axis and trace.get(letter)]
    marks = [*layout.get("shapes", ()), *layout.get("images", ())]
    if any(mark.get(f"{letter}ref", letter) == axis for mark in marks) or any(map(_is_special, drawn)):
        return None
    values = _stacked(layout, drawn, letter)
    if not values or not all(isinstance(value, int | float) for value in values):
        return None
    low, high = min(values), max(values)
    to_zero = layout[name].get("rangemode") == "tozero" or drawn[0]["type"] == "bar"
    if to_zero and low >= 0:
        low = 0
    free = _free(drawn, letter)
    below = 0.0 if to_zero and low == 0 else free
    length = (high - low) / (1 - free - below)
    return [low - below * length, high + free * length] if length > 0 else None


def _is_special(trace: dict[str, Any]) -> bool:
    return trace["type"] not in ("scatter", "bar") or not {"error_x", "error_y", "base", "visible"}.isdisjoint(trace)


def _stacked(layout: dict[str, Any], traces: list[dict[str, Any]], letter: str) -> list[Any]:
    """The values, added up where traces stand on one another; none where that cannot be told."""
    values = [trace[letter] for trace in traces]
    is_bars = [trace["type"] == "bar" for trace in traces]
    on_one_another = [trace.get("stackgroup") is not None and letter == "y" for trace in traces]
    if any(is_bars):
        is_value = all(trace.get("orientation", "v") == ("h" if letter == "x" else "v") for trace in traces)
        if not all(is_bars) or not is_value or layout.get("barmode") != "stack":
            return []
        on_one_another = is_bars
    if not any(on_one_another):
        return [value for part in values for value in part if value is not None]
    if not all(on_one_another) or len({len(part) for part in values}) > 1:
        return []
    return [sum(value or 0 for value in column) for column in zip(*values, strict=True)]


def _free(traces: list[dict[str, Any]], letter: str) -> float:
    """How much of the axis stays free beyond the outermost point."""
    modes = [trace.get("mode", "") for trace in traces]
    if any("markers" in mode for mode in modes):
        return PADDING + MARKERS
    is_line = all(trace["type"] == "scatter" for trace in traces) and not any("text" in mode for mode in modes)
    return 0.0 if letter == "x" and is_line else PADDING
