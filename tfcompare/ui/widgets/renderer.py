"""Draws blocks with Streamlit, with the widgets of a view's options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from tfcompare.compare.pair import Pair
from tfcompare.text import as_code, middle_ellipsis
from tfcompare.ui.frame.narrow import is_narrow
from tfcompare.ui.widgets.blocks import (
    clear,
    csv_of_rows,
    file_button,
    show_diff,
    show_facts,
    show_items,
    show_small_table,
    show_text,
    show_verdict,
    show_verdicts,
)
from tfcompare.ui.widgets.figures import draw
from tfcompare.ui.widgets.flame import show_flame_graph
from tfcompare.ui.widgets.links import show_links
from tfcompare.ui.widgets.table_layout import PAGE_PIXELS
from tfcompare.ui.widgets.tables import Shown, sortable
from tfcompare.views.blocks import (
    Beside,
    Block,
    Cards,
    Chart,
    Choose,
    Code,
    Facts,
    FlameGraph,
    Items,
    Judgements,
    Link,
    Links,
    Live,
    Opens,
    Section,
    Table,
    Text,
    Timeline,
    Verdict,
)
from tfcompare.views.columns import as_shown, for_file
from tfcompare.views.csv_files import file_stem, spreadsheet_csv
from tfcompare.views.key_figures import KeyFigure, before_text, change_text, in_pairs, value_text
from tfcompare.views.options import Option, Subject, declared
from tfcompare.views.registry import view
from tfcompare.views.view import View

HOW_TO_SORT = "A click on a header sorts the table by that column."
_POSITION = "position"

Acts = Callable[..., None]
"""Shows what a `Live` block of some name stands for, given the subject and the block's arguments."""
LIST_PIXELS, TEXT_PIXELS, NUMBER_PIXELS = 360, 300, 180


