"""The user's names, tags and hidden marks of runs: one JSON file in the data folder, never in a logdir.

    <data>/annotations.json    by content id, so that they follow a run that is moved, copied or uploaded again

Copies of the file may come from anywhere, so its content is checked as it is read. One server writes it at a time.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from tempfile import mkstemp
from threading import Lock

from tfcompare.errors import TfcompareError
from tfcompare.sources.folder_permissions import make_private, why_not_private
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.logdir.metadata import is_plain
from tfcompare.store.contents import Damaged, from_json, to_json
from tfcompare.text import text_of
from tfcompare.units import format_bytes

LONGEST_NAME, LONGEST_TAG, MOST_TAGS = 80, 30, 10
_FILE = "annotations.json"
_MOST_RUNS = 10_000
_MOST_BYTES = 8 << 20
_MOST_STAT_KEYS = 16
_DIGEST = re.compile("[0-9a-f]{32}")
_writing = Lock()


@dataclass(frozen=True)
class Annotation:
    """What the user said of a run. An empty `name` leaves the run the name that its path gives it.

    `stat_keys`: `FoundRun.stat_key` of the run's files where they were seen, the latest last. They tell the run
    before it is read.
    """

    name: str = ""
    tags: tuple[str, ...] = ()
    is_hidden: bool = False
    stat_keys: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing."""
        return not (self.name or self.tags or self.is_hidden)


@dataclass(frozen=True)
class Annotations:
    """The content of the file: annotations by content id."""

    runs: Mapping[str, Annotation]


def path_in(data: Path) -> Path:
    """The file in a data folder."""
    return data / _FILE


def read_annotations(data: Path) -> Mapping[str, Annotation]:
    """The annotations by content id; empty if there are none.

    Raises `TfcompareError` if the file is damaged, cannot be read, or if other users can write to its folder.
    """
    path = path_in(data)
    try:
        status = path.stat()
        if why := why_not_private(data):
            raise TfcompareError(f"{text_of(str(data))}: names and tags of runs are not used, since {why}")
        return _read(path, status.st_mtime_ns, status.st_size, status.st_ino)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise TfcompareError(f"{text_of(str(path))}: cannot be read: {error.strerror or error}") from None


def write_annotation(data: Path, content_id: str, annotation: Annotation) -> None:
    """Set the annotation of a run; an empty one removes it. The others stay as they are.

    Raises `TfcompareError` as `read_annotations` does, if the annotation is invalid or there are too many, and if
    writing fails.
    """
    with _writing:
        runs = {key: each for key, each in read_annotations(data).items() if key != content_id}
        if not annotation.is_empty:
            runs[content_id] = replace(annotation, stat_keys=annotation.stat_keys[-_MOST_STAT_KEYS:])
        try:
            _check(runs)
        except Damaged as error:
            raise TfcompareError(f"The change cannot be saved: {error}") from None
        try:
            make_private(data)
            _replace(path_in(data), to_json(Annotations(runs)))
        except OSError as error:
            why = error.strerror or error
            raise TfcompareError(f"{text_of(str(path_in(data)))}: cannot be written: {why}") from None


def annotations_by_run(
    found: Sequence[FoundRun], annotations: Mapping[str, Annotation], content_ids: Mapping[str, str]
) -> dict[str, Annotation]:
    """The annotations of found runs, by run id. `content_ids`: of runs that were read, by `FoundRun.stat_key`."""
    if not annotations:
        return {}
    seen = {key: content_id for content_id, each in annotations.items() for key in each.stat_keys}
    seen |= content_ids
    ids = {run.id: run.content_id or seen.get(run.stat_key, "") for run in found}
    return {run_id: annotations[content_id] for run_id, content_id in ids.items() if content_id in annotations}


def renamed(found: Sequence[FoundRun], annotations: Mapping[str, Annotation]) -> tuple[FoundRun, ...]:
    """The runs with the user's names. A name that another run has is followed by the run's own: `name (own name)`."""
    names = {run_id: each.name for run_id, each in annotations.items() if each.name}
    taken = {run.name for run in found if run.id not in names}
    runs = []
    for run in found:
        if wanted := names.get(run.id):
            choices = (wanted, f"{wanted} ({run.name})", f"{wanted} ({run.id})")
            run = run.named(next((name for name in choices if name not in taken), run.id))
            taken.add(run.name)
        runs.append(run)
    return tuple(runs)


@lru_cache(maxsize=4)
def _read(path: Path, modified_ns: int, size_bytes: int, inode: int) -> Mapping[str, Annotation]:
    del modified_ns, inode  # they only identify the content
    try:
        if size_bytes > _MOST_BYTES:
            raise Damaged(f"is larger than {format_bytes(_MOST_BYTES)}")
        content = from_json(data := path.read_bytes(), Annotations)
        if json.loads(to_json(content)) != json.loads(data):  # those of a later version would be lost
            raise Damaged("it has other fields")
        _check(content.runs)
    except Damaged as error:
        raise TfcompareError(
            f"{text_of(str(path))}: expected names and tags of runs as tfcompare writes them, but {error}; names and "
            "tags are not shown and cannot be changed until the file is repaired, moved or deleted"
        ) from None
    return content.runs


def _check(runs: Mapping[str, Annotation]) -> None:
    """Raises `Damaged` for annotations that are larger than tfcompare makes them, or not printable."""
    if len(runs) > _MOST_RUNS:
        raise Damaged(f"there are more than {_MOST_RUNS:,} annotated runs")
    for content_id, each in runs.items():
        keys = (content_id, *each.stat_keys)
        if len(keys) > _MOST_STAT_KEYS + 1 or not all(map(_DIGEST.fullmatch, keys)):
            raise Damaged(f"{text_of(content_id[:40])!r} does not identify a run")
        if each.name and not is_plain(each.name, LONGEST_NAME):
            raise Damaged(f"a name has more than {LONGEST_NAME} characters or is not printable")
        if len(each.tags) > MOST_TAGS or not all(is_plain(tag, LONGEST_TAG) for tag in each.tags):
            raise Damaged(f"a run has more than {MOST_TAGS} tags, or one of more than {LONGEST_TAG} characters")


def _replace(path: Path, data: bytes) -> None:
    """Write a file completely or not at all."""
    descriptor, name = mkstemp(prefix=f".{_FILE}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
