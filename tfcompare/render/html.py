"""A report as one HTML file that needs no network: charts, tables and the timeline are drawn by scripts inside it.

The Content-Security-Policy allows these scripts by their hashes and nothing from elsewhere. Names from profiles are
escaped in texts, and reach the scripts as JSON only. Without JavaScript, all texts can still be read.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

from tfcompare.render.document import Report, without_interaction
from tfcompare.render.inline import inline, plain
from tfcompare.render.payload import figure_json, flame_json, table_json, timeline_json
from tfcompare.views import canvas
from tfcompare.views import chart_style as style
from tfcompare.views.blocks import (
    Beside,
    Block,
    Cards,
    Chart,
    Code,
    Facts,
    FlameGraph,
    Items,
    Judgements,
    Section,
    Table,
    Text,
    Timeline,
    Verdict,
)
from tfcompare.views.flame import component as flame
from tfcompare.views.key_figures import card_texts
from tfcompare.views.timeline import component as timeline

MOST_ROWS = 1_000
"""Rows of a table; `tfcompare diff --format csv` has them all."""
_ASSETS = Path(__file__).with_name("assets")
_SCRIPTS = ("charts.js", "tables.js", "report.js")
_DOCUMENT = Template((_ASSETS / "report.html").read_text(encoding="utf-8"))


def as_html(report: Report) -> str:
    """The report as an HTML document."""
    payload: list[dict[str, Any]] = []
    body = []
    for section in report.sections:
        text = _section(section, payload)  # the one without a title stands out
        body.append(text if section.title or not text else f'<section class="answer">\n{text}\n</section>')
    library = ""
    if any(one["kind"] == "chart" for one in payload):
        from plotly.offline import get_plotlyjs

        library = get_plotlyjs()
    script = "\n".join([canvas.script(), timeline.script(), flame.script(), *(_asset(name) for name in _SCRIPTS)])
    hashes = [hashlib.sha256(text.encode()).digest() for text in (script, library) if text]
    allowed = " ".join(f"'sha256-{base64.b64encode(one).decode()}'" for one in hashes)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
        "form-action 'none'"
    )
    data = json.dumps({"blocks": payload, "config": style.CONFIG}, allow_nan=False)
    parts = {"title": html.escape(report.title), "about": html.escape(report.about), "script": script}
    parts |= {
        "policy": policy,
        "body": "\n".join(body),
        "style": _asset("report.css") + timeline.style() + flame.style(),
    }
    return _DOCUMENT.substitute(parts, payload=_pack(data), library=_pack(library))


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _pack(text: str) -> str:
    """The text compressed, in base64, so that nothing in it can end the element that holds it."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode() if text else ""


def _section(section: Section, payload: list[dict[str, Any]], heading: str = "h2") -> str:
    blocks = "\n".join(_block(block, payload) for block in section.blocks)
    if not blocks.strip():
        return ""
    if not section.title:
        return blocks
    is_open = " open" if section.is_open else ""
    title = f"<{heading}>{html.escape(section.title)}</{heading}>"
    return f"<details{is_open}><summary>{title}</summary>\n{blocks}\n</details>"


def _block(block: Block, payload: list[dict[str, Any]]) -> str:
    if isinstance(block, Section):
        return _section(block, payload, "h3")
    if isinstance(block, Beside):
        parts = ("\n".join(_block(one, payload) for one in part) for part in block.parts)
        return f'<div class="beside">{"".join(f"<div>{part}</div>" for part in parts if part.strip())}</div>'
    if isinstance(block, Verdict):
        badge = f'<span class="badge {block.tone}">{html.escape(block.badge)}</span> ' if block.badge else ""
        note = f"<p{_QUIET}>{inline(block.note)}</p>\n" if block.note else ""
        behind = inline(" ".join(block.behind))
        basis = f"<details><summary>How sure?</summary><p{_QUIET}>{behind}</p></details>" if behind else ""
        return f'<p class="verdict">{badge}<strong>{inline(block.headline)}</strong></p>\n{note}{basis}'
    if isinstance(block, Text):
        return f"<p{_QUIET if block.look == 'quiet' else ''}>{inline(block.text)}</p>"
    if isinstance(block, Items):
        items = [
            f"<details><summary>{inline(line)}</summary><p>{inline(more, links=True)}</p></details>"
            if more
            else inline(line)
            for line, more in block.items
        ]
        return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"
    if isinstance(block, Cards):
        shown = f'<div class="cards">{"".join(_cards(block))}</div>'
        every = f"<details><summary>{block.others}</summary>{_facts(block.facts)}</details>"
        return f"{shown}\n{every}" if block.others else shown
    if isinstance(block, Facts | Judgements):
        return _facts(block if isinstance(block, Facts) else block.facts)
    if isinstance(block, Code):
        return f"<pre><code>{_code(block)}</code></pre>"
    if isinstance(block, Chart | FlameGraph | Table | Timeline):
        return _drawn_figures(block, payload)
    fixed = without_interaction(block)
    return "" if fixed is None else _block(fixed, payload)


