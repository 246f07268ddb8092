"""Sections of a page that a program writes, between marks that it finds again."""

from __future__ import annotations

from pathlib import Path


def section(path: Path, name: str) -> str:
    """What stands between the marks of that section; empty where there is none."""
    return path.read_text(encoding="utf-8").partition(_begin(name))[2].partition(_end(name))[0].strip()


def put(path: Path, name: str, text: str) -> None:
    """Write `text` in place of that section of the page, or at the end of a page that has none."""
    page = path.read_text(encoding="utf-8") if path.exists() else ""
    before, begin, rest = page.partition(_begin(name))
    after = rest.partition(_end(name))[2] if begin else "\n"
    whole = f"{before.rstrip()}\n\n{_begin(name)}\n\n{text.strip()}\n\n{_end(name)}{after}"
    path.write_text(whole.lstrip(), encoding="utf-8")


def _begin(name: str) -> str:
    return f"<!-- {name} -->"


def _end(name: str) -> str:
    return f"<!-- end of {name} -->"
