"""XLA programs of two runs by execution: their instructions, and how long one execution takes.

This compares runs without steps: the same work, however often and on however many devices it ran.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from tfcompare.compare.diff import ADDED, MATCHED, REMOVED, change
from tfcompare.compare.groups.aggregate import compared
from tfcompare.compare.matching.instruction_keys import pair_programs
from tfcompare.compare.matching.matching import with_hosts_of
from tfcompare.compare.utilization import on_devices
from tfcompare.compare.work.terms import OF_INSTRUCTIONS, with_work_terms
from tfcompare.frames.grouping import combinations
from tfcompare.hlo.names import plain_program
from tfcompare.schema import SIDES
from tfcompare.tables.frames import codes_of

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.compare.side import Side

ONLY_THERE = "+"
"""Before the key of a program that only the candidate has."""
_MOST_ABOVE_FEWEST = 1.5
_US_PER_S = 1e6
_LEAST_EQUAL = 0.5
"""The share of a program's instructions that must have run on both sides with equal texts: else it is another one."""
_FEWEST = 3
"""Instructions that run equally often on one side, so that one which does not on the other stands out."""
_EXECUTIONS = 1.5
"""How many must be missing: a capture may begin or end within an execution."""
_BRANCH = "conditional"
_LOOP = r"^(.*/while/(?:body|cond))"
"""The loop that an op of JAX is in, by its name: how often it runs may be as often as what is around it by chance."""


def instructions_of(pair: Pair) -> pd.DataFrame:
    """The result of `instructions` for both sides of a pair, on the compared hosts."""
    ours, theirs = (pair.whole("hlo_ops", side) for side in pair.sides)
    theirs = with_hosts_of(ours, theirs)
    return instructions(pair.diff("hlo_ops"), pair_programs(ours, theirs), {"baseline": ours, "candidate": theirs})


