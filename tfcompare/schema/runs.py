"""Tables of runs: what they recorded, their steps, and the environment."""

from __future__ import annotations

from tfcompare.schema.columns import HOST_KEY, STEP_KEY, Table, column, columns

_PARTS = columns("""
    compile_us level µs | Compilation | Time in which no device is busy and the host compiles (XLA).
    input_us level µs | Input | Time spent waiting for input or copying it to the device.
    output_us level µs | Output | Time in which results are copied to the host.
    kernel_launch_us level µs | Kernel launch | Time in which no device is busy because the host is still giving it
        work.
    host_compute_us level µs | Host compute | Time in which no device is busy and the host computes; on CPU, all
        computing.
    host_collectives_us level µs | Host collectives | Time in which no device is busy, the host runs no other op and
        waits in an exchange with other hosts.
    device_collectives_us level µs | Device collectives | Time in which devices communicate with one another, or wait
        for the end of that, and none computes.
    device_to_device_us level µs | Device to device | Time in which memory is copied within or between devices.
    device_compute_us level µs | Device compute | Time in which a device computes.
    device_waits_us level µs | Device waits | Time in which no device computes, copies or communicates, and one waits:
        at a barrier, or for the end of a copy or of other asynchronous work.
    idle_us level µs | Idle | Time that nothing explains, in which no op, kernel, copy or input runs anywhere on the
        host or its devices.
    other_us level µs | Other | What is left of the step: copies within the host, and time in which only work of other
        steps or of the background runs.
""")
_PRECISIONS = columns("""
    device_compute_16_bit_us level µs | Device compute, 16-bit | The part of device compute with numbers of 16 bits or
        fewer; missing where the width is unknown.
    device_compute_32_bit_us level µs | Device compute, 32-bit | The part of device compute with numbers of 32 bits or
        more, while nothing computes with 16; missing where the profile has no widths. Device compute in neither part is
        of unknown width.
""")

STEP_PARTS = tuple(part.name for part in _PARTS)
"""The columns of `STEPS` that split a step's time: they do not overlap and add up to `duration_us`."""

UNEXPLAINED_PARTS = ("idle_us", "other_us")
"""Those of them that nothing recorded explains; xprof's "all others"."""

DEVICE_BUSY_PARTS = ("device_compute_us", "device_collectives_us", "device_to_device_us")
"""Those of them in which a device is busy."""

STEP_PRECISIONS = tuple(column.name for column in _PRECISIONS)
"""The columns of `STEPS` with the portions of `device_compute_us` of known precision."""

_INCLUDED = "False for the first and last of more than five steps, and for a stray."

RUN_INFO = Table(
    "run_info",
    "One row on the run: where and when it was recorded, and how long its steps are.",
    columns("""
        run key | Run | The run's identity: its path relative to the place it was found under.
        hosts level int64 | Hosts | Number of hosts that were read.
        host_names text | Host names | The hosts' names, separated by commas.
        framework text | Framework | What recorded the profile, judged by its events: TensorFlow, JAX or empty.
        device_type text | Device type | `CPU`, `GPU` or `TPU`: where the run computed.
        device_name text | Device | The device's model if the profile names it.
        device_count level int64 | Devices | Devices (GPUs, TPU cores) with events, over all hosts; all where none has.
        clock_mhz level MHz | Highest clock | The highest clock rate of the devices as their planes tell it, which is no
            measurement; 0 if unknown.
        start_time time_point datetime64[us, UTC] UTC | Recorded | When the profile was started.
        start_time_source text | Time from | `profile`, `folder name` or `file time`: where `start_time` comes from.
        duration_ms level ms | Profile length | From the first event to the end of the last.
        step_count level int64 | Steps | Steps found; of several hosts, the most.
        steps_included level int64 | Steps counted | Steps that are included in the figures.
        step_source text | Steps from | What marked the steps; `whole profile` when nothing did.
        step_time_ms_median level ms | Step time (median) | Median over the included steps, each as long as on its
            slowest host.
        step_time_ms_mean level ms | Step time | Mean over the included steps, each as long as on its slowest host.
        size_bytes level int64 bytes | Size | Bytes on disk of all host files.
        versions text | Versions | Of libraries and drivers, as far as the profile has them, as JAX's have.
        profiler_options text | Profiler options | The levels of the tracers, which decide how much was recorded, and
            how much that took.
        command_buffers text | Command buffers | Whether kernels ran in command buffers of XLA (CUDA graphs): `used` or
            `not used`; empty without GPUs.
        warnings text | Warnings | What the profiler or tfcompare has to remark, separated by `; `.
    """),
)

