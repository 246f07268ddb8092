"""What can go wrong, each with one sentence a user can act on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

_LONGEST_NAME = 200


class TfcompareError(Exception):
    """Base of every error that tfcompare raises on purpose; its text is one clear sentence."""


class NoSuchPlace(TfcompareError):
    """A path that was asked for does not exist, or cannot be opened."""


class NotFetched(TfcompareError):
    """A remote file could not be brought here this time; asking again later may work."""


class NoRuns(TfcompareError):
    """A place was readable and holds no profile run."""


class SeveralRuns(TfcompareError):
    """One run was asked for in a place that holds several."""


class NotAProfile(TfcompareError):
    """A file's bytes are no XSpace, or break off before its end.

    Attributes: `path` (None for bytes in memory), `offset` (bytes from the start of the uncompressed data),
    `expected`, `found`.
    """

    def __init__(self, path: PurePath | None, offset: int, expected: str, found: str) -> None:
        self.path = path
        self.offset = offset
        self.expected = expected
        self.found = found
        where = str(path) if path is not None else "the data"
        super().__init__(
            f"{where}: not a readable profile: at byte {offset:,} expected {expected}, found {found}; "
            "record the profile again or copy the file anew"
        )

    def at(self, path: PurePath) -> NotAProfile:
        """The same finding, told of the file it was made in."""
        return NotAProfile(path, self.offset, self.expected, self.found)


class NoOtherSteps(TfcompareError):
    """Steps that begin with the event that was named cannot be had; those that the profile marks itself may be."""


class NoSuchSteps(NoOtherSteps):
    """None of a host's steps is in the range that was chosen.

    Attributes: `where` (a file, or the name of the host), `range`, `count` (how many steps the host has).
    """

    def __init__(self, where: str, steps: str, count: int) -> None:
        self.where = where
        self.range = steps
        self.count = count
        there = f"it has {count:,}" if count else "it marks no steps"
        super().__init__(f"{where}: no step is in the range {steps}; {there}")

    def at(self, path: PurePath) -> NoSuchSteps:
        """The same finding, with the file it was made in."""
        return NoSuchSteps(str(path), self.range, self.count)


class NoSuchMarker(NoOtherSteps):
    """No event of a host has the name that was said to begin each step.

    Attributes: `where` (a file, or the name of the host), `name`, `likely` (names that may be meant).
    """

    def __init__(self, where: str, name: str, likely: Sequence[str]) -> None:
        self.where = where
        self.name = name
        self.likely = tuple(likely)
        such = f", such as {', '.join(map(repr, likely))}" if likely else ""
        shown = repr(name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…")
        super().__init__(f"{where}: no event is named {shown}; a step marker is the name of a host event{such}")

    def at(self, path: PurePath) -> NoSuchMarker:
        """The same finding, told of the file it was made in."""
        return NoSuchMarker(str(path), self.name, self.likely)


class Unknown(TfcompareError):
    """A name (of a table, column, host, run, …) that is none of those there are."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        self.kind = kind
        self.name = name
        self.known = known
        choices = ", ".join(repr(k) for k in known) if known else "none"
        super().__init__(f"unknown {kind} {name!r}; must be one of: {choices}")
