"""The last of the pairing of ops: rows that no name and no place has paired, by likeness alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from tfcompare.compare.matching.guesses import Figures, likely_ops
from tfcompare.compare.matching.renamed_scopes import UNTYPED

_KEYS = ["host", "host_or_device", "op_type"]


def likely_rows(
    baseline: pd.DataFrame, candidate: pd.DataFrame, whole: tuple[pd.DataFrame, pd.DataFrame], pairs: pd.DataFrame
) -> pd.DataFrame:
    """Likely pairs among the rows of `op_stats` that are left of both sides.

    Columns: `baseline` and `candidate`, the rows' labels. Only ops of one side and type pair, and never across scopes
    that are paired otherwise. `whole` are all rows of either side, which counts and times are put in relation to;
    `pairs` are those that were found before.
    """
    scopes = _paired_scopes(*(whole[k].loc[pairs[side], "op_name"] for k, side in enumerate(("baseline", "candidate"))))
    ours, theirs = (dict(iter(side[~side["op_type"].isin(UNTYPED)].groupby(_KEYS))) for side in (baseline, candidate))
    found: list[tuple[int, int]] = []
    for key in ours.keys() & theirs.keys():
        sides = ours[key], theirs[key]
        likely = likely_ops(*(_figures(*of_side) for of_side in zip(sides, whole, scopes, strict=True)))
        found += [(sides[0].index[i], sides[1].index[j]) for i, j in likely]
    return pd.DataFrame(sorted(found), columns=["baseline", "candidate"], dtype=np.intp)


def _paired_scopes(ours: Iterable[str], theirs: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The baseline's name for each scope of baseline and candidate whose paired ops lie in one scope of the other."""
    pairs = {(_scope(b), _scope(c)) for b, c in zip(ours, theirs, strict=True)}
    counts, their_counts = (pd.Series([pair[k] for pair in pairs], dtype="str").value_counts() for k in (0, 1))
    sole = [(b, c) for b, c in pairs if b and c and counts[b] == 1 and their_counts[c] == 1]
    return {b: b for b, _ in sole}, {c: b for b, c in sole}


def _scope(name: str) -> str:
    return name.rpartition("/")[0]


def _innermost(name: str, scopes: Mapping[str, str]) -> str:
    """The baseline's name for the innermost scope of an op that has a counterpart; empty where none has."""
    scope = _scope(name)
    while scope and scope not in scopes:
        scope = _scope(scope)
    return scopes.get(scope, "")


def _figures(rows: pd.DataFrame, whole: pd.DataFrame, scopes: Mapping[str, str]) -> Figures:
    busy = whole[~whole["op_type"].isin(UNTYPED)]
    count, time = busy["occurrences"].sum(), busy["self_time_us"].sum()
    occurrences = rows["occurrences"].to_numpy(np.float64)
    per_occurrence = rows["self_time_us"].to_numpy(np.float64) / np.maximum(occurrences, 1)
    return Figures(
        rows["op_name"].tolist(),
        [_innermost(name, scopes) for name in rows["op_name"]],
        occurrences / max(count, 1),
        per_occurrence / max(time / max(count, 1), 1e-9),
    )
