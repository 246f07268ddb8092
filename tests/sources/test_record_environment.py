"""What a program ran with, written beside its profile."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import tfcompare as tfc
from tests.xspace_builder import event, line, plane, space
from tfcompare.sources import record_environment as module
from tfcompare.sources.logdir.metadata import LONGEST_VALUE, MOST_VALUES
from tfcompare.views.steps.what_differs import differences


def captured(folder: Path, length_us: float = 5, name: str = "run") -> Path:
    run = folder / "plugins" / "profile" / name
    run.mkdir(parents=True)
    (run / "vm.xplane.pb").write_bytes(space(plane("/host:CPU", line("main", event("a:MatMul", 0, length_us)))))
    return folder


def test_listed_packages_and_variables_are_written_and_read_and_no_others(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    monkeypatch.setenv("TF_SECRET_TOKEN", "hunter2")
    monkeypatch.setenv("JAX_PLATFORMS", " ")
    path = tfc.record_environment(captured(tmp_path), commit="abc")
    written = json.loads(path.read_text())
    assert written["XLA_FLAGS"] == "--xla_cpu_multi_thread_eigen=false" and written["commit"] == "abc"
    assert written["numpy"] and written["CPU"] and "JAX_PLATFORMS" not in written
    assert "hunter2" not in path.read_text()
    run = tfc.load(tmp_path)
    assert run.found.metadata.get("commit") == "abc" and not run.found.problems


def test_another_flag_is_what_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for number, flags in enumerate(("--a=1", "--a=2")):
        monkeypatch.setenv("XLA_FLAGS", flags)
        folder = captured(tmp_path / str(number), 5 + number)
        tfc.record_environment(folder)
        runs.append(tfc.load(folder))
    (found,) = differences(*runs, [])
    assert (found.label, found.baseline, found.candidate) == ("XLA_FLAGS", "--a=1", "--a=2")


def test_it_goes_beside_the_newest_profile_and_keeps_what_is_there(tmp_path: Path) -> None:
    captured(tmp_path, name="old"), captured(tmp_path, name="new")
    os.utime(tmp_path / "plugins/profile/old/vm.xplane.pb", (1, 1))
    beside = tmp_path / "plugins/profile/new/tfcompare.json"
    beside.write_text('{"commit": "mine", "tags": ["nightly"]}')
    assert tfc.record_environment(tmp_path, commit="other") == beside
    written = json.loads(beside.read_text())
    assert (written["commit"], written["tags"]) == ("mine", ["nightly"])
    assert not (tmp_path / "plugins/profile/old/tfcompare.json").exists()


def test_long_and_strange_texts_become_ones_that_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in module.VARIABLES:
        monkeypatch.setenv(name, f"--flag\n\x1b[31m {'x' * 9_000}")
    path = tfc.record_environment(captured(tmp_path))
    written = json.loads(path.read_text())
    assert len(written["OMP_NUM_THREADS"]) == LONGEST_VALUE and len(written) <= MOST_VALUES + 1
    assert written["OMP_NUM_THREADS"].endswith("x…")
    run = tfc.load(tmp_path)
    assert run.found.metadata.get("OMP_NUM_THREADS").startswith("--flag [31m xxx") and not run.found.problems


def test_without_a_profile_or_with_a_text_that_cannot_be_read_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(tfc.TfcompareError, match="call this after the capture"):
        tfc.record_environment(tmp_path)
    with pytest.raises(ValueError, match="a text is empty"):
        tfc.record_environment(captured(tmp_path), commit="x" * 8_001)
    assert not list(tmp_path.rglob("tfcompare.json"))


def test_real_flags_are_kept_whole_and_what_is_left_out_is_listed(tmp_path: Path, monkeypatch) -> None:
    flags = " ".join(f"--xla_flag_{i}=true" for i in range(300))
    monkeypatch.setenv("XLA_FLAGS", flags)
    notes = {f"note {i}": "x" for i in range(MOST_VALUES - 3)}
    written = json.loads(tfc.record_environment(captured(tmp_path), tags="nightly", **notes).read_text())
    assert written["XLA_FLAGS"] == flags and written["tags"] == ["nightly"] and notes.items() <= written.items()
    left_out = written[module.LEFT_OUT].split(", ")
    assert "CPU" in left_out and not written.keys() & set(left_out) and len(written) == MOST_VALUES + 1
    metadata = tfc.load(tmp_path).found.metadata
    assert (metadata.get("XLA_FLAGS"), metadata.tags) == (flags, ("nightly",))
