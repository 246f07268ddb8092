"""The metadata of runs: from a file beside them, from the command line, and from the environment of the recording."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import tfcompare as tfc
from tests.store.runs_in_stores import SMALL
from tests.xspace_builder import event, line, plane, space
from tfcompare.errors import TfcompareError
from tfcompare.sources import record_environment as module
from tfcompare.sources.logdir import find_run, find_runs
from tfcompare.sources.logdir.metadata import (
    FILE_NAME,
    LONGEST_VALUE,
    MOST_VALUES,
    Metadata,
    parse_options,
    read_metadata,
)
from tfcompare.views.steps.what_differs import differences

FULL = {"commit": "abc123", "branch": "main", "tags": ["nightly", "gpu"], "machine": "lab-7"}


def logdir(tmp_path: Path) -> Path:
    """A logdir with one run, in the layout of TensorFlow."""
    folder = tmp_path / "logs" / "plugins" / "profile" / "2026_01_02_03_04_05"
    folder.mkdir(parents=True)
    (folder / "vm.xplane.pb").write_bytes(SMALL["ours"])
    return tmp_path / "logs"


def test_a_file_in_the_logdir_and_one_in_the_run_folder_count_together(tmp_path: Path) -> None:
    logs = logdir(tmp_path)
    (logs / FILE_NAME).write_text(json.dumps(FULL))
    (run,) = find_runs(tmp_path)
    assert run.metadata.get("commit") == "abc123"
    assert run.metadata.texts == ("branch=main", "commit=abc123", "machine=lab-7", "nightly", "gpu")
    (run.path / FILE_NAME).write_text('{"commit": "def456", "tags": "slow"}')
    (run,) = find_runs(tmp_path)
    assert (run.metadata.get("commit"), run.metadata.get("branch"), run.problems) == ("def456", "main", ())
    assert run.metadata.tags == ("nightly", "gpu", "slow")
    assert find_run(run.path).metadata.get("branch") == "", "a logdir above the place is not looked into"
    assert find_run(run.path / "vm.xplane.pb").metadata.get("commit") == "def456"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "it is not JSON"),
        (b"[" * 9_000, "it is not JSON"),
        (b"[]", "it is not an object"),
        (b'{"commit": 1}', "a value is not a text"),
        (b'{"tags": {"a": "b"}}', "tags is not a list"),
        (b'{"a=b": "c"}', "has a ="),
        (b'{"": "c"}', "a name is empty"),
        (b'{"commit": ""}', "a text is empty"),
        (b'{"commit": "a\\nb"}', "not printable"),
        (json.dumps({"commit": "a" * 8_001}).encode(), "longer than 8,000 characters"),
        (json.dumps({"tags": ["a" * 101]}).encode(), "longer than 100 characters"),
        (json.dumps({str(i): "a" for i in range(41)}).encode(), "more than 40 texts"),
        (json.dumps({"tags": [str(i) for i in range(21)]}).encode(), "20 tags"),
        (b" " * 500_001, "larger than 500,000 bytes"),
    ],
)
def test_a_damaged_file_is_one_sentence_and_the_run_stays_usable(content: bytes, why: str, tmp_path: Path) -> None:
    logs = logdir(tmp_path)
    (logs / FILE_NAME).write_bytes(content)
    (run,) = find_runs(tmp_path)
    (problem,) = run.problems
    assert problem.startswith(f"{logs / FILE_NAME}: expected an object of short texts")
    assert why in problem and "\n" not in problem
    assert (run.is_readable, run.metadata) == (True, Metadata())


def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('{"commit": "secret"}')
    (tmp_path / FILE_NAME).symlink_to(tmp_path / "secret")
    found, problem = read_metadata(tmp_path)
    assert (found, "cannot be read" in problem) == (Metadata(), True)
    (tmp_path / FILE_NAME).unlink()
    os.mkfifo(tmp_path / FILE_NAME)
    assert "not a file" in read_metadata(tmp_path)[1]


def test_options_are_checked() -> None:
    assert parse_options(["commit=abc", "tags=nightly", "url=a=b"]) == Metadata(
        (("commit", "abc"), ("url", "a=b")), ("nightly",)
    )
    for bad in ("nightly", "=a", "commit=", f"commit={'a' * 8_001}", f"tags={'a' * 101}"):
        with pytest.raises(TfcompareError, match="expected key=value"):
            parse_options([bad])


def test_a_long_text_is_kept_whole_and_shortened_among_tags() -> None:
    flags = " ".join(f"--xla_flag_{i}=true" for i in range(300))
    found = parse_options([f"XLA_FLAGS={flags}"])
    assert found.get("XLA_FLAGS") == flags
    (text,) = found.texts
    assert len(text) <= 131 and text.startswith("XLA_FLAGS=--xla_flag_0=true") and text.endswith("…")


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
