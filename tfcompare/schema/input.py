"""Tables about input: ops of the input pipeline, and tf.data pipelines by call."""

from tfcompare.schema.columns import HOST_KEY, OP_NAME_KEY, Table, column, columns

ON_DEMAND = "reading on demand"
IN_ADVANCE = "reading in advance"
PREPROCESSING = "preprocessing"
ENQUEUING = "enqueuing to the device"
OTHER_INPUT = "other"

INPUT_CATEGORIES = (ON_DEMAND, IN_ADVANCE, PREPROCESSING, ENQUEUING, OTHER_INPUT)
"""Categories of input ops, in the wording and order of the TensorFlow Profiler guide."""

SLOW_CALL_US = 50.0
"""Above this duration, a call of an input pipeline makes the program wait (value from the guide)."""

INPUT_PIPELINE = Table(
    "input_pipeline",
    "One row for each op of the input pipeline, summed over the profile.",
    (HOST_KEY, OP_NAME_KEY)
    + columns(f"""
        category key | Category | What the op does: {", ".join(INPUT_CATEGORIES)}.
        occurrences sum int64 | Occurrences | How often the op ran.
        total_time_us sum µs | Total time | Time between the op's begin and end, ops within it included.
        self_time_us sum µs | Self time | Total time less that of the ops within it on the same thread.
    """),
    headline="self_time_us",
)

_PIPELINE_KEY = column("""
    pipeline key | Pipeline | `Host:0`, `Host:1`, …: the pipelines that feed the program; `Device:0`, …: those that only
        take elements from one of these to a device. Each kind is numbered by its first call.
""")

TF_DATA_PIPELINES = Table(
    "tf_data_pipelines",
    "One row for each pipeline of tf.data: how long the program waited for its elements. A call asks it for one.",
    (HOST_KEY, _PIPELINE_KEY)
    + columns(f"""
        calls sum int64 | Calls | How often the pipeline was asked for an element.
        slow_calls sum int64 | Slow calls | Calls that took longer than {SLOW_CALL_US:.0f} µs.
        min_latency_us min µs | Shortest call | Time the shortest call took.
        mean_latency_us mean µs | Mean call | Mean time of a call.
        max_latency_us max µs | Longest call | Time the longest call took.
        bottleneck text | Bottleneck | Long name of the iterator to blame for the longest call: of those it waited for,
            the one with the largest self time. Empty for pipelines that feed a device.
        bottleneck_self_time_us level µs | Bottleneck's self time | Self time of the bottleneck in the longest call. Its
            calls add up, those that ran in parallel or ahead of time included, so it can exceed the call. 0 without a
            bottleneck.
        feeds_device flag | Feeds a device | Whether it takes elements to a device.
        executions_kept level int64 | Executions stored | How many of the calls, the slowest, are in `tf_data`.
    """),
    headline="mean_latency_us",
)

TF_DATA_CALLS = Table(
    "tf_data_calls",
    "One row for each call of a pipeline: how long the program waited for that element.",
    (HOST_KEY, _PIPELINE_KEY)
    + columns("""
        call key int64 | Call | The call's position among those of its pipeline, from 0 in the order of time.
        start_us time_point µs | Start | When it was called, since the profile's start.
        latency_us level µs | Latency | From the call to its end.
    """),
    has_diff=False,
)

TF_DATA = Table(
    "tf_data",
    "One row for each iterator in each execution of a pipeline: an execution is one call and all that it led to.",
    (HOST_KEY, _PIPELINE_KEY)
    + columns("""
        execution key int64 | Execution | Rank of the execution among those of its pipeline, 0 the slowest.
        iterator_id key | Iterator id | The iterator's id, an unsigned 64-bit number.
        long_name text | Long name | The iterator's name with those above it, e.g. `Iterator::Root::Prefetch::Map`.
        iterator text | Iterator | The last part of the long name, e.g. `Map`.
        parent_id text | Parent id | Id of the iterator that called it first; empty for the pipeline's own iterator.
        calls level int64 | Calls | How often the iterator was called in the execution.
        start_us time_point µs | Start | Its first call, since the start of the profile.
        total_duration_us level µs | Total duration | Durations of its calls, added up.
        self_time_us level µs | Self time | Time of its calls in which none of those it called was running.
        on_critical_path flag | On the critical path | Whether the execution waited for it to end.
        is_bottleneck flag | Bottleneck | Whether it is the execution's bottleneck.
        parallelism level Int64 | Parallelism | Most calls that it was allowed to run in parallel.
        buffer_limit level Int64 | Buffer limit | Most elements that it was allowed to keep ready.
        buffered_elements level | Buffered elements | Elements it had ready when called, mean over the calls.
        element_size_bytes level Int64 bytes | Element size | Size of the element that the call brought.
        autotune text | Autotune | `true` or `false`: whether tf.data may tune its parallelism or buffer.
        dataset text | Dataset | The iterator's dataset in the program, e.g. `MapDataset:3`.
        shapes text | Shapes | Shapes of the elements' components.
        types text | Types | Types of the elements' components.
        settings text | Settings | Other settings of the transformation.
    """),
    headline="self_time_us",
)
