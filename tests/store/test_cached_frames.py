"""Frames are cached, and never taken for those of a file that has changed; several threads may read first at once."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.profiles import WORKER_RUNS
from tests.store.runs_in_stores import SMALL
from tfcompare.frames import profile_reader
from tfcompare.run import Run, load
from tfcompare.store import cached_frames
from tfcompare.store.cached_frames import FrameCache, frame_cache
from tfcompare.store.files import StoreFiles


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(SMALL["ours"])
    return path


def opened(path: Path, step_marker: str | None = None) -> Run:
    """The run, once its frames are cached."""
    run = load(path, step_marker=step_marker)
    here().flush()
    return run


def here() -> FrameCache:
    cache = frame_cache()
    assert cache is not None
    return cache


def names_in(files: StoreFiles) -> list[str]:
    return [file.name for file in files.listed("packs")]


def packs(own: Path) -> list[Path]:
    return sorted(own.rglob("*.pack"))


def test_a_folder_that_others_can_write_to_is_neither_read_nor_written(own, profile, read_anew) -> None:
    opened(profile)
    assert own.stat().st_mode & 0o077 == 0, "it is the user's alone"
    before = sorted(own.rglob("*"))
    own.chmod(0o777)
    cached_frames._frame_cache_in.cache_clear()
    opened(profile)
    assert read_anew == ["vm.xplane.pb"] * 2
    other = Path(shutil.copy(profile, profile.parent / "other.xplane.pb"))
    opened(other)
    assert sorted(own.rglob("*")) == before
    (message,) = here().messages
    assert message.startswith(f"{own}: tables cannot be cached there (other users can write to it), so")
    cached_frames._frame_cache_in.cache_clear()


@pytest.mark.usefixtures("own")
def test_the_second_time_a_profile_is_not_read(profile: Path, read_anew: list[str]) -> None:
    first, second = opened(profile), opened(profile)
    assert read_anew == ["vm.xplane.pb"]
    assert second.content_id == first.content_id
    assert second.info == first.info
    pd.testing.assert_frame_equal(second.table("op_stats"), first.table("op_stats"))
    assert here().messages == ()


def _written_over(path: Path) -> None:
    path.write_bytes(SMALL["theirs"])


def _one_byte_with_the_old_time(path: Path) -> None:
    before, data = path.stat(), path.read_bytes().replace(b"mul:", b"MUL:")
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _another_of_the_same_size_and_time_renamed_here(path: Path) -> None:
    before, data = path.stat(), path.read_bytes().replace(b"mul:", b"MUL:")
    other = path.with_name("other")
    other.write_bytes(data)
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    "change", [_written_over, _one_byte_with_the_old_time, _another_of_the_same_size_and_time_renamed_here]
)
def test_a_profile_that_changed_is_read_anew(profile, read_anew, change) -> None:
    first = opened(profile)
    change(profile)
    second = opened(profile)
    assert len(read_anew) == 2
    assert second.content_id != first.content_id
    assert not second.table("op_stats").equals(first.table("op_stats"))


@pytest.mark.usefixtures("own")
def test_a_profile_that_changes_within_the_clock_s_tick_is_read_anew(profile, read_anew, monkeypatch) -> None:
    """A file system that tells times so badly that a change leaves no trace."""
    monkeypatch.setattr(cached_frames, "_SETTLED_NS", 3600 * 10**9)
    stat = profile.stat()
    monkeypatch.setattr(Path, "stat", lambda path, real=Path.stat, **kw: stat if path == profile else real(path, **kw))
    first, same = opened(profile), opened(profile)
    assert len(read_anew) == 1
    assert same.content_id == first.content_id
    profile.write_bytes(profile.read_bytes().replace(b"mul:", b"MUL:"))
    assert opened(profile).content_id != first.content_id
    assert len(read_anew) == 2


@pytest.mark.usefixtures("own")
def test_what_was_doubtful_is_sure_once_time_has_passed(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_frames, "_SETTLED_NS", 3600 * 10**9)
    opened(profile)
    digests: list[Path] = []
    monkeypatch.setattr(
        cached_frames,
        "_digest_of_bytes",
        lambda path, real=cached_frames._digest_of_bytes: (digests.append(path), real(path))[1],
    )
    monkeypatch.setattr(cached_frames, "_SETTLED_NS", -1)
    opened(profile)
    opened(profile)
    assert digests == [profile]


def test_a_file_that_changes_while_it_is_read_is_not_cached(own: Path, profile: Path, monkeypatch) -> None:
    def read_and_change(path: Path, real=profile_reader.read):
        read = real(path)
        _written_over(path)
        return read

    monkeypatch.setattr(profile_reader, "read", read_and_change)
    opened(profile)
    assert packs(own) == []


def test_frames_of_another_step_marker_are_others(own: Path, profile: Path) -> None:
    markers = (None, "mul:Mul")
    first = [opened(profile, marker).info.step_source for marker in markers]
    assert len(set(first)) == len(packs(own)) == 2
    assert [opened(profile, marker).info.step_source for marker in markers] == first


def test_frames_of_another_reader_are_not_used(own: Path, profile: Path, read_anew: list[str], monkeypatch) -> None:
    opened(profile)
    monkeypatch.setattr(cached_frames, "reader_version", lambda: "another")
    opened(profile)
    assert len(read_anew) == 2
    assert len(packs(own)) == 2


def test_a_copy_elsewhere_shares_the_pack(own: Path, profile: Path, tmp_path: Path) -> None:
    opened(profile)
    (tmp_path / "copy").mkdir()
    opened(Path(shutil.copy(profile, tmp_path / "copy")))
    assert len(packs(own)) == 1


@pytest.mark.usefixtures("own")
def test_a_gzipped_profile_is_cached_as_well(profile: Path, read_anew: list[str]) -> None:
    gzipped = profile.with_name("vm.xplane.pb.gz")
    gzipped.write_bytes(gzip.compress(profile.read_bytes(), 1))
    profile.unlink()
    opened(gzipped)
    opened(gzipped)
    assert read_anew == ["vm.xplane.pb.gz"]


def test_a_damaged_pack_is_told_and_made_again(own: Path, profile: Path, read_anew: list[str]) -> None:
    first = opened(profile)
    (pack,) = packs(own)
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 1
    pack.write_bytes(data)
    pd.testing.assert_frame_equal(opened(profile).table("op_stats"), first.table("op_stats"))
    assert len(read_anew) == 2
    (message,) = here().messages
    assert message == (f"{pack}: the cache of {profile} is damaged; the profile is read anew, and kept again")
    opened(profile)
    assert len(read_anew) == 2


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pack": 3}', b"\xff\xfe"])
def test_a_damaged_note_is_told_and_written_again(own, profile: Path, read_anew: list[str], content: bytes) -> None:
    opened(profile)
    (note,) = (own / "seen").iterdir()
    note.write_bytes(content)
    opened(profile)
    opened(profile)
    assert len(read_anew) == 2
    assert [str(note) in message for message in here().messages] == [True]


def test_a_pack_that_made_room_for_others_is_made_again(own: Path, profile: Path, read_anew: list[str]) -> None:
    opened(profile)
    packs(own)[0].unlink()
    opened(profile)
    assert len(read_anew) == 2
    assert len(packs(own)) == 1
    assert here().messages == ()


def test_where_nothing_can_be_kept_the_app_says_so_and_works(tmp_path: Path, profile: Path, monkeypatch) -> None:
    no_folder = tmp_path / "file"
    no_folder.write_text("")
    monkeypatch.setenv("TFCOMPARE_STORE", str(no_folder / "store"))
    assert opened(profile).info.step_count > 0
    (message,) = here().messages
    assert message == (
        f"{no_folder}/store: tables cannot be cached there (Not a directory), so profiles are read anew each time; "
        "make room, or name another folder in TFCOMPARE_STORE"
    )


def name_of(number: int) -> str:
    return f"packs/00/{number:032x}.pack"


def test_the_least_recently_used_make_room(tmp_path: Path) -> None:
    files = StoreFiles(str(tmp_path / "store"), max_bytes=250)
    for i in range(2):
        files.write(name_of(i), bytes(100))
        os.utime(tmp_path / "store" / name_of(i), (i, i))
    files.read(name_of(0))  # a use, long after the last one
    files.write(name_of(2), bytes(100))
    assert sorted(names_in(files)) == [name_of(0), name_of(2)]


def test_one_file_larger_than_the_store_takes_the_place_of_all_others(tmp_path: Path) -> None:
    files = StoreFiles(str(tmp_path / "store"), max_bytes=250)
    files.write(name_of(0), bytes(100))
    files.write(name_of(1), bytes(1000))
    assert names_in(files) == [name_of(1)]


def test_what_a_killed_process_left_goes_with_time(tmp_path: Path) -> None:
    files = StoreFiles(str(tmp_path / "store"), max_bytes=250)
    files.write(name_of(0), bytes(100))
    old, new = (tmp_path / "store" / "packs" / f".arriving-{i}" for i in range(2))
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    hours_ago = time.time() - 7200
    os.utime(old, (hours_ago, hours_ago))
    assert names_in(files) == [name_of(0)]
    assert old.exists()  # who only lists changes nothing
    files.remove_abandoned()
    assert (old.exists(), new.exists()) == (False, True)


READ_AT_ONCE = """
import sys
from dataclasses import make_dataclass
from threading import Barrier, Thread

