"""The places that a user enters, and their prefixes in the identities of the runs found there."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from tfcompare.errors import NoSuchPlace
from tfcompare.sources.logdir.files import cannot_be_opened, no_status, open_untouched, text_of
from tfcompare.sources.logdir.walk import Identity, identity_of
from tfcompare.sources.remote.places import PACKAGES, RemotePath, RemotePlace, parse
from tfcompare.text import is_url

_NEARLY_A_URL = re.compile(r"([a-z][a-z0-9+]+):/(.*)", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """A file or folder to search. `prefix` is its short name: as many of its last parts as make it unique.

    A place with a `remote` is on another machine: only a listing shows whether it exists and is a folder.
    """

    path: PurePath
    prefix: str
    is_folder: bool
    remote: RemotePlace | None = None

    @property
    def address(self) -> str:
        """What to enter to open it again. It may contain a signature, so do not show it."""
        return str(self.path) if self.remote is None else self.remote.address


def open_places(typed: Iterable[str | Path]) -> list[Place]:
    """Each place once, in the given order. Does not access the network.

    Raises `NoSuchPlace` for a path that is missing or cannot be opened, and for an unsupported URL.
    """
    distinct: dict[Identity | str, Path | RemotePlace] = {}
    for place in typed:
        if is_url(place):
            remote = parse(str(place))
            distinct.setdefault(remote.address, remote)
        else:
            identity, path = _open(place)
            distinct.setdefault(identity, path)
    prefixes = _prefixes([_names(found) for found in distinct.values()])
    return [
        Place(found.path, prefix, is_folder=True, remote=found)
        if isinstance(found, RemotePlace)
        else Place(found, prefix, found.is_dir())
        for found, prefix in zip(distinct.values(), prefixes, strict=True)
    ]


def lies_in(path: PurePath, place: PurePath) -> bool:
    """Whether a run or place is at or below another one, with links resolved."""
    ours, theirs = (p.expanduser().resolve() if isinstance(p, Path) else p for p in (path, place))
    return isinstance(ours, RemotePath) == isinstance(theirs, RemotePath) and ours.is_relative_to(theirs)


def _open(place: str | Path) -> tuple[Identity, Path]:
    shown = text_of(str(place))
    if not shown:
        raise NoSuchPlace("no path was given: name a profile file, a run folder or a logdir")
    path = Path(place)
    try:
        with suppress(RuntimeError):  # no such user: the tilde is part of a folder's name
            path = path.expanduser()
        path = path.resolve() if ".." in path.parts else path.absolute()
        identity = identity_of(path)
        if path.is_dir():
            os.scandir(path).close()
        elif path.is_file():
            os.close(open_untouched(path))
    except (FileNotFoundError, NotADirectoryError) as error:
        if (match := _NEARLY_A_URL.fullmatch(shown)) and match[1].lower() in PACKAGES:
            url = f"{match[1]}://{match[2].lstrip('/')}"
            raise NoSuchPlace(f"{shown}: there is no such file or folder; a URL has two slashes: {url}") from None
        if path.is_symlink():
            raise NoSuchPlace(no_status(path, error)) from None
        where = text_of(str(path))
        raise NoSuchPlace(f"{shown}: there is no such file or folder; check the spelling of {where}") from None
    except OSError as error:
        raise NoSuchPlace(cannot_be_opened(place, error)) from error
    except (ValueError, RuntimeError) as error:  # a null character; circular links
        raise NoSuchPlace(f"{shown!r}: is not the name of a file or folder ({error}); check its spelling") from error
    return identity, path


def _names(place: Path | RemotePlace) -> tuple[str, ...]:
    if isinstance(place, RemotePlace):
        return tuple(text_of(part) for part in (place.path.protocol, *place.path.parts[1:]))
    return tuple(text_of(part) for part in place.parts if part != place.anchor)


def _prefixes(places: list[tuple[str, ...]]) -> list[str]:
    """The last parts of each place, as many as needed so that no prefix equals or begins another.

    They depend only on the places, so that a run keeps its identity whatever else is found.
    """
    lengths = [min(1, len(names)) for names in places]
    while True:
        short = [names[len(names) - length :] for names, length in zip(places, lengths, strict=True)]
        count = Counter(short)
        begun = Counter(names[:end] for names in short for end in range(1, len(names)))
        clashes = [
            i
            for i, names in enumerate(short)
            if count[names] > 1 or begun[names] or any(count[names[:end]] for end in range(1, len(names)))
        ]
        longer = [i for i in clashes if lengths[i] < len(places[i])]
        if not longer:
            return ["/".join(names) for names in short]
        for i in longer:
            lengths[i] += 1
