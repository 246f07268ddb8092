"""Frames in a pack are those that were put there, and a pack that is not whole is refused."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pandas as pd
import pytest

from tests.fuzz import inputs
from tests.profiles import ALL_RUNS, loaded_run
from tfcompare import schema
from tfcompare.errors import TfcompareError
from tfcompare.frames import HostFrames, build
from tfcompare.frames.memory_events import Texts
from tfcompare.store.packing import PackedTables, pack, unpack, unpack_checked
from tfcompare.store.typed import Damaged
from tfcompare.xspace import parse


def assert_same(ours: HostFrames, theirs: HostFrames) -> None:
    for name in (f.name for f in dataclasses.fields(HostFrames) if f.name not in ("tables", "memory_bytes")):
        assert (type(getattr(ours, name)), getattr(ours, name)) == (type(getattr(theirs, name)), getattr(theirs, name))
    assert list(ours.tables) == list(theirs.tables)
    assert len(ours.tables) == len(theirs.tables)
    for name, frame in ours.tables.items():
        pd.testing.assert_frame_equal(frame, theirs.tables[name], check_exact=True)
    for part in dataclasses.fields(ours.memory):
        np.testing.assert_equal(_plain(getattr(ours.memory, part.name)), _plain(getattr(theirs.memory, part.name)))


def _plain(value: object) -> object:
    return dataclasses.asdict(value) if isinstance(value, Texts) else value


def hosts(name: str) -> tuple[HostFrames, ...]:
    return loaded_run(name).hosts


@pytest.mark.parametrize("name", ALL_RUNS)
def test_frames_come_out_as_they_went_in(name: str) -> None:
    for frames in hosts(name):
        assert_same(frames, unpack(pack(frames)))


@pytest.mark.parametrize("name", ["filters_16_8", "filters_16_8_simulated"])
def test_every_table_of_a_run_is_the_same_from_packs(name: str) -> None:
    run = loaded_run(name)
    again = dataclasses.replace(run, hosts=tuple(unpack(pack(h)) for h in run.hosts))
    for table in schema.TABLES:
        pd.testing.assert_frame_equal(run.table(table), again.table(table), check_exact=True)
    assert again.info == run.info


@pytest.mark.parametrize("first", [200, 225])
def test_what_is_read_of_hostile_profiles_passes_the_checks_of_packs(first: int) -> None:
    built = 0
    for number in range(first, first + 25):
        try:
            frames = build(parse(inputs.made(11, number).data), "vm", "digest")
        except TfcompareError:
            continue
        built += 1
        again = unpack_checked(pack(frames))
        for name, frame in frames.tables.items():
            pd.testing.assert_frame_equal(frame, again.tables[name], check_exact=True)
    assert built > 10


@pytest.mark.parametrize("name", ALL_RUNS)
def test_arrays_are_aligned_as_compiled_code_expects(name: str) -> None:
    for host in hosts(name):
        for table, frame in unpack(pack(host)).tables.items():
            for column in frame.select_dtypes("number"):
                values = frame[column].to_numpy()
                assert values.flags.aligned, f"{table}.{column}"


def test_the_same_frames_give_the_same_bytes() -> None:
    (frames,) = hosts("filters_16_8_simulated")
    assert pack(frames) == pack(frames)


def test_a_table_is_read_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    (frames,) = hosts("filters_16_8")
    unpacked, names = unpack(pack(frames)), []
    read = PackedTables.read
    monkeypatch.setattr(PackedTables, "read", lambda tables, name: (names.append(name), read(tables, name))[1])
    assert names == []
    assert len(unpacked.parts.cells) == len(frames.parts.cells)
    assert names == ["op_parts", "op_cells", "steps", "op_wall"]
    assert unpacked.tables["op_parts"] is unpacked.totals.parts
    assert names[4:] == ["op_totals", "op_wall_totals"]


def test_a_pack_with_any_other_byte_or_length_is_refused() -> None:
    (frames,) = hosts("filters_16_8")
    data = pack(frames)
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
