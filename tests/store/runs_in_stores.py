"""Runs to put into stores, and what they hold."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pandas as pd
from fsspec.implementations.local import LocalFileSystem

from tests.profiles import run_path
from tfcompare import schema
from tfcompare.compare import compare
from tfcompare.ingest.ingesting import Summary, ingest
from tfcompare.ingest.pools import Here
from tfcompare.run import Run, load
from tfcompare.store.run_store import Store
from tfcompare.store.stored_run import StoredRun, named, runs_in


def put(places: list[Path | str], store: Path | str) -> Summary:
    """Ingest in this process."""
    return ingest(places, str(store), Here)


def stored(store: Path | str) -> dict[str, StoredRun]:
    """The runs in a store by their names."""
    return {run.name: run for run in named(runs_in(Store(str(store)))[0])}


def copied(name: str, to: Path) -> Path:
    """A run's folder of the test's own."""
    source = run_path(name)
    folder = to / name
    shutil.copytree(source, folder)
    return folder


def assert_same(ours: Run, theirs: Run) -> None:
    """All that both tell is the same, whatever they were loaded from."""
    assert (ours.content_id, ours.host_names, ours.remarks) == (theirs.content_id, theirs.host_names, theirs.remarks)
    for table in schema.TABLES:
        ids = {"run": "run"} if table == "run_info" else {}
        pd.testing.assert_frame_equal(ours.table(table).assign(**ids), theirs.table(table).assign(**ids))


def assert_same_comparison(store: dict[str, StoredRun], names: tuple[str, str]) -> None:
    """Two stored runs compare as the profiles do."""
    ours, theirs = compare(*(load(store[name]) for name in names)), compare(*(load(run_path(name)) for name in names))
    for table in schema.TABLES.values():
        if table.has_diff:
            frames = [comparison.table(table.name) for comparison in (ours, theirs)]
            ids = frames[0].columns.intersection(["baseline", "candidate", "run"])
            pd.testing.assert_frame_equal(*(frame.drop(columns=ids) for frame in frames))
    headlines = [run.headline(run.candidates[0].id) for run in (ours, theirs)]
    assert headlines[0] == headlines[1]


def pipe_to_full_disk(_: LocalFileSystem, path: str, data: bytes) -> None:
    """What `pipe_file` does on a disk that takes ten bytes more."""
    Path(path).write_bytes(data[:10])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
