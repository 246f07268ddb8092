"""What hosts do outside of ops: annotations of the program and Python functions, on the pages of ops and of input."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd

from tfcompare import schema
from tfcompare.compare.pair import Pair
from tfcompare.frames.host_annotations import gets_input
from tfcompare.views.blocks import Block, Section, Table
from tfcompare.views.steps.figures import has_step_times
from tfcompare.views.view import CHANGE, by_role, cached_per_pair, everything, largest_first

TITLE = "Annotations and Python functions"
HELP = (
    "What the program annotates (`TraceAnnotation`, `tf.profiler.experimental.Trace`) and the Python functions that "
    "the profiler traced. They contain ops, so they do not add up with them. The wall time is what they add to the "
    "steps: time in which no op runs."
)


def section(pair: Pair) -> Iterator[Block]:
    """Every annotation and function of the runs shown; nothing without any."""
    if any(len(table) for table in pair.tables("host_annotations")):
        yield Section(TITLE, lambda: [table(pair, pair.diff("host_annotations"))], True, help=HELP)


@cached_per_pair
def input_annotations(pair: Pair) -> pd.DataFrame:
    """The rows that get input, by their names."""
    rows = pair.diff("host_annotations")
    return rows[[gets_input(kind, name) for kind, name in zip(rows["kind"], rows["name"], strict=True)]]


def table(pair: Pair, rows: pd.DataFrame, title: str = "Every annotation and function") -> Table:
    """The table of these rows of the diff."""
    wall_time = by_role("wall_time_us", CHANGE) if any(map(has_step_times, pair.runs)) else []
    self_time, host = by_role("self_time_us", CHANGE), ["host"] if rows["host"].nunique() > 1 else []
    others = [*by_role("occurrences", CHANGE), *by_role("total_time_us", CHANGE)]
    return Table(
        schema.HOST_ANNOTATIONS,
        title,
        largest_first(pair, schema.HOST_ANNOTATIONS, rows),
        ["name", "kind", *host, *(wall_time or self_time)],
        pair.is_single,
        ["name", "kind", "host", *wall_time, *self_time, *others, "status", "match"],
        nothing="Nothing was annotated, and no Python function was traced.",
        everything=partial(everything, pair, schema.HOST_ANNOTATIONS, lambda found: found),
        address="annotations_",
        sums_per=pair.sums_per(),
    )
