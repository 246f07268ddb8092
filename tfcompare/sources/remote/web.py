"""Files on web servers. Each hop of a redirect is checked, and credentials of `~/.netrc` go to their own host only.

Folders are not searched: web servers have no common form for them. Proxies come from the environment.
"""

from __future__ import annotations

import base64
import ipaddress
import netrc
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from http.client import HTTPMessage
from typing import Any, cast
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from tfcompare.errors import NoSuchPlace
from tfcompare.sources.remote.failures import ANSWER_S, Changed, within
from tfcompare.sources.remote.files import Listing, RemoteFile, as_listed, remote_file
from tfcompare.sources.remote.places import WEB, RemotePath, RemotePlace

_SILENCE_S = 10
"""A server that sends nothing for so long is given up."""
_CHUNK = 1 << 20
_PROFILES = (".xplane.pb", ".xplane.pb.gz")
_PAGES = ("text/html", "application/xhtml+xml")
_NO_HEAD = (403, 405, 501)
"""Statuses with which servers refuse a HEAD, and not the file: a signature is often for GET alone."""
_QUOTED = "%/:=&?~#+!$,;'@()*[]"


class Web:
    """Files on any web server."""

    def look(self, place: RemotePlace) -> Listing:
        """See `Store`. Raises `NoSuchPlace` for a page, and for a redirect that is not followed."""
        return Listing(place.path, False, (as_listed(self._info(place.path, place.address)),))

    def pieces(self, file: RemoteFile) -> Iterator[bytes]:
        """See `Store`."""
        with _open(file.address, "GET") as answer:
            if not file.is_still(_described(file.path, file.address, answer.headers)):
                raise Changed
            while piece := answer.read1(_CHUNK):  # what has arrived, so that the caller can give up a slow server
                yield piece

    def beginning(self, file: RemoteFile, most_bytes: int) -> bytes:
        """See `Store`."""
        with _open(file.address, "GET") as answer:
            found: bytes = answer.read(most_bytes)
            return found

    def _info(self, path: RemotePath, address: str) -> RemoteFile:
        """The file's metadata from its headers: those of HEAD, or of GET if HEAD is refused."""
        try:
            with _open(address, "HEAD") as answer:
                headers = answer.headers
        except HTTPError as error:
            if error.code not in _NO_HEAD:
                raise
            with _open(address, "GET") as answer:
                headers = answer.headers
        if headers.get_content_type() in _PAGES and not path.name.endswith(_PROFILES):
            raise NoSuchPlace(
                f"{path}: is a web page, and folders of web servers are not searched; name a profile "
                "(….xplane.pb), or copy the logdir here"
            )
        return _described(path, address, headers)


class _CheckedRedirects(HTTPRedirectHandler):
    """Follows redirects, at most ten, unless one leads from a public address to a private one."""

    def redirect_request(self, req: Request, *answer: Any) -> Request | None:
        """The request for the next hop: without credentials if that is another host or protocol."""
        answered, *_, address = answer
        answered.close()
        before, after = urlsplit(req.full_url), urlsplit(address)
        if after.scheme not in WEB:
            raise NoSuchPlace(f"{before.netloc}: leads to {after.scheme or 'another'}://, which is not followed")
        if _is_private(after.hostname) and not _is_private(before.hostname):
            raise NoSuchPlace(
                f"{before.netloc}: leads to {after.netloc}, a private address, and is not followed; name the file there"
            )
        is_same = (before.scheme, before.netloc) == (after.scheme, after.netloc)
        return _request(address, req.get_method(), with_credentials=is_same and req.has_header("Authorization"))


def _open(address: str, method: str) -> Any:
    """The answer, once its headers are there. Raises what `urllib` raises, and TimeoutError after `ANSWER_S`."""
    request = _request(address, method, with_credentials=True)
    try:
        return within(ANSWER_S, partial(build_opener(_CheckedRedirects).open, request, timeout=_SILENCE_S))
    except HTTPError as error:
        error.close()  # it is the answer, too
        raise


def _request(address: str, method: str, *, with_credentials: bool) -> Request:
    request = Request(quote(address, safe=_QUOTED, errors="surrogateescape"), method=method)
    request.add_header("Accept-Encoding", "identity")
    with suppress(OSError, netrc.NetrcParseError):
        if with_credentials and (found := netrc.netrc().authenticators(urlsplit(address).hostname or "")):
            credentials = base64.b64encode(f"{found[0]}:{found[2]}".encode()).decode()
            request.add_header("Authorization", f"Basic {credentials}")
    return request


def _is_private(host: str | None) -> bool:
    """Whether any address of the host is not one of the public network; a name that is unknown here has none."""
    try:
        found = socket.getaddrinfo(host, None)
    except OSError:
        return False
    return any(not ipaddress.ip_address(address[4][0]).is_global for address in found)


def _described(path: RemotePath, address: str, headers: HTTPMessage) -> RemoteFile:
    length = headers.get("Content-Length", "")
    return remote_file(path, address, cast(Mapping[str, Any], headers), int(length) if length.isdecimal() else None)
