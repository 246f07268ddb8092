"""A view of a comparison in every format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from tfcompare import __version__
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import Pairs, pairs_of
from tfcompare.errors import Unknown
from tfcompare.render import as_json, terminal
from tfcompare.render.document import Report, with_all_columns
from tfcompare.render.terminal import MOST_ROWS
from tfcompare.views.blocks import Block, Items, Section, Text
from tfcompare.views.caveats import beside_the_answer, caveats
from tfcompare.views.options import options_with
from tfcompare.views.registry import view
from tfcompare.views.steps import view as overview
from tfcompare.views.view import View

Format = Literal["table", "json", "markdown", "html"]
FORMATS: tuple[Format, ...] = ("table", "json", "markdown", "html")
ALL_ROWS = 1_000_000_000


@dataclass(frozen=True)
class Shown:
    """What a view shows of a comparison: displayed in a notebook, printed as text, or as one of `FORMATS`."""

    comparison: Pairs
    view: View
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, comparison: Pairs, name: str, **options: Any) -> Shown:
        """The view `name` of a comparison with these options. Raises `Unknown` for the view, an option or a value."""
        found = view(name)
        for pair in pairs_of(comparison):
            options_with(found.options, pair, options)
        return cls(comparison, found, options)

    def __str__(self) -> str:
        return self.to("table")

    def __repr__(self) -> str:
        return f"<{self.view.title} of {self.comparison!r}>"

    def _repr_html_(self) -> str:
        from tfcompare.render.notebook import cell

        return cell(self._blocks())

    def to(
        self,
        form: str,
        *,
        words: Sequence[str] = (),
        width: int | None = None,
        rows: int = MOST_ROWS,
        every: bool = False,
    ) -> str:
        """The view as text, JSON, Markdown or HTML, with the first `rows` of its tables (HTML has all).

        `words` are the runs as they are typed in commands, by default their ids; `width` is that of the terminal. Text
        and JSON have all columns with `every`.
        Raises `Unknown` for another format.
        """
        if form not in FORMATS:
            raise Unknown("format", form, list(FORMATS))
        if form == "table":
            return terminal.as_lines(self._blocks(every=every), width, rows) + "\n"
        if form == "json":
            typed = words or [run.id for run in self.comparison.runs]
            style = as_json.Style(rows, as_json.view_command(*typed))
            return as_json.document(self.view.name, self.content(style, every=every))
        named = ", ".join(run.name for run in self.comparison.runs)
        return as_document(form, f"{self.view.title}: {named}", self._blocks(), rows)

    def content(self, style: as_json.Style, *, every: bool = False) -> dict[str, Any]:
        """What `as_json.document` makes JSON of, with all columns of tables with `every`."""
        found = []
        for pair in self._pairs():
            options = asdict(options_with(self.view.options, pair, self.options))
            blocks = as_json.block_values(self._of_pair(pair, every), style)
            found.append({"candidate": pair.candidate.id, "options": options, "blocks": blocks})
        return as_json.about_runs(self.comparison, style) | {"candidates": found}

    def _pairs(self) -> list[Pair]:
        """The pairs that the view is about."""
        return pairs_of(self.comparison, by_name=True)[: 1 if self.view.is_of_all else None]

    def _blocks(self, *, every: bool = False) -> list[Block]:
        """Of each candidate, below its name if there are several; then what to know before trusting the figures."""
        pairs = self._pairs()
        if len(pairs) == 1:
            blocks = self._of_pair(pairs[0], every)
        else:
            of_each = [Section(pair.candidate.name, self._of_pair(pair, every), is_open=True) for pair in pairs]
            blocks = [*self.view.of_several(pairs[0]), *of_each]
        has_answer = self.view is overview.VIEW
        if found := beside_the_answer(self.comparison) if has_answer else caveats(self.comparison):
            blocks.append(Section(f"Caveats ({len(found)})", [Items([(one, "") for one in found])]))
        return blocks

    def _of_pair(self, pair: Pair, every: bool) -> list[Block]:
        """What the view shows of a pair, or why it has nothing to show."""
        if why_not := self.view.why_not(pair):
            return [Text(" ".join(filter(None, [why_not, self.view.remedy]))), *self.view.instead(pair)]
        found = self.view.blocks(pair, **self.options)
        nothing = Text("These runs have nothing that this view could show.")
        return list(with_all_columns(found) if every else found) or [nothing]


def as_document(form: str, title: str, blocks: Sequence[Block], rows: int) -> str:
    """Blocks as Markdown, with the first `rows` of tables, or as HTML."""
    from tfcompare.render import html, markdown  # a terminal needs neither

    report = Report(title, [Section("", blocks, is_open=True)], f"Made by tfcompare {__version__}.")
    return markdown.as_text(report, rows) if form == "markdown" else html.as_html(report)
