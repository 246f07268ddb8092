"""Servers to fetch from, and a cache of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from tests.sources.remote.servers import S3, Web, s3_server, web_server


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where copies go."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TFCOMPARE_FETCHED", str(folder))
    monkeypatch.delenv("TFCOMPARE_FETCHED_MB", raising=False)
    return folder


@pytest.fixture(scope="session")
def s3_for_all() -> Iterator[S3]:
    with s3_server() as server:
        yield server


@pytest.fixture
def s3(s3_for_all: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """A fresh S3 server, named in the environment."""
    s3_for_all.reset()
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    for name, value in s3_for_all.environment.items():
        monkeypatch.setenv(name, value)
    return s3_for_all


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    """A web server on the folder `www`."""
    folder = tmp_path / "www"
    folder.mkdir()
    with web_server(folder) as server:
        yield server


@pytest.fixture
def memory() -> Iterator[fsspec.AbstractFileSystem]:
    """The file system behind `memory://`, empty."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()
