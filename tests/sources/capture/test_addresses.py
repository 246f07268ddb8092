"""Addresses of profiler services: what is one, what is wrong with others, and who answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.sources.capture.workers import free_ports
from tfcompare.sources.capture.addresses import (
    Address,
    BadAddress,
    DnsName,
    TpuName,
    parse_address,
    parse_addresses,
    silent,
)

SETTINGS_FRAME = b"\0\0\0\x04\0\0\0\0\0"


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("localhost:6009", "localhost", 6009),
        ("grpc://10.0.0.2:8466", "10.0.0.2", 8466),
        ("GRPC://Worker-0.example.com:1", "worker-0.example.com", 1),
        ("[::1]:65535", "[::1]", 65535),
        ("grpc://[fe80::1%eth0]:6009", "[fe80::1%eth0]", 6009),
        ("ps_0:6009", "ps_0", 6009),
    ],
)
def test_an_address_has_a_host_and_a_port(text: str, host: str, port: int) -> None:
    assert parse_address(text) == Address(host, port)


def test_commas_part_addresses_and_each_counts_once() -> None:
    asked = ["localhost:6009, grpc://localhost:6010,", "LOCALHOST:6009\nworker:1"]
    assert [str(address) for address in parse_addresses(asked)] == ["localhost:6009", "localhost:6010", "worker:1"]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("tpu:my-tpu", TpuName("my-tpu", port=8466)),
        ("tpu:my-tpu:6009", TpuName("my-tpu", port=6009)),
        ("tpu:us-central1-a/t", TpuName("t", "us-central1-a")),
        ("tpu:my-project/us-central1-a/t:1", TpuName("t", "us-central1-a", "my-project", 1)),
        ("tpu:example.com:my-project/us-east1-d/t", TpuName("t", "us-east1-d", "example.com:my-project")),
        ("dns:Workers.training.svc:6009", DnsName("workers.training.svc", 6009)),
        ("tpu:6009", Address("tpu", 6009)),
        ("dns:6009", Address("dns", 6009)),
    ],
)
def test_names_stand_for_several_workers(text: str, target: object) -> None:
    assert parse_addresses([text]) == (target,)
    assert str(target) == text.lower()


NO_TPU = (
    "--help",
    "-z/t",
    "--project=x/us-east1-d/t",
    "-x:p/us-east1-d/t",
    "a b",
    "t$(id)",
    "t-",
    "t" * 64,
    "a/b/c/d",
    "/t",
)
REFUSED = {
    "": "no address was given: expected host:port",
    "localhost": "localhost: has no port; expected host:port",
    "[::1]": "has no port",
    "http://localhost:6009": "http:// is no scheme of a profiler service",
    "grpc://grpc://localhost:6009": "grpc:// is no scheme",
    "local host:6009": "'local host:6009': has a space in it",
    "localhost:6009 localhost:6010": "with commas between them",
    "localhost:6009/": "has a path",
    "../etc:6009": "has a path",
    "localhost:": "'' is no port",
    "localhost:0": "'0' is no port",
    "localhost:65536": "'65536' is no port",
    "localhost:00006009": "is no port",
    "localhost:６００９": "is no port",
    ":6009": "'' is no name of a machine",
    "::1:6009": "in brackets, as in [::1]:6009",
    "unix:sock:6009": "'unix:sock' is no name of a machine",
    "user@host:6009": "'user@host' is no name of a machine",
    "-host:6009": "is no name of a machine",
    "host\0:6009": "is no name of a machine",
    "a" * 5000: "a…: has no port",
    "tpu:My_TPU": "tpu:My_TPU: is no name of a TPU; expected tpu:NAME, tpu:ZONE/NAME or tpu:PROJECT/ZONE/NAME",
    **{f"tpu:{name}": "is no name of a TPU" for name in NO_TPU},
    "tpu:t:": "tpu:t:: '' is no port",
    "tpu:t:0": "'0' is no port",
    "tpu:t:http": "'http' is no port",
    "dns:workers": "workers: has no port",
    "dns:workers:0": "'0' is no port",
    "dns:-x:6009": "'-x' is no name of a machine",
    "dns:///workers:6009": "has a path",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_address_is_told_with_the_reason(text: str) -> None:
    with pytest.raises(BadAddress) as refused:
        parse_addresses([text])
    assert REFUSED[text] in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 600


def test_workers_of_one_machine_have_files_of_their_own() -> None:
    names = [parse_address(text).file_name for text in ("localhost:6009", "localhost:6010", "[::1]:6009")]
    assert names == ["localhost_6009.xplane.pb", "localhost_6010.xplane.pb", "__1_6009.xplane.pb"]


@contextmanager
def listening(answer: bytes | None) -> Iterator[Address]:
    """A server that answers whoever connects with these bytes, with None not at all."""
    with socket.create_server(("localhost", 0)) as server:
        taken: list[socket.socket] = []

        def serve() -> None:
            connection, _ = server.accept()
            taken.append(connection)
            if answer is not None:
                connection.recv(100)
                connection.sendall(answer)
                connection.close()

        threading.Thread(target=serve, daemon=True).start()
        yield Address("localhost", server.getsockname()[1])
        for connection in taken:
            connection.close()


def test_a_service_of_grpc_answers() -> None:
    with listening(SETTINGS_FRAME) as address:
        assert silent([address]) == {}


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b""])
def test_other_servers_are_told_apart(answer: bytes) -> None:
    with listening(answer) as address:
        assert "is no profiler service" in silent([address])[address]


def test_whoever_takes_the_connection_and_says_nothing_is_not_waited_for() -> None:
    with listening(None) as address:
        assert "sent nothing for 2 s" in silent([address], 2)[address]


def test_all_are_asked_at_once_and_those_missing_are_named() -> None:
    (port,) = free_ports(1)
    refused, nowhere = Address("localhost", port), Address("no-such-machine.invalid", 6009)
    with listening(SETTINGS_FRAME) as good:
        reasons = silent([good, refused, nowhere])
    assert list(reasons) == [refused, nowhere]
    assert "has no profiler server listening; start it in the program: tf.profiler" in reasons[refused]
    assert "no machine that can be found" in reasons[nowhere]


def test_names_that_dns_cannot_have_are_told() -> None:
    address = Address("a..b", 6009)
    assert "no machine that can be found" in silent([address])[address]
