"""Tables about compiled XLA programs."""

from tfcompare.schema.columns import HOST_KEY, SPARSE_CORE, Column, Table, key, level, text, total

PROGRAM_KEY = key("program", "Program", "Name of the compiled program with its id, e.g. `jit_train_step(17)`.")

TRANSFERS = ("-start", "-done")
"""Ends of categories of instructions that start a transfer or wait for one: their times tell no rate."""

MOST_UNKNOWN = 0.01
"""Of the time of instructions, how much those of unknown cost may take where costs are summed: the sum is then too
small by that order. Compilers insert custom calls that only name a buffer, for which no cost is known."""
TENSOR_CORE = "TensorCore"
"""What runs the instructions of a TPU chip that its SparseCores do not."""

HLO_OPS = Table(
    "hlo_ops",
    "One row for each instruction of an XLA program that ran, summed over a host's devices.",
    (
        HOST_KEY,
        PROGRAM_KEY,
        key("hlo_op", "Instruction", "Name of the instruction in the program, e.g. `loop_add_fusion.2`."),
        key("category", "Category", "XLA's category of the instruction, e.g. `loop fusion`; empty where unknown."),
        key(
            "core_type",
            "Core type",
            f"On TPUs `{TENSOR_CORE}` or `{SPARSE_CORE}`: the part of the chip that ran it; empty elsewhere.",
        ),
        text("op_name", "Op", "The framework's op that the instruction came from; empty where unknown."),
        text("source", "Source", "File and line of that op in the framework's program; empty where unknown."),
        text("expression", "HLO", "The instruction in XLA's notation; empty where the file lacks its program."),
        total("occurrences", "", "Occurrences", "Its events: on GPUs each kernel that it launched counts.", "int64"),
        total(
            "executions",
            "",
            "Executions",
            "How often it ran, however many kernels it has.",
            "int64",
        ),
        total("total_time_us", "µs", "Total time", "Time between its begin and end, instructions within it included."),
        total("self_time_us", "µs", "Self time", "Total time less that of the instructions within it."),
        total("flops", "FLOP", "FLOPs", "Floating-point operations of all its executions; missing where unknown."),
        total("bytes_accessed", "bytes", "Bytes accessed", "Bytes read and written at least; missing where unknown."),
        level(
            "flops_per_s",
            "FLOP/s",
            "FLOP rate",
            "FLOPs by total time; missing where unknown, and for asynchronous transfers.",
        ),
        level("bandwidth_bytes_per_s", "bytes/s", "Bandwidth", "Bytes accessed by total time; as the FLOP rate."),
        level("operational_intensity", "FLOP/byte", "Intensity", "FLOPs per byte accessed; missing where unknown."),
        level(
            "peak_flops_per_s",
            "FLOP/s",
            "Peak FLOP rate",
            "The device's, for the types that it multiplies; missing where unknown, as of SparseCores.",
        ),
        level("peak_bytes_per_s", "bytes/s", "Peak bandwidth", "Of the device's memory; missing where unknown."),
        text("bound_by", "Bound by", "`compute` or `memory`: the roof above its intensity; empty where unknown."),
        Column(
            "is_rematerialized", "bool", "flag", "", "Rematerialized", "Whether it recomputes a value to save memory."
        ),
    ),
    headline="self_time_us",
)

HLO_TEXTS = Table(
    "hlo_texts",
    "One row for each instruction in `hlo_ops`: the instructions around it, one per line.",
    (
        HOST_KEY,
        PROGRAM_KEY,
        key("hlo_op", "Instruction", "Name of the instruction in the program, e.g. `loop_add_fusion.2`."),
        text("operands", "Operands", "The instructions whose values it uses; empty where unknown."),
        text("users", "Users", "The instructions that use its value; empty where unknown."),
        text("fused", "Fused", "The instructions that a fusion consists of; empty for others."),
        text(
            "source_ops",
            "Source ops",
            "The framework's ops that it computes, of a fusion those of its parts; empty where unknown.",
        ),
    ),
    has_diff=False,
)

HLO_PROGRAMS = Table(
    "hlo_programs",
    "One row for each instruction of each XLA program that ran, whether the instruction ran or not, in program order.",
    (
        HOST_KEY,
        PROGRAM_KEY,
        key(
            "position",
            "Position",
            "Place of the instruction in the program, from 0: computation by computation.",
            "int64",
        ),
        text("computation", "Computation", "Name of the computation that it is part of, e.g. `fused_computation.1`."),
        text("hlo_op", "Instruction", "Name of the instruction in the program, e.g. `loop_add_fusion.2`."),
        text("expression", "HLO", "The instruction in XLA's notation."),
        text(
            "operands",
            "Operands",
            "Positions of the instructions whose values it uses, and of the roots of the computations that it calls; "
            "-1 for one that is missing.",
        ),
        text(
            "digest",
            "Digest",
            "Equal for instructions with the same name without numbers at its end, shape, opcode, shapes of operands, "
            "sharding, donation, and attributes.",
        ),
    ),
    has_diff=False,
)

