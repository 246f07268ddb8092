"""A store that anybody may write to: its files do no harm to who reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from tests.store.runs_in_stores import pipe_to_full_disk, stored
from tfcompare import settings
from tfcompare.errors import NoOtherSteps, TfcompareError
from tfcompare.fleet import pools
from tfcompare.frames.profile_reader import ProfileReader
from tfcompare.run import load
from tfcompare.sources.logdir import RunSummary
from tfcompare.sources.logdir.metadata import Metadata
from tfcompare.store import records
from tfcompare.store import run_store as index
from tfcompare.store.cached_frames import frame_cache
from tfcompare.store.contents import Damaged, from_json, sealed
from tfcompare.store.file_names import NotOfAStore
from tfcompare.store.files import StoreFiles, store_files
from tfcompare.store.run_store import Entry, Store
from tfcompare.store.stored_run import runs_in

RUN = "ours"
PACK = f"packs/ab/{'ab' * 16}.pack"
DIGEST_BYTES = 32
"""Before the JSON of a record or index."""
FORGED = [
    "{outside}",
    "../outside",
    "packs/../../outside",
    "packs/ab/../../../outside",
    "packs\\..\\..\\outside",
    "C:\\outside",
    f"/{PACK}",
    f"{PACK}\n",
    f"{PACK}\0",
    PACK.upper(),
    f"other/{PACK}",
    "runs/a.json",
    "",
    ".",
    "index.json",
]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file of the reader's, outside every store."""
    path = tmp_path / "outside"
    path.write_bytes(b"TFCPACK3 and no pack, so it would be found damaged and removed")
    return path


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def forge_record(store: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Change the record of the only run, with the digest to go with it."""
    (path,) = (store / "runs").iterdir()
    fields_ = json.loads(path.read_bytes()[DIGEST_BYTES:])
    change(fields_)
    path.write_bytes(sealed(fields_))
    return path


def attacks(files: StoreFiles) -> list[Callable[[str], object]]:
    """What is done with a file by its name."""
    return [files.read, files.info, lambda name: files.write(name, b"x"), lambda name: files.remove([name])]


def only_host(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    return lambda record: change(record["hosts"][0])


@pytest.mark.parametrize("where", ["{tmp}/store", "memory://store"])
def test_no_other_name_is_read_written_or_removed(where: str, outside: Path, tmp_path, memory) -> None:
    files: StoreFiles = store_files(where.replace("{tmp}", str(tmp_path)))
    memory.pipe("/outside", b"mine")
    before = outside.read_bytes()
    for name in FORGED:
        for attack in attacks(files):
            with pytest.raises(NotOfAStore):
                attack(name.replace("{outside}", str(outside)))
    with pytest.raises(NotOfAStore):
        files.listed("../")
    assert outside.read_bytes() == before
    assert memory.cat("/outside") == b"mine"
    assert memory.find("/store") == []


def test_links_that_lead_out_of_a_store_are_not_followed(tmp_path: Path, outside: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "ab"
    elsewhere.mkdir(parents=True)
    victim = elsewhere / PACK.rpartition("/")[2]
    victim.write_bytes(b"mine")
    arriving = elsewhere / ".arriving-1"
    arriving.write_bytes(b"mine")
    os.utime(arriving, (1, 1))
    store = tmp_path / "store"
    store.mkdir()
    (store / "packs").symlink_to(elsewhere.parent)
    files = StoreFiles(str(store), max_bytes=1)
    for attack in attacks(files):
        with pytest.raises(NotOfAStore, match="a link leads out of the store"):
            attack(PACK)
    for clean in (lambda: files.listed("packs"), files.remove_abandoned, files.remove_folders):
        with pytest.raises(NotOfAStore, match="a link leads out of the store"):
            clean()
    assert (victim.read_bytes(), arriving.read_bytes()) == (b"mine", b"mine")

    (store / "packs").unlink()
    (store / "packs" / "ab").mkdir(parents=True)
    (store / PACK).symlink_to(outside)
    with pytest.raises(Damaged, match="is a link"):
        files.read(PACK)
    files.remove([PACK])
    assert outside.exists() and not (store / PACK).is_symlink()


def test_a_file_that_is_replaced_while_it_is_read_is_the_one_or_the_other(tmp_path: Path, monkeypatch) -> None:
    files = StoreFiles(str(tmp_path))
    files.write(PACK, b"short")
    real = os.fstat

    def replaced(handle: int) -> os.stat_result:
        StoreFiles(str(tmp_path)).write(PACK, b"much longer than before")
        return real(handle)

    monkeypatch.setattr("tfcompare.store.files.os.fstat", replaced)
    assert files.read(PACK) == b"short"
    monkeypatch.undo()
    assert files.read(PACK) == b"much longer than before"


def test_a_link_folder_or_pipe_in_place_of_a_file_is_replaced_or_told(tmp_path: Path) -> None:
    files, elsewhere, place = StoreFiles(str(tmp_path / "store")), tmp_path / "elsewhere", tmp_path / "store" / PACK
    elsewhere.mkdir()
    place.parent.mkdir(parents=True)
    place.symlink_to(elsewhere)
    files.write(PACK, b"x")
    assert (files.read(PACK), list(elsewhere.iterdir())) == (b"x", [])
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(Damaged, match="is no file"):
        files.read(PACK)
    place.unlink()
    place.mkdir()
    with pytest.raises(Damaged):
        files.read(PACK)
    with pytest.raises(TfcompareError, match="cannot be written"):
        files.write(PACK, b"x")
    assert list(place.iterdir()) == []


def test_links_in_a_circle_are_told(tmp_path: Path) -> None:
    (tmp_path / "runs").symlink_to("runs")
    files = StoreFiles(str(tmp_path))
    name = f"runs/{'ab' * 16}.json"
    for use in (files.read, lambda name: files.write(name, b"")):
        with pytest.raises(TfcompareError) as error:
            use(name)
        assert "\n" not in str(error.value)


def test_names_of_stores_are_no_patterns(memory: fsspec.AbstractFileSystem) -> None:
    for store in ("team", "te*m"):
        memory.pipe(f"/{store}/{PACK}", b"x")
    store_files("memory://te*m").remove([PACK])
    assert memory.find("/") == [f"/team/{PACK}"]


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, memory: fsspec.AbstractFileSystem, monkeypatch) -> None:
    record = f"runs/{'ab' * 16}.json"
    (tmp_path / "runs").mkdir()
    with (tmp_path / record).open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(Damaged, match="is larger than"):
        StoreFiles(str(tmp_path)).read(record)
    monkeypatch.setattr("tfcompare.store.file_names._MOST_BYTES", 10)
    memory.pipe(f"/store/{record}", bytes(11))
    with pytest.raises(Damaged, match="is larger than 10 B"):
        store_files("memory://store").read(record)


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("name", FORGED[:4])
def test_a_forged_record_deletes_nothing_of_its_reader(name: str, store: Path, outside: Path) -> None:
    before = outside.read_bytes()
    (run,) = stored(store).values()
    forge_record(store, only_host(lambda host: host.update(pack=name.replace("{outside}", str(outside)))))
    with pytest.raises(TfcompareError, match=r"the record of logs/.* is damaged"):
        load(run)
    assert stored(store) == {}
    assert outside.read_bytes() == before


def test_a_forged_note_of_the_cache_deletes_nothing(logs: Path, own: Path, outside: Path) -> None:
    before = outside.read_bytes()
    load(logs)
    frame_cache().flush()
    (note,) = (own / "seen").iterdir()
    for forged in ({"pack": str(outside)}, {"digest": str(outside)}, {"digest": "../../outside", "is_sure": True}):
        note.write_text(json.dumps(json.loads(note.read_bytes()) | forged))
        assert load(logs).info.step_count > 1
        frame_cache().flush()
    assert outside.read_bytes() == before


@pytest.mark.parametrize(
    "kind", ["runs/*", "index.json.gz", "packs/*/*.pack", "packs/*/*.timeline", "packs/*/*.programs"]
)
def test_who_reads_a_store_changes_nothing_in_it(kind: str, store: Path) -> None:
    (path,) = store.glob(kind)
    whole = path.read_bytes()
    for spoiled in (b"", whole[:-1], b"[" * 100_000):
        path.write_bytes(spoiled)
        before = contents(store)
        for run in stored(store).values():
            try:
                loaded = load(run)
                loaded.tables.timeline(*loaded.host_names)
                loaded.table("hlo_memory")
            except TfcompareError as error:
                assert "\n" not in str(error)
        assert contents(store) == before


@pytest.mark.parametrize("path", ["{logs}", "http://127.0.0.1:9/vm.xplane.pb", "s3://bucket/vm.xplane.pb"])
def test_a_profile_that_only_the_record_names_is_not_opened(path: str, store: Path, logs: Path, monkeypatch) -> None:
    (profile,) = logs.rglob("*.xplane.pb")
    path = path.replace("{logs}", str(profile))
    forge_record(store, only_host(lambda host: host.update(path=path)))
    opened: list[object] = []
    monkeypatch.setattr(ProfileReader, "tables", lambda *what: opened.append(what))
    (run,) = stored(store).values()
    with pytest.raises(NoOtherSteps, match="is not below any place given here; name its folder in TFCOMPARE_PLACES"):
        load(run, step_marker="train")
    next((store / "packs").rglob("*.pack")).unlink()
    with pytest.raises(TfcompareError, match="is not below any place given here"):
        load(run)
    assert opened == []


@pytest.mark.parametrize(
    ("place", "may"), [("logs", True), ("other", False), ("logs/..", True), ("s3://bucket/logs", False)]
)
def test_profiles_below_a_given_place_are_read(place: str, may: bool, store: Path, tmp_path: Path, monkeypatch) -> None:
    given = place if "://" in place else tmp_path / place
    monkeypatch.setattr(settings, "_current", settings.Settings(places=(given,)))
    next((store / "packs").rglob("*.pack")).unlink()
    (run,) = stored(store).values()
    if may:
        assert "made anew from the profile" in load(run).remarks[0]
    else:
        with pytest.raises(TfcompareError, match="is not below any place given here"):
            load(run)


@dataclass(frozen=True)
class _Kinds:
    text: str
    number: int
    share: float
    flag: bool
    texts: tuple[str, ...]
    maybe: int | None


GOOD = {"text": "a", "number": 1, "share": 0.5, "flag": True, "texts": ["a"], "maybe": None}


@pytest.mark.parametrize(
    "bad",
    [
        *({"text": 1}, {"text": None}, {"number": 1.0}, {"number": True}, {"number": 10**30}, {"number": "1"}),
        *({"share": float("nan")}, {"share": float("inf")}, {"share": "1"}, {"share": 10**30}, {"share": True}),
        *({"flag": 1}, {"texts": "a"}, {"texts": [1]}, {"texts": {"a": 1}}, {"maybe": "1"}),
    ],
)
def test_values_of_other_types_are_damage(bad: dict[str, object]) -> None:
    assert from_json(json.dumps(GOOD).encode(), _Kinds) == _Kinds("a", 1, 0.5, True, ("a",), None)
    with pytest.raises(Damaged):
        from_json(json.dumps(GOOD | bad).encode(), _Kinds)
    for missing in GOOD:
        with pytest.raises(Damaged):
            from_json(json.dumps({name: value for name, value in GOOD.items() if name != missing}).encode(), _Kinds)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 200_000, b"1" * 10_000, b'{"a":' * 50_000])
def test_what_is_no_json_is_damage(data: bytes) -> None:
    with pytest.raises(Damaged):
        from_json(data, _Kinds)


IMPOSSIBLE: tuple[Callable[[dict[str, Any]], None], ...] = (
    lambda r: r.update(recorded="0001-01-01T00:00:00+23:59"),
    lambda r: r.update(recorded="2024-01-01T00:00:00"),
    lambda r: r.update(own=10**9),
    lambda r: r.update(own=-1),
    lambda r: r.update(ingested_ns=1 << 63),
    lambda r: r.update(place="a\0b"),
    lambda r: r.update(place="file:///etc"),
    lambda r: r.update(hosts=r["hosts"] * 2),
    lambda r: r["hosts"][0].update(size_bytes=-1),
    lambda r: r["hosts"][0].update(path="ftp://host/x"),
    lambda r: r["summary"].update(steps=None),
    lambda r: r["summary"].update(step_times_ms=[-1.0]),
    lambda r: r["summary"].update(step_times_ms=[float("nan")]),
    lambda r: r["summary"].update(step_time_ms_mean=None),
    lambda r: r["summary"].update(step_time_ms_low=None),
    lambda r: r["summary"].update(step_time_ms_low=1e9),
    lambda r: r["summary"].update(steps_per_s=-1.0),
    lambda r: r["summary"].update(steps_per_s_high=None),
    lambda r: r["summary"].update(steps_per_s_high=0.0),
    lambda r: r["metadata"].update(values=[["commit"]]),
    lambda r: r["metadata"].update(values=[["commit", "a"], ["commit", "b"]]),
    lambda r: r["metadata"].update(tags=["a" * 101]),
    lambda r: r["given"].update(tags=["a\nb"]),
    lambda r: r.update(run="another"),
    lambda r: r.update(recorded_source="\ud800"),
    lambda r: r["summary"].update(remarks="\ud800"),
    lambda r: r.update(reader="a\nb"),
    lambda r: r.update(versions={"steps": "1, copies 2"}),
    lambda r: r.update(versions={"<b>": "1"}),
)
"""What makes a record one that cannot be."""


def test_a_record_of_values_that_cannot_be_is_damaged(store: Path) -> None:
    (run,) = runs_in(Store(str(store)))[0]
    (path,) = (store / "runs").iterdir()
    whole = path.read_bytes()
    for number, change in enumerate(IMPOSSIBLE):
        path.write_bytes(whole)
        forge_record(store, change)
        with pytest.raises(Damaged):
            assert not Store(str(store)).record(run.id), number


def test_what_is_written_can_be_read(store: Path) -> None:
    (run,) = runs_in(Store(str(store)))[0]
    record = Store(str(store)).record(run.id)
    assert record is not None
    assert records.from_bytes(sealed(record)) == record
    of_no_steps = replace(run.row, summary=RunSummary("CPU", "", None, None, None, "é\nb"))
    for rows in ([run.row], [replace(run.row, summary=None), of_no_steps], []):
        entries = [Entry(1, "v", row) for row in rows]
        assert index.entries_in(index.index_bytes(entries)) == entries


@pytest.mark.parametrize(
    "bad",
    [
        *({"own": 99}, {"size_bytes": -1}, {"place": "a\0"}, {"host_names": (1,)}, {"ingested_ns": 1 << 63}),
        *({"recorded": "0001-01-01T00:00:00+23:59"}, {"metadata": Metadata((("commit", ""),))}),
    ],
)
def test_an_index_of_values_that_cannot_be_is_not_used(bad: dict[str, Any], store: Path) -> None:
    (run,) = runs_in(Store(str(store)))[0]
    data = index.index_bytes([Entry(1, "v", replace(run.row, **bad))])
    with pytest.raises(Damaged):
        index.entries_in(data)
    (store / "index.json.gz").write_bytes(data)
    runs, messages = runs_in(Store(str(store)))
    assert [run.id for run in runs] == [run.id]
    assert messages == (
        f"{store}/index.json.gz: is damaged, or of another version of tfcompare; the runs were listed from their "
        "records; `tfcompare ingest` repairs it",
    )


def test_an_index_that_expands_to_much_more_is_not_used(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = runs_in(Store(str(store)))[0][0].row
    data = index.index_bytes([Entry(1, "v", replace(row, run=str(i), place="/" + "x" * 10_000)) for i in range(100)])
    assert len(index.entries_in(data)) == 100
    monkeypatch.setattr(index, "_MOST_EXPANDED", 500_000)
    with pytest.raises(Damaged, match="takes more than 500 kB"):
        index.entries_in(data)


def test_a_forged_row_lists_no_run_that_has_no_record(store: Path) -> None:
    entries = index.entries_in((store / "index.json.gz").read_bytes())
    forged = replace(entries[0], row=replace(entries[0].row, run="another"))
    (store / "index.json.gz").write_bytes(index.index_bytes([*entries, forged]))
    runs, messages = runs_in(Store(str(store)))
    assert ([run.id for run in runs], messages) == ([entries[0].row.run], ())


def test_runs_are_listed_from_the_records_where_there_is_no_index(store: Path, tfcompare) -> None:
    (store / "index.json.gz").unlink()
    status, out, err = tfcompare("runs", "--store", str(store))
    assert (status, RUN in out or "run" in out, err) == (0, True, "")
    for record in (store / "runs").iterdir():
        record.write_bytes(b"")
    status, out, err = tfcompare("runs", "--store", str(store))
    assert (status, out) == (2, "")
    assert ".json: is damaged, or of another version of tfcompare, and its run is not listed" in err
    assert "lists no runs; `tfcompare ingest PATH --store" in err


def test_a_full_disk_at_any_write_is_one_sentence_and_leaves_a_store_that_can_be_read(
    logs: Path, tmp_path: Path, tfcompare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "Processes", lambda *_: pools.Here())
    real, writes = LocalFileSystem.pipe_file, []

    def pipe_file(system: LocalFileSystem, path: str, data: bytes) -> None:
        writes.append(path)
        (pipe_to_full_disk if len(writes) == full_at else real)(system, path, data)

    monkeypatch.setattr(LocalFileSystem, "pipe_file", pipe_file)
    for full_at in range(1, 10):
        store = tmp_path / f"store{full_at}"
        writes.clear()
        status, _, err = tfcompare("ingest", str(logs), "--store", str(store))
        if len(writes) < full_at:
            break
        assert (status in (1, 2), err.count("No space left on device"), "Traceback" in err) == (True, 1, False)
        assert "make room on its disk" in err
        assert list(store.rglob(".arriving-*")) == []
        has_record = (store / "runs").exists() and any((store / "runs").iterdir())
        status, out, err = tfcompare("runs", "--store", str(store))
        assert ("kB" in out, "lists no runs" in err or "no store" in err) == (has_record, not has_record)
        assert status == (0 if full_at == 6 else 2)  # the sixth write is that of the index
        assert tfcompare("ingest", str(logs), "--store", str(store))[0] == 0
        assert load(*stored(store).values()).info.step_count > 1
    assert full_at == 7  # mark, three packs, record and index were all tried
