"""A store outlives the code: what earlier versions of tfcompare wrote is read, and what it lacks is missing.

`earlier_store` was written by the code of commit e215358d, which kept no versions of tables: `tfcompare ingest` with
two of the sample runs in /tmp/logs.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.profiles import loaded_run, run_path
from tests.store.forged_packs import Forged, forged
from tests.store.runs_in_stores import put, stored
from tests.store.test_packing import of_group
from tfcompare import schema
from tfcompare.comparison import compare
from tfcompare.frames import HostTables
from tfcompare.frames.host import NUMBERS
from tfcompare.run import load
from tfcompare.schema import HOST_TABLES
from tfcompare.store.arrays import encode
from tfcompare.store.cached_frames import frame_cache
from tfcompare.store.contents import Damaged, OtherVersion
from tfcompare.store.pack_checks import columns_now, first_columns
from tfcompare.store.packing import pack, unpack, unpack_checked
from tfcompare.store.version import SUMMARY, reader_version, versions

EARLIER = Path(__file__).with_name("earlier_store")
RUNS = {"slow_input": "workers_slow_input", "tensorflow_filters_16_8": "tensorflow_filters_16_8"}
"""The runs of the earlier store, and the samples that they are of."""
MB = 2**20


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EARLIER, tmp_path / "earlier"))


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_earlier_code_stored_is_that_of_its_profile(name: str, earlier: Path) -> None:
    run, raw = load(stored(earlier)[name]), loaded_run(RUNS[name])
    assert (run.content_id, run.host_names) == (raw.content_id, raw.host_names)
    for one, other in zip(run.hosts, raw.hosts, strict=True):
        for table in first_columns():
            if table in HOST_TABLES and NUMBERS[table] == 1:
                columns = [
                    name for name, dtype in first_columns()[table].items() if columns_now(table).get(name) == dtype
                ]
                assert encode(one.table(table).select(columns)) == encode(other.table(table).select(columns)), table
    for table in schema.TABLES:
        assert list(run.table(table).columns) == list(raw.table(table).columns)
        assert len(run.table(table)) == len(raw.table(table)) or table in ("recorded", "host_annotations")


def test_earlier_runs_are_listed_shown_compared_and_in_series(earlier: Path, tfcompare) -> None:
    words = ("--store", str(earlier))
    status, out, err = tfcompare("runs", *words, "--format", "csv")
    assert (status, err, out.count(",read,")) == (0, "", 2)
    status, out, err = tfcompare("show", "slow_input", "steps", *words, "--format", "csv")
    assert status == 0 and all(" without " in note and "steps.marker" in note for note in err.splitlines())
    now = tfcompare("show", str(run_path("workers_slow_input")), "steps", "--format", "csv")[1]
    ours, theirs = (pd.read_csv(io.StringIO(text)) for text in (out, now))
    assert ours["marker"].isna().all() and set(theirs["marker"]) == {"train"}
    pd.testing.assert_frame_equal(ours.drop(columns="marker"), theirs.drop(columns="marker"))
    status, out, err = tfcompare("diff", *RUNS, *words)
    assert (status, "earlier" in err) == (0, False)
    for metric in ("step_time", "op:*", "peak_memory"):
        status, out, err = tfcompare("series", *words, "--metric", metric, "--program", "slow_input", "--format", "csv")
        assert (status, out.count("d860c3fd293461ab") > 0) == (0, True)


def test_ingesting_anew_makes_the_tables_of_today(earlier: Path, tmp_path: Path, read_anew: list[str]) -> None:
    old = {run.id: run for run in stored(earlier).values()}
    (run,) = (run for run in old if "tensorflow" in run)
    shutil.copytree(run_path("tensorflow_filters_16_8"), tmp_path / "logs" / "tensorflow_filters_16_8")
    summary = put([tmp_path / "logs"], earlier)
    assert (summary.runs_ingested, len(read_anew)) == (1, 3)  # once for each group of tables
    now = {each.id: each for each in stored(earlier).values()}
    assert now[run].row.versions == versions()
    assert now[run].version_of("steps") == versions()["steps"]
    (other,) = now.keys() - {run}
    assert (now[other], now[other].version_of("steps")) == (old[other], "d860c3fd293461ab")
    assert all(
        "steps.marker" in note for note in set(load(now[other]).remarks) - set(loaded_run("workers_slow_input").remarks)
    )
    assert put([tmp_path / "logs"], earlier).runs_unchanged == 1


@pytest.fixture
def raised(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Raises the numbers of tables, as whoever changes them does."""

    def raise_numbers(*tables: str) -> None:
        for table in tables:
            monkeypatch.setitem(NUMBERS, table, 2)
        reader_version.cache_clear()

    yield raise_numbers
    monkeypatch.undo()
    reader_version.cache_clear()


