"""Problems are listed as what they are, beside the runs that are fine."""

import gzip
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.sources.test_logdir import (
    LATER,
    PLANE,
    PROFILE,
    STAMP,
    add_run,
    only_problem,
    put,
)
from tfcompare.errors import NoRuns, NoSuchPlace
from tfcompare.sources.logdir import check_file, find_run, find_runs


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty (0 bytes) where a profile was expected"),
        (PROFILE[:-1], "at byte 34 expected a field of 2 bytes, found 1: the file breaks off at byte 37"),
        (PROFILE[:40] + b"", None),
        (PLANE[:5], "at byte 0 expected a field of 11 bytes, found 3: the file breaks off at byte 5"),
        (PLANE + b"\x0a", "at byte 13 expected a field's tag and length, found bytes 0a"),
        (b"\x0a" + b"\xff" * 12, "expected a field's tag and length"),
        (b"Hello, world", "at byte 0 expected a plane, error, warning or host name, found bytes 48 65 6c 6c"),
        (b"<traces>", "expected a plane, error, warning or host name"),
        (PLANE + b"\x0b", "expected a plane, error, warning or host name"),
        (PLANE + b"\x2b", "at byte 13 expected the next field of a profile, found bytes 2b"),
        (PLANE + b"\x28\x05" + b"\x31" + bytes(8) + b"\x35" + bytes(4) + b"\x3a\x01x", None),
        (PLANE * 70 + b"\x0b", None),  # after 64 fields it is believed
        (gzip.compress(PROFILE, mtime=0), None),
    ],
)
def test_a_files_outline(tmp_path, data, said):
    path = put(tmp_path / "logs/vm.xplane.pb", data)
    add_run(tmp_path / "logs/fine")
    problem = check_file(path)
    assert (problem is None) == (said is None)
    damaged, fine = sorted(find_runs(tmp_path / "logs"), key=lambda run: run.id)
    assert damaged.problems == ((problem,) if problem else ())
    assert damaged.is_readable == (problem is None)
    assert fine.is_readable
    if problem:
        assert problem.startswith(f"{path}: ")
        assert said in problem


def test_a_gzip_name_wants_gzip_bytes(tmp_path):
    assert "expected gzip data (1f 8b), found 0a 0b" in only_problem(put(tmp_path / "vm.xplane.pb.gz"))


def test_a_damaged_host_file_among_good_ones(tmp_path):
    folder = add_run(tmp_path / "logs", host="good")
    add_run(tmp_path / "logs", host="bad", data=b"")
    (folder / "gone.xplane.pb").symlink_to(tmp_path / "nowhere.xplane.pb")
    (folder / "circle.xplane.pb").symlink_to(folder / "circle.xplane.pb")
    (folder / "folder.xplane.pb").mkdir()
    os.mkfifo(folder / "pipe.xplane.pb")
    run = find_run(tmp_path)
    assert [f.host for f in run.files] == ["good"]
    told = [problem.removeprefix(f"{folder}/").split(";")[0] for problem in run.problems]
    assert told == [
        "bad.xplane.pb: is empty (0 bytes) where a profile was expected",
        "circle.xplane.pb: cannot be opened (Too many levels of symbolic links)",
        "folder.xplane.pb: is a folder where a profile file was expected",
        f"gone.xplane.pb: is a link to {tmp_path}/nowhere.xplane.pb, which does not exist",
        "pipe.xplane.pb: is a pipe, socket or device where a profile file was expected",
    ]


def test_old_tool_files(tmp_path):
    folder = tmp_path / "logs/plugins/profile/old"
    for name in ("h.overview_page.pb", "h.trace.json.gz", "h.memory_profile.json.gz", "h.op_profile.json", "other"):
        put(folder / name, seconds=86400)
    (run,) = find_runs(tmp_path / "logs")
    assert run.problems == (
        f"{folder}: holds only tool files of an older profiler (h.memory_profile.json.gz, h.op_profile.json, "
        "h.overview_page.pb and 1 more); tfcompare reads .xplane.pb: record the run again with TensorFlow 2.3 or later",
    )
    assert (run.files, run.size_bytes, run.recorded) == ((), 0, datetime(1970, 1, 2, tzinfo=UTC))
    assert only_problem(folder) == run.problems[0]
    assert "is a tool file of an older profiler" in only_problem(folder / "h.overview_page.pb")
    assert "older profiler (h.kernel_stats.pb)" in only_problem(put(tmp_path / "copied/h.kernel_stats.pb").parent)
    with pytest.raises(NoRuns):  # PyTorch and others write such names
        find_runs(put(tmp_path / "torch/worker.pt.trace.json").parent)


