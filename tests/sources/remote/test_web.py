"""A plain web server with index pages."""

from __future__ import annotations

import gzip
import shutil
import socket
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

import tfcompare as tfc
from tests.profiles import SAMPLE_RUNS
from tests.sources.remote.servers import Web, _Handler
from tfcompare.errors import NoSuchPlace, NotFetched
from tfcompare.sources.logdir import find_run, find_runs

RUN = SAMPLE_RUNS["filters_16_8"]
(PROFILE,) = RUN.rglob("*.xplane.pb")


LINKS = (
    "../", "/", "/secret/", "{url}/secret/", "http://example.com/x/", "?C=N;O=D", "a/../../secret/", "%2e%2e/secret/",
    "javascript:alert(1)", "#top", "./", "//other/logs/", "run/", "run/vm.xplane.pb",
)  # fmt: skip


def put(web: Web, name: str, data: bytes = b"x" * 1000) -> Path:
    path = web.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_logdir_is_found_by_its_index_pages_and_read(web: Web) -> None:
    shutil.copytree(RUN, web.folder / "logs/my filters & more")
    put(web, "logs/notes.txt")
    put(web, "logs/.git/vm.xplane.pb")
    put(web, "other/vm.xplane.pb")
    (found,) = find_runs(f"{web.url}/logs")
    assert found.id == "logs/my filters & more/plugins/profile/2026_11_20_11_13_16"
    assert found.size_bytes == PROFILE.stat().st_size
    assert not [asked for asked in web.asked if asked.startswith("GET") and asked.endswith(".pb")], "nothing downloaded"
    assert not [asked for asked in web.asked if ".git/" in asked or "notes" in asked or "other" in asked]
    assert tfc.load(found).content_id == tfc.load(RUN).content_id


@pytest.mark.parametrize("query", ["", "?X-Amz-Signature=hunter2"])
def test_a_single_file(web: Web, query: str) -> None:
    put(web, "vm.xplane.pb", PROFILE.read_bytes())
    run = tfc.load(f"{web.url}/vm.xplane.pb{query}")
    assert (run.id, str(run.path)) == ("vm.xplane.pb", f"{web.url}/vm.xplane.pb")
    assert "hunter2" not in repr(run)
    assert web.asked == [f"{method} /vm.xplane.pb{query}" for method in ("HEAD", "GET")]


def test_what_needs_a_signature_and_has_none(web: Web) -> None:
    web.statuses["/vm.xplane.pb?sig=hunter2"] = 403
    with pytest.raises(NoSuchPlace) as caught:
        find_runs(f"{web.url}/vm.xplane.pb?sig=hunter2")
    assert str(caught.value) == (
        f"{web.url}/vm.xplane.pb: access is denied; check that the environment holds the right credentials"
    )


def test_links_lead_nowhere_but_down(web: Web) -> None:
    put(web, "secret/vm.xplane.pb")
    page = "".join(f'<a href="{link.format(url=web.url)}">x</a>' for link in LINKS)
    put(web, "logs/index.html", page.encode())
    put(web, "logs/run/vm.xplane.pb")
    assert [run.id for run in find_runs(f"{web.url}/logs/")] == ["logs/run"]
    assert not [asked for asked in web.asked if "secret" in asked]


