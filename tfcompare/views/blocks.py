"""What a page, a report or a command shows, as data that knows no renderer. Texts are Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfcompare.charts.verdicts import Tone
from tfcompare.tools.card_texts import row_texts, value_text
from tfcompare.tools.key_figures import KeyFigure

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.tools.columns import Shown


@dataclass(frozen=True)
class Finding:
    """A figure of both sides for programs, in the unit of `schema`; NaN for a side without it.

    `id` is the same in every comparison. `word` and `evidence` are those of `compare.stats.verdict`, or `word` is
    `added` or `removed`; `interval` is that of the ratio; empty and None without a verdict. `more` is the view that
    shows more. What `is_alone` has no two sides, and is the candidate's.
    """

    id: str
    label: str
    unit: str
    baseline: float
    candidate: float
    word: str = ""
    evidence: str = ""
    interval: tuple[float, float] | None = None
    more: str = ""
    is_alone: bool = False


@dataclass(frozen=True)
class Verdict:
    """The first lines: a `badge` in a few words with its `tone`, the answer, and sentences on what it is based on."""

    badge: str
    tone: Tone
    headline: str
    basis: Sequence[str] = ()
    findings: Sequence[Finding] = ()

    @property
    def sentences(self) -> list[str]:
        """What follows the headline, where it stands alone: the badge and what it is based on."""
        first, *others = self.basis or [""]
        return [f"{self.badge}: {first}" if self.badge and first else first or self.badge, *others]


@dataclass(frozen=True)
class Text:
    """A paragraph; a `quiet` one is a caption. `more` is the view that shows more."""

    text: str
    quiet: bool = False
    more: str = ""


@dataclass(frozen=True)
class Items:
    """A list, the most important first. Each item is a line, and what it unfolds to; empty for nothing."""

    items: Sequence[tuple[str, str]]
    findings: Sequence[Finding] = ()


@dataclass(frozen=True)
class Facts:
    """A small table of plain texts: a header, and rows that begin with a label or a name.

    `numbers` are the positions of columns that hold numbers, `tones` those of the rows. Where room is scarce, the
    columns at `optional` are left out, the first of them first. `note` is a caption below. `findings` are the rows for
    programs.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()
    tones: Sequence[Tone] = ()
    optional: Sequence[int] = ()
    note: str = ""
    findings: Sequence[Finding] = ()


@dataclass(frozen=True)
class Cards:
    """Key figures of the sides that are called `sides`; of a run alone, without a baseline."""

    figures: Sequence[KeyFigure]
    sides: Sequence[str]

    @property
    def facts(self) -> Facts:
        """The figures as rows, where cards have no room."""
        if len(self.sides) == 1:
            values = [[figure.label, value_text(figure, figure.candidate)] for figure in self.figures]
            return Facts(["Key figures", *self.sides], values, (1,))
        rows = [[figure.label, *row_texts(figure)] for figure in self.figures]
        return Facts(["Key figures", *self.sides, "Change", "Ratio"], rows, (1, 2, 3, 4))

    @property
    def findings(self) -> list[Finding]:
        """The figures for programs."""
        is_alone = len(self.sides) == 1
        return [
            Finding(figure_id(one.label), one.label, one.unit, one.baseline, one.candidate, is_alone=is_alone)
            for one in self.figures
        ]


def figure_id(label: str) -> str:
    """The id of a key figure: `figure:step_time`."""
    return f"figure:{label.lower().replace(' ', '_')}"


@dataclass(frozen=True)
class Chart:
    """A Plotly figure by the name that it has in a view. `draw` makes it, or gives None if there is nothing to show.

    `facts` is what it shows as texts, where nothing can be drawn.
    """

    name: str
    draw: Callable[[], Any]
    facts: Facts | None = None


@dataclass(frozen=True)
class Table:
    """Rows with the columns to show; `name` is that of its CSV file, `note` is above it."""

    name: str
    title: str
    rows: pd.DataFrame
    columns: Sequence[Shown]
    note: str = ""


@dataclass(frozen=True)
class Timeline:
    """`data` and `state` of the timeline's `mount`, and in words what it shows."""

    data: dict[str, Any]
    state: dict[str, Any]


@dataclass(frozen=True)
class Code:
    """A command as it is typed."""

    text: str


@dataclass(frozen=True)
class Section:
    """Blocks under a title, which unfold unless it `is_open`."""

    title: str
    blocks: Sequence[Block]
    is_open: bool = False


Block = Verdict | Text | Items | Cards | Chart | Table | Facts | Timeline | Code | Section


def facts_of(block: Block) -> Facts | None:
    """What the block shows as rows of texts; None if it is something else."""
    if isinstance(block, Cards | Chart):
        return block.facts
    return block if isinstance(block, Facts) else None


@dataclass(frozen=True)
class Report:
    """A report: its title, what is visible at once, and the details. `about` is a line on how it was made."""

    title: str
    sections: Sequence[Section]
    about: str
