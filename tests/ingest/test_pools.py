"""Work on processes that die: only the task that kills its process is lost, and no process outlives its parent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tests.ingest.tasks import sleep, work
from tests.profiles import ROOT
from tfcompare.ingest.pools import Here, Job, Killed, Processes, outcomes


@pytest.fixture
def processes() -> Iterator[Processes]:
    pool = Processes(2)
    yield pool
    pool.close()


@pytest.mark.parametrize("count", [1, 2])
def test_a_task_that_kills_its_process_loses_no_other(count: int) -> None:
    pool = Processes(count)
    tasks = ["a", "deadly", "b", "bad", "c", "d", *"efghijklmnop"]
    found = {job.task: outcome for job, outcome in outcomes(deque(Job(work, task) for task in tasks), pool)}
    pool.close()
    assert found.pop("deadly") == Killed("ended its process (SIGKILL)")
    assert str(found.pop("bad")) == "it is bad"
    assert found == {task: f"{task} done" for task in "abcdefghijklmnop"}


def test_several_tasks_that_kill_their_processes_are_found(processes: Processes) -> None:
    tasks = ["deadly", "a", "deadly", "b"]
    found = [(job.task, outcome) for job, outcome in outcomes(deque(Job(work, task) for task in tasks), processes)]
    expected = [("a", "a done"), ("b", "b done"), *[("deadly", Killed("ended its process (SIGKILL)"))] * 2]
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_the_task_of_a_process_that_died_by_chance_is_done(processes: Processes, tmp_path: Path) -> None:
    jobs = deque([Job(work, tmp_path / "once"), Job(work, "other")])
    found = sorted(str(outcome) for _, outcome in outcomes(jobs, processes))
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


def test_small_jobs_that_are_sent_together_each_have_their_outcome(processes: Processes) -> None:
    processes.batch_bytes = 100
    tasks = [*"abcdefghijklmnop", "deadly", *"qrstuvwxyz", "bad", *"ABCDEF"]
    found = {job.task: outcome for job, outcome in outcomes(deque(Job(work, t, 1) for t in tasks), processes)}
    assert found.pop("deadly") == Killed("ended its process (SIGKILL)")
    assert str(found.pop("bad")) == "it is bad"
    assert found == {task: f"{task} done" for task in set(tasks) - {"deadly", "bad"}}


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
    pool = Processes(2)
    pool.submit(sleep, tmp_path)
    pool.submit(sleep, tmp_path)
    pids = _wait_until_working(tmp_path, 2)
    pool.close()
    assert not any(map(_is_running, pids))


def test_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from tests.ingest.tasks import sleep; "
        "from tfcompare.ingest.pools import Processes; "
        f"pool = Processes(1); pool.submit(sleep, Path({str(tmp_path)!r})).result()"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, "-c", script], env=environment, stderr=subprocess.DEVNULL)
    try:
        (pid,) = _wait_until_working(tmp_path, 1)
    finally:
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 60
    while _is_running(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _wait_until_working(folder: Path, count: int) -> list[int]:
    deadline = time.monotonic() + 60
    while len(pids := [int(path.name) for path in folder.iterdir()]) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return pids


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
