"""Memory for uploads is limited and freed, whoever sends them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from multiprocessing.pool import ThreadPool
from typing import Any

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from tfcompare.server.uploads import arriving
from tfcompare.server.uploads.arriving import LimitArriving

MB = 1_000_000


@pytest.fixture(autouse=True)
def nothing_in_memory() -> Iterator[None]:
    arriving._files.clear()
    yield
    arriving._files.clear()
    arriving._loop = None


def in_a_loop_of_its_own(run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it in a thread: the main one may have the event loop of the browser tests."""
    with ThreadPool(1) as pool:
        pool.apply(lambda: asyncio.run(run()))


class Streamlit:
    """Stands for the server behind the limit: keeps what is sent to it."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        file_id = scope["path"].rpartition("/")[2]
        if scope["method"] == "DELETE":
            assert dict(scope["headers"])[b"x-xsrftoken"] == b"token"
            self.files.pop(file_id, None)
        else:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body = message["body"]
            assert int(dict(scope["headers"])[b"content-length"]) == len(body)
            self.files[file_id] = body
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Browser:
    """Sends files to a server with a limit of 10 MB, or 5 MB a session."""

    def __init__(self) -> None:
        self.streamlit = Streamlit()
        self.app = LimitArriving(self.streamlit, most_bytes=10 * MB)

    async def send(
        self, session: str, file_id: str, size: int, method: str = "PUT", *, hears: Receive | None = None, **more: Any
    ) -> int:
        """The status of the answer to so many bytes, or to what `hears` says; 0 without an answer."""
        headers = [(b"content-length", str(size).encode()), (b"x-xsrftoken", b"token")]
        headers.append((b"content-type", b"multipart/form-data; boundary=abc"))
        scope = {"type": "http", "path": f"/_stcore/upload_file/{session}/{file_id}", "method": method}
        statuses: list[int] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": bytes(size)}

        async def note(message: Message) -> None:
            statuses.append(message.get("status", 0))

        await self.app(scope | {"headers": headers} | more, hears or receive, note)
        return statuses[0] if statuses else 0


def test_a_session_and_all_sessions_have_a_limit_until_files_are_released() -> None:
    async def run() -> None:
        browser = Browser()
        for number in range(8):  # four sessions, two files each
            assert await browser.send(f"session{number % 4}", f"file{number}", 2 * MB) == 204
        kept = [name for name, data in browser.streamlit.files.items() if len(data) == 2 * MB]
        assert kept == ["file0", "file1", "file2", "file3"]
        text = arriving.refusal(["file3", "file7"])
        assert text.startswith("2.00 MB do not fit into the 10.0 MB for uploads by all at the same time")
        assert "TFCOMPARE_ARRIVING_MB" in text
        assert not arriving.refusal(kept)
        arriving.release(kept)
        await asyncio.sleep(0.01)
        assert set(browser.streamlit.files) == {"file4", "file5", "file6", "file7"}
        assert await browser.send("session0", "large", 6 * MB) == 204
        assert "5.00 MB for uploads by one browser" in arriving.refusal(["large"])
        assert b'filename="refused"' in browser.streamlit.files["large"]

    in_a_loop_of_its_own(run)


def test_a_file_whose_user_removes_it_makes_room_and_an_unclaimed_one_is_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        browser = Browser()
        await browser.send("session", "first", 4 * MB)
        await browser.send("session", "first", 0, method="DELETE")
        await browser.send("session", "second", 4 * MB)
        assert not arriving.refusal(["second"])
        monkeypatch.setattr(arriving, "UNCLAIMED_S", -1)
        await browser.send("session", "third", 4 * MB)
        assert not arriving.refusal(["third"])
        assert set(browser.streamlit.files) == {"third"}

    in_a_loop_of_its_own(run)


def test_files_that_arrive_at_the_same_time_do_not_exceed_the_limit_together() -> None:
    async def run() -> None:
        browser = Browser()
        await asyncio.gather(*(browser.send(f"session{n}", f"file{n}", 3 * MB) for n in range(20)))
        assert sum(len(data) >= 3 * MB for data in browser.streamlit.files.values()) == 3

    in_a_loop_of_its_own(run)


def test_what_names_no_size_or_comes_twice_is_not_passed_on() -> None:
    async def run() -> None:
        browser = Browser()
        assert await browser.send("session", "file", 10, headers=[]) == 411
        assert await browser.send("session", "file", 10) == 204
        assert await browser.send("session", "file", 20) == 409
        assert browser.streamlit.files == {"file": bytes(10)}

    in_a_loop_of_its_own(run)


def test_what_was_announced_and_is_not_sent_keeps_nobody_out_and_a_broken_off_upload_is_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        browser, may_go_on = Browser(), asyncio.Event()

        async def idle() -> Message:
            await may_go_on.wait()
            return {"type": "http.disconnect"}

        sent = [asyncio.create_task(browser.send(f"idle{n}", f"file{n}", 5 * MB - 10_000, hears=idle)) for n in (1, 2)]
        await asyncio.sleep(0)
        assert await browser.send("session", "file", 4 * MB) == 204
        assert len(browser.streamlit.files["file"]) == 4 * MB
        may_go_on.set()
        assert await asyncio.gather(*sent) == [0, 0]
        assert set(arriving._files) == {"file"}

    in_a_loop_of_its_own(run)
    assert [record.getMessage() for record in caplog.records] == ["an upload was broken off after 2.00 kB"] * 2


def test_an_upload_whose_room_others_took_meanwhile_is_refused() -> None:
    async def run() -> None:
        browser, may_go_on = Browser(), asyncio.Event()

        async def late() -> Message:
            await may_go_on.wait()
            return {"type": "http.request", "body": bytes(4 * MB)}

        sent = asyncio.create_task(browser.send("late", "late", 4 * MB, hears=late))
        await asyncio.sleep(0)
        assert [await browser.send(f"session{n}", f"file{n}", 4 * MB) for n in (1, 2)] == [204, 204]
        may_go_on.set()
        assert await sent == 413
        assert set(browser.streamlit.files) == {"file1", "file2"}

    in_a_loop_of_its_own(run)
