"""Tables about GPU streams: kernels, copies and memory sets."""

from tfcompare.schema.columns import HOST_KEY, STEP_KEY, Column, Table, key, level, total

KERNEL_STATS = Table(
    "kernel_stats",
    "One row for each kernel, by the op that launched it and the way it was launched; summed over a host's devices.",
    (
        HOST_KEY,
        key("kernel_name", "Kernel", "Name of the function that ran on the device."),
        key("op_name", "Op", "Name of the op that launched the kernel; empty where the profile names none."),
        key("block_dim", "Block", "Threads in a block along x, y and z, e.g. `1024,1,1`."),
        key("grid_dim", "Grid", "Blocks in the grid along x, y and z."),
        key(
            "registers_per_thread",
            "Registers",
            "Registers that a thread takes; missing where the profile does not say.",
            "Int64",
        ),
        Column(
            "shared_memory_bytes",
            "Int64",
            "key",
            "bytes",
            "Shared memory",
            "Shared memory of a block, static and dynamic; missing where the profile does not say.",
        ),
        total("occurrences", "", "Occurrences", "How often the kernel ran.", "int64"),
        total("total_duration_us", "µs", "Total time", "Time of all runs of the kernel."),
        Column("avg_duration_us", "float64", "mean", "µs", "Average time", "Time of one run, on average."),
        Column("min_duration_us", "float64", "min", "µs", "Shortest time", "Time of the shortest run."),
        Column("max_duration_us", "float64", "max", "µs", "Longest time", "Time of the longest run."),
        Column(
            "is_op_tensor_core_eligible",
            "bool",
            "flag",
            "",
            "Tensor core eligible",
            "Whether tensor cores could do what the op does.",
        ),
        Column(
            "is_kernel_using_tensor_core",
            "bool",
            "flag",
            "",
            "Tensor core used",
            "Whether the kernel uses tensor cores, judged by its name.",
        ),
    ),
    headline="total_duration_us",
)

KERNEL_STEPS = Table(
    "kernel_steps",
    "One row for each row of `kernel_stats` in each step: what ran outside of all steps is in no row.",
    (
        *(column for column in KERNEL_STATS.columns if column.kind == "key"),
        STEP_KEY,
        total("occurrences", "", "Occurrences", "How often the kernel ran in the step.", "int64"),
        total("total_duration_us", "µs", "Total time", "Time of all its runs in the step."),
    ),
    has_diff=False,
)

HOST_TO_DEVICE = "host to device"
DEVICE_TO_HOST = "device to host"
DEVICE_TO_DEVICE = "device to device"
PEER_TO_PEER = "peer to peer"
HOST_TO_HOST = "host to host"
MEMORY_SET = "memory set"
OTHER_COPY = "other"

COPIES = Table(
    "copies",
    "One row for each kind of copy on each device; setting memory to a value counts as a kind.",
    (
        HOST_KEY,
        key("device", "Device", "Device that the copy was recorded on, e.g. `/device:GPU:0`."),
        key(
            "kind",
            "Kind",
            f"`{HOST_TO_DEVICE}`, `{DEVICE_TO_HOST}`, `{DEVICE_TO_DEVICE}`, `{PEER_TO_PEER}`, `{HOST_TO_HOST}`, "
            f"`{MEMORY_SET}` or `{OTHER_COPY}`, as the profiler names it.",
        ),
        total("occurrences", "", "Occurrences", "How many copies were made.", "int64"),
        total("size_bytes", "bytes", "Size", "Bytes copied; missing where the size of a copy is unknown.", "Int64"),
        total("duration_us", "µs", "Time", "Time of all copies; copies at the same time count each in full."),
        level(
            "bandwidth_bytes_per_s",
            "bytes/s",
            "Bandwidth",
            "Bytes copied by the time that took; missing where size or time is.",
            "Float64",
        ),
    ),
    headline="duration_us",
)
