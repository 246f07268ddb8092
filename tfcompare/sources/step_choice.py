"""The choice of a profile's steps: all of its own, or those of a chosen marker, range or kind."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tfcompare.errors import TfcompareError

_RANGE = re.compile(r"\s*(\d{0,9})\s*:\s*(\d{0,9})\s*")
_MAX_SHOWN = 40


@dataclass(frozen=True)
class StepChoice:
    """A choice of steps. `marker` is the host event that begins each step, instead of the profile's own markers.

    `first` and `last` are positions counted from 1, both inclusive; None for an open end. `counts_stray`: a run's stray
    is included in its figures. `kind`: only the steps of that marker or program are, such as `train`; None for all.
    """

    marker: str | None = None
    first: int | None = None
    last: int | None = None
    counts_stray: bool = False
    kind: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether nothing is chosen."""
        return self == OWN_STEPS

    @property
    def has_range(self) -> bool:
        """Whether only a range of the steps is chosen."""
        return self.first is not None or self.last is not None

    @property
    def range(self) -> str | None:
        """The range as text, such as `5:25`; None for all steps."""
        return f"{self.first or ''}:{self.last or ''}" if self.has_range else None

    @property
    def key(self) -> str | None:
        """A text that identifies what is read from a profile by this choice; None for the default."""
        if not self.has_range:
            return self.marker
        return f"{self.range} {self.marker or ''}"


OWN_STEPS = StepChoice()


def step_choice(
    marker: str | None = None, steps: str | None = None, *, counts_stray: bool = False, kind: str | None = None
) -> StepChoice:
    """The choice of steps of a `kind` that begin at `marker` and lie in a range such as `5:25`, `5:` or `:25`.

    Raises `TfcompareError` for a malformed range.
    """
    if steps is None:
        return StepChoice(marker, counts_stray=counts_stray, kind=kind)
    match = _RANGE.fullmatch(steps)
    first, last = (int(end) if end else None for end in match.groups()) if match else (0, 0)
    if first == 0 or last == 0 or (first is not None and last is not None and first > last):
        shown = steps if len(steps) <= _MAX_SHOWN else f"{steps[:_MAX_SHOWN]}…"
        raise TfcompareError(
            f"{shown!r} is no range of steps; expected FIRST:LAST by position, counted from 1 and both included, such "
            "as 5:25, 5: or :25"
        )
    return StepChoice(marker, first, last, counts_stray, kind)
