"""Work on processes that die: what they were about is done again, and only what they die of is lost."""

from __future__ import annotations

import math
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

from tfcompare.errors import TfcompareError
from tfcompare.ingest.pools import Here, Job, Killed, Processes, Queue


def work(task: Path | str) -> str:
    """Dies of `deadly`, complains of `bad`; of a path that is not there, makes it and dies."""
    if task == "deadly":
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "bad":
        raise TfcompareError("it is bad")
    if isinstance(task, Path) and not task.exists():
        task.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{task} done"


@pytest.fixture
def processes() -> Iterator[Processes]:
    pool = Processes(2)
    yield pool
    pool.close()


def test_one_task_that_kills_its_process_loses_no_other(processes: Processes) -> None:
    tasks = ["a", "deadly", "b", "bad", "c", "d"]
    answers = {job.task: answer for job, answer in Queue(processes, deque(Job(work, task) for task in tasks)).answers()}
    assert answers.pop("deadly") == Killed(3)
    assert str(answers.pop("bad")) == "it is bad"
    assert answers == {task: f"{task} done" for task in "abcd"}


def test_what_a_killed_process_was_about_is_done_again(processes: Processes, tmp_path: Path) -> None:
    queue = Queue(processes, deque([Job(work, tmp_path / "once"), Job(work, "other")]))
    assert sorted(str(answer) for _, answer in queue.answers()) == sorted([f"{tmp_path / 'once'} done", "other done"])


def test_jobs_can_be_added_meanwhile() -> None:
    queue = Queue(Here(), deque([Job(work, "a")]))
    seen = []
    for job, answer in queue.answers():
        seen.append(answer)
        if job.task == "a":
            queue.jobs.append(Job(work, "b"))
    assert seen == ["a done", "b done"]


def test_a_bug_that_one_file_brings_up_loses_no_other() -> None:
    answers = [answer for _, answer in Queue(Here(), deque([Job(len, 3), Job(len, "abc")])).answers()]
    assert str(answers[0]).startswith("failed with TypeError (object of type 'int' has no len()), which is a bug")
    assert answers[1] == 3


class Small(Here):
    """Takes several small jobs at once."""

    width = 2
    hand_bytes = 30

    def __init__(self) -> None:
        self.hands: list[int] = []

    def submit(self, work: Callable[[Any], Any], task: Any) -> Future[Any]:
        self.hands.append(len(task))
        return super().submit(work, task)


def test_small_jobs_are_handed_out_together_and_ever_fewer_towards_the_end() -> None:
    pool = Small()
    answers = list(Queue(pool, deque(Job(abs, -number, size_bytes=10) for number in range(20))).answers())
    assert pool.hands == [3, 3, 3, 3, 2, 2, 1, 1, 1, 1]
    assert sorted(answer for _, answer in answers) == list(range(20))
    assert all(answer == -job.task for job, answer in answers)


def test_a_large_job_and_one_of_unknown_size_go_alone() -> None:
    pool = Small()
    sizes = [31, 10, 10, math.inf, 10, 20, 1, *[1] * 20]
    assert len(list(Queue(pool, deque(Job(abs, -1, size) for size in sizes)).answers())) == len(sizes)
    assert pool.hands[:4] == [1, 2, 1, 2]


def test_a_bug_that_one_of_a_hand_brings_up_loses_no_other() -> None:
    pool = Small()
    tasks: list[Any] = ["a", 3, "abc", "bad", *["ab"] * 8]
    answers = {job.task: answer for job, answer in Queue(pool, deque(Job(len, t, 1) for t in tasks)).answers()}
    assert pool.hands[0] > 1
    assert str(answers.pop(3)).startswith("failed with TypeError (object of type 'int' has no len()), which is a bug")
    assert answers == {"a": 1, "abc": 3, "bad": 3, "ab": 2}


def test_a_hand_whose_process_dies_is_done_again_one_by_one(processes: Processes) -> None:
    processes.hand_bytes = 100
    tasks = [*"abc", "deadly", *"defghijklmnop", "bad"]
    queue = Queue(processes, deque(Job(work, task, size_bytes=1) for task in tasks))
    assert len(queue._next()) > 1
    answers = {job.task: answer for job, answer in queue.answers()}
    assert answers.pop("deadly") == Killed(3)
    assert str(answers.pop("bad")) == "it is bad"
    assert answers == {task: f"{task} done" for task in "abcdefghijklmnop"}


def test_processes_do_not_run_the_script_that_was_started(tmp_path: Path) -> None:
    """One without `if __name__ == "__main__"`, as a page of the app."""
    script = tmp_path / "script.py"
    script.write_text(
        "print('started')\n"
        "from tfcompare.ingest.pools import Job, Processes, Queue\n"
        "pool = Processes(1)\n"
        "queue = Queue(pool)\n"
        "queue.jobs.append(Job(abs, -3))\n"
        "print([answer for _, answer in queue.answers()])\n"
        "pool.close()\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("started\n[3]\n", "")