def test_index_pages_without_end_are_given_up(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = web.folder
    for _ in range(40):
        folder /= "a"
    put(web, str(folder.relative_to(web.folder) / "vm.xplane.pb"))
    with pytest.raises(
        NoSuchPlace, match="there is too much below it to be looked through; name a folder further down"
    ):
        find_runs(web.url)
    monkeypatch.setattr("tfcompare.sources.remote.web.MOST_FOLDERS", 3)
    for name in "abcd":
        put(web, f"wide/{name}/vm.xplane.pb")
    with pytest.raises(NoSuchPlace, match="there is too much below it"):
        find_runs(f"{web.url}/wide")


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_links_are_found_however_they_are_written(web: Web, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr("tfcompare.sources.remote.web._CHUNK", chunk)
    links = (
        "<A HREF='a/'>",
        "<a class=x href=b/ >",
        '<a\n href = "c&#45;d/">',
        "<a href='//['>",
        "<a href>",
        "<area href=e/>",
    )
    put(web, "logs/index.html", "".join(links).encode())
    for name in ("a", "b", "c-d", "e"):
        put(web, f"logs/{name}/vm.xplane.pb")
    assert sorted(run.id for run in find_runs(f"{web.url}/logs/")) == ["logs/a", "logs/b", "logs/c-d"]


@pytest.mark.parametrize("text", ["<a" + " " * 500_000, "<a " * 200_000, "<a href=" * 60_000, "<a href='\"" * 60_000])
def test_an_index_page_made_to_be_slow_is_searched_at_once(web: Web, text: str) -> None:
    put(web, "logs/index.html", f'{text}<a href="run/">'.encode())
    put(web, "logs/run/vm.xplane.pb")
    started = time.monotonic()
    assert [run.id for run in find_runs(f"{web.url}/logs/")] == ["logs/run"]
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(("limit", "most"), [("_MOST_INDEX_BYTES", 500), ("MOST_FILES", 9), ("MOST_LINKS", 9)])
def test_what_an_index_page_may_hold_is_bounded(
    web: Web, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    for number in range(10):
        put(web, f"logs/{number}.xplane.pb")
    assert len(find_runs(f"{web.url}/logs/")) == 1
    monkeypatch.setattr(f"tfcompare.sources.remote.web.{limit}", most)
    with pytest.raises(NoSuchPlace, match="there is too much below it"):
        find_runs(f"{web.url}/logs/")


def test_the_links_of_all_pages_together_are_bounded(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        put(web, f"logs/{name}/index.html", b"<a href='/elsewhere'>" * 50)
    monkeypatch.setattr("tfcompare.sources.remote.web.MOST_LINKS", 120)
    with pytest.raises(NoSuchPlace, match="there is too much below it"):
        find_runs(f"{web.url}/logs/")


def test_a_file_that_is_said_to_be_encoded_has_its_size(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    put(web, "vm.xplane.pb.gz", gzip.compress(PROFILE.read_bytes()))
    end = _Handler.end_headers

    def end_headers(self: _Handler) -> None:
        self.send_header("Content-Encoding", "x-gzip")  # as Apache does
        end(self)

    monkeypatch.setattr(_Handler, "end_headers", end_headers)
    run = find_run(f"{web.url}/vm.xplane.pb.gz")
    assert run.size_bytes == (web.folder / "vm.xplane.pb.gz").stat().st_size
    assert tfc.load(run).content_id == tfc.load(PROFILE).content_id


def test_what_of_it_may_not_be_seen_is_listed_beside_the_rest(web: Web) -> None:
    for name in ("fine", "locked", "gone"):
        put(web, f"logs/{name}/vm.xplane.pb")
    web.statuses |= {"/logs/locked/": 403, "/logs/gone/vm.xplane.pb": 404}
    told = {run.id: "".join(run.problems) for run in find_runs(f"{web.url}/logs")}
    assert told["logs/fine"] == ""
    assert told["logs/locked"].startswith(f"{web.url}/logs/locked: access is denied")
    assert told["logs/gone/vm.xplane.pb"].startswith(f"{web.url}/logs/gone/vm.xplane.pb: there is no such file")


def test_a_server_without_head_and_one_that_redirects(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    put(web, "logs/vm.xplane.pb")
    web.statuses["/logs"] = 302  # to another name of the same server
    (run,) = find_runs(f"{web.url}/logs")
    assert str(run.files[0].where) == f"{web.url}/logs/vm.xplane.pb"
    monkeypatch.setattr("tests.sources.remote.servers._Handler.do_HEAD", lambda self: self.send_error(405))
    assert find_runs(f"{web.url}/logs/")[0].size_bytes == 1000


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (404, "there is no such file or folder; check the spelling of the URL"),
        (401, "access is denied; check that the environment holds the right credentials"),
        (503, "the server gives no usable answer (status 503); try again, or copy the logdir here"),
    ],
)
def test_what_the_server_refuses(web: Web, status: int, said: str) -> None:
    web.statuses["/logs"] = status
    with pytest.raises(NoSuchPlace) as caught:
        find_runs(f"{web.url}/logs")
    assert str(caught.value) == f"{web.url}/logs: {said}"


def test_a_server_that_is_not_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(NoSuchPlace) as caught:
        find_runs(f"http://{host}/logs")
    assert str(caught.value) == (
        f"http://{host}/logs: {host} cannot be reached (connection refused); check the network and the name of the "
        "server"
    )
    with pytest.raises(NoSuchPlace, match=r"no\.such\.host\.invalid cannot be reached \(its name is unknown\)"):
        find_runs("http://no.such.host.invalid/logs")


def test_a_server_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    import aiohttp

    from tfcompare.sources.remote import web

    times = (web._TIMES.connect, web._TIMES.sock_connect, web._TIMES.sock_read)
    assert sum(filter(None, times[1:])) < 20
    monkeypatch.setattr(web, "_TIMES", aiohttp.ClientTimeout(total=None, sock_read=0.3))
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(NoSuchPlace, match="cannot be reached: no answer within 20 seconds"):
            find_runs(f"http://127.0.0.1:{silent.getsockname()[1]}/logs")


@pytest.mark.parametrize(
    "start", [b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"]
)
def test_a_server_that_answers_byte_by_byte_is_given_up(monkeypatch: pytest.MonkeyPatch, start: bytes) -> None:
    for module in ("web", "listing"):
        monkeypatch.setattr(f"tfcompare.sources.remote.{module}.LISTING_S", 0.5)

    def drip() -> None:
        client, _ = slow.accept()
        with client, suppress(OSError):
            client.sendall(start)
            for _ in range(100):
                client.sendall(b"x")
                time.sleep(0.1)

    with socket.create_server(("127.0.0.1", 0)) as slow:
        Thread(target=drip, daemon=True).start()
        started = time.monotonic()
        with pytest.raises(NoSuchPlace, match="there is too much below it to be looked through"):
            find_runs(f"http://127.0.0.1:{slow.getsockname()[1]}/logs")
        assert time.monotonic() - started < 5


def test_a_changed_file_is_fetched_anew(web: Web) -> None:
    web.tags["/vm.xplane.pb"] = '"one"'
    put(web, "vm.xplane.pb", PROFILE.read_bytes())
    listed = find_run(f"{web.url}/vm.xplane.pb")
    web.tags["/vm.xplane.pb"] = '"two"'
    assert find_run(f"{web.url}/vm.xplane.pb").stat_key != listed.stat_key
    with pytest.raises(NotFetched, match="has changed since it was listed"):
        tfc.load(listed)


def test_a_file_of_which_nothing_is_told_is_never_taken_for_an_older_one(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(web, "vm.xplane.pb", PROFILE.read_bytes())
    monkeypatch.setattr("tests.sources.remote.servers._Handler.date_time_string", lambda *_: "")
    first, second = find_run(f"{web.url}/vm.xplane.pb"), find_run(f"{web.url}/vm.xplane.pb")
    assert first.stat_key != second.stat_key
    assert tfc.load(first).content_id == tfc.load(second).content_id
