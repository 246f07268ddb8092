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
    none. Frame 0 is unknown. `counts` has the number of each program's frames."""

    files: Strings
    lines: Int64
    functions: Strings
    parents: Int64
    counts: Int64

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


def counted(numbers: Int64, owner: Int64, counts: Int64) -> Int64:
    """The position of what each owner calls that number, counting its own from 1, among those of all owners, of which
    there are `counts`, from 1; 0 for numbers that it does not have."""
    is_known = (numbers > 0) & (numbers <= counts[owner])
    return np.where(is_known, numbers + (np.cumsum(counts) - counts)[owner], 0)
