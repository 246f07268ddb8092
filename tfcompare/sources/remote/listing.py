"""What lies at a remote place, listed without downloading any of it."""

from __future__ import annotations

from time import monotonic

from tfcompare.errors import NoSuchPlace
from tfcompare.sources.remote.failures import LISTING_S, TooMuch, sentence
from tfcompare.sources.remote.files import Listing
from tfcompare.sources.remote.places import RemotePlace
from tfcompare.sources.remote.stores import connect, forget_connections


def look(place: RemotePlace) -> Listing:
    """All files at and below `place`, asked for anew.

    Raises `NoSuchPlace`, with a sentence that tells them apart: a missing driver, no access, no such bucket, folder or
    file, a server that cannot be reached or does not answer within 20 seconds.
    """
    started = monotonic()
    try:
        return connect(place).look(place)
    except NoSuchPlace:
        raise
    except Exception as error:  # drivers raise what they like
        forget_connections()
        is_too_much = isinstance(error, TimeoutError) and monotonic() - started >= LISTING_S
        raise NoSuchPlace(sentence(place.path, TooMuch() if is_too_much else error)) from error
