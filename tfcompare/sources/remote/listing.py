"""Lists a remote place without downloading anything."""

from __future__ import annotations

from time import monotonic

from tfcompare.errors import NoSuchPlace
from tfcompare.sources.remote.failures import LISTING_S, TooMuch, sentence
from tfcompare.sources.remote.files import Listing
from tfcompare.sources.remote.places import RemotePlace
from tfcompare.sources.remote.stores import connect, forget_connections


def look(place: RemotePlace) -> Listing:
    """All files at and below `place`, in a new listing.

    Raises `NoSuchPlace` with the specific reason: a missing driver, no access, no such bucket, folder or file, or a
    server that is unreachable or does not respond within 20 seconds.
    """
    started = monotonic()
    try:
        return connect(place).look(place)
    except NoSuchPlace:
        raise
    except Exception as error:  # drivers raise any exception
        forget_connections()
        is_too_much = isinstance(error, TimeoutError) and monotonic() - started >= LISTING_S
        raise NoSuchPlace(sentence(place.path, TooMuch() if is_too_much else error)) from error
