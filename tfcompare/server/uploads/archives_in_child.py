"""Lists and unpacks archives in child processes, which end if an archive takes more memory or time than it may."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tfcompare.child import Children, Exceeded
from tfcompare.server.uploads import archives
from tfcompare.server.uploads.archives import Member
from tfcompare.server.uploads.limits import BadUpload, Limits

PROCESSES = Children(2)
"""For all sessions of a server; further archives wait for one of them."""

_COUNTER_DIGITS = 20


def members(upload: str, path: Path, limits: Limits, meanwhile: Callable[[], object]) -> list[Member]:
    """The files in the archive at `path`, fully checked. `meanwhile` is called several times a second.

    Raises `BadUpload` for an archive that is refused, cannot be read, or takes too much memory or time.
    """
    found: list[Member] = _call(_members, upload, path, limits, meanwhile=meanwhile)
    return found


def unpack(upload: str, path: Path, limits: Limits, folder: Path, counter: Path, progress: archives.OnBytes) -> None:
    """Write the profiles of an archive below `folder`, which must exist; the child counts their bytes in `counter`.

    Raises as `members` does, and `OSError` if writing to disk fails.
    """
    done = 0

    def advance() -> None:
        nonlocal done
        before, done = done, _count(counter, done)
        progress(done - before)

    _call(_unpack, upload, path, limits, folder, counter, meanwhile=advance)
    advance()


def _call(
    function: Callable[..., Any], upload: str, path: Path, limits: Limits, *rest: Path, meanwhile: Callable[[], object]
) -> Any:
    try:
        return PROCESSES.call(
            function, upload, path, limits, *rest,
            memory_bytes=limits.memory_bytes, seconds=limits.seconds_allowed(path.stat().st_size), meanwhile=meanwhile,
        )  # fmt: skip
    except Exceeded as exceeded:
        raise BadUpload(
            f"{upload}: examining the archive {exceeded}; it was not stored: pack the profiles anew as a plain zip or "
            "tar.gz, or upload fewer at a time"
        ) from exceeded


def _members(upload: str, path: Path, limits: Limits) -> list[Member]:
    with path.open("rb") as file:
        return archives.list_archive(upload, file, limits)


def _unpack(upload: str, path: Path, limits: Limits, folder: Path, counter: Path) -> None:
    done = 0
    with path.open("rb") as file, counter.open("wb", buffering=0) as out:

        def count(more: int) -> None:
            nonlocal done
            done += more
            out.seek(0)
            out.write(b"%0*d" % (_COUNTER_DIGITS, done))

        archives.unpack(upload, file, limits, folder, count)


def _count(counter: Path, before: int) -> int:
    """The number of bytes in `counter`; `before` if there is none yet."""
    with suppress(OSError, ValueError):
        return int(counter.read_bytes()[:_COUNTER_DIGITS])
    return before
