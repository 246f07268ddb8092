"""What a report is made of, before it is written as HTML, Markdown or JSON. Texts are Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tfcompare.charts.verdicts import Tone
from tfcompare.tools.columns import Shown
from tfcompare.tools.key_figures import KeyFigure


@dataclass(frozen=True)
class Verdict:
    """The first lines: a `badge` in a few words with its `tone`, the answer, and what it is based on."""

    badge: str
    tone: Tone
    headline: str
    basis: str


@dataclass(frozen=True)
class Text:
    """A paragraph; a `quiet` one is a caption."""

    text: str
    quiet: bool = False


@dataclass(frozen=True)
class Items:
    """A list. Each item is a line, and what it unfolds to; empty for nothing."""

    items: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Cards:
    """Key figures; of a run alone, without a baseline."""

    figures: Sequence[KeyFigure]


@dataclass(frozen=True)
class Chart:
    """A Plotly figure, and its name in `charts.by_name`."""

    name: str
    figure: Any


@dataclass(frozen=True)
class Table:
    """Rows with the columns to show; `name` is that of its CSV file, `note` is above it."""

    name: str
    title: str
    rows: pd.DataFrame
    columns: Sequence[Shown]
    note: str = ""


@dataclass(frozen=True)
class Facts:
    """A small table of plain texts: a header, and rows that begin with a label.

    `numbers` are the positions of columns that hold numbers, `tones` those of the rows.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()
    tones: Sequence[Tone] = ()


@dataclass(frozen=True)
class Timeline:
    """`data` and `state` of the timeline's `mount`, and in words what it shows."""

    data: dict[str, Any]
    state: dict[str, Any]


@dataclass(frozen=True)
class Code:
    """A command as it is typed."""

    text: str


Block = Verdict | Text | Items | Cards | Chart | Table | Facts | Timeline | Code


@dataclass(frozen=True)
class Section:
    """A part of the report under a title, which unfolds unless it `is_open`."""

    title: str
    blocks: Sequence[Block]
    is_open: bool = False


@dataclass(frozen=True)
class Report:
    """A report: its title, what is visible at once, and the details. `about` is a line on how it was made."""

    title: str
    sections: Sequence[Section]
    about: str
