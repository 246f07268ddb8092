"""Logdirs on a web server: folders from the links in index pages, files from their headers.

Requests use fsspec's HTTP file system, but not its `ls`: that reads pages of any size, parses them with a regular
expression that takes a minute for 2 KB of spaces, and returns links that lead out of the folder. So the pages are
streamed here, and only links to places below the place are followed.

Redirects are left to the driver (aiohttp follows up to ten, only to http and https, and drops credentials if the host
changes). Credentials come from `~/.netrc`, proxies from the environment.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit

import aiohttp
import fsspec
from yarl import URL

from tfcompare.sources.remote.failures import ANSWER_S, DOWNLOAD_S, LISTING_S, Changed, StartAgain, TooMuch, sentence
from tfcompare.sources.remote.files import Listing, RemoteFile, as_listed, is_looked_into, remote_file
from tfcompare.sources.remote.places import RemotePath, RemotePlace, below

MOST_FOLDERS = 5_000
MOST_FILES = 50_000
MOST_LINKS = 100_000
"""Limits on the folders and files below a place, and on the links of all its index pages, wherever they lead."""
MOST_DEPTH = 32
"""The maximum depth, since index pages may link to ever deeper ones."""

_THREADS = 16
_MOST_INDEX_BYTES = 16 << 20
_LONGEST_TAG = 1 << 16
_CHUNK = 1 << 20
_PROFILES = (".xplane.pb", ".xplane.pb.gz")
_PAGES = ("text/html", "application/xhtml+xml")
_TIMES = aiohttp.ClientTimeout(total=None, connect=8, sock_connect=8, sock_read=10)
_REFUSED = (aiohttp.ClientResponseError, FileNotFoundError)
"""What fsspec raises for a response with a status of 400 or more."""
_HREF = re.compile(
    rb"""<a\s[^<>]*?\bhref\s*=\s*(?:"(?P<double>[^"<>]*)"|'(?P<single>[^'<>]*)'|(?P<bare>[^\s"'<>]+))""", re.IGNORECASE
)
"""No part matches past the next `<` or `>`, so that the time is linear in the size of the page."""

Names = tuple[str, ...]


class Web:
    """A web server, with a separate session."""

    def __init__(self) -> None:
        self._system = fsspec.filesystem(
            "http",
            skip_instance_cache=True,
            encoded=True,
            client_kwargs={
                "timeout": _TIMES, "trust_env": True, "auto_decompress": False,
                "headers": {"Accept-Encoding": "identity"},
            },
        )  # fmt: skip

    def look(self, place: RemotePlace) -> Listing:
        """See `Store`."""
        return _Look(self, place).listing()

    def pieces(self, file: RemoteFile, start: int) -> Iterator[bytes]:
        """See `Store`."""
        if start and not file.is_versioned:
            raise StartAgain
        try:
            stream = self.open(file.address, {"Range": f"bytes={start}-"} if start else {}, DOWNLOAD_S)
        except aiohttp.ClientResponseError as error:
            if start and error.status == 416:
                raise StartAgain from None
            raise
        with stream:
            answer = stream.r
            if start and not (
                answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
            ):
                raise StartAgain
            if not file.is_still(_file_of_headers(file.path, file.address, answer.headers, start)):
                raise Changed
            while piece := stream.read(_CHUNK):
                yield piece

    def beginning(self, file: RemoteFile, most_bytes: int) -> bytes:
        """See `Store`."""
        found = b""
        with self.open(file.address, timeout_s=ANSWER_S) as stream:
            while len(found) < most_bytes and (piece := stream.read(most_bytes - len(found))):
                found += piece
        return found

    def open(self, address: str, headers: Mapping[str, str] | None = None, timeout_s: float | None = None) -> Any:
        """The response to a GET as fsspec's stream; its `r` has the headers. Passing any `size` avoids requesting it.

        Opening or reading it raises TimeoutError after `timeout_s`.
        """
        timeout = aiohttp.ClientTimeout(timeout_s, _TIMES.connect, _TIMES.sock_read, _TIMES.sock_connect)
        return self._system.open(_encoded(address), block_size=0, size=1, headers=dict(headers or {}), timeout=timeout)

    def info(self, path: RemotePath, address: str, timeout_s: float) -> RemoteFile:
        """The file's metadata from its headers: those of HEAD, or of GET if HEAD is refused, as for a signed GET."""
        try:
            info = self._system.info(_encoded(address), timeout=timeout_s)
        except FileNotFoundError as error:  # for any kind of failure
            raise (error.__cause__ or error) from None
        if info["size"] is not None:
            return as_listed(remote_file(path, address, info, info["size"]))
        with self.open(address, timeout_s=timeout_s) as stream:  # fsspec ignores the size of encoded content
            return as_listed(_file_of_headers(path, address, stream.r.headers))


