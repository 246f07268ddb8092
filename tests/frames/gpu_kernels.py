"""Kernels on a GPU, made up, and what xprof says of kernels."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tests import xprof_oracle
from tests.xspace_builder import Event, Plane, Ref, Value, event, line, plane, space
from tfcompare.xspace import XSpace, parse


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
