"""Calls into xprof in a process of their own, and captures of live programs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources.capture.workers import free_ports, refusing_port, started
from tfcompare import load
from tfcompare.sources.capture.recording import LONGEST_MS, MOST_RETRIES
from tfcompare.sources.logdir import find_runs
from tfcompare.sources.xprof_process import Call, Ended, Trace

PATIENCE_S = 300
"""Far more than it takes: a machine may be loaded."""


def trace_of(port: int, logdir: Path) -> Trace:
    return Trace(f"localhost:{port}", str(logdir), 200, start_ns=0, host_level=2, device_level=1, python_level=0)


def ended(call: Call) -> Ended:
    until = time.monotonic() + PATIENCE_S
    while call.is_running and time.monotonic() < until:
        time.sleep(0.02)
    return call.end()


def test_what_xprof_raises_and_logs_is_handed_back_and_stays_off_our_own_output(tmp_path, capfd, monkeypatch) -> None:
    monkeypatch.setenv("http_proxy", "http://localhost:9")  # the way to the web is not taken
    with refusing_port() as port:
        end = ended(Call(trace_of(port, tmp_path)))
    assert (end.status, "returned UNAVAILABLE" in end.log) == (0, True), end
    assert "No trace event was collected" in end.error
    assert "Connection refused" in end.log and ":9: " not in end.log, end
    assert capfd.readouterr() == ("", "")


def test_one_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    with socket.create_server(("localhost", 0)) as server:
        server.settimeout(PATIENCE_S)
        call = Call(trace_of(server.getsockname()[1], tmp_path))
        connection, _ = server.accept()  # and says nothing
        with connection:
            assert call.is_running
            assert call.end().status is None


def test_one_that_is_killed_says_by_what(tmp_path: Path) -> None:
    with refusing_port() as port:
        call = Call(trace_of(port, tmp_path))
        os.kill(call._child._process.pid, signal.SIGABRT)
        assert ended(call).status == -signal.SIGABRT


def test_it_ends_with_whoever_started_it(tmp_path: Path) -> None:
    script = (
        "import os, socket\nfrom tfcompare.sources.xprof_process import Call, Trace\n"
        "server = socket.create_server(('localhost', 0))\n"
        f"address = f'localhost:{{server.getsockname()[1]}}'\n"
        f"call = Call(Trace(address, {str(tmp_path)!r}, 200, 0, 2, 1, 0))\n"
        "connection = server.accept()\nprint(call._child._process.pid, flush=True)\nos.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False)
    child = int(done.stdout)
    until = time.monotonic() + PATIENCE_S
    while is_alive(child) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_alive(child)


def is_alive(process: int) -> bool:
    """Whether it still runs; one that nobody has asked for its status is a zombie and does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


Workers = tuple[str, str]
"""Far more than it takes: a machine may be loaded."""


@pytest.fixture(scope="module")
def training() -> Iterator[Workers]:
    """The addresses of the profiler servers of two processes that train."""
    one, two = free_ports(2)
    with started("worker", one), started("worker", two):
        yield f"localhost:{one}", f"localhost:{two}"


def test_two_services_are_recorded_at_one_time_as_one_run(tfcompare, workers: Workers, tmp_path: Path) -> None:
    first, second = workers
    status, out, err = tfcompare("capture", first, f"grpc://{second}", str(tmp_path / "logs"), "--duration-ms", "200")
    assert status == 0, err
    (found,) = find_runs(tmp_path)
    assert out == f"{found.path}\n"
    assert found.path.parent == tmp_path / "logs" / "plugins" / "profile"
    assert load(found).host_names == tuple(sorted(address.replace(":", "_") for address in workers))
    assert "captured 2 hosts, 22 steps of " in err


@pytest.mark.thorough
def test_two_workers_are_one_run_with_two_hosts_and_their_steps(tfcompare, training: Workers, tmp_path: Path) -> None:
    asked_ns = time.time_ns()
    words = [*training, str(tmp_path), "--duration-ms", "1000", "--delay-ms", "2500", "--name", "together"]
    status, out, err = tfcompare("capture", *words)
    assert status == 0, err
    run = load(out.strip())
    assert run.info.has_steps
    steps = run.table("steps")
    assert all(len(of_one) >= 5 for _, of_one in steps.groupby("host"))
    trained = run.table("op_stats")["op_name"].str.startswith("gradient_tape/MatMul")  # cheap ops may be left out
    assert trained.any()
    assert f"captured 2 hosts, {run.info.step_count:,} steps of " in err
    began = [host.origin.start_ns for host in run.hosts]
    assert min(began) - asked_ns > 2.4e9
    assert max(began) - min(began) < 1e9


def test_one_that_is_dead_is_named_and_the_other_recorded(tfcompare, workers: Workers, tmp_path: Path) -> None:
    dead = f"localhost:{free_ports(1)[0]}"
    words = [f"{dead},{workers[0]}", str(tmp_path), "--duration-ms", "100", "--retries", "9"]
    status, out, err = tfcompare("capture", *words)
    assert status == 0, err
    assert f"not in the run: {dead} has no profiler server listening; start it in the program" in err
    assert load(out.strip()).host_names == (workers[0].replace(":", "_"),)


def test_where_nobody_answers_it_is_said_in_one_sentence(tfcompare, tmp_path: Path) -> None:
    one, two = (f"localhost:{port}" for port in free_ports(2))
    status, out, err = tfcompare("capture", one, two, str(tmp_path / "logs"))
    assert (status, out) == (2, "")
    looking, told = err.splitlines()
    assert looking == "Looking who answers"
    assert told.startswith(f"tfcompare: nothing was recorded: {one} has no profiler server listening;")
    assert f"; {two} has no profiler server" in told
    assert not (tmp_path / "logs").exists()


@pytest.mark.thorough
def test_a_recording_without_events_is_told_with_what_to_do(tfcompare, training: Workers, tmp_path: Path) -> None:
    words = [training[0], str(tmp_path / "logs"), "--duration-ms", "100", "--retries", "1", "--host-tracer-level", "0"]
    status, _, err = tfcompare("capture", *words)
    assert status == 2
    assert "did nothing that could be recorded within 0.1 s; record while it works, with a longer duration" in err
    assert "(attempt 2)" in err
    assert not (tmp_path / "logs").exists()


@pytest.mark.thorough
def test_one_that_is_being_recorded_says_so(tfcompare, training: Workers, tmp_path: Path) -> None:
    long = ["--duration-ms", str(LONGEST_MS), "--retries", str(MOST_RETRIES)]
    command = [sys.executable, "-m", "tfcompare", "capture", training[0], str(tmp_path / "a"), *long]
    brief = ["capture", training[0], str(tmp_path / "b"), "--duration-ms", "100", "--retries", "0"]
    until = time.monotonic() + PATIENCE_S
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as other:
        try:
            said = ""
            while "already" not in said and time.monotonic() < until:  # the other has yet to be let in
                _, _, said = tfcompare(*brief)
            assert "is being profiled already; wait until that has ended" in said
            assert other.poll() is None
        finally:
            other.kill()
    while (status := tfcompare(*brief)[0]) and time.monotonic() < until:
        pass
    assert status == 0, "the other is gone, and recording goes on"
