"""The fence around what may be opened on request: paths typed into a page or linked to stay under the roots."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tfcompare.errors import TfcompareError

_URL = re.compile(r"[a-z][a-z0-9+.-]*:/|.*::", re.IGNORECASE)


class Outside(TfcompareError):
    """A place that was asked for lies outside the roots; whether there is such a place is not told."""

    def __init__(self, place: str, roots: Sequence[Path]) -> None:
        allowed = " or ".join(str(root) for root in roots)
        super().__init__(f"{_shown(place)}: is not below {allowed}, and nothing else may be opened here")


def fenced(place: str, roots: Sequence[Path]) -> Path:
    """The path that `place` names, all links followed. Relative ones count from the first root.

    Raises `Outside` for one that is not below any of the roots, and for URLs.
    """
    if not place or "\0" in place or _URL.match(place) or place.startswith("~"):
        raise Outside(place, roots)
    for root in roots[:1] if not Path(place).is_absolute() else roots:
        try:
            path, inside = (root / place).resolve(), root.resolve()
        except (OSError, RuntimeError, ValueError):  # links in a circle, a name that cannot be one
            continue
        if path.is_relative_to(inside):
            return path
    raise Outside(place, roots)


def is_inside(path: Path, roots: Sequence[Path]) -> bool:
    """Whether a path, all links followed, lies below one of the roots."""
    try:
        real = path.resolve()
        return any(real.is_relative_to(root.resolve()) for root in roots)
    except (OSError, RuntimeError, ValueError):
        return False


def _shown(place: str) -> str:
    if _URL.match(place):
        return "a URL"  # which may hold a key
    return place if place.isprintable() and len(place) <= 200 and place else repr(place[:200])
