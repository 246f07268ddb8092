"""What a page, a report or a command shows, as data that knows no renderer. Texts are Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from tfcompare.compare.diff import PER_RUN, SumsPer
from tfcompare.text import capitalized
from tfcompare.units import MISSING, format_ratio
from tfcompare.views.columns import Shown, shown, shown_alone, single_run_columns
from tfcompare.views.key_figures import KeyFigure, first_of, row_texts, value_text
from tfcompare.views.verdict_marks import Judged, Tone, word_of

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare import schema


@dataclass(frozen=True)
class Finding:
    """A figure of both sides for programs, in the unit of `schema`; NaN for a side without it.

    `id` is the same in every comparison. `word` and `evidence` are those of `compare.stats.verdict`, or `word` is
    `added` or `removed`; `interval` is that of the ratio; empty and None without a verdict. `more` is the view that
    shows more. What `is_alone` has no two sides, and is the candidate's. `shape` is that of the op's
    array on both sides.
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
    shape: str = ""


@dataclass(frozen=True)
class Verdict:
    """The first lines: a `badge` in a few words with its `tone`, the answer, and sentences on what it is based on.

    `note` is the one of these sentences that tells what to do next or to keep in mind, empty for none. Where there is
    room for a screen only, the others are behind a help icon, with `help`, which says what is judged, and `details` on
    how sure the verdict is.
    """

    badge: str
    tone: Tone
    headline: str
    basis: Sequence[str] = ()
    findings: Sequence[Finding] = ()
    help: str = ""
    details: str = ""
    note: str = ""

    @property
    def behind(self) -> list[str]:
        """The sentences of the basis without the note."""
        return [one for one in self.basis if one != self.note]

    @property
    def sentences(self) -> list[str]:
        """What follows the headline, where it stands alone: the badge and what it is based on."""
        first, *others = self.basis or [""]
        return [f"{self.badge}: {first}" if self.badge and first else first or self.badge, *others]


TextStyle = Literal["plain", "headline", "quiet", "notice"]


@dataclass(frozen=True)
class Text:
    """A paragraph: the headline of a view, a caption (`quiet`), or a `notice` on what is missing.

    `more` is the view that shows more, `help` explains the words. `clears` is the address of the option that restricts
    what is shown to what the text names; a page can clear it.
    """

    text: str
    look: TextStyle = "plain"
    more: str = ""
    help: str = ""
    clears: str = ""


@dataclass(frozen=True)
class Items:
    """A list, the most important first. Each item is a line, and what it unfolds to; empty for nothing.

    The labels of `findings` are Markdown, as the lines are.
    """

    items: Sequence[tuple[str, str]]
    findings: Sequence[Finding] = ()


