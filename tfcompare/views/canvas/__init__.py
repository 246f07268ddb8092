"""JavaScript that what is drawn on a canvas has in common: colours of the page's theme and of changes, texts, tips."""

from pathlib import Path

_SCRIPTS = ("theme.js", "texts.js")


def script() -> str:
    """The functions, to be put before those of a drawing in one JavaScript module."""
    return "\n".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in _SCRIPTS)
