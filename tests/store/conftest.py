"""What tests of stores share: a run or two of the test's own, a store that holds them, this machine's cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources.remote.conftest import cache_folder, memory, s3, s3_for_all
from tests.store.runs_in_stores import SMALL, put, small
from tests.store.test_packing import built
from tfcompare import settings
from tfcompare.frames import profile_reader
from tfcompare.frames.host import HostTables
from tfcompare.store import cached_frames

__all__ = ["cache_folder", "memory", "s3", "s3_for_all"]


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were written just now count as settled; nobody named a place."""
    monkeypatch.setattr(cached_frames, "_SETTLED_NS", -1)
    monkeypatch.setattr(settings, "_current", settings.Settings())


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    small("ours", tmp_path / "logs")
    return tmp_path / "logs"


@pytest.fixture
def store(tmp_path: Path, logs: Path) -> Path:
    """A store that holds the runs in `logs`."""
    put([logs], tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture
def given(logs: Path) -> Iterator[None]:
    """The user named the folder of the runs, so profiles in it may be read for a store."""
    with settings.override(settings.Settings(places=(logs,))):
        yield


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This machine's cache, switched on."""
    monkeypatch.setenv("TFCOMPARE_STORE", str(tmp_path / "own"))
    return tmp_path / "own"


@pytest.fixture
def read_anew(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The profiles that were read, not taken from a store."""
    files: list[str] = []
    real = profile_reader.read
    monkeypatch.setattr(profile_reader, "read", lambda path: (files.append(path.name), real(path))[1])
    return files


@pytest.fixture(scope="module")
def host() -> HostTables:
    return built(SMALL["ours"])
