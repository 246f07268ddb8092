"""The tasks of a worker: reading a host file into a pack, and making the record of a run with stored packs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from tfcompare.errors import NotFetched, TfcompareError
from tfcompare.frames import HostTables
from tfcompare.frames.profile_reader import ProfileReader
from tfcompare.run import read_by
from tfcompare.schema.host_tables import LATE
from tfcompare.sources.logdir import FoundRun, HostFile, StoredPack
from tfcompare.sources.step_choice import OWN_STEPS
from tfcompare.store.cached_frames import frame_cache, pack_name
from tfcompare.store.file_names import late_pack
from tfcompare.store.files import is_frame_cache
from tfcompare.store.packing import pack
from tfcompare.store.reading import HostReader
from tfcompare.store.records import Record, row_of
from tfcompare.store.run_store import Store
from tfcompare.store.stored_run import StoredRun
from tfcompare.store.version import reader_version
from tfcompare.text import text_of
from tfcompare.views.run_listing import summary_of

UNLIKE = "a worker has another version of tfcompare"
_BRIEF_BYTES = 100_000
"""The maximum size of a brief that is sent back, since a run may have thousands of hosts: the part of a host that the
record of its run needs, without other tables."""


@dataclass(frozen=True)
class HostTask:
    """A host file to read into the store at that address. `reader`: the required version of the reader."""

    run: str
    file: HostFile
    store: str
    reader: str


@dataclass(frozen=True)
class HostOutcome:
    """The name of a host file's first pack and the size of all its packs, or why there are none.

    `is_final`: whether another read would have the same outcome; `brief`: of a new pack, for the run's record.
    """

    pack: str = ""
    pack_bytes: int = 0
    failure: str = ""
    is_final: bool = True
    brief: HostTables | None = None


@dataclass(frozen=True)
class RunTask:
    """A run whose packs are in the store at that address; the packs of hosts with `briefs` need not be opened."""

    record: Record
    store: str
    briefs: tuple[HostTables, ...] = ()


def ingest_host(task: HostTask) -> HostOutcome:
    """Read a host file, and put its frames into the store. Raises `TfcompareError` if writing to the store fails.

    Problems with the file itself are part of the outcome.
    """
    if task.reader != reader_version():
        raise TfcompareError(f"{UNLIKE} ({reader_version()} instead of {task.reader}); install the same one everywhere")
    store = Store(task.store)
    cache = frame_cache() if is_frame_cache(task.store) else None
    file = task.file
    found = FoundRun("", "", file.where, (file,), (), datetime.now(UTC), "")
    reader = HostReader(ProfileReader(found, OWN_STEPS), cache)
    try:
        frames = reader.read(file)
    except NotFetched as error:
        return HostOutcome(failure=str(error), is_final=False)
    except TfcompareError as error:
        return HostOutcome(failure=str(error))
    except MemoryError:
        return HostOutcome(failure=f"{text_of(str(file.where))}: takes more memory than there is here", is_final=False)
    if cache is not None:
        cache.flush()
    name = pack_name(file.host, frames.digest)
    assert frames.late is not None  # readers set it
    late_bytes = 0
    for group in LATE:
        late = late_pack(name, group)
        there = store.files.info(late)
        late_bytes += _put(store, late, replace(frames, tables=frames.late[group])) if not there else there.size_bytes
    if (there := store.files.info(name)) is not None:  # written last: where it is, the others are
        return HostOutcome(name, late_bytes + there.size_bytes)
    steps = frames.table("steps")
    brief = replace(frames, tables={"steps": steps}, late=None) if steps.nbytes <= _BRIEF_BYTES else None
    return HostOutcome(name, late_bytes + _put(store, name, frames), brief=brief)


def _put(store: Store, name: str, tables: HostTables) -> int:
    """Write a pack; returns its size."""
    data = pack(tables)
    store.files.write(name, data)
    return len(data)


def ingest_run(task: RunTask) -> None:
    """Make the record of a run from the packs of its hosts, and put it into the store.

    Raises `TfcompareError` if reading or writing the store fails.
    """
    store, record = Store(task.store), task.record
    if record.readable:
        found = replace(StoredRun.of(replace(row_of(record), summary=None), store), files=record.files(store.address))
        try:
            run = read_by(_Briefed(found, task.briefs), found)
        except TfcompareError as error:  # only exceptions of this class can be sent between processes
            raise TfcompareError(str(error)) from None
        recorded, source = run.info.start_time, run.info.start_time_source
        about = summary_of(run)
        record = replace(record, content_id=run.content_id, summary=about, recorded=recorded, recorded_source=source)
    store.put(record)


class _Briefed(HostReader):
    """Opens only the packs of hosts without a brief."""

    def __init__(self, found: FoundRun, briefs: tuple[HostTables, ...]) -> None:
        super().__init__(ProfileReader(found, OWN_STEPS), frame_cache())
        self._briefs = {brief.host: brief for brief in briefs}

    def read(self, file: HostFile) -> HostTables:
        """See `HostReader`."""
        return self._briefs.get(file.host) or super().read(file)

    def may_be_read(self, file: HostFile, stored: StoredPack) -> bool:  # noqa: ARG002
        """See `HostReader`: the files are those below the places that are ingested."""
        return True
