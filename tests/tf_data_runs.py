"""Runs that do nothing but take elements from tf.data, written by hand: the second with one change to the pipeline."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tests.frames.tf_data_calls import call, consume, produce
from tests.xspace_builder import U64, Event, line, plane, space
from tfcompare import schema

STEP_US = 10_000
STEPS = 4
FIRST_ID = 1 << 63
"""Ids of real iterators are hashes, and may lie beyond the signed numbers."""


def plain(step: int, slow_us: float = 4000, read_us: float = 90) -> tuple[list[Event], list[Event]]:
    """A step's calls of Root ← BatchV2 ← Map ← TFRecord, on one thread; Map takes what reading leaves."""
    at, ids = step * STEP_US, [U64(FIRST_ID + i) for i in range(4)]
    top = "Root::BatchV2"
    calls = [
        call("Root", at, slow_us + 300, ids[0]),
        call(top, at + 10, slow_us + 250, ids[1], ids[0]),
        call(f"{top}::Map", at + 20, slow_us + 200, ids[2], ids[1]),
        call(f"{top}::Map::TFRecord", at + 30, read_us, ids[3], ids[2]),
    ]
    return calls, []


def prefetched(step: int, slow_us: float = 4000) -> tuple[list[Event], list[Event]]:
    """The same below a Prefetch, which makes the element on a thread of its own before it is asked for."""
    at, ids = step * STEP_US, [U64(FIRST_ID + 100 + i) for i in range(5)]
    asking = [
        call("Root", at + 4000, 500, ids[0]),
        call("Root::Prefetch", at + 4010, 450, ids[1], ids[0], buffer_limit=2),
        consume("Prefetch", at + 4400, step),
    ]
    top = "Root::Prefetch::BatchV2"
    making = [
        produce("Prefetch", at + 100, slow_us + 290, step),
        call(top, at + 110, slow_us + 250, ids[2], ids[1], element_id=step),
        call(f"{top}::Map", at + 120, slow_us + 200, ids[3], ids[2]),
        call(f"{top}::Map::TFRecord", at + 130, 90, ids[4], ids[3]),
    ]
    return asking, making


def zipped(step: int, slow: int) -> tuple[list[Event], list[Event]]:
    """Root ← Zip of two maps, of which the one in branch `slow` takes most of the time."""
    at, ids = step * STEP_US, [U64(FIRST_ID + 200 + i) for i in range(6)]
    took = [3000 if branch == slow else 200 for branch in (0, 1)]
    calls = [call("Root", at, 3500, ids[0]), call("Root::Zip", at + 10, 3450, ids[1], ids[0])]
    start = at + 20.0
    for branch, us in enumerate(took):
        name = f"Root::Zip[{branch}]::Map"
        calls += [call(name, start, us, ids[2 + 2 * branch], ids[1])]
        calls += [call(f"{name}::Range", start + 5, 20, ids[3 + 2 * branch], ids[2 + 2 * branch])]
        start += us + 10
    return calls, []


def write(logdir: Path, steps: list[tuple[list[Event], list[Event]]], host: str = "localhost") -> Path:
    """A run in `logdir` with the calls of these steps on two threads."""
    threads = [[event for step in steps for event in step[thread]] for thread in (0, 1)]
    lines = [line(f"thread {i}", *events, id=i + 1) for i, events in enumerate(threads) if events]
    file = logdir / "plugins" / "profile" / "2026_01_02_03_04_05" / f"{host}.xplane.pb"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(space(plane("/host:CPU", *lines)))
    return logdir


def execution(text: str) -> pd.DataFrame:
    """Rows of `tf_data` of one execution, from indented lines of `type self_time_us` and flags `critical`, `blamed`."""
    rows = []
    above: list[tuple[int, str, str]] = []
    for number, text_line in enumerate(text.strip("\n").splitlines()):
        indent = len(text_line) - len(text_line.lstrip())
        above = [entry for entry in above if entry[0] < indent]
        iterator, self_time, *flags = text_line.split()
        parent_id, parent_name = (above[-1][1], above[-1][2]) if above else ("", "Iterator")
        siblings = sum(row["parent_id"] == parent_id for row in rows)
        own_name = f"{parent_name}{f'[{siblings}]' if parent_id else ''}::{iterator}"
        rows.append(
            {"iterator_id": str(number), "parent_id": parent_id, "iterator": iterator, "long_name": own_name}
            | {"self_time_us": float(self_time), "total_duration_us": 2 * float(self_time), "calls": 1}
            | {"on_critical_path": bool(flags), "is_bottleneck": "blamed" in flags, "start_us": float(number)}
        )
        above.append((indent, str(number), own_name))
    frame = pd.DataFrame(rows).assign(host="a", pipeline="Host:0", execution=0)
    for column in schema.TF_DATA.columns:
        if column.name not in frame:
            frame[column.name] = pd.NA if column.dtype == "Int64" else float("nan") if column.dtype == "float64" else ""
    return schema.TF_DATA.conform(frame)
