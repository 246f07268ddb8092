"""The XLA programs in a profile."""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

from tfcompare.frames.planes import METADATA_PLANE
from tfcompare.hlo.program import Instruction, Program, read_program
from tfcompare.hlo.wire import signed
from tfcompare.xspace import XSpace

_ID = re.compile(r"\((\d{1,20})\)$")
_HLO_PROTO = ("Hlo Proto", "hlo_proto")
_of_space: WeakKeyDictionary[XSpace, Programs] = WeakKeyDictionary()


def programs_of(space: XSpace) -> Programs:
    """The XLA programs in the file; they are read once, however many tables need them."""
    if space not in _of_space:
        _of_space[space] = Programs(space)
    return _of_space[space]


class Programs:
    """The XLA programs in the file, by id; each is read on first use.

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
        ids = {row: _id_in(name, int(space.metadata_ids[row])) for row, name in names.items()}
        self._protos = {ids[row]: proto for row, proto in rows.items()}
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

    def find(self, program_id: int, hlo_op: str) -> tuple[Program, Instruction] | None:
        """The program, and its instruction that an `hlo_op` stat names; None if the file does not contain it."""
        program = self.program(program_id)
        instruction = program.instructions.get(instruction_name(hlo_op)) if program is not None else None
        return (program, instruction) if program is not None and instruction is not None else None


def _id_in(name: str, absent: int) -> int:
    """The id in a program's name as a signed 64-bit number, `absent` if there is none."""
    found = _ID.search(name)
    return signed(int(found[1])) if found else absent


def instruction_name(hlo_op: str) -> str:
    """The name of the instruction in an `hlo_op` stat such as `main::fusion.1`."""
    return hlo_op.rpartition("::")[2]
