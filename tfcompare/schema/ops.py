"""Tables about ops on hosts and devices."""

from tfcompare.schema.columns import (
    HOST_KEY,
    OP_NAME_KEY,
    OP_TYPE_KEY,
    SIDE_KEY,
    STEP_KEY,
    Column,
    Table,
    key,
    level,
    text,
    total,
)

_WALL_TIME = (
    "What the op adds to the steps: an instant of a step is divided equally among the innermost ops that run then and "
    "that the instant's part is made of"
)

_OF_INSTRUCTIONS = ", of XLA programs; missing unless known for all of the op's time."

OP_STATS = Table(
    "op_stats",
    "One row for each op on host, device or SparseCores, summed over the profile; an IDLE row on host and device.",
    (
        HOST_KEY,
        SIDE_KEY,
        OP_TYPE_KEY,
        OP_NAME_KEY,
        total("occurrences", "", "Occurrences", "How often the op ran.", "int64"),
        total("total_time_us", "µs", "Total time", "Time between the op's begin and end, ops within it included."),
        total("self_time_us", "µs", "Self time", "Total time less that of the ops within it."),
        total("wall_time_us", "µs", "Wall time", _WALL_TIME + "; missing without steps, and for IDLE."),
        Column("is_eager", "bool", "flag", "", "Eager", "Whether the op was run eagerly, outside a tf.function."),
        total("flops", "FLOP", "FLOPs", "Floating-point operations of all its instructions" + _OF_INSTRUCTIONS),
        total("bytes_accessed", "bytes", "Bytes accessed", "Bytes read and written at least" + _OF_INSTRUCTIONS),
        level("flops_per_s", "FLOP/s", "FLOP rate", "FLOPs by total time; missing where unknown."),
        level("bandwidth_bytes_per_s", "bytes/s", "Bandwidth", "Bytes accessed by total time; missing where unknown."),
        level("operational_intensity", "FLOP/byte", "Intensity", "FLOPs per byte accessed; missing where unknown."),
        text("bound_by", "Bound by", "`compute` or `memory`: what its least time is spent on; empty where unknown."),
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
        total("wall_time_us", "µs", "Wall time", _WALL_TIME + "; missing without steps."),
    ),
    has_diff=False,
)

ANNOTATION = "annotation"
FUNCTION = "Python function"

HOST_ANNOTATIONS = Table(
    "host_annotations",
    "One row for each name that the program annotates on its threads, and for each Python function that the profiler "
    "traced. They contain ops, so their times do not add up with those of ops.",
    (
        HOST_KEY,
        key("kind", "Kind", f"`{ANNOTATION}`, as by `TraceAnnotation` or `tf.profiler.experimental.Trace`, or "
            f"`{FUNCTION}`."),
        key("name", "Name", "As the program gave it; of a function its file, without the line, and its name."),
        total("occurrences", "", "Occurrences", "How often it ran.", "int64"),
        total("total_time_us", "µs", "Total time", "Time between its begin and end; calls within others count too."),
        total("self_time_us", "µs", "Self time", "Total time less that of ops and annotations within it on the same "
              "thread, of a function also less that of functions within it."),
        total("wall_time_us", "µs", "Wall time", "What it adds to the steps: time on the thread of their marker in "
              "which no op runs, and it is the innermost annotation, or outside of annotations the innermost "
              "function; missing without steps."),
    ),
    headline="self_time_us",
)  # fmt: skip

IDLE_GAPS = Table(
    "idle_gaps",
    "One row for each step on each host: the longest stretch of it in which none of its ops runs.",
    (
        HOST_KEY,
        STEP_KEY,
        text("host_or_device", "Side", "`Device` where any op ran on one: no device is busy then; else `Host`."),
        Column("start_us", "float64", "time_point", "µs", "Start", "When it begins, since the start of the profile."),
        level("duration_us", "µs", "Length", "How long it is."),
        text("op_before", "Op before", "The op that ends last before it; empty where the step begins with it."),
        text("op_after", "Op after", "The op that begins next; empty where the step ends with it."),
    ),
    has_diff=False,
)
