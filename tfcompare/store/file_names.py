"""The names of a store's files. Whatever else a record or a listing names is refused before it is opened."""

from __future__ import annotations

import re

from tfcompare import settings
from tfcompare.errors import TfcompareError
from tfcompare.schema.host_tables import LATE, Group
from tfcompare.store.contents import Damaged
from tfcompare.text import text_of
from tfcompare.units import format_bytes

MARK = "tfcompare-store.json"
INDEX = "index.json.gz"
FOLDERS = ("packs", "seen", "runs")
_PACK = r"packs/[0-9a-f]{2}/[0-9a-f]{32}\.pack"
_LATE = rf"packs/[0-9a-f]{{2}}/[0-9a-f]{{32}}\.(?:{'|'.join(LATE)})"
_NAME = re.compile(rf"{_PACK}|{_LATE}|(?:runs|seen)/[0-9a-f]{{32}}\.json|{re.escape(MARK)}|{re.escape(INDEX)}")
_LONGEST_SHOWN = 100
_MOST_BYTES = 64 << 20
"""The size limit of records and the index. A record takes some 325 bytes per host, a run in the index some 1,500."""


class NotOfAStore(TfcompareError):
    """A name that no file of a store has, such as a path that leads out of it."""


def is_name(name: str) -> bool:
    """Whether files of a store may have this name."""
    return _NAME.fullmatch(name) is not None


def is_pack(name: str) -> bool:
    """Whether packs of what is read first of a host file may have this name."""
    return re.fullmatch(_PACK, name) is not None


def late_pack(name: str, group: Group) -> str:
    """The name of the pack with a group of the same host file that is built later than the pack of that name."""
    return f"{name.removesuffix('.pack')}.{group}"


def all_packs(name: str) -> tuple[str, ...]:
    """The name of a pack of what is read first of a host file, and those of the packs of its other groups."""
    return name, *(late_pack(name, group) for group in LATE)


def first_pack(name: str) -> str:
    """The name of the pack with what was read first of the host file that the pack of that name belongs to."""
    return f"{name.rpartition('.')[0]}.pack"


def verify_name(name: str) -> str:
    """`name`; raises `NotOfAStore` if no file of a store has it."""
    if not is_name(name):
        shown = text_of(name[:_LONGEST_SHOWN])
        raise NotOfAStore(f"{shown!r} is not the name of a store's file; expected one such as packs/ab/….pack")
    return name


def verify_folder(name: str) -> str:
    """`name`; raises `NotOfAStore` if no folder of a store has it."""
    if name not in FOLDERS:
        raise NotOfAStore(f"{text_of(name[:_LONGEST_SHOWN])!r} is not a folder of a store: {', '.join(FOLDERS)}")
    return name


def size_limit(name: str) -> int:
    """The size limit of a file of this name."""
    return settings.from_environment().pack_bytes if name.startswith("packs/") else _MOST_BYTES


def check_size(name: str, size_bytes: int) -> None:
    """Raises `Damaged` if a file of this name is larger than tfcompare makes them."""
    if size_bytes > (most := size_limit(name)):
        raise Damaged(f"is larger than {format_bytes(most)}")
