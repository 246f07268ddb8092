"""Whether a browser runs on the machine that serves it: only then may it name paths of that machine."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

FORWARDING = frozenset({"forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip"})
"""Headers of a proxy; so are all that begin with `x-forwarded-`. Behind one, the server's own peer is always local."""


def is_same_machine(headers: Mapping[str, str]) -> bool:
    """Whether a request with these headers comes straight from this machine: loopback `Host`, no proxy's header."""
    by_name = {name.lower(): value for name, value in headers.items()}
    return _names_loopback(by_name.get("host", "")) and not _is_forwarded(by_name)


def _names_loopback(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _is_forwarded(names: Iterable[str]) -> bool:
    return any(name in FORWARDING or name.startswith("x-forwarded-") for name in names)
