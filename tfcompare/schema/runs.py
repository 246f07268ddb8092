"""Tables of runs: what they recorded, their steps, and the environment."""

from __future__ import annotations

from tfcompare.schema.columns import HOST_KEY, STEP_KEY, Column, Table, key, level, text

_PARTS = (
    level("compile_us", "µs", "Compilation", "Time in which no device is busy and the host compiles (XLA)."),
    level("input_us", "µs", "Input", "Time spent waiting for input or copying it to the device."),
    level("output_us", "µs", "Output", "Time in which results are copied to the host."),
    level(
        "kernel_launch_us",
        "µs",
        "Kernel launch",
        "Time in which no device is busy because the host is still giving it work.",
    ),
    level(
        "host_compute_us",
        "µs",
        "Host compute",
        "Time in which no device is busy and the host computes; on CPU, all computing.",
    ),
    level(
        "host_collectives_us",
        "µs",
        "Host collectives",
        "Time in which no device is busy, the host runs no other op and waits in an exchange with other hosts.",
    ),
    level(
        "device_collectives_us",
        "µs",
        "Device collectives",
        "Time in which devices communicate with one another, or wait for the end of that, and none computes.",
    ),
    level("device_to_device_us", "µs", "Device to device", "Time in which memory is copied within or between devices."),
    level("device_compute_us", "µs", "Device compute", "Time in which a device computes."),
    level(
        "device_waits_us",
        "µs",
        "Device waits",
        "Time in which no device computes, copies or communicates, and one waits: at a barrier, or for the end of a "
        "copy or of other asynchronous work.",
    ),
    level(
        "idle_us",
        "µs",
        "Idle",
        "Time that nothing explains, in which no op, kernel, copy or input runs anywhere on the host or its devices.",
    ),
    level(
        "other_us",
        "µs",
        "Other",
        "What is left of the step: copies within the host, and time in which only work of other steps or of the "
        "background runs.",
    ),
)
_PRECISIONS = (
    level(
        "device_compute_16_bit_us", "µs", "Device compute, 16-bit",
        "The part of device compute with numbers of 16 bits or fewer; missing where the width is unknown.",
    ),
    level(
        "device_compute_32_bit_us", "µs", "Device compute, 32-bit",
        "The part of device compute with numbers of 32 bits or more, while nothing computes with 16; missing where the "
        "profile has no widths. Device compute in neither part is of unknown width.",
    ),
)  # fmt: skip

STEP_PARTS = tuple(part.name for part in _PARTS)
"""The columns of `STEPS` that split a step's time: they do not overlap and add up to `duration_us`."""

UNEXPLAINED_PARTS = ("idle_us", "other_us")
"""Those of them that nothing recorded explains; xprof's "all others"."""

STEP_PRECISIONS = tuple(column.name for column in _PRECISIONS)
"""The columns of `STEPS` with the portions of `device_compute_us` of known precision."""

_INCLUDED = "False for the first and last of more than five steps, and for a stray."

RUN_INFO = Table(
    "run_info",
    "One row on the run: where and when it was recorded, and how long its steps are.",
    (
        key("run", "Run", "The run's identity: its path relative to the place it was found under."),
        level("hosts", "", "Hosts", "Number of hosts that were read.", "int64"),
        text("host_names", "Host names", "The hosts' names, separated by commas."),
        text("framework", "Framework", "What recorded the profile, judged by its events: TensorFlow, JAX or empty."),
        text("device_type", "Device type", "`CPU`, `GPU` or `TPU`: where the run computed."),
        text("device_name", "Device", "The device's model if the profile names it."),
        level(
            "device_count",
            "",
            "Devices",
            "Devices (GPUs, TPU cores) with events, over all hosts; all where none has.",
            "int64",
        ),
        level(
            "clock_mhz",
            "MHz",
            "Highest clock",
            "The highest clock rate of the devices as their planes tell it, which is no measurement; 0 if unknown.",
        ),
        Column("start_time", "datetime64[us, UTC]", "time_point", "UTC", "Recorded", "When the profile was started."),
        text(
            "start_time_source", "Time from", "`profile`, `folder name` or `file time`: where `start_time` comes from."
        ),
        level("duration_ms", "ms", "Profile length", "From the first event to the end of the last."),
        level("step_count", "", "Steps", "Steps found; of several hosts, the most.", "int64"),
        level("steps_included", "", "Steps counted", "Steps that are included in the figures.", "int64"),
        text("step_source", "Steps from", "What marked the steps; `whole profile` when nothing did."),
        level(
            "step_time_ms_median",
            "ms",
            "Step time (median)",
            "Median over the included steps, each as long as on its slowest host.",
        ),
        level(
            "step_time_ms_mean", "ms", "Step time", "Mean over the included steps, each as long as on its slowest host."
        ),
        level("size_bytes", "bytes", "Size", "Bytes on disk of all host files.", "int64"),
        text("versions", "Versions", "Of libraries and drivers, as far as the profile has them, as JAX's have."),
        text(
            "profiler_options",
            "Profiler options",
            "The levels of the tracers, which decide how much was recorded, and how much that took.",
        ),
        text(
            "command_buffers",
            "Command buffers",
            "Whether kernels ran in command buffers of XLA (CUDA graphs): `used` or `not used`; empty without GPUs.",
        ),
        text("warnings", "Warnings", "What the profiler or tfcompare has to remark, separated by `; `."),
    ),
)

