"""The settings of a process, each declared once: its environment variable, option, unit, default and meaning.

`streamlit run app.py -- PATH…` and `tfcompare serve PATH…` both pass their paths and options through `sys.argv`.
Options take precedence over environment variables.
"""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import Meta
from platformdirs import user_cache_path, user_data_path

from tfcompare.errors import NoSuchPlace, TfcompareError
from tfcompare.text import is_url

OFF = "off"
DEMO_GUIDANCE = (
    "Read the headline: how much faster the candidate is, and how certain that is.",
    "“Why” names the parts of the step and the ops that changed the most.",
    "Then open Op stats for every op, or Timeline for both runs on one time axis.",
)
"""What to look at first, in the terminal and on the Overview of `tfcompare demo`."""

_SEPARATOR = re.escape(os.pathsep)
_URL = rf"[a-zA-Z][a-zA-Z0-9+.-]*://(?:\[[^\]/]*\]|[^/{_SEPARATOR}]*)(?:{_SEPARATOR}\d+(?![^/{_SEPARATOR}]))?(?:/[^{_SEPARATOR}]*)?"
"""Matches a URL in a list of places, up to the next separator other than the one before a port."""


@dataclass(frozen=True)
class ReadLimits:
    """The memory and processor time that reading one file may take in the server, and in commands."""

    memory_bytes: int
    seconds: float


def _variable(field: str) -> str:
    """The environment variable of a field, whose sizes are in megabytes."""
    name = field.removeprefix("is_").removesuffix("_folder").upper()
    return f"TFCOMPARE_{name}".replace("_BYTES", "_MB").replace("_SECONDS", "_S")


def _about(meaning: str, option: str = "") -> Meta:
    return Meta(description=meaning, extra={"option": option})


_Amount = Annotated[int, Meta(ge=1)]
_user_cache = cache(partial(user_cache_path, "tfcompare", appauthor=False))


class Settings(msgspec.Struct, frozen=True, rename=_variable):
    """The settings of one process, each with its meaning, option and default. A place is a URL (text) or a path."""

    places: Annotated[
        tuple[str | Path, ...],
        _about("where to look for runs (paths and URLs), separated as in `PATH`; by default the sample runs", "PATH…"),
    ] = ()
    roots: Annotated[
        tuple[Path, ...],
        _about("folders that contain all paths typed or linked; by default any path may be opened", "--root DIR"),
    ] = ()
    allow_capture: Annotated[bool, _about("`1`: remote browsers may capture as well", "--allow-capture")] = False
    is_demo: Annotated[bool, _about("`1`: open on the Overview, with guidance", "--demo")] = False
    data_folder: Annotated[
        Path, _about("folder for uploads, captures, and the names and tags of runs; by default the user's data folder")
    ] = msgspec.field(default_factory=partial(user_data_path, "tfcompare", appauthor=False))
    cache_bytes: Annotated[_Amount, _about("memory for loaded runs; those being compared always stay")] = 1 << 30
    upload_bytes: Annotated[_Amount, _about("size limit of one upload when expanded")] = 8 << 30
    user_uploads_bytes: Annotated[_Amount, _about("size limit of one user's stored uploads")] = 16 << 30
    uploads_bytes: Annotated[_Amount, _about("size limit of all users' stored uploads")] = 32 << 30
    arriving_bytes: Annotated[_Amount, _about("memory for files being uploaded; one browser gets half")] = 4 << 30
    query_bytes: Annotated[_Amount, _about("memory of `tfcompare query`; a query on the page gets half")] = 1 << 30
    read_bytes: Annotated[_Amount | None, _about("memory for reading one file; `off`: no limits")] = 8 << 30
    read_seconds: Annotated[_Amount, _about("processor time for reading one file, in seconds")] = 300
    fetched_folder: Annotated[Path, _about("folder for copies of remote files; by default the user's cache folder")] = (
        msgspec.field(default_factory=lambda: _user_cache() / "fetched")
    )
    fetched_bytes: Annotated[_Amount, _about("size limit of these copies; evicts the least recently used")] = 4 << 30
    store_url: Annotated[str | None, _about("a store whose runs are listed as well", "--store URL")] = None
    store_folder: Annotated[
        Path | None, _about("folder for the tables of files once read; `off`: none; by default the user's cache folder")
    ] = msgspec.field(default_factory=lambda: _user_cache() / "store")
    store_bytes: Annotated[_Amount, _about("size limit of these tables; evicts the least recently used")] = 4 << 30
    pack_bytes: Annotated[_Amount, _about("size limit of the tables of one host file in a store")] = 4 << 30

    @property
    def read_limits(self) -> ReadLimits | None:
        """The limits on reading a file; None if they are turned off."""
        return None if self.read_bytes is None else ReadLimits(self.read_bytes, self.read_seconds)


FIELDS = msgspec.structs.fields(Settings)
"""Each setting; `encode_name` is its environment variable."""


class _Options(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise TfcompareError(f"{message}; after `app.py --` there are paths, --root DIR, --store URL, --allow-capture")


def read(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """The settings given by the arguments after the script's name, and by the environment.

    Raises `TfcompareError` for an unknown option or invalid value.
    """
    options = _Options(add_help=False, allow_abbrev=False)
    options.add_argument("places", nargs="*", type=_place)
    options.add_argument("--root", dest="roots", action="append", type=_folder)
    options.add_argument("--store", dest="store_url", type=_not_empty)
    options.add_argument("--allow-capture", action="store_true")
    options.add_argument("--demo", dest="is_demo", action="store_true")
    given = vars(options.parse_intermixed_args([word for word in arguments if word != "--"]))
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items() if value}
    return msgspec.structs.replace(from_environment(environment), **values)


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings given by the environment. Raises `TfcompareError` for an invalid value."""
    given = [(field, text) for field in FIELDS if (text := environment.get(field.encode_name))]
    return Settings(**{field.name: _value(field, text) for field, text in given})


def _value(field: msgspec.structs.FieldInfo, text: str) -> Any:
    if field.name in ("places", "roots"):
        convert = _place if field.name == "places" else _folder
        return tuple(map(convert, re.findall(rf"{_URL}|[^{_SEPARATOR}]+", text)))
    if text == OFF and field.name in ("read_bytes", "store_folder"):
        return None
    unit = {"bytes": "megabytes", "seconds": "seconds"}.get(field.name.rpartition("_")[2])
    try:
        value = msgspec.convert(text, field.type, strict=False, dec_hook=lambda _, path: _folder(path))
    except msgspec.ValidationError:
        expected = f"a whole number of {unit}, at least 1" if unit else "0 or 1"
        raise TfcompareError(f"{field.encode_name} must be {expected}; not {text!r}") from None
    return value << 20 if unit == "megabytes" else value


def _place(text: str) -> str | Path:
    return text if is_url(text) else _folder(text)


def _folder(text: str) -> Path:
    return Path(_not_empty(text)).expanduser()


def _not_empty(text: str) -> str:
    if not text:
        raise ArgumentTypeError("expected one argument")
    return text


_current: Settings | None = None


def current() -> Settings:
    """The settings of this process: those of `override`, else read once from `sys.argv` and the environment."""
    global _current
    if _current is None:
        _current = read(sys.argv[1:], os.environ)
    return _current


def given_places() -> tuple[str | Path, ...]:
    """The places and roots given to the app; for commands and programs, those in the environment."""
    given = _current or from_environment()
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
