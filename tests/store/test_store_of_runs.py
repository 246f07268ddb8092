"""A store of many runs tells what their profiles tell, and never anything else."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import fsspec
import pandas as pd
import pytest

from tests.profiles import EACH_KIND, run_path
from tests.store.runs_in_stores import SMALL, STAMP, assert_same, put, small, stored
from tfcompare import schema
from tfcompare.comparison import compare
from tfcompare.errors import NoRuns, TfcompareError
from tfcompare.run import load
from tfcompare.sources.logdir import FoundRun, find_runs
from tfcompare.store import cached_frames, records
from tfcompare.store import run_store as stored_module
from tfcompare.store.cached_frames import frame_cache
from tfcompare.store.file_names import MARK, all_packs
from tfcompare.store.run_store import Store
from tfcompare.store.stored_run import named, one_of, runs_in
from tfcompare.views.run_listing import listing

OURS, THEIRS = "ours", "theirs"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two runs of the test's own."""
    for name in (OURS, THEIRS):
        small(name, tmp_path / "logs")
    return tmp_path / "logs"


def pack_of(run: FoundRun) -> str:
    pack = run.opened().files[0].stored
    assert pack is not None
    return pack.name


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name != "jax_filters_16_8")) for name in EACH_KIND]
)
def test_each_table_of_a_stored_run_is_that_of_its_profile(name: str, tmp_path: Path) -> None:
    path = run_path(name)
    assert put([path], tmp_path).runs_ingested == 1
    (found,) = stored(tmp_path).values()
    run, raw = load(found), load(path)
    assert_same(run, raw)
    for table in schema.TABLES:
        ids = {"run": "run"} if table == "run_info" else {}
        pd.testing.assert_frame_equal(run.table(table).assign(**ids), raw.table(table).assign(**ids))


def test_two_stored_runs_compare_as_their_profiles_do(store: Path, logs: Path, read_anew: list[str]) -> None:
    runs, raw = stored(store), [load(logs / name) for name in (THEIRS, OURS)]
    theirs = compare(*raw)
    said = theirs.headline(theirs.candidates[0].id)
    read_anew.clear()
    shutil.rmtree(logs)
    ours = compare(load(runs[THEIRS]), load(runs[OURS]))
    ids = ["baseline", "candidate", "run"]
    pd.testing.assert_frame_equal(
        *(each.table("op_stats").drop(columns=ids, errors="ignore") for each in (ours, theirs))
    )
    assert ours.headline(ours.candidates[0].id) == said
    assert read_anew == []


def test_a_stored_run_keeps_id_name_and_all_that_a_listing_tells(store: Path, logs: Path) -> None:
    raw = find_runs(logs)
    ours = named(runs_in(Store(str(store)))[0])
    assert [(run.id, run.name, run.path) for run in ours] == [(run.id, run.name, run.path) for run in raw]
    read = listing(raw, {run.id: load(run) for run in raw})
    told = listing(ours, {})
    times = [frame.pop("step_times_ms").map(list).tolist() for frame in (told, read)]
    assert times[0] == times[1]
    pd.testing.assert_frame_equal(told, read)


