"""How the input pipelines of two programs are built differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfcompare.compare.diff import MATCHED
from tfcompare.compare.tf_data.iterator_tree import display_name
from tfcompare.compare.tf_data.pipelines import slowest_executions
from tfcompare.compare.tf_data.tf_data_graph import changed_settings
from tfcompare.schema import SIDES

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.compare.pair import Pair

_COMPARED = ("iterator", "parallelism", "buffer_limit", "autotune", "settings")
_TUNED = ("parallelism", "buffer_limit")
_USUAL = 0.5
"""The share of executions from which on an iterator belongs to how a pipeline is built: a reader that opens its next
file, or a buffer that is full, has others in few of them."""


@dataclass(frozen=True)
class InputChanges:
    """What differs between tf.data pipelines: settings of transformations of both, such as `Map → ParallelMap`, the
    slowest first, and the types of transformation that only one side has."""

    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def input_changes(pair: Pair) -> InputChanges:
    """What differs between the pipelines of both sides; nothing where one has none."""
    ours, theirs = pair.tables("tf_data")
    if ours.empty or theirs.empty:
        return InputChanges()
    rows = slowest_executions(pair.diff("tf_data"))
    rows = rows[rows["status"] == MATCHED]
    longest = rows[[f"self_time_us_{role}" for role in SIDES]].max(axis=1).sort_values(ascending=False, kind="stable")
    sides = [
        rows.loc[longest.index, [f"{name}_{role}" for name in _COMPARED]].set_axis(list(_COMPARED), axis=1)
        for role in SIDES
    ]
    # Of both sides, tf.data tunes these while it runs: they differ between captures of one program.
    are_tuned = (sides[0]["autotune"] == "true") & (sides[1]["autotune"] == "true")
    sides = [side.assign(**{name: side[name].mask(are_tuned) for name in _TUNED}) for side in sides]
    changed, replaced = dict[str, None](), set[str]()
    for (_, before), (_, after) in zip(*(side.iterrows() for side in sides), strict=True):
        names = [display_name(str(one["iterator"])) for one in (before, after)]
        if text := changed_settings(before, after):
            changed[text if names[0] != names[1] else f"{names[0]}: {text}"] = None
        if names[0] != names[1]:
            replaced |= {*names}
    alone = [
        tuple(sorted(_kinds(own, _USUAL) - _kinds(other, 0.0) - replaced))
        for own, other in ((ours, theirs), (theirs, ours))
    ]
    return InputChanges(tuple(changed), *alone)


def _kinds(rows: pd.DataFrame, share: float) -> set[str]:
    """The types of transformation in more than that share of the executions of `tf_data`."""
    executions = rows[["host", "pipeline", "execution"]].drop_duplicates()
    counts = rows[[*executions, "iterator"]].drop_duplicates()["iterator"].value_counts()
    return {display_name(str(kind)) for kind, count in counts.items() if count > share * len(executions)}
