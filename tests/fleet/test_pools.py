"""Work on processes that die or on a Dask cluster: only the task that kills its process is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.tasks import sleep, work
from tests.profiles import ROOT
from tests.sources.capture.test_xprof_process import is_alive
from tests.store.runs_in_stores import SMALL, assert_same, stored
from tfcompare.errors import TfcompareError
from tfcompare.fleet import cluster
from tfcompare.fleet.cluster import PER_THREAD, Cluster
from tfcompare.fleet.ingesting import Ingest, ingest
from tfcompare.fleet.pools import Here, Job, Killed, Processes, outcomes
from tfcompare.run import load


@pytest.fixture(scope="module")
def one() -> Iterator[Processes]:
    """A process that takes a second to start, and again after each task that kills it."""
    pool = Processes(1)
    yield pool
    pool.close()


def test_of_small_jobs_that_are_sent_together_the_one_that_kills_its_process_loses_no_other(one, monkeypatch) -> None:
    monkeypatch.setattr(one, "batch_bytes", 100, raising=False)
    tasks = [*"abcdefghijklmnop", "deadly", *"qrstuvwxyz", "bad", *"ABCDEF"]
    found = {job.task: outcome for job, outcome in outcomes(deque(Job(work, t, 1) for t in tasks), one)}
    assert found.pop("deadly") == Killed("ended its process (SIGKILL)")
    assert str(found.pop("bad")) == "it is bad"
    assert found == {task: f"{task} done" for task in set(tasks) - {"deadly", "bad"}}


@pytest.mark.thorough
@pytest.mark.parametrize("count", [1, 2])
def test_several_tasks_that_kill_their_processes_are_found(count: int) -> None:
    pool = Processes(count)
    tasks = ["deadly", *"abc", "deadly", *"defg"]
    found = [(job.task, outcome) for job, outcome in outcomes(deque(Job(work, task) for task in tasks), pool)]
    pool.close()
    killed = [("deadly", Killed("ended its process (SIGKILL)"))] * 2
    assert sorted(found, key=str) == sorted([*((task, f"{task} done") for task in "abcdefg"), *killed], key=str)


def test_the_task_of_a_process_that_died_by_chance_is_done(one: Processes, tmp_path: Path) -> None:
    jobs = deque([Job(work, tmp_path / "once"), Job(work, "other")])
    found = sorted(str(outcome) for _, outcome in outcomes(jobs, one))
    assert found == sorted([f"{tmp_path / 'once'} done", "other done"])


def test_jobs_can_be_added_meanwhile() -> None:
    jobs = deque([Job(work, "a")])
    seen = []
    for job, outcome in outcomes(jobs, Here()):
        seen.append(outcome)
        if job.task == "a":
            jobs.append(Job(work, "b"))
    assert seen == ["a done", "b done"]


def test_a_bug_that_one_task_triggers_loses_no_other() -> None:
    found = [outcome for _, outcome in outcomes(deque([Job(len, 3), Job(len, "abc")]), Here())]
    assert str(found[0]).startswith("failed with TypeError (object of type 'int' has no len()), which is a bug")
    assert found[1] == 3


def test_batches_are_of_small_jobs_and_end_in_single_ones() -> None:
    pool = Recording()
    sizes = [31, 10, 10, 10, *[1] * 60]
    assert len(list(outcomes(deque(Job(abs, -1, size) for size in sizes), pool))) == len(sizes)
    assert pool.batches[:3] == [1, 3, 16]
    assert pool.batches[-2:] == [1, 1]


class Recording(Here):
    """Takes several small jobs at once; `batches`: how many each time."""

    batch_bytes = 30

    def __init__(self) -> None:
        self.batches: list[int] = []

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        self.batches.append(len(arguments[0]))
        return super().submit(work, *arguments)


def test_closing_ends_processes_that_are_working(tmp_path: Path) -> None:
    pool = Processes(1)
    pool.submit(sleep, tmp_path)
    (pid,) = _wait_until_working(tmp_path)
    pool.close()
    assert not is_alive(pid)


def test_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from tests.fleet.tasks import sleep; "
        "from tfcompare.fleet.pools import Processes; "
        f"pool = Processes(1); pool.submit(sleep, Path({str(tmp_path)!r})).result()"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, "-c", script], env=environment, stderr=subprocess.DEVNULL)
    try:
        (pid,) = _wait_until_working(tmp_path)
    finally:
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 60
    while is_alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _wait_until_working(folder: Path) -> list[int]:
    deadline = time.monotonic() + 60
    while not (pids := [int(path.name) for path in folder.iterdir()]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return pids


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
