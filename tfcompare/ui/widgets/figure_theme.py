"""How figures look on a light and on a dark page, written into what is sent of them.

Streamlit's own theme is a template that it lays over a figure in the browser, anew each time it hands the figure to
Plotly. Plotly takes a template, and an array of numbers in base64, for another one whenever it is another object, and
draws all again: with them each chart is drawn twice. So what is sent here has neither.
"""

from __future__ import annotations

import base64
import json
from hashlib import blake2b
from typing import Any

import numpy as np
import streamlit as st

from tfcompare.ui.widgets.axis_ranges import with_ranges

TEXT_COLOURS = {"light": "#3A4552", "dark": "#C6CFDA"}
LABEL_COLOURS = {"light": "#808495", "dark": "#E6EAF1"}
"""Of ticks and of the titles of axes."""
LEGEND_COLOURS = {"light": "#262730", "dark": "#FAFAFA"}
GRID_COLOURS = {"light": "#E6EAF1", "dark": "#31333F"}
FONT = '"Source Sans", sans-serif'
AXIS_PIXELS = 67
"""What an axis with a title takes beside or below a chart. Where Plotly learns that by drawing only, it draws again."""

LABELS_PIXELS = 37
"""What an x axis without a title takes."""

END_PIXELS = 20
"""By how much the first label of an x axis may stand out to the left."""

LEAST_PLOT_PIXELS = 64
"""Of a chart that has less than this left for its inside, Plotly takes from what is above and below."""

_TRACES: dict[str, dict[str, Any]] = {
    "scatter": {"marker": {"line": {"width": 0}}},
    "icicle": {"textfont": {"color": "white"}},
}
_WITHOUT_AXES = ("icicle", "treemap")


def sent(figure: Any, theme: str) -> dict[str, Any]:
    """What is sent of a figure, in the colours of the `light` or the `dark` page."""
    spec: dict[str, Any] = _plain(figure.to_dict())
    spec["layout"].pop("template", None)
    axes = _axes(spec)
    if axes:
        _leave_room(spec["layout"])
    layout = spec["layout"] = _over(_layout(theme, axes), spec["layout"])
    if any(trace["type"] == "heatmap" for trace in spec["data"]):  # only these axes have ticks; others would get some
        layout |= {name: {"tickcolor": GRID_COLOURS[theme], **layout[name]} for name in axes}
    for trace in spec["data"]:
        if trace["type"] in _TRACES:
            trace |= _over(_TRACES[trace["type"]], trace)
    if with_ranges(layout, spec["data"], axes):
        # Plotly compares the arrays of two figures by this alone, else it takes all for new ones.
        layout["datarevision"] = blake2b(json.dumps(spec["data"]).encode(), digest_size=8).hexdigest()
    return spec


def _leave_room(layout: dict[str, Any]) -> None:
    """Margins as large as Plotly would make them in the end."""
    x, y, margin = layout.get("xaxis", {}), layout.get("yaxis", {}), layout.setdefault("margin", {})
    if not _has_labels(x):
        return
    below = AXIS_PIXELS if x.get("title", {}).get("text") else LABELS_PIXELS
    beside = AXIS_PIXELS if _has_labels(y) and y.get("title", {}).get("text") else END_PIXELS
    margin["b"] = max(margin.get("b", 0), below)
    margin["l"] = max(margin.get("l", 0), beside)
    room = layout.get("height", 0) - LEAST_PLOT_PIXELS
    if 0 < room < (wanted := margin["b"] + margin.get("t", 0)):
        margin |= {side: round(margin.get(side, 0) * room / wanted) for side in ("t", "b")}
        x["automargin"] = False


def _has_labels(axis: dict[str, Any]) -> bool:
    return bool(axis) and axis.get("visible", True) and axis.get("showticklabels", True)


def _axes(spec: dict[str, Any]) -> list[str]:
    """The axes that the figure has: `xaxis`, `yaxis2` and so on."""
    if spec["data"] and all(trace["type"] in _WITHOUT_AXES for trace in spec["data"]):
        return []
    named = {name for name in spec["layout"] if name.startswith(("xaxis", "yaxis"))}
    used = {
        f"{axis}axis{trace.get(f'{axis}axis', axis)[1:]}" for trace in spec["data"] for axis in "xy" if axis in trace
    }
    return sorted(named | used)


def _layout(theme: str, axes: list[str]) -> dict[str, Any]:
    """What the page's theme says of a figure with these axes."""
    page, text = st.get_option(f"theme.{theme}.backgroundColor"), st.get_option(f"theme.{theme}.textColor")
    labels = {"color": LABEL_COLOURS[theme], "size": 12}
    lines = GRID_COLOURS[theme]
    axis = {
        "gridcolor": lines, "zerolinecolor": lines, "automargin": True, "tickfont": labels,
        "title": {"font": {"color": LABEL_COLOURS[theme], "size": 14}},
    }  # fmt: skip
    of_x = {"showgrid": False, "zeroline": False, "title": {"standoff": 20}}
    of_y = {"title": {"standoff": 24}}
    return {
        "font": {"color": TEXT_COLOURS[theme], "family": FONT, "size": 12, "weight": 400},
        "title": {"font": {"color": text, "size": 16, "weight": 700}, "pad": {"l": 4}, "x": 0, "xanchor": "left"},
        "legend": {"font": {"color": LEGEND_COLOURS[theme], "size": 12}, "borderwidth": 0, "valign": "top"},
        "margin": {"l": 0, "r": 0, "pad": 8},
        "paper_bgcolor": page,
        "plot_bgcolor": page,
        "hoverlabel": {
            "bgcolor": page,
            "bordercolor": st.get_option(f"theme.{theme}.borderColor"),
            "font": {"family": FONT, **labels},
        },
        **{name: _over(axis, of_x if name.startswith("x") else of_y) for name in axes},
    }


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """`above`, and from `below` what it does not say."""
    both = {**below, **above}
    for name in below.keys() & above.keys():
        if isinstance(below[name], dict) and isinstance(above[name], dict):
            both[name] = _over(below[name], above[name])
    return both


def _plain(value: Any) -> Any:
    """The same with each array as a list, and None for what is no number."""
    if isinstance(value, dict):
        if "bdata" in value:
            return _listed(value)
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _listed(encoded: dict[str, Any]) -> Any:
    """The numbers of an array that Plotly wrote in base64, with no more digits than they have."""
    numbers = np.frombuffer(base64.b64decode(encoded["bdata"]), np.dtype(encoded["dtype"]).newbyteorder("<"))
    if numbers.dtype == np.float32:
        numbers = numbers.astype(str).astype(np.float64)
    shape = [int(length) for length in encoded.get("shape", str(len(numbers))).split(",")]
    return _plain(numbers.reshape(shape).tolist())
