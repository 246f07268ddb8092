"""Removes paths and the names of runs and hosts from a report.

Runs and hosts get other names before anything is made of them, so that all texts and charts have only these. Paths are
then removed from the texts of what was made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from tfcompare.charts.style import letter
from tfcompare.compare import Comparison
from tfcompare.report.blocks import Block, Chart, Code, Facts, Items, Report, Table, Text, Timeline, Verdict
from tfcompare.run import Run
from tfcompare.tools.caveats import runs_of

_PART = r"(?:\\?[\w.+@~=%-]|<br>)"
_PATHS = re.compile(
    rf"""(?<![\w./<~)\]}}-])~?(?:/{_PART}+){{2,}}/?  # /home/ada/train.py, ~/models/train.py
    |\b[A-Za-z]:\\[^\s"'`<>|]+  # C:\Users\ada\train.py
    |(?<!\\)\\\\[\w.$-]+(?:\\[\w.$-]+)+  # \\server\share\train.py
    |\b(?!https://www\.tensorflow\.org/)[a-z][a-z0-9+.-]*\\?:\u2060?//[^\s"'`<>)]+  # gs://bucket/train.py
    """,
    re.VERBOSE,
)
"""Absolute paths with at least two parts, and URLs; names of ops and devices are neither."""
_TEXTS = ("text", "name", "customdata", "hovertext", "hovertemplate", "labels", "ticktext", "title")
"""The parts of a Plotly figure that are shown; the others steer it."""
_DRAWN_TEXTS = ("sides", "lanes", "names", "jumps", "said")
_FEWEST_LETTERS = 3


def with_other_names(comparison: Comparison) -> Comparison:
    """The comparison with its runs called `A`, `B`, …, their replicates `A 2`, `A 3`, …, and its hosts `host 1`, …"""
    own = runs_of(comparison)
    names: dict[str, str] = {}
    runs = []
    for i, run in enumerate(own):
        for number, one in enumerate((run, *comparison.repeats_of(run)), start=1):
            names.setdefault(one.id, letter(i) if number == 1 else f"{letter(i)} {number}")
            runs.append(one)
    hosts = list(dict.fromkeys(host for run in runs for host in run.host_names))
    digits = len(str(len(hosts)))
    host_names = {host: f"host {number:0{digits}}" for number, host in enumerate(hosts, start=1)}
    return comparison.with_runs(lambda run: _renamed(run, names.get(run.id, run.id), host_names), host_names)


def _renamed(run: Run, name: str, hosts: Mapping[str, str]) -> Run:
    """The run under other names, in its tables and remarks, too."""
    words = {host: other for host, other in hosts.items() if len(host) >= _FEWEST_LETTERS}
    words |= {str(run.path): name, run.id: name, run.name: name}
    frames = [
        replace(one, host=hosts[one.host], remarks=tuple(_without(remark, words) for remark in one.remarks))
        for one in run.hosts
    ]
    return replace(
        run,
        id=name,
        name=name,
        path=PurePath(name),
        host_names=tuple(sorted(one.host for one in frames)),
        remarks=tuple(_without(remark, words) for remark in run.remarks),
        found=replace(run.found, id=name, name=name),
        hosts=tuple(sorted(frames, key=lambda one: one.host)),
    )


def _without(text: str, words: Mapping[str, str]) -> str:
    """The text with other names for these, and without paths."""
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    pattern = "|".join(rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in longest_first)
    return without_paths(re.sub(pattern, lambda found: words[found[0]], text))


def without_paths(text: str) -> str:
    """The text with the last part of each path, or `…` if that is a folder near the root."""
    return _PATHS.sub(_last_part, text)


def _last_part(found: re.Match[str]) -> str:
    parts = [part for part in re.split(r"/|\\(?![.~@=%+-])", found[0].replace("<br>", "")) if part]
    return parts[-1] if len(parts) > 2 or "." in parts[-1] else "…"


def redacted(report: Report) -> Report:
    """The report without paths in its texts."""
    sections = [
        replace(one, title=without_paths(one.title), blocks=[_block(block) for block in one.blocks])
        for one in report.sections
    ]
    return replace(report, title=without_paths(report.title), sections=sections)


def _block(block: Block) -> Block:
    if isinstance(block, Verdict):
        return replace(block, headline=without_paths(block.headline), basis=without_paths(block.basis))
    if isinstance(block, Text | Code):
        return replace(block, text=without_paths(block.text))
    if isinstance(block, Items):
        return replace(block, items=[(without_paths(line), without_paths(more)) for line, more in block.items])
    if isinstance(block, Facts):
        return replace(block, rows=[[without_paths(cell) for cell in row] for row in block.rows])
    if isinstance(block, Table):
        texts = block.rows.select_dtypes(include=["str", "object"]).map(_cell)
        return replace(block, rows=block.rows.assign(**{str(name): texts[name] for name in texts}))
    if isinstance(block, Timeline):
        drawn = {name: cleaned(value) if name in _DRAWN_TEXTS else value for name, value in block.data.items()}
        return replace(block, data=drawn)
    return replace(block, figure=_figure(block)) if isinstance(block, Chart) else block


def _cell(cell: Any) -> Any:
    return without_paths(cell) if isinstance(cell, str) else cell


def _figure(chart: Chart) -> Any:
    return type(chart.figure)(_shown(json.loads(chart.figure.to_json())))


def _shown(value: Any) -> Any:
    """A figure's JSON values with the texts that are shown cleaned."""
    if isinstance(value, dict):
        return {key: cleaned(one) if key in _TEXTS else _shown(one) for key, one in value.items()}
    return [_shown(one) for one in value] if isinstance(value, list) else value


def cleaned(value: Any) -> Any:
    """JSON values without paths in their texts; keys, and numbers that Plotly writes in base64, stay."""
    if isinstance(value, str):
        return without_paths(value)
    if isinstance(value, dict):
        return {key: one if key == "bdata" else cleaned(one) for key, one in value.items()}
    return [cleaned(one) for one in value] if isinstance(value, list | tuple) else value
