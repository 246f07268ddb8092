"""Formats numbers for people: three significant digits and a unit, the same on every page and in every report.

Missing values (None, NaN, pandas' NA) become an en dash; negative numbers have a true minus sign. Bytes are decimal: 1
MB is 1,000,000 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

MISSING = "–"
MINUS = "−"
READS_AS_FRACTION_BELOW = 2 / 3
"""1/1.3 reads worse than 0.77× or 77 %, and 0.00195× worse than 1/512."""
READS_AS_RATIO_FROM = 5
"""89× reads better than +8,800 %; up to +400 %, both read well, and per cent is what smaller changes have."""
NO_CHANGE = {"µs": 1e-5, "ms": 1e-8}
"""A change of time below 10 ps is none: profiles count in ps, and a mean per step adds up times each rounded to one."""

_TIME_IN_US = (("ns", 1e-3), ("µs", 1.0), ("ms", 1e3), ("s", 1e6))
_BYTES = (("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12), ("PB", 1e15))
_FLOPS = (("FLOP", 1.0), ("kFLOP", 1e3), ("MFLOP", 1e6), ("GFLOP", 1e9), ("TFLOP", 1e12), ("PFLOP", 1e15))
_UNITS = {"µs": _TIME_IN_US[1:], "bytes": _BYTES, "FLOP": _FLOPS}
"""The units that an axis or a column can be shown in, the smallest first."""


@dataclass(frozen=True)
class Scale:
    """The unit of an axis or a column, and how many microseconds (bytes, FLOP) it is."""

    unit: str
    size: float

    def of(self, values: pd.Series) -> NDArray[np.float64]:
        """Microseconds (bytes, FLOP) in this unit."""
        return values.to_numpy(dtype="float64", na_value=math.nan) / self.size


def scale(values: Iterable[float], unit: str) -> Scale:
    """The largest unit in which the largest of the values (signs aside) is at least 1, else the smallest.

    `unit` is that of the values; for any but `µs`, `bytes` and `FLOP` they stay as they are.
    """
    if unit not in _UNITS:
        return Scale("", 1.0)
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    units = [Scale(name, size) for name, size in _UNITS[unit]]
    return next((one for one in reversed(units) if largest >= one.size), units[0])


def format_time_us(us: float | None) -> str:
    """`12.3 µs`, `351 ms`, `1.24 s` for a time in microseconds; what rounds to 0 ps, in which profiles count, is 0."""
    number = _number(us)
    return _scale_to_unit(None if number is None else round(number, 6) + 0.0, _TIME_IN_US, zero="0 µs")


def format_ms(ms: float | None) -> str:
    """Like `format_time_us`, for a time in milliseconds."""
    number = _number(ms)
    return MISSING if number is None else format_time_us(number * 1e3)


def format_bytes(size: float | None) -> str:
    """`512 B`, `3.05 MB` for a number of bytes; a whole number of bytes below 1,000 is shown in full."""
    number = _number(size)
    if number is not None and abs(number) < 1000 and number == round(number):
        return f"{_with_sign(str(round(abs(number))), number)} B"
    return _scale_to_unit(number, _BYTES, zero="0 B")


def format_count(count: float | None) -> str:
    """`1,234` for a whole number, `2.50` for a count per step; the whole part always has all its digits."""
    number = _number(count)
    if number is None:
        return MISSING
    if not math.isfinite(number):
        return _with_sign("∞", number)
    size = abs(number)
    return _with_sign(f"{size:,.0f}" if number == round(number) or size >= 999.5 else _three(size), number)


def share_of(part: float, whole: float) -> float:
    """`part` ÷ `whole`, NaN if `whole` is not positive."""
    return part / whole if whole > 0 else math.nan


def ratio_of(baseline: float, candidate: float) -> float:
    """Candidate ÷ baseline: 1 if both are 0, infinite if only the baseline is; NaN if either is unknown."""
    if baseline != 0:
        return candidate / baseline
    if math.isnan(candidate):
        return math.nan
    return 1.0 if candidate == 0 else math.inf


def format_ratio(ratio: float | None) -> str:
    """`1.23×` for candidate ÷ baseline; `∞` if the baseline was 0."""
    number = _number(ratio)
    if number is None:
        return MISSING
    return "∞" if math.isinf(number) else f"{_three(number)}×"


def format_factor(ratio: float | None) -> str:
    """`2×`, `0.83×`, `1/512` for a ratio that is one factor of several; `∞` if the baseline was 0."""
    number = _number(ratio)
    if number is None or not 0 < number < READS_AS_FRACTION_BELOW:
        return format_ratio(number)
    size = 1 / number
    return f"1/{size:,.0f}" if size >= 999.5 else f"1/{size:.3g}"


def format_percent(share: float | None) -> str:
    """`12.3 %` for a share of 0.123."""
    number = _number(share)
    return MISSING if number is None else _with_sign(f"{_three(abs(number) * 100)} %", number)


def format_percent_change(ratio: float | None, like: float | None = None) -> str:
    """`+12.3 %` for a ratio (candidate ÷ baseline) of 1.123, `−12.3 %` for one of 0.877, `89.0×` for a large one.

    An end of an interval is written `like` the ratio that the interval is of.
    """
    number, first = _number(ratio), _number(ratio if like is None else like)
    if number is None:
        return MISSING
    if first is not None and first >= READS_AS_RATIO_FROM:
        return format_ratio(number)
    return _with_plus(format_percent(number - 1), number - 1)


def format_value(value: float | None, unit: str) -> str:
    """A metric's value in its unit from `schema`: a time, bytes or FLOPs scaled to fit, also per second, a share in %.

    Other units follow a plain number.
    """
    by_unit = {"µs": format_time_us, "ms": format_ms, "bytes": format_bytes, "share": format_percent}
    if unit in by_unit:
        return by_unit[unit](value)
    if unit == "FLOP":
        return _scale_to_unit(value, _FLOPS, zero="0 FLOP")
    if unit in ("bytes/s", "FLOP/s"):
        text = format_value(value, unit.removesuffix("/s"))
        return text if text == MISSING else f"{text}/s"
    text = format_count(value)
    return f"{text} {unit}" if unit and text != MISSING else text


def format_delta(delta: float | None, unit: str) -> str:
    """Like `format_value`, with `+` before increases: `+1.24 ms`, `−3.05 MB`, `0 µs`; less than `NO_CHANGE` is 0."""
    number = _number(delta)
    if number is None:
        return MISSING
    number = 0.0 if abs(number) < NO_CHANGE.get(unit, 0.0) else number
    return _with_plus(format_value(number, unit), number)


def _number(value: object) -> float | None:
    """`value` as a float, or None for None, NaN and pandas' NA."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except TypeError:
        return None
    return None if math.isnan(number) else number


def _scale_to_unit(value: float | None, units: tuple[tuple[str, float], ...], zero: str) -> str:
    number = _number(value)
    if number is None:
        return MISSING
    if number == 0:
        return zero
    if math.isinf(number):
        return _with_sign("∞", number)
    size = _round_three(abs(number))  # first, so that 999.9 µs becomes 1.00 ms and not 1,000 µs
    unit, factor = next(((u, f) for u, f in reversed(units) if size >= f), units[0])
    return f"{_with_sign(_three(size / factor), number)} {unit}"


def _round_three(size: float) -> float:
    return float(f"{size:.2e}")


def _three(size: float) -> str:
    """Three significant digits without an exponent, more if the whole part has more; `∞` for infinity."""
    if math.isinf(size):
        return "∞"
    size = _round_three(size) if abs(size) < 1000 else size
    if size == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(size))))
    return f"{size:,.{decimals}f}" if decimals <= 8 else f"{size:.2e}"


def _with_sign(text: str, number: float) -> str:
    return f"{MINUS}{text}" if number < 0 else text


def _with_plus(text: str, number: float) -> str:
    return f"+{text}" if number > 0 else text
