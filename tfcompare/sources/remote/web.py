"""Logdirs on a web server: folders by the links in their index pages, files by their headers.

Only links that lie below the place are followed, whichever server a redirect leads them to: redirects are the driver's
business (aiohttp follows up to ten, to http and https alone, and leaves credentials behind where the host changes).
Credentials come from `~/.netrc`, proxies from the environment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit

import aiohttp
from fsspec.asyn import sync
from fsspec.implementations.http import HTTPFileSystem
from yarl import URL

from tfcompare.sources.remote.failures import TooMuch, WebStatus, sentence
from tfcompare.sources.remote.files import Listing, RemoteFile, as_listed, remote_file
from tfcompare.sources.remote.places import RemotePath, RemotePlace, below
from tfcompare.sources.remote.stores import LISTING_S, Changed, StartAgain, is_looked_into

MOST_FOLDERS = 5_000
MOST_DEPTH = 32
"""An index page may link to ever deeper ones."""

_AT_ONCE = 16
_MOST_INDEX_BYTES = 16 << 20
_PIECE_BYTES = 1 << 20
_PIECE_S = 0.2
_PROFILES = (".xplane.pb", ".xplane.pb.gz")
_PAGES = ("text/html", "application/xhtml+xml")
_AS_IT_IS = {"Accept-Encoding": "identity"}
_TIMES = aiohttp.ClientTimeout(total=None, connect=8, sock_connect=8, sock_read=10)

Names = tuple[str, ...]


class Web:
    """A web server, with a session of its own."""

    def __init__(self) -> None:
        self._files = HTTPFileSystem(
            skip_instance_cache=True,
            client_kwargs={"timeout": _TIMES, "trust_env": True, "auto_decompress": False, "headers": _AS_IT_IS},
        )

    def look(self, place: RemotePlace) -> Listing:
        """See `Store`."""
        listing: Listing = sync(self._files.loop, _Look(self._files, place).listing, timeout=LISTING_S)
        return listing

    def pieces(self, file: RemoteFile, start: int) -> Iterator[bytes]:
        """See `Store`."""
        loop = self._files.loop
        answer, piece = sync(loop, self._begin, file, start)
        try:
            while piece:
                yield piece
                piece = sync(loop, _piece, answer.content)
        finally:
            loop.call_soon_threadsafe(answer.close)

    async def _begin(self, file: RemoteFile, start: int) -> tuple[aiohttp.ClientResponse, bytes]:
        """The answer and what comes first: whatever nobody waits for is lost where the connection breaks."""
        if start and not file.is_versioned:
            raise StartAgain
        session = await self._files.set_session()
        headers = {"Range": f"bytes={start}-"} if start else {}
        answer: aiohttp.ClientResponse = await session.get(_requested(file.address), headers=headers)
        try:
            if start and (answer.status == 416 or not _begins_at(answer, start)):
                raise StartAgain
            _check(answer)
            if not file.is_still(_told(file.path, file.address, answer.headers, start)):
                raise Changed
            return answer, await _piece(answer.content)
        except BaseException:
            answer.close()
            raise


class _Look:
    """One look at a place: requests go out several at once, the number of them bounded."""

    def __init__(self, files: HTTPFileSystem, place: RemotePlace) -> None:
        self._files = files
        self._place = place
        self._base = urlsplit(place.address)._replace(query="").geturl().rstrip("/")
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._lost: dict[RemotePath, str] = {}

    async def listing(self) -> Listing:
        path, address = self._place.path, self._place.address
        if path.name.endswith(_PROFILES):
            return Listing(path, False, (await self._described(path, address),))
        async with self._asked(address) as answer:
            if answer.content_type not in _PAGES:
                return Listing(path, False, (as_listed(_told(path, address, answer.headers)),))
            links = await _links(answer)
        files = await self._walk(links)
        return Listing(path, True, tuple(file for file in files if file), tuple(self._lost.items()))

    async def _walk(self, links: list[Names]) -> list[RemoteFile | None]:
        """The files below a place, folder by folder, all of one depth at once; of profiles their headers are asked."""
        found: dict[Names, None] = {}
        seen: set[Names] = {()}
        while links:
            found |= dict.fromkeys(names for names in links if names[-1])
            folders = {names[:-1] for names in links if not names[-1]} - seen
            seen |= folders
            if len(seen) > MOST_FOLDERS or any(len(folder) > MOST_DEPTH for folder in folders):
                raise TooMuch
            pages = await asyncio.gather(*map(self._index, sorted(folders)))
            links = [names for page in pages for names in page]
        looked_into = sorted(names for names in found if is_looked_into(names[:-1]))
        return list(await asyncio.gather(*map(self._file, looked_into)))

    async def _index(self, folder: Names) -> list[Names]:
        """What a folder's page links to, by the names below the place."""
        if not is_looked_into(folder):
            return []
        try:
            async with self._asked(_address(self._base, (*folder, ""))) as answer:
                return [(*folder, *names) for names in await _links(answer)]
        except WebStatus as error:
            path = below(self._place.path, folder)
            self._lost[path] = sentence(path, error)
            return []

    async def _file(self, names: Names) -> RemoteFile | None:
        path, address = below(self._place.path, names), _address(self._base, names)
        if not names[-1].endswith(_PROFILES):
            return RemoteFile(path, address, None, "", 0)
        try:
            return await self._described(path, address)
        except WebStatus as error:
            self._lost[path] = sentence(path, error)
            return None

    async def _described(self, path: RemotePath, address: str) -> RemoteFile:
        """The file by its headers. Where HEAD is refused, as it is for a signed GET, no more is read than these."""
        try:
            async with self._asked(address, "HEAD") as answer:
                return as_listed(_told(path, address, answer.headers))
        except WebStatus:
            async with self._asked(address) as answer:
                return as_listed(_told(path, address, answer.headers))

    @asynccontextmanager
    async def _asked(self, address: str, method: str = "GET") -> AsyncIterator[aiohttp.ClientResponse]:
        session = await self._files.set_session()
        async with self._room:
            answer = await session.request(method, _requested(address), allow_redirects=True)
            try:
                _check(answer)
                yield answer
            finally:
                answer.close()


