"""The look of all charts: colours, axes, hover texts, and thinned series.

Backgrounds, fonts, grid and text colours are left to the theme in which the figure is shown, so that it is readable in
light and dark mode. Each colour here has a contrast of at least 3:1 in both.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tsdownsample import MinMaxDownsampler

from tfcompare.text import middle_ellipsis
from tfcompare.units import Scale as Scale
from tfcompare.units import scale
from tfcompare.views.short_names import LABEL_LENGTH as LABEL_LENGTH
from tfcompare.views.short_names import shorten_distinct as shorten_distinct

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from numpy.typing import NDArray

    from tfcompare.compare.side import Side

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Positions = NDArray[np.int64]

BASELINE_COLOUR = "#8C96A3"
CANDIDATE_COLOURS = ("#B0309A", "#A08A00", "#7B5FD9", "#0A9A8C")
BETTER = "#2B7BD6"
WORSE = "#DD6B00"
LIKELY_BETTER = "#5281B7"
LIKELY_WORSE = "#AB794C"
"""Weaker colours, for verdicts from single captures."""
NEUTRAL = "#7A8798"
"""Colour of what no verdict calls better or worse."""

BASELINE_SYMBOL = "circle"
CANDIDATE_SYMBOLS = ("diamond", "square", "triangle-up", "cross")

HOVER_LENGTH = 100
BREAKS = (" ", "/", ",")
"""Where lines of hover text may break, the best place first."""
BAR_PIXELS = 15
BESIDE_BAR = {"textposition": "outside", "textfont": {"size": 11}, "constraintext": "none", "cliponaxis": False}
"""Properties of bars whose text is at their end, in full."""
LEGEND_ROW_PIXELS = 20
WIDE_AXIS_PIXELS = 80
"""Width of a vertical axis with a title and labels of three or four characters."""
CONFIG = {
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
    "toImageButtonOptions": {"format": "png", "scale": 2},
}
"""Plotly's configuration of every figure: no logo, no tools without effect here, and a sharp PNG download.

A second button for SVG would need a function in JavaScript, which Streamlit cannot pass on.
"""
MAX_MARKERS = 150
"""Up to this many steps, each gets a marker or a bar; more would touch, and are drawn as a line or areas."""

MAX_LINE_POINTS = 600
"""Maximum number of steps that a line is drawn through, about one or two per pixel."""

MAX_AREA_POINTS = 300
"""The same for stacked areas, each of which has as many points."""

MAX_MARKED = 100
"""Maximum number of marked steps, those farthest from the median first."""


def side_colour(side: Side) -> str:
    """The side's colour in every chart; from the fifth candidate on, colours repeat."""
    if side.position == 0:
        return BASELINE_COLOUR
    return CANDIDATE_COLOURS[(side.position - 1) % len(CANDIDATE_COLOURS)]


def side_symbol(side: Side) -> str:
    """The side's marker, so that colour is not the only distinction."""
    if side.position == 0:
        return BASELINE_SYMBOL
    return CANDIDATE_SYMBOLS[(side.position - 1) % len(CANDIDATE_SYMBOLS)]


def side_label(side: Side) -> str:
    """The side's legend text."""
    name = safe(middle_ellipsis(side.name, LABEL_LENGTH))
    return name if side.sides == 1 else f"{side.role} · {name}"


@dataclass(frozen=True)
class Quantity:
    """What a chart of changes shows: its name, its unit in the schema, and the words for less and more."""

    name: str
    unit: str
    less: str
    more: str

    def scale(self, values: Iterable[float]) -> Scale:
        """The unit in which the largest of the values reads best."""
        return scale(values, self.unit)


SELF_TIME = Quantity("self time", "µs", "less time", "more time")


def time_scale(times_us: Iterable[float]) -> Scale:
    """The unit in which the largest of the times reads best."""
    return scale(times_us, "µs")


def safe(text: str) -> str:
    """A name from a profile, escaped for Plotly."""
    return html.escape(text, quote=False).replace("$", "&#36;")  # between two of them, Plotly expects a formula


