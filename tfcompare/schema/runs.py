"""What is known of a run as a whole, and its steps."""

from tfcompare.schema.columns import HOST_KEY, STEP_KEY, Column, Table, key, level, text

RUN_INFO = Table(
    "run_info",
    "One row on the run: where and when it was recorded, and how long its steps are.",
    (
        key("run", "Run", "The run's identity: its path relative to the place it was found under."),
        level("hosts", "", "Hosts", "Number of hosts that were read.", "int64"),
        text("host_names", "Host names", "The hosts' names, separated by commas."),
        text("framework", "Framework", "What recorded the profile, judged by its events: TensorFlow, JAX or empty."),
        text("device_type", "Device type", "`CPU`, `GPU` or `TPU`: where the run computed."),
        text("device_name", "Device", "The device's model as far as the profile tells it."),
        level(
            "device_count", "", "Devices", "Devices (GPUs, TPU cores) with recorded events, over all hosts.", "int64"
        ),
        Column("start_time", "datetime64[us, UTC]", "time_point", "UTC", "Recorded", "When the profile was started."),
        text(
            "start_time_source", "Time from", "`profile`, `folder name` or `file time`: where `start_time` comes from."
        ),
        level("duration_ms", "ms", "Profile length", "From the first event to the end of the last."),
        level("step_count", "", "Steps", "Steps found; of several hosts, the most.", "int64"),
        level("steps_included", "", "Steps counted", "Steps that the figures rest on.", "int64"),
        text("step_source", "Steps from", "What marked the steps; `whole profile` when nothing did."),
        level("step_time_ms_median", "ms", "Step time (median)", "Median over the included steps of the slowest host."),
        level("step_time_ms_mean", "ms", "Step time (mean)", "Mean over the included steps of the slowest host."),
        level("size_bytes", "bytes", "Size", "Bytes on disk of all host files.", "int64"),
        text("warnings", "Warnings", "What the profiler or tfcompare has to remark, separated by `; `."),
    ),
)

STEPS = Table(
    "steps",
    "One row for each step on each host.",
    (
        HOST_KEY,
        STEP_KEY,
        Column("start_us", "float64", "time_point", "µs", "Start", "Start of the step since the start of the profile."),
        level("duration_us", "µs", "Step time", "Length of the step."),
        Column("included", "bool", "flag", "", "Counted", "False for the first and last of more than five steps."),
    ),
)
