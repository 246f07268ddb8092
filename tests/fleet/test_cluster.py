"""The workers of a Dask cluster: threads of this process, and thoroughly processes, one of which is killed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.store.runs_in_stores import SMALL, assert_same, stored
from tfcompare.errors import TfcompareError
from tfcompare.fleet import cluster
from tfcompare.fleet.cluster import PER_THREAD, Cluster
from tfcompare.fleet.ingesting import Ingest, ingest
from tfcompare.run import load

distributed = pytest.importorskip("distributed", reason="CLUSTER TESTS SKIPPED: pip install 'tfcompare[cluster]'")

TWO_WORKERS = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of five hosts."""
    folder = tmp_path / "logs" / "run"
    folder.mkdir(parents=True)
    for host in range(5):
        (folder / f"{host}.xplane.pb").write_bytes(SMALL["ours"])
    return folder


@pytest.mark.filterwarnings("ignore")
def test_workers_of_a_cluster_ingest_if_they_have_the_same_version(folder: Path, tmp_path: Path, monkeypatch) -> None:
    with distributed.LocalCluster(**TWO_WORKERS, processes=False) as local:
        address = local.scheduler_address
        pool = Cluster(address)
        assert pool.width == 2 * PER_THREAD
        summary = ingest([folder], str(tmp_path / "store"), lambda: pool)
        assert (summary.runs_ingested, summary.host_files, summary.failures) == (1, 5, [])
        (run,) = stored(tmp_path / "store").values()
        assert_same(load(run), load(folder))
        monkeypatch.setattr(cluster, "_version", lambda: "another")
        with pytest.raises(TfcompareError, match="2 of 2 workers have another version of tfcompare, such as inproc://"):
            Cluster(address)
        local.scale(0)
        monkeypatch.setattr(cluster, "_CONNECT_S", 1)
        with pytest.raises(TfcompareError, match=r"has no worker; start one with `dask worker`|do not answer"):
            Cluster(address)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_loses_a_worker_in_the_middle_loses_no_file(folder: Path, tmp_path: Path) -> None:
    with distributed.LocalCluster(**TWO_WORKERS, processes=True) as local:

        def kill_one(done: Ingest) -> None:
            if done.files_done == 1:
                os.kill(local.workers[0].pid, signal.SIGKILL)

        summary = ingest([folder], str(tmp_path / "store"), lambda: Cluster(local.scheduler_address), kill_one)
    assert (summary.runs_ingested, summary.host_files, summary.failures) == (1, 5, [])
    (run,) = stored(tmp_path / "store").values()
    assert_same(load(run), load(folder))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("tcp://127.0.0.1:9", "tcp://127.0.0.1:9: no scheduler of Dask answers there; check the address"),
        ("carrier-pigeon://roof", "carrier-pigeon://roof: is no address of a scheduler"),
    ],
)
def test_a_scheduler_that_is_not_there_is_told(address, sentence, folder, tfcompare, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(cluster, "_CONNECT_S", 1)
    words = ("ingest", str(folder), "--store", str(tmp_path / "store"), "--scheduler", address)
    status, _, err = tfcompare(*words)
    assert (status, sentence in err, err.count("\n")) == (2, True, 1)


def test_without_distributed_it_is_told_how_to_get_it(folder: Path, tfcompare, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    words = ("ingest", str(folder), "--store", str(tmp_path / "store"), "--scheduler", "tcp://127.0.0.1:9")
    assert tfcompare(*words)[::2] == (
        2,
        "tfcompare: --scheduler needs the package distributed, which is not installed: "
        "pip install 'tfcompare[cluster]'\n",
    )
