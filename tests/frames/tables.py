"""Runs made from tiny XSpaces, and their tables as text."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np
import pandas as pd
import pyarrow as pa

from tfcompare.frames.ops.kernel_stats import kernels_of
from tfcompare.frames.steps.steps import Steps
from tfcompare.run import Run, load
from tfcompare.tables.frames import frame_of
from tfcompare.xspace import XSpace


def run_of(*hosts: bytes, step_marker: str | None = None) -> Run:
    """The run of these host files, named a, b, c, …; they are there as long as the run, which reads some tables
    later."""
    logdir = Path(tempfile.mkdtemp())
    folder = logdir / "plugins" / "profile" / logdir.name
    folder.mkdir(parents=True)
    for name, data in zip("abcdefgh", hosts, strict=False):
        (folder / f"{name}.xplane.pb").write_bytes(data)
    run = load(folder, step_marker=step_marker)
    finalize(run, shutil.rmtree, logdir)
    return run


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
