"""The matching tiers of each table, from the most to the least certain; `matching.py` applies them."""

from __future__ import annotations

from dataclasses import dataclass

MANUAL = "by hand"
EXACT = "exact"
CANONICAL = "canonical"
STRUCTURAL = "structural"
PROBABLE = "probable"
FUSED = "fused"
"""The `match` of a row that compares a fused op with what it was made of."""
POSITION = "position"
"""The `match` of rows that are matched by position instead of by a key."""


@dataclass(frozen=True)
class Tier:
    """One rule for matching rows: they agree in `keys`, which must be unique on each side.

    Keys are the table's own columns and these:

    - `aligned`: the op's name in the baseline, by automatic renaming; a unique placeholder if it is unmatched;
    - `placed`: as `aligned`, for further names matched by the contents of their scopes;
    - `guessed`: as `aligned`, for further names matched by similarity, and for doubtful equal names;
    - `leaf`: the last component of the op's name;
    - `plain_type`: the op type without the number of a traced function;
    - `canonical`: the kernel's canonical name (`kernel_names.py`);
    - `nth` and `of`: an allocation's place among those of its op, region and data type by the size of its shape, and
      how many these are.
    """

    name: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Naming:
    """How the rows of a table are matched whose names a framework may change.

    `name` is the column of op names; `op_type` is the column that distinguishes ops with equal names; `two_sided` are
    the columns that may differ between matched rows; `tiers` go from the most to the least certain. `manual_keys` are
    the sets of keys in which rows with manually paired names must agree, tried in order; the key `manual_name` in them
    is the paired name. `weight` is the metric that weights ops when searching for renamed layers, None if the names are
    those of iterators; `guesses` is whether single ops are matched by similarity as a last resort.
    """

    name: str
    op_type: str | None
    two_sided: tuple[str, ...]
    tiers: tuple[Tier, ...]
    manual_keys: tuple[tuple[str, ...], ...] = ()
    weight: str | None = None
    guesses: bool = False


_LAUNCH = ("block_dim", "grid_dim", "registers_per_thread", "shared_memory_bytes")
_AMONG = ("nth", "of")
_MEMORY = ("host", "memory_id", "aligned", "region_type", "data_type")


def _of_renamed_ops(tier: str, op: str) -> list[Tier]:
    """Tiers for kernels of renamed ops: by exact or canonical kernel name, first with equal launch configuration."""
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
            Tier(STRUCTURAL, ("host", "host_or_device", "placed", "leaf")),
            Tier(PROBABLE, ("host", "host_or_device", "plain_type", "guessed")),
            Tier(PROBABLE, ("host", "host_or_device", "guessed", "leaf")),
        ),
        manual_keys=(("host", "host_or_device", "op_type", "manual_name"), ("host", "host_or_device", "manual_name")),
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
        manual_keys=tuple(tier.keys for tier in _of_renamed_ops(MANUAL, "manual_name")),
        weight="total_duration_us",
    ),
    "memory_peak": Naming(
        "op_name",
        None,
        two_sided=("op_name", "shape"),
        tiers=(
            Tier(EXACT, (*_MEMORY, "op_name", "shape", *_AMONG)),
            Tier(CANONICAL, (*_MEMORY, "shape", *_AMONG)),
            Tier(STRUCTURAL, (*_MEMORY, *_AMONG)),
            Tier(EXACT, (*_MEMORY, "op_name", "shape")),
            Tier(CANONICAL, (*_MEMORY, "shape")),
            *(Tier(STRUCTURAL, keys) for keys in _memory_of("placed")),
            *(Tier(PROBABLE, keys) for keys in _memory_of("guessed")),
        ),
        manual_keys=tuple(_memory_of("manual_name")),
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
        manual_keys=(("host", "category", "manual_name"), ("host", "manual_name")),
    ),
}
"""The naming rules of each table; other tables match by equal keys."""

MANUAL_KERNELS = (("host", "manual_name", *_LAUNCH), ("host", "manual_name"))
"""As `Naming.manual_keys`, for manual pairs of single kernels."""

HLO_TWO_SIDED = {
    "hlo_ops": ("program", "hlo_op", "category"),
    "hlo_memory": ("program", "hlo_op"),
    "op_profile": ("program", "category", "source_file", "source", "hlo_op"),
}
"""The keys of instructions and buffers of XLA programs that may differ between matched rows."""


def _of_programs(*others: str, in_order: tuple[Tier, ...] = ()) -> tuple[Tier, ...]:
    """The tiers of instructions, or of buffers, that agree in the columns `others`; `in_order` pairs those of equal
    layers. XLA numbers instructions anew in each program: of ops that only end alike, an equal name is a guess."""
    return (
        Tier(EXACT, ("host", "named", "hlo_op", "op", *others)),
        Tier(CANONICAL, ("host", "named", "stem", "op", *others)),
        Tier(STRUCTURAL, ("host", "named", "origin", "source", *others)),
        Tier(STRUCTURAL, ("host", "named", "origin", *others)),
        Tier(STRUCTURAL, ("host", "named", "hlo_op", "op")),
        Tier(STRUCTURAL, ("host", "like", "hlo_op", *others)),
        *in_order,
        Tier(PROBABLE, ("host", "named", "hlo_op", "op_leaf", *others)),
        Tier(PROBABLE, ("host", "named", "stem", "op_leaf", *others)),
        Tier(PROBABLE, ("host", "guessed", "hlo_op", *others)),
        Tier(PROBABLE, ("host", "guessed", "stem", *others)),
        Tier(PROBABLE, ("host", "guessed", "origin", *others)),
    )


_BUFFER = ("memory_space", "output_index", "kind")
HLO_TIERS = {
    "hlo_ops": tuple(
        Tier(tier.name, (*tier.keys, "core_type"))
        for tier in _of_programs(
            "category",
            in_order=(
                Tier(PROBABLE, ("host", "named", "origin", "stem", "nth_of_stem", "category")),
                Tier(PROBABLE, ("host", "named", "origin", "nth_of_op", "category")),
            ),
        )
    ),
    "hlo_memory": _of_programs(
        *_BUFFER, in_order=(Tier(PROBABLE, ("host", "named", "origin", "stem", "nth_of_stem", *_BUFFER)),)
    ),
    "op_profile": (
        Tier(EXACT, ("host", "named", "tree", "depth", "source_file", "source", "category", "hlo_op")),
        Tier(CANONICAL, ("host", "named", "tree", "depth", "source_file", "source", "category", "stem")),
        Tier(STRUCTURAL, ("host", "named", "tree", "depth", "category", "stem")),
        Tier(STRUCTURAL, ("host", "named", "tree", "depth", "category", "origin")),
        Tier(STRUCTURAL, ("host", "like", "tree", "depth", "source", "category", "hlo_op")),
        Tier(PROBABLE, ("host", "guessed", "tree", "depth", "source", "category", "hlo_op")),
        Tier(PROBABLE, ("host", "guessed", "tree", "depth", "category", "stem")),
        Tier(PROBABLE, ("host", "guessed", "tree", "depth", "category", "origin")),
    ),
}
"""The tiers of tables of XLA programs; `instruction_keys.with_instruction_keys` explains the keys."""
