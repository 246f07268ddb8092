"""Instructions of which one capture lost events: the same compiled program ran, but not all of what it ran is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.compare.diff import MATCHED
from tfcompare.compare.utilization import on_devices
from tfcompare.schema import SIDES

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.compare.side import Side

_LEAST_EQUAL = 0.5
"""The share of a program's instructions that must have run on both sides with equal texts: else it is another one."""
_FEWEST = 3
"""Instructions that run equally often on one side, so that one which does not on the other stands out."""
_EXECUTIONS = 1.5
"""How many must be missing: a capture may begin or end within an execution."""
_BRANCH = "conditional"
_LOOP = r"^(.*/while/(?:body|cond))"
"""The loop that an op of JAX is in, by its name: how often it runs may be as often as what is around it by chance."""


def lost_events(pair: Pair) -> pd.DataFrame:
    """Columns `program`, `hlo_op`, `op_name` and `side` (which lost events): instructions that ran as often as others
    of their program on one side, and less often than these on the other.

    Programs count whose instructions have equal texts on both sides, and no branches. How often a loop runs may depend
    on the data, but what is in it runs equally often. None without steps, since counts are then those of the captures.
    """
    if pair.per != "step" or pair.is_identical or any(run.table("hlo_ops").empty for run in pair.runs):
        return pd.DataFrame(columns=["program", "hlo_op", "op_name", "side"])
    rows = on_devices(pair.diff("hlo_ops"))
    rows = rows[_is_same_program(rows)]
    least = _EXECUTIONS / min(_divisor(pair, side) for side in pair.sides)
    counts = [rows[f"executions_{side}"].astype("float64").fillna(0.0).round(6) for side in SIDES]
    loop = rows["op_name_baseline"].str.extract(_LOOP, expand=False).fillna("")
    lost = []
    for side, (often, other) in zip(SIDES, ((counts[1], counts[0]), (counts[0], counts[1])), strict=True):
        of_group = other.groupby([rows["program"], loop, often])
        is_less = (of_group.transform("max") - other > least) & (of_group.transform("size") >= _FEWEST)
        chosen = rows[is_less & (often > 0)]
        name = chosen["op_name_baseline"].fillna(chosen["op_name_candidate"])
        lost.append(chosen[["program", "hlo_op"]].assign(op_name=name, side=side))
    return pd.concat(lost, ignore_index=True)


def _divisor(pair: Pair, side: Side) -> float:
    """What an execution is divided by at least: the steps of a capture, of the rarest of several kinds, by device."""
    kinds = pair.common_kinds
    steps = side.step_count() * side.iterations if kinds is None else kinds.fewest_steps(side)
    return steps / float(pair.shares("hlo_ops", pd.DataFrame(index=[0]), side, 0)[0])


def _is_same_program(rows: pd.DataFrame) -> pd.Series:
    """Whether each row of a diff of `hlo_ops` is of a program that both sides compiled to the same instructions."""
    is_matched = rows["status"] == MATCHED
    ours, theirs = (rows[f"expression_{side}"] for side in SIDES)
    is_equal = is_matched & (ours == theirs) & (ours != "")
    is_branch = rows["category"].eq(_BRANCH) | rows["hlo_op"].str.startswith(_BRANCH)
    facts = pd.DataFrame({"equal": is_equal, "other": is_matched & ~is_equal, "branch": is_branch})
    of_program = facts.groupby(rows["program"])
    is_same = (of_program.transform("mean")["equal"] >= _LEAST_EQUAL) & ~of_program.transform("any")["other"]
    return is_same & ~of_program.transform("any")["branch"]
