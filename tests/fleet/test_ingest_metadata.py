"""Metadata of runs in a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.runs_in_stores import put, small
from tfcompare.frames import profile_reader
from tfcompare.sources.logdir.metadata import FILE_NAME
from tfcompare.store.run_store import Store
from tfcompare.store.stored_run import runs_in


def texts(store: Path) -> tuple[str, ...]:
    (run,) = runs_in(Store(str(store)))[0]
    record = Store(str(store)).record(run.id)
    assert record is not None and record.all_metadata == run.metadata
    return run.metadata.texts


@pytest.mark.usefixtures("here")
def test_tags_of_a_command_and_of_a_file_are_stored_and_listed(tmp_path: Path, tfcompare, monkeypatch) -> None:
    folder, store = small("ours", tmp_path / "logs"), tmp_path / "store"
    (folder / FILE_NAME).write_text('{"commit": "abc", "tags": ["nightly"]}')
    words = ("ingest", str(tmp_path / "logs"), "--store", str(store))
    assert tfcompare(*words)[0] == 0
    assert texts(store) == ("commit=abc", "nightly")
    monkeypatch.setattr(profile_reader, "read", lambda path: pytest.fail(f"{path} was read again"))
    assert "1 runs ingested" in tfcompare(*words, "--tag", "branch=main", "--tag", "commit=def")[1]
    assert texts(store) == ("branch=main", "commit=def", "nightly")
    assert "1 unchanged" in tfcompare(*words)[1], "what a command gave stays"
    (folder / FILE_NAME).write_text('{"tags": ["weekly"]}')
    assert "1 runs ingested" in tfcompare(*words)[1]
    assert texts(store) == ("branch=main", "commit=def", "weekly")
    status, out, _ = tfcompare("runs", "--store", str(store))
    assert (status, "branch=main, commit=def, weekly" in out) == (0, True)


def test_an_option_that_is_no_tag_is_bad_input(tmp_path: Path, tfcompare) -> None:
    status, _, err = tfcompare("ingest", str(tmp_path), "--tag", "nightly")
    assert (status, err) == (
        2,
        "tfcompare: 'nightly': expected key=value, such as commit=abc123, but there is no =\n",
    )


def test_the_index_has_the_step_time_with_its_interval(tmp_path: Path) -> None:
    small("ours", tmp_path / "logs")
    put([tmp_path / "logs"], tmp_path / "store")
    (run,) = runs_in(Store(str(tmp_path / "store")))[0]
    summary = run.summary
    assert summary is not None and summary.step_time_ms_low is not None and summary.step_time_ms_high is not None
    assert summary.step_time_ms_low < summary.step_time_ms_mean < summary.step_time_ms_high
