"""Turns drivers' errors into one sentence with what to do. Their own messages are hidden: they may contain secrets."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

from tfcompare.errors import causes
from tfcompare.sources.remote.places import WEB, RemotePath
from tfcompare.text import text_of

T = TypeVar("T")

LISTING_S = 300
"""A listing is aborted after this time: the place has millions of files."""

ANSWER_S = 20
"""A server that does not respond for this long counts as unreachable."""

DOWNLOAD_S = 3600
"""A download is given up after this time."""

_S3, _GOOGLE, _AZURE = ("s3", "s3a"), ("gs", "gcs"), ("az", "abfs", "abfss")
_LOGIN = "GOOGLE_APPLICATION_CREDENTIALS, or what `gcloud auth application-default login` leaves"
_CREDENTIALS = {
    **dict.fromkeys(_S3, "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    **dict.fromkeys(_GOOGLE, _LOGIN),
    **dict.fromkeys(_AZURE, "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"),
}
_NAME_SERVERS = (*WEB, "sftp", "ssh", "hdfs", "webhdfs")
"""Protocols whose URLs contain a server rather than a bucket."""
_ENDPOINTS = {
    **dict.fromkeys(_S3, ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")),
    **dict.fromkeys(_GOOGLE, ("STORAGE_EMULATOR_HOST",)),
}
_NO_CREDENTIALS = ("NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError", "NoAuthTokenError")
_DENIED = ("ClientAuthenticationError", "AuthenticationException", "RefreshError", "TokenRetrievalError")
_UNREACHABLE = ("EndpointConnectionError", "ClientConnectorError", "ServiceRequestError", "TransportError")
_TIMED_OUT = ("ConnectTimeoutError", "ReadTimeoutError", "ServerTimeoutError", "FSTimeoutError")
_DENIED_CODES = (401, 403, 407)
_MISSING_CODES = (404, 410)


class Changed(Exception):
    """The file has changed since it was listed."""


class TooMuch(Exception):
    """The place contains more files than are searched."""


def within(seconds: float, work: Callable[[], T]) -> T:
    """The result of `work`; raises TimeoutError if it takes longer, and lets it finish in the background."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()  # a pool's threads would be waited for when this process ends
    return future.result(seconds)


def has_no_credentials(error: BaseException) -> bool:
    """Whether the driver found no credentials in the environment."""
    return any(_is_named(e, _NO_CREDENTIALS) for e in causes(error))


def is_final(error: BaseException) -> bool:
    """Whether retrying is useless."""
    return _is_denied(error) or _is_missing(error)


def sentence(path: RemotePath, error: BaseException) -> str:
    """Why something remote is not available."""
    where, chain = text_of(str(path)), list(causes(error))
    if isinstance(error, TooMuch):
        return f"{where}: there is too much below it to be looked through; name a folder further down"
    if has_no_credentials(error) or _is_denied(error):
        hint = f": {_CREDENTIALS[path.protocol]}" if path.protocol in _CREDENTIALS else ""
        return f"{where}: access is denied; check that the environment holds the right credentials{hint}"
    if _is_missing(error):
        if "bucket does not exist" in str(error) or any("NoSuchBucket" in str(e) for e in chain):
            return f"{where}: there is no bucket {text_of(path.authority)}; check its spelling"
        return f"{where}: there is no such file or folder; check the spelling of the URL"
    is_late = any(isinstance(e, TimeoutError) or _is_named(e, _TIMED_OUT) for e in chain)
    if is_late or any(isinstance(e, ConnectionError | socket.gaierror) or _is_named(e, _UNREACHABLE) for e in chain):
        why = f": no answer within {ANSWER_S} seconds" if is_late else _why_unreachable(chain)
        names_server = path.protocol in _NAME_SERVERS
        server = text_of(path.authority) if names_server else "the server"
        variable = next((name for name in _ENDPOINTS.get(path.protocol, ()) if os.environ.get(name)), "")
        other = f" and {variable}" if variable else " and the name of the server" if names_server else ""
        return f"{where}: {server} cannot be reached{why}; check the network{other}"
    what = f"status {status}" if (status := _status(error)) else type(error).__name__
    return f"{where}: the server gives no usable answer ({what}); try again, or copy the logdir here"


def _is_named(error: BaseException, names: tuple[str, ...]) -> bool:
    """Whether the error's class has one of these names, since its package may not be installed."""
    return any(kind.__name__ in names for kind in type(error).__mro__)


def _status(error: BaseException) -> int | None:
    for name in ("status", "code", "status_code"):
        try:
            return int(getattr(error, name))
        except (AttributeError, TypeError, ValueError):
            continue
    return None


def _is_denied(error: BaseException) -> bool:
    chain = causes(error)
    return any(isinstance(e, PermissionError) or _is_named(e, _DENIED) or _status(e) in _DENIED_CODES for e in chain)


def _is_missing(error: BaseException) -> bool:
    return isinstance(error, FileNotFoundError) or _status(error) in _MISSING_CODES


def _why_unreachable(chain: Iterable[BaseException]) -> str:
    """` (connection refused)`, if the system reports a reason."""
    for error in chain:
        if isinstance(error, socket.gaierror) or "DNS" in type(error).__name__:
            return " (its name is unknown)"
        if getattr(error, "errno", None) == errno.ECONNREFUSED:
            return " (connection refused)"
    return ""
