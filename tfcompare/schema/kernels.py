"""Tables about GPU streams: kernels, copies and memory sets."""

from tfcompare.schema.columns import HOST_KEY, STEP_KEY, Table, columns

KERNEL_STATS = Table(
    "kernel_stats",
    "One row for each kernel, by the op that launched it and the way it was launched; summed over a host's devices.",
    (HOST_KEY,)
    + columns("""
        kernel_name key | Kernel | Name of the function that ran on the device.
        op_name key | Op | Name of the op that launched the kernel; empty where the profile names none.
        block_dim key | Block | Threads in a block along x, y and z, e.g. `1024,1,1`.
        grid_dim key | Grid | Blocks in the grid along x, y and z.
        registers_per_thread key Int64 | Registers | Registers that a thread takes; missing where the profile does not
            say.
        shared_memory_bytes key Int64 bytes | Shared memory | Shared memory of a block, static and dynamic; missing
            where the profile does not say.
        occurrences sum int64 | Occurrences | How often the kernel ran.
        total_duration_us sum µs | Total time | Time of all runs of the kernel.
        avg_duration_us mean µs | Average time | Time of one run, on average.
        min_duration_us min µs | Shortest time | Time of the shortest run.
        max_duration_us max µs | Longest time | Time of the longest run.
        is_op_tensor_core_eligible flag | Tensor core eligible | Whether tensor cores could do what the op does.
        is_kernel_using_tensor_core flag | Tensor core used | Whether the kernel uses tensor cores, judged by its name.
    """),
    headline="total_duration_us",
)

KERNEL_STEPS = Table(
    "kernel_steps",
    "One row for each row of `kernel_stats` in each step: what ran outside of all steps is in no row.",
    (
        *(column for column in KERNEL_STATS.columns if column.kind == "key"),
        STEP_KEY,
        *columns("""
            occurrences sum int64 | Occurrences | How often the kernel ran in the step.
            total_duration_us sum µs | Total time | Time of all its runs in the step.
        """),
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
    (HOST_KEY,)
    + columns(f"""
        device key | Device | Device that the copy was recorded on, e.g. `/device:GPU:0`.
        kind key | Kind | `{HOST_TO_DEVICE}`, `{DEVICE_TO_HOST}`, `{DEVICE_TO_DEVICE}`, `{PEER_TO_PEER}`,
            `{HOST_TO_HOST}`, `{MEMORY_SET}` or `{OTHER_COPY}`, as the profiler names it.
        occurrences sum int64 | Occurrences | How many copies were made.
        size_bytes sum Int64 bytes | Size | Bytes copied; missing where the size of a copy is unknown.
        duration_us sum µs | Time | Time of all copies; copies at the same time count each in full.
        bandwidth_bytes_per_s level Float64 bytes/s | Bandwidth | Bytes copied by the time that took; missing where size
            or time is.
    """),
    headline="duration_us",
)
