"""Stands in for programs that can be recorded: speaks the protocol of a profiler service, of a program that trains.

`service.py PORT…` listens at these ports, prints `ready`, and goes on until whoever started it goes away. For each
request it takes as long as is asked for, and stores the profile of a sample run where it is asked to.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

from tests.fuzz.tree import fields
from tests.profiles import SAMPLE_RUNS

DURATION_MS, OPTIONS, FOLDER, SESSION, HOST = 1, 4, 5, 6, 7
"""Numbers of fields of a `ProfileRequest`; that of the start in Unix ns among its options is 8."""


class Service(grpc.GenericRpcHandler):
    """Answers `/tensorflow.ProfilerService/Profile`."""

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        is_known = call.method == "/tensorflow.ProfilerService/Profile"
        return grpc.unary_unary_rpc_method_handler(profile) if is_known else None


def profile(request: bytes, _: grpc.ServicerContext) -> bytes:
    asked = {number: content for number, _, content in fields(request)}
    start_ns = next((content for number, _, content in fields(asked[OPTIONS]) if number == 8), 0)
    time.sleep(max(0, start_ns - time.time_ns()) / 1e9 + asked[DURATION_MS] / 1000)
    folder = Path(asked[FOLDER].decode(), asked[SESSION].decode())
    folder.mkdir(parents=True, exist_ok=True)
    (content,) = SAMPLE_RUNS["filters_16_8"].rglob("*.xplane.pb")
    (folder / f"{asked[HOST].decode().replace(':', '_')}.xplane.pb").write_bytes(content.read_bytes())
    return b""


def main() -> None:
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Service(),))
    for port in sys.argv[1:]:
        server.add_insecure_port(f"localhost:{port}")
    server.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
