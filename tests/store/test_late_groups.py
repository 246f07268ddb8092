"""Groups of tables that are built when one of them is asked for: the timeline, and the texts of programs."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pandas as pd
import pytest

from tests.store.runs_in_stores import SMALL, put, small, stored
from tfcompare import settings
from tfcompare.errors import TfcompareError
from tfcompare.frames import host as frames_host
from tfcompare.frames import profile_reader
from tfcompare.run import Run, load
from tfcompare.schema import Group
from tfcompare.schema.host_tables import LATE
from tfcompare.store.cached_frames import frame_cache
from tfcompare.store.file_names import all_packs


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Group]:
    """The groups that were built from profiles."""
    groups: list[Group] = []
    real = profile_reader.build

    def build(*args, group: Group = "core", **more):
        groups.append(group)
        return real(*args, group=group, **more)

    monkeypatch.setattr(profile_reader, "build", build)
    return groups


def profile_of(run: Run) -> Path:
    return Path(str(run.found.files[0].path))


def late_tables(run: Run) -> list[pd.DataFrame]:
    return [*run.tables.timeline(*run.host_names), run.table("hlo_texts")]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[pd.DataFrame]]:
    """The tables of the profiles themselves, without a cache."""
    return {name: late_tables(load(small(name, tmp_path_factory.mktemp("expected")))) for name in SMALL}


def assert_same(ours: list[pd.DataFrame], theirs: list[pd.DataFrame]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert len(one) > 0
        pd.testing.assert_frame_equal(one, other, check_exact=True)


def flush() -> None:
    cache = frame_cache()
    assert cache is not None
    cache.flush()


@pytest.mark.usefixtures("own")
def test_a_group_is_built_when_it_is_asked_for_and_then_cached(logs: Path, built: list[Group]) -> None:
    run = load(logs)
    assert built == ["core"]
    before = run.memory_bytes
    run.table("op_stats"), run.table("steps")
    assert built == ["core"]
    run.tables.timeline(*run.host_names)
    assert built == ["core", "timeline"]
    assert run.memory_bytes > before
    run.table("hlo_texts"), run.tables.timeline(*run.host_names)
    assert built == ["core", "timeline", "programs"]
    flush()
    again = load(logs)
    assert_same(late_tables(again), late_tables(run))
    assert built == ["core", "timeline", "programs"]
    assert again.remarks == ()


def test_without_a_cache_it_is_built_once_for_each_run(logs: Path, built: list[Group]) -> None:
    for times in (1, 2):
        run = load(logs)
        late_tables(run), late_tables(run)
        assert built == ["core", "timeline", "programs"] * times


@pytest.mark.usefixtures("own")
def test_other_steps_have_groups_of_their_own(logs: Path, own: Path, built: list[Group]) -> None:
    for _ in range(2):
        whole, some = load(logs), load(logs, steps="2:3")
        assert len(some.tables.timeline(*some.host_names)[1]) < len(whole.tables.timeline(*whole.host_names)[1])
        flush()
    assert built == ["core", "core", "timeline", "timeline"]
    assert len(list(own.rglob("*.timeline"))) == 2


def test_ingest_writes_all_groups_and_a_stored_run_reads_them(store: Path, logs: Path, built, expected) -> None:
    assert sorted(path.suffix for path in store.rglob("packs/*/*")) == [".pack", ".programs", ".timeline"]
    (run,) = stored(store).values()
    (pack,) = run.opened().files
    assert pack.stored is not None
    assert {path.relative_to(store).as_posix() for path in store.rglob("packs/*/*")} == {*all_packs(pack.stored.name)}
    shutil.rmtree(logs)
    assert_same(late_tables(load(run)), expected["ours"])
    assert built == []
    (row,) = (run.row for run in stored(store).values())
    assert row.pack_bytes == sum(path.stat().st_size for path in store.rglob("packs/*/*"))


def test_ingest_into_the_cache_of_this_machine_writes_all_groups(own: Path, logs: Path, built: list[Group]) -> None:
    put([logs], own)
    assert sorted(built) == ["core", "programs", "timeline"]
    late_tables(load(logs))
    assert sorted(built) == ["core", "programs", "timeline"]
    assert put([logs], own).runs_unchanged == 1


@pytest.mark.parametrize("keeps", [True, False], ids=["cached", "not cached"])
def test_a_file_that_changed_since_it_was_opened_is_refused_in_a_sentence(keeps: bool, logs, request, expected) -> None:
    if keeps:
        request.getfixturevalue("own")
    run = load(logs)
    profile_of(run).write_bytes(SMALL["theirs"])
    for _ in range(2):
        for ask in (lambda: run.tables.timeline(*run.host_names), lambda: run.table("hlo_texts")):
            with pytest.raises(TfcompareError) as error:
                ask()
            assert str(error.value) == f"{profile_of(run)}: has changed since it was opened; open it again"
    assert len(run.table("op_stats")) > 0
    assert_same(late_tables(load(logs)), expected["theirs"])
    if keeps:
        flush()
        assert_same(late_tables(load(logs)), expected["theirs"])


def test_a_file_that_is_gone_is_told_in_a_sentence(logs: Path, expected) -> None:
    run = load(logs)
    shutil.rmtree(logs)
    for ask in (lambda: run.tables.timeline(*run.host_names), lambda: run.table("hlo_texts")):
        with pytest.raises(TfcompareError) as error:
            ask()
        assert str(profile_of(run)) in str(error.value) and "\n" not in str(error.value)
    small("ours", logs)
    assert_same(late_tables(run), expected["ours"])


@pytest.mark.usefixtures("own")
def test_what_was_cached_outlives_the_file(logs: Path, expected) -> None:
    late_tables(load(logs))
    flush()
    run = load(logs)
    shutil.rmtree(logs)
    assert_same(late_tables(run), expected["ours"])


@pytest.mark.usefixtures("own")
def test_threads_that_ask_at_once_share_one_build(logs: Path, built: list[Group]) -> None:
    run = load(logs)
    (host,) = run.hosts
    together = threading.Barrier(8)

    def ask(number: int) -> int:
        together.wait()
        return len(host.table(("timeline_spans", "timeline_lanes", "hlo_texts")[number % 3]))

    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(ask, range(8)))
    assert min(rows) > 0
    assert sorted(built) == ["core", "programs", "timeline"]


def test_a_build_that_failed_is_tried_again(logs: Path, monkeypatch: pytest.MonkeyPatch, expected) -> None:
    run = load(logs)
    with monkeypatch.context() as patch:
        patch.setattr(frames_host, "timeline", lambda *_: (_ for _ in ()).throw(MemoryError()))
        with pytest.raises(TfcompareError, match="takes more memory than there is"):
            run.tables.timeline(*run.host_names)
    assert_same(late_tables(run), expected["ours"])


@pytest.mark.parametrize("spoil", [lambda data: data[:-1], lambda _: b"", lambda data: data[:-9] + b"otherwise"])
def test_a_damaged_group_in_the_cache_is_built_again(spoil, own: Path, logs: Path, built, expected) -> None:
    late_tables(load(logs))
    flush()
    for group in LATE:
        (path,) = own.rglob(f"*.{group}")
        good = path.read_bytes()
        path.write_bytes(spoil(good))
        assert_same(late_tables(load(logs)), expected["ours"])
        flush()
        assert path.read_bytes() == good
    assert sorted(built) == ["core", "programs", "programs", "timeline", "timeline"]


@pytest.mark.parametrize("group", LATE)
@pytest.mark.parametrize("what", ["gone", "damaged", "of another group", "of another host"])
def test_a_stored_group_is_made_anew_from_the_profile_or_told_in_a_sentence(
    what: str, group: Group, store: Path, logs: Path, tmp_path: Path, expected
) -> None:
    (path,) = store.rglob(f"*.{group}")
    spoil(what, path, tmp_path)
    (run,) = stored(store).values()
    loaded = load(run)
    assert len(loaded.table("op_stats")) > 0
    why = "is not there any more" if what == "gone" else "is damaged"
    with pytest.raises(TfcompareError, match=rf"\.{group}: what the store held of .* {why}, and the profile"):
        late_tables(loaded)
    with settings.override(settings.Settings(places=(logs,))):
        for _ in range(2):
            assert_same(late_tables(load(run)), expected["ours"])


def spoil(what: str, path: Path, folder: Path) -> None:
    """Damage the pack of a group in a store."""
    if what == "gone":
        path.unlink()
    elif what == "damaged":
        path.write_bytes(path.read_bytes()[:-1])
    elif what == "of another group":
        other = {".timeline": ".programs", ".programs": ".timeline"}[path.suffix]
        shutil.copy(path.with_suffix(other), path)
    else:
        put([small("theirs", folder)], folder / "other store")
        (theirs,) = (folder / "other store").rglob(f"*{path.suffix}")
        shutil.copy(theirs, path)


def test_groups_of_a_store_elsewhere_are_kept_here(own: Path, logs: Path, memory, built: list[Group]) -> None:
    put([logs], "memory://store")
    (run,) = stored("memory://store").values()
    built.clear()
    late_tables(load(run))
    flush()
    assert {path.suffix for path in own.rglob("packs/*/*")} == {".pack", ".programs", ".timeline"}
    memory.rm("/store/packs", recursive=True)
    assert_same(late_tables(load(run)), late_tables(load(run)))
    assert built == []


def test_groups_of_a_fetched_profile(logs: Path, memory: fsspec.AbstractFileSystem, built, expected) -> None:
    place = "/logs/run/vm.xplane.pb"
    memory.pipe(place, next(logs.rglob("*.xplane.pb")).read_bytes())
    run = load("memory://logs/run")
    assert built == ["core"]
    assert_same(late_tables(run), expected["ours"])
