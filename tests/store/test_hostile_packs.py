"""A pack that anybody may have written: what tfcompare does not write is damage, found before it costs anything."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.store.forged_packs import Forged, forged
from tests.store.test_packing import of_group
from tfcompare.errors import TfcompareError
from tfcompare.frames import HostTables
from tfcompare.frames.arrow import host_table, texts
from tfcompare.schema import HOST_TABLES, Group
from tfcompare.store.arrays import expanded_bytes
from tfcompare.store.contents import Damaged
from tfcompare.store.packing import pack, unpack, unpack_checked

MB = 2**20
Change = Callable[[Forged], object]


@pytest.fixture(scope="module")
def packs(host: HostTables) -> dict[Group, bytes]:
    """The pack of each group."""
    return {group: pack(of_group(host, group)) for group in ("core", "timeline", "programs")}


def with_values(table: str, **values: object) -> Change:
    """Replace the first value in some columns of a table."""

    def change(parts: Forged) -> None:
        columns = parts.table(table).to_pydict()
        for name, value in values.items():
            columns[name][0] = value
        parts.put(table, host_table(table, columns))

    return change


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("steps", {"start_us": float("nan")}),
        ("steps", {"duration_us": -1.0}),
        ("steps", {"input_us": float("inf")}),
        ("steps", {"step": 2}),
        ("steps", {"host_start_us": float("nan")}),
        ("op_parts", {"host_or_device": "neither"}),
        ("op_cells", {"part": 10**6}),
        ("op_cells", {"part": -1}),
        ("op_cells", {"step": 12345}),
        ("op_cells", {"self_time_ps": -1}),
        ("op_totals", {"part": 1}),
        ("op_totals", {"total_time_ps": (1 << 63) - 1}),
        ("op_wall", {"step_part": 100}),
        ("op_wall", {"step_part": -2}),
        ("op_wall", {"stage": 2**31 - 1}),
        ("op_wall", {"wall_time_ps": -1.0}),
        ("op_wall_totals", {"part": -1}),
        ("memory_events", {"time_ps": 10**15}),
        ("memory_events", {"following": 10**6}),
        ("memory_events", {"following": -2}),
        ("memory_events", {"row": -1}),
        ("device_steps", {"step": 999}),
        ("device_steps", {"other_us": -1.0}),
        ("idle_gaps", {"step": 999}),
        ("timeline_spans", {"lane": -1}),
        ("timeline_spans", {"lane": 10**6}),
        ("timeline_spans", {"launch": 2**31 - 1}),
        ("timeline_spans", {"launch": -2}),
        ("timeline_spans", {"duration_ps": -1}),
    ],
)
def test_a_pack_of_values_that_cannot_be_is_damaged(table: str, values: dict[str, Any], packs) -> None:
    group = HOST_TABLES[table].group
    group = group if group in packs else "core"
    same = unpack_checked(forged(packs[group], with_values(table)), group)
    assert len(same.tables[table]) > 0
    with pytest.raises(Damaged, match=f"its table {table} is damaged|has steps that do not exist"):
        unpack_checked(forged(packs[group], with_values(table, **values)), group)


def test_a_pack_of_programs_is_checked_too(host: HostTables, packs) -> None:
    table = host.table("hlo_texts")
    assert len(unpack_checked(packs["programs"], "programs").tables["hlo_texts"]) == len(table) > 1
    second = {name: table[name][1].as_py() for name in ("program", "hlo_op")}
    with pytest.raises(Damaged, match="its table hlo_texts is damaged"):
        unpack_checked(forged(packs["programs"], with_values("hlo_texts", **second)), "programs")


def _claim(table: str, at: int, size: int) -> Change:
    """Let the head say another size of a table."""
    return lambda parts: parts.sizes(table).__setitem__(at, size)


def _in_group(group: str, **values: object) -> Change:
    return lambda parts: parts.head["groups"][group].update(values)


@pytest.mark.parametrize(
    "change",
    [
        _claim("op_cells", 0, 1 << 29),
        _claim("op_cells", 0, -1),
        _claim("op_cells", 2, 1),
        _claim("op_parts", 1, 1 << 40),
        _claim("op_parts", 4, (1 << 30) + 1),
        lambda parts: parts.sizes("op_cells").pop(),
        lambda parts: parts.head["groups"]["core"]["tables"].update(more=parts.sizes("steps")),
        lambda parts: parts.head["groups"].pop("steps"),
        lambda parts: parts.head["groups"].update(more={"size_bytes": 0, "tables": {}}),
        lambda parts: parts.head.update(groups=dict(reversed(parts.head["groups"].items()))),
        _in_group("steps", size_bytes=0),
        lambda parts: [
            _in_group("core", size_bytes=sum(map(len, parts.frames.values())) + 1)(parts),
            _in_group("steps", size_bytes=-1)(parts),
        ],
        lambda parts: parts.head["origin"].update(duration_us=float("nan")),
        lambda parts: parts.head.update(host=None),
        lambda parts: parts.head.pop("remarks"),
    ],
)
def test_a_head_that_cannot_be_is_damaged_before_anything_is_expanded(change: Change, packs, monkeypatch) -> None:
    data = forged(packs["core"], change)
    monkeypatch.setattr(pa, "decompress", lambda *_, **__: pytest.fail("was expanded"))
    with pytest.raises(Damaged):
        unpack(data)


@pytest.mark.parametrize(
    "change", [lambda parts: parts.head["groups"]["steps"]["tables"].pop("op_cells"), _in_group("core", tables={})]
)
def test_a_head_that_leaves_out_tables_is_damaged_once_their_group_is_expanded(change: Change, packs) -> None:
    with pytest.raises(Damaged, match=r"its group \w+ is damaged"):
        unpack_checked(forged(packs["core"], change))


@pytest.mark.parametrize("size", [0, 10, 10_000_000])
def test_a_group_that_expands_to_another_size_than_it_says_is_damaged(size: int, packs) -> None:
    bomb = pa.compress(bytes(size), codec="zstd", asbytes=True)
    data = forged(packs["core"], lambda parts: parts.put_frame("steps", bomb))
    with pytest.raises(Damaged, match="group steps is damaged"):
        unpack(data).table("op_cells")
    with pytest.raises(Damaged, match="is damaged"):
        unpack_checked(data)


def test_no_more_is_expanded_than_the_head_says(packs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame of some kB that would become 64 MB."""
    bomb = pa.compress(pa.allocate_buffer(64 * MB), codec="zstd", asbytes=True)
    for group in ("core", "steps"):
        parts = Forged.of(packs["core"])
        said = {
            name: sum(expanded_bytes(tuple(sizes)) for sizes in one["tables"].values())
            for name, one in parts.head["groups"].items()
        }
        parts.put_frame(group, bomb)
        asked: list[int] = []
        real = pa.decompress

        def decompress(frame: object, size: int, codec: str, asked: list[int] = asked, real: Any = real) -> pa.Buffer:
            asked.append(size)
            return real(frame, size, codec=codec)

        before = pa.total_allocated_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(pa, "decompress", decompress)
            with pytest.raises(Damaged):
                unpack_checked(parts.bytes())
        assert set(asked) <= set(said.values())
        assert pa.total_allocated_bytes() - before < 2 * sum(said.values())


