"""What two runs were recorded on and how, side by side, with what differs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare import schema
from tfcompare.units import MISSING, format_bytes, format_ms

if TYPE_CHECKING:
    from tfcompare.run import RunInfo

SHOWN = (
    "framework",
    "device_type",
    "device_name",
    "device_count",
    "hosts",
    "host_names",
    "step_source",
    "step_count",
    "steps_included",
    "start_time",
    "duration_ms",
    "size_bytes",
)
"""The columns of `run_info` that tell a reader about a recording, in the order to be read."""

MUST_AGREE = ("framework", "device_type", "device_name", "device_count", "hosts", "step_source")
"""Where these differ, times differ for reasons that are not in the program."""


_NO_STEPS = {"step_count": None, "steps_included": None}
"""`run_info` counts a profile that marks no steps as one."""


@dataclass(frozen=True)
class Fact:
    """A column of `run_info`, and what it is in each run, as text."""

    name: str
    label: str
    values: tuple[str, ...]
    differs: bool


def environment(infos: list[RunInfo], time_zone: str | None = None) -> list[Fact]:
    """What is known of the runs. `differs` is told only of what two recordings of one program should have in common:
    not of when, how long and how large they are. What no run knows is left out. Times of day are shown in `time_zone`,
    else in UTC.
    """
    rows = [asdict(info) | ({} if info.has_steps else _NO_STEPS) for info in infos]
    return [
        Fact(
            name,
            schema.RUN_INFO.column(name).label,
            tuple(_text(name, row[name], time_zone) for row in rows),
            name in MUST_AGREE and len({row[name] for row in rows}) > 1,
        )
        for name in SHOWN
        if any(row[name] for row in rows)
    ]


def _text(name: str, value: object, time_zone: str | None) -> str:
    if isinstance(value, datetime):
        return f"{pd.Timestamp(value).tz_convert(time_zone or 'UTC'):%Y-%m-%d %H:%M:%S %Z}"
    if name == "duration_ms" and isinstance(value, float):
        return format_ms(value)
    if name == "size_bytes" and isinstance(value, int):
        return format_bytes(value)
    return f"{value:,}" if isinstance(value, int) else str(value or MISSING)
