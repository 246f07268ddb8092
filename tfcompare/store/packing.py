"""The frames of a host file as one file of bytes, a *pack*: a zip of Parquet tables behind a digest of it all.

    TFCPACK1 | 16 bytes of digest | zip: manifest.json, steps.parquet, op_parts.parquet, …

Any tool that opens zips shows the tables. A pack whose bytes are not those that were written is refused before any
of them is believed. Tables are read from a pack when they are first asked for.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tfcompare.frames import HostFrames
from tfcompare.frames.memory_events import MemoryEvents, Texts
from tfcompare.frames.ops.kernel_stats import Kernels
from tfcompare.frames.ops.op_parts import OpParts, frame_bytes
from tfcompare.frames.origin import Origin
from tfcompare.frames.tf_data.tf_data import TfData

if TYPE_CHECKING:
    import pandas as pd

_MAGIC = b"TFCPACK1"
_DIGEST_BYTES = 16
_HEAD_BYTES = len(_MAGIC) + _DIGEST_BYTES
_MANIFEST = "manifest.json"
_OLDEST = (1980, 1, 1, 0, 0, 0)
_TEXTS = ("op_name", "region_type", "data_type", "shape")
_OF_EVENTS = (
    "memory", "row", "time_ps", "is_allocation", "following", "stack_bytes", "heap_bytes", "free_bytes",
    "lifetime_peak_bytes", "fragmentation", "requested_bytes", "allocation_bytes", "step", "in_step",
)  # fmt: skip
_NOT_HELD = ("op_cells", "op_wall")
"""Read anew each time: the most of a pack by far, and little work beside what is made of it."""


class Damaged(Exception):
    """A pack's bytes are not those that were written."""


