"""What the command line and the environment say, read once.

`streamlit run app.py -- PATH…` and `tfcompare serve PATH…` both hand their paths and options on through `sys.argv`.
Where the command line is silent the environment is asked:

| variable | option | meaning | default |
|---|---|---|---|
| `TFCOMPARE_PLACES` | `PATH…` | where runs are looked for (paths and URLs), separated as in `PATH` | the sample runs |
| `TFCOMPARE_ROOTS` | `--root DIR` | folders that paths typed or linked must lie in | none: no fence |
| `TFCOMPARE_ALLOW_CAPTURE` | `--allow-capture` | `1`: any browser may record, not only one on this machine | `0` |
| `TFCOMPARE_DATA` | | folder for what is uploaded and captured | the user's data folder |
| `TFCOMPARE_CACHE_MB` | | memory for runs that are kept loaded, in megabytes; those being compared always are | 1024 |
| `TFCOMPARE_UPLOAD_MB` | | the most that one upload may expand to, in megabytes | 8192 |
| `TFCOMPARE_QUERY_MB` | | memory that one query may take, in megabytes | 1024 |
| `TFCOMPARE_FETCHED` | | folder for copies of remote files | the user's cache folder |
| `TFCOMPARE_FETCHED_MB` | | how much these copies may take, in megabytes; those not used for longest go first | 4096 |
| `TFCOMPARE_STORE_URL` | `--store URL` | a store of runs, which are listed among the others | none |
| `TFCOMPARE_STORE` | | folder for what was read, for the next time; `off` keeps none | the user's cache folder |
| `TFCOMPARE_STORE_MB` | | how much they may take, in megabytes; those not used for longest go first | 4096 |
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
QUERY_VARIABLE = "TFCOMPARE_QUERY_MB"
FETCHED_VARIABLE = "TFCOMPARE_FETCHED"
FETCHED_MB_VARIABLE = "TFCOMPARE_FETCHED_MB"
STORE_VARIABLE = "TFCOMPARE_STORE"
STORE_URL_VARIABLE = "TFCOMPARE_STORE_URL"
STORE_MB_VARIABLE = "TFCOMPARE_STORE_MB"
OFF = "off"
DEFAULT_CACHE_MB = 1024
DEFAULT_UPLOAD_MB = 8192
DEFAULT_QUERY_MB = 1024
DEFAULT_FETCHED_MB = 4096
DEFAULT_STORE_MB = 4096
_SEPARATOR = re.escape(os.pathsep)
_URL = rf"[a-zA-Z][a-zA-Z0-9+.-]*://(?:\[[^\]/]*\]|[^/{_SEPARATOR}]*)(?:{_SEPARATOR}\d+(?![^/{_SEPARATOR}]))?(?:/[^{_SEPARATOR}]*)?"
"""In a list of places: up to the separator, but for that before a port."""

ROOT_OPTION = "--root"
CAPTURE_OPTION = "--allow-capture"
STORE_OPTION = "--store"


@dataclass(frozen=True)
class Settings:
    """What a user asked for at the start. No `places` means: show the sample runs; no `roots`: no fence around paths.

    A place is a URL as text, or a path. `data` is None for the user's data folder, which `data_folder` finds; `store`
    is a URL or path, None where no store was named.
    """

    places: tuple[str | Path, ...] = ()
    cache_bytes: int = DEFAULT_CACHE_MB * 2**20
    roots: tuple[Path, ...] = ()
    allow_capture: bool = False
    data: Path | None = None
    upload_bytes: int = DEFAULT_UPLOAD_MB * 2**20
    store: str | None = None

    @property
    def data_folder(self) -> Path:
        """Where uploads and captures are kept."""
        if self.data is not None:
            return self.data
        from platformdirs import user_data_path

        return user_data_path("tfcompare", appauthor=False)


def read(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """The settings that the arguments after the script's name and the environment amount to.

    Raises `TfcompareError` for an option or value that it does not know.
    """
    places, roots, allow_capture, store = _arguments(arguments)
    data = environment.get(DATA_VARIABLE, "")
    for bound in (fetched_bytes, store_bytes, query_bytes):  # asked for later, when it would be too late to complain
        bound(environment)
    return Settings(
        places=_places(places or _split(environment.get(PLACES_VARIABLE, ""))),
        roots=_paths(roots or environment.get(ROOTS_VARIABLE, "").split(os.pathsep)),
        allow_capture=allow_capture or _flag(CAPTURE_VARIABLE, environment),
        data=Path(data).expanduser() if data else None,
        cache_bytes=_megabytes(CACHE_VARIABLE, environment, DEFAULT_CACHE_MB),
        upload_bytes=_megabytes(UPLOAD_VARIABLE, environment, DEFAULT_UPLOAD_MB),
        store=store or environment.get(STORE_URL_VARIABLE, "") or None,
    )


def _arguments(arguments: Sequence[str]) -> tuple[list[str], list[str], bool, str]:
    """(places, roots, whether recording is open to all, the store)."""
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
        elif word.startswith("-") and word != "--":
            raise TfcompareError(
                f"unknown option {word!r}; after `app.py --` there are paths, {ROOT_OPTION} DIR, {STORE_OPTION} URL "
                f"and {CAPTURE_OPTION}"
            )
        elif word != "--":
            places.append(word)
    return places, roots, allow_capture, store


def fetched_folder(environment: Mapping[str, str]) -> Path:
    """Where copies of remote files are kept."""
    if named := environment.get(FETCHED_VARIABLE, ""):
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("tfcompare", appauthor=False) / "fetched"


def fetched_bytes(environment: Mapping[str, str]) -> int:
    """How much they may take; raises `TfcompareError` for a value that is no number of megabytes."""
    return _megabytes(FETCHED_MB_VARIABLE, environment, DEFAULT_FETCHED_MB)


def store_folder(environment: Mapping[str, str]) -> Path | None:
    """Where the tables of profiles that were read are kept; None where none are to be."""
    named = environment.get(STORE_VARIABLE, "")
    if named:
        return None if named == OFF else Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("tfcompare", appauthor=False) / "store"


def store_bytes(environment: Mapping[str, str]) -> int:
    """How much they may take; raises `TfcompareError` for a value that is no number of megabytes."""
    return _megabytes(STORE_MB_VARIABLE, environment, DEFAULT_STORE_MB)


def query_bytes(environment: Mapping[str, str]) -> int:
    """How much memory one query may take; raises `TfcompareError` for a value that is no number of megabytes."""
    return _megabytes(QUERY_VARIABLE, environment, DEFAULT_QUERY_MB)


def _split(text: str) -> list[str]:
    """The places in a list such as `/logs:s3://bucket/logs:http://host:8000/logs`; a URL's colons part nothing."""
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
    text = environment.get(variable, "")
    if not text:
        return default * 2**20
    if not text.isdecimal() or int(text) == 0:
        raise TfcompareError(f"{variable} must be a whole number of megabytes, at least 1; not {text!r}")
    return int(text) * 2**20


_current: Settings | None = None


def current() -> Settings:
    """This process' settings: those of `override`, else read from `sys.argv` and the environment, once."""
    global _current
    if _current is None:
        _current = read(sys.argv[1:], os.environ)
    return _current


@contextmanager
def override(settings: Settings) -> Iterator[Settings]:
    """Let `current()` answer `settings` meanwhile: for tests, where `sys.argv` is the test runner's."""
    global _current
    before, _current = _current, settings
    try:
        yield settings
    finally:
        _current = before


def app_folder() -> Path:
    """The folder that holds `app.py`, `pages/` and `sample_logs/`: inside the wheel, else the checkout.

    Raises `NoSuchPlace` where neither has an `app.py`.
    """
    package = Path(__file__).parent
    for folder in (package / "_app", package.parent):
        if (folder / "app.py").is_file():
            return folder
    raise NoSuchPlace(f"app.py is neither in {package / '_app'} nor in {package.parent}; install tfcompare again")


def sample_runs() -> Path:
    """The folder of the runs that are shown while no other place is named."""
    return app_folder() / "sample_logs"
