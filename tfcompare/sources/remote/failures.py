"""Turns drivers' errors into one sentence with what to do. Their own messages are hidden: they may contain secrets."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

from tfcompare.sources.remote.places import WEB, RemotePath
from tfcompare.text import text_of

T = TypeVar("T")

LISTING_S = 300
"""A listing is aborted after this time: the place has millions of files."""

ANSWER_S = 20
"""A server that does not respond for this long counts as unreachable."""

DOWNLOAD_S = 3600
"""A download is given up after this time."""

_CREDENTIALS = {
    "s3": "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "s3a": "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or what `gcloud auth application-default login` leaves",
    "gcs": "GOOGLE_APPLICATION_CREDENTIALS, or what `gcloud auth application-default login` leaves",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    "abfs": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    "abfss": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
_NAME_SERVERS = (*WEB, "sftp", "ssh", "hdfs", "webhdfs")
"""Protocols whose URLs contain a server rather than a bucket."""
_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "s3a": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "gs": ("STORAGE_EMULATOR_HOST",),
    "gcs": ("STORAGE_EMULATOR_HOST",),
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
    return any(_is_named(e, _NO_CREDENTIALS) for e in _chain(error))


def is_final(error: BaseException) -> bool:
    """Whether retrying is useless."""
    return _is_denied(error) or _is_missing(error)


def sentence(path: RemotePath, error: BaseException) -> str:
    """Why something remote is not available."""
    where = text_of(str(path))
    if isinstance(error, TooMuch):
        return f"{where}: there is too much below it to be looked through; name a folder further down"
    if has_no_credentials(error) or _is_denied(error):
        return f"{where}: access is denied; check that the environment holds the right credentials{_hint(path)}"
    if _is_missing(error):
        if _is_bucket_missing(error):
            return f"{where}: there is no bucket {text_of(path.authority)}; check its spelling"
        return f"{where}: there is no such file or folder; check the spelling of the URL"
    if _is_timeout(error) or _is_unreachable(error):
        why = f": no answer within {ANSWER_S} seconds" if _is_timeout(error) else _why(error)
        return f"{where}: {_server(path)} cannot be reached{why}; check the network{_endpoint(path)}"
    return f"{where}: the server gives no usable answer ({_brief(error)}); try again, or copy the logdir here"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes."""
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__ or seen.__context__


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
    return any(
        isinstance(e, PermissionError) or _is_named(e, _DENIED) or _status(e) in _DENIED_CODES for e in _chain(error)
    )


def _is_missing(error: BaseException) -> bool:
    return isinstance(error, FileNotFoundError) or _status(error) in _MISSING_CODES


def _is_bucket_missing(error: BaseException) -> bool:
    return "bucket does not exist" in str(error) or any("NoSuchBucket" in str(e) for e in _chain(error))


def _is_timeout(error: BaseException) -> bool:
    return any(isinstance(e, TimeoutError) or _is_named(e, _TIMED_OUT) for e in _chain(error))


def _is_unreachable(error: BaseException) -> bool:
    return any(isinstance(e, ConnectionError | socket.gaierror) or _is_named(e, _UNREACHABLE) for e in _chain(error))


def _why(error: BaseException) -> str:
    """` (connection refused)`, if the system reports a reason."""
    for e in _chain(error):
        if isinstance(e, socket.gaierror) or "DNS" in type(e).__name__:
            return " (its name is unknown)"
        code = getattr(e, "errno", None)
        if code == errno.ECONNREFUSED:
            return " (connection refused)"
    return ""


def _hint(path: RemotePath) -> str:
    names = _CREDENTIALS.get(path.protocol, "")
    return f": {names}" if names else ""


def _server(path: RemotePath) -> str:
    return text_of(path.authority) if path.protocol in _NAME_SERVERS else "the server"


def _endpoint(path: RemotePath) -> str:
    """What else to check: the variable that sets the server, or a server in the URL."""
    named = next((name for name in _ENDPOINTS.get(path.protocol, ()) if os.environ.get(name)), "")
    if named:
        return f" and {named}"
    return " and the name of the server" if path.protocol in _NAME_SERVERS else ""


def _brief(error: BaseException) -> str:
    status = _status(error)
    return f"status {status}" if status else type(error).__name__
