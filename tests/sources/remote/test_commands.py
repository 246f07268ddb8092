"""URLs on the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.sources.remote.servers import Web, put_runs
from tests.store.runs_in_stores import SMALL, STAMP, small
from tests.xspace_builder import chunk
from tfcompare.commands import serve
from tfcompare.units import format_bytes

NAMES = ("theirs", "ours")


@pytest.fixture
def logs(memory: Any) -> str:
    return put_runs(memory, *NAMES)


def downloads(cache_folder: Path) -> int:
    return len(list(cache_folder.iterdir())) if cache_folder.exists() else 0


def test_runs_are_listed_without_fetching_them_unless_asked_to(tfcompare, cache_folder: Path, logs: str) -> None:
    size = format_bytes(sum(len(SMALL[name]) for name in NAMES))
    status, out, err = tfcompare("runs", logs)
    assert (status, downloads(cache_folder)) == (0, 0)
    assert err == f"note: 2 of 2 runs are listed without reading them (--fetch downloads {size})\n"
    assert f"{logs}/ours/plugins/profile/{STAMP}" in out
    status, out, err = tfcompare("runs", logs, "--fetch", "--format", "json")
    assert (status, err, downloads(cache_folder)) == (0, "", 2)
    assert {record["state"] for record in json.loads(out)} == {"read"}
    status, out, err = tfcompare("runs", logs, "--format", "json")
    assert (status, err, downloads(cache_folder)) == (0, "", 2), "what was fetched is read"
    assert sorted(record["steps"] for record in json.loads(out)) == [12, 14]


def test_remote_runs_are_compared_shown_and_checked(tfcompare, logs: str, tmp_path: Path) -> None:
    places, local = [f"{logs}/{name}" for name in NAMES], [str(small(name, tmp_path)) for name in NAMES]
    status, remote, _ = tfcompare("diff", places[0], local[1], "--format", "csv")
    assert status == 0
    assert remote == tfcompare("diff", *local, "--format", "csv")[1]
    status, out, _ = tfcompare("show", places[1], "steps", "--format", "csv")
    assert (status, len(out.splitlines())) == (0, 13)
    assert tfcompare("check", *places, "--fail-if", "step_time>+5%")[0] == 0
    assert tfcompare("check", *places[::-1], "--fail-if", "step_time>+5%")[0] == 1
    status, out, _ = tfcompare("check", *places, "--baseline-repeat", places[0], "--format", "json")
    assert status == 0


def test_what_goes_wrong_is_one_line(tfcompare, web: Web) -> None:
    status, out, err = tfcompare("runs", f"{web.url}/nothing?sig=hunter2")
    assert (status, out) == (2, "")
    assert err == f"tfcompare: {web.url}/nothing: there is no such file or folder; check the spelling of the URL\n"
    status, _, err = tfcompare("show", "ftp://host/logs", "steps")
    assert (status, err.count("\n")) == (2, 1)


def test_serve_hands_urls_on_as_they_are(tfcompare, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, words: started.append(words))
    tfcompare("serve", "s3://bucket/logs", str(tmp_path))
    assert started[0][-2:] == ["s3://bucket/logs", str(tmp_path)]
    status, _, err = tfcompare("serve", "file:///etc")
    assert (status, len(started)) == (2, 1)
    assert "name the path itself" in err
    assert serve.command_line(["s3://b"], None)[-1] == "s3://b"


def test_fetching_is_told_on_a_terminal(tfcompare, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    large = SMALL["ours"] + chunk(99, bytes(1_600_000))
    (web.folder / "vm.xplane.pb").write_bytes(large)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    _, _, err = tfcompare("show", f"{web.url}/vm.xplane.pb", "steps", "--format", "csv")
    assert "fetching vm: " in err
    assert f" of {format_bytes(len(large))}" in err
    assert err.endswith("\r\x1b[K")