async def _piece(content: aiohttp.StreamReader) -> bytes:
    """What comes next, and what comes at once behind it; empty at the end."""
    piece = bytearray(await content.readany())
    with suppress(aiohttp.ClientError, TimeoutError, OSError):  # what came is handed on; the next read raises it again
        async with asyncio.timeout(_PIECE_S):
            while 0 < len(piece) < _PIECE_BYTES and (more := await content.readany()):
                piece += more
    return bytes(piece)


class _Hrefs(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found += [value for name, value in attrs if name == "href" and value]


async def _links(answer: aiohttp.ClientResponse) -> list[Names]:
    """What lies below the page, by its names; the last is empty for a folder. Links that sort the page are none."""
    page = bytearray()
    async for piece in answer.content.iter_chunked(_PIECE_BYTES):
        page += piece
        if len(page) > _MOST_INDEX_BYTES:
            raise TooMuch
    hrefs = _Hrefs()
    hrefs.feed(page.decode("utf-8", errors="surrogateescape"))
    here = str(answer.url.with_query(None).with_fragment(None)).rstrip("/") + "/"
    found: dict[Names, None] = {}
    for href in hrefs.found:
        link = urlsplit(urljoin(here, href))
        if link.query or not (whole := link._replace(fragment="").geturl()).startswith(here):
            continue
        *folders, last = (unquote(part, errors="surrogateescape") for part in whole[len(here) :].split("/"))
        if (folders or last) and ".." not in (*folders, last) and all(folders):
            found[*folders, last] = None
    return list(found)


def _address(base: str, names: Names) -> str:
    return "/".join((base, *(quote(name, safe="", errors="surrogateescape") for name in names)))


def _requested(address: str) -> URL:
    """Without quoting anew what is quoted: a signature would not hold."""
    return URL(address, encoded="%" in address)


def _check(answer: aiohttp.ClientResponse) -> None:
    if answer.status >= 400:
        raise WebStatus(answer.status)


def _begins_at(answer: aiohttp.ClientResponse, start: int) -> bool:
    is_part = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
    return is_part or answer.status >= 400


def _told(path: RemotePath, address: str, headers: Mapping[str, Any], start: int = 0) -> RemoteFile:
    length = headers.get("Content-Length", "")
    return remote_file(path, address, headers, int(length) + start if length.isdecimal() else None)
