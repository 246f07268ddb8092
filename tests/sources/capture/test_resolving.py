"""The workers behind the name of a TPU or of a cluster."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from pathlib import Path

import pytest

from tests.sources.capture.test_xprof_process import PATIENCE_S, is_alive
from tfcompare.sources.capture.addresses import Address, parse_addresses, resolve

NODE = {
    "acceleratorConfig": {"topology": "2x2x2", "type": "V4"},
    "acceleratorType": "v4-16",
    "apiVersion": "V2",
    "health": "HEALTHY",
    "name": "projects/my-project/locations/us-central2-b/nodes/my-tpu",
    "networkEndpoints": [
        {"accessConfig": {"externalIp": "203.0.113.7"}, "ipAddress": "10.130.0.12", "port": 8470},
        {"accessConfig": {"externalIp": "203.0.113.8"}, "ipAddress": "10.130.0.9", "port": 8470},
    ],
    "runtimeVersion": "tpu-vm-tf-2.16.1-pod-pjrt",
    "state": "READY",
}
NO_LOGIN = """\
WARNING: Python 3.8 will be unsupported soon.
ERROR: (gcloud.compute.tpus.tpu-vm.describe) You do not currently have an active account selected.
Please run:

  $ gcloud auth login

to obtain new credentials.
"""
NO_ZONE = """\
ERROR: (gcloud.compute.tpus.tpu-vm.describe) Error parsing [tpu].
The [tpu] resource is not properly specified.
Failed to find attribute [zone]. The attribute can be set in the following ways:
- provide the argument `tpu` on the command line with a fully specified name
- provide the argument `--zone` on the command line
- set the property `compute/zone`
"""
NOT_FOUND = """\
ERROR: (gcloud.compute.tpus.tpu-vm.describe) NOT_FOUND: Resource \
'projects/p/locations/us-central2-b/nodes/my-tpu' was not found
"""


class Gcloud:
    """An executable `gcloud`, the first on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prints(self, out: str, err: str = "", status: int = 0) -> None:
        (self.folder / "out").write_text(out)
        (self.folder / "err").write_text(err)
        self.does(f'cat "{self.folder}/out"; cat "{self.folder}/err" >&2; exit {status}')

    def does(self, script: str) -> None:
        program = self.folder / "gcloud"
        program.write_text(f"""#!/bin/sh\nprintf '%s\\n' "$@" >"{self.folder}/words"\n{script}\n""")
        program.chmod(0o755)

    @property
    def words(self) -> list[str]:
        return (self.folder / "words").read_text().splitlines()


@pytest.fixture
def gcloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gcloud:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return Gcloud(tmp_path)


def found(*texts: str) -> list[str]:
    addresses, left_out = resolve(parse_addresses(texts))
    assert left_out == ()
    return [str(address) for address in addresses]


def why_not(text: str, gcloud_s: float = 60) -> str:
    addresses, (left_out,) = resolve(parse_addresses([text]), gcloud_s=gcloud_s)
    assert addresses == ()
    return str(left_out)


def test_a_tpu_has_its_workers_in_their_order_at_the_port_of_the_profiler_or_another(gcloud: Gcloud) -> None:
    gcloud.prints(json.dumps(NODE))
    assert found("tpu:my-tpu") == ["10.130.0.12:8466", "10.130.0.9:8466"]
    described = ["compute", "tpus", "tpu-vm", "describe", "my-tpu", "--format", "json"]
    assert gcloud.words == described
    assert found("tpu:us-central2-b/my-tpu:6009") == ["10.130.0.12:6009", "10.130.0.9:6009"]
    found("tpu:my-project/us-central2-b/my-tpu")
    assert gcloud.words == [*described, "--zone", "us-central2-b", "--project", "my-project"]


def test_an_address_that_is_also_behind_a_name_counts_once(gcloud: Gcloud) -> None:
    gcloud.prints(json.dumps(NODE))
    asked = ("localhost:6009", "tpu:my-tpu", "10.130.0.9:8466", "tpu:us-central2-b/my-tpu")
    assert found(*asked) == ["localhost:6009", "10.130.0.12:8466", "10.130.0.9:8466"]


