"""Stored uploads: whole or not at all, found again, told apart, deleted, and clean after a kill."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import textwrap
import time
from multiprocessing.pool import ThreadPool
from pathlib import Path

import pytest

import tfcompare as tfc
from tests.profiles import ROOT
from tests.server.uploads.hostile import HOSTILE, arrival, tarred, zipped
from tests.sources.test_hosts_of_runs import profile
from tests.store.runs_in_stores import SMALL
from tfcompare.server.uploads.limits import BadUpload, Limits
from tfcompare.server.uploads.quotas import clean, session_owner
from tfcompare.server.uploads.receiving import ABOUT, Arrival, Upload, Uploads
from tfcompare.sources.abandoned_folders import this_process

PROFILE, OTHER = SMALL["ours"], SMALL["theirs"]
RUN = "plugins/profile/2026_01_01_00_00_00"


def runs_of(upload: Upload) -> list[str]:
    return [run.id for run in tfc.find_runs(upload.place)]


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    return Uploads(tmp_path, "local")


def test_a_folder_is_kept_by_its_name_with_what_was_no_profile_listed(uploads: Uploads) -> None:
    sent: list[int] = []
    upload = uploads.receive(
        [arrival(f"logs/{RUN}/vm.xplane.pb", PROFILE), arrival("logs/events.out.tfevents.1.vm", b"events")], sent.append
    )
    assert (upload.name, upload.profiles, upload.size_bytes) == ("logs", 1, len(PROFILE))
    assert upload.ignored == ("events.out.tfevents.1.vm",)
    assert runs_of(upload) == [f"logs/{RUN}"]
    assert sum(sent) == len(PROFILE)
    assert uploads.all() == [upload]


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_an_archive_is_kept_by_its_name_and_progress_adds_up(uploads: Uploads, pack) -> None:
    sent: list[int] = []
    packed = pack((f"train/{RUN}/vm.xplane.pb", PROFILE), ("notes.txt", b"n"))
    upload = uploads.receive([arrival("my model.tar.gz", packed)], sent.append)
    assert sum(sent) == len(PROFILE)
    assert (upload.name, upload.ignored) == ("my model", ("notes.txt",))
    assert runs_of(upload) == [f"my model/train/{RUN}"]


def test_profiles_without_a_folder_are_runs_of_their_own(uploads: Uploads) -> None:
    upload = uploads.receive([arrival("before.xplane.pb", OTHER), arrival("after.xplane.pb", PROFILE)])
    assert sorted(runs_of(upload)) == ["before/after", "before/before"]


def test_profiles_in_one_folder_that_were_captured_together_are_the_hosts_of_one_run(uploads: Uploads) -> None:
    together = [arrival("run/a.xplane.pb", profile(0.0)), arrival("run/b.xplane.pb", profile(1.0))]
    (run,) = tfc.find_runs(uploads.receive(together).place)
    assert [file.host for file in run.files] == ["a", "b"]
    apart = [arrival("runs/a.xplane.pb", profile(0.0)), arrival("runs/b.xplane.pb", profile(86_400.0))]
    assert len(tfc.find_runs(uploads.receive(apart).place)) == 2, "captured at other times"


def test_the_same_content_is_found_again_whatever_it_came_in(uploads: Uploads) -> None:
    first = uploads.receive([arrival("a.zip", zipped((f"{RUN}/vm.xplane.pb", PROFILE)))])
    again = uploads.receive([arrival("b.tgz", tarred((f"{RUN}/vm.xplane.pb", PROFILE), ("readme", b"")))])
    assert (again.digest, again.name, again.is_known) == (first.digest, "a", True)
    assert len(uploads.all()) == 1
    other = uploads.receive([arrival("a.zip", zipped(("vm.xplane.pb", OTHER)))])
    assert (other.name, len(uploads.all())) == ("a 2", 2), "another of the same name"


def test_uploads_outlive_the_process_and_are_deleted(uploads: Uploads, tmp_path: Path) -> None:
    upload = uploads.receive([arrival("a.xplane.pb", PROFILE)])
    later = Uploads(tmp_path, "local")
    assert later.all() == [upload]
    later.delete(upload.digest)
    later.delete(upload.digest)
    later.delete("../..")
    assert later.all() == []
    assert not list((tmp_path / "uploads" / "local").iterdir())


def test_nobody_sees_what_another_has_uploaded(tmp_path: Path) -> None:
    Uploads(tmp_path, "ann@example.com").receive([arrival("a.xplane.pb", PROFILE)])
    assert Uploads(tmp_path, "bob@example.com").all() == []
    Uploads(tmp_path, "../../escape").receive([arrival("a.xplane.pb", PROFILE)])
    assert [path.name for path in tmp_path.iterdir()] == ["uploads"]


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        ([arrival("notes.txt", b"n")], r"notes.txt: holds no profile .*, but notes.txt; upload"),
        (
            [arrival("r5.pt.trace.json", b"{}")],
            r"holds no profile .*, but r5.pt.trace.json \(a PyTorch trace\); upload",
        ),
        ([arrival("a.zip", zipped(("x", b""), ("y", b"")))], r"a.zip: holds no profile .*, but x, y; upload"),
        ([arrival("../a.xplane.pb", b"")], "leads out of its folder"),
        ([arrival("a.xplane.pb", b"1"), arrival("A.xplane.pb", b"2")], "is there twice"),
        ([arrival("a.xplane.pb", PROFILE), arrival("b.tgz", HOSTILE["tar, symbolic link"][0]())], "is a link"),
        ([Arrival("a.xplane.pb", io.BytesIO(bytes(90)), 100)], "breaks off 10 bytes before its end"),
        ([arrival("a.zip", zipped())], "holds no profile .*, but nothing"),
    ],
)
def test_what_is_refused_leaves_nothing(uploads: Uploads, tmp_path: Path, arrivals, expected: str) -> None:
    with pytest.raises(BadUpload, match=expected):
        uploads.receive(arrivals)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert uploads.all() == []


def test_all_files_together_have_a_limit(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path, "local", Limits(total_bytes=1000))
    with pytest.raises(BadUpload, match=r"2 files: .* of profiles, more than the"):
        uploads.receive([arrival("a.xplane.pb", bytes(600)), arrival("b.xplane.pb", bytes(600))])


def test_two_that_upload_the_same_at_once_share_it(uploads: Uploads) -> None:
    packed = zipped((f"{RUN}/vm.xplane.pb", PROFILE))
    with ThreadPool(8) as pool:
        got = pool.map(lambda i: uploads.receive([arrival(f"{i}.zip", packed)]), range(8))
    assert len({upload.digest for upload in got}) == 1
    assert [upload.digest for upload in uploads.all()] == [got[0].digest]
    assert all(upload.place == uploads.all()[0].place for upload in got)


def test_a_process_killed_while_it_receives_leaves_what_the_next_start_removes(uploads: Uploads, tmp_path) -> None:
    code = textwrap.dedent("""
        import io, sys, time
        from pathlib import Path
        from tfcompare.server.uploads.receiving import Arrival, Uploads
        def stall(_):
            print("half", flush=True)
            time.sleep(60)
        data = bytes(3 << 20)
        Uploads(Path(sys.argv[1]), "local").receive([Arrival("a.xplane.pb", io.BytesIO(data), len(data))], stall)
    """)
    folder = tmp_path / "uploads" / "local"
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        clean(tmp_path)
        assert len(list(folder.iterdir())) == 1, "what another process is about to keep was removed"
        process.kill()
    assert uploads.all() == []
    clean(tmp_path)
    assert not list(folder.iterdir())


UPLOADER = """
import io, sys
from pathlib import Path
from tests.server.uploads.hostile import zipped
from tfcompare.server.uploads.receiving import Arrival, Uploads
uploads = Uploads(Path(sys.argv[1]), "local")
for number in range(1000):
    files = [(f"{i}.xplane.pb", bytes([number % 256, i]) * 1_000_000) for i in range(3)]
    packed = zipped(*files, method=0)
    uploads.receive([Arrival("a.zip", io.BytesIO(packed), len(packed))])
    print("stored", flush=True)
