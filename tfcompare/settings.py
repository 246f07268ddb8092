"""What the command line and the environment say, read once.

`streamlit run app.py -- PATH…` and `tfcompare serve PATH…` both hand their paths on through `sys.argv`. Where the
command line is silent the environment is asked:

| variable | meaning | default |
|---|---|---|
| `TFCOMPARE_PLACES` | files, run folders, logdirs or parents of them, separated as in `PATH` | the sample runs |
| `TFCOMPARE_CACHE_MB` | memory for the runs that are kept loaded, in megabytes | 1024 |
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfcompare.errors import NoSuchPlace, TfcompareError

PLACES_VARIABLE = "TFCOMPARE_PLACES"
CACHE_VARIABLE = "TFCOMPARE_CACHE_MB"
DEFAULT_CACHE_MB = 1024


@dataclass(frozen=True)
class Settings:
    """What a user asked for at the start. No `places` means: show the sample runs."""

    places: tuple[Path, ...] = ()
    cache_bytes: int = DEFAULT_CACHE_MB * 2**20


def read(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """The settings that the arguments after the script's name and the environment amount to.

    Raises `TfcompareError` for an option or value that it does not know.
    """
    options = [a for a in arguments if a.startswith("-") and a != "--"]
    if options:
        raise TfcompareError(f"unknown option {options[0]!r}; after `app.py --` only paths are understood")
    named = [a for a in arguments if a != "--"] or environment.get(PLACES_VARIABLE, "").split(os.pathsep)
    return Settings(
        places=tuple(Path(p).expanduser() for p in named if p),
        cache_bytes=_cache_bytes(environment.get(CACHE_VARIABLE, "")),
    )


def _cache_bytes(text: str) -> int:
    if not text:
        return DEFAULT_CACHE_MB * 2**20
    if not text.isdecimal() or int(text) == 0:
        raise TfcompareError(f"{CACHE_VARIABLE} must be a whole number of megabytes, at least 1; not {text!r}")
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
