"""The machine's load beside a run: stored, read, and part of the verdict."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tfcompare as tfc
from tests.store.runs_in_stores import STAMP, small
from tfcompare.sources import machine_load
from tfcompare.sources.machine_load import FILE_NAME, MachineLoad, read_load, recorded_load, write_load

BUSY = '{"cores": 2, "before": 4.5, "after": 1.0}'


def under_load(to: Path, load: str) -> tfc.Run:
    """A small run that was recorded with this load."""
    folder = small("ours", to)
    (folder / "plugins" / "profile" / STAMP / FILE_NAME).write_text(load, encoding="utf-8")
    return tfc.load(folder)


@pytest.mark.parametrize(
    ("before", "after", "is_busy"), [(0.1, 1.9, False), (2.0, 2.0, False), (2.1, 0.0, True), (0.0, 6.0, True)]
)
def test_a_machine_is_busy_where_more_threads_want_to_run_than_it_has_cores(before, after, is_busy) -> None:
    assert MachineLoad(2, before, after).is_busy is is_busy


def test_what_is_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_load.os, "getloadavg", lambda: (3.0, 2.0, 1.0))
    monkeypatch.setattr(machine_load.os, "cpu_count", lambda: 8)
    write_load(tmp_path, 0.25)
    assert read_load(tmp_path) == MachineLoad(8, 0.25, 3.0)


def test_without_a_load_average_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(machine_load.os, "getloadavg")
    write_load(tmp_path, machine_load.load_average())
    assert list(tmp_path.iterdir()) == []


def test_around_a_recording_only_its_own_profiles_get_the_load(tmp_path: Path) -> None:
    old, new = (tmp_path / "plugins" / "profile" / name for name in ("old", "new"))
    old.mkdir(parents=True)
    (old / "vm.xplane.pb").touch()
    with recorded_load(tmp_path):
        new.mkdir()
        (new / "vm.xplane.pb").touch()
    assert read_load(old) is None
    assert isinstance(read_load(new), MachineLoad)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"cores": "many"}', '{"cores": 2}', " " * 20_000])
def test_a_damaged_file_is_no_load(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE_NAME).write_text(content, encoding="utf-8")
    assert read_load(tmp_path) is None


def test_neither_a_link_is_followed_nor_a_pipe_waited_for(tmp_path: Path) -> None:
    folder, outside = tmp_path / "run", tmp_path / "outside.json"
    folder.mkdir()
    outside.write_text(BUSY, encoding="utf-8")
    (folder / FILE_NAME).symlink_to(outside)
    assert read_load(folder) is None
    (folder / FILE_NAME).unlink()
    os.mkfifo(folder / FILE_NAME)
    assert read_load(folder) is None


def test_a_run_under_load_says_so_and_the_assumed_variation_is_wider(tmp_path: Path) -> None:
    baseline = tfc.load(small("theirs", tmp_path))
    quiet, busy = under_load(tmp_path / "quiet", BUSY.replace("4.5", "0.5")), under_load(tmp_path / "busy", BUSY)
    assert quiet.remarks == ()
    assert busy.remarks == (
        "recorded under load (load average 4.5 before and 1.0 after, 2 cores): step times vary more",
    )
    assert busy.content_id == quiet.content_id
    (usual,), (wider,) = (tfc.compare(baseline, run).verdict.values() for run in (quiet, busy))
    assert wider.low < usual.low < usual.high < wider.high
    assert "widened for captures under load" in wider.reason and "under load" not in usual.reason
    (mirrored,) = tfc.compare(busy, baseline).verdict.values()
    assert (mirrored.low, mirrored.high) == pytest.approx((1 / wider.high, 1 / wider.low))
