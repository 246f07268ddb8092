"""Replicates of the compared runs: checks which are usable, and renames their rows to match the compared run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.compare.comparability import batch_size, mismatches
from tfcompare.compare.groups.aggregate import without_idle
from tfcompare.compare.matching.matching import Evidence, pair_rows, with_hosts_of
from tfcompare.compare.matching.name_tree import family
from tfcompare.compare.matching.plain_names import plain_name, plain_type
from tfcompare.compare.matching.tiers import PROBABLE
from tfcompare.compare.per_device import computing_devices
from tfcompare.compare.stats.estimates import FEWEST_STEPS
from tfcompare.frames.grouping import combinations
from tfcompare.tables.frames import codes_of
from tfcompare.text import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfcompare.run import Run

_LEAST_OPS, _LEAST_SHAPES = 0.98, 0.9
"""Two captures of the guide's example share all ops and 93 % of the shapes, after a change of its filters 19 %."""
_LEAST_RELATED = 0.5
"""A change of a model leaves most ops: variants of one program share 77 % and more, unrelated ones 43 % and less."""
_NO_COUNTERPART = " (of another capture)"
"""Follows the name of an op of a replicate that is not the op of that name in the run that it replicates."""
_OF_PRIMARY = "_of_primary"


@dataclass(frozen=True)
class AcceptedReplicates:
    """The accepted replicates, by the id of their run, and a sentence on each rejected one."""

    repeats: dict[str, tuple[Run, ...]]
    refused: tuple[str, ...]


def accept_replicates(compared: Sequence[Run], repeats: Mapping[str, Sequence[Run]]) -> AcceptedReplicates:
    """Checks the `repeats` of the compared runs and rejects unusable ones.

    Rejected are copies of a capture already in use, captures on another device or with another batch size
    (`Mismatch.is_hard`), and captures with too few steps for a test.
    """
    called = _names_of([*compared, *(run for runs in repeats.values() for run in runs)])
    taken = {run.content_id: run for run in reversed(compared)}
    accepted: dict[str, tuple[Run, ...]] = {}
    refused = []
    for primary in {run.id: run for run in compared}.values():  # a run may be compared with itself
        for run in repeats.get(primary.id, ()):
            if why := _why_not(primary, run, taken, called):
                refused.append(f"{called[run.path]} is not counted as a replicate of {called[primary.path]}: {why}.")
                continue
            taken[run.content_id] = run
            accepted[primary.id] = (*accepted.get(primary.id, ()), run)
    return AcceptedReplicates(accepted, tuple(refused))


def accept_captures(
    sides: Sequence[Sequence[Run]], compared: Sequence[Run], repeats: Mapping[str, Sequence[Run]] = MappingProxyType({})
) -> AcceptedReplicates:
    """`repeats` with the accepted captures of each side but the first, for which `compared` stands."""
    beside: dict[str, dict[PurePath, Run]] = {run.id: {} for run in compared}
    for run, side in zip(compared, sides, strict=True):  # a run may be on several sides
        beside[run.id] |= {more.path: more for more in side[1:]}
    accepted = accept_replicates(compared, {run_id: [*runs.values()] for run_id, runs in beside.items()})
    every = {run_id: (*accepted.repeats.get(run_id, ()), *repeats.get(run_id, ())) for run_id in {**beside, **repeats}}
    return AcceptedReplicates({run_id: runs for run_id, runs in every.items() if runs}, accepted.refused)


def _why_not(primary: Run, run: Run, taken: Mapping[str, Run], called: Mapping[PurePath, str]) -> str:
    if twin := taken.get(run.content_id):
        if twin.path == run.path:
            return "it is compared, or counted, already"
        return f"it is a copy of {called[twin.path]}, so it adds nothing"
    if hard := [m for m in mismatches(primary, run) if m.is_hard]:
        differences = ", ".join(f"{m.label.lower()} ({m.baseline} and {m.candidate})" for m in hard)
        return f"the two differ in {differences}"
    if primary.info.has_step_times and run.why_untimed:
        return run.why_untimed
    steps = run.info.steps_included if run.info.has_steps else 0
    if steps < FEWEST_STEPS:
        return f"it has {steps} included steps, and a verdict takes {FEWEST_STEPS} of each capture"
    return ""


def _names_of(runs: Sequence[Run]) -> dict[PurePath, str]:
    """The display name of each run's path: the first run's name, or the path if another run has the same name."""
    named = {run.path: run.name for run in reversed(runs)}
    count = Counter(named.values())
    return {path: name if count[name] == 1 else text_of(str(path)) for path, name in named.items()}


