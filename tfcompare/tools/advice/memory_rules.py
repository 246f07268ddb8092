"""Rules for memory: a peak close to the capacity, and fragmented free memory."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

from tfcompare.tools.advice.facts import Facts, ratio
from tfcompare.tools.advice.model import GUIDE, SHARE, Figure, Found, code

FULL = 0.9
"""Of the capacity: above that a batch a little larger, or another input's size, may not fit."""
FRAGMENTED = 0.3
"""From 0 to 1: so much of the free memory lies in small pieces."""
FILLED = 0.5
"""Of the capacity: with more than half of it free, small pieces do no harm."""

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
        Figure("Peak, of the capacity", SHARE, of(_used), memory_id),
        Figure("Fragmentation at the peak", SHARE, of(lambda r: float(r["fragmentation"])), memory_id),
    )


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
        f"{code(worst[0]['memory_id'])} holds {peak.text(facts)} at its peak, of {capacity.text(facts)} that the "
        "allocator may take; beyond that, allocations fail. See what is live at the peak (page Memory), then save "
        f"there: a smaller batch, {how}"
    )
    title = f"{code(worst[0]['memory_id'])} is {share.text(facts)} full at its peak"
    return Found(title, text, (share, peak, capacity), MEMORY_GUIDE)


def fragmented(facts: Facts) -> Found | None:
    """The free space of a well-filled memory is fragmented."""
    worst = _worst(facts.memory, _fragmented)
    if worst is None or not worst[1] >= FRAGMENTED:
        return None
    _, _, share, fragmentation = _figures(worst[0])
    how = (
        "Let the allocator take its memory at once and not grow (`XLA_PYTHON_CLIENT_PREALLOCATE=true`), and keep "
        "shapes the same from step to step."
        if facts.is_jax
        else "Keep shapes the same from step to step (`batch(…, drop_remainder=True)`, padding), and try "
        "`TF_GPU_ALLOCATOR=cuda_malloc_async`."
    )
    text = (
        f"At its peak {code(worst[0]['memory_id'])} is {share.text(facts)} full, and {fragmentation.text(facts)} of "
        f"what is free lies in small pieces: a large tensor may not fit though there is room. {how}"
    )
    title = f"Free memory of {code(worst[0]['memory_id'])} is {fragmentation.text(facts)} fragmented"
    return Found(title, text, (fragmentation, share), MEMORY_GUIDE)


RULES = (full, fragmented)
