"""The files of a store, in a local folder or any location that fsspec can write to."""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from threading import Lock
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from tfcompare import settings
from tfcompare.errors import NoSuchPlace, NotFetched, TfcompareError
from tfcompare.sources import bounded_folder
from tfcompare.sources.abandoned_folders import ARRIVING
from tfcompare.sources.bounded_folder import DISK_IS_FULL
from tfcompare.sources.logdir.files import open_regular
from tfcompare.sources.remote.failures import ANSWER_S, LISTING_S, sentence
from tfcompare.sources.remote.files import version_and_time
from tfcompare.sources.remote.places import WEB, parse
from tfcompare.sources.remote.stores import Objects, connect, forget_connections
from tfcompare.store.contents import Damaged
from tfcompare.store.file_names import FOLDERS, NotOfAStore, check_size, is_name, size_limit, verify_folder, verify_name
from tfcompare.text import is_url, text_of

_LOCAL = LocalFileSystem()
_TRANSFER_S = 300
_AT_ONCE = 1000
"""The number of files removed per request."""
_ATOMIC = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory")
"""Protocols where a file appears only when it is complete; elsewhere it is first written under another name."""
_REMADE = ("packs", "seen")
"""Folders whose files can be made again: the least recently used make room. Files that describe runs are small."""
_USE_NOTED_EVERY_S = 600
"""The last use of a file is only recorded again if the recorded time is older than this."""
_MEASURE_EVERY_S = 300


@dataclass(frozen=True)
class StoredFile:
    """A file of a store. `version` changes with its content; `used_ns` is when it was written or, in a folder, last
    read."""

    name: str
    size_bytes: int
    version: str
    used_ns: int


