"""Servers on this machine to fetch from: S3 by moto, and a web server that can be made to misbehave."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import boto3
from moto.server import ThreadedMotoServer

from tests.store.runs_in_stores import SMALL, STAMP


class S3:
    """An S3 server, empty of buckets but `bucket`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.environment = {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"} | {
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        self.client = boto3.client(
            "s3", endpoint_url=url, aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1"
        )

    def reset(self) -> None:
        """Forget everything, and let everybody in."""
        self._tell("reset", b"")
        self._tell("reset-auth", b"inf")
        self.client.create_bucket(Bucket="bucket")

    def lock(self) -> None:
        """Let nobody in any more."""
        self._tell("reset-auth", b"0")

    def _tell(self, what: str, body: bytes) -> None:
        headers = {"Content-Type": "text/plain"}
        with urlopen(Request(f"{self.url}/moto-api/{what}", data=body, headers=headers, method="POST")):
            pass

    def put(self, key: str, data: bytes, **options: Any) -> None:
        self.client.put_object(Bucket="bucket", Key=key, Body=data, **options)

    def put_folder(self, folder: Path, key: str, **options: Any) -> None:
        for path in folder.rglob("*"):
            if path.is_file():
                self.put(f"{key}/{path.relative_to(folder)}", path.read_bytes(), **options)


@contextmanager
def s3_server() -> Iterator[S3]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield S3(f"http://{host}:{port}")
    finally:
        server.stop()


class Web(ThreadingHTTPServer):
    """Serves a folder as `python -m http.server` does. `asked` holds method and path of every request.

    `breaks_after`: how many bytes of a file are sent before the connection is closed, one element for each answer, then
    no more breaks. `gate`: after ten bytes, a file is held back until it opens. `trickles`: a few bytes are sent at a
    time. `statuses`: answers to paths; `tags`: their ETags.
    """

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.asked: list[str] = []
        self.breaks_after: list[int] = []
        self.gate: threading.Event | None = None
        self.trickles = False
        self.statuses: dict[str, int] = {}
        self.tags: dict[str, str] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_: Any) -> None:
        """A client that goes away is no news."""


class _Handler(SimpleHTTPRequestHandler):
    server: Web
    tells_sizes = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args, directory=str(args[2].folder))

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.server.asked.append(f"HEAD {self.path}")
        if not self.tells_sizes:
            self.send_error(405)
        elif not self._is_refused():
            super().do_HEAD()

    def do_GET(self) -> None:
        self.server.asked.append(f"GET {self.path}")
        if self._is_refused():
            return
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            super().do_GET()
            return
        content = path.read_bytes()
        self.send_response(200)
        if self.tells_sizes:
            self.send_header("Content-Length", str(len(content)))
        self.send_header("Last-Modified", self.date_time_string(int(path.stat().st_mtime)))
        self.end_headers()
        until = self.server.breaks_after.pop(0) if self.server.breaks_after else len(content)
        if self.server.gate:
            self.wfile.write(content[:10])
            self.server.gate.wait(60)
            content, until = content[10:], until - 10
        if self.server.trickles:
            for at in range(0, 3000, 10):
                self.wfile.write(content[at : at + 10])
                time.sleep(0.01)
        self.wfile.write(content[:until])
        if until < len(content):
            time.sleep(0.2)  # until what was sent has been read: what nobody waits for is lost with the connection

    def end_headers(self) -> None:
        if tag := self.server.tags.get(self.path):
            self.send_header("ETag", tag)
        super().end_headers()

    def _is_refused(self) -> bool:
        status = self.server.statuses.get(self.path)
        if status is None:
            return False
        self.send_error(status)
        return True


@contextmanager
def web_server(folder: Path) -> Iterator[Web]:
    with Web(folder) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def put_runs(memory: Any, *names: str) -> str:
    """The place with these small runs."""
    for name in names:
        memory.pipe_file(f"/logs/{name}/plugins/profile/{STAMP}/vm.xplane.pb", SMALL[name])
    return "memory://logs"
