"""Places ops that only the candidate has in the baseline's scopes, so that a layer has one name on both sides.

A compiled run has other ops in a layer than one that is not compiled, and some frameworks wrap all names of either.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import pandas as pd

from tfcompare.compare.matching.plain_names import plain_name

_Scopes = dict[str, str]
"""Maps scopes of the candidate to those of the baseline."""


def in_baseline_scopes(diff: pd.DataFrame) -> pd.Series:
    """The op name of each row of a diff of ops, with the innermost scope that is known in the baseline renamed to it.

    Only added rows change. A scope of the candidate is that of the baseline with which it shares most matched ops, else
    the only one of the same plain name (`plain_names`).
    """
    names = diff["op_name"].copy()
    for candidate in diff.loc[diff["status"] == "added", "candidate"].unique():
        rows = diff[diff["candidate"] == candidate]
        added = rows.loc[rows["status"] == "added", "op_name"]
        known = _by_name(rows.loc[rows["status"] != "added", "op_name"]), _by_matches(rows[rows["status"] == "matched"])
        names.loc[added.index] = [_placed(name, *known) for name in added]
    return names


def _by_matches(matched: pd.DataFrame) -> _Scopes:
    votes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for ours, theirs in zip(matched["op_name"], matched["op_name_candidate"], strict=True):
        for scope, other in zip(_scopes(ours), _scopes(theirs), strict=False):
            votes[other][scope] += 1
            if _leaf(scope) != _leaf(other):
                break
    return {theirs: max(sorted(found), key=found.__getitem__) for theirs, found in votes.items()}


def _by_name(names: pd.Series) -> _Scopes:
    """The baseline's scopes by plain name, if it is the only one of that name."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for scope in {scope for name in names for scope in _scopes(name)}:
        found[_plain(scope)].add(scope)
    return {plain: next(iter(scopes)) for plain, scopes in found.items() if len(scopes) == 1}


def _placed(name: str, by_name: _Scopes, by_matches: _Scopes) -> str:
    for scope in _scopes(name):
        ours = by_matches.get(scope) or by_name.get(_plain(scope))
        if ours is not None:
            return ours + name[len(scope) :]
    return name


def _scopes(name: str) -> list[str]:
    """The scopes that contain the op, innermost first."""
    parts = name.split("/")
    return ["/".join(parts[:depth]) for depth in range(len(parts) - 1, 0, -1)]


def _leaf(scope: str) -> str:
    return scope.rpartition("/")[2]


def _plain(scope: str) -> str:
    return plain_name(f"{scope}/").rstrip("/")
