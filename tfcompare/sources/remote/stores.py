"""Lists remote places and reads their files, through fsspec's drivers and for web servers through `web`."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from tfcompare.errors import NoSuchPlace
from tfcompare.sources.remote.failures import (
    ANSWER_S,
    LISTING_S,
    Changed,
    TooMuch,
    has_no_credentials,
    sentence,
    within,
)
from tfcompare.sources.remote.files import Listing, RemoteFile, as_listed, is_looked_into, remote_file
from tfcompare.sources.remote.places import PACKAGES, WEB, RemotePlace, below

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_PIECE_BYTES = 8 << 20
_PIECE_S = 120
_CONNECT_S = 5
_READ_S = 9
_OPTIONS: dict[str, dict[str, Any]] = {
    # botocore and s3fs each count tries: two in all, so that an unresponsive server is detected within 20 seconds.
    "s3fs": {"config_kwargs": {"connect_timeout": _CONNECT_S, "read_timeout": _READ_S, "retries": {"max_attempts": 0}}},
    "gcsfs": {"requests_timeout": _READ_S},
    "paramiko": {"timeout": _CONNECT_S, "banner_timeout": _READ_S},
}
_TRIES = 2
_TELLING = ("AWS_", "GOOGLE_", "GCE_", "STORAGE_EMULATOR_HOST", "AZURE_", "BOTO")
"""Environment variables that set servers and credentials of drivers."""
_MOST_OPEN = 16
_open: dict[tuple[str, str, tuple[tuple[str, str], ...]], Store] = {}
_lock = Lock()


class Store(Protocol):
    """A server. Methods raise the driver's errors; `failures.sentence` turns them into messages."""

    def look(self, place: RemotePlace) -> Listing:
        """All files at and below a place; nothing is downloaded."""

    def pieces(self, file: RemoteFile) -> Iterator[bytes]:
        """The bytes of a file. Raises `Changed`, at the end at the latest, if the version has changed."""

    def beginning(self, file: RemoteFile, most_bytes: int) -> bytes:
        """The first bytes of a small file, at most so many."""


def look(place: RemotePlace) -> Listing:
    """All files at and below `place`, in a new listing; nothing is downloaded.

    Raises `NoSuchPlace` with the specific reason: a missing driver, no access, no such bucket, folder or file, or a
    server that is unreachable or does not respond within 20 seconds.
    """
    started = monotonic()
    try:
        return connect(place).look(place)
    except NoSuchPlace:
        raise
    except Exception as error:  # drivers raise any exception
        forget_connections()
        is_too_much = isinstance(error, TimeoutError) and monotonic() - started >= LISTING_S
        raise NoSuchPlace(sentence(place.path, TooMuch() if is_too_much else error)) from error


def connect(place: RemotePlace) -> Store:
    """The store that serves `place`; raises `NoSuchPlace` if its driver is not installed.

    The same server and environment share a store, since setting up a session takes long.
    """
    environment = tuple(sorted((k, v) for k, v in os.environ.items() if k.startswith(_TELLING)))
    server = (place.path.protocol, place.path.authority, environment)
    with _lock:
        store = _open.pop(server, None) or _new(place)
        if isinstance(store, Objects) and not store.is_shareable:
            return store
        _open[server] = store
        if len(_open) > _MOST_OPEN:
            del _open[next(iter(_open))]
        return store


def forget_connections() -> None:
    """Set up new sessions from now on, since a credentials file may have changed."""
    with _lock:
        _open.clear()


def _new(place: RemotePlace) -> Store:
    try:
        if place.path.protocol in WEB:
            from tfcompare.sources.remote.web import Web

            return Web()
        return Objects(place)
    except ImportError:
        package = PACKAGES[place.path.protocol]
        raise NoSuchPlace(
            f"{place.path}: {place.path.protocol}:// needs the package {package}, which is not installed here: "
            f"pip install {package}"
        ) from None


