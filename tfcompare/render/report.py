"""Reports: which views they contain, and writing them in each format."""

from __future__ import annotations

import errno
import os
import secrets
import shlex
import shutil
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from tfcompare import __version__, schema
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import Pairs, pairs_of
from tfcompare.compare.side import letter
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.render.as_json import Style, about_runs, block_values, cells, document, view_command
from tfcompare.render.document import Report
from tfcompare.render.html import as_html
from tfcompare.render.markdown import as_text
from tfcompare.render.redaction import redacted
from tfcompare.render.terminal import MOST_ROWS
from tfcompare.text import as_code, as_markdown, text_of
from tfcompare.units import MISSING
from tfcompare.views import answer
from tfcompare.views.blocks import Block, Cards, Chart, Code, Facts, Items, Section, Table, Text
from tfcompare.views.candidates import view as candidates
from tfcompare.views.caveats import beside_the_answer, environment
from tfcompare.views.columns import in_words
from tfcompare.views.key_figures import MOST_FIRST
from tfcompare.views.registry import views
from tfcompare.views.steps import view as overview
from tfcompare.views.steps import what_differs
from tfcompare.views.steps.attribution import attribution_of
from tfcompare.views.verdict_marks import Tone
from tfcompare.views.view import charts_of

Format = Literal["html", "markdown", "json"]
FORMATS: tuple[Format, ...] = ("html", "markdown", "json")
_SUFFIXES: dict[str, Format] = {".html": "html", ".htm": "html", ".json": "json"}
_SUFFIXES |= {".md": "markdown", ".markdown": "markdown"}
_ONLY_IN_PLACE = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS, errno.EXDEV)
"""Why a file cannot be replaced although it may be writable: its folder is not, or it is mounted by itself."""
DIGEST_LETTERS = 12
MOST_CHANGES = 10
"""Ops that are named first: more than on a page, where others are a click away."""
CHANGES_IN_SHORT = 3
"""Ops in the short text, so that it is about 20 lines."""


def form_of(path: Path | None) -> Format:
    """The format that a file's suffix asks for; HTML without a file. Raises `TfcompareError` for another suffix."""
    if path is None:
        return "html"
    if path.suffix.lower() not in _SUFFIXES:
        raise TfcompareError(f"{path}: expected a name that ends with .html, .md or .json")
    return _SUFFIXES[path.suffix.lower()]


