"""What a browser may do on this server: name paths of its machine, and which."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from tfcompare.errors import TfcompareError
from tfcompare.settings import Settings
from tfcompare.sources.fence import fenced, is_inside
from tfcompare.sources.logdir import FoundRun

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


def may_type(settings: Settings, headers: Mapping[str, str]) -> bool:
    """Whether a request with these headers may name paths: from this machine any, from elsewhere those under roots."""
    return bool(settings.roots) or is_same_machine(headers)


def checked(settings: Settings, place: str) -> str:
    """`place`, its links followed where there are roots; raises `Outside` where it is not below one of them."""
    return str(fenced(place, settings.roots)) if settings.roots else place


def opened(settings: Settings, named: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """(the places that may be looked into, why the others may not)."""
    places, refused = [], []
    for place in named:
        try:
            places.append(checked(settings, place))
        except TfcompareError as error:
            refused.append(str(error))
    return tuple(places), refused


def without_ways_out(settings: Settings, typed: Sequence[str], found: Sequence[FoundRun]) -> tuple[FoundRun, ...]:
    """The runs less those that a typed place leads to by a link out of the roots."""
    if not settings.roots or not typed:
        return tuple(found)
    given = [place.expanduser().absolute() for place in settings.places if isinstance(place, Path)]

    def is_allowed(run: FoundRun) -> bool:
        if run.is_stored or run.is_remote:  # no store, and where roots are no URL, is typed
            return True
        if any(run.path.is_relative_to(place) for place in given):
            return True
        return all(is_inside(Path(path), settings.roots) for path in (run.path, *(file.path for file in run.files)))

    named = [Path(place) for place in typed]
    return tuple(run for run in found if is_allowed(run) or not any(run.path.is_relative_to(p) for p in named))