class Objects:
    """Buckets, containers and file servers, through their drivers.

    Credentials are those that the driver finds in the environment; if S3's driver finds none, requests are anonymous,
    as for a public bucket. Listing a bucket takes one request per thousand objects, independently of the folders.
    """

    def __init__(self, place: RemotePlace) -> None:
        from fsspec import get_filesystem_class

        self._package = PACKAGES[place.path.protocol]
        self._server, _ = _split(place.address)
        self._is_anonymous = False
        self._system: AbstractFileSystem | None = None
        self._root = ""
        self.is_shareable: bool = get_filesystem_class(place.path.protocol).async_impl
        """Whether several threads can use it at the same time."""

    def look(self, place: RemotePlace) -> Listing:
        """See `Store`. Raises FileNotFoundError if nothing is there."""
        if self._package != "s3fs":  # other drivers may retry for minutes
            within(ANSWER_S, partial(self._wait_for_any_response, place.address))
        root = self.key(place.address)
        found: dict[str, dict[str, Any]] = self.ask("find", root, detail=True, timeout_s=LISTING_S)
        if root in found:
            file = remote_file(place.path, place.address, found[root], found[root]["size"])
            return Listing(place.path, False, (as_listed(file),))
        files = [
            as_listed(remote_file(below(place.path, names), place.address + key[len(root) :], about, about.get("size")))
            for key, about in found.items()
            if about.get("type") != "directory"
            and (names := tuple(key[len(root) :].removeprefix("/").split("/")))[-1]
            and is_looked_into(names[:-1])
        ]
        if not found:
            raise FileNotFoundError(place.address)
        return Listing(place.path, True, tuple(files))

    def pieces(self, file: RemoteFile) -> Iterator[bytes]:
        """See `Store`."""
        root = self.key(file.address)
        size = file.size_bytes or 0
        for start in range(0, size, _PIECE_BYTES):
            end = min(start + _PIECE_BYTES, size)
            piece = self.ask("cat_file", root, start=start, end=end, timeout_s=_PIECE_S)
            if len(piece) != end - start:
                raise Changed
            yield piece
        about = self.ask("info", root, timeout_s=ANSWER_S)
        if not file.is_still(remote_file(file.path, file.address, about, about.get("size"))):
            raise Changed

    def beginning(self, file: RemoteFile, most_bytes: int) -> bytes:
        """See `Store`."""
        size = most_bytes if file.size_bytes is None else min(file.size_bytes, most_bytes)
        if not size:
            return b""
        found: bytes = self.ask("cat_file", self.key(file.address), start=0, end=size, timeout_s=ANSWER_S)
        return found

    def key(self, address: str) -> str:
        """The driver's name for the file at that address."""
        self._connected()
        return self._root + _split(address)[1]

    def _wait_for_any_response(self, address: str) -> None:
        with suppress(Exception):  # any response will do: the actual call reports errors
            self.ask("info", self.key(address), timeout_s=ANSWER_S)

    def ask(self, name: str, *args: Any, timeout_s: float, **options: Any) -> Any:
        """Call the driver's method `name` on a server that is known to respond; raises the driver's errors."""
        try:
            return self._call(name, *args, timeout_s=timeout_s, **options)
        except Exception as error:
            if self._package != "s3fs" or self._is_anonymous or not has_no_credentials(error):
                raise
        self._is_anonymous, self._system = True, None
        return self._call(name, *args, timeout_s=timeout_s, **options)

    def _call(self, name: str, *args: Any, timeout_s: float, **options: Any) -> Any:
        if self.is_shareable:  # fsspec's own wrapper takes a timeout
            options["timeout"] = timeout_s
        return getattr(self._connected(), name)(*args, **options)

    def _connected(self) -> AbstractFileSystem:
        if self._system is None:
            from fsspec.core import url_to_fs

            logging.getLogger(self._package).addHandler(logging.NullHandler())  # relevant errors are raised
            options = _OPTIONS.get(self._package, {}) | ({"anon": True} if self._is_anonymous else {})
            system, self._root = url_to_fs(self._server, **options, use_listings_cache=False, skip_instance_cache=True)
            if self._package == "s3fs":
                system.retries = _TRIES
            self._system = system
        return self._system


def _split(address: str) -> tuple[str, str]:
    """The server or bucket of a URL, as a URL, and the rest."""
    protocol, _, rest = address.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{protocol}://{authority}", slash + path
