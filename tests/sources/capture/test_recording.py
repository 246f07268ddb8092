"""Putting a run together from what each worker's call to xprof gave, whatever became of that."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.store.runs_in_stores import SMALL
from tfcompare.errors import TfcompareError
from tfcompare.sources.abandoned_folders import ARRIVING, this_process
from tfcompare.sources.capture.addresses import LeftOut, TpuName, parse_address, parse_addresses
from tfcompare.sources.capture.recording import (
    NothingRecorded,
    Progress,
    Recorded,
    Request,
    Stopped,
    check_name,
    record,
)
from tfcompare.sources.logdir import find_runs
from tfcompare.sources.machine_load import MachineLoad, read_load
from tfcompare.sources.replicates import is_one_program
from tfcompare.sources.xprof_process import Ended, Trace
from tfcompare.units import format_bytes

PROFILE = SMALL["ours"]
NO_EVENTS = "UNAVAILABLE: No trace event was collected because there were no responses from clients"
GONE = 2**22 + 1
"""More than the highest number that Linux gives a process."""

Outcome = Callable[[Path], Ended]


def good(folder: Path) -> Ended:
    write(folder, PROFILE)
    return Ended(0, "", "log")


def write(folder: Path, content: bytes) -> None:
    run = folder / "plugins" / "profile" / "2026_11_21_18_43_09"
    run.mkdir(parents=True)
    (run / "whatever_1.xplane.pb").write_bytes(content)


def failed(error: str, log: str = "") -> Outcome:
    def end(folder: Path) -> Ended:
        write(folder, b"")  # xprof leaves such files where it failed
        return Ended(0, error, log)

    return end


def hanging(_: Path) -> Ended:
    return Ended(None, "", "")


class Calls:
    """Stands in for xprof: what each address gives, one outcome after the other, the last of them for good."""

    def __init__(self, outcomes: Mapping[str, list[Outcome]]) -> None:
        self.outcomes = outcomes
        self.made: list[Trace] = []

    def __call__(self, trace: Trace) -> Calls.Fake:
        left = self.outcomes[trace.address]
        self.made.append(trace)
        return Calls.Fake(left.pop(0) if len(left) > 1 else left[0], Path(trace.logdir))

    class Fake:
        def __init__(self, outcome: Outcome, folder: Path) -> None:
            self.outcome, self.folder = outcome, folder

        @property
        def is_running(self) -> bool:
            return self.outcome is hanging

        def end(self) -> Ended:
            return self.outcome(self.folder)


RECORDING = "tfcompare.sources.capture.recording"


@pytest.fixture
def xprof(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, list[Outcome]]], Calls]:
    """Lets all addresses answer, and xprof give these outcomes of each."""

    def gives(outcomes: Mapping[str, list[Outcome]]) -> Calls:
        calls = Calls(outcomes)
        monkeypatch.setattr(f"{RECORDING}.silent", lambda _: {})
        monkeypatch.setattr(f"{RECORDING}.Call", calls)
        return calls

    return gives


@pytest.fixture
def recorded(tmp_path: Path, xprof):
    """Records with these outcomes of each address; returns what `record` does."""

    def run(outcomes: Mapping[str, list[Outcome]], name: str = "", **wish: Any) -> Recorded:
        run.calls = xprof(outcomes)  # type: ignore[attr-defined]
        wish = {"duration_ms": 1, "grace_s": 0.1, "retries": 0} | wish
        return record(Request(parse_addresses(outcomes), **wish), tmp_path / "logs", name)

    return run


def left_over(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.startswith(".")]


def test_several_workers_are_one_run_with_a_host_each(recorded, tmp_path: Path) -> None:
    run = recorded({"localhost:1": [good], "localhost:2": [good]}, name="before")
    assert run.path.parent == tmp_path / "logs" / "before" / "plugins" / "profile"
    (found,) = find_runs(tmp_path / "logs")
    assert [file.host for file in found.files] == ["localhost_1", "localhost_2"]
    assert found.recorded_source == "folder name"
    assert run.left_out == ()
    assert left_over(tmp_path) == []


def test_the_load_of_this_machine_is_stored_beside_its_own_programs_only(recorded) -> None:
    own = recorded({"localhost:1": [good], "127.0.0.1:2": [good]}, name="own")
    assert isinstance(read_load(own.path), MachineLoad)
    assert read_load(recorded({"localhost:1": [good], "worker0:1": [good]}, name="both").path) is None


def test_repeated_captures_are_replicates(tmp_path: Path, tfcompare, xprof) -> None:
    xprof({"localhost:1": [good]})
    status, out, _ = tfcompare("capture", "localhost:1", str(tmp_path / "logs"), "--repeat", "3", "--name", "before")
    folder = tmp_path / "logs" / "before"
    assert (status, out) == (0, f"{folder}\n")
    assert sorted(path.name for path in folder.iterdir()) == ["run-1", "run-2", "run-3"]
    runs = find_runs(folder)
    assert len(runs) == 3 and is_one_program(runs)
    status, out, err = tfcompare("capture", "localhost:1", str(tmp_path / "logs"), "--repeat", "0")
    assert (status, out) == (2, "")
    assert "--repeat 0: expected a number from 1 to 100" in err
    for slip in ("localhost:6009", "tpu:my-tpu", "dns:workers:6009"):
        status, _, err = tfcompare("capture", "localhost:1", slip)
        assert (status, f"{slip}: expected LOGDIR, the folder to store the run in" in err) == (2, True)


def test_a_name_is_resolved_and_each_of_its_workers_reported(tmp_path: Path, tfcompare, xprof, monkeypatch) -> None:
    def resolve(targets: object) -> object:
        assert [str(target) for target in targets] == ["dns:workers:1", "tpu:gone"]  # type: ignore[attr-defined]
        return tuple(map(parse_address, ("10.0.0.1:1", "10.0.0.2:1"))), (LeftOut(TpuName("gone"), "is not there"),)

    monkeypatch.setattr(f"{RECORDING}.resolve", resolve)
    xprof({"10.0.0.1:1": [good], "10.0.0.2:1": [failed(""), good]})
    words = "capture", "dns:workers:1", "tpu:gone", str(tmp_path), "--duration-ms", "1"
    status, out, err = tfcompare(*words)
    assert (status, err.splitlines()[0]) == (0, "Resolving dns:workers:1, tpu:gone")
    assert "not in the run: tpu:gone is not there\n" in err
    assert "not in the run: 10.0.0.2:1 gave no profile" in err
    assert f"10.0.0.1:1 captured: 12 steps, {format_bytes(len(PROFILE))}\n" in err
    status, out, err = tfcompare(*words)
    assert "10.0.0.2:1 captured: 12 steps" in err
    assert sorted(file.name for file in Path(out.strip()).iterdir()) == ["10.0.0.1_1.xplane.pb", "10.0.0.2_1.xplane.pb"]


def test_workers_are_asked_to_begin_at_one_time_and_one_alone_at_once(recorded) -> None:
    recorded({"a:1": [good], "b:1": [good]})
    first, second = recorded.calls.made
    assert first.start_ns == second.start_ns > 0
    recorded({"a:1": [good]})
    assert recorded.calls.made[0].start_ns == 0


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (hanging, "did not hand its profile over within 0.1 s"),
        (lambda _: Ended(-6, "", ""), "could not be recorded: xprof was ended by SIGABRT"),
        (lambda _: Ended(0, "", ""), "gave no profile: xprof ended with status 0 and wrote no file"),
        (failed(""), "gave no profile"),
        (failed(NO_EVENTS), "did nothing that could be recorded within 0.001 s; record while it works, with a longer"),
        (failed(NO_EVENTS, "x:1 returned INTERNAL: Another profiling session active.\n"), "is being profiled already"),
        (failed(NO_EVENTS, "W00 b:1 returned UNIMPLEMENTED: \n"), "is no profiler service"),
        (failed(NO_EVENTS, "W00 b:1 returned UNAVAILABLE: Socket closed\n"), "broke off: Socket closed"),
        (failed("profiler_plugin_c_api.so: cannot open"), "gave no profile: profiler_plugin_c_api.so: cannot open"),
    ],
)
def test_a_worker_that_gives_nothing_is_named_and_the_others_are_kept(recorded, outcome: Outcome, told: str) -> None:
    run = recorded({"a:1": [good], "b:1": [outcome], "c:1": [good]})
    assert [str(address) for address in run.size_bytes] == ["a:1", "c:1"]
    assert str(run.left_out[0]).startswith(f"b:1 {told}")
    assert sorted(file.name for file in run.path.iterdir()) == ["a_1.xplane.pb", "c_1.xplane.pb"]


def test_without_any_profile_each_address_is_named_and_nothing_is_left_behind(
    recorded, xprof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NothingRecorded, match=r"nothing was recorded: a:1 did nothing .*; b:1 gave no profile"):
        recorded({"a:1": [failed(NO_EVENTS)], "b:1": [failed("")]})
    assert list(tmp_path.iterdir()) == []
    xprof({"a:1": [failed("")]})
    monkeypatch.setattr(f"{RECORDING}.silent", lambda _: {parse_address("b:1"): "is deaf"})
    with pytest.raises(NothingRecorded, match="b:1 is deaf; a:1 gave no profile"):
        record(Request(parse_addresses(["a:1,b:1"]), duration_ms=1, retries=0), tmp_path / "logs")


def test_a_profile_that_breaks_off_is_not_kept(recorded) -> None:
    def torn(folder: Path) -> Ended:
        write(folder, PROFILE[: len(PROFILE) // 2])
        return Ended(0, "", "")

    with pytest.raises(NothingRecorded):
        recorded({"a:1": [torn]})


def test_attempts_go_on_until_something_was_recorded(recorded) -> None:
    run = recorded({"a:1": [failed(NO_EVENTS), good], "b:1": [failed(NO_EVENTS)]}, retries=3)
    assert len(recorded.calls.made) == 4, "both were asked twice"
    assert [str(address) for address in run.size_bytes] == ["a:1"]
    with pytest.raises(NothingRecorded):
        recorded({"a:1": [failed(NO_EVENTS)]}, retries=2)
    assert len(recorded.calls.made) == 3


def test_runs_of_one_second_lie_side_by_side(recorded, tmp_path: Path) -> None:
    paths = {recorded({"a:1": [good]}).path for _ in range(3)}
    assert len(paths) == len(find_runs(tmp_path / "logs")) == 3
    assert all(run.recorded_source == "folder name" for run in find_runs(tmp_path / "logs"))


def test_what_a_killed_process_left_is_removed_and_what_another_makes_is_not(recorded, tmp_path: Path) -> None:
    mine = tmp_path / "logs" / f"{ARRIVING}{this_process()}-other-thread"
    dead = tmp_path / "logs" / f"{ARRIVING}{this_process().partition('-')[0]}-{GONE}-x"
    for folder in (mine, dead):
        (folder / "0").mkdir(parents=True)
    recorded({"a:1": [good]})
    assert left_over(tmp_path) == [mine]


def test_a_stopped_recording_ends_soon_and_leaves_nothing(tmp_path: Path, xprof) -> None:
    stop, told = threading.Event(), []
    xprof({"a:1": [hanging]})

    def tell(progress: Progress) -> None:
        told.append(progress.sentence)
        if progress.seconds:
            stop.set()

    with pytest.raises(Stopped):
        record(Request(parse_addresses(["a:1"]), duration_ms=60_000), tmp_path / "logs", tell=tell, stop=stop)
    assert told == ["Looking who answers", "Recording a:1"]
    with pytest.raises(Stopped):  # while it looks who answers
        record(Request(parse_addresses(["a:1"])), tmp_path / "logs", stop=stop)
    assert list(tmp_path.iterdir()) == []


def test_without_xprof_it_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{RECORDING}.is_installed", lambda: False)
    with pytest.raises(TfcompareError, match="pip install 'xprof>="):
        record(Request(parse_addresses(["a:1"])), tmp_path / "logs")


def test_figures_out_of_range_are_told() -> None:
    for wish, message in {
        ("duration_ms", 0): "the duration in ms must be from 1 to 600,000; not 0",
        ("host_level", 4): "the host tracer level must be from 0 to 3; not 4",
        ("device_level", 2): "the device tracer level must be from 0 to 1",
        ("python_level", -1): "the Python tracer level must be from 0 to 1",
        ("retries", 101): "the number of retries must be from 0 to 100",
        ("delay_ms", -5): "the delay in ms must be from 0 to 600,000; not -5",
    }.items():
        with pytest.raises(TfcompareError, match=message):
            Request(parse_addresses(["a:1"]), **dict([wish]))


def test_names_that_folders_can_have() -> None:
    for name in ("before", "batch 64", "größer", "v1.2+fix_3-b", "7"):
        assert check_name(f" {name} ") == name
    for name in ("", " ", ".", "..", "../x", "a/b", "a\\b", ".hidden", "-x", "a\0b", "a\nb", "x" * 81, "x."):
        with pytest.raises(TfcompareError, match="cannot be the name of a run"):
            check_name(name)


def test_more_workers_than_this_machine_can_ask_at_once_are_refused(recorded, tmp_path: Path) -> None:
    with pytest.raises(TfcompareError, match="65 workers: at most 64 can be recorded at once"):
        recorded({f"localhost:{port}": [good] for port in range(1, 66)})
    assert not (tmp_path / "logs").exists()