STEPS = Table(
    "steps",
    "One row for each step on each host.",
    (
        HOST_KEY,
        STEP_KEY,
        text(
            "marker", "Marker",
            "Name of the step's marker without its number, such as `train`; empty where no marker is known.",
        ),
        Column("start_us", "float64", "time_point", "µs", "Start", "Start of the step since the start of the profile."),
        level("duration_us", "µs", "Step time", "Length of the step: of its host span or its device span."),
        Column("included", "bool", "flag", "", "Counted", _INCLUDED),
        Column(
            "stray", "bool", "flag", "", "Stray",
            "True for the one step of a run that is far longer than all others, if there is exactly one: beyond the "
            "median + 10 robust standard deviations and 1.5 times the second longest step.",
        ),
        Column(
            "host_start_us", "float64", "time_point", "µs", "Host start",
            "Start of the step's marker on the host; missing where no marker is known.",
        ),
        level(
            "host_span_us", "µs", "Host span",
            "Length of the step's marker on the host. It is the step where it includes the device span; else the host "
            "only dispatches the step's work in it. Missing where no marker is known.",
        ),
        level(
            "device_span_us", "µs", "Device span",
            "From the first to the last device event of the step, on the device where that takes longest. It is the "
            "step unless the host span includes it. On a CPU, the same of XLA programs, if these "
            "run after the markers. Missing without either.",
        ),
        *_PARTS,
        *_PRECISIONS,
    ),
)  # fmt: skip

SLOW_STEPS = Table(
    "slow_steps",
    "One row on the included steps that take far longer than most (more than 1.5 times the median, and 5 robust "
    "standard deviations above it), and on the stray.",
    (
        HOST_KEY,
        level("steps", "", "Steps counted", "Steps that are included in the figures.", "int64"),
        level("slow_steps", "", "Slow steps", "How many of them are slow.", "int64"),
        level("every", "", "Every", "n if each n-th step is slow; missing where slow steps are irregular.", "Int64"),
        level("slow_step_us", "µs", "Slow step", "Mean of the slow steps; missing without any."),
        level("usual_step_us", "µs", "Other steps", "Mean of the other included steps."),
        level("slow_share", "", "Share of the time", "Share of the time of all included steps that is in slow ones."),
        level(
            "slow_excess_us", "µs", "Added to the step time",
            "What slow steps add to the step time: step time − mean of the other steps.",
        ),
        text("part", "Part", "The part of the step with most of the extra time of slow steps; empty for none."),
        level("part_share", "", "Share of the part", "Share of the extra time in that part."),
        text("op_name", "Op", "The op, or tf.data iterator, with most of that part's extra time; empty for none."),
        level("op_share", "", "Share of the op", "Share of the extra time in that op."),
        level("stray_step", "", "Stray", "Number of the one step far beyond all others; missing without any.", "Int64"),
        level("stray_us", "µs", "Stray step time", "Length of that step."),
        text("stray_part", "Part of the stray", "As `part`, of the stray."),
        level("stray_part_share", "", "Share of the part", "As `part_share`, of the stray."),
        text("stray_op_name", "Op of the stray", "As `op_name`, of the stray."),
        level("stray_op_share", "", "Share of the op", "As `op_share`, of the stray."),
    ),
)  # fmt: skip

HOSTS = Table(
    "hosts",
    "One row for each step on each device of each host; the host itself where it has no device.",
    (
        HOST_KEY,
        key("device", "Device", "Device of the host, e.g. `/device:GPU:0`; `/host:CPU` where it has none."),
        STEP_KEY,
        Column("start_us", "float64", "time_point", "µs", "Start", "Start of the step since the start of the profile."),
        Column("included", "bool", "flag", "", "Counted", _INCLUDED),
        level("duration_us", "µs", "Step time", "Length of the step on this host, the same for all its devices."),
        level(
            "busy_us", "µs", "Time without collectives and waits",
            "Step time less collectives and device waits: what makes others wait.",
        ),
        level(
            "collectives_us", "µs", "Collectives and waits",
            "Host and device collectives, and device waits: exchanging data with other hosts and devices, and waiting.",
        ),
        level(
            "skew_us", "µs", "Skew",
            "Step time less the median over all hosts and devices in this step; steps are paired by number, else by "
            "position.",
        ),
        level(
            "busy_skew_us", "µs", "Skew without collectives and waits",
            "Time without collectives and waits less the median over all hosts and devices in this step.",
        ),
        *_PARTS,
        level(
            "sparse_core_busy_us", "µs", "SparseCores busy",
            "How long any SparseCore of the TPU chip ran ops, whatever its TensorCore, the device, did; in no part of "
            "the step. Missing where none was recorded.",
        ),
    ),
)  # fmt: skip
WHOLE, PARTIAL, ABSENT = "recorded", "partial", "absent"
"""The statuses."""

OPS, KERNELS, COPIES, MEMORY, INPUT, PROGRAMS, PYTHON = (
    "ops", "kernels", "copies", "memory", "input", "programs", "python",
)  # fmt: skip

RECORDED = Table(
    "recorded",
    "One row for each kind of event of each host and device: whether, and from when to when, it was recorded. What was "
    "not recorded is missing in all other tables, and never 0.",
    (
        HOST_KEY,
        key("device", "Device", "Device of the host, e.g. `/device:GPU:0`; `/host:CPU` for the host itself."),
        key(
            "kind", "Kind",
            "`ops`, `kernels`, `copies`, `memory` (allocations), `input` (tf.data's iterators), `programs` (of XLA) "
            "or `python` (calls of Python functions).",
        ),
        text("status", "Status", "`recorded`; `partial`: some of it was lost; `absent`: nothing was recorded."),
        Column("first_us", "float64", "time_point", "µs", "First", "Start of the first event; missing without any."),
        Column("last_us", "float64", "time_point", "µs", "Last", "End of the last event; missing without any."),
        level("events", "", "Events", "Number of events, or of programs.", "int64"),
        text("complaint", "Complaint", "The profiler's message about it; empty without any."),
    ),
    has_diff=False,
)  # fmt: skip
