"""The table of what the timeline shows."""

from dataclasses import replace

from tfcompare.schema.columns import HOST_KEY, OP_TYPE_KEY, Table, columns

SPANS = Table(
    "spans",
    "One row for each event recorded on a thread, stream or other line of the host and its devices. Left out are lines "
    "that the profiler derived from others, so that each op and kernel is there once and durations add up to the total "
    "times in `op_stats` and `kernel_stats`, and events without a start, which stand for several.",
    (HOST_KEY,)
    + columns("""
        span key int64 | Span | Number of the event on its host, from 0, by line and start; some are left out.
        plane text | Plane | Where the line is: `/host:CPU` or the device, e.g. `/device:GPU:0`.
        line text | Line | Name of the thread, stream or other line.
        line_id text | Line id | Number of the line in its plane.
        host_or_device text | Host or device | Where it ran, as in `op_stats`.
        name text | Name | The event's name: of the op, kernel, instruction, or what else the profiler recorded.
    """)
    + (replace(OP_TYPE_KEY, kind="text"),)
    + columns("""
        op_name text | Op | Name of the op that it belongs to, as in `op_stats`; empty, as is the type, for events that
            are no ops.
        program text | Program | Compiled program that it ran, as in `hlo_ops`; empty where unknown, as for an op that
            several programs have.
        hlo_op text | Instruction | Instruction of XLA programs that it ran, as in `hlo_ops`; empty where unknown, as
            for a kernel of an op that is several instructions.
        step level Int64 | Step number | The step that it belongs to; missing outside of all steps.
        start_us time_point µs | Start | When it began, since the start of the profile.
        duration_us level µs | Duration | How long it took, with what ran within it.
        launched_by level Int64 | Launched by | The `span` on the host that launched it; missing where unknown.
    """),
    has_diff=False,
)
