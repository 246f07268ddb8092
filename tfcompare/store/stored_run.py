"""A run in a store: listed by the index, opened by its record, found by id or name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path

from tfcompare.errors import NoRuns, TfcompareError
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.logdir.grouping import UnnamedRun
from tfcompare.sources.logdir.naming import Address, display_names
from tfcompare.sources.remote.places import parse
from tfcompare.store.contents import Damaged
from tfcompare.store.records import Row, record_name, row_of
from tfcompare.store.run_store import Store
from tfcompare.text import is_url

_NEAREST = 5


@dataclass(frozen=True, eq=False)
class StoredRun(FoundRun):
    """A run in a store, as the index lists it. `files` is empty until it is `opened`."""

    row: Row
    store: Store
    is_stored = True

    @classmethod
    def of(cls, row: Row, store: Store, name: str = "") -> StoredRun:
        """The run in a row of the store's index."""
        return cls(
            id=row.run,
            name=name or row.run,
            path=parse(row.place).path if is_url(row.place) else Path(row.place),
            files=(),
            problems=row.problems,
            recorded=row.recorded,
            recorded_source=row.recorded_source,
            metadata=row.metadata,
            summary=row.summary,
            content_id=row.content_id,
            row=row,
            store=store,
        )

    def opened(self) -> StoredRun:
        """See `FoundRun`; raises `TfcompareError` if its record is unusable."""
        if not self.is_readable or self.files:
            return self
        which = f"{self.store.shown}/{record_name(self.id)}: the record of {self.id}"
        try:
            record = self.store.record(self.id)
        except Damaged:
            raise TfcompareError(f"{which} is damaged; `tfcompare ingest` again, which writes it anew") from None
        if record is None:
            raise TfcompareError(f"{which} is not there any more; look for runs again")
        row, files = row_of(record), record.files(self.store.address)
        return replace(self, row=row, files=files, summary=row.summary, content_id=row.content_id)

    @property
    def size_bytes(self) -> int:
        """See `FoundRun`."""
        return self.row.size_bytes

    @property
    def is_readable(self) -> bool:
        """See `FoundRun`."""
        return bool(self.row.host_names)

    @property
    def is_remote(self) -> bool:
        """See `FoundRun`."""
        return False

    def version_of(self, table: str) -> str:
        """See `FoundRun`; that of the reader where its record does not say more."""
        return self.row.versions.get(table, self.row.reader)

    @property
    def host_names(self) -> tuple[str, ...]:
        """See `FoundRun`."""
        return self.row.host_names

    @property
    def bytes_at_hand(self) -> int:
        """See `FoundRun`."""
        return self.size_bytes

    @property
    def stat_key(self) -> str:
        """See `FoundRun`."""
        parts = (self.store.address, self.id, self.row.reader, self.row.content_id, self.row.ingested_ns)
        return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def find(self) -> UnnamedRun:
        """The run, and the input for its name."""
        return UnnamedRun(self, Address(self.id, self.row.parts, self.row.own, self.row.in_run_folder))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredRun) and (self.stat_key, self.name) == (other.stat_key, other.name)

    def __hash__(self) -> int:
        return hash((self.stat_key, self.name))


def runs_in(store: Store) -> tuple[list[StoredRun], tuple[str, ...]]:
    """(all runs in the index of a store, without names; messages about the store). Raises `TfcompareError`."""
    store.check()
    rows, messages = store.rows()
    return [StoredRun.of(row, store) for row in rows], messages


def named(runs: Iterable[StoredRun]) -> list[StoredRun]:
    """The runs with unique names, by capture time."""
    ordered = sorted(runs, key=lambda run: (run.recorded, run.id))
    names = display_names([run.find().address for run in ordered])
    return [replace(run, name=name) for run, name in zip(ordered, names, strict=True)]


def one_of(runs: Sequence[StoredRun], wanted: str, store: Store) -> StoredRun:
    """The run with that id, or else with that name or a unique end of its id.

    Raises `TfcompareError`, naming the most similar runs, if there is none, several, or it cannot be read.
    """
    found = [run for run in runs if run.id == wanted] or [run for run in runs if run.name == wanted]
    found = found or [run for run in runs if run.id.endswith(f"/{wanted}")]
    if len(found) > 1:
        listed = ", ".join(run.id for run in found[:_NEAREST]) + (" …" if len(found) > _NEAREST else "")
        raise TfcompareError(f"{store.shown}: {len(found):,} runs go by {wanted!r}; name one of them: {listed}")
    if not found:
        matcher = partial(difflib.SequenceMatcher, None, wanted)
        alike = sorted(runs, key=lambda run: -max(matcher(name).quick_ratio() for name in (run.id, run.name)))
        near = ", ".join(run.id for run in alike[:_NEAREST]) or "none"
        raise TfcompareError(f"{store.shown}: has no run {wanted!r}; the nearest of its {len(runs):,}: {near}")
    if not found[0].is_readable:
        raise NoRuns("; ".join(found[0].problems))
    return found[0]
