"""A view of a comparison in every format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tfcompare import __version__
from tfcompare.charts.pair import Pair, pairs_of
from tfcompare.compare import Comparison
from tfcompare.errors import Unknown
from tfcompare.render import as_json, html, markdown, notebook, terminal
from tfcompare.tools.caveats import caveats, runs_of
from tfcompare.views.blocks import Block, Items, Report, Section, Text
from tfcompare.views.registry import view
from tfcompare.views.view import View

Format = Literal["table", "json", "markdown", "html"]
FORMATS: tuple[Format, ...] = ("table", "json", "markdown", "html")
ALL_ROWS = 1_000_000_000


@dataclass(frozen=True)
class Shown:
    """What a view shows of a comparison: displayed in a notebook, printed as text, or as one of `FORMATS`."""

    comparison: Comparison
    view: View

    @classmethod
    def of(cls, comparison: Comparison, name: str) -> Shown:
        """The view `name` of a comparison. Raises `Unknown`."""
        return cls(comparison, view(name))

    def __str__(self) -> str:
        return self.to("table")

    def __repr__(self) -> str:
        return f"<{self.view.title} of {self.comparison!r}>"

    def _repr_html_(self) -> str:
        return notebook.cell(self._blocks())

    def to(
        self, form: str, *, words: Sequence[str] = (), width: int | None = None, rows: int = terminal.MOST_ROWS
    ) -> str:
        """The view as text, JSON, Markdown or HTML, with the first `rows` of its tables (HTML has all).

        `words` are the runs as they are typed in commands, by default their ids; `width` is that of the terminal.
        Raises `Unknown` for another format.
        """
        if form not in FORMATS:
            raise Unknown("format", form, list(FORMATS))
        if form == "table":
            return terminal.as_lines(self._blocks(), width, rows) + "\n"
        if form == "json":
            typed = words or [run.id for run in runs_of(self.comparison)]
            pairs = pairs_of(self.comparison, by_name=True)
            blocks = {pair.candidate.id: self._of_pair(pair) for pair in pairs}
            return as_json.as_json(self.comparison, self.view.name, blocks, typed, rows)
        named = ", ".join(run.name for run in runs_of(self.comparison))
        about = f"Made by tfcompare {__version__}."
        report = Report(f"{self.view.title}: {named}", [Section("", self._blocks(), is_open=True)], about)
        return markdown.as_text(report, rows) if form == "markdown" else html.as_html(report)

    def _blocks(self) -> list[Block]:
        """Of each candidate, below its name if there are several; then what to know before trusting the figures."""
        pairs = pairs_of(self.comparison, by_name=True)
        if len(pairs) == 1:
            blocks = self._of_pair(pairs[0])
        else:
            blocks = [Section(pair.candidate.name, self._of_pair(pair), is_open=True) for pair in pairs]
        if found := caveats(self.comparison):
            blocks.append(Section(f"Caveats ({len(found)})", [Items([(one, "") for one in found])]))
        return blocks

    def _of_pair(self, pair: Pair) -> list[Block]:
        """What the view shows of a pair, or why it has nothing to show."""
        if why_not := self.view.why_not(pair):
            return [Text(why_not)]
        return list(self.view.blocks(pair)) or [Text("These runs have nothing that this view could show.")]
