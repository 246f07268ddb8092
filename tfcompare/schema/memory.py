"""Tables about memory: what each allocator held, when, and for which op."""

from tfcompare.schema.columns import HOST_KEY, Table, column, columns

_MEMORY_KEY = column("""
    memory_id key | Memory | The allocator by its name, e.g. `GPU_0_bfc`, or the device's number on its host.
""")
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
    (HOST_KEY, _MEMORY_KEY)
    + columns("""
        allocations sum int64 | Allocations | Allocations within the profile.
        deallocations sum int64 | Deallocations | Deallocations within the profile.
        capacity_bytes level int64 bytes | Capacity | The allocator's limit: stack, heap and free memory together, at
            the peak.
        peak_heap_bytes level int64 bytes | Peak heap since start | The largest heap, without the stack, since the
            program began: it may be before the profile.
        peak_bytes level int64 bytes | Peak | The largest sum of stack and heap within the profile.
        peak_time_us time_point µs | Peak at | Time of the peak since the profile's start.
        stack_bytes level int64 bytes | Stack | Memory reserved for the stack, at the peak.
        heap_bytes level int64 bytes | Heap | Memory allocated on the heap, at the peak.
        free_bytes level int64 bytes | Free | Memory neither reserved nor allocated, at the peak.
        fragmentation level | Fragmentation | From 0 to 1: share of the free memory in small pieces, at the peak.
    """),
    headline="peak_bytes",
)

MEMORY_TIMELINE = Table(
    "memory_timeline",
    "One row for each allocation and deallocation, and what the memory looked like after it.",
    (HOST_KEY, _MEMORY_KEY)
    + columns(f"""
        time_us key float64 µs | Time | When it happened, since the profile's start.
        event text | Event | `allocation` or `deallocation`.
        op_name text | Op | {_OP_NAME_MEANING}
        requested_bytes level Int64 bytes | Requested | Bytes asked for; empty where not recorded.
        allocation_bytes level Int64 bytes | Allocated | Bytes given or taken back; empty where not recorded.
        region_type text | Region | {_REGION_MEANING}
        data_type text | Data type | {_DATA_TYPE_MEANING}
        shape text | Shape | {_SHAPE_MEANING}
        step level Int64 | Step | The step it belongs to; empty outside of all steps.
        stack_bytes level int64 bytes | Stack | Memory reserved for the stack.
        heap_bytes level int64 bytes | Heap | Memory allocated on the heap.
        free_bytes level int64 bytes | Free | Memory neither reserved nor allocated.
        in_use_bytes level int64 bytes | In use | Stack and heap together.
        fragmentation level | Fragmentation | From 0 to 1: share of the free memory that lies in small pieces.
    """),
    has_diff=False,
)

MEMORY_PEAK = Table(
    "memory_peak",
    "What an allocator held at its peak: a row for each op, region, data type and shape.",
    (HOST_KEY, _MEMORY_KEY)
    + columns(f"""
        op_name key | Op | {_OP_NAME_MEANING} `{_UNEXPLAINED}` was allocated before the profile, or is reserved.
        region_type key | Region | {_REGION_MEANING}
        data_type key | Data type | {_DATA_TYPE_MEANING}
        shape key | Shape | {_SHAPE_MEANING}
        requested_bytes level int64 bytes | Requested | Bytes asked for, all occurrences together.
        allocation_bytes level int64 bytes | Allocated | Bytes given, all occurrences together.
        occurrences level int64 | Occurrences | How many such allocations were live at the peak.
    """),
    headline="allocation_bytes",
)
