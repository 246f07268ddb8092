"""The XLA programs in a profile."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tfcompare.errors import NotAProfile
from tfcompare.frames.planes import METADATA_PLANE
from tfcompare.hlo.program import Program, read_program, read_programs
from tfcompare.hlo.proto_fields import signed
from tfcompare.schema.arrays import Int32, Int64, Strings
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import once_per_space

_ID = re.compile(r"\((\d{1,20})\)$")
_HLO_PROTO = ("Hlo Proto", "hlo_proto")
MOST_PROGRAMS = 1_000
"""In one file; real ones have some dozens."""
_BYTES_AT_ONCE = 1 << 24
"""Of programs that are read together: as many as in the largest ones of real files, so that the same limits serve."""


@once_per_space
def programs_of(space: XSpace) -> Programs:
    """The XLA programs in the file."""
    return Programs(space)


class Programs:
    """The XLA programs in the file, by id; all are read on first use. Of more than `MOST_PROGRAMS`, the largest.

    The id is that in the name of the program's entry, such as `jit_f(17)`; where it has none, that of the entry.
    """

    def __init__(self, space: XSpace) -> None:
        metadata = {p.index for p in space.planes if p.name == METADATA_PLANE}
        rows = {
            row: place
            for name in _HLO_PROTO
            for row, place in space.metadata_places(name).items()
            if int(space.metadata_plane[row]) in metadata
        }
        names = {row: str(space.metadata_names[row]) for row in rows}
        in_names = {row: _ID.search(name) for row, name in names.items()}
        ids = {row: signed(int(it[1])) if it else int(space.metadata_ids[row]) for row, it in in_names.items()}
        places = {ids[row]: place for row, place in rows.items()}
        largest = set(sorted(places, key=lambda own_id: -places[own_id][1])[:MOST_PROGRAMS])
        self.left_out = len(places) - len(largest)
        """The number of programs that are not read."""
        self._places = {own_id: place for own_id, place in places.items() if own_id in largest}
        self._names = {ids[row]: name for row, name in names.items()}
        self._buffer = space.buffer

    @property
    def ids(self) -> list[int]:
        """The ids of the programs, in file order, as signed integers."""
        return list(self._places)

    def program(self, program_id: int) -> Program | None:
        """The program of that id, None if the file does not contain it. Raises `NotAProfile` for a damaged one."""
        programs, number = self._found(program_id)
        return None if programs is None else programs.only(number)

    def _found(self, program_id: int) -> tuple[Program | None, int]:
        """(programs that were read together, which of them it is); raises as `program`."""
        found = self._read.get(program_id, (None, 0))
        if isinstance(found, NotAProfile):
            raise found
        return found

    @cached_property
    def _read(self) -> dict[int, tuple[Program, int] | NotAProfile]:
        found: dict[int, tuple[Program, int] | NotAProfile] = {}
        if not self._places:
            return found
        ends = np.cumsum([size for _, size in self._places.values()])
        for ids in np.split(np.array(self.ids), np.flatnonzero(np.diff(ends // _BYTES_AT_ONCE)) + 1):
            places = np.array([self._places[program_id] for program_id in ids.tolist()], np.int64)
            try:
                programs = read_programs(self._buffer, places)
                found |= {program_id: (programs, number) for number, program_id in enumerate(ids.tolist())}
            except NotAProfile:
                found |= {program_id: self._alone(program_id) for program_id in ids.tolist()}
        return found

    def proto(self, program_id: int) -> memoryview:
        """The bytes of a program that the file contains."""
        begin, size = self._places[program_id]
        return memoryview(self._buffer)[begin : begin + size]  # type: ignore[arg-type]

    def _alone(self, program_id: int) -> tuple[Program, int] | NotAProfile:
        try:
            return read_program(self.proto(program_id)), 0
        except NotAProfile as error:
            return error

    def name(self, program_id: int, module: str = "") -> str:
        """The program's name with its id, such as `jit_f(17)`; `module` is its name if the file lacks the program."""
        return self._names.get(program_id) or f"{module}({program_id % (1 << 64)})"

    def find(
        self, program_ids: Int64, hlo_ops: Sequence[str] | npt.NDArray[np.object_]
    ) -> Iterator[tuple[Program, Int64, Int64]]:
        """(programs, positions, rows) of programs that were read together: of which of the `hlo_op` stats of these
        programs they have the instruction, and the rows of these. Raises `NotAProfile` for a damaged program."""
        ids, which = np.unique(program_ids, return_inverse=True)
        found = [self._found(program_id) for program_id in ids.tolist()]
        for programs in dict.fromkeys(programs for programs, _ in found if programs is not None):
            numbers = np.array([number if own is programs else -1 for own, number in found], np.int64)[which]
            positions = np.flatnonzero(numbers >= 0)
            names = [instruction_name(hlo_ops[at]) for at in positions.tolist()]
            rows = programs.rows_named(names, numbers[positions])
            yield programs, positions[rows >= 0], rows[rows >= 0]


def metadata_instructions(space: XSpace, entries: Int64 | Int32) -> tuple[Int64, Strings]:
    """(the id of the program, the name) of the instruction that each of these event metadata entries of TPUs is."""
    return space.metadata_numbers("program_id")[0][entries], space.shown_names[entries]


def instruction_name(hlo_op: str) -> str:
    """The name of the instruction in an `hlo_op` stat such as `main::fusion.1`."""
    return hlo_op.rpartition("::")[2]
