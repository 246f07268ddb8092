"""URLs of remote logdirs: which are supported, and what is shown of them.

Credentials come only from the environment, as each driver reads them: a URL with a password is refused. The query of
an HTTP URL (often a signature) is sent to the server and never shown. Chains such as `simplecache::s3://…` and
protocols that read local files are refused, because a URL could use them to read any file of this machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePath, PurePosixPath
from urllib.parse import unquote, urlsplit

from tfcompare.errors import NoSuchPlace
from tfcompare.text import URL, text_of

PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss"), "adlfs"),
    **dict.fromkeys(("http", "https"), ""),
    "hdfs": "pyarrow",
    "webhdfs": "requests",
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    "memory": "fsspec",
}
"""The supported protocols, each with the package that its driver needs in addition to fsspec; none for web servers."""

WEB = ("http", "https")
_WITH_USERS = ("az", "abfs", "abfss", "hdfs", "webhdfs", "sftp", "ssh")
"""Protocols where a name before an `@` is a container or a user, and not a secret."""


class RemotePath(PurePosixPath):
    """A remote path as it is shown: `s3://bucket/logs`. Its parts are `s3:`, `bucket`, `logs`."""

    def __str__(self) -> str:
        protocol, _, rest = super().__str__().partition("/")
        return f"{protocol}//{rest}"

    @property
    def protocol(self) -> str:
        """The part before `://`."""
        return self.parts[0][:-1]

    @property
    def authority(self) -> str:
        """The bucket, container or host; empty for `memory://`."""
        return self.parts[1] if len(self.parts) > 1 else ""


@dataclass(frozen=True)
class RemotePlace:
    """A typed URL: how it is shown, and what its driver is called with, which may contain a signature."""

    path: RemotePath
    address: str = field(repr=False)


def shown(text: object) -> str:
    """The typed text as it may be shown: URLs without user, password and query."""
    match = None if isinstance(text, PurePath) else URL.fullmatch(str(text))
    if match is None:
        return text_of(str(text))
    authority, slash, rest = re.split(r"[?#]", match[2], maxsplit=1)[0].partition("/")
    user, at, host = authority.rpartition("@")
    is_public = match[1].lower() in _WITH_USERS and ":" not in user
    return text_of(f"{match[1]}://{user + at if is_public else ''}{host}{slash}{rest}")


def parse(text: str) -> RemotePlace:
    """The place that a URL names. Does not access the network.

    Raises `NoSuchPlace` for an unsupported protocol or form of URL.
    """
    match = URL.fullmatch(text)
    if match is None:
        raise NoSuchPlace(f"{text_of(text)}: is no URL; expected one such as s3://bucket/logs")
    protocol, rest, name = match[1].lower(), match[2], shown(text)
    if ":" in protocol or ("::" in rest and "://" in rest):
        raise NoSuchPlace(f"{name}: is a chain of URLs, which are not opened; name the logdir itself")
    if protocol in ("file", "local"):
        raise NoSuchPlace(f"{name}: is not opened as a URL; name the path itself, without {protocol}://")
    if protocol not in PACKAGES:
        raise NoSuchPlace(f"{name}: {protocol}:// is not opened; expected one of {', '.join(PACKAGES)}")
    if not rest.isprintable():
        raise NoSuchPlace(f"{name}: holds characters that no URL has; check its spelling")
    return _of_web(name, protocol, rest) if protocol in WEB else _of_objects(name, protocol, rest)


def below(path: RemotePath, names: tuple[str, ...]) -> RemotePath:
    """The path of these names below `path`; a name with a slash stays one part."""
    return path.joinpath(*(name.replace("/", "%2F") for name in names))


def _of_web(name: str, protocol: str, rest: str) -> RemotePlace:
    rest = rest.partition("#")[0]
    location, _, query = rest.partition("?")
    authority, _, folders = location.partition("/")
    _check_user(name, protocol, authority)
    try:
        split = urlsplit(f"//{authority}")
        is_named = bool(split.hostname) and split.port != 0
    except ValueError:
        is_named = False
    if not is_named:
        raise NoSuchPlace(f"{name}: names no host; expected a URL such as {protocol}://host/logs")
    names = [unquote(part, errors="surrogateescape") for part in folders.split("/") if part]
    _check_names(name, names)
    path = below(RemotePath(f"{protocol}:", authority.lower()), tuple(names))
    return RemotePlace(path, f"{protocol}://{location}" + (f"?{query}" if query else ""))


def _of_objects(name: str, protocol: str, rest: str) -> RemotePlace:
    if "?" in rest:
        raise NoSuchPlace(f"{name}: what follows its question mark is not understood; name the place without it")
    rest = rest.strip("/") if protocol == "memory" else rest.rstrip("/")
    names = rest.split("/")
    if "::" in names[0]:
        raise NoSuchPlace(f"{name}: is a chain of URLs, which are not opened; name the logdir itself")
    _check_user(name, protocol, names[0])
    _check_names(name, names)
    if not names[0] and protocol not in ("memory", "hdfs"):
        raise NoSuchPlace(f"{name}: names no bucket or host; expected a URL such as {protocol}://bucket/logs")
    return RemotePlace(RemotePath(f"{protocol}:", *filter(None, names)), f"{protocol}://{rest}")


def _check_user(name: str, protocol: str, authority: str) -> None:
    user, at, _ = authority.rpartition("@")
    if at and (":" in user or protocol not in _WITH_USERS):
        raise NoSuchPlace(
            f"{name}: a URL with a user or key in it is not opened; credentials come from the environment"
        )


def _check_names(name: str, names: list[str]) -> None:
    if ".." in names:
        raise NoSuchPlace(f"{name}: leads upwards with `..`; name the place without it")
