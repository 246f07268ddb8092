"""Layers that only one of two programs has: scopes of names, all of whose ops are without a counterpart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from tfcompare.compare.groups.aggregate import without_idle
from tfcompare.compare.matching.plain_names import plain_paths
from tfcompare.schema import SIDES
from tfcompare.schema.arrays import Bools

_TRANSFORMATION = re.compile(r"(?:\w+\()+\)+|gradient_tape|gradients(?:_\d+)?|checkpoint|rematted_computation")
"""What JAX and TensorFlow put around the names of layers whose gradient they compute."""
_FEWEST_OPS = 2
"""Of a layer: an op with a scope of its own, such as an optimizer's, is none."""


@dataclass(frozen=True)
class LoneLayer:
    """A scope that only one side has: its name, without the scopes around it, the `side` that has it (0 for the
    baseline), and the self time of its ops and their gradients, in µs, as the sums of the diff are."""

    name: str
    side: int
    self_time_us: float


def lone_layers(diff: pd.DataFrame) -> list[LoneLayer]:
    """The outermost scopes of a diff of ops of which only one side has ops, those with most time first."""
    ops = without_idle(diff)
    is_here = [ops[f"self_time_us_{role}"].notna().to_numpy() for role in SIDES]
    is_matched = is_here[0] & is_here[1]
    names = [ops["op_name"].where(is_here[0], ""), ops["op_name_candidate"].where(is_here[1], "")]
    paths = plain_paths(*(set(side) - {""} for side in names))
    scopes = [[tuple(_scopes(paths.get(name, ""))) for name in side] for side in names]
    ops_themselves = {"/".join(_parts(path)) for path in paths.values()}  # their gradients' scopes, where they made one
    found = []
    for side, role in enumerate(SIDES):
        # A number that the framework gives a layer may be that of another one on the other side, which is matched.
        known = _all_of(scopes[side], is_matched) | _all_of(scopes[1 - side], is_here[1 - side] & ~is_matched)
        known |= ops_themselves
        times: dict[str, list[float]] = {}
        for own, time_us in zip(scopes[side], ops[f"self_time_us_{role}"].tolist(), strict=True):
            if outermost := next((scope for scope in own if scope not in known), ""):
                times.setdefault(outermost, []).append(time_us)
        found += [
            LoneLayer(scope.rpartition("/")[2], side, sum(of_ops))
            for scope, of_ops in times.items()
            if len(of_ops) >= _FEWEST_OPS
        ]
    return sorted(found, key=lambda one: (-one.self_time_us, one.side, one.name))


def layer_of(op_name: str) -> str:
    """The innermost scope of an op, or the op's own name without any."""
    scopes = list(_scopes(plain_paths([op_name])[op_name]))
    return (scopes[-1] if scopes else op_name).rpartition("/")[2]


def _all_of(scopes: Sequence[tuple[str, ...]], is_counted: Bools) -> set[str]:
    return {scope for own, counts in zip(scopes, is_counted.tolist(), strict=True) if counts for scope in own}


def _scopes(path: str) -> Iterator[str]:
    """The scopes around an op, the outermost first, without those of gradients."""
    parts = _parts(path)
    yield from ("/".join(parts[:depth]) for depth in range(1, len(parts)))


def _parts(path: str) -> list[str]:
    """The scopes of an op and the op, without those of gradients."""
    *scopes, op = path.split("/")
    return [*(scope for scope in scopes if not _TRANSFORMATION.fullmatch(scope)), op]