def pack(frames: HostFrames) -> bytes:
    """The frames as bytes: the same frames give the same bytes."""
    tables = _frames_of(frames)
    manifest = {
        "host": frames.host,
        "digest": frames.digest,
        "origin": asdict(frames.origin),
        "step_source": frames.step_source,
        "memory_bytes": sum(frame_bytes(frame) for name, frame in tables.items() if name not in _NOT_HELD),
        "remarks": frames.remarks,
        "memory_ids": frames.memory.memory_ids,
        "memory_first": frames.memory.first.tolist(),
        "likely_markers": frames.likely_markers,
        "labels": {name: getattr(frames.memory, name).labels for name in _TEXTS},
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as members:
        members.writestr(zipfile.ZipInfo(_MANIFEST, _OLDEST), json.dumps(manifest))
        for name, frame in tables.items():
            members.writestr(zipfile.ZipInfo(f"{name}.parquet", _OLDEST), _parquet(frame))
    body = out.getbuffer()
    return b"".join((_MAGIC, _digest(body), body))


def unpack(data: bytes) -> HostFrames:
    """The frames that `pack` was given; their tables are read from `data` as they are asked for.

    Raises `Damaged` for bytes that are not as they were written.
    """
    body = memoryview(data)[_HEAD_BYTES:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : _HEAD_BYTES] != _digest(body):
        raise Damaged
    return _Packed(data)


class _Packed(HostFrames):
    """Frames within a pack."""

    def __init__(self, data: bytes) -> None:
        members = zipfile.ZipFile(io.BytesIO(memoryview(data)[_HEAD_BYTES:]))
        manifest = json.loads(members.read(_MANIFEST))
        origin = manifest["origin"]
        self.__dict__.update(
            host=manifest["host"],
            digest=manifest["digest"],
            origin=Origin(**origin | {"remarks": tuple(origin["remarks"])}),
            step_source=manifest["step_source"],
            likely_markers=tuple(manifest["likely_markers"]),
            _manifest=manifest,
            _members=members,
            _packed_bytes=len(data),
        )

    def _table(self, name: str) -> pa.Table:
        members: zipfile.ZipFile = self.__dict__["_members"]
        source = pa.BufferReader(members.read(f"{name}.parquet"))
        return pq.ParquetFile(source).read(use_threads=False)

    def _frame(self, name: str) -> pd.DataFrame:
        frame: pd.DataFrame = self._table(name).to_pandas(use_threads=False, split_blocks=True)  # no copy
        return frame

    @property
    def memory_bytes(self) -> int:
        """What the frames that are held take in memory once all of them were asked for, and the pack."""
        manifest: dict[str, Any] = self.__dict__["_manifest"]
        size: int = manifest["memory_bytes"] + self.__dict__["_packed_bytes"]
        return size

    @property
    def remarks(self) -> list[str]:
        """What to know before trusting the numbers: told without reading any table."""
        manifest: dict[str, Any] = self.__dict__["_manifest"]
        return list(manifest["remarks"])

    @cached_property
    def steps(self) -> pd.DataFrame:
        return self._frame("steps")

    @cached_property
    def idle_gaps(self) -> pd.DataFrame:
        return self._frame("idle_gaps")

    @cached_property
    def parts(self) -> OpParts:
        return _PackedParts(self._frame)

    @cached_property
    def idle(self) -> pd.DataFrame:
        return self._frame("idle")

    @cached_property
    def kernels(self) -> Kernels:
        return Kernels(self._frame("kernel_stats"), self._frame("kernel_cells"))

    @cached_property
    def copies(self) -> pd.DataFrame:
        return self._frame("copies")

    @cached_property
    def memory(self) -> MemoryEvents:
        manifest: dict[str, Any] = self.__dict__["_manifest"]
        table = self._table("memory_events")
        given: dict[str, Any] = {name: table[name].to_numpy() for name in _OF_EVENTS}
        given |= {name: Texts(table[name].to_numpy(), tuple(manifest["labels"][name])) for name in _TEXTS}
        first = np.array(manifest["memory_first"], np.int64)
        return MemoryEvents(memory_ids=tuple(manifest["memory_ids"]), first=first, **given)

    @cached_property
    def memory_summary(self) -> pd.DataFrame:
        return self._frame("memory_summary")

    @cached_property
    def memory_peak(self) -> pd.DataFrame:
        return self._frame("memory_peak")

    @cached_property
    def tf_data(self) -> TfData:
        return TfData(*(self._frame(f"tf_data_{name}") for name in ("pipelines", "executions", "calls")))


class _PackedParts(OpParts):
    """Op parts within a pack: most tables need them over all steps only, and that is far less to read."""

    def __init__(self, frame: Callable[[str], pd.DataFrame]) -> None:
        self.__dict__.update(_frame=frame)

    @cached_property
    def parts(self) -> pd.DataFrame:
        return self.__dict__["_frame"]("op_parts")  # type: ignore[no-any-return]

    @property
    def cells(self) -> pd.DataFrame:
        return self.__dict__["_frame"]("op_cells")  # type: ignore[no-any-return]

    @property
    def wall(self) -> pd.DataFrame:
        return self.__dict__["_frame"]("op_wall")  # type: ignore[no-any-return]

    @cached_property
    def over_all_steps(self) -> OpParts:
        frame = self.__dict__["_frame"]
        return OpParts(self.parts, frame("op_totals"), frame("op_wall_totals"))


def _frames_of(frames: HostFrames) -> dict[str, pd.DataFrame]:
    """The tables of a pack."""
    return {
        "steps": frames.steps,
        "idle_gaps": frames.idle_gaps,
        "op_parts": frames.parts.parts,
        "op_cells": frames.parts.cells,
        "op_wall": frames.parts.wall,
        "op_totals": frames.parts.over_all_steps.cells,
        "op_wall_totals": frames.parts.over_all_steps.wall,
        "idle": frames.idle,
        "kernel_stats": frames.kernels.stats,
        "kernel_cells": frames.kernels.cells,
        "copies": frames.copies,
        "memory_events": _of_memory(frames.memory),
        "memory_summary": frames.memory_summary,
        "memory_peak": frames.memory_peak,
        "tf_data_pipelines": frames.tf_data.pipelines,
        "tf_data_executions": frames.tf_data.executions,
        "tf_data_calls": frames.tf_data.calls,
    }


def _of_memory(memory: MemoryEvents) -> pd.DataFrame:
    import pandas as pd

    codes = {name: getattr(memory, name).code for name in _TEXTS}
    return pd.DataFrame({name: getattr(memory, name) for name in _OF_EVENTS} | codes)


def _parquet(frame: pd.DataFrame) -> memoryview:
    out = io.BytesIO()
    table = pa.Table.from_pandas(frame, preserve_index=False, nthreads=1)
    pq.write_table(table, out, compression="lz4", write_statistics=False)  # quick to read: that is what it is for
    return out.getbuffer()


def _digest(body: memoryview) -> bytes:
    return blake2b(body, digest_size=_DIGEST_BYTES).digest()
