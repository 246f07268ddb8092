"""Restricts paths that are entered in a page or come from a link to places below the roots."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfcompare.errors import TfcompareError

if TYPE_CHECKING:
    from tfcompare.sources.logdir import FoundRun

_URL = re.compile(r"[a-z][a-z0-9+.-]*:/|.*::", re.IGNORECASE)


class Outside(TfcompareError):
    """The requested place is outside the roots; the error does not reveal whether it exists."""

    def __init__(self, place: str, roots: Sequence[Path]) -> None:
        allowed = " or ".join(str(root) for root in roots)
        super().__init__(f"{_shown_path(place)}: is not below {allowed}, and nothing else may be opened here")


def resolve_inside(place: str, roots: Sequence[Path]) -> Path:
    """The path that `place` names, with links resolved. Relative paths start at the first root.

    Raises `Outside` for URLs, and for paths that are not below any root.
    """
    if not place or "\0" in place or _URL.match(place) or place.startswith("~"):
        raise Outside(place, roots)
    for root in roots[:1] if not Path(place).is_absolute() else roots:
        try:
            path, inside = (root / place).resolve(), root.resolve()
        except (OSError, RuntimeError, ValueError):  # circular links, or an invalid name
            continue
        if path.is_relative_to(inside):
            return path
    raise Outside(place, roots)


def is_inside(path: Path, roots: Sequence[Path]) -> bool:
    """Whether a path, with links resolved, is below one of the roots."""
    try:
        real = path.resolve()
        return any(real.is_relative_to(root.resolve()) for root in roots)
    except (OSError, RuntimeError, ValueError):
        return False


def is_run_inside(run: FoundRun, roots: Sequence[Path]) -> bool:
    """Whether a run and all its files, with links resolved, are below the roots."""
    return all(is_inside(Path(path), roots) for path in (run.path, *(file.path for file in run.files)))


def _shown_path(place: str) -> str:
    if _URL.match(place):
        return "a URL"  # it may contain a key
    return place if place.isprintable() and len(place) <= 200 and place else repr(place[:200])
