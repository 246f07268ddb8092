"""Blocks as JSON values for programs: texts without marks, and findings with units, verdicts and what shows more."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.resources import files
from math import isfinite, isnan
from typing import Any

import pandas as pd

from tfcompare import __version__
from tfcompare.compare.pairs import Pairs
from tfcompare.compare.stats.verdict import wording
from tfcompare.render.document import without_interaction
from tfcompare.render.inline import plain
from tfcompare.units import ratio_of
from tfcompare.views.blocks import (
    Beside,
    Block,
    Cards,
    Chart,
    Code,
    Facts,
    Finding,
    FlameGraph,
    Items,
    Judgements,
    Section,
    Table,
    Text,
    Timeline,
    Verdict,
)
from tfcompare.views.caveats import caveats
from tfcompare.views.columns import as_shown

_PLAIN = (str, int, bool, type(None))
VERSION = 1
"""Of the format: it grows when a field changes its meaning or goes; new fields may come at any time."""


def json_schema() -> str:
    """The JSON Schema (draft 2020-12) of this version of the format, as text."""
    return files("tfcompare.render").joinpath("json.schema.json").read_text(encoding="utf-8")


def view_command(*words: str) -> Callable[[str], str]:
    """The command that shows the view of a name; `words` are the runs as they were typed."""
    return lambda view: shlex.join(["tfcompare", "view", view, *words])


_WITHOUT_RUNS = view_command()


@dataclass(frozen=True)
class Style:
    """How blocks are written: the first `rows` of each table; `more` of the name of a view that shows more; `text` of
    each sentence, which is Markdown."""

    rows: int
    more: Callable[[str], str] = _WITHOUT_RUNS
    text: Callable[[str], str] = plain


def document(view: str, content: Mapping[str, Any]) -> str:
    """The `values` of `content` as the text of a JSON object."""
    return json.dumps(values(view, content), ensure_ascii=False, allow_nan=False) + "\n"


def values(view: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """`content` as JSON values, after what made it and which version of the format it has.

    `docs/json.md` and `json_schema` describe it; what is unknown or infinite is null.
    """
    made_by = {"tfcompare": __version__, "version": VERSION, "view": view}
    found: dict[str, Any] = jsonable(made_by | dict(content))
    return found


def about_runs(comparison: Pairs, style: Style) -> dict[str, Any]:
    """What holds for all candidates: what sums are per, the host, the runs and the caveats."""
    runs = []
    for side in comparison.sides:
        one = {"role": "candidate" if side.position else "baseline", "id": side.run.id, "name": side.run.name}
        runs.append(one | {"digest": side.run.content_id, "captures": len(side.runs)})
    found = list(map(style.text, caveats(comparison)))
    return {"per": comparison.per, "host": comparison.host, "runs": runs, "caveats": found}


def block_values(blocks: Iterable[Block], style: Style) -> list[dict[str, Any]]:
    """The blocks that say something in JSON: a chart without rows can only be drawn, and links are of pages."""
    found = []
    for one in blocks:
        if (block := without_interaction(one)) is None:
            continue
        if isinstance(block, Beside) or (isinstance(block, Section) and not block.title):
            found += block_values(block.blocks, style)
        elif not (isinstance(block, Chart | FlameGraph) and block.facts is None):
            found.append(_block(block, style))
    return found


def _block(block: Block, style: Style) -> dict[str, Any]:
    if isinstance(block, Section):
        return {"kind": "section", "title": block.title, "blocks": block_values(block.blocks, style)}
    if isinstance(block, Verdict):
        found = {"kind": "verdict", "text": style.text(block.headline), "badge": block.badge}
        return found | {"basis": list(map(style.text, block.basis)), "findings": _findings(block.findings, style)}
    if isinstance(block, Text):
        return {"kind": "text", "text": style.text(block.text)} | _more(block.more, style)
    if isinstance(block, Items):
        items = [{"text": style.text(text), "more": style.text(more)} for text, more in block.items]
        findings = [replace(one, label=style.text(one.label)) for one in block.findings]
        return {"kind": "list", "items": items, "findings": _findings(findings, style)}
    if isinstance(block, Cards):
        return {"kind": "figures", "findings": _findings(block.findings, style)}
    if isinstance(block, Facts | Judgements):
        return {"kind": "facts", **_facts(block if isinstance(block, Facts) else block.facts, style)}
    if isinstance(block, Chart | FlameGraph):
        return {"kind": "chart", "name": block.name, **({} if block.facts is None else _facts(block.facts, style))}
    if isinstance(block, Table):
        return _table(block, style.rows)
    if isinstance(block, Timeline):
        return {"kind": "timeline", **({} if block.facts is None else _facts(block.facts, style))}
    if isinstance(block, Code):
        return {"kind": "code", "text": block.text}
    raise TypeError(block)


def _facts(facts: Facts, style: Style) -> dict[str, Any]:
    """The rows as findings, or as texts if they are no figures."""
    found: dict[str, Any] = {"title": facts.header[0], "note": style.text(facts.note)}
    if facts.findings:
        return found | {"findings": _findings(facts.findings, style)}
    return found | {"columns": list(facts.header), "rows": [list(row) for row in facts.rows]}


def _findings(findings: Sequence[Finding], style: Style) -> list[dict[str, Any]]:
    """Without what is unknown; of a run alone, the figure is its `value`."""
    values = []
    for one in findings:
        found: dict[str, Any] = {"id": one.id, "label": one.label, "unit": one.unit}
        found |= {"value": one.candidate} if one.is_alone else {"baseline": one.baseline, "candidate": one.candidate}
        if not (isnan(one.baseline) or isnan(one.candidate)):
            found |= {"delta": one.candidate - one.baseline, "ratio": ratio_of(one.baseline, one.candidate)}
        if one.word:
            found |= {"verdict": wording(one.word, one.evidence), "evidence": one.evidence, "interval": one.interval}
        if one.shape:
            found["shape"] = one.shape
        values.append(found | _more(one.more, style))
    return values


def _more(view: str, style: Style) -> dict[str, str]:
    """What shows more, if a view does."""
    return {"more": style.more(view)} if view else {}


def _table(table: Table, rows: int) -> dict[str, Any]:
    """The first rows with the columns that are shown, in full precision and the units of `schema`."""
    shown = as_shown(table.rows.head(rows), [column.name for column in table.columns])
    left_out = max(len(table.rows) - rows, 0)
    return {"kind": "table", "name": table.name, "title": table.title, **cells(table, shown), "rows_left_out": left_out}


def cells(table: Table, rows: pd.DataFrame) -> dict[str, Any]:
    """The columns of a table with their units, and these rows of it."""
    columns = []
    for one in table.columns:
        label = f"{one.heading}, {one.label.lower()}" if one.heading else one.label
        unit = "" if one.format in ("ratio", "factor") else one.unit
        columns.append({"name": table.name_in_file(one.name), "label": label, "unit": unit})
    return {"columns": columns, "rows": rows.astype(object).to_numpy().tolist()}


def jsonable(value: Any) -> Any:
    """The value as JSON can hold it: null for what is missing or infinite, ISO 8601 for times."""
    if isinstance(value, dict):
        return {str(key): jsonable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):  # most are rows of plain cells: no call for each of these
        return [
            one if type(one) in _PLAIN or (type(one) is float and isfinite(one)) else jsonable(one) for one in value
        ]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if pd.isna(value):
        return None
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else str(value)
