"""Object files laid out flat: one block of code and constants that runs wherever it is mapped, with no linker.

That is possible where the code refers to nothing but places in the block itself, and by their distances, as LLVM makes
it for ELF and x86-64 when asked for position-independent code. Whatever else there is (other processors and systems,
variables, functions of libraries) is left to LLVM's own linker.
"""

from __future__ import annotations

import mmap
import struct
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_DISTANCE = struct.Struct("<i")
_MAPPED: list[mmap.mmap] = []  # to the end of the process: who calls it holds a mere address


class FlatCode(NamedTuple):
    """A block of machine code, and at which byte the function begins."""

    content: bytes
    entry: int


def flat(content: bytes, symbol: str) -> FlatCode | None:
    """The object file `content` as one block, with its function `symbol`; None where it cannot be one."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(BytesIO(content))
        return _laid_out(elf, symbol) if elf["e_machine"] == "EM_X86_64" else None
    except ELFError:  # no ELF
        return None


def _laid_out(elf: Any, symbol: str) -> FlatCode | None:
    from elftools.elf.constants import SH_FLAGS
    from elftools.elf.relocation import RelocationSection

    block, begins = bytearray(), dict[int, int]()
    for number, section in enumerate(elf.iter_sections()):
        if section["sh_flags"] & SH_FLAGS.SHF_ALLOC and section["sh_size"]:
            if section["sh_flags"] & SH_FLAGS.SHF_WRITE:
                return None
            block += bytes(-len(block) % max(section["sh_addralign"], 1))
            begins[number] = len(block)
            block += section.data()
    for section in elf.iter_sections():
        is_needed = isinstance(section, RelocationSection) and section["sh_info"] in begins
        if is_needed and not _put_distances(block, begins, section, elf.get_section(section["sh_link"])):
            return None
    (function,) = elf.get_section_by_name(".symtab").get_symbol_by_name(symbol)
    return FlatCode(bytes(block), begins[function["st_shndx"]] + function["st_value"])


def _put_distances(block: bytearray, begins: dict[int, int], distances: Any, symbols: Any) -> bool:
    """Enter `distances` into the block, whose sections begin at `begins`; whether all of them are to places in it."""
    from elftools.elf.enums import ENUM_RELOC_TYPE_x64 as KINDS

    for distance in distances.iter_relocations():
        to = symbols.get_symbol(distance["r_info_sym"])
        kind = distance["r_info_type"]
        if to["st_shndx"] not in begins or kind not in (KINDS["R_X86_64_PC32"], KINDS["R_X86_64_PLT32"]):
            return False
        at = begins[distances["sh_info"]] + distance["r_offset"]
        target = begins[to["st_shndx"]] + to["st_value"] + distance["r_addend"]
        _DISTANCE.pack_into(block, at, target - at)
    return True


def address(file: Path, code: FlatCode) -> int | None:
    """Where the function can be called, of code with which `file` begins; None where this system does not let it."""
    try:
        with file.open("rb") as opened:
            size = len(code.content)
            mapped = mmap.mmap(opened.fileno(), size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    except (AttributeError, OSError, ValueError):  # no such thing; a file system without execution; another file by now
        return None
    if mapped[:] != code.content:
        return None
    _MAPPED.append(mapped)
    return int(np.frombuffer(mapped, np.uint8).ctypes.data) + code.entry