def test_a_profile_is_read_anew_where_a_version_changed_and_it_is_there(store, logs, read_anew, raised) -> None:
    before = {path.name for path in store.rglob("*.pack")}
    assert put([logs], store).runs_unchanged == 1
    read_anew.clear()
    raised("copies")
    assert put([logs], store).runs_ingested == 1
    assert set(read_anew) == {"vm.xplane.pb"}
    assert len({path.name for path in store.rglob("*.pack")} - before) == 1
    (run,) = stored(store).values()
    assert run.version_of("copies").startswith("2-")
    assert put([logs], store).runs_unchanged == 1


def test_the_old_tables_are_used_where_the_profile_is_gone(store, logs, read_anew, raised) -> None:
    raw = load(logs)
    shutil.rmtree(logs)
    read_anew.clear()
    raised("copies", "timeline_spans", SUMMARY)
    (run,) = stored(store).values()
    loaded = load(run)
    pd.testing.assert_frame_equal(loaded.table("op_stats"), raw.table("op_stats"))
    assert len(loaded.tables.timeline(*loaded.host_names)[1]) > 0
    assert (loaded.remarks, read_anew) == ((), [])
    assert compare(loaded, loaded).headline(loaded.id)


@pytest.mark.usefixtures("given")
def test_a_damaged_pack_of_another_version_is_made_anew_here_and_stays_in_the_store(store, logs, raised) -> None:
    raw = load(logs)
    (path,) = store.rglob("*.pack")
    path.write_bytes(b"damaged")
    raised("copies")
    (run,) = stored(store).values()
    loaded = load(run)
    pd.testing.assert_frame_equal(loaded.table("op_stats"), raw.table("op_stats"))
    assert "is damaged; it was made anew from the profile" in "".join(loaded.remarks)
    assert path.read_bytes() == b"damaged", "its name is that of an older version"


@pytest.mark.usefixtures("own")
def test_the_cache_of_this_machine_is_not_used_where_a_version_changed(logs, read_anew, raised) -> None:
    def times_read() -> int:
        load(logs)
        cache = frame_cache()
        assert cache is not None
        cache.flush()
        return len(read_anew)

    assert [times_read(), times_read()] == [1, 1]
    raised("copies")
    assert [times_read(), times_read()] == [2, 2]


def without(*names: str) -> Callable[[Forged], object]:
    return lambda parts: [parts.lose(name) for name in names]


def remark(names: str) -> str:
    return (
        f"its tables were made by another version of tfcompare, without {names}; `tfcompare ingest` again where the "
        "profile is"
    )


def test_columns_that_a_pack_lacks_are_missing(host: HostTables) -> None:
    missing = {
        "steps.device_span_us": np.nan,
        "op_parts.earliest": -1,
        "op_parts.shapes": "",
        "kernel_stats.registers_per_thread": None,
    }
    data = forged(pack(host), without(*missing))
    ours = unpack_checked(data)
    for name in HOST_TABLES:
        if name not in ours.tables:
            continue
        one, other = ours.table(name), host.table(name)
        assert one.schema == other.schema
        for column in one.column_names:
            if f"{name}.{column}" not in missing:
                assert encode(one.select([column])) == encode(other.select([column])), f"{name}.{column}"
            else:
                np.testing.assert_array_equal(one[column].to_pylist(), [missing[f"{name}.{column}"]] * len(other))
    assert ours.remarks == (*host.remarks, remark(", ".join(missing)))
    assert pack(ours) == data, "copies of a pack stay what they are"


