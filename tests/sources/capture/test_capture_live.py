"""Recording programs that really train, by the command."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.sources.capture.workers import free_ports
from tfcompare import cli, load
from tfcompare.sources.capture import LONGEST_MS, MOST_RETRIES
from tfcompare.sources.logdir import find_runs

Workers = tuple[str, str]
PATIENCE_S = 300
"""Far more than it takes: a machine may be loaded."""


@pytest.fixture
def capture(capsys: pytest.CaptureFixture[str]):
    """Runs `tfcompare capture`; returns exit status, stdout and stderr."""

    def run(*words: str) -> tuple[int, str, str]:
        status = cli.main(["capture", *words])
        return status, *capsys.readouterr()

    return run


def test_two_workers_are_one_run_with_two_hosts_and_their_steps(capture, workers: Workers, tmp_path: Path) -> None:
    first, second = workers
    status, out, err = capture(first, f"grpc://{second}", str(tmp_path / "new" / "logs"), "--duration-ms", "1000")
    assert status == 0, err
    (found,) = find_runs(tmp_path)
    assert out == f"{found.path}\n"
    assert found.path.parent == tmp_path / "new" / "logs" / "plugins" / "profile"
    run = load(found)
    assert run.host_names == tuple(sorted(address.replace(":", "_") for address in workers))
    assert run.info.has_steps
    steps = run.table("steps")
    assert all(len(of_one) >= 5 for _, of_one in steps.groupby("host"))
    trained = run.table("op_stats")["op_name"].str.startswith("gradient_tape/MatMul")  # cheap ops may be left out
    assert trained.any()
    assert f"captured 2 hosts, {run.info.step_count:,} steps of " in err


def test_all_begin_at_one_time_after_the_delay(capture, workers: Workers, tmp_path: Path) -> None:
    asked_ns = time.time_ns()
    capture(*workers, str(tmp_path), "--duration-ms", "200", "--delay-ms", "2500", "--name", "together")
    (path,) = (tmp_path / "together" / "plugins" / "profile").iterdir()
    began = [host.origin.start_ns for host in load(path).hosts]
    assert min(began) - asked_ns > 2.4e9
    assert max(began) - min(began) < 1e9


def test_one_that_is_dead_is_named_and_the_other_recorded(capture, workers: Workers, tmp_path: Path) -> None:
    dead = f"localhost:{free_ports(1)[0]}"
    status, out, err = capture(f"{dead},{workers[0]}", str(tmp_path), "--duration-ms", "300", "--retries", "9")
    assert status == 0, err
    assert f"not in the run: {dead} has no profiler server listening; start it in the program" in err
    assert load(out.strip()).host_names == (workers[0].replace(":", "_"),)


def test_where_nobody_answers_it_is_said_in_one_sentence(capture, tmp_path: Path) -> None:
    one, two = (f"localhost:{port}" for port in free_ports(2))
    status, out, err = capture(one, two, str(tmp_path / "logs"))
    assert (status, out) == (2, "")
    looking, told = err.splitlines()
    assert looking == "Looking who answers"
    assert told.startswith(f"tfcompare: nothing was recorded: {one} has no profiler server listening;")
    assert f"; {two} has no profiler server" in told
    assert not (tmp_path / "logs").exists()


def test_a_recording_without_events_is_told_with_what_to_do(capture, workers: Workers, tmp_path: Path) -> None:
    words = [workers[0], str(tmp_path / "logs"), "--duration-ms", "100", "--retries", "1", "--host-tracer-level", "0"]
    status, _, err = capture(*words)
    assert status == 2
    assert "did nothing that could be recorded within 0.1 s; record while it works, with a longer duration" in err
    assert "(attempt 2)" in err
    assert not (tmp_path / "logs").exists()


def test_one_that_is_being_recorded_says_so(capture, workers: Workers, tmp_path: Path) -> None:
    long = ["--duration-ms", str(LONGEST_MS), "--retries", str(MOST_RETRIES)]
    command = [sys.executable, "-m", "tfcompare", "capture", workers[0], str(tmp_path / "a"), *long]
    brief = [workers[0], str(tmp_path / "b"), "--duration-ms", "100", "--retries", "0"]
    until = time.monotonic() + PATIENCE_S
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as other:
        try:
            said = ""
            while "already" not in said and time.monotonic() < until:  # the other has yet to be let in
                _, _, said = capture(*brief)
            assert "is being profiled already; wait until that has ended" in said
            assert other.poll() is None
        finally:
            other.kill()
    while (status := capture(*brief)[0]) and time.monotonic() < until:
        pass
    assert status == 0, "the other is gone, and recording goes on"
