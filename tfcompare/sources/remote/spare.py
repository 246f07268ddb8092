"""A folder of this process alone, for copies of remote files where the cache folder takes none.

    <temporary folder>/tfcompare-copies-…/lock     held as long as the process lives

It goes with the process. What a killed one leaves is removed by the next that fetches: nobody holds its lock any more.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from threading import Lock

from tfcompare.sources.remote.locks import is_at, locked_to_write

PREFIX = "tfcompare-copies-"
LOCK = "lock"

_lock = Lock()
_own: _Own | None = None


def spare_folder() -> Path:
    """The folder, made when it is first asked for, or after something has cleared it away.

    Raises OSError where there is no temporary folder that can be written.
    """
    global _own
    with _lock:
        if _own is None or not _own.is_there:
            _own = _Own()
        return _own.folder


@cache
def remove_left() -> None:
    """Once a process: remove the folders of processes that are gone."""
    with suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                _remove_if_left(Path(entry.path))


def _remove_if_left(folder: Path) -> None:
    with suppress(OSError), locked_to_write(folder / LOCK, create=False) as descriptor:
        if descriptor is not None:
            shutil.rmtree(folder, ignore_errors=True)


class _Own:
    """A new folder that only this user can look into, locked from now on."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._held = ExitStack()
        try:
            self._descriptor = self._held.enter_context(locked_to_write(self.folder / LOCK, create=True))
        except OSError:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        atexit.register(self._remove)

    @property
    def is_there(self) -> bool:
        """Whether it still is the folder that was made."""
        return self._descriptor is not None and is_at(self.folder / LOCK, self._descriptor)

    def _remove(self) -> None:
        is_ours = self.is_there
        self._held.close()
        if is_ours:
            shutil.rmtree(self.folder, ignore_errors=True)