def test_a_part_of_the_step_that_earlier_versions_did_not_tell_apart_takes_no_time(host: HostTables) -> None:
    names = ("steps.device_waits_us", "device_steps.device_waits_us")
    ours = unpack_checked(forged(pack(host), without(*names)))
    assert ours.remarks == (*host.remarks, remark(", ".join(names)))
    for name in ("steps", "device_steps"):
        assert ours.table(name)["device_waits_us"].to_pylist() == [0.0] * len(host.table(name)) != []
    lost = unpack_checked(forged(pack(host), without("steps.device_compute_us"))).table("steps")
    assert np.isnan(lost["device_compute_us"].to_pylist()).all(), "no other part has its time"


def test_columns_and_tables_that_are_not_of_today_are_ignored(host: HostTables) -> None:
    parts = Forged.of(pack(host))
    for name in ("steps", "hlo_ops"):
        table = parts.table(name)
        old = pa.array(["old"] * len(table)).dictionary_encode()
        parts.put_columns(name, table.add_column(0, "old", old), {"old": "str", **columns_now(name)})
    parts.head["groups"]["core"]["tables"]["old_table"] = [0, 0, 0]
    parts.head["columns"]["old_table"] = {"old": "bool"}
    ours = unpack_checked(parts.bytes())
    assert ours.remarks == host.remarks
    assert list(ours.tables) == [name for name, table in HOST_TABLES.items() if table.group in ("core", "steps")]
    for name in ours.tables:
        assert encode(ours.table(name)) == encode(host.table(name))


def test_a_table_that_a_pack_lacks_has_no_rows_and_a_remark_says_so(host: HostTables) -> None:
    ours = unpack_checked(forged(pack(host), without("memory_summary", "hlo_cells")))
    assert (len(ours.table("memory_summary")), len(host.table("memory_summary"))) == (0, 1)
    assert len(ours.table("hlo_cells")) == 0 < len(ours.table("op_cells"))
    assert ours.remarks == (*host.remarks, remark("memory_summary, hlo_cells"))
    # without a column that cannot be missing, the whole table is
    ours = unpack_checked(forged(pack(host), without("memory_summary.peak_bytes")))
    assert len(ours.table("memory_summary")) == 0
    assert ours.remarks == (*host.remarks, remark("memory_summary"))


def test_without_a_table_that_others_need_a_pack_is_refused(host: HostTables) -> None:
    for name in ("steps", "op_parts", "steps.included", "steps.start_us"):
        with pytest.raises(Damaged):
            unpack_checked(forged(pack(host), without(name)))
    data = pack(of_group(host, "timeline"))
    with pytest.raises(OtherVersion, match="it lacks timeline_lanes"):
        unpack(forged(data, without("timeline_lanes")), group="timeline")


def _said(**columns: str) -> Callable[[Forged], object]:
    return lambda parts: parts.head["columns"].update(copies=columns)


@pytest.mark.parametrize(
    "change",
    [
        _said(),
        _said(start_us="float16"),
        _said(**{"A\x1b[2J": "bool"}),
        _said(**{f"c{number}": "bool" for number in range(300)}),
        lambda parts: parts.head["columns"].update(steps={"step": 3}),
    ],
)
def test_columns_that_cannot_be_are_damage(change: Callable[[Forged], object], host: HostTables, monkeypatch) -> None:
    data = forged(pack(host), change)
    monkeypatch.setattr(pa, "decompress", lambda *_, **__: pytest.fail("was expanded"))
    with pytest.raises(Damaged):
        unpack(data)


def test_what_a_pack_lacks_counts_as_memory(host: HostTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of flags, 1 MB of them and some hundred bytes when compressed, whose other columns are missing."""
    rows = 8 * MB

    def change(parts: Forged) -> None:
        parts.put_columns("op_parts", pa.table({"old": pa.array(np.zeros(rows, bool))}), {"old": "bool"})

    monkeypatch.setenv("TFCOMPARE_PACK_MB", "40")
    data = forged(pack(host), change)
    assert len(data) < MB
    with pytest.raises(Damaged, match="raise TFCOMPARE_PACK_MB"):
        unpack(data)


def test_what_is_new_in_a_table_is_said_by_its_pack(host: HostTables) -> None:
    """Packs of today's columns say none; those of a version with others say them, and are read by it."""
    assert Forged.of(pack(host)).head["columns"] == {
        name: dict(columns_now(name)) for name in host.tables if columns_now(name) != first_columns().get(name)
    }
