"""The errors that tfcompare raises, each with one sentence that a user can act on."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from tfcompare.text import lines_of, some_of

_MAX_NAME_LENGTH = 200
_MOST_NAMED = 60
"""More than there are tables or columns; there may be thousands of ops."""


class TfcompareError(Exception):
    """Base class of all errors that tfcompare raises on purpose; its text is one clear sentence.

    The text is printable whatever it quotes: names of files, and what a server, a profile or a database answered.
    All errors can be pickled, whatever arguments their classes take.
    """

    def __str__(self) -> str:
        return lines_of(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes, the outermost first; at most eight, since drivers may make circles."""
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__ or seen.__context__


def unexpected(error: BaseException) -> TfcompareError:
    """The error to report in place of one that no code raises on purpose."""
    what = f"{type(error).__name__} ({error})"
    return TfcompareError(f"failed with {what}, which is a bug in tfcompare: please report it")


class NoSuchPlace(TfcompareError):
    """A path does not exist or cannot be opened."""


class NotFetched(TfcompareError):
    """A remote file could not be downloaded; trying later may work."""


class NoRuns(TfcompareError):
    """A place is readable but contains no profile run."""


class SeveralRuns(TfcompareError):
    """One run was expected, but the place contains several."""


class NotAProfile(TfcompareError):
    """A file is no XSpace, or is truncated.

    Attributes: `path` (None for bytes in memory), `offset` (bytes from the start of the uncompressed data), `expected`,
    `found`; `advice` (what to do with a file of another format, else empty).
    """

    def __init__(self, path: PurePath | None, offset: int, expected: str, found: str, advice: str = "") -> None:
        self.path = path
        self.offset = offset
        self.expected = expected
        self.found = found
        self.advice = advice
        where = str(path) if path is not None else "the data"
        if advice:
            super().__init__(f"{where}: is {found} where {expected} was expected; {advice}")
            return
        advice = "record the profile again or copy the file anew"
        if path is not None and path.suffix not in (".pb", ".gz"):
            advice = "name a .xplane.pb file, its folder or a logdir"
        what = f"at byte {offset:,} expected {expected}, found {found}"
        super().__init__(f"{where}: not a readable profile: {what}; {advice}")

    def at(self, path: PurePath) -> NotAProfile:
        """The same error for the file at `path`."""
        return NotAProfile(path, self.offset, self.expected, self.found, self.advice)


class TooLarge(TfcompareError):
    """Reading a file takes more memory or time than allowed, or than there is.

    Attributes: `where` (a file), `why` (completes "reading it …").
    """

    def __init__(self, where: str, why: str) -> None:
        self.where = where
        self.why = why
        super().__init__(f"{where}: cannot be read: reading it {why}")

    def at(self, path: PurePath) -> TooLarge:
        """The same error for the file at `path`."""
        return TooLarge(str(path), self.why)


class NoOtherSteps(TfcompareError):
    """The chosen steps (by marker, range or kind) do not exist; those that the profile marks itself may."""


class NoSuchSteps(NoOtherSteps):
    """A host, or a run of several, has no step in the chosen range.

    Attributes: `where` (a file, or the name of the host or run), `range`, `count` (its number of steps).
    """

    def __init__(self, where: str, steps: str, count: int) -> None:
        self.where = where
        self.range = steps
        self.count = count
        there = f"it has {count:,}" if count else "it marks no steps"
        super().__init__(f"{where}: no step is in the range {steps}; {there}")

    def at(self, path: PurePath) -> NoSuchSteps:
        """The same error for the file at `path`."""
        return NoSuchSteps(str(path), self.range, self.count)


def _quote(name: str) -> str:
    return repr(name if len(name) <= _MAX_NAME_LENGTH else f"{name[:_MAX_NAME_LENGTH]}…")


class NoSuchKind(NoOtherSteps):
    """No included step of a run is of the chosen kind.

    Attributes: `where` (the name of the run), `kind`, `kinds` (those that it has).
    """

    def __init__(self, where: str, kind: str, kinds: Sequence[str]) -> None:
        self.where = where
        self.kind = kind
        self.kinds = tuple(kinds)
        there = f"its steps: {' and '.join(map(repr, kinds))}"
        if not kinds:
            there = "neither markers nor programs of its steps are named"
        super().__init__(f"{where}: no included step is of the kind {_quote(kind)}; {there}")


class NoSuchMarker(NoOtherSteps):
    """A host has no event with the name of the chosen step marker.

    Attributes: `where` (a file, or the name of the host), `name`, `likely` (names that may be meant).
    """

    def __init__(self, where: str, name: str, likely: Sequence[str]) -> None:
        self.where = where
        self.name = name
        self.likely = tuple(likely)
        such = f", such as {', '.join(map(repr, likely))}" if likely else ""
        super().__init__(f"{where}: no event is named {_quote(name)}; a step marker is the name of a host event{such}")

    def at(self, path: PurePath) -> NoSuchMarker:
        """The same error for the file at `path`."""
        return NoSuchMarker(str(path), self.name, self.likely)


class Unknown(TfcompareError):
    """A name (of a table, column, host, run, …) that does not exist; lists those that do."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        self.kind = kind
        self.name = name
        self.known = known
        choices = some_of(map(repr, known), _MOST_NAMED) or "none"
        super().__init__(f"unknown {kind} {name!r}; must be one of: {choices}")
