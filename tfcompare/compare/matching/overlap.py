"""How much of the time of two runs is in ops that both have; where it is little, they ran different programs."""

from __future__ import annotations

import re
from typing import NamedTuple

import pandas as pd

from tfcompare.compare.diff import MATCHED
from tfcompare.compare.matching.plain_names import plain_name
from tfcompare.frames.ops.op_names import DATASET, UNKNOWN
from tfcompare.schema import HOST, IDLE, SIDES
from tfcompare.units import share_of

LEAST = 0.25
"""Of the time in ops of both. Of programs that a change made of one another, those that store and recompute activations
have least in common by name alone: 29 %. Of others, programs of one framework have up to 18 %, mostly in optimizers."""
_FEWEST = 5
"""Ops of a side: of fewer, one that was renamed or fused takes most of the time."""
OTHERS = "…"
"""The type, and the end of the name, of all ops (or kernels) that a file of baselines has no rows of. Of patterns for
many names, `*` alone matches it."""
_OF_NO_PROGRAM = (IDLE, DATASET, OTHERS)
"""Op types whose names say nothing: `Iterator::Root::BatchV2::Map` is in many programs."""
_WORD = re.compile(r"(\w+?)(?:_\d+)*\)*")
_ADDED_BY_FRAMEWORKS = ("jit(", "gradient_tape")


class Overlap(NamedTuple):
    """The shares of the self time of baseline and candidate in ops that both have, NaN without any time: of what ran on
    devices, or of all ops where a side ran none there (`on_devices`). And whether the programs are different."""

    on_devices: bool
    shares: tuple[float, float]
    are_unrelated: bool


def overlap_of(diff: pd.DataFrame, *, recorded_alike: bool) -> Overlap:
    """What two runs have in common by the diff of their ops.

    They are different programs if the shares of the sides are below `LEAST` on average. Each side counts the same: one
    op that takes ten times as long as all others leaves a program what it was. Of a few ops, nobody can tell.

    Where the sides are not `recorded_alike`, such as by two frameworks, or one of them compiled its ops and the other
    did not, or one ran them on devices and the other on hosts, few ops can have a counterpart: then the programs are
    different if they have no layers of the same name either.
    """
    ops = diff[~diff["op_type"].isin(_OF_NO_PROGRAM)]
    times = [ops[f"self_time_us_{side}"].astype("float64").fillna(0.0) for side in SIDES]
    on_device, is_matched = ops["host_or_device"] != HOST, ops["status"] == MATCHED
    ran_on_devices = [bool((us[on_device] > 0).any()) for us in times]
    here = on_device | (not all(ran_on_devices))
    ours, theirs = (share_of(us[here & is_matched].sum(), us[here].sum()) for us in times)
    are_few = any((us[here] > 0).sum() < _FEWEST for us in times)
    is_little = bool((ours + theirs) / 2 < LEAST) and not are_few
    if is_little and not (recorded_alike and _are_executed_alike(ops, times, ran_on_devices)):
        is_little = _have_other_layers(ops, times)
    return Overlap(all(ran_on_devices), (ours, theirs), is_little)


def have_same_names(ours: pd.DataFrame, theirs: pd.DataFrame) -> bool:
    """Whether ops of the same names take enough time that two runs are of one program, by their rows of `op_stats`:
    as of most runs that are compared, which then takes no diff."""
    sides = [ops[~ops["op_type"].isin(_OF_NO_PROGRAM)] for ops in (ours, theirs)]
    on_devices = [ops[ops["host_or_device"] != HOST] for ops in sides]
    if all(map(len, on_devices)):
        sides = on_devices
    shares = [
        share_of(own.loc[own["op_name"].isin(other["op_name"]), "self_time_us"].sum(), own["self_time_us"].sum())
        for own, other in (sides, sides[::-1])
    ]
    return sum(shares) / 2 >= LEAST


def _are_executed_alike(ops: pd.DataFrame, times: list[pd.Series], ran_on_devices: list[bool]) -> bool:
    """Whether both sides ran their ops in the same way: on devices or on hosts, and much of them compiled by XLA or
    not. Instructions without a known op are of unknown type."""
    ours, theirs = (
        us[ops[f"bytes_accessed_{side}"].notna() | (ops["op_type"] == UNKNOWN)].sum() >= LEAST * us.sum()
        for side, us in zip(SIDES, times, strict=True)
    )
    return ran_on_devices[0] == ran_on_devices[1] and ours == theirs


def _have_other_layers(ops: pd.DataFrame, times: list[pd.Series]) -> bool:
    """Whether the scopes of both sides' ops, where they have any, are other ones but for little time."""
    names = ops["op_name"], ops["op_name_candidate"].fillna(ops["op_name"])
    layers = [name[us > 0].map(_layers_of) for name, us in zip(names, times, strict=True)]
    known = [set().union(*of_side) for of_side in layers]
    for us, of_side, of_other in zip(times, layers, reversed(known), strict=True):
        in_layers = us[of_side.index[of_side.map(bool)]].sum()
        shared = us[of_side.index[[not words.isdisjoint(of_other) for words in of_side]]].sum()
        if not in_layers >= LEAST * us.sum() > shared:
            return False
    return True


def _layers_of(op_name: str) -> frozenset[str]:
    """The words of the scopes of an op without numbers: `encoder` of `transpose(jvp(encoder_1))/dot_general`."""
    scopes = plain_name(op_name).split("/")[:-1]
    found = (_WORD.fullmatch(one.rpartition("(")[2]) for one in scopes if not one.startswith(_ADDED_BY_FRAMEWORKS))
    return frozenset(word[1] for word in found if word)