@dataclass(frozen=True)
class Renderer:
    """Shows blocks on a pair of runs, or on a series; `live` are the functions that show `Live` blocks, by their names.

    `pixels` is the width that the blocks have in a window of 1440 px, `is_within` whether they are below a title.
    """

    subject: Subject
    live: Mapping[str, Acts]
    pixels: int = PAGE_PIXELS
    is_within: bool = False

    def show_view(self, of: View) -> None:
        """A whole view, its options as widgets, each of which acts on the blocks at its place and below.

        The blocks are listed again after each group of widgets; they are of the same kinds whatever is chosen.
        """
        known = declared(of.options)
        self._show_with_options(known, preset(known, self.subject, of.options()), partial(of.make, self.subject))

    def _show_with_options(self, known: Sequence[Option], options: Any, make: Callable[[Any], Iterable[Block]]) -> None:
        """The blocks that `make` lists for the options, with the widgets of those; what is unfolded has its own."""
        blocks = list(make(options))
        for position in range(len(blocks)):
            block = blocks[position]
            names = block.names if isinstance(block, Choose) else block.choose if isinstance(block, Section) else ()
            if names:
                are_switches = all(isinstance(one.default, bool) for one in known if one.name in names)
                alignment: Literal["center", "bottom"] = "center" if are_switches else "bottom"
                with st.container(horizontal=True, vertical_alignment=alignment):
                    if isinstance(block, Section):
                        st.subheader(block.title, anchor=False, width="content", help=block.help or None)
                    elif isinstance(block, Choose) and block.first:
                        self.show(block.first)
                    options = choose(known, names, self.subject, options)
                blocks = list(make(options))
            if isinstance(block, Section) and block.unfolds:
                within = partial(_blocks_within, make, position)
                self._unfold(block, partial(self._show_with_options, known, options, within))
            else:
                self.show(blocks[position])

    def _unfold(self, section: Section, show: Callable[[], None]) -> None:
        """What takes time to make, in an expander that makes it when it is opened, as the address says."""
        expander = st.expander(section.title, key=section.address, on_change="rerun", bind="query-params")
        with expander:
            if expander.open:
                show()

    def show_all(self, blocks: Iterable[Block]) -> None:
        """Blocks, one below the other."""
        for block in blocks:
            self.show(block)

    def show(self, block: Block) -> None:
        """One block; the title of a section with options is shown already."""
        if isinstance(block, Section):
            self._section(block)
        elif isinstance(block, Beside):
            beside = replace(self, pixels=block.pixels or self.pixels // max(len(block.parts), 1))
            for place, part in zip(side_by_side(len(block.parts), block.pixels), block.parts, strict=True):
                with place.container(border=True, height="stretch") if block.framed else place:
                    beside.show_all(part)
        elif isinstance(block, Table):
            self._table(block)
        elif isinstance(block, Facts) and block.opens is not None:
            self._open(block.opens, show_facts(block, key=block.address, help=block.help or None), f"{block.address}_")
        elif isinstance(block, Chart):
            make = block.draw_narrow if is_narrow() and block.draw_narrow else block.draw
            drawn = draw(self.subject, block.name, make, block.on, chooses=block.chooses)
            if not drawn and block.nothing:
                st.info(block.nothing)
        elif isinstance(block, FlameGraph):
            show_flame_graph(self.subject, block)
        elif isinstance(block, Live):
            self.live[block.name](self.subject, *block.arguments)
        elif isinstance(block, Links):
            show_links(self.subject, block)
        elif isinstance(block, Text) and block.more:
            show_links(self.subject, Links([Link(view(block.more).title, block.more)], block.text))
        elif not isinstance(block, Choose):
            _show_simple(block)

    def _section(self, section: Section) -> None:
        if not section.title:
            self.show_all(section.blocks)
            return
        within = replace(self, is_within=True)
        if section.choose:
            within.show_all(section.blocks)
        elif section.is_open:
            st.subheader(section.title, anchor=False, help=section.help or None)
            within.show_all(section.blocks)
        elif section.unfolds:
            self._unfold(section, lambda: within.show_all(section.blocks))
        else:
            with st.expander(section.title):
                within.show_all(section.blocks)

    def _table(self, table: Table) -> None:
        """The table with its CSV files, and what opens for the selected row."""
        opens = table.opens
        if table.is_small:
            st.markdown(f"**{table.title}**")
            _, chosen = self._sortable(table, *table.in_file(table.columns), table.title)
            if opens:
                st.caption(opens.hint)
                self._open(opens, chosen, table.address)
            return
        heading = st.container(horizontal=True, vertical_alignment="center")
        with heading:
            hint = f"{HOW_TO_SORT} {opens.hint}" if opens else HOW_TO_SORT
            if self.is_within:
                st.markdown(f"#### {table.title}", width="content", help=hint)
            else:
                st.subheader(table.title, anchor=False, width="content", help=hint)
            every = False
            if table.every:
                switch = table.switch or f"all_columns_{table.address}".strip("_")
                every = st.toggle("All columns", key=switch, bind="query-params")
        if table.rows.empty:
            self._menu(table, heading)
            st.info(table.nothing or "There are no rows.")
            return
        rows, columns = table.in_file(table.columns_of(table.every if every else table.names))
        numbered, key = rows.assign(**{_POSITION: range(len(rows))}), f"{table.name} {table.title} {every}"
        ordered, chosen = self._sortable(table, numbered, columns, key)
        cells = as_shown(rows.iloc[ordered[_POSITION]], [column.name for column in columns])
        with heading:
            if isinstance(self.subject, Pair):
                _file_buttons(self.subject, table, cells)
            else:
                csv_of_rows(cells, f"{table.name}.csv", f"{table.name}_csv")
        self._menu(table, heading)
        if opens:
            self._open(opens, chosen, table.address)

    def _menu(self, table: Table, heading: DeltaGenerator) -> None:
        """What else can be done with the table, behind a button at the end of its heading."""
        if table.menu is not None:
            with heading, st.popover("⋮", type="tertiary", help="More that can be done with this table"):
                self.show(table.menu)

    def _sortable(
        self, table: Table, rows: pd.DataFrame, columns: Sequence[Shown], key: str
    ) -> tuple[pd.DataFrame, str | None]:
        look: dict[str, Any] = {"address": table.address, "readings": table.readings, "page_pixels": self.pixels}
        look["is_neutral"] = isinstance(self.subject, Pair) and self.subject.are_unrelated
        return sortable(rows, columns, key=key, row_key=table.opens.keys if table.opens else None, **look)

    def _open(self, opens: Opens, chosen: str | None, address: str) -> None:
        """What opens for the row of that key, in a dialog; closing it deselects the row."""
        if chosen is not None and opens.details and (details := opens.details(chosen)) is not None:
            open_details(details.title, lambda: self.show_all(details.blocks), address=address)


def _blocks_within(make: Callable[[Any], Iterable[Block]], position: int, options: Any) -> list[Block]:
    """The blocks of the section at this position."""
    section = list(make(options))[position]
    return section.blocks if isinstance(section, Section) else []


def _show_simple(block: Block) -> None:
    """A block that needs neither the pair nor other blocks."""
    if isinstance(block, Text):
        show_text(block)
    elif isinstance(block, Verdict):
        show_verdict(block)
    elif isinstance(block, Cards):
        cards(block)
    elif isinstance(block, Judgements):
        show_verdicts(block.rows)
    elif isinstance(block, Items):
        show_items(block)
    elif isinstance(block, Facts):
        show_small_table(block)
    elif isinstance(block, Code) and block.language == "diff":
        show_diff(block.text)
    elif isinstance(block, Code):
        st.code(block.text, language=None, wrap_lines=True)
    elif isinstance(block, Timeline):
        raise TypeError("on a page, a timeline is a Live block, which answers to clicks")


FEWEST_IN_A_ROW = 4
"""With room for as many, few cards are not stretched over the page."""
CARD_PIXELS, LABEL_LETTER_PIXELS, PADDING_PIXELS, HELP_PIXELS = 170, 6.6, 34, 37
"""The sign of the help text takes the padding at its side."""
CHANGE_LETTER_PIXELS, CHANGE_PADDING_PIXELS = 6.3, 66
"""Of the line with the change, its arrow, and the value before it."""
CAPITAL_PIXELS, LETTER_PIXELS = 15.0, 11.5
"""The widths of letters of a value: `GFLOP/s` needs more room than `steps/s`."""
DELTA_COLOURS: dict[str, Literal["blue", "orange", "gray"]] = {"better": "blue", "worse": "orange"}


def cards(block: Cards) -> None:
    """Show the first key figures, each with its change, in cards that have room for the longest label, value and
    change; all of them, and what the others mean, behind a button. On a narrow page, which has room for two beside
    each other, no card is alone in its row."""
    figures = in_pairs(block.first) if is_narrow() else block.first
    has_others = len(figures) < len(block.figures)
    labels = max((len(figure.label) for figure in figures), default=0)
    values = max((_pixels(value_text(figure, figure.candidate)) for figure in figures), default=0)
    changes = max((len(change_text(one) + before_text(one)) for one in figures if one.has_baseline), default=0)
    change = CHANGE_PADDING_PIXELS + round(changes * CHANGE_LETTER_PIXELS) if changes else 0
    pixels = max(CARD_PIXELS, HELP_PIXELS + round(labels * LABEL_LETTER_PIXELS), values, change)
    cells = len(figures) + has_others
    with st.grid(max(cells, FEWEST_IN_A_ROW), min_column_width=pixels, gap="xsmall"):
        for figure in figures:
            _card(figure)
        if has_others:
            with st.popover(block.every, type="tertiary"):
                show_small_table(block.facts)
                others = [one for one in block.figures if one not in figures]
                st.caption("\n\n".join(f"**{one.label}:** {one.meaning}" for one in others))


def _pixels(value: str) -> int:
    """The width of a card that shows this value in full."""
    return PADDING_PIXELS + round(sum(CAPITAL_PIXELS if letter.isupper() else LETTER_PIXELS for letter in value))


def _card(figure: KeyFigure) -> None:
    change = figure.candidate - figure.baseline
    st.metric(
        figure.label,
        value_text(figure, figure.candidate),
        change_text(figure) or None,
        delta_color=DELTA_COLOURS.get(figure.judgement, "gray"),
        delta_arrow="down" if change < 0 else "up" if change > 0 else "off",
        delta_description=before_text(figure) if figure.has_baseline else None,
        help=figure.meaning,
        border=True,
        height="stretch",
    )


TITLE_LENGTH = 72


def open_details(name: str, show: Callable[[], None], *, address: str = "") -> None:
    """Show `show` in a dialog titled `name`; closing it deselects the row, whose URL key is `row` after `address`.

    Only one dialog can be open on a page.
    """
    title = as_code(middle_ellipsis(name, TITLE_LENGTH))

    def body() -> None:
        if len(name) > TITLE_LENGTH:
            st.code(name, language=None, wrap_lines=True)
        show()

    st.dialog(title, width="large", on_dismiss=partial(clear, f"{address}row"))(body)()


def _file_buttons(pair: Pair, table: Table, cells: pd.DataFrame) -> None:
    """A menu of two files: the rows and columns of the table, in its order, and all of them."""
    name = file_stem(" ".join([table.name, *(run.name for _, run in pair.shown)]))
    key = f"{table.name}_csv"
    if pair.is_single:
        cells = cells.rename(columns=lambda column: column.removesuffix("_baseline"))
    meaning = "Every row and column of all candidates, without any filter, as `tfcompare diff` writes them"
    label, make = "CSV: ungrouped, all columns", lambda: spreadsheet_csv(everything(pair, table))
    with st.popover("CSV", icon=":material/download:", type="tertiary"):
        csv_of_rows(cells, f"{name}_shown.csv", f"{key}_shown")
        file_button(label, make, f"{name}.csv", f"{key}_everything", meaning)


def everything(pair: Pair, table: Table) -> pd.DataFrame:
    """Every row and column of a table for a file."""
    if pair.is_single:
        return pair.tables(table.name)[0]
    rows = table.everything() if table.everything else pair.among.diffs(table.name)
    return for_file(rows, table.table, pair.sums_per())


def side_by_side(count: int, pixels: int = 0) -> Sequence[DeltaGenerator]:
    """`count` places of the same width, next to each other; on a narrow page, one below the other.

    With `pixels`, they are as many in a row as have that width.
    """
    if count < 2 or is_narrow():
        return [st.container() for _ in range(count)]
    if pixels:
        with st.grid(count, min_column_width=pixels):
            return [st.container() for _ in range(count)]
    return st.columns(count)


def choose(declared: Sequence[Option], names: Sequence[str], subject: Subject, options: Any) -> Any:
    """The options with what is chosen in the widgets of these names, which are shown, and what the address says of
    those without a widget; says so if an address has a value that this pair does not offer."""
    for one in declared:
        if one.is_in_address:
            options = replace(options, **{one.name: _link(one, subject, options)})
        elif one.name in names:
            value = _widget(one, subject, options) if one.is_open(subject, options) else one.preset(subject, options)
            options = replace(options, **{one.name: value})
    return options


def preset(declared: Sequence[Option], subject: Subject, options: Any) -> Any:
    """The options before any widget is shown: what the address says, or else what holds where none is chosen."""
    for one in declared:
        options = replace(options, **{one.name: _link(one, subject, options)})
    return options


def _link(one: Option, subject: Subject, options: Any) -> Any:
    """The value in the address if it can be chosen and is no label, or else the one that holds without a choice."""
    value, offered = st.query_params.get(one.key), one.offered(subject, options)
    is_offered = one.is_in_address if offered is None else value in offered
    return value if value is not None and is_offered else one.preset(subject, options)


def _widget(one: Option, subject: Subject, options: Any) -> Any:
    bound: dict[str, Any] = {"key": one.key, "bind": "query-params", "help": one.help or None}
    if one.resets:
        bound["on_change"] = partial(_reset, one)
    offered, value = one.offered(subject, options), one.preset(subject, options)
    if isinstance(value, bool):
        return st.toggle(one.label, value, **bound)
    if offered is None:
        width = one.pixels or TEXT_PIXELS
        return st.text_input(one.label, value, placeholder=one.hint, width=width, icon=one.icon, **bound) or ""
    if isinstance(offered, range):
        least, most = offered[0], offered[-1]
        bound["help"] = f"{one.help} ({least} to {most})"
        return int(st.number_input(one.label, least, most, value, width=NUMBER_PIXELS, **bound))
    wished = st.query_params.get(one.key)
    if wished is not None and wished not in offered.values() and one.key not in st.session_state:
        st.caption(f"{one.label}: there is no {as_code(wished)} here.")
    values, label = list(offered), offered.__getitem__
    if value is None:
        return st.pills(one.label, values, format_func=label, **bound)
    if one.is_slider:
        return st.select_slider(one.label, values, value, format_func=label, width=LIST_PIXELS, **bound)
    if one.is_list:
        width = one.pixels or LIST_PIXELS
        return st.selectbox(one.label, values, values.index(value), format_func=label, width=width, **bound)
    return st.segmented_control(one.label, values, default=value, required=True, format_func=label, **bound)


def _reset(one: Option) -> None:
    for name in one.resets:
        st.query_params.pop(name, None)
    st.query_params.update({name: st.session_state[name] for name in one.pins if name in st.session_state})