class StoreFiles:
    """Files by name, such as `packs/ab/….pack`. A file exists completely or not at all.

    In a folder, the least recently used files that can be made again are removed above `max_bytes`. Behind a URL,
    credentials come from the environment. Methods raise `NotFetched` if reading fails, `TfcompareError` if writing or
    removing fails, and `NotOfAStore` for names that no file of a store has.
    """

    def __init__(self, address: str, max_bytes: int | None = None) -> None:
        """Raises `NoSuchPlace` for a kind of URL that does not support stores."""
        self._place = parse(address) if is_url(address) else None
        if self._place is not None and (protocol := self._place.path.protocol) in WEB:
            raise NoSuchPlace(f"{self._place.path}: a store is not supported behind {protocol}://; use s3://")
        self._folder = Path(full_address(address))
        self._max_bytes = max_bytes
        self._bytes = 0
        self._measured = float("-inf")
        self._lock = Lock()

    def __str__(self) -> str:
        return text_of(str(self._folder)) if self._place is None else str(self._place.path)

    @property
    def is_folder(self) -> bool:
        """Whether they are on this machine, where listing them is quick."""
        return self._place is None

    def read(self, name: str) -> bytes:
        """The file's bytes; raises FileNotFoundError, and `Damaged` for a file that is too large for its kind."""
        key = self._key(verify_name(name))
        with self._reading(name, "read"):
            return self._read_here(name, key) if self.is_folder else self._fetched(name, key)

    def _fetched(self, name: str, key: str) -> bytes:
        # Without this option S3's driver first requests the size, to fetch large files in pieces.
        options = {"max_concurrency": 1} if self._protocol in ("s3", "s3a") else {}
        try:
            data: bytes = self._ask("cat_file", key, start=0, end=size_limit(name) + 1, **options)
        except Exception:
            file = self.info(name)
            if file is None or file.size_bytes:
                raise
            return b""  # S3 has no range of an empty file
        check_size(name, len(data))
        return data

    def _read_here(self, name: str, path: str) -> bytes:
        """The bytes of the file as it was when it was opened: another process may replace it meanwhile."""
        try:
            file = open_regular(Path(path))
        except (ValueError, IsADirectoryError):
            raise Damaged("is no file") from None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise Damaged("is a link") from None
            raise
        with file:
            status = os.fstat(file.fileno())
            check_size(name, status.st_size)
            data = file.read(status.st_size)
        if name.startswith(_REMADE) and time.time() - status.st_mtime > _USE_NOTED_EVERY_S:
            with suppress(OSError):
                os.utime(path)
        return data

    def info(self, name: str) -> StoredFile | None:
        """What is known of the file; None if there is none."""
        about: Mapping[str, Any]
        try:
            with self._reading(verify_name(name), "looked at"):
                about = self._ask("info", self._key(name), timeout_s=ANSWER_S)
        except FileNotFoundError:
            return None
        return _stored_file(name, about) if about.get("type") != "directory" else None

    def write(self, name: str, data: bytes) -> None:
        """Write the file, replacing an existing one."""
        key = self._key(verify_name(name))
        parent, _, last = key.rpartition("/")
        with self._changing(name, "written"):
            if self._protocol in _ATOMIC:
                self._ask("pipe_file", key, data)
            else:
                arriving = f"{parent}/{ARRIVING}{secrets.token_hex(8)}-{last}"
                self._ask("makedirs", parent, exist_ok=True)
                try:
                    self._ask("pipe_file", arriving, data)
                    if self.is_folder:
                        os.replace(arriving, key)  # noqa: PTH105  `mv` would move it into a folder of that name
                    else:
                        self._ask("mv", arriving, key)
                except BaseException:
                    with suppress(Exception):
                        self._ask("rm_file", arriving)
                    raise
        self._make_room(name, len(data))

    def remove(self, names: list[str]) -> None:
        """Remove those of the files that exist; of a link, the link."""
        keys = [self._key(verify_name(name)) for name in names]
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            with self._changing(names[start], "removed"):
                try:
                    if any(sign in key for key in some for sign in "*?["):  # `rm` would take them for patterns
                        raise FileNotFoundError
                    self._ask("rm", some)
                except FileNotFoundError:  # raised by some drivers if one is gone already
                    for key in some:
                        with suppress(FileNotFoundError):
                            self._ask("rm_file", key)

    def listed(self, folder: str) -> list[StoredFile]:
        """The files in that folder and below it, in any order."""
        found = self._found(verify_folder(folder))
        return [_stored_file(name, about) for name, about in found.items() if is_name(name)]

    def holds_others(self) -> bool:
        """Whether there are any whole files or folders."""
        try:
            with self._reading("", "listed"):
                keys = self._ask("ls", self._key(""), detail=False, timeout_s=LISTING_S)
        except FileNotFoundError:
            return False
        return any(not key.rpartition("/")[2].startswith(ARRIVING) for key in keys)

    def remove_abandoned(self) -> None:
        """Remove incomplete files that killed processes left in a folder."""
        bounded_folder.remove_abandoned(self._folders(FOLDERS))

    def remove_folders(self) -> None:
        """Remove all incomplete files, and empty folders."""
        folders = self._folders(FOLDERS)
        bounded_folder.remove_abandoned(folders, older_than_s=float("-inf"))
        for folder in reversed(folders):
            with suppress(OSError):
                folder.rmdir()

    def _folders(self, names: Sequence[str]) -> list[Path]:
        """Those folders on this machine and the ones in them; raises `NotOfAStore` if a link leads out of the store."""
        tops = [self._inside(self._folder / name) for name in names if self.is_folder]
        return [self._inside(folder) for top in tops for folder in (top, *top.glob("*/"))]

    @property
    def _protocol(self) -> str:
        return "file" if self._place is None else self._place.path.protocol

    def _key(self, name: str) -> str:
        """The driver's name of a file, or of the store for an empty name."""
        if self._place is not None:
            address = self._place.address.rstrip("/")
            return self._objects.key(f"{address}/{name}" if name else address)
        path = self._folder / name
        if name:
            self._inside(path.parent)
        return path.as_posix()

    def _inside(self, path: Path) -> Path:
        """`path`; raises `NotOfAStore` if it is not in the folder, all links followed."""
        below = takewhile(lambda at: at != self._folder, (path, *path.parents))
        if any(at.is_symlink() for at in below):
            real, folder = os.path.realpath(path), os.path.realpath(self._folder)  # links in a circle are no error
            if not Path(real).is_relative_to(folder):
                raise NotOfAStore(f"{text_of(str(path))}: a link leads out of the store; remove the link")
        return path

    def _found(self, folder: str) -> dict[str, Mapping[str, Any]]:
        """What is known of the files in that folder and below it, by name."""
        key, options = self._key(folder), {"on_error": "raise"} if self.is_folder else {}
        if self.is_folder:
            self._inside(Path(key))
        try:
            with self._reading(folder, "listed"):
                found = self._ask("find", key, detail=True, timeout_s=LISTING_S, **options)
        except FileNotFoundError:
            return {}
        return {f"{folder}{at[len(key) :]}": about for at, about in found.items() if about.get("type") != "directory"}

    @property
    def _objects(self) -> Objects:
        assert self._place is not None
        server = connect(self._place)
        assert isinstance(server, Objects)
        return server

    def _ask(self, method: str, key: str | list[str], *args: Any, timeout_s: float = _TRANSFER_S, **how: Any) -> Any:
        """Call the driver's method of that name."""
        if self.is_folder:
            return getattr(_LOCAL, method)(key, *args, **how)
        return self._objects.ask(method, key, *args, timeout_s=timeout_s, **how)

    @contextmanager
    def _reading(self, name: str, what: str) -> Iterator[None]:
        """The driver's errors as `NotFetched`, except FileNotFoundError."""
        try:
            yield
        except NotADirectoryError as error:
            raise FileNotFoundError(*error.args) from None
        except (FileNotFoundError, TfcompareError) as error:
            if "bucket does not exist" not in str(error):
                raise
            raise self._failure(name, what, error, NotFetched) from error
        except Exception as error:  # drivers raise any exception
            raise self._failure(name, what, error, NotFetched) from error

    @contextmanager
    def _changing(self, name: str, what: str) -> Iterator[None]:
        """The driver's errors as `TfcompareError`."""
        try:
            yield
        except TfcompareError:
            raise
        except Exception as error:
            raise self._failure(name, what, error, TfcompareError) from error

    def _failure(self, name: str, what: str, error: Exception, kind: type[TfcompareError]) -> TfcompareError:
        if self._place is not None:
            forget_connections()
            return kind(sentence(self._place.path, error))
        is_full = isinstance(error, OSError) and error.errno in DISK_IS_FULL
        advice = "make room on its disk" if is_full else "check the store's folder"
        why = (error.strerror if isinstance(error, OSError) else "") or error
        return kind(f"{text_of(str(self._folder / name))}: cannot be {what} ({why}); {advice}")

    def _make_room(self, written: str, size_bytes: int) -> None:
        """Remove the least recently used files above the limit, but not the one that was written.

        The total is measured rarely, and otherwise estimated.
        """
        if self._max_bytes is None:
            return
        with self._lock:
            self._bytes += size_bytes
            if self._bytes <= self._max_bytes and time.monotonic() - self._measured < _MEASURE_EVERY_S:
                return
            self._measured = time.monotonic()
            folders, newest = self._folders(_REMADE), self._folder / written
            self._bytes = bounded_folder.make_room(
                folders, self._max_bytes, lambda path: is_name(path.relative_to(self._folder).as_posix()), newest
            )


def full_address(address: str) -> str:
    """The address in a form that does not depend on the current folder."""
    return address if is_url(address) else str(Path(address).expanduser().absolute())


def store_files(address: str) -> StoreFiles:
    """The files of the store at a path or URL; does not access the network.

    Raises `NoSuchPlace` for a kind of URL that does not support stores.
    """
    return _files_at(
        full_address(address), settings.from_environment().store_bytes if is_frame_cache(address) else None
    )


@lru_cache(maxsize=64)
def _files_at(address: str, max_bytes: int | None) -> StoreFiles:
    """One shared object for each store, which counts everything that is written."""
    return StoreFiles(address, max_bytes)


def is_frame_cache(address: str) -> bool:
    """Whether the store there is this machine's cache of frames."""
    own = settings.from_environment().store_folder
    return own is not None and not is_url(address) and Path(full_address(address)) == own.absolute()


def _stored_file(name: str, about: Mapping[str, Any]) -> StoredFile:
    version, modified_ns = version_and_time(about)
    return StoredFile(name, int(about.get("size") or 0), version, modified_ns)