def test_four_hundred_runs_are_listed_without_a_record_or_a_pack(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Store(str(store))
    one, two = (held.record(run.id) for run in runs_in(held)[0])
    assert one is not None and two is not None
    for i, record in enumerate([one, two] * 200):
        held.put(replace(record, run=f"many/{i:04}", place=f"/many/{i:04}", parts=("many", f"{i:04}"), own=2))
    held.write_index()
    shutil.rmtree(store / "packs")
    stored_module._row_in.cache_clear()
    monkeypatch.setattr(stored_module, "_record_in", lambda _, name: pytest.fail(f"{name} was read"))
    runs = named(runs_in(held)[0])
    assert len(runs) == 402
    frame = listing(runs, {})
    assert frame["state"].eq("read").all()
    assert frame["step_time_ms_median"].notna().all()
    assert one_of(runs, "many/0399", held).host_names == tuple(host.host for host in two.hosts)


def test_what_has_not_changed_is_not_read_again(store: Path, logs: Path, read_anew: list[str]) -> None:
    before = sorted((p, p.stat().st_mtime_ns) for p in store.rglob("*"))
    summary = put([logs], store)
    assert (summary.runs_unchanged, summary.runs_ingested, summary.host_files, read_anew) == (2, 0, 0, [])
    assert sorted((p, p.stat().st_mtime_ns) for p in store.rglob("*")) == before


def test_of_a_run_with_several_hosts_only_the_changed_file_is_read(tmp_path: Path, read_anew: list[str]) -> None:
    folder = tmp_path / "plugins" / "profile" / "run"
    folder.mkdir(parents=True)
    for host in ("a", "b", "c"):
        (folder / f"{host}.xplane.pb").write_bytes(SMALL[OURS])
    put([folder], tmp_path / "store")
    (folder / "b.xplane.pb").write_bytes(SMALL[THEIRS])
    read_anew.clear()
    summary = put([folder], tmp_path / "store")
    assert (summary.host_files, summary.host_files_kept, {*read_anew}) == (1, 2, {"b.xplane.pb"})
    (run,) = stored(tmp_path / "store").values()
    assert_same(load(run), load(folder))


def test_a_file_written_just_before_it_was_read_is_read_again(logs: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(cached_frames, "_SETTLED_NS", 10**18)
    put([logs], tmp_path / "store")
    assert put([logs], tmp_path / "store").host_files == 2


@pytest.mark.usefixtures("given")
def test_a_damaged_pack_is_made_anew_from_the_profile_and_told(store: Path, read_anew: list[str]) -> None:
    run = stored(store)[OURS]
    pack = store / pack_of(run)
    good = pack.read_bytes()
    pack.write_bytes(good[:500] + bytes([good[500] ^ 1]) + good[501:])
    loaded = load(run)
    assert len(read_anew) == 1
    (remark,) = loaded.remarks
    assert remark.startswith(f"{store}/{pack_of(run)}: what the store held of {run.path}/")
    assert remark.endswith(".xplane.pb is damaged; it was made anew from the profile")
    assert pack.read_bytes() == good
    assert load(run).remarks == ()
    pack.unlink()
    assert "is not there any more; it was made anew from the profile" in load(run).remarks[0]
    assert pack.read_bytes() == good


@pytest.mark.usefixtures("given")
@pytest.mark.parametrize("what", ["gone", "changed"])
def test_without_its_profile_a_damaged_pack_is_left_out_by_name(what: str, store: Path, logs: Path) -> None:
    run = stored(store)[OURS]
    (store / pack_of(run)).write_bytes(b"TFCPACK1 and nothing else")
    if what == "gone":
        shutil.rmtree(logs)
    else:
        run.opened().files[0].path.write_bytes(SMALL[THEIRS])
    why = r"\.pack: what the store held of .* is damaged, and the profile (is|cannot)"
    with pytest.raises(TfcompareError, match=why):
        load(run)


@pytest.mark.usefixtures("given")
def test_a_pack_under_anothers_name_is_not_taken_for_its_own(store: Path, logs: Path) -> None:
    ours, theirs = (stored(store)[name] for name in (OURS, THEIRS))
    shutil.copy(store / pack_of(theirs), store / pack_of(ours))
    loaded = load(ours)
    assert loaded.content_id == load(logs / OURS).content_id
    assert "is damaged; it was made anew" in loaded.remarks[0]


def test_a_missing_pack_is_ingested_again(store: Path, logs: Path) -> None:
    for name in all_packs(pack_of(stored(store)[OURS])):
        whole = (store / name).read_bytes()
        (store / name).unlink()
        summary = put([logs], store)
        assert (summary.host_files, summary.runs_unchanged) == (1, 1)
        assert (store / name).read_bytes() == whole


def test_a_damaged_record_is_told_and_written_anew(store: Path, logs: Path) -> None:
    run = stored(store)[OURS]
    name = records.record_name(run.id)
    record = store / name
    record.write_bytes(record.read_bytes().replace(b'"own": ', b'"own": 1'))
    with pytest.raises(TfcompareError, match=r"the record of logs/.* is damaged; `tfcompare ingest` again"):
        load(run)
    runs, messages = runs_in(Store(str(store)))
    why = "is damaged, or of another version of tfcompare, and its run is not listed"
    assert (len(runs), messages) == (1, (f"{store}/{name}: {why}; `tfcompare ingest` again lists it",))
    assert put([logs], store).runs_ingested == 1
    assert load(stored(store)[OURS]).remarks == ()


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-1], lambda data: data[:50] + bytes([data[50] ^ 1]) + data[51:], lambda _: b""]
)
def test_a_damaged_index_is_made_anew_from_the_records(spoil, store: Path, logs: Path) -> None:
    before = sorted(run.id for run in runs_in(Store(str(store)))[0])
    file = store / "index.json.gz"
    good = file.read_bytes()
    file.write_bytes(spoil(good))
    runs, said = runs_in(Store(str(store)))
    assert sorted(run.id for run in runs) == before
    why = "is damaged, or of another version of tfcompare; the runs were listed from their records"
    assert said == (f"{store}/index.json.gz: {why}; `tfcompare ingest` repairs it",)
    put([logs], store)
    assert file.read_bytes() == good
    runs, said = runs_in(Store(str(store)))
    assert (sorted(run.id for run in runs), said) == (before, ())


