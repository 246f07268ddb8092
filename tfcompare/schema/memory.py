"""Tables about memory: what each allocator held, when, and for which op."""

from tfcompare.schema.columns import HOST_KEY, Column, Table, key, level, text, total

_MEMORY_KEY = key(
    "memory_id", "Memory", "The allocator by its name, e.g. `GPU_0_bfc`, or the device's number on its host."
)
_OP_NAME_MEANING = "Op that the memory was allocated for, as the profile names it; empty where it names none."
_UNEXPLAINED = "unused preallocated device memory"
_REGION_MEANING = "What kind of memory, e.g. `output`, `temp`, `persist/dynamic`, `stack`; empty where not recorded."
_DATA_TYPE_MEANING = (
    "Data type of the tensor, e.g. `float`; `INVALID` where it was not known, empty where not recorded."
)
_SHAPE_MEANING = "Shape of the tensor, e.g. `[128,1024]`; empty where not recorded."

MEMORY_SUMMARY = Table(
    "memory_summary",
    "One row for each allocator on each host: its peak within the profile, and what the memory looked like then.",
    (
        HOST_KEY,
        _MEMORY_KEY,
        total("allocations", "", "Allocations", "Allocations within the profile.", "int64"),
        total("deallocations", "", "Deallocations", "Deallocations within the profile.", "int64"),
        level(
            "capacity_bytes",
            "bytes",
            "Capacity",
            "The allocator's limit: stack, heap and free memory together, at the peak.",
            "int64",
        ),
        level(
            "peak_heap_bytes",
            "bytes",
            "Peak heap since start",
            "The largest heap, without the stack, since the program began: it may be before the profile.",
            "int64",
        ),
        level("peak_bytes", "bytes", "Peak", "The largest sum of stack and heap within the profile.", "int64"),
        Column("peak_time_us", "float64", "time_point", "µs", "Peak at", "Time of the peak since the profile's start."),
        level("stack_bytes", "bytes", "Stack", "Memory reserved for the stack, at the peak.", "int64"),
        level("heap_bytes", "bytes", "Heap", "Memory allocated on the heap, at the peak.", "int64"),
        level("free_bytes", "bytes", "Free", "Memory neither reserved nor allocated, at the peak.", "int64"),
        level(
            "fragmentation", "", "Fragmentation", "From 0 to 1: share of the free memory in small pieces, at the peak."
        ),
    ),
    headline="peak_bytes",
)

MEMORY_TIMELINE = Table(
    "memory_timeline",
    "One row for each allocation and deallocation, and what the memory looked like after it.",
    (
        HOST_KEY,
        _MEMORY_KEY,
        Column("time_us", "float64", "key", "µs", "Time", "When it happened, since the profile's start."),
        text("event", "Event", "`allocation` or `deallocation`."),
        text("op_name", "Op", _OP_NAME_MEANING),
        level("requested_bytes", "bytes", "Requested", "Bytes asked for; empty where not recorded.", "Int64"),
        level(
            "allocation_bytes", "bytes", "Allocated", "Bytes given or taken back; empty where not recorded.", "Int64"
        ),
        text("region_type", "Region", _REGION_MEANING),
        text("data_type", "Data type", _DATA_TYPE_MEANING),
        text("shape", "Shape", _SHAPE_MEANING),
        level("step", "", "Step", "The step it belongs to; empty outside of all steps.", "Int64"),
        level("stack_bytes", "bytes", "Stack", "Memory reserved for the stack.", "int64"),
        level("heap_bytes", "bytes", "Heap", "Memory allocated on the heap.", "int64"),
        level("free_bytes", "bytes", "Free", "Memory neither reserved nor allocated.", "int64"),
        level("in_use_bytes", "bytes", "In use", "Stack and heap together.", "int64"),
        level("fragmentation", "", "Fragmentation", "From 0 to 1: share of the free memory that lies in small pieces."),
    ),
    has_diff=False,
)

MEMORY_PEAK = Table(
    "memory_peak",
    "What an allocator held at its peak: a row for each op, region, data type and shape.",
    (
        HOST_KEY,
        _MEMORY_KEY,
        key("op_name", "Op", f"{_OP_NAME_MEANING} `{_UNEXPLAINED}` was allocated before the profile, or is reserved."),
        key("region_type", "Region", _REGION_MEANING),
        key("data_type", "Data type", _DATA_TYPE_MEANING),
        key("shape", "Shape", _SHAPE_MEANING),
        level("requested_bytes", "bytes", "Requested", "Bytes asked for, all occurrences together.", "int64"),
        level("allocation_bytes", "bytes", "Allocated", "Bytes given, all occurrences together.", "int64"),
        level("occurrences", "", "Occurrences", "How many such allocations were live at the peak.", "int64"),
    ),
    headline="allocation_bytes",
)