@dataclass(frozen=True)
class Program:
    """What identifies the program of a run and the machine that it ran on.

    `ops`: how many ops there are of each (side, type, name without numbers). `shaped`: the same with the shapes that an
    op allocated, or else how its kernels were launched, where that is known.
    """

    machine: tuple[str, str, int, int | None, int]
    ops: Counter[tuple[str, str, str]]
    shaped: frozenset[tuple[str, str, str, str]]

    def may_be(self, other: Program) -> bool:
        """Whether both may be captures of one program on one kind of machine; False if no shapes are known.

        An op reuses the memory of its input in one process and not in another, so a few shapes may differ.
        """
        if self.machine != other.machine or not self.shaped or not other.shaped:
            return False
        shapes = len(self.shaped & other.shaped) / len(self.shaped | other.shaped)
        return self._common_ops(other) >= _LEAST_OPS and shapes >= _LEAST_SHAPES

    def is_related(self, other: Program) -> bool:
        """Whether they may be variants of one program on one kind of device, so that their step times compare."""
        return self.machine[0] == other.machine[0] and self._common_ops(other) >= _LEAST_RELATED

    def _common_ops(self, other: Program) -> float:
        every = (self.ops | other.ops).total()
        return (self.ops & other.ops).total() / every if every else 0.0


def program_of(run: Run) -> Program:
    """The program of a run, to find runs that may be replicates of it."""
    evidence = run.tables.op_evidence()
    shapes = evidence.shapes or evidence.launches
    rows = without_idle(run.table("op_stats"))[["host_or_device", "op_type", "op_name"]].drop_duplicates()
    named = []
    for place, op_type, name in rows.itertuples(index=False):
        stem = "/".join(family(label)[0] for label in plain_name(name).split("/"))
        named.append((place, plain_type(op_type), stem, shapes.get(name, "")))
    machine = run.info.device_type, run.info.device_name, computing_devices(run), batch_size(run), len(run.host_names)
    return Program(machine, Counter(op[:3] for op in named), frozenset(op for op in named if op[3]))


def keys_of_primary(
    table: schema.Table, ours: pd.DataFrame, theirs: pd.DataFrame, evidence: Callable[[], Evidence]
) -> pd.DataFrame | None:
    """The keys that the rows of a replicate have in the run that it replicates; None if both have the same keys.

    `ours` are the rows of that run, `theirs` those of the replicate; `evidence` is asked for only if they differ. The
    result has the keys of each of the latter, and with the suffix `_of_primary` those meant. A framework may number the
    ops of one program differently in each process (`conv2d_1`), so rows are matched as in a diff, except for guesses,
    since a wrong one would go unnoticed. An unmatched row keeps its keys, but for its name where another row of the run
    has that.
    """
    keys = list(table.keys)
    if all(ours[key].equals(theirs[key]) for key in keys) or (known := _keys(ours, table)) == _keys(theirs, table):
        return None
    alike = with_hosts_of(ours, theirs) if "host" in keys else theirs
    pairing = pair_rows(table, ours, alike, evidence=evidence())
    is_sure = (pairing.baseline >= 0) & (pairing.candidate >= 0) & (pairing.match != PROBABLE)
    meant = {key: alike[key].array.copy() for key in keys}
    if "op_name" in keys:
        every = zip(*(cells.tolist() for cells in meant.values()), strict=True)
        is_taken = np.array([row in known for row in every], np.bool_)
        meant["op_name"][is_taken] += _NO_COUNTERPART
    for key, cells in meant.items():
        cells[pairing.candidate[is_sure]] = ours[key].array[pairing.baseline[is_sure]]
    return theirs[keys].reset_index(drop=True).assign(**{f"{key}{_OF_PRIMARY}": meant[key] for key in keys})


def with_keys_of(meant: pd.DataFrame | None, rows: pd.DataFrame, keys: Sequence[str] = ()) -> pd.DataFrame:
    """Rows of a replicate, or their keys, with the keys of `keys_of_primary`; with these `keys` alone, if any."""
    if meant is None:
        return rows
    keys = list(keys) or [name for name in meant.columns if not name.endswith(_OF_PRIMARY)]
    code = combinations(*(codes_of(meant[key], rows[key]) for key in keys))[1]
    row = np.full(code.max(initial=-1) + 1, -1)
    row[code[: len(meant)][::-1]] = np.arange(len(meant))[::-1]  # the first of equal ones
    found = row[code[len(meant) :]]
    renamed = {key: rows[key].array.copy() for key in keys}
    for key, cells in renamed.items():
        names = meant[f"{key}{_OF_PRIMARY}"].array.take(found)
        is_known = (found >= 0) & ~np.asarray(names.isna())
        cells[is_known] = names[is_known]
    return rows.assign(**renamed)


def _keys(rows: pd.DataFrame, table: schema.Table) -> set[tuple[object, ...]]:
    return set(zip(*(rows[key].tolist() for key in table.keys), strict=True))