def write(text: str, path: Path) -> None:
    """Write a report to a file, in a folder that is made if it is missing.

    An existing file is replaced once the new one is complete, where its folder allows that. Raises `OSError`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # such as /dev/stdout
        path.write_text(text, encoding="utf-8")
        return
    arriving = target.with_name(f".tfcompare-{secrets.token_hex(8)}")
    try:
        arriving.write_text(text, encoding="utf-8")
        if target.exists():
            shutil.copymode(target, arriving)
        arriving.replace(target)
    except OSError as error:
        if error.errno not in _ONLY_IN_PLACE:
            raise
        path.write_text(text, encoding="utf-8")
    finally:
        arriving.unlink(missing_ok=True)


def report(
    comparison: Pairs,
    form: Format = "html",
    *,
    command: Sequence[str] = (),
    words: Sequence[str] = (),
    checked: Checked | None = None,
    redact: bool = False,
) -> str:
    """The report on a comparison, or on a run alone, as text; as Markdown only what a comment on a pull request needs.

    `command` are the words of the command that makes it again, `words` the runs as they are typed in commands, by
    default their ids; `checked` stands above the verdicts. `redact` removes names of runs, hosts and users, paths and
    addresses, but for what these say. Raises `Unknown` for an unknown format.
    """
    if form not in FORMATS:
        raise Unknown("format of a report", form, list(FORMATS))
    if redact:
        comparison = redacted(comparison)
    if form == "json":
        return _as_json(comparison, words or [run.id for run in comparison.runs], checked)
    make, render = (contents, as_html) if form == "html" else (brief, as_text)
    return render(make(comparison, command=command, checked=checked))


def _as_json(comparison: Pairs, words: Sequence[str], checked: Checked | None) -> str:
    """As a view in JSON, with what the report says of all runs, what was checked, and the whole diff of each table."""
    pairs, style = pairs_of(comparison, by_name=True), Style(MOST_ROWS, view_command(*words))
    blocks = [Section("What was compared", compared(comparison))]
    if len(pairs) > 1:
        blocks.insert(0, Section("All candidates", all_candidates(pairs)))
    candidates = []
    for pair in pairs:
        shown = block_values(sections_of(pair), style)
        tables = {table.name: _diff(pair, table) for table in schema.TABLES.values() if table.has_diff}
        candidates.append({"candidate": pair.candidate.id, "options": {}, "blocks": shown, "tables": tables})
    others = {} if checked is None else {"check": checked.content}
    of_all = {"blocks": block_values(blocks, style)} | others | {"candidates": candidates}
    return document("report", about_runs(comparison, style) | of_all)


def _diff(pair: Pair, table: schema.Table) -> dict[str, Any]:
    rows = in_words(pair.diff(table.name)).drop(columns=list(schema.SIDES))
    return cells(Table(table, "", rows, list(rows.columns), sums_per=pair.sums_per()), rows)


@dataclass(frozen=True)
class Checked:
    """What `check` found: `result` in a line, a row for each condition below `header`, and what they rest on.

    `content` is the same for programs, as JSON values; `undecided` are sentences on what is unclear or not judged.
    """

    result: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    basis: Sequence[str]
    content: Mapping[str, Any]
    undecided: Sequence[str] = ()


def contents(comparison: Pairs, *, command: Sequence[str] = (), checked: Checked | None = None) -> Report:
    """The report on a comparison, or on a run alone; `command` and `checked` as of `report`."""
    about = f"Made by tfcompare {__version__} on {datetime.now(UTC).strftime('%Y-%m-%d %H:%M UTC')}."
    sections = [one for one in _sections(comparison, pairs_of(comparison), command, checked) if one.blocks]
    return Report(title_of(comparison), sections, about)


def brief(comparison: Pairs, *, command: Sequence[str] = (), checked: Checked | None = None) -> Report:
    """What a comment on a pull request says, in about 20 lines for each candidate; parameters as of `report`."""
    pairs, names = pairs_of(comparison), _names_with_letters(comparison)
    sections = [_of_check(checked)] if checked is not None else []
    sections += [Section(names[one.position] if len(pairs) > 1 else "", list(_in_short(one)), True) for one in pairs]
    if checked is not None:
        sections += _basis_of_check(checked)
    if command:
        sections.append(Section("", [Text(f"Full report: {as_code(text_of(shlex.join(command)))}")], is_open=True))
    return Report(title_of(comparison), sections, f"tfcompare {__version__}")


def _in_short(pair: Pair) -> Iterator[Block]:
    """The verdict, where the change comes from, key figures, the largest changes, what differs, and how sure it is."""
    verdict = answer.verdict(pair)
    yield replace(verdict, basis=())
    found = attribution_of(pair)
    if found.waterfall is not None and not pair.is_single and not pair.are_unrelated:
        yield Text(found.sentence)
    cards = [block for block in answer.figures(pair) if isinstance(block, Cards)]
    yield from (replace(block, figures=block.figures[:MOST_FIRST]) for block in cards)
    yield from map(_without_optional, answer.changes(pair, CHANGES_IN_SHORT))
    if line := what_differs.in_a_line(pair):
        yield Text(line)
    yield from map(Text, verdict.basis[:1])


def _without_optional(block: Block) -> Block:
    """A table without the columns that are left out where room is scarce; other blocks as they are."""
    if not isinstance(block, Facts):
        return block
    left = [i for i in range(len(block.header)) if i not in block.optional]
    header, *rows = ([row[i] for i in left] for row in (block.header, *block.rows))
    numbers = [place for place, i in enumerate(left) if i in block.numbers]
    return replace(block, header=header, rows=rows, numbers=numbers, optional=())


def title_of(comparison: Pairs) -> str:
    """`B filters_16_8 compared with A filters_512_128`, in plain text."""
    names = _names_with_letters(comparison)
    return f"{', '.join(names[1:])} compared with {names[0]}" if names[1:] else names[0]


def _names_with_letters(comparison: Pairs) -> list[str]:
    """`A filters_512_128` and so on; of a run alone, its name."""
    names = [run.name for run in comparison.runs]
    if comparison.is_single:
        return names
    return [name if name == letter(i) else f"{letter(i)} {name}" for i, name in enumerate(names)]


def _sections(
    comparison: Pairs, pairs: Sequence[Pair], command: Sequence[str], checked: Checked | None
) -> Iterator[Section]:
    if checked is not None:
        yield _of_check(checked)
    found = beside_the_answer(comparison)
    several = len(pairs) > 1
    if several:
        yield Section("All candidates", all_candidates(pairs), is_open=True)
    for pair in pairs:
        first, *others = sections_of(pair)
        yield replace(first, title=_names_with_letters(comparison)[pair.position] if several else "")
        if found and pair is pairs[0] and not several:
            yield _caveats(found)
        for one in others:
            title = f"{pair.letters[-1]}: {one.title}" if several else one.title
            yield Section(title, one.blocks, is_open=one.is_open and not several)
    if found and several:
        yield _caveats(found)
    if checked is not None:
        yield from _basis_of_check(checked)
    yield Section("What was compared", compared(comparison))
    if command:
        yield Section("Make it again", [Code(text_of(shlex.join(command)))])


def _of_check(checked: Checked) -> Section:
    tones: list[Tone] = ["worse" if row[-1] == "failed" else "neutral" for row in checked.rows]
    blocks: list[Block] = [Facts(checked.header, checked.rows, (1, 2, 3, 4), tones)]
    if checked.undecided:
        blocks.append(Items([(as_markdown(line), "") for line in checked.undecided]))
    return Section(checked.result, blocks, is_open=True)


def _basis_of_check(checked: Checked) -> list[Section]:
    lines = [(as_markdown(line), "") for line in checked.basis]
    return [Section("Basis of the check", [Items(lines)])] if lines else []


def sections_of(pair: Pair) -> Iterator[Section]:
    """The overview in several sections, then each other view that has something to show, as one."""
    is_drawn_above = len(pair.among.sides) > 2 and pair.position <= overview.DRAWN_CANDIDATES
    first: list[Block] = []
    sections = []
    for block in overview.VIEW.blocks(pair, steps_as="all", top=MOST_CHANGES):
        if isinstance(block, Section) and block.title:
            sections.append(_without_charts(block, overview.OF_ALL_RUNS) if is_drawn_above else block)
        else:
            first.append(block)
    yield Section(overview.VIEW.title, first, is_open=True)
    yield from sections
    for view in views():
        if view is not overview.VIEW and not view.why_not(pair):
            yield Section(view.title, list(view.blocks(pair)), is_open=view.name == "timeline")


def _without_charts(section: Section, names: Container[str]) -> Section:
    """The section, and those within it, without the charts of these names."""
    left = [one for one in section.blocks if not (isinstance(one, Chart) and one.name in names)]
    return replace(section, make=[_without_charts(one, names) if isinstance(one, Section) else one for one in left])


def _caveats(found: Sequence[str]) -> Section:
    return Section(f"Caveats ({len(found)})", [Items([(sentence, "") for sentence in found])])


def all_candidates(pairs: Sequence[Pair]) -> list[Block]:
    """The candidates beside each other, and the steps of all runs."""
    return [*candidates.VIEW.blocks(pairs[0]), *charts_of(pairs[0], overview.OF_ALL_RUNS)]


def compared(comparison: Pairs) -> list[Block]:
    """Names, digests and environments of the runs, and of their replicates."""
    runs = comparison.runs
    facts = environment([run.info for run in runs], "UTC")
    rows = [[fact.label, *fact.values, "≠" if fact.differs else ""] for fact in facts]
    rows.insert(0, ["Digest of the profile", *(run.content_id[:DIGEST_LETTERS] for run in runs), ""])
    captures = [[run.found.name for run in side.runs] for side in comparison.sides]
    if any(len(names) > 1 for names in captures):
        texts = [f"{len(names)}: {', '.join(names)}" if len(names) > 1 else MISSING for names in captures]
        rows.append(["Captures", *texts, ""])
    header = ["", *_names_with_letters(comparison)]
    per = f"Sums are per {comparison.per_what}."
    host = f" Only the host {as_code(comparison.host)}." if comparison.host else ""
    if any(row[-1] for row in rows):
        header.append("Differs")
    else:
        rows = [row[:-1] for row in rows]
    hosts = " Op times are summed over all hosts." if not host and any(len(run.host_names) > 1 for run in runs) else ""
    return [Facts(header, rows), Text(f"{per}{host}{hosts}", look="quiet")]
