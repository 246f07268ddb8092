"""The ways to pair rows, from the surest to the boldest, table by table; `matching.py` applies them."""

from __future__ import annotations

from dataclasses import dataclass

BY_HAND = "by hand"
EXACT = "exact"
CANONICAL = "canonical"
STRUCTURAL = "structural"
PROBABLE = "probable"
POSITION = "position"
"""The `match` of rows that pair by their place, not by a key."""


@dataclass(frozen=True)
class Tier:
    """One way to pair rows: those that agree in `keys`, where just one row a side has them.

    Beside the table's own keys there are `aligned` (the baseline's name for the op, unlike any name where it has none),
    `leaf` (the last component of the op's own name), `plain_type` (its type without the number of a traced function)
    and `canonical` (the kernel's name as `kernel_names` has it); `placed` and `guessed` are like `aligned`, for names
    that are left: by the contents of scopes, and by likeness or a name that is doubtful.
    """

    name: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Naming:
    """How the rows of a table whose names a framework may change are paired.

    `name` is the key that holds an op's name, `op_type` the one that tells apart ops of one name; `two_sided` are the
    keys that may differ between paired rows; `tiers` go from the surest to the boldest. `by_hand` are the keys in which
    rows of names that are paired by hand have to agree, the best ones first, and `by_hand` among them is those names.
    `weight` is the metric that tells how much lies in an op, where renamed layers are looked for, None where names are
    those of iterators; `guesses` is whether single ops are paired by likeness in the end.
    """

    name: str
    op_type: str | None
    two_sided: tuple[str, ...]
    tiers: tuple[Tier, ...]
    by_hand: tuple[tuple[str, ...], ...] = ()
    weight: str | None = None
    guesses: bool = False


_LAUNCH = ("block_dim", "grid_dim", "registers_per_thread", "shared_memory_bytes")
_MEMORY = ("host", "memory_id", "aligned", "region_type", "data_type")


def _of_renamed_ops(tier: str, op: str) -> list[Tier]:
    """Kernels of renamed ops: of one name and launch, of one name but for its spelling, in another launch."""
    return [
        Tier(tier, ("host", kernel, op, *launch)) for launch in (_LAUNCH, ()) for kernel in ("kernel_name", "canonical")
    ]


def _memory_of(op: str) -> list[tuple[str, ...]]:
    keys = tuple(op if key == "aligned" else key for key in _MEMORY)
    return [(*keys, "shape"), keys]


NAMINGS = {
    "op_stats": Naming(
        "op_name",
        "op_type",
        two_sided=("op_type", "op_name"),
        tiers=(
            Tier(EXACT, ("host", "host_or_device", "op_type", "op_name", "aligned")),
            Tier(CANONICAL, ("host", "host_or_device", "plain_type", "aligned")),
            Tier(CANONICAL, ("host", "host_or_device", "aligned", "leaf")),
            Tier(STRUCTURAL, ("host", "host_or_device", "plain_type", "placed")),
            Tier(PROBABLE, ("host", "host_or_device", "plain_type", "guessed")),
            Tier(PROBABLE, ("host", "host_or_device", "guessed", "leaf")),
        ),
        by_hand=(("host", "host_or_device", "op_type", "by_hand"), ("host", "host_or_device", "by_hand")),
        weight="self_time_us",
        guesses=True,
    ),
    "kernel_stats": Naming(
        "op_name",
        None,
        two_sided=("kernel_name", "op_name", *_LAUNCH),
        tiers=(
            Tier(EXACT, ("host", "kernel_name", "op_name", "aligned", *_LAUNCH)),
            Tier(CANONICAL, ("host", "canonical", "aligned", *_LAUNCH)),
            Tier(STRUCTURAL, ("host", "kernel_name", "aligned")),
            Tier(STRUCTURAL, ("host", "canonical", "aligned")),
            *_of_renamed_ops(STRUCTURAL, "placed"),
            *_of_renamed_ops(PROBABLE, "guessed"),
        ),
        by_hand=tuple(tier.keys for tier in _of_renamed_ops(BY_HAND, "by_hand")),
        weight="total_duration_us",
    ),
    "memory_peak": Naming(
        "op_name",
        None,
        two_sided=("op_name", "shape"),
        tiers=(
            Tier(EXACT, (*_MEMORY, "op_name", "shape")),
            Tier(CANONICAL, (*_MEMORY, "shape")),
            Tier(STRUCTURAL, _MEMORY),
            *(Tier(STRUCTURAL, keys) for keys in _memory_of("placed")),
            *(Tier(PROBABLE, keys) for keys in _memory_of("guessed")),
        ),
        by_hand=tuple(_memory_of("by_hand")),
        weight="allocation_bytes",
    ),
    "input_pipeline": Naming(
        "op_name",
        "category",
        two_sided=("op_name", "category"),
        tiers=(
            Tier(EXACT, ("host", "op_name", "category", "aligned")),
            Tier(STRUCTURAL, ("host", "category", "aligned")),
            Tier(STRUCTURAL, ("host", "aligned")),
        ),
        by_hand=(("host", "category", "by_hand"), ("host", "by_hand")),
    ),
}
"""Tables that are not named here pair by equal keys."""

KERNELS_BY_HAND = (("host", "by_hand", *_LAUNCH), ("host", "by_hand"))
"""As `Naming.by_hand`, where single kernels of ops are paired."""
