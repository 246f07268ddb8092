"""The packs of several hosts are read at once, and say what those of each would say."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.fuzz import inputs
from tests.store.forged_packs import Forged, forged
from tests.store.runs_in_stores import SMALL
from tests.store.test_hostile_packs import Change, with_values
from tests.store.test_packing import built
from tests.xspace import fuzz_inputs
from tfcompare.errors import TfcompareError
from tfcompare.frames import HostTables, build, table_of_hosts
from tfcompare.frames.arrow import with_labels_once
from tfcompare.schema import HOST_TABLES
from tfcompare.schema.host_tables import LATE
from tfcompare.store import pack_checks
from tfcompare.store.contents import Damaged
from tfcompare.store.packing import pack, unpack
from tfcompare.xspace import parse

NAMES = [name for name, table in HOST_TABLES.items() if table.group not in LATE]


@pytest.fixture(scope="module")
def hosts() -> list[HostTables]:
    """Unlike one another: some lack what others have, and the same texts are at other places."""
    every = [built(data) for data in (SMALL["ours"], *fuzz_inputs.built())]
    for number in range(200, 220):
        try:
            every.append(build(parse(inputs.made(11, number).data), "vm", "digest"))
        except TfcompareError:
            continue
    return [dataclasses.replace(host, host=f"host_{at}", late=None) for at, host in enumerate(every)]


def unpacked(*hosts: HostTables) -> list[HostTables]:
    return [unpack(pack(host), f"{host.host}.pack") for host in hosts]


@pytest.mark.parametrize("name", NAMES)
def test_tables_of_several_packs_are_those_of_each(name: str, hosts: list[HostTables]) -> None:
    packs = unpacked(*hosts)
    (found, rows), (whole, _) = table_of_hosts(name, packs), table_of_hosts(name, hosts)
    assert found.schema == whole.schema
    assert rows == [host.rows(name) for host in packs] == [len(host.table(name)) for host in hosts]
    distinct = with_labels_once(found)
    for column in found.column_names:
        np.testing.assert_array_equal(found[column].to_numpy(), whole[column].to_numpy())
        np.testing.assert_array_equal(distinct[column].to_numpy(), whole[column].to_numpy())
        if HOST_TABLES[name].columns[column].dtype == "str" and len(found):
            labels = distinct[column].chunk(0).dictionary.to_pylist()
            assert len(labels) == len(set(labels))


def test_several_packs_are_read_in_one_pass(hosts: list[HostTables], monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    check = pack_checks.check_table
    monkeypatch.setattr(pack_checks, "check_table", lambda name, *rest: (passes.append(name), check(name, *rest))[1])
    table_of_hosts("op_cells", unpacked(*hosts, *hosts))
    assert sorted(passes) == ["op_cells", "steps"]


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("steps", with_values("steps", duration_us=-1.0)),
        ("steps", with_values("steps", step=2)),
        ("op_parts", with_values("op_parts", host_or_device="neither")),
        ("op_cells", with_values("op_cells", step=12345)),
        ("op_cells", with_values("op_cells", part=10**6)),
        ("op_totals", with_values("op_totals", part=1)),
        ("op_wall", with_values("op_wall", stage=2**31 - 1)),
        ("memory_events", with_values("memory_events", time_ps=10**15)),
        ("device_steps", with_values("device_steps", step=999)),
    ],
)
def test_the_damaged_one_of_several_packs_is_named(table: str, change: Change, hosts: list[HostTables]) -> None:
    data = pack(hosts[0])
    whole, damaged = unpack(data, "whole.pack"), unpack(forged(data, change), "damaged.pack")
    with pytest.raises(Damaged, match=f"damaged.pack: its table {table} is damaged"):
        table_of_hosts(table, [whole, damaged, whole])


def first_index(parts: Forged) -> None:
    """Give the first device of `op_parts` the label behind the last of its pack."""
    labels = len(parts.table("op_parts")["device"].chunk(0).dictionary)
    first, *others = parts.buffers["op_parts"]
    parts.put_buffers("op_parts", [np.int32(labels).tobytes() + first[4:], *others])


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("op_cells", with_values("op_cells", step=13)),
        ("op_cells", with_values("op_cells", part=built(SMALL["ours"]).rows("op_parts"))),
        ("op_parts", first_index),
    ],
)
def test_what_only_another_pack_has_is_damage(table: str, change: Change) -> None:
    """Rows, steps and labels are looked for in a pack of its own, not in those it is read with."""
    damaged = unpack(forged(pack(built(SMALL["ours"])), change), "damaged.pack")
    other = unpack(pack(built(SMALL["theirs"])))
    for several in ([damaged, other], [other, damaged, other]):
        with pytest.raises(Damaged, match=f"damaged.pack: its table {table} is damaged"):
            table_of_hosts(table, several)
