"""Runs made from tiny XSpaces, their tables as text, and which recorded runs are held against other readers: one of
each dialect in every test run, all in a thorough one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np
import pandas as pd
import pyarrow as pa

from tests import xprof_oracle
from tests.laws import mostly_thorough
from tests.xspace_builder import Event, Plane, Ref, Value, event, line, plane, space
from tfcompare.frames.ops.kernel_stats import kernels_of
from tfcompare.frames.ops.op_segments import NO_SEGMENTS
from tfcompare.frames.steps import groups as grouping
from tfcompare.frames.steps.step_parts import explain, find_activities
from tfcompare.frames.steps.step_sources import find_steps
from tfcompare.frames.steps.steps import Steps
from tfcompare.run import Run, load
from tfcompare.schema.arrays import Int64
from tfcompare.tables.frames import frame_of
from tfcompare.xspace import XSpace, parse

DIALECTS = ("filters_16_8", "h100_16_8", "jax_conv_legacy", "jax_tpu", "tensorflow_filters_16_8")
"""A CPU, GPUs of two vendors, TPU cores, and a CPU that runs compiled programs."""


def thorough_but(names: Iterable[str], *always: str) -> list[Any]:
    """These runs as parameters: `make test` has the dialects and `always`."""
    return mostly_thorough(names, *DIALECTS, *always)


def run_of(*hosts: bytes, step_marker: str | None = None) -> Run:
    """The run of these host files, named a, b, c, …; they are there as long as the run, which reads some tables
    later."""
    logdir = Path(tempfile.mkdtemp())
    folder = logdir / "plugins" / "profile" / logdir.name
    folder.mkdir(parents=True)
    for name, data in zip("abcdefgh", hosts, strict=False):
        (folder / f"{name}.xplane.pb").write_bytes(data)
    run = load(folder, step_marker=step_marker)
    finalize(run.hosts[0], shutil.rmtree, logdir)
    return run


def run_with(*planes: Plane | bytes, step_marker: str | None = None) -> Run:
    """The run of one host file with these planes."""
    return run_of(space(*planes), step_marker=step_marker)


def threads(*each: list[Event]) -> Plane:
    """The host's plane, with a thread for each of these lists of events."""
    return plane("/host:CPU", *(line(f"thread {i}", *events, id=i) for i, events in enumerate(each)))


def host(*events: Event) -> Plane:
    """The host's plane, with one thread."""
    return threads(list(events))


def kernel_stats(profile: XSpace, host: str) -> pd.DataFrame:
    """The kernels of one host, whatever its steps."""
    none = np.zeros(0, np.int64)
    outside = np.full(len(profile.events), -1)
    stats = kernels_of(profile, Steps("none", none, none, none, outside, outside >= 0)).stats
    return host_frame("kernel_stats", stats, host)


def host_frame(name: str, table: pa.Table, host: str) -> pd.DataFrame:
    """The table of that name of one host as it is in a run, which says the host in front."""
    frame = frame_of(name, table)
    frame.insert(0, "host", pd.Series(host, index=frame.index, dtype="str"))
    return frame


def lines(text: str) -> list[str]:
    """Lines of expected text, without regard to how wide its columns are."""
    return [" ".join(line.split()) for line in text.strip().splitlines()]


def rows(frame: pd.DataFrame, *columns: str) -> list[str]:
    """A line for each row, in order."""
    return [" ".join(_cell(v) for v in row) for row in frame[list(columns)].itertuples(index=False, name=None)]


def ops(run: Run, **choice: str) -> list[str]:
    """`op_stats`: side, type, name, occurrences, total µs, self µs, and whether it ran eagerly."""
    columns = ("host_or_device", "op_type", "op_name", "occurrences", "total_time_us", "self_time_us")
    frame = run.table("op_stats", **choice)
    flags = frame["is_eager"].map({True: " eager", False: ""})
    return [row + flag for row, flag in zip(rows(frame, *columns), flags, strict=True)]


def host_ops(run: Run) -> list[str]:
    """`ops` of the host, the side left out."""
    return [row.removeprefix("Host ") for row in ops(run) if row.startswith("Host ")]


def device_ops(run: Run, **choice: str) -> list[str]:
    """`ops` of the devices, the side left out."""
    return [row.removeprefix("Device ") for row in ops(run, **choice) if row.startswith("Device ")]


def eager(run: Run) -> dict[str, bool]:
    """Whether each op ran eagerly, IDLE left out."""
    frame = run.table("op_stats").query("op_type != 'IDLE'")
    return dict(zip(frame["op_name"], frame["is_eager"].tolist(), strict=True))


def op_steps(run: Run) -> list[str]:
    """`op_steps`: name, step, occurrences, self µs."""
    return rows(run.table("op_steps"), "op_name", "step", "occurrences", "self_time_us")


def steps(run: Run) -> list[str]:
    """`steps`: host, number, start and length in µs, and whether it counts."""
    return rows(run.table("steps"), "host", "step", "start_us", "duration_us", "included")


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "counted" if value else "set aside"
    return f"{value:g}" if isinstance(value, float) else str(value)


# Steps


def marked(name: str, times: list[tuple[float, float]], number_as: str = "step_num", **more: Value) -> list[Event]:
    """A marker and an op of 5 µs in it for each (start, duration); steps are numbered from 7."""
    out = []
    for i, (start, duration) in enumerate(times):
        out += [event(name, start, duration, {number_as: 7 + i}, **more), event("op:A", start + 1, 5)]
    return out


def source(run: Run) -> str:
    return run.info.step_source


def steps_in(xspace: XSpace) -> Steps:
    links = grouping.make_links(xspace)
    stored = grouping.stored_groups(xspace) if links is None else None
    return find_steps(xspace, stored or grouping.group_events(xspace, links, None))


def activity_times(xspace: XSpace, steps: Steps) -> Int64:
    """Picoseconds that each activity (columns) explains of each step (rows)."""
    return explain(xspace, steps, find_activities(xspace, steps), NO_SEGMENTS)[0]


# Kernels, and what xprof says of them


def xprof_kernels(*files: Path) -> pd.DataFrame:
    """xprof's table: columns as `KERNEL_STATS` (less host); what it does not know is 0 there."""
    table = xprof_oracle.tool_data("kernel_stats", *files)
    ids = [column["id"] for column in table["cols"]]  # type: ignore[index,call-overload]
    rows = [[cell["v"] for cell in row["c"]] for row in table["rows"]]  # type: ignore[index,call-overload]
    frame = pd.DataFrame(rows, columns=ids).rename(columns={"shmem_bytes": "shared_memory_bytes"})
    return frame.astype(dict.fromkeys(("occurrences", "registers_per_thread", "shared_memory_bytes"), "int64"))


def gpu(*planes: Plane) -> XSpace:
    return parse(space(*planes))


def kernel(
    name: str, start_us: float, us: float, details: str = "regs:16 grid:2,1,1 block:64,1,1", /, **stats: Value
) -> Event:
    return event(name, start_us, us, kernel_details=Ref(details), **stats)


def stream(*events: Event, device: int = 0, stats: dict[str, Value] | None = None) -> Plane:
    return plane(f"/device:GPU:{device}", line("Stream #7(Compute)", *events, id=7), stats=stats)
