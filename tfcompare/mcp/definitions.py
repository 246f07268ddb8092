"""The definitions as resources: what numbers, verdicts and columns mean, by the sections of their pages."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from tfcompare.settings import app_folder
from tfcompare.text import close_matches, did_you_mean

PAGES = {
    "numbers": "how every number is made",
    "verdicts": "how verdicts are made, and how often they are wrong",
    "tables": "every table with its columns and their units",
}
"""Pages of the documentation that come with the package."""
MOST_LETTERS = 16_000
"""Of one part: a section that is longer has several, which end between paragraphs."""
MIME = "text/markdown"
_HEADING = re.compile(r"^#{2,3} (.+)$", re.MULTILINE)


def add_resources(server: MCPServer) -> None:
    """Adds a resource for each page, which lists its sections, and a template for the sections."""
    for name, about in PAGES.items():
        add = server.resource(f"tfcompare://{name}", name=name, description=f"{about}: its sections", mime_type=MIME)
        add(partial(contents, name))
    about = "a section of numbers, verdicts or tables, by the names that these list"
    server.resource("tfcompare://{page}/{section}", name="section", description=about, mime_type=MIME)(section_of)


def contents(page: str) -> str:
    """What a page says before its first section, and the addresses of all sections."""
    first, *_ = _HEADING.split(_text(page), maxsplit=1)
    return "\n".join([first.strip(), "", *(f"- tfcompare://{page}/{name}" for name in sections(page)), ""])


def sections(page: str) -> dict[str, str]:
    """The text of each section, or part of one, by the name in its address: `idle-gaps`, or `the-rules-2`."""
    parts = _HEADING.split(_text(page))
    found: dict[str, str] = {}
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        name = re.sub(r"[^\w]+", "-", heading.lower()).strip("-")
        for number, part in enumerate(_parts(text.strip()), start=1):
            found[name if number == 1 else f"{name}-{number}"] = f"## {heading}\n\n{part}\n"
    return {name: text for name, text in found.items() if text.count("\n") > 2}


def _parts(text: str) -> list[str]:
    parts = [""]
    for paragraph in text.split("\n\n"):
        if parts[-1] and len(parts[-1]) + len(paragraph) > MOST_LETTERS:
            parts.append("")
        parts[-1] += f"\n\n{paragraph}" if parts[-1] else paragraph
    return parts


def section_of(page: str, section: str) -> str:
    """A section of a page. Raises `ResourceNotFoundError`, which says what may be meant."""
    if page not in PAGES:
        raise ResourceNotFoundError(f"unknown page {page!r}; must be one of: {', '.join(PAGES)}")
    known = sections(page)
    if section not in known:
        near = did_you_mean(close_matches(section, known, most=3))
        raise ResourceNotFoundError(f"{page} has no section {section!r}{near}; tfcompare://{page} lists them")
    return known[section]


def _text(page: str) -> str:
    return Path(app_folder() / "docs" / f"{page}.md").read_text(encoding="utf-8")