_QUIET = ' class="quiet"'
_CHANGED = {"-": "removed", "+": "added"}


def _code(block: Code) -> str:
    """The text; in a diff, lines of one side have the class `removed` or `added`."""
    if block.language != "diff":
        return html.escape(block.text)
    lines = [(html.escape(line), _CHANGED.get(line[:1])) for line in block.text.split("\n")]
    return "\n".join(f'<span class="{changed}">{line}</span>' if changed else line for line, changed in lines)


def _cards(block: Cards) -> Iterator[str]:
    for figure in block.first:
        value, change, before = card_texts(figure)
        tone = figure.judgement if figure.judgement in ("better", "worse") else "neutral"
        below = f'<div class="change {tone}">{html.escape(change)}</div>' if change else ""
        below += f'<div class="before">{html.escape(before)}</div>' if before else ""
        label, meaning = html.escape(figure.label), html.escape(plain(figure.meaning.partition("\n")[0]))
        value = f'<div class="value">{html.escape(value)}</div>'
        yield f'<div class="card" title="{meaning}"><div>{label}</div>{value}{below}</div>'


def _facts(block: Facts) -> str:
    looks = []
    for i in range(len(block.header)):
        classes = ["number"] * (i in block.numbers) + ["optional"] * (i in block.optional)
        looks.append(f' class="{" ".join(classes)}"' if classes else "")
    tones: Sequence[str] = block.tones or [""] * len(block.rows)
    head = "".join(f"<th{look}>{html.escape(text)}</th>" for text, look in zip(block.header, looks, strict=True))
    rows = "".join(_row(row, looks, tone) for row, tone in zip(block.rows, tones, strict=True))
    note = f'<p class="quiet">{inline(block.note)}</p>' if block.note else ""
    table = f'<table class="facts"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<div class="wide">{table}</div>{note}'


def _row(row: Sequence[str], looks: Sequence[str], tone: str) -> str:
    cells = "".join(f"<td{look}>{html.escape(text)}</td>" for text, look in list(zip(row, looks, strict=True))[1:])
    name = html.escape(row[0]).replace("/", "/<wbr>")  # it may break after a slash rather than within a word
    return f'<tr class="{tone}"><th>{name}</th>{cells}</tr>'


def _drawn_figures(block: Chart | FlameGraph | Table | Timeline, payload: list[dict[str, Any]]) -> str:
    """An empty element, which the script fills when it is seen."""
    number = len(payload)
    if isinstance(block, Chart):
        drawn = block.draw()
        if drawn is None:
            return f"<p{_QUIET}>{inline(block.nothing)}</p>" if block.nothing else ""
        figure = figure_json(drawn)
        narrow = figure_json(style.for_narrow_page(block.draw_narrow() if block.draw_narrow else drawn))
        if block.draw_narrow is None:
            del narrow["data"]
        payload.append({"kind": "chart", "figure": figure, "narrow": narrow})
        height = int(figure["layout"].get("height", 400))
        title = html.escape(drawn.layout.title.text or block.name)
        look = f'role="img" aria-label="{title}" style="min-height:{height}px"'
        return f'<div class="wide"><div class="chart" data-block="{number}" {look}></div></div>'
    if isinstance(block, FlameGraph):
        graph = flame_json(block)
        if graph is None:
            return f"<p{_QUIET}>{inline(block.nothing)}</p>" if block.nothing else ""
        payload.append({"kind": "flame", **graph})
        return f'<div data-block="{number}"></div>'
    if isinstance(block, Timeline):
        payload.append({"kind": "timeline", **timeline_json(block)})
        return f'<div data-block="{number}"></div><p class="quiet" id="span-{number}"></p>'
    title = f"<h3>{html.escape(block.title)}</h3>"
    if block.rows.empty:
        return f"{title}<p{_QUIET}>{inline(block.nothing)}</p>"
    left_out = len(block.rows) - MOST_ROWS
    first = replace(block, rows=block.rows.head(MOST_ROWS)) if left_out > 0 else block
    payload.append({"kind": "table", **table_json(first)})
    note = f"<p{_QUIET}>The last {left_out:,} rows are left out.</p>" if left_out > 0 else ""
    return f'{title}{note}<div class="table" data-block="{number}"></div>'
