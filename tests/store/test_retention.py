"""`tfcompare store`: what a store holds, made smaller run by run, cleared without touching anything else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.store.runs_in_stores import SMALL, STAMP, put, small, stored
from tfcompare.run import load
from tfcompare.store import records
from tfcompare.store.retention import holdings, shrink
from tfcompare.store.run_store import Store

NAMES = list(SMALL)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three runs, the first of which was not used for longest."""
    places = [small(name, tmp_path / "logs") for name in NAMES]
    put([*places], tmp_path / "store")
    for age, name in enumerate(NAMES[::-1]):
        pack = tmp_path / "store" / stored(tmp_path / "store")[name].opened().files[0].stored.name
        os.utime(pack, (1e9 - age, 1e9 - age))
    return tmp_path / "store"


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_it_tells_what_there_is(store: Path, tfcompare) -> None:
    status, out, err = tfcompare("store", "--store", str(store), "--format", "json")
    told = json.loads(out)
    assert (status, told["runs"], told["packs"], told["bytes"], err) == (0, 3, 3, bytes_in(store), "")
    assert f"{store}: holds 3 runs and the tables of 3 host files" in tfcompare("store", "--store", str(store))[1]


def test_clearing_removes_all_that_is_the_stores_and_nothing_else(store: Path, tfcompare) -> None:
    mine = [store / "thesis.txt", store / "packs" / "thesis.pack", store / "runs" / "deep" / "a.json"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    (store / "packs" / ".arriving-abc").write_text("half")
    status, out, _ = tfcompare("store", "--store", str(store), "--clear")
    assert status == 0
    assert out.startswith(f"{store}: removed 3 runs and ")
    assert sorted(path for path in store.rglob("*") if path.is_file()) == sorted(mine)


@pytest.mark.parametrize("mark", ['{"format": 1}', "{"])
def test_a_store_of_an_earlier_version_can_be_cleared(mark: str, store: Path, tfcompare) -> None:
    (store / "tfcompare-store.json").write_text(mark)
    assert tfcompare("store", "--store", str(store))[0] == 2
    assert tfcompare("store", "--store", str(store), "--clear")[0] == 0
    assert list(store.iterdir()) == []


def test_a_folder_that_is_no_store_is_not_cleared(tmp_path: Path, tfcompare) -> None:
    pack = tmp_path / "packs" / "ab" / f"{'ab' * 16}.pack"
    pack.parent.mkdir(parents=True)
    pack.write_text("looks like ours")
    status, _, err = tfcompare("store", "--store", str(tmp_path), "--clear")
    assert (status, "is no store of tfcompare" in err) == (2, True)
    assert pack.exists()


def test_whole_runs_go_the_least_recently_used_first(store: Path) -> None:
    before = bytes_in(store)
    removed, freed = shrink(Store(str(store)), before - 1000)
    assert removed == 1
    assert freed > 1000
    assert sorted(stored(store)) == sorted(NAMES[1:])
    assert not (store / records.record_name(f"{NAMES[0]}/plugins/profile/{STAMP}")).exists()
    assert len(list((store / "packs").rglob("*.*"))) == 2 * 3  # each host file has three packs
    assert all(load(run).remarks == () for run in stored(store).values())
    assert shrink(Store(str(store)), before) == (0, 0)


def test_a_pack_that_another_run_has_too_stays(tmp_path: Path) -> None:
    one, two = (small("ours", tmp_path / place) for place in "ab")
    put([one, two], tmp_path / "store")
    assert holdings(Store(str(tmp_path / "store")))[0].packs == 1
    assert shrink(Store(str(tmp_path / "store")), bytes_in(tmp_path / "store") - 1)[0] >= 1
    left = stored(tmp_path / "store")
    assert all(load(run).remarks == () for run in left.values())


def test_a_run_that_was_removed_can_be_ingested_again(store: Path, tmp_path: Path) -> None:
    shrink(Store(str(store)), 0)
    assert stored(store) == {}
    assert put([tmp_path / "logs"], store).runs_ingested == 3
    assert len(stored(store)) == 3


def test_packs_of_no_run_go_first(store: Path) -> None:
    for suffixes in (["pack"], ["timeline", "programs"]):
        orphans = [store / "packs" / "ab" / f"{'ab' * 16}.{suffix}" for suffix in suffixes]
        orphans[0].parent.mkdir(exist_ok=True)
        for orphan in orphans:
            orphan.write_bytes(b"x" * 5000)
        assert shrink(Store(str(store)), bytes_in(store) - 5000 * len(orphans) + 4000) == (0, 5000 * len(orphans))
        assert not any(orphan.exists() for orphan in orphans)