@dataclass(frozen=True)
class Facts:
    """A small table of plain texts: a header, and rows that begin with a label or a name.

    `numbers` are the positions of columns that hold numbers, `tones` those of the rows. Where room is scarce, the
    columns at `optional` are left out, the first of them first. `note` is a caption below. `findings` are the rows for
    programs; `opens` takes the id of one, which is in a page's address after `address`.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()
    tones: Sequence[Tone] = ()
    optional: Sequence[int] = ()
    note: str = ""
    findings: Sequence[Finding] = ()
    opens: Opens | None = None
    help: str = ""
    address: str = ""


@dataclass(frozen=True)
class Cards:
    """Key figures of the sides that are called `sides`; of a run alone, without a baseline.

    Where figures are drawn as cards, those that are not among the `first` are in a table of all, behind `every`;
    `others` is empty where there are none.
    """

    figures: Sequence[KeyFigure]
    sides: Sequence[str]

    @property
    def first(self) -> list[KeyFigure]:
        """The figures that are seen first."""
        return first_of(self.figures)

    @property
    def every(self) -> str:
        """`All 9 figures`."""
        return f"All {len(self.figures)} figures"

    @property
    def others(self) -> str:
        """`All 9 figures`, where there are more than the first."""
        return self.every if len(self.first) < len(self.figures) else ""

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
class Judgements:
    """Verdicts with their confidence intervals, each with the name of what is judged."""

    rows: Sequence[Judged]

    @property
    def facts(self) -> Facts:
        """The verdicts as rows; where there is no interval, the reason for that."""
        cells = []
        for row in self.rows:
            found = row.verdict
            interval = f"{format_ratio(found.low)}–{format_ratio(found.high)}" if found.has_interval else MISSING
            ratio = format_ratio(found.ratio) if found.has_interval else MISSING
            cells.append([row.name, word_of(found), ratio, interval])
        reasons = dict.fromkeys(row.verdict.reason for row in self.rows if not row.verdict.has_interval)
        note = " ".join(f"{capitalized(reason)}." for reason in reasons if reason)
        return Facts(["Verdicts", "Verdict", "Ratio", "95 % CI"], cells, (2, 3), note=note)


@dataclass(frozen=True)
class Chart:
    """A Plotly figure by the name that it has in a view. `draw` makes it, or gives None if there is nothing to show.

    `draw_narrow` does so for a narrow page; `on` is what the figure depends on apart from the pair, so that it may be
    kept. `facts` is what it shows as texts, where nothing can be drawn; `nothing` says that there is nothing to show.
    `chooses` is the address of an option that takes the x of a point on which one clicks.
    """

    name: str
    draw: Callable[[], Any]
    facts: Facts | None = None
    on: Hashable = None
    draw_narrow: Callable[[], Any] | None = None
    nothing: str = ""
    chooses: str = ""


@dataclass(frozen=True)
class FlameGraph:
    """A tree as bars below bars, by the name that it has in a view: width is time, colour the change.

    `draw` makes the tree, a row for each `node` (unique), with `parent` (empty for roots), `label`, the times
    `<metric>_baseline` and `_candidate` with those of all children, `status`, optionally `verdict` and `evidence`.
    `sides` are the names of the runs; of a run alone, times are the baseline's. `per` is what times are per (`step`).
    `chooses` is the address of an option that takes the node on which one clicks, and `selected` is that node.
    One that `is_neutral` has no colours, as that of unrelated programs. `on`, `facts` and `nothing` as of a chart.
    """

    name: str
    title: str
    draw: Callable[[], pd.DataFrame]
    metric: str
    sides: Sequence[str]
    per: str = ""
    on: Hashable = None
    chooses: str = ""
    selected: str = ""
    is_neutral: bool = False
    facts: Facts | None = None
    nothing: str = ""


@dataclass(frozen=True)
class Details:
    """What opens when a row is selected."""

    title: str
    make: Callable[[], Iterable[Block]]

    @property
    def blocks(self) -> list[Block]:
        """The blocks, made when they are asked for."""
        return list(self.make())


@dataclass(frozen=True)
class Opens:
    """How the rows of a table open: `keys` are unique and short, `details` what opens for one, `None` for nothing.

    `keys` of `Facts` are the ids of its findings. Without `details`, the key of the selected row is the value of an
    option of the view that `is_in_address`.
    """

    details: Callable[[str], Details | None] | None
    keys: Callable[[pd.DataFrame], pd.Series] | None = None
    hint: str = "Select a row at its left end to open its details."


@dataclass(frozen=True)
class Table:
    """Rows of a diff, or of a run alone, with the columns `names`; of both runs, or of the first if it `is_alone`.

    `every` are the names of all columns; `everything` makes the rows of the whole table for a file, by default those
    of the diff of all candidates. `readings` is what is shown in place of texts that are too long to read. `nothing`
    (Markdown) is shown in place of rows. `address` distinguishes the tables of a page in its address,
    where `switch` is what `All columns` is called, if it has a name of its own. A table that `is_small` is a part of
    something else, without files of its own. `others` is how columns are shown that the table does
    not declare; `file` names the CSV file if the rows are of no table. `sums_per`: what the table's sums are per.
    `menu`: what else a page can do with the table.
    """

    table: schema.Table
    title: str
    rows: pd.DataFrame
    names: Sequence[str]
    is_alone: bool = False
    every: Sequence[str] = ()
    nothing: str = ""
    opens: Opens | None = None
    everything: Callable[[], pd.DataFrame] | None = None
    readings: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    switch: str = ""
    is_small: bool = False
    others: Mapping[str, Shown] = field(default_factory=dict)
    file: str = ""
    sums_per: SumsPer = PER_RUN
    menu: Live | None = None

    @property
    def name(self) -> str:
        """The name of the CSV file: that of the table which the rows are of, or `file`."""
        return self.file or self.table.name

    @property
    def columns(self) -> list[Shown]:
        """How the columns are shown."""
        return self.columns_of(self.names)

    def columns_of(self, names: Sequence[str]) -> list[Shown]:
        """How these columns are shown; of a run alone, those that say something about it."""
        names, show = (single_run_columns(names), shown_alone) if self.is_alone else (names, shown)
        return [self.others[name] if name in self.others else show(name, self.table, self.sums_per) for name in names]

    def name_in_file(self, column: str) -> str:
        """What a column is called in files, JSON and addresses."""
        return self.sums_per.names(self.table).get(column, column)

    def in_file(self, columns: Sequence[Shown]) -> tuple[pd.DataFrame, list[Shown]]:
        """The rows, and some of their columns, with the names of files."""
        named = [replace(column, name=self.name_in_file(column.name)) for column in columns]
        return self.rows.rename(columns=self.sums_per.names(self.table)), named


@dataclass(frozen=True)
class Timeline:
    """The timeline: `draw` makes the `data` and `state` of its `mount`, `facts` is what it shows as texts."""

    draw: Callable[[], tuple[dict[str, Any], dict[str, Any]]]
    facts: Facts | None = None


@dataclass(frozen=True)
class Code:
    """A command or program as it is typed; a `diff` has lines that begin with `-`, `+` or a space."""

    text: str
    language: Literal["", "diff"] = ""


@dataclass(frozen=True)
class Choose:
    """Where the options of these names can be changed, after others that the block `first` chooses."""

    names: Sequence[str]
    first: Live | None = None


@dataclass(frozen=True)
class Link:
    """A link to the page of a view, with parameters of its address; for one host, or for `every_host` again.

    `runs` are the ids of baseline and candidate, if it is about others than the page.
    """

    label: str
    view: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    host: str | None = None
    every_host: bool = False
    runs: tuple[str, str] | None = None


@dataclass(frozen=True)
class Links:
    """Links in a row, after a text in Markdown."""

    links: Sequence[Link]
    text: str = ""
    help: str = ""


@dataclass(frozen=True)
class Live:
    """What acts rather than says something, such as the widgets of manual pairs: known to pages only, by its name.

    `instead` is shown by everything else.
    """

    name: str
    arguments: tuple[Any, ...] = ()
    instead: Block | None = None


@dataclass(frozen=True)
class Beside:
    """Groups of blocks that belong next to each other, where there is room: for `pixels` each, if it says so.

    Each is in a frame if they are `framed`.
    """

    parts: Sequence[Sequence[Block]]
    framed: bool = False
    pixels: int = 0

    @property
    def blocks(self) -> list[Block]:
        """The blocks of all groups."""
        return [block for part in self.parts for block in part]


@dataclass(frozen=True)
class Section:
    """Blocks under a title, which unfold unless it `is_open`; a function makes them when they are asked for.

    What is not needed at once stands at the end of a view, in a section `MORE`.

    `choose` are options that can be changed beside the title, which must not depend on any option then. Without a title
    the blocks only belong together.
    """

    title: str
    make: Sequence[Block] | Callable[[], Iterable[Block]]
    is_open: bool = False
    choose: Sequence[str] = ()
    help: str = ""

    @property
    def unfolds(self) -> bool:
        """Whether a page makes the blocks only when the section is opened, with the options of sections inside."""
        return bool(self.title) and not self.is_open and not self.choose and callable(self.make)

    @property
    def address(self) -> str:
        """What says in a page's address that the section is open: `more`."""
        return re.sub(r"\W+", "_", self.title.lower()).strip("_")

    @property
    def blocks(self) -> list[Block]:
        """The blocks of the section."""
        return list(self.make() if callable(self.make) else self.make)


_Figures = Cards | Judgements | Chart | FlameGraph | Table | Facts | Timeline
Block = Verdict | Text | Items | _Figures | Code | Choose | Links | Live | Beside | Section


MORE = "More"
"""The title of the last section of a view."""


def later(make: Callable[[], Iterable[Block]]) -> Section:
    """Blocks that are made when they are asked for."""
    return Section("", make, is_open=True)