@dataclass
class _Look:
    """A listing of a place: a limited number of requests and links, some in parallel, until a deadline."""

    web: Web
    place: RemotePlace
    until: float = field(default_factory=lambda: monotonic() + LISTING_S)
    lost: dict[RemotePath, str] = field(default_factory=dict)
    links: int = 0

    def listing(self) -> Listing:
        path, address = self.place.path, self.place.address
        if path.name.endswith(_PROFILES):
            return Listing(path, False, (self.web.info(path, address, self._remaining_s()),))
        with self.web.open(address, timeout_s=self._remaining_s()) as stream:
            if stream.r.content_type not in _PAGES:
                return Listing(path, False, (as_listed(_file_of_headers(path, address, stream.r.headers)),))
            links = self._links(stream)
        with ThreadPoolExecutor(_THREADS) as pool:
            names = self._walk(links, pool.map)
            files = [file for file in pool.map(self._file, names) if file is not None]
        return Listing(path, True, tuple(files), tuple(sorted(self.lost.items())))

    def _walk(self, links: list[Names], map_in_threads: Callable[..., Iterator[list[Names]]]) -> list[Names]:
        """The files below the place, by their names there; folders of the same depth are listed in parallel."""
        files: set[Names] = set()
        folders: set[Names] = {()}
        while links:
            files.update(names for names in links if names[-1])
            new = {names[:-1] for names in links if not names[-1]} - folders
            folders |= new
            if (
                len(files) > MOST_FILES
                or len(folders) > MOST_FOLDERS
                or any(len(folder) > MOST_DEPTH for folder in new)
            ):
                raise TooMuch
            links = [
                names for page in map_in_threads(self._index, filter(is_looked_into, sorted(new))) for names in page
            ]
        return sorted(names for names in files if is_looked_into(names[:-1]))

    def _index(self, folder: Names) -> list[Names]:
        """What a folder's page links to, by the names below the place."""
        try:
            with self.web.open(self._address((*folder, "")), timeout_s=self._remaining_s()) as stream:
                return [(*folder, *names) for names in self._links(stream)]
        except _REFUSED as error:
            self._record_failure(folder, error)
            return []

    def _file(self, names: Names) -> RemoteFile | None:
        """A file below the place; for a profile, its headers are requested."""
        path, address = below(self.place.path, names), self._address(names)
        if not names[-1].endswith(_PROFILES):
            return as_listed(RemoteFile(path, address, None, "", 0))
        try:
            return self.web.info(path, address, self._remaining_s())
        except _REFUSED as error:
            self._record_failure(names, error)
            return None

    def _links(self, stream: Any) -> list[Names]:
        """What is below the page, by name; the last name of a folder is empty. Links that sort the page are ignored."""
        here = str(stream.r.url.with_query(None).with_fragment(None)).rstrip("/") + "/"
        found: dict[Names, None] = {}
        for link in _hrefs(stream):
            self.links += 1
            if self.links > MOST_LINKS:
                raise TooMuch
            if names := _names_below(here, link):
                found[names] = None
        return list(found)

    def _address(self, names: Names) -> str:
        base = urlsplit(self.place.address)._replace(query="").geturl().rstrip("/")
        return "/".join((base, *(quote(name, safe="", errors="surrogateescape") for name in names)))

    def _record_failure(self, names: Names, error: Exception) -> None:
        path = below(self.place.path, names)
        self.lost[path] = sentence(path, error)

    def _remaining_s(self) -> float:
        return max(self.until - monotonic(), 0.001)


def _hrefs(stream: Any) -> Iterator[str]:
    """The targets of the links on a page, which is never in memory as a whole."""
    rest, size = b"", 0
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        if size > _MOST_INDEX_BYTES:
            raise TooMuch
        head, start, tail = (rest + chunk).rpartition(b"<")  # the last tag may go on in the next chunk
        yield from _targets(head)
        rest = start + tail if len(tail) < _LONGEST_TAG else b""
    yield from _targets(rest)


def _targets(page: bytes) -> Iterator[str]:
    for match in _HREF.finditer(page):
        yield html.unescape(match[match.lastgroup or 0].decode("utf-8", errors="surrogateescape"))


def _names_below(here: str, href: str) -> Names:
    """The names from a page down to a link's target; empty if the target is elsewhere."""
    try:
        link = urlsplit(urljoin(here, href))
    except ValueError:  # not a URL, such as `//[`
        return ()
    whole = link._replace(fragment="").geturl()
    if link.query or not whole.startswith(here):
        return ()
    *folders, last = (unquote(part, errors="surrogateescape") for part in whole[len(here) :].split("/"))
    is_below = (folders or last) and ".." not in (*folders, last) and all(folders)
    return (*folders, last) if is_below else ()


def _encoded(address: str) -> str:
    """The URL with quoting, but what is already quoted is unchanged, to keep signatures valid."""
    return str(URL(address, encoded="%" in address))


def _file_of_headers(path: RemotePath, address: str, headers: Mapping[str, Any], start: int = 0) -> RemoteFile:
    length = headers.get("Content-Length", "")
    return remote_file(path, address, headers, int(length) + start if length.isdecimal() else None)