@pytest.mark.parametrize("trace", ["vm.trace.json.gz", "perfetto_trace.json.gz"])
def test_an_empty_profile_beside_its_trace_was_too_large(tmp_path, trace):
    folder = add_run(tmp_path, data=b"")
    for name, content in (("other.trace.json.gz", b"\x1f\x8b"), (trace, b"")):
        put(folder / name, content)
        assert "is empty (0 bytes) where a profile was expected" in only_problem(tmp_path)
    put(folder / trace, b"\x1f\x8b")
    assert only_problem(tmp_path) == (
        f"{folder / 'vm.xplane.pb'}: is empty (0 bytes), but the trace.json.gz beside it is not: a profile of more "
        "than 2 GB cannot be saved; record the run again with fewer steps"
    )
    assert check_file(folder / "vm.xplane.pb") == only_problem(tmp_path)


def test_a_run_folder_without_a_profile(tmp_path):
    profile = tmp_path / "logs/plugins/profile"
    (profile / "nothing").mkdir(parents=True)
    put(profile / "derived/vm.hlo_proto.pb")
    put(profile / "notes/readme.txt")
    put(profile / "group/run/vm.xplane.pb")
    told = {run.path.name: run.problems for run in find_runs(tmp_path / "logs")}
    assert told == {
        "nothing": (f"{profile}/nothing: is empty where a .xplane.pb was expected; record the run again",),
        "derived": (
            f"{profile}/derived: holds only what xprof made of a profile (vm.hlo_proto.pb) and not the .xplane.pb "
            "itself; copy that file here anew or record the run again",
        ),
        "notes": (
            f"{profile}/notes: holds no .xplane.pb, only readme.txt; copy the profile here or record the run again",
        ),
        "run": (),
    }
    assert "is what xprof made of a profile" in only_problem(profile / "derived/vm.hlo_proto.pb")


def test_links_that_lead_nowhere_and_in_circles(tmp_path):
    logs = tmp_path / "logs"
    add_run(logs / "a")
    add_run(tmp_path / "outside", LATER)
    (logs / "before").symlink_to(tmp_path / "gone")
    (logs / "circle").symlink_to(logs / "circle")
    (logs / "a/plugins/profile/v1.final").symlink_to("gone")
    (logs / "lib.so").symlink_to("gone")
    (logs / ".#lock").symlink_to("gone")
    (logs / "up").symlink_to(tmp_path)
    (logs / "again").symlink_to(logs)
    (logs / "0_latest").symlink_to(logs / "a")
    (logs / "linked").symlink_to(tmp_path / "outside")
    told = {run.id: "".join(run.problems).split(": ")[-1].split(";")[0] for run in find_runs(logs)}
    assert told == {
        f"logs/a/plugins/profile/{STAMP}": "",
        f"logs/linked/plugins/profile/{LATER}": "",
        "logs/a/plugins/profile/v1.final": "is a link to gone, which does not exist",
        "logs/before": f"is a link to {tmp_path}/gone, which does not exist",
        "logs/circle": "cannot be opened (Too many levels of symbolic links)",
    }


def test_what_may_not_be_read(tmp_path, monkeypatch):
    logs = tmp_path / "logs"
    add_run(logs / "fine")
    locked = add_run(logs / "locked", LATER).parent
    secret = add_run(logs / "secret", LATER) / "vm.xplane.pb"
    (logs / "link").symlink_to(locked)
    real_open, real_scandir = os.open, os.scandir

    def refuse(function):
        def guarded(path, *args):
            if not isinstance(path, int) and Path(path).resolve() in (locked, secret):
                raise PermissionError(13, "Permission denied", str(path))
            return function(path, *args)

        return guarded

    monkeypatch.setattr(os, "open", refuse(real_open))
    monkeypatch.setattr(os, "scandir", refuse(real_scandir))
    problems = {run.name: run.problems for run in find_runs(logs)}
    assert problems == {
        "fine": (),
        "locked": (f"{locked}: cannot be opened (Permission denied); give yourself the right to read it",),
        "secret": (f"{secret}: cannot be opened (Permission denied); give yourself the right to read it",),
    }
    for place in (locked, secret):
        with pytest.raises(NoSuchPlace, match="cannot be opened"):
            find_runs(place)
