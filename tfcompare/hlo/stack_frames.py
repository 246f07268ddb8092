"""The stack frames of a program: which calls in the framework's program led to an instruction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfcompare.schema.arrays import Int64, Strings
from tfcompare.xspace.texts import shortened

MOST_FRAMES = 32
"""How many calls of a stack are kept, the innermost ones. JAX records ten unless it is told to record more."""


@dataclass(frozen=True, eq=False)
class Frames:
    """Stack frames: the file, line and function of each, empty or 0 where unknown, and the frame that called it, 0 for
    none. Frame 0 is unknown."""

    files: Strings
    lines: Int64
    functions: Strings
    parents: Int64

    def stack(self, frame: int) -> str:
        """The lines of `Program.stacks` for that frame."""
        calls: list[str] = []
        while 0 < frame < len(self.files) and len(calls) <= MOST_FRAMES:  # those of a damaged file may call each other
            file, function = self.files[frame], self.functions[frame]
            place = f"{file}:{self.lines[frame]}" if file else ""
            calls.append(shortened(f"{function} ({place})" if function and place else function or place))
            frame = int(self.parents[frame])
        calls[MOST_FRAMES:] = ["…"] if len(calls) > MOST_FRAMES else []
        return "\n".join(filter(None, calls[::-1]))


def known(numbers: Int64, size: int) -> Int64:
    """The numbers that count something of that size, 0 for others."""
    return np.where((numbers > 0) & (numbers < size), numbers, 0)
