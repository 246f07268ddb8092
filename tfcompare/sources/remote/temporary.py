"""A temporary folder of this process, for copies of remote files that do not fit into the cache folder."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from threading import Lock

from tfcompare.sources.abandoned_folders import remove_left, this_process

PREFIX = "tfcompare-copies-"

_lock = Lock()
_folder: Path | None = None


def temporary_folder() -> Path:
    """The folder, which is removed when this process ends, and created again if it was deleted.

    Raises OSError if there is no writable temporary folder.
    """
    global _folder
    with _lock:
        if _folder is None or not _folder.is_dir():
            _folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{this_process()}-"))
            atexit.register(shutil.rmtree, _folder, ignore_errors=True)
        return _folder


@cache
def remove_leftovers() -> None:
    """Once per process: remove the folders of processes that were killed."""
    remove_left(Path(tempfile.gettempdir()), PREFIX)
