"""Settings from the command line and the environment, read once.

`streamlit run app.py -- PATH…` and `tfcompare serve PATH…` both pass their paths and options through `sys.argv`.
Options take precedence over environment variables:

| variable | option | meaning | default |
|---|---|---|---|
| `TFCOMPARE_PLACES` | `PATH…` | where to look for runs (paths and URLs), separated as in `PATH` | the sample runs |
| `TFCOMPARE_ROOTS` | `--root DIR` | folders that contain all paths typed or linked | none: any path |
| `TFCOMPARE_ALLOW_CAPTURE` | `--allow-capture` | `1`: any browser may record, not only one on this machine | `0` |
| `TFCOMPARE_DATA` | | folder for uploads, captures, and the names and tags of runs | the user's data folder |
| `TFCOMPARE_CACHE_MB` | | memory for loaded runs, in megabytes; runs being compared are always retained | 1024 |
| `TFCOMPARE_UPLOAD_MB` | | size limit of one upload when expanded, in megabytes | 8192 |
| `TFCOMPARE_USER_UPLOADS_MB` | | size limit of one user's stored uploads, in megabytes | 16384 |
| `TFCOMPARE_UPLOADS_MB` | | size limit of all users' stored uploads, in megabytes | 32768 |
| `TFCOMPARE_ARRIVING_MB` | | memory for files while browsers upload them, in megabytes; one browser gets half | 4096 |
| `TFCOMPARE_QUERY_MB` | | memory limit of `tfcompare query`, in megabytes; each query on the page gets half | 1024 |
| `TFCOMPARE_READ_MB` | | memory for reading one file, in megabytes; `off`: no limits | 8192 |
| `TFCOMPARE_READ_S` | | processor time for reading one file, in seconds | 300 |
| `TFCOMPARE_FETCHED` | | folder for copies of remote files | the user's cache folder |
| `TFCOMPARE_FETCHED_MB` | | size limit of these copies, in megabytes; least recently used are deleted first | 4096 |
| `TFCOMPARE_STORE_URL` | `--store URL` | a store of runs, listed along with the others | none |
| `TFCOMPARE_STORE` | | folder of the cache of tables; `off` for no cache | the user's cache folder |
| `TFCOMPARE_STORE_MB` | | size limit of this cache, in megabytes; least recently used are deleted first | 4096 |
| `TFCOMPARE_PACK_MB` | | size limit of the tables of one host file in a store, in megabytes | 4096 |
| | `--demo` | open on the Overview, with guidance, as `tfcompare demo` does | |
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfcompare.errors import NoSuchPlace, TfcompareError
from tfcompare.text import is_url

PLACES_VARIABLE = "TFCOMPARE_PLACES"
ROOTS_VARIABLE = "TFCOMPARE_ROOTS"
CAPTURE_VARIABLE = "TFCOMPARE_ALLOW_CAPTURE"
DATA_VARIABLE = "TFCOMPARE_DATA"
CACHE_VARIABLE = "TFCOMPARE_CACHE_MB"
UPLOAD_VARIABLE = "TFCOMPARE_UPLOAD_MB"
USER_UPLOADS_VARIABLE = "TFCOMPARE_USER_UPLOADS_MB"
UPLOADS_VARIABLE = "TFCOMPARE_UPLOADS_MB"
ARRIVING_VARIABLE = "TFCOMPARE_ARRIVING_MB"
QUERY_VARIABLE = "TFCOMPARE_QUERY_MB"
READ_VARIABLE = "TFCOMPARE_READ_MB"
READ_S_VARIABLE = "TFCOMPARE_READ_S"
FETCHED_VARIABLE = "TFCOMPARE_FETCHED"
FETCHED_MB_VARIABLE = "TFCOMPARE_FETCHED_MB"
STORE_VARIABLE = "TFCOMPARE_STORE"
STORE_URL_VARIABLE = "TFCOMPARE_STORE_URL"
STORE_MB_VARIABLE = "TFCOMPARE_STORE_MB"
PACK_VARIABLE = "TFCOMPARE_PACK_MB"
OFF = "off"
DEFAULT_CACHE_MB = 1024
DEFAULT_UPLOAD_MB = 8192
DEFAULT_USER_UPLOADS_MB = 16384
DEFAULT_UPLOADS_MB = 32768
DEFAULT_ARRIVING_MB = 4096
DEFAULT_QUERY_MB = 1024
DEFAULT_READ_MB = 8192
DEFAULT_READ_S = 300
DEFAULT_FETCHED_MB = 4096
DEFAULT_STORE_MB = 4096
DEFAULT_PACK_MB = 4096
_SEPARATOR = re.escape(os.pathsep)
_URL = rf"[a-zA-Z][a-zA-Z0-9+.-]*://(?:\[[^\]/]*\]|[^/{_SEPARATOR}]*)(?:{_SEPARATOR}\d+(?![^/{_SEPARATOR}]))?(?:/[^{_SEPARATOR}]*)?"
"""Matches a URL in a list of places, up to the next separator other than the one before a port."""

ROOT_OPTION = "--root"
CAPTURE_OPTION = "--allow-capture"
STORE_OPTION = "--store"
DEMO_OPTION = "--demo"

DEMO_GUIDANCE = (
    "Read the headline: how much faster the candidate is, and how certain that is.",
    "“Why” names the parts of the step and the ops that changed the most.",
    "Then open Op stats for every op, or Timeline for both runs on one time axis.",
)
"""What to look at first, in the terminal and on the Overview of `tfcompare demo`."""


@dataclass(frozen=True)
class Settings:
    """The settings of one process. Without `places` the sample runs are shown; without `roots` any path may be opened.

    A place is a URL (text) or a path. `data` is None for the user's data folder (see `data_folder`). `store` is a URL
    or path, None if no store was given. `is_demo`: the app opens on the Overview, with guidance.
    """

    places: tuple[str | Path, ...] = ()
    cache_bytes: int = DEFAULT_CACHE_MB * 2**20
    roots: tuple[Path, ...] = ()
    allow_capture: bool = False
    data: Path | None = None
    upload_bytes: int = DEFAULT_UPLOAD_MB * 2**20
    user_uploads_bytes: int = DEFAULT_USER_UPLOADS_MB * 2**20
    uploads_bytes: int = DEFAULT_UPLOADS_MB * 2**20
    store: str | None = None
    is_demo: bool = False

    @property
    def data_folder(self) -> Path:
        """The folder for uploads and captures."""
        if self.data is not None:
            return self.data
        from platformdirs import user_data_path

        return user_data_path("tfcompare", appauthor=False)


@dataclass(frozen=True)
class ReadLimits:
    """The memory and processor time that reading one file may take in the server, and in commands."""

    memory_bytes: int = DEFAULT_READ_MB * 2**20
    seconds: float = DEFAULT_READ_S


def read(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """The settings given by the arguments after the script's name, and by the environment.

    Raises `TfcompareError` for an unknown option or invalid value.
    """
    places, roots, allow_capture, store = _arguments(arguments)
    data = environment.get(DATA_VARIABLE, "")
    for bound in (
        fetched_bytes,
        store_bytes,
        pack_bytes,
        query_bytes,
        arriving_bytes,
        read_limits,
    ):  # validate now; used later
        bound(environment)
    return Settings(
        places=_places(places or _split(environment.get(PLACES_VARIABLE, ""))),
        roots=_paths(roots or environment.get(ROOTS_VARIABLE, "").split(os.pathsep)),
        allow_capture=allow_capture or _flag(CAPTURE_VARIABLE, environment),
        data=Path(data).expanduser() if data else None,
        cache_bytes=_megabytes(CACHE_VARIABLE, environment, DEFAULT_CACHE_MB),
        upload_bytes=_megabytes(UPLOAD_VARIABLE, environment, DEFAULT_UPLOAD_MB),
        user_uploads_bytes=_megabytes(USER_UPLOADS_VARIABLE, environment, DEFAULT_USER_UPLOADS_MB),
        uploads_bytes=_megabytes(UPLOADS_VARIABLE, environment, DEFAULT_UPLOADS_MB),
        store=store or environment.get(STORE_URL_VARIABLE, "") or None,
        is_demo=DEMO_OPTION in arguments,
    )


def _arguments(arguments: Sequence[str]) -> tuple[list[str], list[str], bool, str]:
    """(places, roots, whether any browser may record, the store)."""
    places, roots, allow_capture, store = list[str](), list[str](), False, ""
    left = iter(arguments)
    for word in left:
        if word == CAPTURE_OPTION:
            allow_capture = True
        elif word == ROOT_OPTION or word.startswith(f"{ROOT_OPTION}="):
            roots.append(word.partition("=")[2] if "=" in word else next(left, ""))
            if not roots[-1]:
                raise TfcompareError(f"{ROOT_OPTION} needs a folder behind it")
        elif word == STORE_OPTION or word.startswith(f"{STORE_OPTION}="):
            store = word.partition("=")[2] if "=" in word else next(left, "")
            if not store:
                raise TfcompareError(f"{STORE_OPTION} needs a folder or URL behind it")
        elif word.startswith("-") and word not in ("--", DEMO_OPTION):
            raise TfcompareError(
                f"unknown option {word!r}; after `app.py --` there are paths, {ROOT_OPTION} DIR, {STORE_OPTION} URL "
                f"and {CAPTURE_OPTION}"
            )
        elif word not in ("--", DEMO_OPTION):
            places.append(word)
    return places, roots, allow_capture, store


def fetched_folder(environment: Mapping[str, str]) -> Path:
    """The folder for copies of remote files."""
    if named := environment.get(FETCHED_VARIABLE, ""):
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("tfcompare", appauthor=False) / "fetched"


def fetched_bytes(environment: Mapping[str, str]) -> int:
    """Size limit of the copies of remote files. Raises `TfcompareError` if it is not a number of megabytes."""
    return _megabytes(FETCHED_MB_VARIABLE, environment, DEFAULT_FETCHED_MB)


def store_folder(environment: Mapping[str, str]) -> Path | None:
    """The folder of the local store of tables; None if it is turned off."""
    named = environment.get(STORE_VARIABLE, "")
    if named:
        return None if named == OFF else Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("tfcompare", appauthor=False) / "store"


def store_bytes(environment: Mapping[str, str]) -> int:
    """Size limit of the local store. Raises `TfcompareError` if it is not a number of megabytes."""
    return _megabytes(STORE_MB_VARIABLE, environment, DEFAULT_STORE_MB)


def pack_bytes(environment: Mapping[str, str]) -> int:
    """Size limit of a host file's tables in a store, when expanded, and of a file in a store.

    Raises `TfcompareError` if it is not a number of megabytes.
    """
    return _megabytes(PACK_VARIABLE, environment, DEFAULT_PACK_MB)


def query_bytes(environment: Mapping[str, str]) -> int:
    """Memory limit of one query. Raises `TfcompareError` if it is not a number of megabytes."""
    return _megabytes(QUERY_VARIABLE, environment, DEFAULT_QUERY_MB)


def arriving_bytes(environment: Mapping[str, str]) -> int:
    """Memory limit of files while browsers upload them. Raises `TfcompareError` if it is not a number of megabytes."""
    return _megabytes(ARRIVING_VARIABLE, environment, DEFAULT_ARRIVING_MB)


def read_limits(environment: Mapping[str, str]) -> ReadLimits | None:
    """The limits on reading a file; None if they are turned off.

    Raises `TfcompareError` if they are not numbers of megabytes and seconds.
    """
    if environment.get(READ_VARIABLE, "") == OFF:
        return None
    return ReadLimits(
        _megabytes(READ_VARIABLE, environment, DEFAULT_READ_MB),
        _number(READ_S_VARIABLE, environment, DEFAULT_READ_S, "seconds"),
    )


def _split(text: str) -> list[str]:
    """The places in a list such as `/logs:s3://bucket/logs:http://host:8000/logs`; colons within URLs do not
    separate."""
    return re.findall(rf"{_URL}|[^{_SEPARATOR}]+", text)


def _places(named: Sequence[str]) -> tuple[str | Path, ...]:
    return tuple(p if is_url(p) else Path(p).expanduser() for p in named if p)


def _paths(named: Sequence[str]) -> tuple[Path, ...]:
    return tuple(Path(p).expanduser() for p in named if p)


def _flag(variable: str, environment: Mapping[str, str]) -> bool:
    text = environment.get(variable, "")
    if text not in ("", "0", "1"):
        raise TfcompareError(f"{variable} must be 0 or 1; not {text!r}")
    return text == "1"


def _megabytes(variable: str, environment: Mapping[str, str], default: int) -> int:
    return _number(variable, environment, default, "megabytes") * 2**20


def _number(variable: str, environment: Mapping[str, str], default: int, unit: str) -> int:
    text = environment.get(variable, "")
    if not text:
        return default
    if not text.isdecimal() or int(text) == 0:
        raise TfcompareError(f"{variable} must be a whole number of {unit}, at least 1; not {text!r}")
    return int(text)


_current: Settings | None = None


def current() -> Settings:
    """The settings of this process: those of `override`, else read once from `sys.argv` and the environment."""
    global _current
    if _current is None:
        _current = read(sys.argv[1:], os.environ)
    return _current


def given_places() -> tuple[str | Path, ...]:
    """The places and roots given to the app; for commands and programs, those in the environment."""
    given = _current if _current is not None else read((), os.environ)
    return (*given.places, *given.roots)


@contextmanager
def override(settings: Settings) -> Iterator[Settings]:
    """Make `current()` return `settings` inside a `with` block, for tests."""
    global _current
    before, _current = _current, settings
    try:
        yield settings
    finally:
        _current = before


def app_folder() -> Path:
    """The folder that contains `app.py`, `pages/` and `sample_logs/`: in the wheel, or else the checkout.

    Raises `NoSuchPlace` if neither contains `app.py`.
    """
    package = Path(__file__).parent
    for folder in (package / "_app", package.parent):
        if (folder / "app.py").is_file():
            return folder
    raise NoSuchPlace(f"app.py is neither in {package / '_app'} nor in {package.parent}; install tfcompare again")


def sample_runs() -> Path:
    """The folder of the sample runs, shown if no other place is given."""
    return app_folder() / "sample_logs"
