"""Matches the tf.data pipelines of the candidate to those of the baseline, and then their iterators."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from tfcompare.compare.tf_data.iterator_tree import Iterator
from tfcompare.compare.tf_data.iterators import EXACT, STRUCTURAL, likeness, pair_iterators

HostPipeline = tuple[str, str]
Counterparts = Mapping[HostPipeline, str]
"""Maps each (host, name) of a candidate's pipeline to the baseline's name; hosts have the baseline's names."""

MOST_LIKELY_PAIRS = 400
"""With more combinations of pipelines on one host, pipelines match by name alone."""

LEAST_LIKENESS = 0.5
"""Pipelines with different names match only if at least this share of their iterators match."""

OWN_NAME = "own_pipeline"


def iterators_of(rows: pd.DataFrame) -> list[Iterator]:
    """The rows of one execution in `tf_data` as arguments of `pair_iterators`, in the same order."""
    columns = ["iterator_id", "parent_id", "iterator", "long_name", "shapes", "types", "start_us", "calls"]
    return [
        Iterator(own, parent, iterator, long_name, f"{shapes} {types}", start_us, calls)
        for own, parent, iterator, long_name, shapes, types, start_us, calls in rows[columns].itertuples(index=False)
    ]


def slowest_executions(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of `tf_data` that belong to the slowest execution of each pipeline."""
    return rows[rows["execution"] == 0].reset_index(drop=True)


def pair_pipelines(baseline: pd.DataFrame, candidate: pd.DataFrame) -> dict[HostPipeline, str]:
    """Maps each matched (host, pipeline) of the candidate to the baseline's pipeline.

    Both frames are rows of `tf_data` with one execution per pipeline and the baseline's host names. Pipelines match by
    name on hosts where both sides have the same names. On other hosts names are unreliable, because pipelines are
    numbered in the order of their first call. There, pipelines with the most similar graphs match, the lowest numbers
    first, provided that the graphs are similar enough.
    """
    pairs: dict[HostPipeline, str] = {}
    of_hosts, of_their_hosts = _names_by_host(baseline), _names_by_host(candidate)
    for host in sorted(of_hosts.keys() & of_their_hosts.keys()):
        names, their_names = of_hosts[host], of_their_hosts[host]
        if names == their_names or len(names) * len(their_names) > MOST_LIKELY_PAIRS:
            pairs |= {(host, name): name for name in names & their_names}
        else:
            ours, theirs = (side[side["host"] == host] for side in (baseline, candidate))
            pairs |= {(host, theirs_): ours_ for ours_, theirs_ in _most_alike(ours, theirs)}
    return pairs


def _names_by_host(rows: pd.DataFrame) -> dict[str, set[str]]:
    """The pipelines of each host."""
    found: dict[str, set[str]] = {}
    for host, pipeline in rows[["host", "pipeline"]].drop_duplicates().itertuples(index=False, name=None):
        found.setdefault(host, set()).add(pipeline)
    return found


def _most_alike(ours: pd.DataFrame, theirs: pd.DataFrame) -> list[tuple[str, str]]:
    """The pairs (our pipeline, theirs) with the most similar graphs, one to one."""
    groups = (side.groupby("pipeline", sort=False) for side in (ours, theirs))
    sides = [{str(name): iterators_of(rows) for name, rows in of_side} for of_side in groups]
    ranked = sorted(
        (-likeness(one, other), abs(_number(name) - _number(their_name)), min(name, their_name), name, their_name)
        for name, one in sides[0].items()
        for their_name, other in sides[1].items()
        if name.partition(":")[0] == their_name.partition(":")[0]
    )
    pairs: list[tuple[str, str]] = []
    for unlike, _, _, name, their_name in ranked:
        if -unlike >= LEAST_LIKENESS and name in sides[0] and their_name in sides[1]:
            pairs.append((name, their_name))
            del sides[0][name], sides[1][their_name]
    return pairs


def _number(pipeline: str) -> int:
    digits = pipeline.partition(":")[2]
    return int(digits) if digits.isdecimal() else 0


def with_pipelines_of(baseline: pd.DataFrame, candidate: pd.DataFrame, counterparts: Counterparts) -> pd.DataFrame:
    """The candidate's rows with pipelines renamed as in the baseline; `OWN_NAME` holds the original names.

    An unmatched pipeline whose name now belongs to another one gets the suffix `(candidate)`.
    """
    taken = set(zip(baseline["host"], baseline["pipeline"], strict=True))
    names = [
        counterparts.get((host, own)) or (f"{own} (candidate)" if (host, own) in taken else own)
        for host, own in zip(candidate["host"], candidate["pipeline"], strict=True)
    ]
    renamed = pd.Series(names, index=candidate.index, dtype="str")
    return candidate.assign(**{OWN_NAME: candidate["pipeline"], "pipeline": renamed})


def pair_executions(baseline: pd.DataFrame, candidate: pd.DataFrame) -> pd.DataFrame:
    """Matches the rows of `tf_data` within pipelines of equal names; each pipeline must have one execution.

    Columns: `baseline` and `candidate`, the labels of matched rows; `match`, the tier of each pair. Rows of pipelines
    that were matched under different names are never `exact`.
    """
    found: list[tuple[int, int, str]] = []
    (ours, rows_of), (theirs, their_rows_of) = (_by_pipeline(side) for side in (baseline, candidate))
    renamed = set()
    if OWN_NAME in candidate:
        others = candidate[candidate[OWN_NAME] != candidate["pipeline"]]
        renamed = set(zip(others["host"], others["pipeline"], strict=True))
    labels, their_labels = baseline.index.tolist(), candidate.index.tolist()
    for key in filter(their_rows_of.__contains__, rows_of):
        rows, their_rows = rows_of[key], their_rows_of[key]
        for pair in pair_iterators([ours[row] for row in rows], [theirs[row] for row in their_rows]):
            match = STRUCTURAL if key in renamed and pair.tier == EXACT else pair.tier
            found.append((labels[rows[pair.baseline]], their_labels[their_rows[pair.candidate]], match))
    return pd.DataFrame(found, columns=["baseline", "candidate", "match"])


def _by_pipeline(side: pd.DataFrame) -> tuple[list[Iterator], dict[HostPipeline, list[int]]]:
    """All iterators of a side, and which of them are of each pipeline."""
    rows: dict[HostPipeline, list[int]] = {}
    for row, key in enumerate(zip(side["host"], side["pipeline"], strict=True)):
        rows.setdefault(key, []).append(row)
    return iterators_of(side), rows
