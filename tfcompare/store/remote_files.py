"""Files of a store on another machine, through fsspec's drivers."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from tfcompare.errors import NoSuchPlace, NotFetched, TfcompareError
from tfcompare.sources.remote.failures import ANSWER_S, LISTING_S, sentence
from tfcompare.sources.remote.files import remote_file
from tfcompare.sources.remote.places import WEB, RemotePlace
from tfcompare.sources.remote.stores import Objects, connect, forget_connections
from tfcompare.store.names import check_size, checked, checked_folder, is_name, most_bytes

_TRANSFER_S = 300
_AT_ONCE = 1000
"""The number of objects removed per request."""
_ATOMIC = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory")
"""Protocols where a file appears only when it is complete; elsewhere it is first written under another name."""
_ARRIVING = "arriving-"


@dataclass(frozen=True)
class StoredFile:
    """A file of a store: its name, and when it was written or (on this machine) last used."""

    name: str
    size_bytes: int
    used_ns: int


@dataclass(frozen=True)
class RemoteFiles:
    """See `StoreFiles`. Credentials come from the environment."""

    place: RemotePlace

    def __post_init__(self) -> None:
        if self.place.path.protocol in WEB:
            raise NoSuchPlace(
                f"{self.place.path}: a store is not supported behind {self.place.path.protocol}://; use s3://"
            )

    def __str__(self) -> str:
        return str(self.place.path)

    def read(self, name: str) -> bytes:
        """See `StoreFiles`."""
        # Without this option the driver first requests the size, to fetch large files in pieces.
        options = {"max_concurrency": 1} if self.place.path.protocol in ("s3", "s3a") else {}
        end = most_bytes(checked(name)) + 1
        data: bytes = self._ask("cat_file", name, start=0, end=end, timeout_s=_TRANSFER_S, **options)
        check_size(name, len(data))
        return data

    def size(self, name: str) -> int | None:
        """See `StoreFiles`."""
        try:
            about = self._ask("info", checked(name), timeout_s=ANSWER_S)
        except FileNotFoundError:
            return None
        return int(about["size"]) if about.get("type") != "directory" else None

    def write(self, name: str, data: bytes) -> None:
        """See `StoreFiles`."""
        if self.place.path.protocol in _ATOMIC:
            self._change("pipe_file", checked(name), data)
            return
        folder, _, last = checked(name).rpartition("/")
        arriving = f"{folder}/{_ARRIVING}{secrets.token_hex(8)}-{last}".removeprefix("/")
        self._change("makedirs", folder, exist_ok=True)
        self._change("pipe_file", arriving, data)
        self._change("mv_file", arriving, self._key(name))

    def remove(self, names: list[str]) -> None:
        """See `StoreFiles`."""
        for start in range(0, len(names), _AT_ONCE):
            keys = [self._key(checked(name)) for name in names[start : start + _AT_ONCE]]
            try:
                self._objects.ask("rm", keys, timeout_s=_TRANSFER_S)
            except FileNotFoundError:  # some drivers raise if it is gone already
                for key in keys:
                    self._remove_one(key)
            except Exception as error:
                raise self._failed(error, TfcompareError) from error

    def listed(self, folder: str) -> list[StoredFile]:
        """See `StoreFiles`."""
        root = self._key("")
        try:
            about: dict[str, dict[str, Any]] = self._ask(
                "find", checked_folder(folder), detail=True, timeout_s=LISTING_S
            )
        except FileNotFoundError:
            return []
        found = {key[len(root) :].lstrip("/"): info for key, info in about.items() if info.get("type") != "directory"}
        return [
            StoredFile(name, int(info.get("size") or 0), self._time(info))
            for name, info in found.items()
            if is_name(name)
        ]

    def holds_others(self) -> bool:
        """See `StoreFiles`."""
        try:
            return bool(self._ask("ls", "", detail=False, timeout_s=LISTING_S))
        except FileNotFoundError:
            return False

    def _time(self, about: dict[str, Any]) -> int:
        return remote_file(self.place.path, "", about, None).modified_ns

    def _remove_one(self, key: str) -> None:
        try:
            self._objects.ask("rm_file", key, timeout_s=_TRANSFER_S)
        except FileNotFoundError:
            return
        except Exception as error:
            raise self._failed(error, TfcompareError) from error

    @property
    def _objects(self) -> Objects:
        store = connect(self.place)
        assert isinstance(store, Objects)
        return store

    def _key(self, name: str) -> str:
        return self._objects.key(f"{self.place.address.rstrip('/')}/{name}" if name else self.place.address)

    def _ask(self, what: str, name: str, **options: Any) -> Any:
        try:
            return self._objects.ask(what, self._key(name), **options)
        except FileNotFoundError as error:
            if "bucket does not exist" in str(error):
                raise self._failed(error, NotFetched) from error
            raise
        except NoSuchPlace:
            raise
        except Exception as error:  # drivers raise any exception
            raise self._failed(error, NotFetched) from error

    def _change(self, what: str, name: str, *args: Any, **options: Any) -> None:
        try:
            self._objects.ask(what, self._key(name), *args, timeout_s=_TRANSFER_S, **options)
        except NoSuchPlace:
            raise
        except Exception as error:
            raise self._failed(error, TfcompareError) from error

    def _failed(self, error: Exception, kind: type[TfcompareError]) -> TfcompareError:
        forget_connections()
        return kind(sentence(self.place.path, error))
