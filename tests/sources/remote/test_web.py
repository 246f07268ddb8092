"""Files on a plain web server, and what it may try."""

from __future__ import annotations

import gzip
import socket
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

import tfcompare as tfc
from tests.sources.remote.servers import Web, _Handler
from tests.store.runs_in_stores import SMALL
from tfcompare.errors import NoSuchPlace, NotFetched
from tfcompare.sources.logdir import find_run, find_runs
from tfcompare.sources.remote import web as web_files
from tfcompare.sources.remote.web import _is_private

PROFILE = SMALL["ours"]


def put(web: Web, name: str, data: bytes = b"x" * 1000) -> Path:
    path = web.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_folders_are_not_searched_and_that_is_said(web: Web) -> None:
    put(web, "logs/vm.xplane.pb")
    with pytest.raises(NoSuchPlace) as caught:
        find_runs(f"{web.url}/logs/")
    assert str(caught.value) == (
        f"{web.url}/logs: is a web page, and folders of web servers are not searched; name a profile (….xplane.pb), or "
        "copy the logdir here"
    )


@pytest.mark.parametrize("query", ["", "?X-Amz-Signature=hunter2"])
def test_a_single_file(web: Web, query: str) -> None:
    put(web, "vm.xplane.pb", PROFILE)
    run = tfc.load(f"{web.url}/vm.xplane.pb{query}")
    assert (run.id, str(run.path)) == ("vm.xplane.pb", f"{web.url}/vm.xplane.pb")
    assert "hunter2" not in repr(run)
    assert web.asked == [f"{method} /vm.xplane.pb{query}" for method in ("HEAD", "GET")]


def test_a_file_that_is_said_to_be_encoded_has_its_size(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    put(web, "vm.xplane.pb.gz", gzip.compress(PROFILE))
    end = _Handler.end_headers

    def end_headers(self: _Handler) -> None:
        self.send_header("Content-Encoding", "x-gzip")  # as Apache does
        end(self)

    monkeypatch.setattr(_Handler, "end_headers", end_headers)
    run = find_run(f"{web.url}/vm.xplane.pb.gz")
    assert run.size_bytes == (web.folder / "vm.xplane.pb.gz").stat().st_size
    assert tfc.load(run).content_id == tfc.load(put(web, "plain.xplane.pb", PROFILE)).content_id


def test_a_server_without_head(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    put(web, "vm.xplane.pb")
    monkeypatch.setattr("tests.sources.remote.servers._Handler.do_HEAD", lambda self: self.send_error(405))
    assert find_runs(f"{web.url}/vm.xplane.pb")[0].size_bytes == 1000


class Redirecting:
    """Servers send on whoever asks for `/start` to `target`; `seen` holds the credentials of every request."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.target = ""
        self.seen: list[tuple[str, str | None]] = []
        plain = _Handler._is_refused

        def is_refused(handler: _Handler) -> bool:
            host = handler.headers["Host"].partition(":")[0]
            self.seen.append((f"{host}{handler.path}", handler.headers["Authorization"]))
            if handler.path != "/start":
                return plain(handler)
            handler.send_response(302)
            handler.send_header("Location", self.target)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return True

        monkeypatch.setattr(_Handler, "_is_refused", is_refused)


def test_credentials_go_to_their_host_alone(web: Web, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put(web, "vm.xplane.pb")
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login me password hunter2\nmachine localhost login x password y\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    redirecting = Redirecting(monkeypatch)
    mine = "Basic bWU6aHVudGVyMg=="
    for host, theirs in (("127.0.0.1", mine), ("localhost", None)):
        redirecting.target, redirecting.seen[:] = web.url.replace("127.0.0.1", host) + "/vm.xplane.pb", []
        assert find_runs(f"{web.url}/start")[0].size_bytes == 1000
        assert redirecting.seen == [("127.0.0.1/start", mine), (f"{host}/vm.xplane.pb", theirs)]


def test_a_public_server_leads_to_no_private_address_and_no_other_protocol(web: Web, monkeypatch) -> None:
    """Names stand for addresses here: the server that is asked first counts as a public one."""
    put(web, "vm.xplane.pb")
    monkeypatch.setattr("tfcompare.sources.remote.web._is_private", lambda host: host != "127.0.0.1")
    redirecting = Redirecting(monkeypatch)
    redirecting.target = web.url.replace("127.0.0.1", "localhost") + "/vm.xplane.pb"
    with pytest.raises(NoSuchPlace, match=r"leads to localhost:.*, a private address, and is not followed"):
        find_runs(f"{web.url}/start")
    assert [place for place, _ in redirecting.seen] == ["127.0.0.1/start"]
    for redirecting.target in ("ftp://127.0.0.1/x", "file:///etc/hostname"):
        with pytest.raises(NoSuchPlace):
            find_runs(f"{web.url}/start")


def test_private_addresses() -> None:
    private = ("127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1", "0.0.0.0")
    assert all(map(_is_private, private))
    assert not any(map(_is_private, ("8.8.8.8", "2001:4860:4860::8888")))


def test_what_the_server_refuses(web: Web) -> None:
    for status, said in {
        404: "there is no such file or folder; check the spelling of the URL",
        401: "access is denied; check that the environment holds the right credentials",
        403: "access is denied; check that the environment holds the right credentials",
        500: "the server gives no usable answer (status 500); try again, or copy the logdir here",
    }.items():
        web.statuses["/logs?sig=hunter2"] = status
        with pytest.raises(NoSuchPlace) as caught:
            find_runs(f"{web.url}/logs?sig=hunter2")
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
    assert web_files._SILENCE_S < web_files.ANSWER_S
    monkeypatch.setattr(web_files, "_SILENCE_S", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(NoSuchPlace, match="cannot be reached: no answer within 20 seconds"):
            find_runs(f"http://127.0.0.1:{silent.getsockname()[1]}/vm.xplane.pb")


def test_a_server_that_answers_byte_by_byte_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_files, "ANSWER_S", 0.5)
    given_up = Event()

    def drip() -> None:
        client, _ = slow.accept()
        with client, suppress(OSError):
            client.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not given_up.wait(0.1):
                client.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as slow:
        Thread(target=drip, daemon=True).start()
        with pytest.raises(NoSuchPlace, match="no answer within"):
            find_runs(f"http://127.0.0.1:{slow.getsockname()[1]}/vm.xplane.pb")
        given_up.set()


def test_a_changed_file_is_fetched_anew(web: Web) -> None:
    web.tags["/vm.xplane.pb"] = '"one"'
    put(web, "vm.xplane.pb", PROFILE)
    listed = find_run(f"{web.url}/vm.xplane.pb")
    web.tags["/vm.xplane.pb"] = '"two"'
    assert find_run(f"{web.url}/vm.xplane.pb").stat_key != listed.stat_key
    with pytest.raises(NotFetched, match="has changed since it was listed"):
        tfc.load(listed)


def test_a_file_of_which_nothing_is_told_is_never_taken_for_an_older_one(web: Web, monkeypatch) -> None:
    put(web, "vm.xplane.pb", PROFILE)
    monkeypatch.setattr("tests.sources.remote.servers._Handler.date_time_string", lambda *_: "")
    first, second = find_run(f"{web.url}/vm.xplane.pb"), find_run(f"{web.url}/vm.xplane.pb")
    assert first.stat_key != second.stat_key
    assert tfc.load(first).content_id == tfc.load(second).content_id