def test_a_record_that_another_ingest_wrote_is_listed_though_the_index_is_older(store: Path, logs: Path) -> None:
    held, old = Store(str(store)), (store / "index.json.gz").read_bytes()
    (ours, theirs) = (held.record(run.id) for run in named(runs_in(held)[0]))
    assert ours is not None and theirs is not None
    held.put(replace(ours, content_id="changed meanwhile"))
    held.put(replace(theirs, run="new"))
    assert {row.run: row.content_id for row in held.rows()[0]} == {
        ours.run: "changed meanwhile",
        theirs.run: theirs.content_id,
        "new": theirs.content_id,
    }
    assert (store / "index.json.gz").read_bytes() == old
    put([logs], store)
    assert (store / "index.json.gz").read_bytes() != old
    (store / records.record_name("new")).unlink()
    assert len(held.rows()[0]) == 2


def test_another_run_of_the_same_id_does_not_take_its_place(store: Path, tmp_path: Path) -> None:
    small(THEIRS, tmp_path / "elsewhere" / "logs").rename(tmp_path / "elsewhere" / "logs" / OURS)
    summary = put([tmp_path / "elsewhere" / "logs"], store)
    assert summary.runs_ingested == 0
    assert "the store has another run logs/" in summary.failures[0]
    assert put([tmp_path / "elsewhere"], store).runs_ingested == 1


def test_a_bad_host_file_is_left_out_as_of_profiles(tmp_path: Path) -> None:
    folder = small(OURS, tmp_path / "logs")
    (folder / "plugins" / "profile" / STAMP / "bad.xplane.pb").write_bytes(SMALL[OURS][:200])
    summary = put([folder], tmp_path / "store")
    (run,) = stored(tmp_path / "store").values()
    assert_same(load(run), load(folder))
    assert any("bad.xplane.pb" in problem for problem in run.problems)
    assert (summary.runs_ingested, put([folder], tmp_path / "store").host_files) == (1, 0)


def test_a_folder_with_other_files_does_not_become_a_store(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    with pytest.raises(TfcompareError, match="holds other files and is no store of tfcompare"):
        put([logs], tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_what_is_no_store_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoRuns, match="is no store of tfcompare; `tfcompare ingest PATH --store"):
        runs_in(Store(str(tmp_path)))
    (tmp_path / MARK).write_text(json.dumps({"format": 99}))
    with pytest.raises(TfcompareError, match="later version"):
        runs_in(Store(str(tmp_path)))
    (tmp_path / MARK).write_text(json.dumps({"format": 1}))
    with pytest.raises(TfcompareError, match="an earlier version of tfcompare; `tfcompare ingest` again"):
        runs_in(Store(str(tmp_path)))
    Store(str(tmp_path)).begin()
    assert runs_in(Store(str(tmp_path))) == ([], ())


def test_stores_that_cannot_be_had_are_told_in_a_sentence(logs: Path) -> None:
    with pytest.raises(TfcompareError, match="a store is not supported behind https://"):
        put([logs], "https://example.com/store")


def test_a_store_in_memory(logs: Path, memory: fsspec.AbstractFileSystem) -> None:
    put([logs], "memory://store")
    assert_same(load(stored("memory://store")[OURS]), load(logs / OURS))
    assert memory.find("/store/packs")


@pytest.mark.usefixtures("given")
def test_what_was_fetched_from_a_store_is_kept_here(store: Path, own: Path, memory, logs: Path) -> None:
    put([logs], "memory://store")
    run = stored("memory://store")[OURS]
    name = pack_of(run)
    load(run)
    frame_cache().flush()
    assert (own / name).read_bytes() == (store / name).read_bytes()
    memory.rm(f"/store/{name}")
    assert load(run).remarks == ()
    os.truncate(own / name, 100)
    shutil.rmtree(logs)
    with pytest.raises(TfcompareError, match="is not there any more, and the profile cannot be read here"):
        load(run)
