"""A pack that anybody may have written: what tfcompare does not write is damage, found before it costs anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tests.profiles import loaded_run
from tests.store.forged_packs import put_together, taken_apart
from tfcompare.errors import TfcompareError
from tfcompare.store.columns import Shape, decode, encode
from tfcompare.store.pack_checks import DTYPES
from tfcompare.store.packing import pack, unpack, unpack_checked
from tfcompare.store.typed import Damaged

RUN = "filters_16_8"


def repacked(data: bytes, change: Callable[[dict[str, Any], dict[str, bytes]], None]) -> bytes:
    """A pack whose head and tables were changed, with the digest to go with it."""
    head, blocks = taken_apart(data)
    change(head, blocks)
    return put_together(data, head, blocks)


def with_values(table: str, **values: object) -> Callable[[dict[str, Any], dict[str, bytes]], None]:
    """Replace the first value in some columns of a table."""

    def change(head: dict[str, Any], blocks: dict[str, bytes]) -> None:
        shape = head["tables"][table]["shape"]
        frame = decode(Shape(shape["rows"], tuple(map(tuple, shape["texts"]))), blocks[table], DTYPES[table]).copy()
        for name, value in values.items():
            frame.loc[0, name] = value
        new, blocks[table] = encode(frame, DTYPES[table])
        head["tables"][table] = {"shape": {"rows": new.rows, "texts": new.texts}, "size_bytes": len(blocks[table])}

    return change


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("steps", {"duration_us": float("nan")}),
        ("steps", {"duration_us": -1.0}),
        ("steps", {"input_us": float("inf")}),
        ("steps", {"host": "another"}),
        ("steps", {"step": 2}),
        ("steps", {"host_start_us": float("nan")}),
        ("op_parts", {"host_or_device": "neither"}),
        ("op_cells", {"part": 10**6}),
        ("op_cells", {"part": -1}),
        ("op_cells", {"step": 12345}),
        ("op_cells", {"self_time_ps": -1}),
        ("op_totals", {"total_time_ps": (1 << 63) - 1}),
        ("op_wall", {"step_part": 100}),
        ("op_wall", {"stage": 2**31 - 1}),
        ("op_wall", {"wall_time_ps": -1.0}),
        ("memory_events", {"memory": 5}),
        ("memory_events", {"following": 10**6}),
        ("memory_events", {"op_name": 10**6}),
        ("memory_events", {"shape": -2}),
        ("device_steps", {"step": 999}),
        ("device_steps", {"other_us": -1.0}),
        ("idle_gaps", {"step": 999}),
    ],
)
def test_a_pack_of_values_that_cannot_be_is_damaged(table: str, values: dict[str, object]) -> None:
    frames = next(h for h in loaded_run(RUN).hosts)
    data = pack(frames)
    forged = repacked(data, with_values(table, **values))
    assert len(unpack_checked(repacked(data, with_values("steps"))).tables["steps"]) == len(frames.tables["steps"])
    with pytest.raises(Damaged, match=f"its table {table} is damaged|has steps that do not exist"):
        unpack_checked(forged)


def _claim(**shape: object) -> Callable[[dict[str, Any], dict[str, bytes]], None]:
    return lambda head, _: head["tables"]["op_cells"]["shape"].update(shape)


@pytest.mark.parametrize(
    "change",
    [
        _claim(rows=1 << 29),
        _claim(rows=-1),
        _claim(rows=1 << 62),
        _claim(texts=[[1, 1]]),
        lambda head, _: head["tables"].pop("op_cells"),
        lambda head, _: head["tables"].update(more=head["tables"]["steps"]),
        lambda head, _: head["tables"]["steps"].update(size_bytes=0),
        lambda head, _: head["memory_labels"].pop("shape"),
        lambda head, _: head["memory_labels"].update(shape=["no end"]),
        lambda head, _: head["origin"].update(duration_us=float("nan")),
        lambda head, _: head.update(host=None),
    ],
)
def test_a_head_that_cannot_be_is_damaged_before_anything_is_expanded(change, monkeypatch: pytest.MonkeyPatch) -> None:
    data = repacked(pack(loaded_run(RUN).hosts[0]), change)
    monkeypatch.setattr(pa, "decompress", lambda *_, **__: pytest.fail("was expanded"))
    with pytest.raises(Damaged):
        unpack(data)


@pytest.mark.parametrize("size", [0, 10, 10_000_000])
def test_a_table_that_expands_to_another_size_than_it_says_is_damaged(size: int) -> None:
    def change(head: dict[str, Any], blocks: dict[str, bytes]) -> None:
        blocks["op_cells"] = pa.compress(bytes(size), codec="zstd", asbytes=True)
        head["tables"]["op_cells"]["size_bytes"] = len(blocks["op_cells"])

    with pytest.raises(Damaged, match="op_cells is damaged"):
        unpack_checked(repacked(pack(loaded_run(RUN).hosts[0]), change))


def test_tables_above_the_limit_are_neither_packed_nor_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = loaded_run("tf_gpu").hosts[0]
    data = pack(frames)
    monkeypatch.setenv("TFCOMPARE_PACK_MB", "1")
    with pytest.raises(TfcompareError, match=r"take .* MB, and a pack at most 1\.05 MB; raise TFCOMPARE_PACK_MB"):
        pack(frames)
    with pytest.raises(Damaged, match="raise TFCOMPARE_PACK_MB"):
        unpack(data)
