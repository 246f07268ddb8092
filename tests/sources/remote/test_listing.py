"""Runs behind a URL, by their listing alone, and their metadata."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.sources.remote.servers import S3
from tests.sources.remote.test_s3 import requests_to_s3
from tests.store.runs_in_stores import SMALL
from tfcompare.errors import NoRuns, NoSuchPlace, SeveralRuns
from tfcompare.sources.logdir import find_run, find_runs
from tfcompare.sources.logdir.metadata import FILE_NAME
from tfcompare.sources.logdir.places import open_places
from tfcompare.sources.logdir.runs import survey
from tfcompare.store.run_store import Store
from tfcompare.store.stored_run import runs_in

STAMP = "2026_11_20_10_17_24"


def put(memory: Any, *paths: str, data: bytes = b"x") -> None:
    for path in paths:
        memory.pipe_file(f"/{path.replace('S/', STAMP + '/')}", data)


@pytest.mark.parametrize(
    ("file", "place", "expected"),
    [
        ("b/logs/a/plugins/profile/S/vm.xplane.pb", "b/logs", "a | logs/a/plugins/profile/S | vm"),
        ("b/a/plugins/profile/S/vm.xplane.pb", "b/a/plugins/profile/S", "a | S | vm"),
        ("b/a/plugins/profile/S/vm.xplane.pb", "b/a/plugins/profile/S/vm.xplane.pb", "a | vm.xplane.pb | vm"),
        ("b/before.xplane.pb.gz", "b/before.xplane.pb.gz", "before | before.xplane.pb.gz | before"),
        ("vm.xplane.pb", "", "memory | memory | vm"),
    ],
)
def test_every_layout_is_found_from_every_place(memory: Any, file: str, place: str, expected: str) -> None:
    put(memory, file)
    name, run_id, hosts = expected.replace("/S", f"/{STAMP}").replace("| S", f"| {STAMP}").split(" | ")
    (run,) = find_runs(f"memory://{place.replace('/S', f'/{STAMP}')}")
    assert (run.id, ",".join(f.host for f in run.files)) == (run_id, hosts)
    assert run.name == name or place == ""


def test_a_run_tells_where_it_lies_its_size_and_its_time(memory: Any, cache_folder: Path) -> None:
    put(memory, "b/logs/a/plugins/profile/S/vm2.xplane.pb", "b/logs/a/plugins/profile/S/vm1.xplane.pb", data=b"abc")
    put(memory, "b/logs/a/plugins/profile/S/vm1.hlo_proto.pb", "b/logs/events.out.tfevents.1.vm")
    (run,) = find_runs("memory://b/logs")
    assert str(run.path) == f"memory://b/logs/a/plugins/profile/{STAMP}"
    assert [(f.host, f.size_bytes, str(f.where)) for f in run.files] == [
        (host, 3, f"{run.path}/{host}.xplane.pb") for host in ("vm1", "vm2")
    ]
    assert (run.recorded_source, run.size_bytes, run.is_remote, run.bytes_at_hand) == ("folder name", 6, True, 0)
    assert all(f.path.parent == cache_folder for f in run.files)
    assert not cache_folder.exists(), "nothing was downloaded"
    assert find_run("memory://b").stat_key == run.stat_key
    put(memory, "b/logs/a/plugins/profile/S/vm2.xplane.pb", data=b"xyz")
    assert find_run("memory://b/logs").stat_key != run.stat_key


def test_a_folder_without_a_stamp_is_as_old_as_its_newest_file(memory: Any) -> None:
    put(memory, "b/a/vm1.xplane.pb", "b/a/vm2.xplane.pb")
    for name, year in (("vm1", 2023), ("vm2", 2024)):
        memory.store[f"/b/a/{name}.xplane.pb"].created = datetime(year, 1, 1, tzinfo=UTC)
    (run,) = find_runs("memory://b")
    assert (run.recorded, run.recorded_source) == (datetime(2024, 1, 1, tzinfo=UTC), "file time")


def test_problems_are_told_as_of_local_runs(memory: Any) -> None:
    put(memory, "b/empty/vm.xplane.pb", "b/large/vm.xplane.pb", data=b"")
    put(memory, "b/large/vm.trace.json.gz", data=b"\x1f\x8b")
    put(memory, "b/twice/vm.xplane.pb", "b/twice/vm.xplane.pb.gz")
    put(memory, "b/old/plugins/profile/x/h.overview_page.pb", "b/derived/plugins/profile/S/vm.hlo_proto.pb")
    put(memory, "b/.hidden/vm.xplane.pb", "b/node_modules/vm.xplane.pb", "b/fine/._vm.xplane.pb", "b/fine/vm.xplane.pb")
    told = {run.id: "".join(run.problems) for run in find_runs("memory://b")}
    assert set(told) == {
        *("b/empty", "b/large", "b/twice", "b/old/plugins/profile/x", f"b/derived/plugins/profile/{STAMP}", "b/fine")
    }
    assert "but the trace.json.gz beside it is not: a profile of more than 2 GB cannot be saved" in told["b/large"]
    assert told["b/empty"].startswith("memory://b/empty/vm.xplane.pb: is empty (0 bytes)")
    assert "vm.xplane.pb.gz: is passed over, since vm.xplane.pb is of the same host" in told["b/twice"]
    assert "only tool files of an older profiler" in told["b/old/plugins/profile/x"]
    assert "only what xprof made of a profile" in told[f"b/derived/plugins/profile/{STAMP}"]
    assert told["b/fine"] == ""


def test_a_place_without_one_run_says_what_it_holds_instead(memory: Any) -> None:
    put(memory, "b/logs/train/events.out.tfevents.1.vm", "b/logs/notes.txt")
    with pytest.raises(NoRuns) as caught:
        find_runs("memory://b/logs")
    assert str(caught.value).startswith(
        "memory://b/logs: no profile run here: looked for .xplane.pb and .xplane.pb.gz files in this folder and 1 "
        "folder below it, found 1 TensorBoard event file but no profile; record"
    )
    with pytest.raises(NoSuchPlace, match="memory://b/nothing: there is no such file or folder"):
        find_runs("memory://b/nothing")
    put(memory, "b/x/plugins/profile/S/vm.xplane.pb", "b/y/plugins/profile/S/vm.xplane.pb")
    with pytest.raises(SeveralRuns, match=rf"^memory://b: holds 2 runs; .* x \(memory://b/x/plugins/profile/{STAMP}\)"):
        find_run("memory://b")


def test_what_lies_in_two_places_is_the_first_ones(memory: Any) -> None:
    put(memory, "b/logs/x/vm.xplane.pb", "b/logs/y/vm.xplane.pb")
    for places, expected in {
        ("memory://b/logs/x", "memory://b/logs"): ["x", "logs/y"],
        ("memory://b/logs", "memory://b/logs/x"): ["logs/x", "logs/y"],
        ("memory://b/logs/x", "memory://b/logs/x/vm.xplane.pb"): ["x"],
    }.items():
        assert sorted(run.id for run in find_runs(*places)) == sorted(expected)


def test_a_place_that_is_lost_costs_the_others_nothing(memory: Any) -> None:
    put(memory, "b/x/vm.xplane.pb")
    found = survey(open_places(["memory://gone", "memory://b"]))
    assert [run.id for run in found.runs] == ["b/x"]
    assert [str(error).split(":")[0] for error in found.lost] == ["memory"]


def test_a_driver_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for protocol, package in (("az", "adlfs"), ("s3", "s3fs")):
        for name in ("s3", "s3a", "az"):
            monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, name, raising=False)
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(NoSuchPlace) as caught:
            find_runs(f"{protocol}://bucket/logs")
        needs = f"{protocol}:// needs the package {package}, which is not installed here: pip install {package}"
        assert str(caught.value) == f"{protocol}://bucket/logs: {needs}"


def test_driver_errors_are_never_repeated(monkeypatch: pytest.MonkeyPatch, memory: Any) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("https://host/x?sig=hunter2")

    monkeypatch.setattr(type(memory), "find", fail)
    with pytest.raises(NoSuchPlace) as caught:
        find_runs("memory://b")
    assert str(caught.value).startswith("memory://b: the server gives no usable answer (ZeroDivisionError)")


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
