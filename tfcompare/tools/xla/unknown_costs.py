"""What is said of the instructions whose costs are unknown: sums and rates leave them out, or are unknown too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.compare.pooling import mean_of
from tfcompare.compare.utilization import COSTS, has_unknown_cost, instructions_in_steps, unknown_share
from tfcompare.markdown import as_code
from tfcompare.schema import SIDES
from tfcompare.text import some_of
from tfcompare.units import format_percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfcompare.compare.pair import Pair

_LEAST_SHARE = 0.001  # less is 0.0 % in the sentence
_NAMED = 3
"""Instructions that a sentence names."""
_CPU = "CPU"
_CALLED = {"flops": "FLOPs", "bytes_accessed": "bytes accessed"}


def sentence(pair: Pair) -> str:
    """Which share of the device time of all compiled programs has no known cost, in Markdown; empty if all have one."""
    return pair.cached(
        "unknown costs", lambda: _sentence(pair, [side.each(instructions_in_steps) for side, _ in pair.shown])
    )


def sentence_on(pair: Pair, rows: pd.DataFrame) -> str:
    """As `sentence`, of the instructions `rows`, which are of the diff of `hlo_ops`."""
    names = ("self_time_us", *COSTS)
    sides = [
        pd.DataFrame({"hlo_op": rows["hlo_op"], **{name: rows[f"{name}_{role}"].astype("float64") for name in names}})
        for role in SIDES[: len(pair.shown)]
    ]
    return _sentence(pair, [[side] for side in sides])


def _sentence(pair: Pair, captures: Sequence[Sequence[pd.DataFrame]]) -> str:
    """`captures` are the instructions of each capture of each side."""
    shares = [mean_of([*map(unknown_share, frames)]) for frames in captures]
    lacking = {at: share for at, share in enumerate(shares) if share >= _LEAST_SHARE}
    if not lacking:
        return ""
    unknown = pd.concat([frame[has_unknown_cost(frame)] for at in lacking for frame in captures[at]])
    lacked = [called for cost, called in _CALLED.items() if unknown[cost].isna().any()]
    what = lacked[0] if len(lacked) == 1 else "cost"
    times = unknown.groupby("hlo_op")["self_time_us"].sum().sort_values(ascending=False, kind="stable")
    on_device = "device " if any(run.info.device_type != _CPU for _, run in pair.shown) else ""
    first, *others = [(at, format_percent(share)) for at, share in lacking.items()]
    whole = f"{first[1]} of the {on_device}time of compiled programs"
    if not pair.is_single:
        whole += "".join(
            [f" in {pair.marked[first[0]]}", *(f" and {share} in {pair.marked[at]}" for at, share in others)]
        )
    return f"{whole} has no known {what}: {some_of(map(as_code, times.index), _NAMED)}."
