"""Copies of remote files: whole or not there, whatever breaks, and however many fetch them at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tfcompare as tfc
from tests.profiles import ROOT, SAMPLE_RUNS
from tests.sources.remote.servers import Web
from tfcompare.errors import NotFetched
from tfcompare.sources.logdir import FoundRun, find_run, remote_cache
from tfcompare.sources.logdir.found_run import HostFile
from tfcompare.sources.remote import downloading
from tfcompare.sources.remote.fetching import Cache
from tfcompare.sources.remote.files import RemoteFile

(PROFILE,) = SAMPLE_RUNS["filters_16_8"].rglob("*.xplane.pb")
DATA = PROFILE.read_bytes()
URL = "memory://b/vm.xplane.pb"


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloading, "_PAUSE_S", 0.01)


def only_file(place: str) -> HostFile:
    (file,) = find_run(place).files
    assert file.source is not None
    return file


def source(place: str) -> RemoteFile:
    file = only_file(place).source
    assert file is not None
    return file


def names(folder: Path) -> list[str]:
    return sorted(path.name.partition(".")[2] for path in folder.iterdir())


def serve(web: Web, data: bytes = DATA) -> str:
    (web.folder / "vm.xplane.pb").write_bytes(data)
    return f"{web.url}/vm.xplane.pb"


# Interruptions


def test_where_the_connection_breaks_it_goes_on(web: Web, cache_folder: Path) -> None:
    web.has_ranges, web.breaks_after = True, [500_000, 300_000]
    seen: list[tuple[int, int]] = []
    run = tfc.load(serve(web), fetching=lambda here, total: seen.append((here, total)))
    assert run.content_id == tfc.load(PROFILE).content_id
    assert web.ranges == ["bytes=500000-", "bytes=800000-"]
    assert names(cache_folder) == ["xplane.pb"]
    assert seen == sorted(seen)
    assert seen[-1] == (len(DATA), len(DATA))


def test_what_has_arrived_is_kept_for_the_next_try(web: Web, cache_folder: Path) -> None:
    web.has_ranges, web.breaks_after = True, [500_000, 0, 0]
    place = serve(web)
    with pytest.raises(NotFetched) as caught:
        tfc.load(place)
    assert str(caught.value) == (
        f"{place}: broke off after 500 kB of 1.57 MB; what has arrived is cached: try again to continue from there"
    )
    assert names(cache_folder) == ["xplane.pb.part"]
    assert only_file(place).bytes_at_hand == 500_000
    assert tfc.load(place).content_id == tfc.load(PROFILE).content_id
    assert web.ranges[-1] == "bytes=500000-"


def test_a_server_that_sends_a_few_bytes_a_second_is_given_up_and_what_has_arrived_is_kept(
    web: Web, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.has_ranges, web.trickles = True, True
    place = serve(web)
    monkeypatch.setattr(downloading, "PACE_S", 0.1)
    with pytest.raises(NotFetched) as caught:
        tfc.load(place)
    assert str(caught.value).startswith(f"{place}: the server sent ")
    assert str(caught.value).endswith(
        " B within 0.1 s, where at least 1.00 MB were expected; what has arrived is cached: try again to continue from "
        "there"
    )
    assert web.asked.count("GET /vm.xplane.pb") == 1, "not tried again at once"
    assert names(cache_folder) == ["xplane.pb.part"]
    web.trickles = False
    assert tfc.load(place).content_id == tfc.load(PROFILE).content_id
    assert web.ranges


def test_a_download_that_takes_too_long_is_interrupted(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    web.trickles = True
    place = serve(web)
    monkeypatch.setattr(downloading, "DOWNLOAD_S", 0.2)
    monkeypatch.setattr("tfcompare.sources.remote.web.DOWNLOAD_S", 0.2)
    with pytest.raises(NotFetched, match=r"broke off after .* B of 1\.57 MB; what has arrived is cached"):
        tfc.load(place)
    assert web.asked.count("GET /vm.xplane.pb") == 1


def test_a_server_without_ranges_is_asked_from_the_start(web: Web) -> None:
    web.breaks_after = [500_000]
    assert tfc.load(serve(web)).content_id == tfc.load(PROFILE).content_id
    web.breaks_after = [500_000] * 9
    with pytest.raises(NotFetched, match=r"broke off after 500 kB of 1\.60 MB"):
        tfc.load(serve(web, DATA + b"\x22\x02vm" * 8000))


def test_a_part_of_another_version_is_not_gone_on_with(web: Web, cache_folder: Path) -> None:
    web.has_ranges, web.breaks_after = True, [500_000, 0, 0]
    with pytest.raises(NotFetched):
        tfc.load(serve(web, b"\x22\x02vm" * 400_000))
    os.utime(web.folder / "vm.xplane.pb", (1, 1))
    assert tfc.load(serve(web)).content_id == tfc.load(PROFILE).content_id
    assert names(cache_folder) == ["xplane.pb", "xplane.pb.part"]


def test_a_part_that_is_too_long_is_dropped(memory: Any, cache_folder: Path) -> None:
    memory.pipe_file("/b/vm.xplane.pb", b"abc")
    file = source(URL)
    cache_folder.mkdir()
    cache = remote_cache()
    cache.path_of(file).with_name(cache.path_of(file).name + ".part").write_bytes(b"too long")
    with cache.locked(file) as copy:
        assert copy.path.read_bytes() == b"abc"


FETCH = """
import sys
from tfcompare.sources.logdir import find_run, remote_cache
from tfcompare.sources.remote import stores
stores._PIECE_BYTES = 100_000
(file,) = find_run(sys.argv[1]).files
with remote_cache().locked(file.source) as copy:
    print(len(copy.path.read_bytes()), flush=True)
