"""Stores with a forged file: whatever it holds, its digests are right, as whoever writes to a store can make them."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

from tests.fuzz import chain
from tests.fuzz.edits import damaged_bytes
from tests.store.forged_packs import Forged, aligned
from tests.store.test_hostile_stores import contents
from tests.xspace import fuzz_inputs
from tfcompare import settings
from tfcompare.errors import TfcompareError
from tfcompare.fleet.ingesting import ingest
from tfcompare.fleet.pools import Here
from tfcompare.frames.arrow import TEXT, table_of
from tfcompare.run import Run, load
from tfcompare.sources.logdir import find_runs
from tfcompare.store import cached_frames
from tfcompare.store.cached_frames import frame_cache
from tfcompare.store.file_names import INDEX, MARK, all_packs
from tfcompare.store.records import record_name
from tfcompare.store.run_store import Store
from tfcompare.store.stored_run import named, runs_in
from tfcompare.views.run_listing import listing
from tfcompare.views.timeline.lanes import lay_out
from tfcompare.views.timeline.run_timeline import timelines
from tfcompare.views.timeline.trace import chrome_trace, to_trace

KINDS = ("record", "index", "pack", "pack", "pack", "seen", "own pack", "mark")
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 31, -(2**31), 2**31, 2**53, 2**62, 2**63, -(2**63), 2**64, 10**30, 10**400),
    *(0.5, -0.0, 1e300, -1e300, 1e18, float("nan"), float("inf"), "", "\0", "\ud800", "é:É", "a" * 5000, "CPU"),
    *("../../precious/file", "packs/../../../precious/file", "s3://bucket/x", "file:///etc/x", "http://[", "a::b"),
    *("2024-01-01T00:00:00", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2024-01-01", "\\\\host\\x"),
    *([], [[]], [None], ["a", 1], {}, {"a": 1}, [0] * 10_000, ["x"] * 10_000),
)
_TEXTS = (
    *("", "\0", "a\nb", "é", "x" * 3000, "Host", "Device", "IDLE", "1,1,1", "-1", "[]", "[1]", "null", "{", "NaN"),
    *("[" * 9000, "../precious/file", "s3://bucket/x", "http://[", "a/b/c", "Iterator::A", "18446744073709551615"),
)
_DEEP = b"[" * 100_000 + b"]" * 100_000
_DIGEST_BYTES = 32


class Yard:
    """A store of small runs, this machine's cache of them, and a file outside that no forged name may touch."""

    def __init__(self, folder: Path, profiles: Sequence[bytes] = fuzz_inputs.built()) -> None:
        self.store, self.own, self.logs = folder / "store", folder / "own", folder / "logs"
        self.precious = folder / "precious" / "file"
        self.precious.parent.mkdir()
        self.precious.write_text("precious")
        for number, data in enumerate(profiles):
            path = self.logs / f"run{number}" / "vm.xplane.pb"
            path.parent.mkdir(parents=True)
            path.write_bytes(data)
        with self.entered():
            ingest([self.logs], str(self.store), Here)
            for run in find_runs(self.logs):
                with contextlib.suppress(TfcompareError):
                    _look_at_run(load(run), 0)
            cache = frame_cache()
            assert cache is not None
            cache.flush()
            self.run_of = self._runs_by_file()

    def _runs_by_file(self) -> dict[str, str]:
        """The run that each record and pack is of."""
        runs = [run.opened() for run in runs_in(Store(str(self.store)))[0]]
        records = {record_name(run.id): run.id for run in runs}
        stored = [(file.stored, run.id) for run in runs for file in run.files]
        return records | {name: run for pack, run in stored if pack is not None for name in all_packs(pack.name)}

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Use this cache, whose files are settled at once, and let no profile be read for the store."""
        environment = mock.patch.dict(os.environ, {"TFCOMPARE_STORE": str(self.own)})
        with environment, mock.patch.object(cached_frames, "_SETTLED_NS", -1), settings.override(settings.Settings()):
            yield

    def files(self, kind: str) -> list[Path]:
        """The files that are forged for this kind."""
        places = {"mark": self.store / MARK, "index": self.store / INDEX, "record": self.store / "runs"}
        places |= {"pack": self.store / "packs", "seen": self.own / "seen", "own pack": self.own / "packs"}
        place = places[kind]
        return [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())


def attempt(yard: Yard, seed: int, number: int, *, watch_memory: bool = True) -> chain.Outcome:
    """Forge the file of that number, look at the store in every way, and put everything back."""
    rng = random.Random(f"store/{seed}/{number}")
    kind = rng.choice(KINDS)
    path = rng.choice(yard.files(kind))
    before = path.read_bytes()
    data = forged(kind, before, rng)
    path.write_bytes(data)
    held, where = contents(yard.store), path.relative_to(yard.store.parent).as_posix()
    try:
        with yard.entered():
            look = partial(_look_at, yard, where, number)
            outcome = chain.observed(look, number, kind, len(data), watch_memory=watch_memory)
        assert contents(yard.store) == held, "reading changed the store"
        assert yard.precious.read_text() == "precious", "a file outside was changed"
    finally:
        path.write_bytes(before)
    return outcome


def _look_at(yard: Yard, name: str, number: int) -> None:
    """Everything that reads that file: all runs are listed, and its run (else any) is opened, with all its tables."""
    if name.startswith("own/"):
        runs = [load(run) for run in find_runs(yard.logs)]
        wanted = yard.run_of.get(name.removeprefix("own/"), runs[number % len(runs)].id)
        for run in runs:
            if run.id == wanted:
                _look_at_run(run, number)
        return
    found = named(runs_in(Store(str(yard.store)))[0])
    listing(found, {})
    wanted = yard.run_of.get(name.removeprefix("store/"), "")
    with mock.patch.dict(os.environ, {"TFCOMPARE_STORE": "off"}):
        for one in [run for run in found if run.id == wanted] or found[number % max(len(found), 1) :][:1]:
            _look_at_run(load(one), number)


def _look_at_run(run: Run, number: int) -> None:
    """Its tables, a comparison, and its timelines, drawn and as a trace."""
    chain.look_at(run, number)
    for host in run.host_names:
        lanes, spans = run.tables.timeline(host)
        assert len(lanes) or not len(spans)
    shown = timelines(run)
    for timeline in shown:
        lay_out(timeline.spans)
    sum(map(len, chrome_trace([to_trace(run, run.name, timeline) for timeline in shown])))


def forged(kind: str, data: bytes, rng: random.Random) -> bytes:
    """The content of a file of that kind, to replace one of that content."""
    if rng.random() < 0.05:
        return damaged_bytes(data, rng)
    forge: dict[str, Callable[[bytes, random.Random], bytes]] = {
        "record": _sealed,
        "index": lambda data, rng: gzip.compress(_sealed(gzip.decompress(data), rng), mtime=0),
        "pack": _pack,
        "own pack": _pack,
        "seen": _json,
        "mark": _json,
    }
    return forge[kind](data, rng)


def _sealed(data: bytes, rng: random.Random) -> bytes:
    """A record or index with other values, and the digest to go with them."""
    text = _DEEP if rng.random() < 0.02 else _json(data[_DIGEST_BYTES:], rng)
    return blake2b(text, digest_size=_DIGEST_BYTES // 2).hexdigest().encode() + text


def _json(data: bytes, rng: random.Random) -> bytes:
    return json.dumps(_mutated(json.loads(data), rng)).encode()


def _mutated(content: Any, rng: random.Random) -> Any:
    """The JSON with one to four values replaced, dropped, doubled or added."""
    content = deepcopy(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        nodes = [node for node in _nodes(content) if node]
        if not nodes:
            return deepcopy(rng.choice(_VALUES))
        node = rng.choice(nodes)
        key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        what = rng.random()
        if what < 0.1:
            del node[key]
        elif what < 0.2 and isinstance(node, list):
            node.append(deepcopy(node[key]))
        elif what < 0.2:
            node[f"{key}_"] = deepcopy(node[key])
        elif what < 0.4:
            node[key] = deepcopy(rng.choice([other[k] for other in nodes for k in _keys(other)]))
        else:
            node[key] = deepcopy(rng.choice(_VALUES))
    return content


def _nodes(content: Any) -> Iterator[Any]:
    if isinstance(content, dict | list):
        yield content
        for key in _keys(content):
            yield from _nodes(content[key])


def _keys(node: Any) -> list[Any]:
    return list(node) if isinstance(node, dict) else list(range(len(node)))


def _pack(data: bytes, rng: random.Random) -> bytes:
    """A pack with tables of other values or buffers, or with another head, and the digest to go with it."""
    parts = Forged.of(data)
    filled = [name for name in parts.buffers if parts.sizes(name)[0]]
    if rng.random() < 0.15 or not filled:
        parts.head = _mutated(parts.head, rng)
        return parts.bytes()
    if rng.random() < 0.2:  # that of another version
        for name in rng.sample(filled, min(len(filled), rng.choice((1, 1, 2, 3)))):
            columns = parts.table(name).column_names
            some = rng.sample(columns, rng.choice((1, 1, min(3, len(columns) - 1))))
            for one in rng.choice(([name], [f"{name}.{column}" for column in some])):
                parts.lose(one)
        return parts.bytes()
    for name in rng.sample(filled, min(len(filled), rng.choice((1, 1, 2, 3)))):
        if rng.random() < 0.3:
            parts.sizes(name)[:], buffers = _other_buffer(parts.sizes(name), parts.buffers[name], rng)
            parts.put_buffers(name, buffers)
        else:
            parts.put(name, _other_values(parts.table(name), rng))
    return parts.bytes()


def _other_buffer(sizes: list[int], buffers: list[bytes], rng: random.Random) -> tuple[list[int], list[bytes]]:
    """(the sizes, the buffers) of a table with one buffer changed, be it of offsets, positions of labels, labels, bits
    or numbers, with or without the size that goes with it."""
    sizes, buffers = [*sizes], [*buffers]
    at = rng.choice([place for place, buffer in enumerate(buffers) if buffer])
    if rng.random() < 0.2:  # of another length
        new = damaged_bytes(buffers[at], rng)
        buffers[at] = new.ljust(aligned(len(new)), b"\0")
        if rng.random() < 0.7:
            sizes[2 + at] = len(new)
        return sizes, buffers
    width = rng.choice((1, 4, 4, 8))
    values = np.frombuffer(bytearray(buffers[at]), f"<i{width}").copy()
    most = np.iinfo(values.dtype)
    for _ in range(rng.choice((1, 1, 2, len(values)))):
        place = rng.randrange(len(values))
        options = (0, 1, -1, 2, 3, 127, int(most.max), int(most.min), int(values[place - 1]), -int(values[place]))
        values[place] = np.array(rng.choice(options)).astype(values.dtype)
    buffers[at] = values.tobytes()
    if rng.random() < 0.1:
        sizes[rng.randrange(2)] += rng.choice((1, -1, 1 << 20))
    return sizes, buffers


def _other_values(table: pa.Table, rng: random.Random) -> pa.Table:
    """The table with other values in one to three of its columns, or with other rows."""
    if rng.random() < 0.2 and len(table):
        rows = [rng.randrange(len(table)) for _ in range(rng.choice((0, 1, len(table), 2 * len(table))))]
        return table.take(pa.array(rows, pa.int64())).combine_chunks()
    columns: dict[str, Any] = dict(zip(table.column_names, (column.combine_chunks() for column in table), strict=True))
    for _ in range(rng.choice((1, 1, 2, 3))):
        field = rng.choice(list(table.schema))
        where = [rng.random() < rng.choice((0.1, 1.0)) for _ in range(len(table))]
        values = columns[field.name].to_pylist()
        if field.type == TEXT:
            other = [rng.choice(_TEXTS) if hit else text for hit, text in zip(where, values, strict=True)]
            columns[field.name] = pa.array(other, pa.string()).dictionary_encode()
            continue
        if field.type == pa.bool_():
            columns[field.name] = pa.array([flag ^ hit for hit, flag in zip(where, values, strict=True)], pa.bool_())
            continue
        if pa.types.is_floating(field.type):
            value = rng.choice((0.0, -1.0, 1e-300, 1e12, 1e17, 1e300, float("inf"), float("nan")))
        else:
            most = np.iinfo(field.type.to_pandas_dtype())
            value = rng.choice((0, 1, -1, -2, 7, len(table), int(most.max), int(most.min), int(most.max) // 2))
            value = min(value, int(most.max))
        if field.nullable and rng.random() < 0.3:
            value = None
        columns[field.name] = pa.array([value if hit else v for hit, v in zip(where, values, strict=True)], field.type)
    return table_of(table.schema, columns)
