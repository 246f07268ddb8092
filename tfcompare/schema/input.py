"""Tables about input: ops of the input pipeline, and tf.data pipelines by call."""

from tfcompare.schema.columns import HOST_KEY, OP_NAME_KEY, Column, Table, key, level, text, total

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
    (
        HOST_KEY,
        OP_NAME_KEY,
        key("category", "Category", f"What the op does: {', '.join(INPUT_CATEGORIES)}."),
        total("occurrences", "", "Occurrences", "How often the op ran.", "int64"),
        total("total_time_us", "µs", "Total time", "Time between the op's begin and end, ops within it included."),
        total("self_time_us", "µs", "Self time", "Total time less that of the ops within it on the same thread."),
    ),
    headline="self_time_us",
)

_PIPELINE_KEY = key(
    "pipeline",
    "Pipeline",
    "`Host:0`, `Host:1`, …: the pipelines that feed the program; `Device:0`, …: those that only take elements from one "
    "of these to a device. Each kind is numbered by its first call.",
)

TF_DATA_PIPELINES = Table(
    "tf_data_pipelines",
    "One row for each pipeline of tf.data: how long the program waited for its elements. A call asks it for one.",
    (
        HOST_KEY,
        _PIPELINE_KEY,
        total("calls", "", "Calls", "How often the pipeline was asked for an element.", "int64"),
        total("slow_calls", "", "Slow calls", f"Calls that took longer than {SLOW_CALL_US:.0f} µs.", "int64"),
        Column("min_latency_us", "float64", "min", "µs", "Shortest call", "Time the shortest call took."),
        Column("mean_latency_us", "float64", "mean", "µs", "Mean call", "Mean time of a call."),
        Column("max_latency_us", "float64", "max", "µs", "Longest call", "Time the longest call took."),
        text(
            "bottleneck",
            "Bottleneck",
            "Long name of the iterator to blame for the longest call: of those it waited for, the one with the largest "
            "self time. Empty for pipelines that feed a device.",
        ),
        level(
            "bottleneck_self_time_us",
            "µs",
            "Bottleneck's self time",
            "Self time of the bottleneck in the longest call. Its calls add up, those that ran in parallel or ahead of "
            "time included, so it can exceed the call. 0 without a bottleneck.",
        ),
        Column("feeds_device", "bool", "flag", "", "Feeds a device", "Whether it takes elements to a device."),
        level(
            "executions_kept", "", "Executions stored", "How many of the calls, the slowest, are in `tf_data`.", "int64"
        ),
    ),
    headline="mean_latency_us",
)

TF_DATA_CALLS = Table(
    "tf_data_calls",
    "One row for each call of a pipeline: how long the program waited for that element.",
    (
        HOST_KEY,
        _PIPELINE_KEY,
        key("call", "Call", "The call's position among those of its pipeline, from 0 in the order of time.", "int64"),
        Column("start_us", "float64", "time_point", "µs", "Start", "When it was called, since the profile's start."),
        level("latency_us", "µs", "Latency", "From the call to its end."),
    ),
    has_diff=False,
)

TF_DATA = Table(
    "tf_data",
    "One row for each iterator in each execution of a pipeline: an execution is one call and all that it led to.",
    (
        HOST_KEY,
        _PIPELINE_KEY,
        key("execution", "Execution", "Rank of the execution among those of its pipeline, 0 the slowest.", "int64"),
        key("iterator_id", "Iterator id", "The iterator's id, an unsigned 64-bit number."),
        text(
            "long_name", "Long name", "The iterator's name with those above it, e.g. `Iterator::Root::Prefetch::Map`."
        ),
        text("iterator", "Iterator", "The last part of the long name, e.g. `Map`."),
        text(
            "parent_id", "Parent id", "Id of the iterator that called it first; empty for the pipeline's own iterator."
        ),
        level("calls", "", "Calls", "How often the iterator was called in the execution.", "int64"),
        Column("start_us", "float64", "time_point", "µs", "Start", "Its first call, since the start of the profile."),
        level("total_duration_us", "µs", "Total duration", "Durations of its calls, added up."),
        level("self_time_us", "µs", "Self time", "Time of its calls in which none of those it called was running."),
        Column(
            "on_critical_path",
            "bool",
            "flag",
            "",
            "On the critical path",
            "Whether the execution waited for it to end.",
        ),
        Column("is_bottleneck", "bool", "flag", "", "Bottleneck", "Whether it is the execution's bottleneck."),
        level("parallelism", "", "Parallelism", "Most calls that it was allowed to run in parallel.", "Int64"),
        level("buffer_limit", "", "Buffer limit", "Most elements that it was allowed to keep ready.", "Int64"),
        level("buffered_elements", "", "Buffered elements", "Elements it had ready when called, mean over the calls."),
        level("element_size_bytes", "bytes", "Element size", "Size of the element that the call brought.", "Int64"),
        text("autotune", "Autotune", "`true` or `false`: whether tf.data may tune its parallelism or buffer."),
        text("dataset", "Dataset", "The iterator's dataset in the program, e.g. `MapDataset:3`."),
        text("shapes", "Shapes", "Shapes of the elements' components."),
        text("types", "Types", "Types of the elements' components."),
        text("settings", "Settings", "Other settings of the transformation."),
    ),
    headline="self_time_us",
)