from tfcompare.store.contents import from_json

THREADS, TYPES, FIELDS = 8, 50, 12
sys.setswitchinterval(1e-6)
values = ",".join(f'"field_{i}": {{"a": [1, 2]}}' for i in range(FIELDS))
content = f'{{"inner": {{{values}}}, {values}}}'.encode()
start = Barrier(THREADS)

def read(kind):
    start.wait()
    from_json(content, kind)

for _ in range(TYPES):
    fields = [(f"field_{i}", "dict[str, tuple[int, ...]]") for i in range(FIELDS)]
    kind = make_dataclass("Content", [("inner", make_dataclass("Inner", fields)), *fields])
    threads = [Thread(target=read, args=[kind]) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""

SHOW = """
import sys

from tfcompare import cli

sys.setswitchinterval(1e-6)
cli.main(["show", sys.argv[1], "steps"])
"""


def run(code: str, *words: str, **variables: str) -> None:
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, env=variables)
    assert done.returncode == 0, done.stderr


def test_types_that_threads_read_at_once() -> None:
    run(READ_AT_ONCE)


@pytest.mark.thorough
def test_hosts_that_are_read_from_the_cache_at_once(tmp_path: Path) -> None:
    for _ in range(41):  # the first one fills the cache
        run(SHOW, str(WORKER_RUNS["workers_balanced"]), TFCOMPARE_STORE=str(tmp_path))
