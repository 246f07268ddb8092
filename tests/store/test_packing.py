"""Tables in a pack are those that were put there, and a pack that is not whole is refused."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping

import pandas as pd
import pyarrow as pa
import pytest

from tests.fuzz import inputs
from tests.profiles import EACH_KIND, loaded_run
from tests.store.runs_in_stores import SMALL
from tests.xspace import fuzz_inputs
from tfcompare import schema
from tfcompare.errors import TfcompareError
from tfcompare.frames import HostTables, build
from tfcompare.frames.host import LazyTables
from tfcompare.schema import Group
from tfcompare.schema.host_tables import LATE
from tfcompare.store.arrays import encode
from tfcompare.store.contents import Damaged
from tfcompare.store.packing import PackedTables, pack, unpack, unpack_checked
from tfcompare.xspace import parse

GROUPS: tuple[Group, ...] = ("core", *LATE)


def of_group(host: HostTables, group: Group) -> HostTables:
    """What the pack of that group holds."""
    if group == "core":
        return dataclasses.replace(host, late=None)
    assert host.late is not None
    return dataclasses.replace(host, tables=host.late[group], late=None)


def packed(host: HostTables) -> HostTables:
    """The host from its packs."""

    def late(group: Group) -> Mapping[str, pa.Table]:
        return unpack_checked(pack(of_group(host, group)), group).tables

    return dataclasses.replace(unpack_checked(pack(host)), late=LazyTables(late))


def assert_same(ours: HostTables, theirs: HostTables) -> None:
    for name in (f.name for f in dataclasses.fields(HostTables) if f.name != "tables"):
        assert (type(getattr(ours, name)), getattr(ours, name)) == (type(getattr(theirs, name)), getattr(theirs, name))
    assert list(ours.tables) == list(theirs.tables)
    assert len(ours.tables) == len(theirs.tables)
    for name, table in ours.tables.items():
        assert table.schema.equals(theirs.tables[name].schema)
        assert encode(table) == encode(theirs.tables[name]), name


def built(data: bytes) -> HostTables:
    """The host of a small profile, with all groups."""
    space = parse(data)
    late = LazyTables(lambda group: build(space, "vm", "digest", group=group).tables)
    return dataclasses.replace(build(space, "vm", "digest"), late=late)


def assert_packs(host: HostTables) -> None:
    """All groups come out of their packs as they went in, aligned as compiled code expects."""
    for group in GROUPS:
        tables = of_group(host, group)
        unpacked = unpack(pack(tables), group=group)
        assert_same(tables, unpacked)
        for name, table in unpacked.tables.items():
            for field in table.schema:
                if pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
                    chunks = table[field.name].chunks
                    assert all(one.fill_null(0).to_numpy().flags.aligned for one in chunks), f"{name}.{field.name}"


def test_tables_of_small_profiles_come_out_as_they_went_in() -> None:
    for data in (*fuzz_inputs.built(), SMALL["ours"]):
        assert_packs(built(data))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.thorough] * (name != "gpu_filters_16_8")) for name in EACH_KIND],
)
def test_every_table_of_a_run_is_the_same_from_packs(name: str) -> None:
    run = loaded_run(name)
    for host in run.hosts:
        assert_packs(host)
    again = dataclasses.replace(run, hosts=tuple(packed(h) for h in run.hosts))
    for table in schema.TABLES:
        pd.testing.assert_frame_equal(run.table(table), again.table(table), check_exact=True)
    for host in run.host_names:
        for ours, theirs in zip(run.tables.timeline(host), again.tables.timeline(host), strict=True):
            pd.testing.assert_frame_equal(ours, theirs, check_exact=True)
    assert again.info == run.info


@pytest.mark.parametrize("count", [15, pytest.param(100, marks=pytest.mark.thorough)])
def test_what_is_read_of_hostile_profiles_passes_the_checks_of_packs(count: int) -> None:
    results = 0
    for number in range(200, 200 + count):
        for group in GROUPS:
            try:
                tables = build(parse(inputs.made(11, number).data), "vm", "digest", group=group)
            except TfcompareError:
                continue
            results += 1
            assert_same(tables, unpack_checked(pack(tables), group))
    assert results > count


def test_the_same_tables_give_the_same_bytes(host: HostTables) -> None:
    assert pack(host) == pack(host)
    assert pack(unpack(pack(host))) == pack(host)


def test_a_table_is_read_when_it_is_asked_for(host: HostTables, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked, names = unpack(pack(host)), []
    read = PackedTables._read
    monkeypatch.setattr(
        PackedTables, "_read", lambda tables, name, *data: (names.append(name), read(tables, name, *data))[1]
    )
    assert names == []
    assert len(unpacked.table("op_cells")) == len(host.table("op_cells"))
    assert names == ["op_cells", "steps"]  # steps of cells are among these
    assert unpacked.table("op_parts") is unpacked.table("op_parts")
    assert names == ["op_cells", "steps", "op_parts"]
    assert unpacked.table("op_cells") is not unpacked.table("op_cells")
    assert unpacked.memory_bytes > len(pack(host)), "the group core stays expanded"


def test_a_pack_of_another_group_is_refused(host: HostTables) -> None:
    for group in GROUPS:
        data = pack(of_group(host, group))
        for other in GROUPS:
            if other == group:
                unpack_checked(data, group)
            else:
                with pytest.raises(Damaged, match="it has other groups of tables than it should"):
                    unpack(data, group=other)


def test_a_pack_with_any_other_byte_or_length_is_refused(host: HostTables) -> None:
    data = pack(host)
    chance = random.Random(5)
    for _ in range(100):
        place = chance.randrange(len(data))
        damaged = bytearray(data)
        damaged[place] ^= 1 << chance.randrange(8)
        with pytest.raises(Damaged):
            unpack(bytes(damaged))
    for length in (0, 7, 8, 20, 24, 1000, len(data) - 1):
        with pytest.raises(Damaged):
            unpack(data[:length])
    with pytest.raises(Damaged):
        unpack(data + b"\0")