@pytest.mark.parametrize(
    ("err", "told"),
    [
        (
            NO_LOGIN,
            "You do not currently have an active account selected. Please run: $ gcloud auth login to obtain new "
            "credentials.",
        ),
        (
            NO_ZONE,
            "Error parsing [tpu]. The [tpu] resource is not properly specified. Failed to find attribute [zone].",
        ),
        (NOT_FOUND, NOT_FOUND.partition(") ")[2].strip()),
        ("Killed\n", "Killed"),
    ],
)
def test_what_gcloud_says_is_told(gcloud: Gcloud, err: str, told: str) -> None:
    gcloud.prints("", err, status=1)
    assert why_not("tpu:my-tpu") == f"tpu:my-tpu could not be looked up by gcloud: {told}"
    gcloud.prints("", "ERROR: " + "much of it " * 100, status=1)
    assert why_not("tpu:my-tpu").endswith(" …") and 200 < len(why_not("tpu:my-tpu")) < 300


@pytest.mark.parametrize(
    ("node", "told"),
    [
        (NODE | {"state": "CREATING", "networkEndpoints": [{}]}, "is in state CREATING; wait until it is READY"),
        (NODE | {"networkEndpoints": []}, "has no network endpoint"),
        ({key: NODE[key] for key in NODE if key != "networkEndpoints"}, "has no network endpoint"),
        (NODE | {"networkEndpoints": [{"ipAddress": "--flag"}]}, "gcloud printed something else than a TPU"),
        ([NODE], "gcloud printed something else than a TPU"),
        ({}, "gcloud printed something else than a TPU: '{}'"),
    ],
)
def test_a_tpu_without_workers_is_told(gcloud: Gcloud, node: object, told: str) -> None:
    gcloud.prints(json.dumps(node))
    assert told in why_not("tpu:my-tpu")


def test_without_gcloud_it_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert why_not("tpu:my-tpu") == (
        "tpu:my-tpu needs the Google Cloud CLI, and gcloud cannot be run (No such file or directory); "
        "install it and log in"
    )


def test_a_gcloud_that_hangs_is_ended_with_what_it_started(gcloud: Gcloud) -> None:
    folder = gcloud.folder
    gcloud.does(f'sleep 3600 & echo $! >"{folder}/pid" && mv "{folder}/pid" "{folder}/process"; wait')
    # the second where the machine is too slow to end it in time
    ends = ("gcloud did not answer within 1 s; check the network", "could not be resolved within 4 s; check the name")
    why = why_not("tpu:my-tpu", gcloud_s=1)
    assert any(end in why for end in ends)
    process = gcloud.folder / "process"  # on a machine that is too slow to start it, none is left either
    until = time.monotonic() + PATIENCE_S
    while process.exists() and is_alive(int(process.read_text())) and time.monotonic() < until:
        time.sleep(0.05)
    assert not process.exists() or not is_alive(int(process.read_text()))


class Dns:
    """Stands in for name resolution: the numbers of each name."""

    def __init__(self, **numbers: list[str]) -> None:
        self.numbers = numbers

    def __call__(self, host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        if host not in self.numbers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (number, port, 0, 0))
            if ":" in number
            else (socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, port))
            for number in self.numbers[host]
        ]


def test_a_name_in_dns_has_a_worker_at_each_address(monkeypatch: pytest.MonkeyPatch) -> None:
    for numbers, addresses in (
        (["10.0.0.10", "10.0.0.9", "10.0.0.10"], ["10.0.0.9:6009", "10.0.0.10:6009"]),
        (["fd00::b", "fd00::a"], ["[fd00::a]:6009", "[fd00::b]:6009"]),
        (["fe80::1%eth0"], ["[fe80::1%eth0]:6009"]),
        (["fd00::a", "10.0.0.9"], ["10.0.0.9:6009"]),
    ):
        monkeypatch.setattr("socket.getaddrinfo", Dns(workers=numbers))
        assert found("dns:workers:6009") == addresses


def test_a_name_without_address_is_told_and_the_others_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getaddrinfo", Dns(workers=["10.0.0.9"]))
    addresses, (left_out,) = resolve(parse_addresses(["dns:wrokers:1", "dns:workers:2"]))
    assert addresses == (Address("10.0.0.9", 2),)
    assert str(left_out) == "dns:wrokers:1 has no address in DNS (Name or service not known); check its spelling"
    monkeypatch.undo()
    assert why_not("dns:a..b:6009").startswith("dns:a..b:6009 has no address in DNS ("), "DNS cannot have such a name"


def test_a_name_server_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: over.wait() and [])
    try:
        addresses, (left_out,) = resolve(parse_addresses(["localhost:1", "dns:workers:6009"]), dns_s=0.05)
    finally:
        over.set()
    assert addresses == (Address("localhost", 1),)
    assert str(left_out).startswith("dns:workers:6009 could not be resolved within 0.05 s; check the name")