STEPS = Table(
    "steps",
    "One row for each step on each host.",
    (
        HOST_KEY,
        STEP_KEY,
        *columns(f"""
            marker text | Marker | Name of the step's marker without its number, such as `train`; empty where no marker
                is known.
            start_us time_point µs | Start | Start of the step since the start of the profile.
            duration_us level µs | Step time | Length of the step: of its host span or its device span.
            included flag | Counted | {_INCLUDED}
            stray flag | Stray | True for the one step of a run that is far longer than all others, if there is exactly
                one: beyond the median + 10 robust standard deviations and 1.5 times the second longest step.
            host_start_us time_point µs | Host start | Start of the step's marker on the host; missing where no marker
                is known.
            host_span_us level µs | Host span | Length of the step's marker on the host. It is the step where it
                includes the device span; else the host only dispatches the step's work in it. Missing where no marker
                is known.
            device_span_us level µs | Device span | From the first to the last device event of the step, on the device
                where that takes longest. It is the step unless the host span includes it. On a CPU, the same of XLA
                programs, if these run after the markers. Missing without either.
        """),
        *_PARTS,
        *_PRECISIONS,
    ),
)

SLOW_STEPS = Table(
    "slow_steps",
    "One row on the included steps that take far longer than most (more than 1.5 times the median, and 5 robust "
    "standard deviations above it), and on the stray.",
    (HOST_KEY,)
    + columns("""
        steps level int64 | Steps counted | Steps that are included in the figures.
        slow_steps level int64 | Slow steps | How many of them are slow.
        every level Int64 | Every | n if each n-th step is slow; missing where slow steps are irregular.
        slow_step_us level µs | Slow step | Mean of the slow steps; missing without any.
        usual_step_us level µs | Other steps | Mean of the other included steps.
        slow_share level | Share of the time | Share of the time of all included steps that is in slow ones.
        slow_excess_us level µs | Added to the step time | What slow steps add to the step time: step time − mean of the
            other steps.
        part text | Part | The part of the step with most of the extra time of slow steps; empty for none.
        part_share level | Share of the part | Share of the extra time in that part.
        op_name text | Op | The op, or tf.data iterator, with most of that part's extra time; empty for none.
        op_share level | Share of the op | Share of the extra time in that op.
        stray_step level Int64 | Stray | Number of the one step far beyond all others; missing without any.
        stray_us level µs | Stray step time | Length of that step.
        stray_part text | Part of the stray | As `part`, of the stray.
        stray_part_share level | Share of the part | As `part_share`, of the stray.
        stray_op_name text | Op of the stray | As `op_name`, of the stray.
        stray_op_share level | Share of the op | As `op_share`, of the stray.
    """),
)

HOSTS = Table(
    "hosts",
    "One row for each step on each device of each host; the host itself where it has no device.",
    (
        HOST_KEY,
        column("device key | Device | Device of the host, e.g. `/device:GPU:0`; `/host:CPU` where it has none."),
        STEP_KEY,
        *columns(f"""
            start_us time_point µs | Start | Start of the step since the start of the profile.
            included flag | Counted | {_INCLUDED}
            duration_us level µs | Step time | Length of the step on this host, the same for all its devices.
            busy_us level µs | Time without collectives and waits | Step time less collectives and device waits: what
                makes others wait.
            collectives_us level µs | Collectives and waits | Host and device collectives, and device waits: exchanging
                data with other hosts and devices, and waiting.
            skew_us level µs | Skew | Step time less the median over all hosts and devices in this step; steps are
                paired by number, else by position.
            busy_skew_us level µs | Skew without collectives and waits | Time without collectives and waits less the
                median over all hosts and devices in this step.
        """),
        *_PARTS,
        column("""
            sparse_core_busy_us level µs | SparseCores busy | How long any SparseCore of the TPU chip ran ops, whatever
                its TensorCore, the device, did; in no part of the step. Missing where none was recorded.
        """),
    ),
)
WHOLE, PARTIAL, ABSENT = "recorded", "partial", "absent"
"""The statuses."""

OPS, KERNELS, COPIES, MEMORY = "ops", "kernels", "copies", "memory"
INPUT, PROGRAMS, PYTHON = "input", "programs", "python"

RECORDED = Table(
    "recorded",
    "One row for each kind of event of each host and device: whether, and from when to when, it was recorded. What was "
    "not recorded is missing in all other tables, and never 0.",
    (HOST_KEY,)
    + columns("""
        device key | Device | Device of the host, e.g. `/device:GPU:0`; `/host:CPU` for the host itself.
        kind key | Kind | `ops`, `kernels`, `copies`, `memory` (allocations), `input` (tf.data's iterators), `programs`
            (of XLA) or `python` (calls of Python functions).
        status text | Status | `recorded`; `partial`: some of it was lost; `absent`: nothing was recorded.
        first_us time_point µs | First | Start of the first event; missing without any.
        last_us time_point µs | Last | End of the last event; missing without any.
        events level int64 | Events | Number of events, or of programs.
        complaint text | Complaint | The profiler's message about it; empty without any.
    """),
    has_diff=False,
)
