"""The places that a user names, and what each is called in the identities of the runs found there."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tfcompare.errors import NoSuchPlace
from tfcompare.logdir.files import cannot_be_opened, no_status, open_untouched, text_of
from tfcompare.logdir.walk import Identity, identity_of

_URL = re.compile(r"[a-z][a-z0-9+]+:/", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """A file or folder to look into. `prefix` is its short name: its last parts, as many as tell it apart."""

    path: Path
    prefix: str
    is_folder: bool


def open_places(typed: Iterable[str | Path]) -> list[Place]:
    """Each place once, in the order given. Raises `NoSuchPlace` for one that is missing or cannot be opened."""
    distinct: dict[Identity, Path] = {}
    for place in typed:
        identity, path = _open(place)
        distinct.setdefault(identity, path)
    prefixes = _prefixes([_names(path) for path in distinct.values()])
    return [Place(path, prefix, path.is_dir()) for path, prefix in zip(distinct.values(), prefixes, strict=True)]


def _open(place: str | Path) -> tuple[Identity, Path]:
    shown = text_of(str(place))
    if not shown:
        raise NoSuchPlace("no path was given: name a profile file, a run folder or a logdir")
    path = Path(place)
    try:
        path = _absolute(path)
        identity = identity_of(path)
        if path.is_dir():
            os.scandir(path).close()
        elif path.is_file():
            os.close(open_untouched(path))
    except (FileNotFoundError, NotADirectoryError) as error:
        if _URL.match(shown):
            raise NoSuchPlace(f"{shown}: tfcompare reads local files: copy the logdir here and name the copy") from None
        if path.is_symlink():
            raise NoSuchPlace(no_status(path, error)) from None
        where = text_of(str(path))
        raise NoSuchPlace(f"{shown}: there is no such file or folder; check the spelling of {where}") from None
    except OSError as error:
        raise NoSuchPlace(cannot_be_opened(place, error)) from error
    except (ValueError, RuntimeError) as error:  # a null character; links in a circle
        raise NoSuchPlace(f"{shown!r}: is not the name of a file or folder ({error}); check its spelling") from error
    return identity, path


def _absolute(path: Path) -> Path:
    with suppress(RuntimeError):  # no such user: then the tilde is a folder's
        path = path.expanduser()
    return path.resolve() if ".." in path.parts else path.absolute()


def _names(path: Path) -> tuple[str, ...]:
    return tuple(text_of(part) for part in path.parts if part != path.anchor)


def _prefixes(places: list[tuple[str, ...]]) -> list[str]:
    """The last parts of each place, enough that none is another's or begins another's.

    Depends on nothing but the places, so that a run keeps its identity whatever else is found.
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
