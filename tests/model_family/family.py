"""Which op of one variant is which op of another, as `record.py` built them, and how much of it a comparison finds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

import tfcompare as tfc
from tests.model_family.record import BRANCHES, VARIANTS, Variant
from tfcompare.comparison import Comparison
from tfcompare.run import Run
from tfcompare.schema import IDLE

FOLDER = Path(__file__).parent

_WRAPPERS = re.compile(r"^StatefulPartitionedCall/|(?<![^/])compile_loss/")
_AUTO_NAME = re.compile(r"dense(?:_(\d+))?_\d+")
_FUNCTION = re.compile(r"(__inference_\w+?)_\d+")
_OPTIMIZER_OP = re.compile(r"adam/([A-Za-z]+)(?:_(\d+))?(/ReadVariableOp)?")
_JOINED = re.compile(r"(?<=join_1/)Slice(?:_(\d+))?$")
_PER_VARIABLE = {"mul": 4, "sub": 4, "add": 2, "truediv": 2, "sqrt": 2, "square": 1, "pow": 2, "cast": 6} | {
    "assignaddvariableop": 2,
    "assignsubvariableop": 1,
}
"""How many ops of a name Keras' Adam makes for each variable; their numbers go on from one variable to the next."""


@cache
def recorded(name: str) -> Run:
    """The run of a variant."""
    return tfc.load(FOLDER / name)


@cache
def compared(baseline: str, candidate: str) -> Comparison:
    """Two variants, compared."""
    return tfc.compare(recorded(baseline), recorded(candidate))


def meaning(variant: str, op_name: str) -> str:
    """What an op is, the same text for the same op in each variant, whatever its name is there.

    Empty where construction does not say: ops outside of layers and optimizer that have no name of their own.
    """
    name = _WRAPPERS.sub("", op_name)
    if function := _FUNCTION.fullmatch(name):
        return function[1]
    if op := _OPTIMIZER_OP.fullmatch(name):
        return _of_optimizer(_roles(VARIANTS[variant]), op)
    if "/" not in name:
        return ""
    roles = _roles(VARIANTS[variant])
    if part := _JOINED.search(name):
        return f"{name[: part.start()]}slice of <{roles[int(part[1] or 0)]}>"
    return "/".join(_role(VARIANTS[variant], roles, label) for label in name.split("/"))


def _of_optimizer(roles: list[str], op: re.Match[str]) -> str:
    base, number, rest = op[1].lower(), int(op[2] or 0), op[3] or ""
    variable, place = divmod(number, _PER_VARIABLE[base])
    if variable >= 2 * len(roles):
        return f"adam/at the end/{base}"
    return f"adam/{roles[variable // 2]}/{('kernel', 'bias')[variable % 2]}/{base}{place}{rest}"


def _roles(variant: Variant) -> list[str]:
    """The roles of a variant's layers, in the order of its variables."""
    if variant.train.startswith("branches"):
        order = BRANCHES[::-1] if variant.train.endswith("reordered") else BRANCHES
        return [*order, "logits"]
    return [role for role, _ in variant.layers]


def _role(variant: Variant, roles: list[str], label: str) -> str:
    """One component of a name, with the layer's role in place of its name."""
    if label == "dense_1":
        return f"<{roles[0]}>"
    if auto := _AUTO_NAME.fullmatch(label):
        return f"<{roles[int(auto[1] or 0)]}>"
    names = variant.names or {role: role for role in roles}
    called = {f"{name}_1": role for role, name in names.items()}
    return f"<{called[label]}>" if label in called else label


@dataclass(frozen=True)
class Found:
    """Shares of the self time of both sides: matched; matched rightly, of ops that exist in both; in wrong pairs of
    each tier."""

    matched: float
    right: float
    wrong: dict[str, float]


def found(baseline: str, candidate: str) -> Found:
    """How much of two variants a comparison pairs, and how much of that is right."""
    rows = pairs(baseline, candidate)
    total = rows["time_us"].sum()
    in_both = set(rows["baseline"]) & set(rows["candidate"]) - {""}
    common = (
        rows["baseline"].isin(in_both) * rows["baseline_us"] + rows["candidate"].isin(in_both) * rows["candidate_us"]
    )
    is_known = rows["baseline"].ne("") | rows["candidate"].ne("")
    is_matched = rows["status"] == "matched"
    is_right = is_matched & is_known & (rows["baseline"] == rows["candidate"])
    wrong = rows[is_matched & is_known & ~is_right].groupby("match")["time_us"].sum() / total
    return Found(
        rows.loc[is_matched, "time_us"].sum() / total,
        rows.loc[is_right, "time_us"].sum() / common.sum(),
        {str(tier): float(share) for tier, share in wrong.items()},
    )


def pairs(baseline: str, candidate: str) -> pd.DataFrame:
    """The rows of the diff with the meaning of either side in `baseline` and `candidate`, and the time of either."""
    diff = compared(baseline, candidate).table("op_stats")
    diff = diff[(diff["op_type"] != IDLE) & (diff["op_type"] != "Dataset")]
    per = "_per_step" if "self_time_us_per_step_baseline" in diff else ""
    ours = diff["op_name"].where(diff["status"] != "added", "")
    theirs = diff["op_name_candidate"].where(diff["status"] != "removed", "").fillna("")
    times = [diff[f"self_time_us{per}_{side}"].astype("float64").fillna(0.0) for side in ("baseline", "candidate")]
    return pd.DataFrame(
        {
            "op_type": diff["op_type"],
            "baseline_name": ours,
            "candidate_name": theirs,
            "baseline": [meaning(baseline, name) for name in ours],
            "candidate": [meaning(candidate, name) for name in theirs],
            "status": diff["status"],
            "match": diff["match"].fillna(""),
            "baseline_us": times[0],
            "candidate_us": times[1],
            "time_us": times[0] + times[1],
        }
    )