"""


def fetcher(place: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", FETCH, place], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_a_process_that_is_killed_leaves_a_part_to_go_on_with(web: Web, cache_folder: Path) -> None:
    gate = threading.Event()
    web.has_ranges, web.hold_after, web.gate = True, 700_000, gate
    place = serve(web)
    process = fetcher(place)
    until = time.monotonic() + 30
    while time.monotonic() < until and only_file(place).bytes_at_hand < 700_000:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    gate.set()
    assert names(cache_folder) == ["xplane.pb.part"]
    assert tfc.load(place).content_id == tfc.load(PROFILE).content_id
    assert web.ranges == ["bytes=700000-"]


def test_processes_and_threads_that_fetch_at_once_are_all_right(web: Web, cache_folder: Path) -> None:
    place = serve(web)
    listed = find_run(place)
    processes = [fetcher(place) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        loaded = list(pool.map(lambda _: tfc.load(listed).content_id, range(4)))
    assert [int(process.communicate()[0]) for process in processes] == [len(DATA)] * 2
    assert set(loaded) == {tfc.load(PROFILE).content_id}
    assert names(cache_folder) == ["xplane.pb"]
    assert len([asked for asked in web.asked if asked.startswith("GET") and asked.endswith(".pb")]) <= 8


def test_host_files_are_fetched_side_by_side(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for host in range(4):
        memory.pipe_file(f"/b/vm{host}.xplane.pb", DATA)
    together = threading.Barrier(4, timeout=10)
    real = type(memory).cat_file

    def cat_file(self: Any, *args: Any, **options: Any) -> Any:
        together.wait()
        return real(self, *args, **options)

    monkeypatch.setattr(type(memory), "cat_file", cat_file)
    totals: list[int] = []
    run = tfc.load("memory://b", fetching=lambda _, total: totals.append(total))
    assert run.info.hosts == 4
    assert set(totals) == {4 * len(DATA)}


def test_a_run_of_which_a_host_is_out_of_reach_is_not_half_loaded(web: Web) -> None:
    for name in ("a", "b"):
        (web.folder / f"{name}.xplane.pb").write_bytes(DATA)
    listed = find_run(web.url)
    web.statuses["/b.xplane.pb"] = 503
    with pytest.raises(NotFetched, match=r"/b.xplane.pb: the server gives no usable answer \(status 503\)"):
        tfc.load(listed)
    web.statuses.clear()
    assert tfc.load(listed).info.hosts == 2


# What is kept


def fetched(cache: Cache, memory: Any, name: str, size: int) -> RemoteFile:
    memory.pipe_file(f"/b/{name}.xplane.pb", b"x" * size)
    file = source(f"memory://b/{name}.xplane.pb")
    with cache.locked(file) as copy:
        assert copy.path.stat().st_size == size
    return file


def test_a_copy_is_used_again(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe_file("/b/vm.xplane.pb", DATA)
    listed = find_run(URL)
    first = tfc.load(listed)
    monkeypatch.setattr(downloading, "connect", lambda _: pytest.fail("asked for again"))
    assert tfc.load(listed).content_id == first.content_id
    assert listed.bytes_at_hand == len(DATA)


def test_what_was_not_used_for_longest_makes_room(memory: Any, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "kept", 250)
    first, second = (fetched(cache, memory, name, 100) for name in ("first", "second"))
    for seconds, file in enumerate((first, second)):
        os.utime(cache.path_of(file), (seconds, seconds))
    with cache.locked(first):
        pass
    third = fetched(cache, memory, "third", 100)
    assert [cache.path_of(file).exists() for file in (first, second, third)] == [True, False, True]
    with cache.locked(second) as copy:
        assert copy.path.read_bytes() == b"x" * 100, "what was cleared is fetched again"


def test_what_is_being_read_stays(memory: Any, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "kept", 100)
    first = fetched(cache, memory, "first", 100)
    with cache.locked(first) as copy:
        fetched(cache, memory, "second", 100)
        assert copy.path.exists()
    fetched(cache, memory, "third", 100)
    assert not copy.path.exists()


def test_a_file_larger_than_the_cache_is_refused_before_and_while_it_arrives(
    memory: Any, web: Web, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFCOMPARE_FETCHED_MB", "1")
    memory.pipe_file("/b/vm.xplane.pb", b"x" * (1 << 21))
    monkeypatch.setattr("tests.sources.remote.servers._Handler.tells_sizes", False)
    for place in (URL, serve(web, b"x" * (1 << 21))):
        with pytest.raises(NotFetched) as caught:
            tfc.load(place)
        assert str(caught.value) == (
            f"{place}: is larger than the 1.05 MB that copies of remote files may take; allow for more with "
            "TFCOMPARE_FETCHED_MB"
        )
    assert names(cache_folder) == []


def test_a_file_whose_size_nobody_tells_is_fetched(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.sources.remote.servers._Handler.tells_sizes", False)
    assert tfc.load(serve(web)).content_id == tfc.load(PROFILE).content_id


def test_who_does_not_want_to_wait_need_not(web: Web, cache_folder: Path) -> None:
    gate = threading.Event()
    web.has_ranges, web.hold_after, web.gate = True, 700_000, gate
    (web.folder / "a.xplane.pb").write_bytes(DATA)

    def stop(here: int, _: int) -> None:
        if here > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tfc.load(web.url, fetching=stop)
    gate.set()
    assert names(cache_folder) == ["xplane.pb.part"]


def test_nothing_but_copies_is_removed(memory: Any, tmp_path: Path) -> None:
    for name in ("notes.txt", "a" * 32 + ".txt", "b" * 31):
        (tmp_path / name).write_bytes(b"x" * 1000)
    (tmp_path / ("c" * 32 + ".xplane.pb.part")).write_bytes(b"x" * 1000)
    fetched(Cache(tmp_path, 100), memory, "vm", 50)
    assert sorted(path.name[:9] for path in tmp_path.iterdir() if path.is_file() and path.stat().st_size == 1000) == [
        "a" * 9, "b" * 9, "notes.txt",
    ]  # fmt: skip


def test_copies_are_the_users_alone(memory: Any, cache_folder: Path) -> None:
    memory.pipe_file("/b/vm.xplane.pb", DATA)
    tfc.load(URL)
    assert cache_folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in cache_folder.iterdir())


def test_a_folder_that_others_can_write_to_gets_and_gives_no_copy(memory: Any, cache_folder: Path) -> None:
    memory.pipe_file("/b/vm.xplane.pb", DATA)
    tfc.load(URL)
    (copy,) = cache_folder.iterdir()
    copy.write_bytes(next(SAMPLE_RUNS["filters_512_128"].rglob("*.xplane.pb")).read_bytes())
    cache_folder.chmod(0o777)
    run = tfc.load(URL)
    assert run.content_id == tfc.load(PROFILE).content_id
    assert run.remarks[-1] == (
        f"copies of remote files are not cached in {cache_folder} (other users can write to it); name a folder of your "
        "own in TFCOMPARE_FETCHED"
    )


@pytest.mark.parametrize("damage", [lambda data: data[:1000], lambda _: b"", lambda data: b"\xff" * len(data)])
def test_a_copy_that_was_damaged_is_fetched_anew(memory: Any, damage: Callable[[bytes], bytes]) -> None:
    memory.pipe_file("/b/vm.xplane.pb", DATA)
    listed = find_run(URL)
    first = tfc.load(listed)
    listed.files[0].path.write_bytes(damage(DATA))
    assert tfc.load(listed).content_id == first.content_id


def test_how_much_may_be_kept_is_set_in_the_environment(monkeypatch: pytest.MonkeyPatch, cache_folder: Path) -> None:
    assert remote_cache() == Cache(cache_folder, 4096 * 2**20)
    monkeypatch.setenv("TFCOMPARE_FETCHED_MB", "7")
    assert remote_cache().max_bytes == 7 * 2**20
    monkeypatch.setenv("TFCOMPARE_FETCHED_MB", "lots")
    with pytest.raises(tfc.TfcompareError, match="TFCOMPARE_FETCHED_MB must be a whole number of megabytes"):
        remote_cache()
    monkeypatch.delenv("TFCOMPARE_FETCHED")
    monkeypatch.delenv("TFCOMPARE_FETCHED_MB")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert str(remote_cache().folder) == "/somewhere/tfcompare/fetched" or sys.platform != "linux"


def test_errors_of_whoever_reads_are_theirs(memory: Any) -> None:
    memory.pipe_file("/b/vm.xplane.pb", DATA)
    with pytest.raises(PermissionError, match="mine"), remote_cache().locked(source(URL)):
        raise PermissionError("mine")


def test_a_run_is_hashable_and_the_same_however_often_it_is_listed(memory: Any) -> None:
    memory.pipe_file("/b/vm.xplane.pb", DATA)
    runs: set[FoundRun] = {find_run(URL), find_run(URL)}
    assert len(runs) == 1
