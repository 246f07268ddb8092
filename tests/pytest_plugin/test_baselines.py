"""Where baselines are stored, and what is stored."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.profiles import SAMPLE_RUNS
from tfcompare import find_runs
from tfcompare.pytest_plugin.baselines import Baseline
from tfcompare.sources.machine_load import MachineLoad, read_load, write_load
from tfcompare.sources.replicates import is_one_program

ENDS = ("", "[a/b]", "[A/b]", "[a_b]", "[../../x]", f"[{400 * 'x'}]", f"[{401 * 'x'}]")
IDS = [f"tests/test_a.py::test_step{end}" for end in ENDS]


def recording(folder: Path) -> Path:
    """A logdir with one profile and what JAX writes beside it."""
    logdir = Path(shutil.copytree(SAMPLE_RUNS["filters_16_8"], folder))
    (profile,) = logdir.rglob("*.xplane.pb")
    (profile.parent / "vm.trace.json.gz").write_bytes(b"")
    write_load(profile.parent, 0.25)
    return logdir


def test_each_test_has_a_folder_of_its_own_in_the_folder_of_baselines(tmp_path: Path) -> None:
    folders = [Baseline.of_test(tmp_path, test_id).folder for test_id in IDS]
    assert {folder.parent for folder in folders} == {tmp_path}
    assert len({folder.name.lower() for folder in folders}) == len(IDS)
    assert all(folder.name.isascii() and len(folder.name) < 100 and "/" not in folder.name for folder in folders)
    assert folders[0].name.startswith("tests_test_a.py_test_step-")


def test_a_baseline_is_the_profile_and_the_load(tmp_path: Path) -> None:
    baseline = Baseline.of_test(tmp_path / "not" / "there", IDS[0])
    assert not baseline.exists
    logdir = recording(tmp_path / "recorded")
    baseline.replace(logdir)
    assert baseline.exists
    stored = sorted(path.name for path in (baseline.folder / "run-1").iterdir())
    assert stored == ["localhost.xplane.pb.gz", "tfcompare_load.json"]
    (profile,) = logdir.rglob("*.xplane.pb")
    assert (baseline.folder / "run-1" / "localhost.xplane.pb.gz").stat().st_size < profile.stat().st_size / 2
    (ours,), (theirs,) = find_runs(baseline.folder), find_runs(logdir)
    assert ours.is_readable
    load = read_load(baseline.folder / "run-1")
    assert isinstance(load, MachineLoad) and load.before == 0.25
    assert [file.host for file in ours.files] == [file.host for file in theirs.files]


def test_captures_are_added_and_replaced(tmp_path: Path) -> None:
    baseline = Baseline.of_test(tmp_path / "baselines", IDS[1])
    logdir = recording(tmp_path / "recorded")
    for _ in range(3):
        baseline.add(logdir)
    found = find_runs(baseline.folder)
    assert sorted(path.name for path in baseline.folder.iterdir()) == ["run-1", "run-2", "run-3"]
    assert len(found) == 3 and is_one_program(found)
    shutil.rmtree(baseline.folder / "run-2")
    baseline.add(logdir)
    assert sorted(path.name for path in baseline.folder.iterdir()) == ["run-1", "run-3", "run-4"]
    baseline.replace(logdir)
    assert [path.name for path in baseline.folder.iterdir()] == ["run-1"]
    assert [path.name for path in baseline.folder.parent.iterdir()] == [baseline.folder.name], "nothing is left over"


def test_a_folder_that_cannot_be_written_is_an_error_and_nothing_is_lost(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        Baseline.of_test(tmp_path / "file", IDS[0]).replace(recording(tmp_path / "recorded"))
