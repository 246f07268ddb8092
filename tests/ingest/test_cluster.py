"""A real scheduler of Dask with two worker processes, a store on a real S3 server, and a worker that is killed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.profiles import ROOT, SAMPLE_RUNS
from tests.sources.remote.conftest import cache_folder, s3, s3_for_all
from tests.sources.remote.servers import S3
from tests.store.runs_in_stores import assert_same, stored
from tfcompare.errors import TfcompareError
from tfcompare.ingest import cluster
from tfcompare.ingest.cluster import PER_THREAD, Cluster
from tfcompare.ingest.ingesting import Ingest, ingest
from tfcompare.run import load

__all__ = ["cache_folder", "s3", "s3_for_all"]

pytest.importorskip("distributed", reason="CLUSTER TESTS SKIPPED: pip install 'tfcompare[cluster]'")

OURS = "filters_16_8"


@dataclass
class Dask:
    """A scheduler and its workers."""

    address: str
    workers: list[subprocess.Popen[bytes]]


@pytest.fixture
def dask(tmp_path: Path, s3: S3) -> Iterator[Dask]:
    """A scheduler on a free port of this machine, with two workers that find the S3 server."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    environment = os.environ | s3.environment | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> subprocess.Popen[bytes]:
        with (tmp_path / f"dask{len(started)}.log").open("wb") as log:
            command = [sys.executable, "-m", "dask", *words, "--no-dashboard"]
            started.append(subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log))
        return started[-1]

    start("scheduler", "--host", "127.0.0.1", "--port", str(port))
    workers = [
        start("worker", address, "--nthreads", "1", "--no-nanny", "--local-directory", str(tmp_path / f"w{i}"))
        for i in range(2)
    ]
    try:
        yield Dask(address, workers)
    finally:
        for process in started[::-1]:
            process.kill()
            process.wait()


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_loses_a_worker_in_the_middle_loses_no_file(
    dask: Dask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "logs" / "run"
    folder.mkdir(parents=True)
    source = next(SAMPLE_RUNS[OURS].rglob("*.xplane.pb"))
    for host in range(5):
        shutil.copy(source, folder / f"{host}.xplane.pb")

    def kill_one(done: Ingest) -> None:
        if done.files_done == 1:
            dask.workers[0].kill()

    watching = Cluster(dask.address)
    _wait_for_width(watching, 2 * PER_THREAD, monkeypatch)
    summary = ingest([folder], "s3://bucket/store", lambda: Cluster(dask.address), kill_one)
    assert (summary.runs_ingested, summary.host_files, summary.failures) == (1, 5, [])
    (run,) = stored("s3://bucket/store").values()
    assert_same(load(run), load(folder))
    _wait_for_width(watching, PER_THREAD, monkeypatch)
    watching.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "reader_version", lambda: "another")
        with pytest.raises(TfcompareError, match="1 of 1 workers have another version of tfcompare, such as tcp://"):
            Cluster(dask.address)
        patch.setattr(cluster, "_CONNECT_S", 1)
        dask.workers[1].kill()
        dask.workers[1].wait()
        with pytest.raises(TfcompareError, match=r"has no worker; start one with `dask worker`|do not answer"):
            Cluster(dask.address)


def _wait_for_width(watching: Cluster, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until as many tasks are to be in flight as the workers that are there now take."""
    monkeypatch.setattr(cluster, "_COUNT_S", 0)
    deadline = time.monotonic() + 60
    while watching.width != width:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("tcp://127.0.0.1:9", "tcp://127.0.0.1:9: no scheduler of Dask answers there; check the address"),
        ("carrier-pigeon://roof", "carrier-pigeon://roof: is no address of a scheduler"),
    ],
)
def test_a_scheduler_that_is_not_there_is_told(
    address: str, sentence: str, tfcompare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_CONNECT_S", 1)
    words = ("ingest", str(SAMPLE_RUNS[OURS]), "--store", str(tmp_path / "store"), "--scheduler", address)
    status, _, err = tfcompare(*words)
    assert (status, sentence in err, err.count("\n")) == (2, True, 1)


def test_without_distributed_it_is_told_how_to_get_it(
    tfcompare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    words = ("ingest", str(SAMPLE_RUNS[OURS]), "--store", str(tmp_path / "store"), "--scheduler", "tcp://127.0.0.1:9")
    assert tfcompare(*words)[::2] == (
        2,
        "tfcompare: --scheduler needs the package distributed, which is not installed: "
        "pip install 'tfcompare[cluster]'\n",
    )
