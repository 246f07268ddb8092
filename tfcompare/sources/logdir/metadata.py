"""What `tfcompare.json` beside a run says, and reading it for many runs.

tfcompare.json    {"commit": "abc123", "branch": "main", "tags": ["nightly"], "machine": "lab-7"}

Files may be written by anybody, so they are checked: their size before they are read, then their content.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath

from tfcompare.errors import TfcompareError
from tfcompare.sources.logdir.files import open_regular
from tfcompare.sources.remote.failures import sentence
from tfcompare.sources.remote.files import Listing, RemoteFile
from tfcompare.sources.remote.places import RemotePlace
from tfcompare.sources.remote.stores import connect
from tfcompare.text import text_of

FILE_NAME = "tfcompare.json"
COMMIT, TAGS = "commit", "tags"
LONGEST_KEY, LONGEST_TAG, MOST_TAGS = 30, 100, 20
LONGEST_VALUE = 8_000
"""`XLA_FLAGS` with the flags recommended for large models has some thousand characters."""
MOST_VALUES = 40
"""`record_environment` writes up to 25, and leaves room for the user's own."""
LARGEST_FILE_BYTES = 500_000
"""Above `MOST_VALUES` of the longest texts in ASCII."""
MOST_S = 30.0
"""Files that have not arrived after this time are left out, so that listing a place does not depend on them."""
_THREADS = 16


@dataclass(frozen=True)
class Metadata:
    """Texts by name, such as `("commit", "abc123")`, sorted by name, and `tags`."""

    values: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()

    def get(self, key: str) -> str:
        """The text of that name; empty if there is none."""
        return dict(self.values).get(key, "")

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything as tags: `commit=abc123`, `nightly`. Long texts are shortened."""
        longest = LONGEST_KEY + 1 + LONGEST_TAG
        texts = [f"{key}={value}" for key, value in self.values]
        return (*(t if len(t) <= longest else f"{t[: longest - 1].rstrip()}…" for t in texts), *self.tags)

    def updated(self, other: Metadata) -> Metadata:
        """These texts and tags and those of `other`, whose texts count where both have one."""
        values = dict(self.values) | dict(other.values)
        return Metadata(tuple(sorted(values.items())), tuple(dict.fromkeys((*self.tags, *other.tags))))


NO_METADATA = Metadata()


def why_invalid(metadata: Metadata) -> str:
    """Why tfcompare does not use these texts, as the end of a sentence; empty if it does."""
    if len(metadata.values) > MOST_VALUES or len(metadata.tags) > MOST_TAGS:
        return f"there are more than {MOST_VALUES} texts or {MOST_TAGS} tags"
    if any(len(pair) != 2 for pair in metadata.values) or len(dict(metadata.values)) < len(metadata.values):
        return "a text has no name of its own"
    if not all(is_plain(key, LONGEST_KEY) and "=" not in key and key != TAGS for key, _ in metadata.values):
        return f"a name is empty, longer than {LONGEST_KEY} characters, not printable, or has a ="
    if not all(is_plain(value, LONGEST_VALUE) for _, value in metadata.values):
        return f"a text is empty, longer than {LONGEST_VALUE:,} characters, or not printable"
    if not all(is_plain(tag, LONGEST_TAG) for tag in metadata.tags):
        return f"a tag is empty, longer than {LONGEST_TAG} characters, or not printable"
    return ""


def parse_options(options: Sequence[str]) -> Metadata:
    """The metadata in command-line options `key=value`; `tags=nightly` is the tag `nightly`.

    Raises `TfcompareError` for anything else.
    """
    found = NO_METADATA
    for option in options:
        key, equals, value = (part.strip() for part in option.partition("="))
        found = found.updated(Metadata(tags=(value,)) if key == TAGS else Metadata(values=((key, value),)))
        why = why_invalid(found) if equals else "there is no ="
        if why:
            raise TfcompareError(f"{option!r}: expected key=value, such as commit=abc123, but {why}")
    return found


def read_metadata(folder: Path) -> tuple[Metadata, str]:
    """(the metadata in the file in `folder`, empty without one; what is wrong with the file, in a sentence)."""
    path = folder / FILE_NAME
    try:
        with open_regular(path) as file:
            return parse_bytes(file.read(LARGEST_FILE_BYTES + 1)), ""
    except FileNotFoundError:
        return NO_METADATA, ""
    except OSError as error:
        why = f"it cannot be read ({error.strerror or error})"
    except ValueError as error:
        why = str(error)
    return NO_METADATA, _explain_unused(path, why)


def _explain_unused(path: PurePath, why: str) -> str:
    """The sentence that a file of metadata is not used, and why."""
    return (
        f"{text_of(str(path))}: expected an object of short texts such as commit, branch and tags, but {why}; it is "
        "not used, so correct or remove it"
    )


def parse_bytes(data: bytes) -> Metadata:
    """The metadata in the bytes of a file. Raises ValueError with the reason if it is none."""
    if len(data) > LARGEST_FILE_BYTES:
        raise ValueError(f"it is larger than {LARGEST_FILE_BYTES:,} bytes")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    return parse_object(content)


def parse_object(content: object) -> Metadata:
    """The metadata in a JSON object. Raises ValueError with the reason if it is none."""
    if not isinstance(content, dict):
        raise ValueError("it is not an object")
    tags = content.get(TAGS, [])
    tags = [tags] if isinstance(tags, str) else tags
    values = {key: value for key, value in content.items() if key != TAGS}
    if not isinstance(tags, list) or not all(isinstance(text, str) for text in (*tags, *values.values())):
        raise ValueError("a value is not a text, or tags is not a list of texts")
    found = Metadata(tuple(sorted(values.items())), tuple(dict.fromkeys(tags)))
    if why := why_invalid(found):
        raise ValueError(why)
    return found


def is_plain(text: str, longest: int) -> bool:
    """Whether a text is printable, not empty, on one line, without needless blanks, and not longer."""
    return 0 < len(text) <= longest and text.isprintable() and text == " ".join(text.split())


def listed_metadata(listing: Listing) -> dict[PurePath, tuple[Metadata, str]]:
    """By folder: the metadata in its file, empty if that is unusable; why it is unusable, in a sentence, or empty."""
    files = [file for file in listing.files if file.path.name == FILE_NAME]
    if not files:
        return {}
    pool = ThreadPoolExecutor(min(_THREADS, len(files)))
    reads = {file: pool.submit(_read, file) for file in files}
    done, _ = wait(reads.values(), timeout=MOST_S)
    pool.shutdown(wait=False, cancel_futures=True)
    late = f"did not arrive within {MOST_S:g} s; look for runs again to read it"
    return {
        file.path.parent: read.result() if read in done else (NO_METADATA, f"{text_of(str(file.path))}: {late}")
        for file, read in reads.items()
    }


def _read(file: RemoteFile) -> tuple[Metadata, str]:
    try:
        content = _content(file)
    except Exception as error:  # drivers raise any exception
        return NO_METADATA, sentence(file.path, error)
    try:
        return parse_bytes(content), ""
    except ValueError as error:
        return NO_METADATA, _explain_unused(file.path, str(error))


@lru_cache(maxsize=1 << 14)
def _content(file: RemoteFile) -> bytes:
    """A version of the file, up to one byte more than is allowed."""
    return connect(RemotePlace(file.path, file.address)).beginning(file, LARGEST_FILE_BYTES + 1)
