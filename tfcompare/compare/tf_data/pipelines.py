"""Which tf.data pipeline of the candidate is which of the baseline, and which of their iterators stand side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tfcompare.compare.tf_data.iterator_tree import Iterator
from tfcompare.compare.tf_data.iterators import EXACT, STRUCTURAL, likeness, pair_iterators

HostPipeline = tuple[str, str]
Counterparts = Mapping[HostPipeline, str]
"""The baseline's name for the candidate's pipeline of that (host, name); hosts have the baseline's names."""

MOST_LIKELY_PAIRS = 400
"""With more combinations of pipelines on one host than that, pipelines pair by name alone."""

LEAST_LIKENESS = 0.5
"""Pipelines of different names stand side by side only where at least half of their iterators have a counterpart."""

OWN_NAME = "own_pipeline"


@dataclass(frozen=True)
class PairedRows:
    """Rows of two frames by their labels, and the tier of each pair."""

    baseline: list[int]
    candidate: list[int]
    match: list[str]


def iterators_of(rows: pd.DataFrame) -> list[Iterator]:
    """The rows of one execution in `tf_data` as what `pair_iterators` takes, in their order."""
    columns = ["iterator_id", "parent_id", "iterator", "long_name", "shapes", "types", "start_us", "calls"]
    return [
        Iterator(own, parent, iterator, long_name, f"{shapes} {types}", start_us, calls)
        for own, parent, iterator, long_name, shapes, types, start_us, calls in rows[columns].itertuples(index=False)
    ]


def slowest_executions(rows: pd.DataFrame) -> pd.DataFrame:
    """Of rows of `tf_data` those of the slowest execution of each pipeline."""
    return rows[rows["execution"] == 0].reset_index(drop=True)


def pair_pipelines(baseline: pd.DataFrame, candidate: pd.DataFrame) -> dict[HostPipeline, str]:
    """The baseline's pipeline for each of the candidate's (host, pipeline) that has a counterpart.

    Both are rows of `tf_data`, one execution of each pipeline, hosts named as the baseline's. On a host where both
    sides have the same names, these pair. Elsewhere the numbers say nothing, since pipelines are numbered by their
    first call: those whose graphs are most alike pair, the lowest numbers first, and none whose graphs are too
    different.
    """
    pairs: dict[HostPipeline, str] = {}
    for host in sorted(set(baseline["host"]) & set(candidate["host"])):
        ours, theirs = (side[side["host"] == host] for side in (baseline, candidate))
        names, their_names = (list(dict.fromkeys(side["pipeline"])) for side in (ours, theirs))
        common = set(names) & set(their_names)
        if set(names) == set(their_names) or len(names) * len(their_names) > MOST_LIKELY_PAIRS:
            pairs |= {(host, name): name for name in common}
        else:
            pairs |= {(host, theirs_): ours_ for ours_, theirs_ in _most_alike(ours, theirs)}
    return pairs


def _most_alike(ours: pd.DataFrame, theirs: pd.DataFrame) -> list[tuple[str, str]]:
    """(our pipeline, theirs), each in one pair at most."""
    sides = [
        {str(name): iterators_of(rows) for name, rows in side.groupby("pipeline", sort=False)}
        for side in (ours, theirs)
    ]
    ranked = sorted(
        (-likeness(one, other), abs(_number(name) - _number(their_name)), min(name, their_name), name, their_name)
        for name, one in sides[0].items()
        for their_name, other in sides[1].items()
        if _kind(name) == _kind(their_name)
    )
    pairs: list[tuple[str, str]] = []
    for unlike, _, _, name, their_name in ranked:
        if -unlike >= LEAST_LIKENESS and name in sides[0] and their_name in sides[1]:
            pairs.append((name, their_name))
            del sides[0][name], sides[1][their_name]
    return pairs


def _kind(pipeline: str) -> str:
    return pipeline.partition(":")[0]


def _number(pipeline: str) -> int:
    digits = pipeline.partition(":")[2]
    return int(digits) if digits.isdecimal() else 0


def with_pipelines_of(baseline: pd.DataFrame, candidate: pd.DataFrame, counterparts: Counterparts) -> pd.DataFrame:
    """The candidate's rows under the baseline's names for their pipelines, which `OWN_NAME` still tells.

    One without a counterpart whose name another one now has is told apart by `(candidate)`.
    """
    taken = set(zip(baseline["host"], baseline["pipeline"], strict=True))
    names = [
        counterparts.get((host, own)) or (f"{own} (candidate)" if (host, own) in taken else own)
        for host, own in zip(candidate["host"], candidate["pipeline"], strict=True)
    ]
    renamed = pd.Series(names, index=candidate.index, dtype="str")
    return candidate.assign(**{OWN_NAME: candidate["pipeline"], "pipeline": renamed})


def pair_executions(baseline: pd.DataFrame, candidate: pd.DataFrame) -> PairedRows:
    """Pair the rows of `tf_data`, of which one execution each is there, pipeline by pipeline of the same name.

    Rows of pipelines that were paired under two names are never `exact`.
    """
    out = PairedRows([], [], [])
    theirs = candidate.groupby(["host", "pipeline"], sort=False).indices
    for key, positions in baseline.groupby(["host", "pipeline"], sort=False).indices.items():
        if key not in theirs:
            continue
        rows, other = baseline.iloc[positions], candidate.iloc[theirs[key]]
        renamed = OWN_NAME in other and bool(np.any(other[OWN_NAME] != other["pipeline"]))
        for pair in pair_iterators(iterators_of(rows), iterators_of(other)):
            out.baseline.append(int(rows.index[pair.baseline]))
            out.candidate.append(int(other.index[pair.candidate]))
            out.match.append(STRUCTURAL if renamed and pair.tier == EXACT else pair.tier)
    return out
