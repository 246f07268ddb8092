"""Profiles that are read in child processes: the same frames and errors, and nothing above the limits."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.crowds import CROWDS
from tests.xspace_builder import event, line, plane, space
from tfcompare.child import Children
from tfcompare.errors import NoSuchMarker, NoSuchPlace, NoSuchSteps, NotAProfile, TooLarge
from tfcompare.frames import profile_reader
from tfcompare.frames.profile_reader import build_here
from tfcompare.run import load
from tfcompare.settings import ReadLimits
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice
from tfcompare.store.frame_builders import BoundedBuilder, reading_processes
from tfcompare.store.packing import pack

MB = 2**20
PROFILE = space(plane("/host:CPU", line("t", *(event("train", 10 * i, 9, _r=1) for i in range(9)))))


@pytest.fixture(scope="module")
def processes() -> Iterator[Children]:
    processes = reading_processes()
    processes.start()
    yield processes
    processes.close()


def run_folder(folder: Path, **files: bytes) -> Path:
    run = folder / "plugins" / "profile" / "run"
    run.mkdir(parents=True)
    for host, data in files.items():
        (run / f"{host}.xplane.pb").write_bytes(data)
    return run


def test_the_frames_are_those_of_this_process(tmp_path: Path, processes: Children) -> None:
    path = run_folder(tmp_path, vm=PROFILE) / "vm.xplane.pb"
    bounded = BoundedBuilder(processes, ReadLimits(8 << 30, 300))
    assert pack(bounded(path, "vm", OWN_STEPS)) == pack(build_here(path, "vm", OWN_STEPS))


@pytest.mark.parametrize(
    ("data", "choice", "kind"),
    [
        (PROFILE[:-5], OWN_STEPS, NotAProfile),
        (PROFILE, StepChoice("no such"), NoSuchMarker),
        (PROFILE, StepChoice(None, 50, 60), NoSuchSteps),
        (None, OWN_STEPS, NoSuchPlace),
    ],
)
def test_errors_are_those_of_this_process(tmp_path, processes, data, choice, kind) -> None:
    path = tmp_path / "vm.xplane.pb"
    if data is not None:
        path.write_bytes(data)
    errors = []
    for build in (BoundedBuilder(processes, ReadLimits(8 << 30, 300)), build_here):
        with pytest.raises(kind) as error:
            build(path, "vm", choice)
        errors.append(error.value)
    ours, theirs = errors
    assert (type(ours), str(ours), vars(ours)) == (type(theirs), str(theirs), vars(theirs))


def test_a_file_above_the_limit_names_itself_and_the_setting_and_the_other_hosts_are_shown(tmp_path, processes) -> None:
    bomb = gzip.compress(CROWDS["empty events"](4_000_000), 1)
    run = load(run_folder(tmp_path, good=PROFILE, large=bomb), build=BoundedBuilder(processes, ReadLimits(64 * MB, 60)))
    assert run.host_names == ("good",)
    (remark,) = [remark for remark in run.remarks if "left out" in remark]
    assert "large.xplane.pb: cannot be read: reading it takes more memory than allowed" in remark
    assert "a file may take 64 MB (TFCOMPARE_READ_MB) and 60 s (TFCOMPARE_READ_S)" in remark


def test_a_file_that_takes_too_long_says_so(tmp_path: Path, processes: Children) -> None:
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(CROWDS["empty events"](4_000_000))
    with pytest.raises(TooLarge, match=r"takes more than 0\.1 s of processor time; a file may take"):
        BoundedBuilder(processes, ReadLimits(1024 * MB, 0.1))(path, "vm", OWN_STEPS)


def test_memory_that_runs_out_in_this_process_makes_the_file_unreadable(tmp_path: Path, monkeypatch) -> None:
    def read(_: Path) -> None:
        raise MemoryError

    monkeypatch.setattr(profile_reader, "read", read)
    with pytest.raises(TooLarge, match=r"vm\.xplane\.pb: cannot be read: reading it takes more memory than there is"):
        load(run_folder(tmp_path, vm=PROFILE))
