"""Which profiles may be read because a store names them.

Whoever can write to a store decides which paths and URLs its records name. They are opened only below places that the
user gave, or if the store is this machine's own.
"""

from __future__ import annotations

from pathlib import Path, PurePath

from tfcompare import settings
from tfcompare.errors import NoSuchPlace
from tfcompare.settings import PLACES_VARIABLE
from tfcompare.sources.allowed_roots import is_inside
from tfcompare.sources.remote.places import RemotePath, parse
from tfcompare.store.files import is_own
from tfcompare.text import is_url

REMEDY = f"is not below any place given here; name its folder in {PLACES_VARIABLE} if you trust it"


def may_be_read(profile: PurePath, store: str) -> bool:
    """Whether the profile at that path, which the store at that address names, may be opened."""
    if is_own(store):
        return True
    places = settings.given_places()
    if isinstance(profile, RemotePath):
        return any(profile.is_relative_to(path) for path in map(_remote, places) if path is not None)
    return is_inside(Path(profile), [Path(place) for place in places if not is_url(place)])


def _remote(place: str | Path) -> RemotePath | None:
    try:
        return parse(str(place)).path if is_url(place) else None
    except NoSuchPlace:
        return None
