"""Ops, on hosts and devices."""

from tfcompare.schema.columns import HOST_KEY, OP_NAME_KEY, OP_TYPE_KEY, SIDE_KEY, STEP_KEY, Column, Table, total

OP_STATS = Table(
    "op_stats",
    "One row for each op on host or device, summed over the profile; an IDLE row a side.",
    (
        HOST_KEY,
        SIDE_KEY,
        OP_TYPE_KEY,
        OP_NAME_KEY,
        total("occurrences", "", "Occurrences", "How often the op ran.", "int64"),
        total("total_time_us", "µs", "Total time", "Time between the op's begin and end, ops within it included."),
        total("self_time_us", "µs", "Self time", "Total time less that of the ops within it."),
        Column("is_eager", "bool", "flag", "", "Eager", "Whether the op was run eagerly, outside a tf.function."),
    ),
    headline="self_time_us",
)

OP_STEPS = Table(
    "op_steps",
    "One row for each op in each step: what happened outside of all steps is in no row.",
    (
        HOST_KEY,
        SIDE_KEY,
        OP_TYPE_KEY,
        OP_NAME_KEY,
        STEP_KEY,
        total("occurrences", "", "Occurrences", "How often the op ran in the step.", "int64"),
        total("self_time_us", "µs", "Self time", "The op's self time in the step."),
    ),
    has_diff=False,
)
