"""Frames in a pack are those that were put there, and a pack that is not whole is refused."""

from __future__ import annotations

import dataclasses
import io
import random
import zipfile

import numpy as np
import pandas as pd
import pytest

from tests.profiles import ALL_RUNS, loaded_run
from tfcompare import schema
from tfcompare.frames import HostFrames
from tfcompare.store.packing import Damaged, pack, unpack


def assert_same(ours: object, theirs: object) -> None:
    if isinstance(ours, pd.DataFrame):
        pd.testing.assert_frame_equal(ours, theirs, check_exact=True)
    elif isinstance(ours, np.ndarray):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    elif dataclasses.is_dataclass(ours):
        for part in dataclasses.fields(ours):
            assert_same(getattr(ours, part.name), getattr(theirs, part.name))
    else:
        assert (type(ours), ours) == (type(theirs), theirs)


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


def test_the_same_frames_give_the_same_bytes() -> None:
    (frames,) = hosts("filters_16_8_simulated")
    assert pack(frames) == pack(frames)


def test_any_tool_that_opens_zips_shows_the_tables() -> None:
    (frames,) = hosts("filters_16_8")
    with zipfile.ZipFile(io.BytesIO(pack(frames))) as members:
        assert members.testzip() is None
        steps = pd.read_parquet(io.BytesIO(members.read("steps.parquet")))
    assert steps["step"].tolist() == frames.steps["step"].tolist()


def test_a_table_is_read_when_it_is_asked_for() -> None:
    (frames,) = hosts("filters_16_8")
    unpacked = unpack(pack(frames))
    assert "parts" not in vars(unpacked)
    assert len(unpacked.parts.cells) == len(frames.parts.cells)
    assert unpacked.parts is unpacked.parts
    assert "memory" not in vars(unpacked)


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
