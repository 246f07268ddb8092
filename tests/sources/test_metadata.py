"""The metadata of runs: from a file beside them, and from the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.store.runs_in_stores import SMALL
from tfcompare.errors import TfcompareError
from tfcompare.sources.logdir import find_run, find_runs
from tfcompare.sources.logdir.metadata import FILE_NAME, Metadata, parse_options, read_metadata

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
