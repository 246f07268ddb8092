"""The files of a store, in a folder of this machine or anywhere that fsspec writes to."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from tfcompare import settings
from tfcompare.errors import NotFetched, TfcompareError
from tfcompare.sources.remote.places import parse
from tfcompare.store.local_files import LocalFiles, is_whole
from tfcompare.text import is_url, text_of

_T = TypeVar("_T")


@dataclass(frozen=True)
class Kept:
    """A file of a store: its name, and when it was written or, on this machine, last used."""

    name: str
    size_bytes: int
    used_ns: int


class StoreFiles(Protocol):
    """Files by name, such as `packs/ab/….pack`. A file is there whole or not at all.

    What cannot be had is raised as `NotFetched`, what cannot be written or removed as `TfcompareError`.
    """

    def read(self, name: str) -> bytes:
        """The file's bytes; raises FileNotFoundError."""

    def size(self, name: str) -> int | None:
        """How many bytes it has; None where there is no such file."""

    def write(self, name: str, data: bytes) -> None:
        """Put the file there, in place of one of that name."""

    def remove(self, names: list[str]) -> None:
        """Remove the files, those that are there."""

    def listed(self, folder: str) -> list[Kept]:
        """The files in that folder and below it, in no order."""

    def holds_others(self) -> bool:
        """Whether anything lies there."""


@dataclass(frozen=True)
class FolderFiles:
    """See `StoreFiles`."""

    files: LocalFiles

    def __str__(self) -> str:
        return text_of(str(self.files.folder))

    def read(self, name: str) -> bytes:
        """See `StoreFiles`."""
        return self._had(name, lambda: self.files.read(name), "read", NotFetched)

    def size(self, name: str) -> int | None:
        """See `StoreFiles`."""
        try:
            return self._had(name, lambda: (self.files.folder / name).stat().st_size, "looked at", NotFetched)
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """See `StoreFiles`."""
        self._had(name, lambda: self.files.write(name, data), "written", TfcompareError)

    def remove(self, names: list[str]) -> None:
        """See `StoreFiles`."""
        for name in names:
            self.files.remove(name)

    def listed(self, folder: str) -> list[Kept]:
        """See `StoreFiles`."""
        return self._had(folder, lambda: [Kept(*told) for told in self.files.told(folder)], "listed", NotFetched)

    def holds_others(self) -> bool:
        """See `StoreFiles`."""
        folder = self.files.folder
        return self._had("", lambda: folder.exists() and any(map(is_whole, folder.iterdir())), "listed", NotFetched)

    def _had(self, name: str, work: Callable[[], _T], what: str, kind: type[TfcompareError]) -> _T:
        try:
            return work()
        except FileNotFoundError:
            raise
        except OSError as error:
            where = text_of(str(self.files.folder / name))
            raise kind(f"{where}: cannot be {what} ({error.strerror or error}); check the store's folder") from error


def full_address(address: str) -> str:
    """The address as it holds in any folder."""
    return address if is_url(address) else str(Path(address).expanduser().absolute())


def store_files(address: str) -> StoreFiles:
    """The files of the store at a path or URL; nothing is asked of the network.

    Raises `NoSuchPlace` for a URL of a kind that no store is kept at.
    """
    if is_url(address):
        from tfcompare.store.remote_files import RemoteFiles

        return RemoteFiles(parse(address))
    folder = Path(full_address(address))
    return FolderFiles(LocalFiles(folder, settings.store_bytes(os.environ) if is_own(address) else None))


def is_own(address: str) -> bool:
    """Whether the store there is the one that frames are kept in on this machine."""
    own = settings.store_folder(os.environ)
    return own is not None and not is_url(address) and Path(full_address(address)) == own.absolute()
