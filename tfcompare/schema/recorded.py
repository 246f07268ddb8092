"""The table of what a capture recorded."""

from tfcompare.schema.columns import HOST_KEY, Column, Table, key, level, text

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
