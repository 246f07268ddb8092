"""A cache folder that takes no copy, for whatever reason: runs open all the same, with a remark."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import tfcompare as tfc
from tests.profiles import ROOT, SAMPLE_RUNS
from tfcompare.errors import NotFetched
from tfcompare.sources.logdir import find_run, remote_cache
from tfcompare.sources.remote import fetching
from tfcompare.sources.remote import temporary as copies
from tfcompare.sources.remote.fetching import Cache

(PROFILE,) = SAMPLE_RUNS["filters_16_8"].rglob("*.xplane.pb")
DATA = PROFILE.read_bytes()
URL = "memory://b/vm.xplane.pb"
CLEAN = "name a folder that can be written in TFCOMPARE_FETCHED"
FULL = "make room there, or name another folder in TFCOMPARE_FETCHED"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of this test, in which nothing was put aside so far."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(copies, "_folder", None)
    copies.remove_leftovers.cache_clear()
    return folder


@pytest.fixture(autouse=True)
def _remote(memory: Any) -> None:
    memory.pipe_file("/b/vm.xplane.pb", DATA)


def asides(temporary: Path) -> list[Path]:
    return sorted(temporary.glob("tfcompare-copies-*"))


def refusing(monkeypatch: pytest.MonkeyPatch, name: str, below: Path, code: int) -> None:
    """From now on a function of `os` fails for what lies below a folder, or for descriptors of files there."""
    real = getattr(os, name)

    def fails(where: Any, *rest: Any, **options: Any) -> Any:
        path = Path(f"/proc/self/fd/{where}").readlink() if isinstance(where, int) else Path(where)
        if path.is_relative_to(below):
            raise OSError(code, os.strerror(code), str(path))
        return real(where, *rest, **options)

    monkeypatch.setattr(os, name, fails)


def as_a_file(folder: Path, _: pytest.MonkeyPatch) -> None:
    folder.write_bytes(b"a file")


def below_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write_bytes(b"a file")
    monkeypatch.setenv("TFCOMPARE_FETCHED", str(folder / "below"))


def nowhere(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFCOMPARE_FETCHED", "/proc/tfcompare")


def read_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    refusing(monkeypatch, "open", folder, errno.EROFS)


def without_rights(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing(monkeypatch, "mkdir", folder, errno.EACCES)


def full(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing(monkeypatch, "write", folder, errno.ENOSPC)


def broken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing(monkeypatch, "fsync", folder, errno.EIO)


TROUBLES = {
    as_a_file: ("which is not a folder", CLEAN),
    below_a_file: ("which is not a folder", CLEAN),
    nowhere: ("No such file or directory", CLEAN),
    read_only: ("Read-only file system", CLEAN),
    without_rights: ("Permission denied", CLEAN),
    full: ("No space left on device", FULL),
    broken: ("Input/output error", CLEAN),
}


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.__name__)
def test_the_run_opens_and_says_that_copies_are_not_kept_and_why(
    trouble: Any, cache_folder: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tfc.load(PROFILE)
    trouble(cache_folder, monkeypatch)
    run = tfc.load(URL)
    reason, way_out = TROUBLES[trouble]
    folder = remote_cache().folder
    assert run.remarks == (*kept.remarks, f"copies of remote files are not cached in {folder} ({reason}); {way_out}")
    assert run.content_id == kept.content_id
    assert not cache_folder.is_dir() or list(cache_folder.iterdir()) == []
    (aside,) = asides(temporary)
    assert aside.stat().st_mode & 0o077 == 0, "it is the user's alone"


def test_what_lies_aside_is_used_again_and_bounded_as_the_cache_is(
    memory: Any, cache_folder: Path, temporary: Path
) -> None:
    cache_folder.write_bytes(b"a file")
    cache = Cache(cache_folder, 250)
    sources = []
    for name in ("first", "second", "third"):
        memory.pipe_file(f"/b/{name}.xplane.pb", name.encode() * 20)
        sources.append(find_run(f"memory://b/{name}.xplane.pb").files[0].source)
    paths = []
    for seconds, source in enumerate(sources):
        with cache.locked(source) as copy:
            paths.append(copy.path)
            os.utime(copy.path, (seconds, seconds))
    assert [path.exists() for path in paths] == [False, True, True]
    memory.store.clear()
    with cache.locked(sources[2]) as copy:
        assert copy.path.read_bytes() == b"third" * 20
    assert len(asides(temporary)) == 1


def test_a_file_larger_than_the_whole_cache_is_not_put_aside_either(
    cache_folder: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache_folder.write_bytes(b"a file")
    monkeypatch.setenv("TFCOMPARE_FETCHED_MB", "1")
    with pytest.raises(NotFetched, match=r"is larger than the 1\.05 MB .* allow for more with TFCOMPARE_FETCHED_MB"):
        tfc.load(URL)
    assert list(asides(temporary)[0].iterdir()) == []


def test_where_the_temporary_folder_takes_nothing_either_it_is_an_error(
    cache_folder: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing(monkeypatch, "write", cache_folder, errno.ENOSPC)
    refusing(monkeypatch, "write", temporary, errno.EDQUOT)
    with pytest.raises(NotFetched) as caught:
        tfc.load(URL)
    assert str(caught.value) == (
        f"{URL}: a copy fits neither into {cache_folder} (No space left on device) nor into a temporary folder "
        f"(Disk quota exceeded); {FULL}"
    )
    assert list(cache_folder.iterdir()) == []
    temporary.rename(temporary.with_name("gone"))
    with pytest.raises(NotFetched, match=r"nor into a temporary folder \(No such file or directory\)"):
        tfc.load(URL)


def test_a_damaged_copy_that_cannot_be_removed_is_passed_over(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = find_run(URL)
    good = tfc.load(listed)
    assert good.remarks == tfc.load(PROFILE).remarks
    listed.files[0].path.write_bytes(b"\xff" * len(DATA))
    refusing(monkeypatch, "unlink", cache_folder, errno.EROFS)
    run = tfc.load(listed)
    assert run.content_id == good.content_id
    assert (
        run.remarks[-1] == f"copies of remote files are not cached in {cache_folder} (Read-only file system); {CLEAN}"
    )


def test_what_is_kept_is_used_where_nothing_can_be_added(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tfc.load(URL)
    for name in ("write", "unlink", "replace", "utime"):
        refusing(monkeypatch, name, cache_folder, errno.EROFS)
    monkeypatch.setattr(fetching, "download", lambda *_: pytest.fail("asked for again"))
    assert tfc.load(URL).remarks == kept.remarks


def test_a_folder_that_was_cleared_away_is_made_anew(temporary: Path) -> None:
    first = copies.temporary_folder()
    first.rename(temporary / "elsewhere")
    second = copies.temporary_folder()
    assert second not in (first, temporary / "elsewhere")
    assert copies.temporary_folder() == second


FETCH = """
import os, sys, fsspec
from tfcompare.sources.logdir import find_run, remote_cache
fsspec.filesystem("memory").pipe_file("/b/vm.xplane.pb", open(sys.argv[1], "rb").read())
(file,) = find_run("memory://b/vm.xplane.pb").files
with remote_cache().locked(file.source) as copy:
    print(copy.path.stat().st_size, copy.remark[:37], flush=True)
    os.kill(os.getpid(), int(sys.argv[2]))
"""


def test_it_goes_with_its_process_and_what_a_killed_one_left_with_the_next(cache_folder: Path, temporary: Path) -> None:
    cache_folder.write_bytes(b"a file")
    mine = copies.temporary_folder()
    foreign = temporary / "tfcompare-copies-of-elsewhere-1-abc"
    foreign.mkdir()

    def fetch(ended_by: int) -> None:
        command = [sys.executable, "-c", FETCH, str(PROFILE), str(ended_by)]
        environment = os.environ | {"TMPDIR": str(temporary)}
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        assert done.stdout == f"{len(DATA)} copies of remote files are not cached\n"
        assert done.returncode == -ended_by

    fetch(signal.SIGKILL)
    (left,) = set(asides(temporary)) - {mine, foreign}
    assert sorted(path.suffix for path in left.iterdir()) == [".pb"]
    fetch(0)
    assert asides(temporary) == sorted([mine, foreign]), "what is in use, or may be about to be, stays"
