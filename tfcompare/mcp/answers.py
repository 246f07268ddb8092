"""What tools answer: JSON values and the same as sentences, at most `MOST_BYTES`, and the call that shows the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel, Field

from tfcompare.errors import TfcompareError
from tfcompare.text import as_code, middle_ellipsis, text_of
from tfcompare.units import format_ratio, format_value

MOST_BYTES = 20_000
"""Of a whole result, its text and its structured content together, in UTF-8: about 6,000 tokens, so that ten answers
take a third of the context of a small model."""
_LISTS = ("caveats", "notes", "blocks", "candidates", "runs", "items", "findings", "rows", "lines")
"""The fields whose entries can be left out."""
_ROOM = MOST_BYTES - 500
"""The SDK adds the name and version of the server and the kind of the result, which take 90 bytes."""
_MOST_LETTERS_OF_ERROR = 2_000
"""More than a sentence that names 60 tables."""
_WHOLE = "verdict"
"""The kind of block that is never shown in part."""


class Call(BaseModel):
    """A call of a tool of this server."""

    tool: str
    arguments: dict[str, Any]


class LeftOut(BaseModel):
    """What an answer leaves out: how many entries (blocks, findings, rows, runs), null if unknown, and the call that
    shows the next of them."""

    entries: int | None
    call: Call


class Answer(BaseModel):
    """What all answers have."""

    left_out: LeftOut | None = None


class FoundRuns(Answer):
    """Runs, in the order of capture."""

    runs: list[dict[str, Any]] = Field(default=[], description="`path` is what other tools take; unknown is null")
    notes: list[str] = []


class Compared(Answer):
    """What a view shows, as docs/json.md describes it."""

    view: str
    per: str
    host: str | None
    runs: list[dict[str, Any]] = []
    caveats: list[str] = Field(default=[], description="to read before the figures are trusted")
    notes: list[str] = []
    blocks: list[dict[str, Any]] = Field(default=[], description="of all candidates, if there are several")
    candidates: list[dict[str, Any]] = []
    calls: dict[str, Call] = Field(default={}, description="for each `more` in blocks and findings, the call it means")
    link: str | None = Field(default=None, description="the page of the dashboard that shows the same")


class Rows(Answer):
    """Rows of a table; cells of an absent side are null."""

    columns: list[str]
    rows: list[list[Any]] = []


class Checked(Answer):
    """The result of conditions; the outcome `passed` says that none is shown to be met, within what can be detected."""

    outcome: str
    not_judged: list[str]
    findings: list[dict[str, Any]] = []
    notes: list[str] = []


class Written(Answer):
    """A report that was written."""

    path: str
    size_bytes: int


def failed(sentence: str) -> CallToolResult:
    """The result that reports an error; what it quotes may be shortened."""
    text = middle_ellipsis(" ".join(sentence.split()), _MOST_LETTERS_OF_ERROR)
    return CallToolResult(content=[TextContent(text=text_of(text))], is_error=True)


def fitted(
    content: Mapping[str, Any],
    sentences: Callable[[dict[str, Any]], Iterator[str]],
    *,
    offset: int,
    more: Callable[[int], Call],
    beyond: int | None = 0,
) -> CallToolResult:
    """As many entries of `content` from `offset` on as there is room for, with `sentences` on them.

    `more` is the call that begins with a later entry; `beyond`: how many there are after those of `content`, None for
    an unknown number. Raises `TfcompareError` if what is no list is too large already.
    """
    values: dict[str, Any] = printable(content)
    every = _count(values)

    def result(last: int, following: int) -> CallToolResult:
        shown = _cut(values, _Window(offset, last)) or {k: v for k, v in values.items() if k not in _LISTS}
        if calls := shown.get("calls"):
            used = set(_pointers(shown))
            shown["calls"] = {name: call for name, call in calls.items() if name in used}
        lines = list(sentences(shown))
        if following < every or beyond != 0:
            entries = None if beyond is None else every - last + beyond
            left_out = LeftOut(entries=entries, call=more(following))
            shown["left_out"] = left_out.model_dump()
            lines += [
                f"Left out: {entries or 'further'} entries; this call shows the next of them:",
                _json(left_out.call.model_dump()),
            ]
        return CallToolResult(content=[TextContent(text="\n".join(lines))], structured_content=shown)

    least, most = offset, max(every, offset)
    while least < most:  # the last entry for which there is room
        middle = (least + most + 1) // 2
        least, most = (middle, most) if size_of(result(middle, middle)) <= _ROOM else (least, middle - 1)
    # An entry that is too large by itself is passed over, so that every call comes further.
    found = result(least, least + (least == offset < every))
    if size_of(found) > _ROOM:
        raise TfcompareError(
            f"the answer has no room for any entry: what describes them takes more than {_ROOM:,} bytes; ask for "
            "fewer columns, candidates or options"
        )
    return found


def size_of(result: CallToolResult) -> int:
    """The bytes of a result as it is sent."""
    return len(result.model_dump_json(by_alias=True, exclude_none=True).encode())


def printable(value: Any) -> Any:
    """JSON values whose texts have no control characters, which could steer a terminal."""
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, Mapping):
        return {text_of(str(key)): printable(one) for key, one in value.items()}
    return [printable(one) for one in value] if isinstance(value, list | tuple) else value


class _Window:
    """Takes the entries from `first` to `last`, without the last one, as they come."""

    def __init__(self, first: int, last: int) -> None:
        self._first, self._last, self._next = first, last, 0

    def takes(self) -> bool:
        self._next += 1
        return self._first < self._next <= self._last


def _lists_of(value: Any) -> list[str]:
    """The fields of a value that have entries; none of a value that is an entry itself."""
    if not isinstance(value, dict) or value.get("kind") == _WHOLE:
        return []
    return [name for name in _LISTS if value.get(name)]


def _count(value: Any) -> int:
    names = _lists_of(value)
    return sum(_count(one) for name in names for one in value[name]) if names else 1


def _cut(value: Any, window: _Window) -> Any:
    """The value with the entries that the window takes; None if there are none."""
    names = _lists_of(value)
    if not names:
        return value if window.takes() else None
    lists = {name: [one for one in (_cut(one, window) for one in value[name]) if one is not None] for name in names}
    found = {name: one for name, one in lists.items() if one}
    return {name: one for name, one in value.items() if name not in names} | found if found else None


def _pointers(value: Any) -> Iterator[str]:
    """The `more` of blocks and findings; that of the items of a list is a sentence."""
    if isinstance(value, list):
        for one in value:
            yield from _pointers(one)
    elif isinstance(value, dict):
        if "id" in value or value.get("kind") in ("text", "table"):
            yield from filter(None, [value.get("more")])
        yield from (pointer for name in _LISTS if name != "items" for pointer in _pointers(value.get(name, [])))


def of_runs(found: dict[str, Any]) -> Iterator[str]:
    """A line for each run."""
    yield from (f"Note: {one}" for one in found.get("notes", []))
    for run in found.get("runs", []):
        steps = "no steps" if run["steps"] is None else f"{run['steps']} steps"
        time = "" if run["step_time_ms"] is None else f" of {format_value(run['step_time_ms'], 'ms')}"
        hosts = "1 host" if run["hosts"] == 1 else f"{run['hosts']} hosts"
        state = f"{run['device']}, {hosts}, {steps}{time}" if run["device"] else run["state"]
        recorded = f", {run['recorded'].partition('.')[0]}" if run["recorded"] else ""
        yield f"- {as_code(run['path'])}: {state}{recorded}"
        if run["remarks"]:
            yield f"  remarks: {as_code(run['remarks'])}"
        if run["captures_in"]:
            yield f"  one of several captures of its program: {as_code(run['captures_in'])} stands for all of them"


def of_view(found: dict[str, Any]) -> Iterator[str]:
    """The sentences and figures of a view."""
    yield from (f"Caveat: {one}" for one in found.get("caveats", []))
    yield from (f"Note: {one}" for one in found.get("notes", []))
    yield from _blocks(found.get("blocks", []))
    candidates = found.get("candidates", [])
    for one in candidates:
        if len(candidates) > 1 or found.get("blocks"):
            yield f"# {as_code(one['candidate'])}"
        yield from _blocks(one.get("blocks", []))
    calls = sorted(found["calls"].items())
    if names := [as_code(call["arguments"]["view"]) for _, call in calls if "view" in call["arguments"]]:
        yield f"More: the same call with the view {', '.join(names)}"
    yield from (f"More: {_json(call)}" for _, call in calls if "view" not in call["arguments"])
    if found.get("link"):
        yield f"Page: {found['link']}"


def of_rows(found: dict[str, Any]) -> Iterator[str]:
    """The columns and each row as JSON."""
    yield _json(found["columns"])
    yield from map(_json, found.get("rows", []))


def _blocks(blocks: list[dict[str, Any]]) -> Iterator[str]:
    for block in blocks:
        yield from _lines(block)


def _lines(block: dict[str, Any]) -> Iterator[str]:
    kind = block["kind"]
    if kind == "section":
        if lines := list(_blocks(block.get("blocks", []))):
            yield from [f"## {as_code(block['title'])}", *lines]
    elif kind == "verdict":
        yield block["text"]
        yield from block["basis"]
    elif kind == "text":
        yield block["text"]
    elif kind == "list":  # of which the findings are what the items say
        yield from (": ".join(filter(None, [f"- {item['text']}", item["more"]])) for item in block.get("items", []))
    elif kind == "code":
        yield from map(as_code, block.get("lines", []))
    else:
        yield from filter(None, [f"{as_code(block['title'])}:" if block.get("title") else "", block.get("note", "")])
        yield from (_finding(one) for one in block.get("findings", []))
        if "columns" in block:
            columns = [one if isinstance(one, str) else one["name"] for one in block["columns"]]
            yield from map(_json, [columns, *block.get("rows", [])])
        if left_out := block.get("rows_left_out"):
            yield f"{left_out:,} more rows: `table` or `query` has them all"


def _finding(found: Mapping[str, Any]) -> str:
    """A figure of both sides, or of one, in a line."""
    unit = found["unit"]
    if "value" in found:
        return f"- {as_code(found['label'])}: {format_value(found['value'], unit)}"
    values = [format_value(found[side], unit) for side in ("baseline", "candidate")]
    others = [format_ratio(found["ratio"])] if found.get("ratio") is not None else []
    others += [found["verdict"]] if found.get("verdict") else []
    return f"- {as_code(found['label'])}: {' → '.join(values)}" + (f" ({', '.join(others)})" if others else "")


def _json(row: object) -> str:
    return json.dumps(row, ensure_ascii=False)
