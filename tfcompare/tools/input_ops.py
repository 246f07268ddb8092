"""The input pipeline on the host: where its time goes by what its ops do, in both runs, and what to try next."""

from __future__ import annotations

import math

import pandas as pd

from tfcompare.compare.aggregate import metric_in
from tfcompare.compare.diff import ADDED, REMOVED
from tfcompare.schema.input import ENQUEUING, IN_ADVANCE, INPUT_CATEGORIES, ON_DEMAND, OTHER_INPUT, PREPROCESSING

ROLES = ("baseline", "candidate")

GUIDE = "https://www.tensorflow.org/guide/profiler#input_pipeline_analyzer"

ADVICE = {
    ON_DEMAND: (
        "Files are read when the program asks for them. Read ahead: end the pipeline with "
        "`prefetch(tf.data.AUTOTUNE)`, read several files at once with "
        "`interleave(…, num_parallel_calls=tf.data.AUTOTUNE)`, and give `TFRecordDataset` a larger `buffer_size`."
    ),
    IN_ADVANCE: (
        "Files are read ahead already, and not fast enough. Let `interleave` read more of them at once "
        "(`cycle_length`, `num_parallel_calls`), enlarge the `buffer_size` of `TFRecordDataset` and of `prefetch`, or "
        "`cache()` what fits into memory."
    ),
    PREPROCESSING: (
        "Give `map` a `num_parallel_calls=tf.data.AUTOTUNE`, `batch` before `map` so that its function works on whole "
        "batches, `cache()` what is the same in every epoch, or prepare the data once, before the training. "
        "`prefetch` at the end lets this work overlap with the step."
    ),
    ENQUEUING: (
        "Send fewer, larger pieces: join small tensors, send narrow types (`uint8` images) and widen them on the "
        "device, and send ahead of time with `tf.data.experimental.prefetch_to_device`."
    ),
    OTHER_INPUT: (
        "These stages say of themselves neither that they read nor that they prepare. Where the input is not read with "
        "`tf.data` yet, that shows its steps and lets them run ahead and in parallel."
    ),
}
"""What to try where an input pipeline spends most of its time on one category, after the TensorFlow Profiler guide."""


PARALLEL_ALREADY = (
    "It runs in parallel already. Where processor cores are idle, allow it more calls at a time; else make its "
    "function cheaper (work on whole batches, decode no more than is needed), `cache()` what is the same in every "
    "epoch, or prepare the data once, before the training."
)
"""What to try where the preparing itself is done by a parallel transformation."""


OTHER_PREPARING = (
    "It transforms elements without a function of yours, so there is nothing in it to make parallel. Give it fewer or "
    "smaller elements to handle (`batch` before it, filter early, narrow types), `cache()` what is the same in every "
    "epoch, and let it work ahead of the step with `prefetch(tf.data.AUTOTUNE)` where it does not yet."
)
"""What to try where most of the preparing is done by a transformation that is no `map`."""


def advice(category: str, op_name: str) -> str:
    """What to try where most input time is of that category, and most of that in that op, in Markdown."""
    last = op_name.rpartition("::")[2]
    if category == PREPROCESSING and last.startswith("Parallel"):
        return PARALLEL_ALREADY
    if category == PREPROCESSING and op_name.startswith("Iterator::") and not last.startswith("Map"):
        return OTHER_PREPARING
    return ADVICE[category]


def with_shares(diff: pd.DataFrame) -> pd.DataFrame:
    """A diff of `input_pipeline` with shares of each side's self time of all input ops.

    Adds `input_self_share_<role>`, which add up to 1 over the rows of a side, and `input_total_share_<role>`, which
    need not: an op's total time holds that of the ops within.
    """
    columns = {}
    for role in ROLES:
        self_time, total_time = (
            diff[f"{metric_in(diff, name)}_{role}"].astype("float64") for name in ("self_time_us", "total_time_us")
        )
        whole = float(self_time.sum())
        for name, times in (("input_self_share", self_time), ("input_total_share", total_time)):
            columns[f"{name}_{role}"] = times / whole if whole > 0 else times * 0.0
    return diff.assign(**columns)


def category_times(diff: pd.DataFrame) -> pd.DataFrame:
    """The self time of the input ops by what they do, a row for each of `INPUT_CATEGORIES` in their order.

    Columns: `category`; `self_time_us_<role>` (per step where the diff is; missing on a side without any input op) and
    `share_<role>`, which add up to 1. `OTHER_INPUT` is left out where neither side has any.
    """
    metric = metric_in(diff, "self_time_us")
    times = pd.DataFrame({"category": pd.Series(INPUT_CATEGORIES, dtype="str")})
    for role, absent, key in (("baseline", ADDED, "category"), ("candidate", REMOVED, "category_candidate")):
        rows = diff[diff["status"] != absent]
        sums = rows[f"{metric}_{role}"].astype("float64").groupby(rows[key]).sum()
        of_side = times["category"].map(sums).astype("float64").fillna(0.0 if len(rows) else math.nan)
        whole = float(of_side.sum())
        times[f"self_time_us_{role}"] = of_side
        times[f"share_{role}"] = of_side / whole if whole > 0 else of_side
    is_empty = times[[f"self_time_us_{role}" for role in ROLES]].fillna(0.0).sum(axis=1) == 0
    return times[~(is_empty & (times["category"] == OTHER_INPUT))].reset_index(drop=True)


def host_input_time_us(categories: pd.DataFrame, role: str) -> float:
    """The self time of all input ops of one side of `category_times`; NaN where it has none."""
    return float(categories[f"self_time_us_{role}"].sum(min_count=1))


def dominant(categories: pd.DataFrame, role: str) -> tuple[str, float] | None:
    """(the category that most of a side's input time goes to, its share); None where it took no time."""
    shares = categories.set_index("category")[f"share_{role}"].dropna()
    if shares.empty or shares.max() <= 0:
        return None
    return str(shares.idxmax()), float(shares.max())


def longest_op(diff: pd.DataFrame, role: str, category: str) -> str:
    """The name, on that side, of the op of that category with the largest self time there; it has such an op."""
    key = "_candidate" if role == "candidate" else ""
    rows = diff[diff["status"] != (REMOVED if role == "candidate" else ADDED)]
    rows = rows[rows[f"category{key}"] == category]
    longest_first = rows.sort_values(f"{metric_in(diff, 'self_time_us')}_{role}", ascending=False, kind="stable")
    return str(longest_first[f"op_name{key}"].iloc[0])
