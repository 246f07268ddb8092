"""Access control: whether a browser may enter paths of the server's machine, and which paths."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from tfcompare.errors import NoSuchPlace, TfcompareError
from tfcompare.settings import Settings
from tfcompare.sources.allowed_roots import is_run_inside, resolve_inside
from tfcompare.sources.logdir import FoundRun

FORWARDING = frozenset({"forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip"})
"""Headers that proxies add, as are all that begin with `x-forwarded-`. Behind a proxy the peer is always local."""


def is_same_machine(headers: Mapping[str, str]) -> bool:
    """Whether a request comes directly from this machine: its `Host` is loopback, and no proxy added a header."""
    by_name = {name.lower(): value for name, value in headers.items()}
    return _names_loopback(by_name.get("host", "")) and not any(
        name in FORWARDING or name.startswith("x-forwarded-") for name in by_name
    )


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


def may_type(settings: Settings, headers: Mapping[str, str]) -> bool:
    """Whether a request with these headers may enter paths: any from this machine, else only paths below the roots."""
    return bool(settings.roots) or is_same_machine(headers)


def checked(settings: Settings, place: str) -> str:
    """`place`, with links resolved if roots are set.

    Raises `Outside` if it is not below a root, `NoSuchPlace` if a link cannot contain it.
    """
    return linkable(str(resolve_inside(place, settings.roots)) if settings.roots else place)


def linkable(place: str) -> str:
    """`place`, if it is text that a URL can contain; raises `NoSuchPlace` for a path that is not UTF-8."""
    try:
        place.encode()
    except UnicodeEncodeError:
        raise NoSuchPlace(
            f"{place}: cannot be opened here, since a link cannot contain a name that is not UTF-8; rename the folder, "
            "or name it when tfcompare is started"
        ) from None
    return place


def opened(settings: Settings, named: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """(the places that may be searched, why the others may not)."""
    places, refused = [], []
    for place in named:
        try:
            places.append(checked(settings, place))
        except TfcompareError as error:
            refused.append(str(error))
    return tuple(places), refused


def without_ways_out(settings: Settings, typed: Sequence[str], found: Sequence[FoundRun]) -> tuple[FoundRun, ...]:
    """The runs without those outside the roots that a typed place reaches through a link."""
    if not settings.roots or not typed:
        return tuple(found)
    given = [place.expanduser().absolute() for place in settings.places if isinstance(place, Path)]
    named = [Path(place) for place in typed]

    def is_allowed(run: FoundRun) -> bool:
        if run.is_stored or run.is_remote:  # stored and remote runs do not come from typed places
            return True
        if any(run.path.is_relative_to(place) for place in given):
            return True
        return is_run_inside(run, settings.roots)

    return tuple(run for run in found if is_allowed(run) or not any(run.path.is_relative_to(p) for p in named))
