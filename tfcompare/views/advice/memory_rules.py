"""Rules for memory: a peak close to the capacity, fragmented free memory, and padding in XLA programs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from tfcompare.hlo.shapes import size_of_text
from tfcompare.text import middle_ellipsis
from tfcompare.units import share_of
from tfcompare.views.advice.facts import Facts
from tfcompare.views.advice.model import GUIDE, SHARE, Figure, Found, code

FULL = 0.9
"""Share of the capacity above which a slightly larger batch or input may not fit."""
FRAGMENTED = 0.3
"""Share of the free memory that is in small pieces."""
FILLED = 0.5
"""Share of the capacity below which fragmentation is harmless, because enough is free."""

MOSTLY_PADDING = 1.5
"""Size of a buffer ÷ that of its contents: less is what aligning takes."""
SMALLEST_PADDED = 1 << 20
"""In bytes: the padding of smaller buffers does not matter."""
PADDED = 0.1
"""Share of a program's peak from which padding is worth a change of shapes."""

NAME_LENGTH = 30
TPU_GUIDE = "https://cloud.google.com/tpu/docs/performance-guide"
MEMORY_GUIDE = f"{GUIDE}#memory_profile_tool"


def _used_bytes(memory: pd.DataFrame) -> pd.Series:
    """The share of its capacity that each memory takes at its peak; NaN where there is no capacity."""
    return memory["peak_bytes"] / memory["capacity_bytes"].where(memory["capacity_bytes"] > 0)


def _worst(memory: pd.DataFrame, how_bad: pd.Series) -> tuple[pd.Series, float] | None:
    """The memory (a row of `memory_summary`) with the worst score, and that score; None if there is none."""
    scores = how_bad.to_numpy(np.float64)
    if np.isnan(scores).all():
        return None
    position = int(np.nanargmax(scores))
    return memory.iloc[position], float(scores[position])


def _figures(row: pd.Series) -> tuple[Figure, Figure, Figure, Figure]:
    """Peak, capacity, the share that they make and fragmentation, of the memory of that host and id."""
    host, memory_id = str(row["host"]), str(row["memory_id"])

    def of(value: Callable[[pd.Series], float]) -> Callable[[Facts], float]:
        def take(facts: Facts) -> float:
            memory = facts.memory
            same = memory[(memory["memory_id"] == memory_id) & ((memory["host"] == host) | (facts.info.hosts == 1))]
            return value(same.iloc[0]) if len(same) else math.nan

        return take

    used = of(lambda r: share_of(r["peak_bytes"], r["capacity_bytes"]))
    return (
        Figure("Peak", "bytes", of(lambda r: float(r["peak_bytes"])), memory_id),
        Figure("Capacity", "bytes", of(lambda r: float(r["capacity_bytes"])), memory_id),
        Figure("Peak, share of capacity", SHARE, used, memory_id),
        Figure("Fragmentation at the peak", SHARE, of(lambda r: float(r["fragmentation"])), memory_id),
    )


def _name(row: pd.Series) -> str:
    """The name of the memory, short enough for a title."""
    return code(middle_ellipsis(str(row["memory_id"]), NAME_LENGTH))


def full(facts: Facts) -> Found | None:
    """A memory's peak comes near to its capacity."""
    worst = _worst(facts.memory, _used_bytes(facts.memory))
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
    worst = _worst(facts.memory, facts.memory["fragmentation"].where(_used_bytes(facts.memory) >= FILLED, 0.0))
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


def _padding(facts: Facts) -> pd.DataFrame:
    """The buffers at the peaks of programs that are mostly padding, with `padding_bytes`; only TPUs pad arrays."""
    rows = facts.hlo_memory
    rows = rows[rows["is_live_at_peak"].astype(bool) & (rows["memory_space"] == 0)]
    if facts.info.device_type != "TPU" or rows.empty:
        return rows.iloc[:0].assign(padding_bytes=0.0)
    sizes = {shape: size_of_text(str(shape)) for shape in rows["shape"].unique()}
    logical = rows["shape"].map(sizes).astype("float64")
    rows = rows.assign(padding_bytes=rows["size_bytes"] - logical)
    return rows[(rows["size_bytes"] >= SMALLEST_PADDED) & (rows["size_bytes"] >= MOSTLY_PADDING * logical)]


def _padding_bytes(facts: Facts, program: str) -> float:
    """The padding of the padded buffers of a program, on the host where it is largest."""
    rows = _padding(facts)
    return float(rows[rows["program"] == program].groupby("host")["padding_bytes"].sum().max())


def _peak_bytes(facts: Facts, program: str) -> float:
    """The peak of a program in a device's main memory."""
    rows = facts.hlo_memory
    rows = rows[(rows["program"] == program) & rows["is_live_at_peak"].astype(bool) & (rows["memory_space"] == 0)]
    return float(rows.groupby("host")["size_bytes"].sum().max())


def padded(facts: Facts) -> Found | None:
    """Buffers of a program are larger than their contents, because the device pads their shapes."""
    rows = _padding(facts)
    if rows.empty:
        return None
    program = str(rows.groupby("program")["padding_bytes"].sum().idxmax())
    label = "Padding, of the program's peak"
    share = Figure(label, SHARE, lambda f: share_of(_padding_bytes(f, program), _peak_bytes(f, program)), program)
    if not share.of(facts) >= PADDED:
        return None
    here = rows[rows["program"] == program]
    row = here.iloc[int(here["padding_bytes"].to_numpy().argmax())]
    padding = Figure("Padding", "bytes", lambda f: _padding_bytes(f, program), program)
    text = (
        f"At the peak of {code(program)}, {padding.text(facts)} are padding: the device stores arrays in whole tiles. "
        f"The largest is {code(row['shape'])} of {code(row['hlo_op'])}. Give arrays a last dimension that is a "
        "multiple of 128, and one before it that is a multiple of 8 (16 with 16 bits): transpose them, merge small "
        "dimensions into one, or put large ones last."
    )
    title = f"{share.text(facts)} of the peak of {code(program)} is padding"
    return Found(title, text, (share, padding), TPU_GUIDE)


RULES = (full, fragmented, padded)
