"""Copies of remote files: whole or not there, whatever breaks, and however many fetch them at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from platformdirs import user_cache_path

import tfcompare as tfc
from tests.profiles import ROOT
from tests.sources.remote.servers import Web
from tests.store.runs_in_stores import SMALL
from tests.xspace_builder import chunk
from tfcompare.errors import NotFetched
from tfcompare.sources.logdir import find_run
from tfcompare.sources.logdir.found_run import HostFile
from tfcompare.sources.remote import fetching
from tfcompare.sources.remote.fetching import Cache, remote_cache
from tfcompare.sources.remote.files import RemoteFile
from tfcompare.units import format_bytes

DATA = SMALL["ours"]
LONGER = DATA + chunk(99, bytes(400_000))
URL = "memory://b/vm.xplane.pb"


def only_file(place: str) -> HostFile:
    (file,) = find_run(place).files
    assert file.source is not None
    return file


def source(place: str) -> RemoteFile:
    file = only_file(place).source
    assert file is not None
    return file


def content_id(data: bytes) -> str:
    with tempfile.NamedTemporaryFile(suffix=".xplane.pb") as file:
        Path(file.name).write_bytes(data)
        return tfc.load(file.name).content_id


def names(folder: Path) -> list[str]:
    return sorted(path.name.partition(".")[2] for path in folder.iterdir())


def serve(web: Web, data: bytes = DATA) -> str:
    (web.folder / "vm.xplane.pb").write_bytes(data)
    return f"{web.url}/vm.xplane.pb"


# Interruptions


def test_a_connection_that_breaks_is_tried_once_more_from_the_start(web: Web, cache_folder: Path) -> None:
    web.breaks_after = [1000]
    seen: list[tuple[int, int]] = []
    run = tfc.load(serve(web), fetching=lambda here, total: seen.append((here, total)))
    assert run.content_id == content_id(DATA)
    assert seen[-1] == (len(DATA), len(DATA))
    web.breaks_after = [1000] * 9
    place = serve(web, LONGER)
    with pytest.raises(NotFetched) as caught:
        tfc.load(place)
    assert str(caught.value) == (
        f"{place}: broke off after 1.00 kB of {format_bytes(len(LONGER))}; try again, or copy the logdir here"
    )
    assert names(cache_folder) == ["xplane.pb"], "nothing is left of what broke off"


def test_what_has_arrived_of_a_slow_file_is_reported_at_once(web: Web) -> None:
    """So that a download from a server that sends a byte now and then can be stopped, and ends in time."""
    web.gate = threading.Event()
    seen: list[int] = []

    def go_on(here: int, _: int) -> None:
        seen.append(here)
        web.gate.set()  # type: ignore[union-attr]

    assert tfc.load(serve(web), fetching=go_on).content_id == content_id(DATA)
    assert min(filter(None, seen)) <= 10


def test_a_download_that_takes_too_long_is_given_up(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    web.trickles = True
    place = serve(web)
    monkeypatch.setattr(fetching, "DOWNLOAD_S", 0.0)
    with pytest.raises(NotFetched, match=f"broke off after .* of {format_bytes(len(DATA))}"):
        tfc.load(place)
    assert web.asked.count("GET /vm.xplane.pb") == 1


def test_what_a_killed_process_left_is_removed_after_an_hour(memory: Any, cache_folder: Path) -> None:
    cache_folder.mkdir()
    for name, age_s in ((".arriving-old", 2 * 3600), (".arriving-new", 60)):
        (cache_folder / name).write_bytes(b"x")
        os.utime(cache_folder / name, (time.time() - age_s,) * 2)
    memory.pipe_file("/b/vm.xplane.pb", DATA)
    tfc.load(URL)
    assert names(cache_folder) == ["arriving-new", "xplane.pb"]


FETCH = """
import sys
from tfcompare.sources.logdir import find_run
from tfcompare.sources.remote.fetching import remote_cache
(file,) = find_run(sys.argv[1]).files
print(len(remote_cache().fetched(file.source).read_bytes()), flush=True)
"""


def fetcher(place: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", FETCH, place], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_processes_and_threads_that_fetch_at_once_are_all_right(web: Web, cache_folder: Path) -> None:
    place = serve(web)
    listed = find_run(place)
    processes = [fetcher(place) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        loaded = list(pool.map(lambda _: tfc.load(listed).content_id, range(4)))
    assert [int(process.communicate()[0]) for process in processes] == [len(DATA)] * 2
    assert set(loaded) == {content_id(DATA)}
    assert names(cache_folder) == ["xplane.pb"]


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


def test_a_run_of_which_a_host_is_out_of_reach_is_not_half_loaded(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        memory.pipe_file(f"/b/{name}.xplane.pb", DATA)
    listed = find_run("memory://b")
    real = type(memory).cat_file

    def cat_file(self: Any, path: str, **options: Any) -> Any:
        if path.endswith("b.xplane.pb"):
            raise ConnectionError
        return real(self, path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(type(memory), "cat_file", cat_file)
        with pytest.raises(NotFetched, match=r"/b.xplane.pb: the server cannot be reached"):
            tfc.load(listed)
    assert tfc.load(listed).info.hosts == 2


# What is kept


def fetched(cache: Cache, memory: Any, name: str, size: int) -> RemoteFile:
    memory.pipe_file(f"/b/{name}.xplane.pb", b"x" * size)
    file = source(f"memory://b/{name}.xplane.pb")
    assert cache.fetched(file).stat().st_size == size
    return file


def test_a_copy_is_used_again(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe_file("/b/vm.xplane.pb", DATA)
    listed = find_run(URL)
    first = tfc.load(listed)
    monkeypatch.setattr(fetching, "connect", lambda _: pytest.fail("asked for again"))
    assert tfc.load(listed).content_id == first.content_id
    assert listed.bytes_at_hand == len(DATA)


def test_what_was_not_used_for_longest_makes_room(memory: Any, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "kept", 250)
    first, second = (fetched(cache, memory, name, 100) for name in ("first", "second"))
    for seconds, file in enumerate((first, second)):
        os.utime(cache.path_of(file), (seconds, seconds))
    cache.fetched(first)
    third = fetched(cache, memory, "third", 100)
    assert [cache.path_of(file).exists() for file in (first, second, third)] == [True, False, True]
    assert cache.fetched(second).read_bytes() == b"x" * 100, "what was cleared is fetched again"


def test_a_copy_that_another_process_evicts_before_it_is_read_is_fetched_again(memory: Any, monkeypatch) -> None:
    memory.pipe_file("/b/vm.xplane.pb", DATA)
    real, times = Cache.fetched, []

    def fetched_and_evicted(self: Cache, *args: Any, **options: Any) -> Path:
        path = real(self, *args, **options)
        times.append(path)
        if len(times) == 1:
            path.unlink()
        return path

    monkeypatch.setattr(Cache, "fetched", fetched_and_evicted)
    assert tfc.load(URL).content_id == content_id(DATA)
    assert len(times) == 2


def test_a_file_larger_than_the_cache_is_refused_before_and_while_it_arrives(
    memory: Any, web: Web, monkeypatch
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
    assert tfc.load(serve(web)).content_id == content_id(DATA), "a smaller one whose size nobody tells is fetched"


def test_who_does_not_want_to_wait_need_not(web: Web, cache_folder: Path) -> None:
    def stop(here: int, _: int) -> None:
        if here > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tfc.load(serve(web, LONGER), fetching=stop)
    assert names(cache_folder) == []


def test_nothing_but_copies_is_removed(memory: Any, tmp_path: Path) -> None:
    for name in ("notes.txt", "a" * 32 + ".txt", "b" * 31):
        (tmp_path / name).write_bytes(b"x" * 1000)
    (tmp_path / ("c" * 32 + ".xplane.pb")).write_bytes(b"x" * 1000)
    fetched(Cache(tmp_path, 100), memory, "vm", 50)
    assert sorted(path.name[:9] for path in tmp_path.iterdir() if path.is_file() and path.stat().st_size == 1000) == [
        "a" * 9,
        "b" * 9,
        "notes.txt",
    ]


def test_a_folder_that_others_can_write_to_gets_and_gives_no_copy(memory: Any, cache_folder: Path) -> None:
    memory.pipe_file("/b/vm.xplane.pb", DATA)
    tfc.load(URL)
    (copy,) = cache_folder.iterdir()
    assert not any(path.stat().st_mode & 0o077 for path in (cache_folder, copy)), "copies are the user's alone"
    copy.write_bytes(SMALL["theirs"])
    cache_folder.chmod(0o777)
    with pytest.raises(NotFetched) as caught:
        tfc.load(URL)
    assert str(caught.value) == (
        f"{URL}: a copy does not fit into {cache_folder} (other users can write to it); name a folder of your own in "
        "TFCOMPARE_FETCHED"
    )
    shutil.rmtree(cache_folder)
    cache_folder.write_bytes(b"")
    with pytest.raises(NotFetched, match=r"it is not a folder\); name a folder that can be written"):
        tfc.load(URL)


def test_a_copy_that_was_damaged_is_fetched_anew(memory: Any) -> None:
    memory.pipe_file("/b/vm.xplane.pb", DATA)
    listed = find_run(URL)
    first = tfc.load(listed)
    for damaged in (DATA[:1000], b"", b"\xff" * len(DATA)):
        listed.files[0].path.write_bytes(damaged)
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
    assert remote_cache().folder == user_cache_path("tfcompare", appauthor=False) / "fetched"
