"""Who may name paths of the serving machine: a browser on it, and nobody who comes through a proxy."""

from __future__ import annotations

import pytest

from tfcompare.ui.frame.access import is_same_machine


@pytest.mark.parametrize(
    "host", ["localhost:8501", "127.0.0.1", "127.8.9.1:80", "[::1]:8501", "LOCALHOST", "a.localhost"]
)
def test_loopback_hosts_are_this_machine(host: str) -> None:
    assert is_same_machine({"Host": host})


@pytest.mark.parametrize(
    "host",
    ["", "example.com", "192.168.1.5:8501", "localhost.example.com", "127.0.0.1.example.com", "[::2]", "[", "0.0.0.0"],
)
def test_other_hosts_are_not(host: str) -> None:
    assert not is_same_machine({"Host": host})


@pytest.mark.parametrize("header", ["X-Forwarded-For", "x-forwarded-host", "Forwarded", "Via", "X-Real-Ip"])
def test_what_comes_through_a_proxy_is_not(header: str) -> None:
    assert not is_same_machine({"Host": "localhost:8501", header: "127.0.0.1"})


def test_without_headers_nobody_is() -> None:
    assert not is_same_machine({})
