"""What to know before trusting a comparison, and how the environments of its runs differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare import schema
from tfcompare.compare.pairs import pairs_of
from tfcompare.schema import SIDES
from tfcompare.text import as_code, as_markdown, some_of
from tfcompare.units import MISSING, format_bytes, format_ms
from tfcompare.views.pair_words import DIFFERENT_PROGRAMS

if TYPE_CHECKING:
    from tfcompare.compare.comparability import Mismatch
    from tfcompare.compare.pair import Pair
    from tfcompare.compare.pairs import Pairs
    from tfcompare.run import Run, RunInfo

_NAMED = 3
"""Instructions that a sentence names."""
SHOWN = (
    *("framework", "device_type", "device_name", "device_count", "clock_mhz", "versions", "profiler_options"),
    *("command_buffers", "hosts", "host_names", "step_source", "step_count", "steps_included", "start_time"),
    *("duration_ms", "size_bytes"),
)
"""The columns of `run_info` that describe a capture, in display order."""

MUST_AGREE = ("framework", "device_type", "device_name", "device_count", "hosts", "step_source")
"""If any of these differ, times differ for reasons other than the program."""


_NO_STEPS = {"step_count": None, "steps_included": None}
"""`run_info` counts a profile without step markers as one step."""


def caveats(pairs: Pairs) -> list[str]:
    """The most serious first: differences between the runs, remarks on each run, and units."""
    unrelated = [f"**{DIFFERENT_PROGRAMS}**{_which(pair)}" for pair in _pairs(pairs) if pair.are_unrelated]
    return [*unrelated, *_in_order(pairs, lambda _one: True)]


def beside_the_answer(pairs: Pairs) -> list[str]:
    """The caveats without those that the headline and *What differs* have, where these are shown, too."""
    return _in_order(pairs, lambda one: one.baseline == one.candidate)


def _pairs(pairs: Pairs) -> list[Pair]:
    return [] if pairs.is_single else pairs_of(pairs)


def _in_order(pairs: Pairs, is_said: Callable[[Mismatch], bool]) -> list[str]:
    found = [(pair, one) for pair in _pairs(pairs) for one in pair.mismatches if is_said(one)]
    hard, soft = ([_sentence(*one) for one in found if one[1].is_hard is which] for which in (True, False))
    notes = map(as_markdown, pairs.notes)
    lost = [sentence for pair in _pairs(pairs) if (sentence := _lost_events(pair))]
    return [*hard, *lost, *_remarks(pairs.runs), *soft, *notes]


def _sentence(pair: Pair, one: Mismatch) -> str:
    values = f"{as_markdown(one.baseline)} vs {as_markdown(one.candidate)}"
    return f"**{one.label}**{_which(pair)}: {values}; {one.meaning}"


def _which(pair: Pair) -> str:
    """The candidate, where there are several."""
    return f" ({as_code(pair.candidate.name)})" if len(pair.among.sides) > 2 else ""


def _lost_events(pair: Pair) -> str:
    """That a capture lost events of instructions, so that these are not judged; empty if neither did."""
    lost = pair.lost_events()
    if lost.empty:
        return ""
    names = dict(zip(SIDES, pair.names, strict=True))
    which = " and ".join(as_code(names[side]) for side in lost["side"].unique())
    ops = some_of(map(as_code, dict.fromkeys(lost["hlo_op"])), _NAMED)
    return (
        f"**Lost events**: in {which}, {ops} ran less often than other instructions of the same program, as often as "
        "which they run on the other side; they are not judged"
    )


def _remarks(runs: Sequence[Run]) -> list[str]:
    remarked: dict[str, list[str]] = {}
    for run in runs:
        for remark in run.remarks:
            if run.why_untimed and remark.endswith(run.why_untimed):
                continue  # the headline says so
            remarked.setdefault(remark, []).append(as_code(run.name))
    return [f"{', '.join(names)}: {as_markdown(remark)}" for remark, names in remarked.items()]


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