def instructions(
    ops: pd.DataFrame, programs: Mapping[tuple[str, str], str], wholes: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """The rows of a diff of `hlo_ops`, with their program and their times per execution of it.

    `programs` maps the candidate's matched programs, (host, program), to the baseline's; `wholes` are `hlo_ops` of both
    sides, under the baseline's hosts, with all executions of the profile, in steps or not. Adds `program_key`, the
    baseline's program (that of the candidate after `ONLY_THERE` if only that has it), and for both sides, with `_delta`
    and `_ratio`:

    - `program_executions`: how often the program ran, over all devices and hosts.
    - `execution_time_us`: self time ÷ `program_executions`; a program's rows add up to its time per execution.
    - `runs_per_execution`: how often the instruction ran in one execution of its program.
    - `excess_us`: the part of it above the least time that the device's peaks allow; missing where unknown.

    And what each change of the time per execution is made of (`with_work_terms`).
    """
    keys = _program_keys(ops, programs)
    rows = ops.assign(program_key=keys)
    names = ("program_executions", "execution_time_us", "runs_per_execution", "excess_us")
    of_side: dict[str, list[pd.Series]] = {name: [] for name in names}
    for role in SIDES:
        is_there = rows["status"] != (ADDED if role == "baseline" else REMOVED)
        whole = _in_whole_profile(rows, wholes[role], role).where(is_there)
        counts = on_devices(rows[["program_key", "host", "core_type"]].assign(count=whole["executions"]))
        of_programs = usual_counts(counts[counts["count"] > 0]).groupby("program_key").sum()
        executions = keys.map(of_programs).astype("float64")
        times = whole["self_time_us"]
        least = least_time_us(rows, role) * whole["executions"] / floats(rows, "executions", role)
        excess = (times - least).clip(lower=0.0)
        of_side["program_executions"].append(executions.where(is_there))
        of_side["execution_time_us"].append(times / executions)
        of_side["runs_per_execution"].append(whole["executions"] / executions)
        of_side["excess_us"].append(excess / executions)
    columns = {name: cell for metric, sides in of_side.items() for name, cell in compared(metric, *sides).items()}
    return with_work_terms(rows.assign(**columns), OF_INSTRUCTIONS)


def least_time_us(rows: pd.DataFrame, role: str) -> pd.Series:
    """The least time, in µs, in which the instructions could run at the device's peaks; NaN where unknown."""
    flops, moved = (floats(rows, name, role) for name in ("flops", "bytes_accessed"))
    least = np.maximum(flops / rows[f"peak_flops_per_s_{role}"], moved / rows[f"peak_bytes_per_s_{role}"])
    is_known = rows[f"bound_by_{role}"].fillna("") != ""
    return pd.Series(least * _US_PER_S, rows.index).where(is_known)


def programs(rows: pd.DataFrame) -> pd.DataFrame:
    """One row for each program of `instructions`, the longest first; sums over its instructions.

    Columns: `program_key`; `label`, its name, with its id if others have the same; `share`, of the self time of both
    runs; `self_time_us_*`; `execution_time_us_*`.
    """
    names = [f"{metric}_{role}" for metric in ("self_time_us", "execution_time_us") for role in SIDES]
    sums = rows.groupby("program_key", as_index=False)[names].sum(min_count=1)
    size = sums[names[:2]].sum(axis=1)
    full = sums["program_key"].str.removeprefix(ONLY_THERE)
    plain = full.map(plain_program).astype("str")
    label = plain.mask(plain.duplicated(keep=False), full)
    label = label.mask(label.duplicated(keep=False), sums["program_key"])
    sums = sums.assign(label=label, share=size / (float(size.sum()) or 1.0))
    return sums.sort_values(["share", "program_key"], ascending=[False, True], ignore_index=True)


def of_program(rows: pd.DataFrame, program: str) -> pd.DataFrame:
    """The instructions of one program, those whose time per execution changed most first."""
    here = rows[rows["program_key"] == program]
    sides = [here[f"execution_time_us_{role}"] for role in SIDES]
    order = pd.DataFrame({"change": change(*sides).abs(), "size": pd.concat(sides, axis=1).max(axis=1)}, here.index)
    return here.loc[order.sort_values(["change", "size"], ascending=False, kind="stable").index]


def execution_time_us(rows: pd.DataFrame) -> tuple[float, float]:
    """The time per execution of the program on both sides; NaN for a side without it."""
    ours, theirs = (float(rows[f"execution_time_us_{side}"].sum(min_count=1)) for side in SIDES)
    return ours, theirs


def usual_counts(counts: pd.DataFrame) -> pd.Series:
    """How often each program ran on each host, by `program_key` and `host`: the most frequent of the small counts.

    `counts` has a row for each instruction, with its executions in `count`. Instructions in loops run more often than
    their program; at the ends of a profile, some miss one execution.
    """
    program = ["program_key", "host"]
    fewest = counts.groupby(program)["count"].transform("min")
    outside_loops = counts[counts["count"] < _MOST_ABOVE_FEWEST * fewest]
    each = outside_loops.groupby([*program, "count"], as_index=False).size().sort_values(["size", "count"])
    return each.groupby(program)["count"].last()


def _program_keys(ops: pd.DataFrame, programs: Mapping[tuple[str, str], str]) -> pd.Series:
    """The program of each row: the baseline's name of it if it has the program."""
    cells = zip(*(ops[name].tolist() for name in ("host", "program", "status")), strict=True)
    keys = [
        programs.get((host, program), f"{ONLY_THERE}{program}") if status == ADDED else program
        for host, program, status in cells
    ]
    return pd.Series(keys, ops.index, dtype="str")


def _in_whole_profile(rows: pd.DataFrame, whole: pd.DataFrame, role: str) -> pd.DataFrame:
    """`executions` and `self_time_us` in the whole profile of the instruction that each row of a diff has on a side."""
    names = ["host", "program", "hlo_op", "category", "core_type"]
    keys = rows[names]
    if role == "candidate":
        keys = keys.assign(**{name: rows[f"{name}_candidate"].fillna(rows[name]) for name in names[1:4]})
    code = combinations(*(codes_of(whole[name], keys[name]) for name in names))[1]
    there = np.full(code.max(initial=-1) + 1, -1)
    there[code[: len(whole)]] = np.arange(len(whole))
    columns = {name: whole[name].to_numpy(np.float64) for name in ("executions", "self_time_us")}
    return pd.DataFrame(
        {name: np.append(values, np.nan)[there[code[len(whole) :]]] for name, values in columns.items()}, rows.index
    )


def floats(rows: pd.DataFrame, metric: str, role: str) -> pd.Series:
    """A metric of one side."""
    return rows[f"{metric}_{role}"].astype("float64")


class Execution(NamedTuple):
    """An XLA program that two runs ran: its name, its time per execution in both, and how many programs both ran."""

    name: str
    baseline_us: float
    candidate_us: float
    of: int


def longest_program(pair: Pair) -> Execution | None:
    """The XLA program that took both runs the most time; None if they have none in common."""
    rows = pair.instructions()
    if rows.empty:
        return None
    both = programs(rows)
    both = both[(both[[f"execution_time_us_{side}" for side in SIDES]] > 0).all(axis=1)]
    if both.empty:
        return None
    first = both.iloc[0]
    ours, theirs = (float(first[f"execution_time_us_{side}"]) for side in SIDES)
    return Execution(str(first["label"]), ours, theirs, len(both))


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
