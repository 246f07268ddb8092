"""The environments in which runs were captured, and the differences between them."""

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
    "clock_mhz",
    "versions",
    "profiler_options",
    "command_buffers",
    "hosts",
    "host_names",
    "step_source",
    "step_count",
    "steps_included",
    "start_time",
    "duration_ms",
    "size_bytes",
)
"""The columns of `run_info` that describe a capture, in display order."""

MUST_AGREE = ("framework", "device_type", "device_name", "device_count", "hosts", "step_source")
"""If any of these differ, times differ for reasons other than the program."""


_NO_STEPS = {"step_count": None, "steps_included": None}
"""`run_info` counts a profile without step markers as one step."""


@dataclass(frozen=True)
class Fact:
    """A column of `run_info` with its value in each run, as text."""

    name: str
    label: str
    values: tuple[str, ...]
    differs: bool


def environment(infos: list[RunInfo], time_zone: str | None = None) -> list[Fact]:
    """The known facts about the runs' environments; facts that are unknown for all runs are left out.

    `differs` is set only for properties that two captures of one program should share, which excludes date, duration
    and size. Times of day are shown in `time_zone`, else in UTC.
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
    if name == "clock_mhz" and isinstance(value, float):
        return f"{value:,.0f} MHz" if value else MISSING
    return f"{value:,}" if isinstance(value, int) else str(value or MISSING)
