"""Locks on cached files, which the system releases if the process is killed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl


@contextmanager
def locked_to_read(path: Path) -> Iterator[int | None]:
    """A descriptor of the file, protected from removal; None if there is no such file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        yield None
        return
    try:
        _lock_to_read(descriptor)
        yield descriptor if is_at(path, descriptor) else None
    finally:
        os.close(descriptor)


@contextmanager
def locked_to_write(path: Path, *, create: bool) -> Iterator[int | None]:
    """An exclusive descriptor of the file; None if another process has it, or the file is gone."""
    flags = os.O_RDWR | getattr(os, "O_BINARY", 0) | (os.O_CREAT if create else 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileNotFoundError:
        if create:
            raise
        yield None
        return
    try:
        yield descriptor if _lock(descriptor) and is_at(path, descriptor) else None
    finally:
        os.close(descriptor)


def _lock_to_read(descriptor: int) -> None:
    if sys.platform != "win32":  # on Windows, an open file cannot be removed
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_SH)


def _lock(descriptor: int) -> bool:
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_at(path: Path, descriptor: int) -> bool:
    """Whether the path still refers to that file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False
