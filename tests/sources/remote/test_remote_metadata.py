"""The metadata of runs behind URLs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sources.remote.servers import S3
from tests.sources.remote.test_s3 import requests_to_s3
from tests.store.runs_in_stores import SMALL
from tfcompare.sources.logdir import find_run
from tfcompare.sources.logdir.metadata import FILE_NAME
from tfcompare.store.run_store import Store
from tfcompare.store.stored_run import runs_in

RUN = "night/plugins/profile/2026_01_01_00_00_00"
FULL = {"commit": "abc123", "branch": "main", "tags": ["nightly"]}


def put_in_s3(s3: S3, **files: bytes) -> None:
    s3.put(f"logs/{RUN}/vm.xplane.pb", SMALL["ours"])
    for where, content in files.items():
        s3.put(f"logs/{ {'logdir': 'night', 'run': RUN, 'above': ''}[where] }/{FILE_NAME}".replace("//", "/"), content)


def test_files_in_a_bucket_are_read_once(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    put_in_s3(s3, above=b"{", logdir=json.dumps(FULL).encode(), run=b'{"commit": "def456"}')
    asked = requests_to_s3(monkeypatch)
    run = find_run("s3://bucket/logs")
    assert run.metadata.texts == ("branch=main", "commit=def456", "nightly")
    assert run.problems == ()
    find_run("s3://bucket/logs")
    assert asked.count("GetObject") == 3


@pytest.mark.parametrize(
    ("content", "why"), [(b"", "it is not JSON"), (b" " * 600_000, "it is larger than 500,000 bytes")]
)
def test_an_unusable_file_is_one_sentence_and_the_run_stays_usable(s3: S3, content: bytes, why: str) -> None:
    put_in_s3(s3, logdir=content)
    run = find_run("s3://bucket/logs")
    assert run.is_readable and run.metadata.texts == ()
    assert run.problems == (
        f"s3://bucket/logs/night/{FILE_NAME}: expected an object of short texts such as commit, branch and tags, but "
        f"{why}; it is not used, so correct or remove it",
    )


def test_a_file_that_does_not_arrive_is_left_out(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    put_in_s3(s3, logdir=b"{}")
    monkeypatch.setattr("tfcompare.sources.logdir.metadata.MOST_S", 0.0)
    run = find_run("s3://bucket/logs")
    assert (run.is_readable, run.metadata.texts) == (True, ())
    assert "did not arrive within 0 s" in run.problems[0]


def test_ingest_stores_what_is_behind_a_url(s3: S3, tmp_path: Path, tfcompare) -> None:
    put_in_s3(s3, logdir=json.dumps(FULL).encode())
    status, _, err = tfcompare("ingest", "s3://bucket/logs", "--store", str(tmp_path / "store"))
    assert status == 0, err
    (run,) = runs_in(Store(str(tmp_path / "store")))[0]
    assert run.metadata.get("commit") == "abc123"