HLO_MEMORY = Table(
    "hlo_memory",
    "One row for each buffer of each XLA program in the profile, as the compiler placed it.",
    (
        HOST_KEY,
        PROGRAM_KEY,
        key("memory_space", "Memory space", "The memory that it is in; 0 is a device's main memory.", "int64"),
        key("hlo_op", "Instruction", "Name of the instruction whose value it holds; empty where unknown."),
        key("output_index", "Output", "Which of the instruction's outputs it holds, e.g. `1`; empty for the only one."),
        text("kind", "Kind", "`parameter`, `constant`, `output` or `temporary`; all but the last live throughout."),
        text("shape", "Shape", "Element type and dimensions of the value, e.g. `bf16[128,512]`; empty where unknown."),
        text("op_name", "Op", "The framework's op that the instruction came from; empty where unknown."),
        text("source", "Source", "File and line of that op in the framework's program; empty where unknown."),
        level("size_bytes", "bytes", "Size", "Its size, with the padding of its layout.", "int64"),
        level(
            "lifetime_share", "", "Lifetime", "Share of the program's allocations and frees that it outlives, 0 to 1."
        ),
        level(
            "first_position",
            "",
            "Live from",
            "The allocation or free after which it is first live, counted from 1 in program order.",
            "int64",
        ),
        level("last_position", "", "Live until", "The allocation or free after which it is last live.", "int64"),
        level(
            "positions",
            "",
            "Positions",
            "Allocations and frees of the program in this memory space; 1 if the compiler recorded none.",
            "int64",
        ),
        Column(
            "is_live_at_peak",
            "bool",
            "flag",
            "",
            "Live at peak",
            "Whether it is live when its memory space is fullest.",
        ),
    ),
    headline="size_bytes",
)

BY_PROGRAM, BY_SOURCE = "program", "source"
UNKNOWN_SOURCE = "unknown"

OP_PROFILE = Table(
    "op_profile",
    "One row for each node of two trees over the rows of `hlo_ops`: sums of what is below it, without SparseCores.",
    (
        HOST_KEY,
        key("tree", "Tree", f"`{BY_PROGRAM}`: program, category, instruction; `{BY_SOURCE}`: file, line, instruction."),
        key("program", "Program", "Name of the compiled program with its id; empty above."),
        key("category", "Category", "XLA's category of the instruction; empty above."),
        key("source_file", "Source file", f"File of the framework's program, or `{UNKNOWN_SOURCE}`; empty elsewhere."),
        key("source", "Source", f"File and line, or `{UNKNOWN_SOURCE}`; empty above and elsewhere."),
        key("hlo_op", "Instruction", "Name of the instruction in the program; empty above."),
        key("depth", "Depth", "1 for the top of a tree, 3 for instructions.", "int64"),
        text("op_name", "Op", "The framework's op that the instruction came from; empty above and where unknown."),
        total("occurrences", "", "Occurrences", "Events of its instructions; on GPUs each kernel counts.", "int64"),
        total("executions", "", "Executions", "How often its instructions ran.", "int64"),
        total("self_time_us", "µs", "Self time", "Self time of its instructions."),
        total(
            "flops",
            "FLOP",
            "FLOPs",
            "Floating-point operations; missing where instructions that lack them take more than 1 % of the time.",
        ),
        total("bytes_accessed", "bytes", "Bytes accessed", "Bytes read and written at least; missing as FLOPs are."),
        level("flops_per_s", "FLOP/s", "FLOP rate", "FLOPs by self time; missing where unknown."),
        level("bandwidth_bytes_per_s", "bytes/s", "Bandwidth", "Bytes accessed by self time; missing where unknown."),
    ),
    headline="self_time_us",
)

TRACING, LOWERING, COMPILING = "tracing", "lowering", "compiling"

COMPILATIONS = Table(
    "compilations",
    "One row for each function that was traced, lowered or compiled while the profile was recorded, and phase of that.",
    (
        HOST_KEY,
        key("function", "Function", "The function as its source names it, e.g. `train_step`; empty where unknown."),
        key(
            "phase",
            "Phase",
            f"`{TRACING}`: Python builds a graph; `{LOWERING}`: JAX makes the compiler's input of it; "
            f"`{COMPILING}`: XLA compiles it.",
        ),
        total("occurrences", "", "Times", "How often that happened; loading from a cache is no compilation.", "int64"),
        total("total_time_us", "µs", "Total time", "Time of all of them, on the thread that waited for it."),
        Column("longest_us", "float64", "max", "µs", "Longest", "The longest of them."),
        level("programs", "", "Programs", "Compiled programs of that function in the profile.", "int64"),
        text("shapes", "Shapes", "Parameters in which these programs differ, program by program; empty for one."),
    ),
    headline="total_time_us",
)
