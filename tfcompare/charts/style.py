"""What all charts share: the colours of the sides and of better and worse, titles, legends, axes, names cut to fit.

Backgrounds, fonts, grid and text colours are left to the theme the figure is shown in, so that one figure reads well on
light and dark. Each colour here keeps a contrast of 3:1 on both.
"""

from __future__ import annotations

import html
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

import plotly.graph_objects as go

from tfcompare.units import Scale as Scale
from tfcompare.units import middle_ellipsis, scale

BASELINE_COLOUR = "#8C96A3"
CANDIDATE_COLOURS = ("#B0309A", "#A08A00", "#7B5FD9", "#0A9A8C")
BETTER = "#2B7BD6"
WORSE = "#DD6B00"
LIKELY_BETTER = "#5281B7"
LIKELY_WORSE = "#AB794C"
"""Weaker, for claims that rest on single captures."""
NEUTRAL = "#7A8798"
"""What no verdict says to be better or worse."""

BASELINE_SYMBOL = "circle"
CANDIDATE_SYMBOLS = ("diamond", "square", "triangle-up", "cross")

LABEL_LENGTH = 56
HOVER_LENGTH = 100
BREAKS = (" ", "/", ",")
"""Where a line may end when hovering, the best place first."""
BAR_PIXELS = 15
LEGEND_ROW_PIXELS = 20
WIDE_AXIS_PIXELS = 80
"""What an axis with a title and labels of three or four characters takes beside a chart."""
CONFIG = {"displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]}
"""How the page shows every figure: no logo, and no tools that do nothing here."""


@dataclass(frozen=True)
class Side:
    """A run as charts show it: `position` 0 is the baseline, 1 the first candidate, of `sides` runs in all."""

    name: str
    position: int
    sides: int = 2

    @property
    def role(self) -> str:
        """`Baseline`, `Candidate`, or `Candidate 2` where there are several."""
        if self.position == 0:
            return "Baseline"
        return "Candidate" if self.sides <= 2 else f"Candidate {self.position}"

    @property
    def colour(self) -> str:
        """The same in every chart; candidates after the fourth repeat the others'."""
        if self.position == 0:
            return BASELINE_COLOUR
        return CANDIDATE_COLOURS[(self.position - 1) % len(CANDIDATE_COLOURS)]

    @property
    def symbol(self) -> str:
        """The marker, so that colour is not the only sign."""
        if self.position == 0:
            return BASELINE_SYMBOL
        return CANDIDATE_SYMBOLS[(self.position - 1) % len(CANDIDATE_SYMBOLS)]

    @property
    def label(self) -> str:
        """What a legend says of the run."""
        return f"{self.role} · {safe(middle_ellipsis(self.name, LABEL_LENGTH))}"


@dataclass(frozen=True)
class Quantity:
    """What a chart of changes shows: its name, its unit in the schema, and the words for less and more of it."""

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


def shorten_apart(names: list[str], length: float = LABEL_LENGTH, size: Callable[[str], float] = len) -> list[str]:
    """The names cut to `length`, so that different ones still read differently.

    Those that would read alike show where they begin to differ instead of how they begin; where even that is not enough
    they are numbered. `size` measures a text, of which every letter counts for 1 at least.
    """
    labels = [_cut(name, length, size) for name in names]
    for alike in _alike(labels, names):
        start = _common_scope([names[i] for i in alike])
        for i in alike:
            labels[i] = "…" + _cut(names[i][start:], length - size("…"), size) if start else labels[i]
    taken = set(labels)
    for alike in _alike(labels, names):
        label = labels[alike[0]]
        numbered = {names[alike[0]]: label}
        for i in alike:
            if names[i] not in numbered:
                ends = (f" ({number})" for number in count(len(numbered) + 1))
                apart = (_cut(label, length - size(end), size) + end for end in ends)
                numbered[names[i]] = next(text for text in apart if text not in taken)
                taken.add(numbered[names[i]])
            labels[i] = numbered[names[i]]
    return labels


def _cut(name: str, length: float, size: Callable[[str], float]) -> str:
    """As much of `name` as `length` has room for, its middle given up for an ellipsis."""
    if size(name) <= length:
        return name
    letters = range(1, min(len(name), max(int(length), 0)) + 1)
    too_many = bisect_right(letters, length, key=lambda count: size(middle_ellipsis(name, count)))
    return middle_ellipsis(name, max(too_many, 1))


def _common_scope(names: list[str]) -> int:
    """How many characters the names have in common at their start, up to and with a `/`."""
    first, last = min(names), max(names)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:same].rfind("/") + 1