def long_label(times: int) -> Change:
    """Give as many rows as that the same op type of 1 MB: a few kB when it is compressed."""

    def change(parts: Forged) -> None:
        table = parts.table("op_parts")
        rows = {name: [column[0].as_py()] * times for name, column in zip(table.column_names, table, strict=True)}
        rows["op_type"] = texts(np.zeros(times, np.int32), ["x" * MB])
        parts.put("op_parts", host_table("op_parts", rows))

    return change


def test_a_long_text_of_many_rows_counts_as_often_as_it_occurs(packs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFCOMPARE_PACK_MB", "40")
    data = forged(packs["core"], long_label(30))
    assert len(data) < MB
    assert len(unpack_checked(data).tables["op_parts"]) == 30
    data = forged(packs["core"], long_label(50))
    hidden = forged(data, _claim("op_parts", 1, 1_000))
    with monkeypatch.context() as patch:
        patch.setattr(pa, "decompress", lambda *_, **__: pytest.fail("was expanded"))
        with pytest.raises(Damaged, match="raise TFCOMPARE_PACK_MB"):
            unpack(data)
    with pytest.raises(Damaged, match=r"op_parts is damaged .*its texts are of another size"):
        unpack_checked(hidden)


def test_a_long_text_of_many_rows_is_not_packed(host: HostTables, packs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFCOMPARE_PACK_MB", "2")
    parts = Forged.of(packs["core"])
    long_label(5)(parts)
    with pytest.raises(TfcompareError, match=r"take 6.* MB, and a pack at most 2.* MB; raise TFCOMPARE_PACK_MB"):
        pack(dataclasses.replace(host, tables=dict(host.tables) | {"op_parts": parts.table("op_parts")}))
    spans = host_table(
        "timeline_spans",
        dict.fromkeys(HOST_TABLES["timeline_spans"].columns, np.zeros(9))
        | {"name": texts(np.zeros(9, np.int32), ["x" * MB]), "op_type": "", "op_name": ""},
    )
    assert host.late is not None
    data = pack(dataclasses.replace(host, tables={**host.late["timeline"], "timeline_spans": spans}))
    assert len(unpack_checked(data, "timeline").tables["timeline_spans"]) == 9  # they stay codes
