"""The XLA programs in a profile."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tfcompare.frames.planes import METADATA_PLANE
from tfcompare.hlo.program import Program, read_program
from tfcompare.hlo.proto_fields import signed
from tfcompare.schema.arrays import Int32, Int64, Strings
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import once_per_space

_ID = re.compile(r"\((\d{1,20})\)$")
_HLO_PROTO = ("Hlo Proto", "hlo_proto")
MOST_PROGRAMS = 1_000
"""In one file; real ones have some dozens. Reading as many tiny ones takes about six seconds."""


@once_per_space
def programs_of(space: XSpace) -> Programs:
    """The XLA programs in the file."""
    return Programs(space)


class Programs:
    """The XLA programs in the file, by id; each is read on first use. Of more than `MOST_PROGRAMS`, the largest.

    The id is that in the name of the program's entry, such as `jit_f(17)`; where it has none, that of the entry.
    """

    def __init__(self, space: XSpace) -> None:
        metadata = {p.index for p in space.planes if p.name == METADATA_PLANE}
        rows = {
            row: proto
            for name in _HLO_PROTO
            for row, proto in space.metadata_bytes(name).items()
            if int(space.metadata_plane[row]) in metadata
        }
        names = {row: str(space.metadata_names[row]) for row in rows}
        in_names = {row: _ID.search(name) for row, name in names.items()}
        ids = {row: signed(int(it[1])) if it else int(space.metadata_ids[row]) for row, it in in_names.items()}
        protos = {ids[row]: proto for row, proto in rows.items()}
        largest = set(sorted(protos, key=lambda own_id: -len(protos[own_id]))[:MOST_PROGRAMS])
        self.left_out = len(protos) - len(largest)
        """The number of programs that are not read."""
        self._protos = {own_id: proto for own_id, proto in protos.items() if own_id in largest}
        self._names = {ids[row]: name for row, name in names.items()}
        self._read: dict[int, Program] = {}

    @property
    def ids(self) -> list[int]:
        """The ids of the programs, in file order, as signed integers."""
        return list(self._protos)

    def program(self, program_id: int) -> Program | None:
        """The program of that id, None if the file does not contain it. Raises `NotAProfile` for a damaged one."""
        if program_id not in self._read and program_id in self._protos:
            self._read[program_id] = read_program(self._protos[program_id])
        return self._read.get(program_id)

    def name(self, program_id: int, module: str = "") -> str:
        """The program's name with its id, such as `jit_f(17)`; `module` is its name if the file lacks the program."""
        return self._names.get(program_id) or f"{module}({program_id % (1 << 64)})"

    def find(
        self, program_ids: Int64, hlo_ops: Sequence[str] | npt.NDArray[np.object_]
    ) -> Iterator[tuple[int, Program, Int64, Int64]]:
        """(id, program, positions, rows) of each program: of which of the `hlo_op` stats of these programs it has the
        instruction, and the rows of these. Raises `NotAProfile` for a damaged program."""
        order = np.argsort(program_ids, kind="stable")
        ids, begins = np.unique(program_ids[order], return_index=True)
        for program_id, positions in zip(ids.tolist(), np.split(order, begins[1:]), strict=False):
            program = self.program(program_id)
            if program is not None:
                rows = program.rows_named([instruction_name(hlo_ops[at]) for at in positions.tolist()])
                yield program_id, program, positions[rows >= 0], rows[rows >= 0]


def metadata_instructions(space: XSpace, entries: Int64 | Int32) -> tuple[Int64, Strings]:
    """(the id of the program, the name) of the instruction that each of these event metadata entries of TPUs is."""
    program_id = np.zeros(len(space.metadata_names), np.int64)
    owners, numbers = space.metadata_numbers("program_id")
    program_id[owners] = numbers
    displayed = space.metadata_display_names[entries]
    return program_id[entries], np.where(displayed != "", displayed, space.metadata_names[entries])


def instruction_name(hlo_op: str) -> str:
    """The name of the instruction in an `hlo_op` stat such as `main::fusion.1`."""
    return hlo_op.rpartition("::")[2]