def wrap_text(text: str) -> str:
    """A name or sentence in full for hover texts, wrapped into lines that fit on the screen, and escaped.

    Lines break at spaces, else at `/` or `,`, and within a word only if it is longer than a line.
    """
    lines = []
    while len(text) > HOVER_LENGTH:
        ends = (text.rfind(sign, HOVER_LENGTH // 2, HOVER_LENGTH) + 1 for sign in BREAKS)
        end = next((end for end in ends if end), HOVER_LENGTH)
        lines.append(text[:end])
        text = text[end:]
    return "<br>".join(map(safe, [*lines, text]))


def figure(title: str, subtitle: str = "", *, height: int, legend_rows: int = 1, **layout: Any) -> go.Figure:
    """An empty figure with a title and room for `legend_rows`, without anything that the theme decides.

    The legend has either one row of short entries or one row per entry: if it wrapped, it would cover the title.
    """
    import plotly.graph_objects as go

    texts = {"text": title, "subtitle": {"text": subtitle}} if subtitle else {"text": title}
    place = {"x": 0, "xref": "container", "y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 8}}
    orientation = "v" if legend_rows > 1 else "h"
    axis = {"automargin": True}
    return go.Figure(
        layout={
            "title": texts | place,
            "height": height + LEGEND_ROW_PIXELS * legend_rows,
            "margin": {"l": 8, "r": 16, "t": (62 if subtitle else 40) + LEGEND_ROW_PIXELS * legend_rows, "b": 8},
            "legend": {"orientation": orientation, "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"},
            "hoverlabel": {"namelength": -1, "align": "left"},
            "barcornerradius": 2,
            "xaxis": axis,
            "yaxis": axis,
            **layout,
        }
    )


NARROW_LINE, NARROW_LINE_PIXELS, NARROW_FONT = 54, 20, 11
"""Letters and height of a line of a subtitle that fits on a phone of 390 px, and the font size of names that do."""


def for_narrow_page(wide: go.Figure) -> go.Figure:
    """The figure with its subtitle in as many lines as a phone needs, and with smaller names of its rows and sides."""
    import plotly.graph_objects as go

    result = go.Figure(wide).update_layout(legend_font_size=NARROW_FONT)
    result.update_annotations(font_size=NARROW_FONT, selector={"x": 0, "xref": "paper", "xanchor": "left"})
    lines = textwrap.wrap(result.layout.title.subtitle.text or "", NARROW_LINE)
    if more := NARROW_LINE_PIXELS * (len(lines) - 1) if lines else 0:
        margin, height = result.layout.margin.t + more, result.layout.height + more
        result.update_layout(title_subtitle_text="<br>".join(lines), margin_t=margin, height=height)
    return result


def rows_height(rows: int, bars_in_a_row: int = 1) -> int:
    """Height in pixels of rows with a name above their bars, including title and axis."""
    return 118 + max(rows, 2) * _row_pixels(bars_in_a_row)


def bar_offsets(bars_in_a_row: int = 1) -> tuple[list[float], float]:
    """(offset of each bar's middle below the row's name, thickness of the bars), in rows."""
    row = _row_pixels(bars_in_a_row)
    return [(BAR_PIXELS * (i + 1)) / row for i in range(bars_in_a_row)], (BAR_PIXELS - 2) / row


def name_rows(result: go.Figure, labels: list[str], *, above: float = 0.0, **place: Any) -> None:
    """Set up the y axis as rows 0, 1, … from the top, each with its name above its bars.

    So long names take no width from the bars. `above` adds empty rows on top; `place` overrides an annotation's `x` and
    related properties, by default the left edge.
    """
    shared = {"x": 0, "xref": "paper", "xanchor": "left", "yanchor": "middle", "showarrow": False} | place
    names = [{"text": safe(label), "y": row, **shared} for row, label in enumerate(labels)]
    result.layout.annotations = [*result.layout.annotations, *names]
    result.update_yaxes(
        showticklabels=False, showgrid=False, zeroline=False, range=[len(labels) - 0.3, -0.4 - above], fixedrange=True
    )


LABELLED_ROW_PIXELS = 20
FEWEST_LABELLED_ROWS = 2
"""In less height, the labels of the x axis would cover its title."""
LABELLED_BAR = 0.6
"""Height of a bar with its label on the left, in rows."""


def label_rows(result: go.Figure, labels: list[str], offset: float = 0.0) -> None:
    """Set up the y axis as rows 0, 1, … from the top, each with a short label on the left of its bars.

    `offset` is how far below its row each bar is.
    """
    rows = [row + offset for row in range(len(labels))]
    result.update_traces(width=LABELLED_BAR, selector={"type": "bar"})
    names, ends = list(map(safe, labels)), [len(labels) - 0.4 + offset, -0.6 + offset]
    result.update_yaxes(tickvals=rows, ticktext=names, showgrid=False, zeroline=False, fixedrange=True, range=ends)
    above = 58 if result.layout.title.subtitle.text else 36
    below = 52 if result.layout.xaxis.title.text else 24
    height = above + below + LABELLED_ROW_PIXELS * max(len(labels), FEWEST_LABELLED_ROWS)
    result.update_layout(height=height, margin={"t": above, "b": below})
    if not result.layout.xaxis.title.text:  # else, room for a title is left below the axis
        result.update_xaxes(automargin=False)


def _row_pixels(bars: int) -> int:
    return 26 + BAR_PIXELS * bars


def steps_to_draw(values: Floats, marked: Bools | None = None, points: int = MAX_LINE_POINTS) -> Positions:
    """Positions of about `points` steps whose line looks like that of all: both ends, marked steps, local extremes."""
    count = len(values)
    if count <= points:
        return np.arange(count)
    thin = MinMaxDownsampler()  # type: ignore[no-untyped-call]
    sampled = thin.downsample(np.ascontiguousarray(values, np.float64), n_out=points - points % 2).astype(np.int64)
    ends = np.array([0, count - 1], np.int64)
    return np.unique(np.concatenate([ends, sampled, np.flatnonzero(marked) if marked is not None else ends]))


def steps_to_mark(values: Floats, marked: Bools) -> Bools:
    """Which of the marked steps get a marker: all, or the `MAX_MARKED` whose values are farthest from the median."""
    if int(marked.sum()) <= MAX_MARKED:
        return marked
    distance = np.where(marked, np.abs(values - np.median(values)), -1.0)
    chosen = np.zeros(len(values), np.bool_)
    chosen[np.argsort(-distance, kind="stable")[:MAX_MARKED]] = True
    return chosen


def note(count: int, points: int = MAX_LINE_POINTS) -> str:
    """The note of a chart that omits steps; empty if it draws all of them."""
    return f"of {count:,} steps the shortest and the longest of each stretch are drawn" if count > points else ""
