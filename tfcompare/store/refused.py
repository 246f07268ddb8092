"""Stands for the files in a folder that is not used."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from tfcompare.store.files import LocalFiles
from tfcompare.store.remote_files import StoredFile


@dataclass(eq=False)
class RefusedFiles(LocalFiles):
    """No files, and none can be written; `why` is the reason."""

    why: str = ""

    def read(self, name: str) -> bytes:
        """Raises FileNotFoundError."""
        raise FileNotFoundError(errno.ENOENT, "is not used", name)

    def has(self, name: str) -> bool:
        """False."""
        del name
        return False

    def write(self, name: str, data: bytes) -> None:
        """Raises PermissionError with the reason."""
        del data
        raise PermissionError(errno.EPERM, self.why, name)

    def remove(self, name: str) -> None:
        """Do nothing."""

    def listed(self, folder: str) -> list[StoredFile]:
        """No files."""
        del folder
        return []
