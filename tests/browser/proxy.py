"""A reverse proxy in front of a server: it names, as such proxies do, who asked it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread

HEADER = b"X-Forwarded-For: 10.0.0.7\r\n"


@contextmanager
def in_front_of(port: int) -> Iterator[int]:
    """The port of a proxy before the server on that port, while in the block."""

    class Forward(StreamRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", port)) as server:
                server.sendall(self.rfile.readline() + HEADER)  # the first request of a connection is enough
                answers = Thread(target=_pass_on, args=(server.recv, self.connection))
                answers.start()
                _pass_on(self.rfile.read1, server)  # type: ignore[attr-defined]
                answers.join()

    with ThreadingTCPServer(("127.0.0.1", 0), Forward) as proxy:
        serving = Thread(target=proxy.serve_forever)
        serving.start()
        try:
            yield int(proxy.server_address[1])
        finally:
            proxy.shutdown()
            serving.join()


def _pass_on(receive: Callable[[int], bytes], receiver: socket.socket) -> None:
    """What comes in goes out, until one side hangs up; then both do."""
    with suppress(OSError):
        while data := receive(1 << 16):
            receiver.sendall(data)
    with suppress(OSError):
        receiver.shutdown(socket.SHUT_RDWR)