def _alike(labels: list[str], names: list[str]) -> list[list[int]]:
    """The positions of each label that stands for more than one name."""
    positions: dict[str, list[int]] = {}
    for i, label in enumerate(labels):
        positions.setdefault(label, []).append(i)
    return [alike for alike in positions.values() if len({names[i] for i in alike}) > 1]


def safe(text: str) -> str:
    """A name from a profile as Plotly shall show it: as it is, not as markup."""
    return html.escape(text, quote=False)


def whole(text: str) -> str:
    """A name or sentence as hovering shows it: whole, however long, in lines that fit on the screen.

    Lines end at blanks, in names without any at `/` or `,`, and within a word only where it is longer than a line.
    """
    lines = []
    while len(text) > HOVER_LENGTH:
        ends = (text.rfind(sign, HOVER_LENGTH // 2, HOVER_LENGTH) + 1 for sign in BREAKS)
        end = next((end for end in ends if end), HOVER_LENGTH)
        lines.append(text[:end])
        text = text[end:]
    return "<br>".join(map(safe, [*lines, text]))


def figure(title: str, subtitle: str = "", *, height: int, legend_rows: int = 1, **layout: Any) -> go.Figure:
    """An empty figure with a title, room for `legend_rows` below it, and nothing that a theme should decide.

    The legend is never left to wrap, since it would grow over the title: one row of short entries, or a row an entry.
    """
    texts = {"text": title, "subtitle": {"text": subtitle}} if subtitle else {"text": title}
    place = {"x": 0, "xref": "container", "y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 8}}
    orientation = "v" if legend_rows > 1 else "h"
    axis = {"automargin": True}
    return go.Figure(
        layout={
            "title": texts | place,
            "height": height + LEGEND_ROW_PIXELS * legend_rows,
            "margin": {"l": 8, "r": 16, "t": 62 + LEGEND_ROW_PIXELS * legend_rows, "b": 8},
            "legend": {"orientation": orientation, "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"},
            "hoverlabel": {"namelength": -1, "align": "left"},
            "barcornerradius": 2,
            "xaxis": axis,
            "yaxis": axis,
            **layout,
        }
    )


def rows_height(rows: int, bars_in_a_row: int = 1) -> int:
    """Pixels for rows of a name with its bars below, title and axis included."""
    return 118 + max(rows, 2) * _row_pixels(bars_in_a_row)


def bar_places(bars_in_a_row: int = 1) -> tuple[list[float], float]:
    """(how far below a row's name the middle of each of its bars is, how thick they are), in rows."""
    row = _row_pixels(bars_in_a_row)
    return [(BAR_PIXELS * (i + 1)) / row for i in range(bars_in_a_row)], (BAR_PIXELS - 2) / row


def name_rows(result: go.Figure, labels: list[str], *, above: float = 0.0, **place: Any) -> None:
    """Make the y axis one of rows 0, 1, … from the top, each with its name above its bars.

    So a long name takes no room from the bars. `above` leaves room for so many rows more on top; `place` are an
    annotation's `x` and its like, by default the left end.
    """
    shared = {"x": 0, "xref": "paper", "xanchor": "left", "yanchor": "middle", "showarrow": False} | place
    names = [{"text": safe(label), "y": row, **shared} for row, label in enumerate(labels)]
    result.layout.annotations = [*result.layout.annotations, *names]
    result.update_yaxes(
        showticklabels=False, showgrid=False, zeroline=False, range=[len(labels) - 0.3, -0.4 - above], fixedrange=True
    )


def _row_pixels(bars: int) -> int:
    return 26 + BAR_PIXELS * bars