"""


@pytest.mark.thorough
def test_a_process_killed_while_it_examines_archives_leaves_whole_uploads_alone(uploads: Uploads, tmp_path) -> None:
    for kill in range(10):
        with subprocess.Popen([sys.executable, "-c", UPLOADER, tmp_path], stdout=subprocess.PIPE, cwd=ROOT) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"stored\n"
            time.sleep(0.013 * kill)
            process.kill()
        time.sleep(0.3)  # the child process notices that its parent has ended
        for upload in uploads.all():
            sizes = [path.stat().st_size for path in upload.place.iterdir()]
            assert (upload.profiles, sizes) == (3, [2_000_000] * 3)
        clean(tmp_path)
        listed = {upload.digest for upload in uploads.all()}
        assert listed and {path.name for path in (tmp_path / "uploads" / "local").iterdir()} == listed
        uploads.delete_all()


def test_only_what_processes_of_this_machine_have_left_is_removed(tmp_path: Path) -> None:
    gone = f"{this_process().partition('-')[0]}-{2**22 + 1}"
    names = {
        f"local/.arriving-{gone}-abc": False,
        f"local/.arriving-{this_process()}-abc": True,
        "local/.arriving-elsewhere-1-abc": True,
        f"local/.leaving-{gone}-abc": False,
        f"local/.leaving-{this_process()}-abc": True,
        "local/0123": True,
        f"session-{gone}-abc/0123": False,
        f"{session_owner('AB-c')}/0123": True,
    }
    for name in names:
        (tmp_path / "uploads" / name).mkdir(parents=True)
    clean(tmp_path)
    assert {name: (tmp_path / "uploads" / name).exists() for name in names} == names
    clean(tmp_path / "nothing here")


@pytest.mark.parametrize("about", ["", "{}", "[]", "\0", '{"name": "../../../secret"}'])
def test_an_upload_whose_description_is_damaged_is_not_listed_until_it_comes_again(
    about: str, uploads: Uploads
) -> None:
    upload = uploads.receive([arrival("a.xplane.pb", PROFILE)])
    path = upload.place.parent / ABOUT
    is_forged = "secret" in about
    path.write_text(json.dumps(json.loads(path.read_text()) | json.loads(about)) if is_forged else about)
    assert uploads.all() == []
    assert uploads.receive([arrival("a.xplane.pb", PROFILE)]).name == "a"
    assert len(uploads.all()) == 1
