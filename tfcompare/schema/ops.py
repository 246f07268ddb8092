"""Tables about ops on hosts and devices."""

from tfcompare.schema.columns import HOST_KEY, OP_NAME_KEY, OP_TYPE_KEY, SIDE_KEY, STEP_KEY, Table, columns

_WALL_TIME = (
    "What the op adds to the steps: an instant of a step is divided equally among the innermost ops that run then and "
    "that the instant's part is made of"
)

_OF_INSTRUCTIONS = ", of XLA programs; missing unless known for all of the op's time."

OP_STATS = Table(
    "op_stats",
    "One row for each op on host, device or SparseCores, summed over the profile; an IDLE row on host and device.",
    (HOST_KEY, SIDE_KEY, OP_TYPE_KEY, OP_NAME_KEY)
    + columns(f"""
        occurrences sum int64 | Occurrences | How often the op ran.
        total_time_us sum µs | Total time | Time between the op's begin and end, ops within it included.
        self_time_us sum µs | Self time | Total time less that of the ops within it.
        wall_time_us sum µs | Wall time | {_WALL_TIME}; missing without steps, and for IDLE.
        is_eager flag | Eager | Whether the op was run eagerly, outside a tf.function.
        flops sum FLOP | FLOPs | Floating-point operations of all its instructions{_OF_INSTRUCTIONS}
        bytes_accessed sum bytes | Bytes accessed | Bytes read and written at least{_OF_INSTRUCTIONS}
        flops_per_s level FLOP/s | FLOP rate | FLOPs by total time; missing where unknown.
        bandwidth_bytes_per_s level bytes/s | Bandwidth | Bytes accessed by total time; missing where unknown.
        operational_intensity level FLOP/byte | Intensity | FLOPs per byte accessed; missing where unknown.
        bound_by text | Bound by | `compute` or `memory`: what its least time is spent on; empty where unknown.
    """),
    headline="self_time_us",
)

OP_STEPS = Table(
    "op_steps",
    "One row for each op in each step: what happened outside of all steps is in no row.",
    (HOST_KEY, SIDE_KEY, OP_TYPE_KEY, OP_NAME_KEY, STEP_KEY)
    + columns(f"""
        occurrences sum int64 | Occurrences | How often the op ran in the step.
        self_time_us sum µs | Self time | The op's self time in the step.
        wall_time_us sum µs | Wall time | {_WALL_TIME}; missing without steps.
    """),
    has_diff=False,
)

OP_SHAPES = Table(
    "op_shapes",
    "One row for each array that an op is known to make or use: of an op of XLA programs those of its instruction with "
    "most self time, of another op the result for which it allocated memory most often, and the operands with which it "
    "ran most often, where they were recorded.",
    (HOST_KEY, OP_NAME_KEY)
    + columns("""
        tensor key | Array | `result`, or an operand: `operand 1`, `operand 2`, …; arrays of tuples are counted one by
            one.
        shape text | Shape | Its type and dimensions in XLA's notation, e.g. `f32[3,3,512,128]`.
        dimensions text | Dimensions | What its dimensions are, where the op tells: `batch`, `height`, `width`,
            `channels`, `filters`, `sequence`, `features`, else their position, from 0; empty where it tells none.
        occurrences sum int64 | Occurrences | Executions of the instruction, allocations of the result, or
            executions with these operands.
    """),
    has_diff=False,
)

ANNOTATION = "annotation"
FUNCTION = "Python function"

HOST_ANNOTATIONS = Table(
    "host_annotations",
    "One row for each name that the program annotates on its threads, and for each Python function that the profiler "
    "traced. They contain ops, so their times do not add up with those of ops.",
    (HOST_KEY,)
    + columns(f"""
        kind key | Kind | `{ANNOTATION}`, as by `TraceAnnotation` or `tf.profiler.experimental.Trace`, or `{FUNCTION}`.
        name key | Name | As the program gave it; of a function its file, without the line, and its name.
        occurrences sum int64 | Occurrences | How often it ran.
        total_time_us sum µs | Total time | Time between its begin and end; calls within others count too.
        self_time_us sum µs | Self time | Total time less that of ops and annotations within it on the same thread, of a
            function also less that of functions within it.
        wall_time_us sum µs | Wall time | What it adds to the steps: time on the thread of their marker in which no op
            runs, and it is the innermost annotation, or outside of annotations the innermost function; missing without
            steps.
    """),
    headline="self_time_us",
)

IDLE_GAPS = Table(
    "idle_gaps",
    "One row for each step on each host: the longest stretch of it in which none of its ops runs.",
    (HOST_KEY, STEP_KEY)
    + columns("""
        host_or_device text | Side | `Device` where any op ran on one: no device is busy then; else `Host`.
        start_us time_point µs | Start | When it begins, since the start of the profile.
        duration_us level µs | Length | How long it is.
        op_before text | Op before | The op that ends last before it; empty where the step begins with it.
        op_after text | Op after | The op that begins next; empty where the step ends with it.
    """),
    has_diff=False,
)
