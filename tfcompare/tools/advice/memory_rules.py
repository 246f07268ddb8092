"""Rules for memory: a peak close to the capacity, and fragmented free memory."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

from tfcompare.tools.advice.facts import Facts, ratio
from tfcompare.tools.advice.model import GUIDE, SHARE, Figure, Found, code
from tfcompare.units import middle_ellipsis

FULL = 0.9
"""Share of the capacity above which a slightly larger batch or input may not fit."""
FRAGMENTED = 0.3
"""Share of the free memory that is in small pieces."""
FILLED = 0.5
"""Share of the capacity below which fragmentation is harmless, because enough is free."""

NAME_LENGTH = 30
MEMORY_GUIDE = f"{GUIDE}#memory_profile_tool"


def _used(row: pd.Series) -> float:
    return ratio(float(row["peak_bytes"]), float(row["capacity_bytes"]))


def _fragmented(row: pd.Series) -> float:
    return float(row["fragmentation"]) if _used(row) >= FILLED else 0.0


def _worst(memory: pd.DataFrame, how_bad: Callable[[pd.Series], float]) -> tuple[pd.Series, float] | None:
    """The memory (a row of `memory_summary`) with the worst score, and that score; None if there is none."""
    rated = [(row, how_bad(row)) for _, row in memory.iterrows()]
    rated = [(row, badness) for row, badness in rated if not math.isnan(badness)]
    return max(rated, key=lambda pair: pair[1], default=None)


def _figures(row: pd.Series) -> tuple[Figure, Figure, Figure, Figure]:
    """Peak, capacity, the share that they make and fragmentation, of the memory of that host and id."""
    host, memory_id = str(row["host"]), str(row["memory_id"])

    def of(value: Callable[[pd.Series], float]) -> Callable[[Facts], float]:
        def take(facts: Facts) -> float:
            memory = facts.memory
            same = memory[(memory["memory_id"] == memory_id) & ((memory["host"] == host) | (facts.info.hosts == 1))]
            return value(same.iloc[0]) if len(same) else math.nan

        return take

    return (
        Figure("Peak", "bytes", of(lambda r: float(r["peak_bytes"])), memory_id),
        Figure("Capacity", "bytes", of(lambda r: float(r["capacity_bytes"])), memory_id),
        Figure("Peak, share of capacity", SHARE, of(_used), memory_id),
        Figure("Fragmentation at the peak", SHARE, of(lambda r: float(r["fragmentation"])), memory_id),
    )


def _name(row: pd.Series) -> str:
    """The name of the memory, short enough for a title."""
    return code(middle_ellipsis(str(row["memory_id"]), NAME_LENGTH))


def full(facts: Facts) -> Found | None:
    """A memory's peak comes near to its capacity."""
    worst = _worst(facts.memory, _used)
    if worst is None or not worst[1] >= FULL:
        return None
    peak, capacity, share, _ = _figures(worst[0])
    how = (
        "`jax.checkpoint` around large blocks, donated arguments (`donate_argnums`) or `jnp.bfloat16`."
        if facts.is_jax
        else "`tf.recompute_grad` around large blocks, or `mixed_float16`."
    )
    text = (
        f"{code(worst[0]['memory_id'])} uses {peak.text(facts)} at its peak. Its limit is {capacity.text(facts)}, and "
        "allocations beyond that fail. See what is live at the peak (page Memory), then reduce it with a smaller "
        f"batch, {how}"
    )
    title = f"{_name(worst[0])} is {share.text(facts)} full at its peak"
    return Found(title, text, (share, peak, capacity), MEMORY_GUIDE)


def fragmented(facts: Facts) -> Found | None:
    """The free space of a well-filled memory is fragmented."""
    worst = _worst(facts.memory, _fragmented)
    if worst is None or not worst[1] >= FRAGMENTED:
        return None
    _, _, share, fragmentation = _figures(worst[0])
    how = (
        "Let the allocator reserve all memory at the start (`XLA_PYTHON_CLIENT_PREALLOCATE=true`), and keep "
        "shapes the same in every step."
        if facts.is_jax
        else "Keep shapes the same in every step (`batch(…, drop_remainder=True)`, padding), and try "
        "`TF_GPU_ALLOCATOR=cuda_malloc_async`."
    )
    text = (
        f"At its peak {code(worst[0]['memory_id'])} is {share.text(facts)} full, and {fragmentation.text(facts)} of "
        f"its free memory is in small pieces. A large tensor may not fit, although enough is free. {how}"
    )
    title = f"{_name(worst[0])} is {fragmentation.text(facts)} fragmented"
    return Found(title, text, (fragmentation, share), MEMORY_GUIDE)


RULES = (full, fragmented)
