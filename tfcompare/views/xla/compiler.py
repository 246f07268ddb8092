"""What the compiler made of an XLA program: how many instructions of each kind ran, and what they take."""

from __future__ import annotations

import re

import pandas as pd

from tfcompare.compare.groups.aggregate import of_side
from tfcompare.schema import SIDES

_OPCODE = re.compile(r"= (?:\((?:[^()]|\([^()]*\))*\)|\S+) ([a-z][\w-]*)\(")
_RESULT = re.compile(r"= \(*([a-z]\w*)\[")
_LAYOUT = re.compile(r"transpose|copy")
_COLLECTIVE = re.compile(r"(?:ragged-)?all-(?:reduce|gather|to-all)|reduce-scatter|collective-(?:permute|broadcast)")
_TRANSFER = re.compile(r"(?:copy|send|recv|async)-(?:start|done|update)|send|recv|infeed|outfeed")

FUSIONS, LAYOUT, LIBRARY, COLLECTIVES = "Fusions", "Transposes and copies", "Library calls", "Collectives"
TRANSFERS, REMATERIALIZED = "Asynchronous transfers", "Rematerialized"
MEANINGS = {
    FUSIONS: "Instructions that the compiler merged into one kernel",
    LAYOUT: "Transposes and copies, and fusions named after them: they move data and compute nothing",
    LIBRARY: "Custom calls, such as those of cuDNN and cuBLAS",
    COLLECTIVES: "All-reduce, all-gather and other exchanges between devices",
    TRANSFERS: "Instructions that start or await a copy, send, receive, infeed or outfeed",
    REMATERIALIZED: "Instructions that compute a value again to save memory",
}


def kinds(rows: pd.DataFrame) -> pd.DataFrame:
    """How many instructions of each kind ran, and their time; an instruction may be of several kinds.

    `rows` are `executions.instructions` of one program. One row for each kind that either side has: those of
    `MEANINGS`, then one for each element type of results (`bf16 results`). Columns: `kind`, and for each side `count_*`
    (distinct instructions) and `execution_time_us_*`, 0 where there are none.
    """
    found: dict[str, dict[str, float]] = {}  # by kind, then by column
    for role in SIDES:
        for name, category, expression, is_remat, time_us in _cells(rows, role):
            for kind in kinds_of(name, category, expression, is_remat):
                cells = found.setdefault(kind, dict.fromkeys(_COLUMNS, 0.0))
                cells[f"count_{role}"] += 1
                cells[f"execution_time_us_{role}"] += time_us
    order = {kind: place for place, kind in enumerate(MEANINGS)}
    in_order = sorted(found, key=lambda kind: (order.get(kind, len(order)), kind))
    lines = [{"kind": kind} | found[kind] for kind in in_order]
    return pd.DataFrame(lines, columns=["kind", *_COLUMNS])


_COLUMNS = [f"{name}_{role}" for name in ("count", "execution_time_us") for role in SIDES]


def _cells(rows: pd.DataFrame, role: str) -> list[tuple[str, str, str, bool, float]]:
    """(name, category, expression, whether it is rematerialized, time) of each instruction of one side, once."""
    here = of_side(rows, role)
    name, category = here["hlo_op"], here["category"]
    if role == "candidate":
        name, category = (here[f"{own.name}_candidate"].fillna(own) for own in (name, category))
    cells = here.assign(
        name=name,
        category=category,
        expression=here[f"expression_{role}"].fillna(""),
        is_remat=here[f"is_rematerialized_{role}"].astype("boolean").fillna(False).astype(bool),
        time_us=here[f"execution_time_us_{role}"].astype("float64").fillna(0.0),
    )
    of_hosts = cells.groupby(["name", "category", "expression", "is_remat"], as_index=False)["time_us"].sum()
    return list(of_hosts.itertuples(index=False, name=None))


def kinds_of(name: str, category: str, expression: str, is_remat: bool) -> list[str]:
    """The kinds of an instruction; without its text, its category stands for its opcode."""
    match = _OPCODE.search(expression)
    opcode = match[1] if match else category
    is_fusion = opcode == "fusion" or category.endswith("fusion")
    result = _RESULT.search(expression)
    is_of_kind = {
        FUSIONS: is_fusion,
        LAYOUT: opcode in ("transpose", "copy") or (is_fusion and _LAYOUT.search(name) is not None),
        LIBRARY: opcode == "custom-call",
        COLLECTIVES: _COLLECTIVE.match(opcode) is not None,
        TRANSFERS: _TRANSFER.fullmatch(opcode) is not None,
        REMATERIALIZED: is_remat,
    }
    return [kind for kind, is_kind in is_of_kind.items() if is_kind] + ([f"{result[1]} results"] if result else [])
