"""Tables about compiled XLA programs."""

from tfcompare.schema.columns import HOST_KEY, SPARSE_CORE, Table, column, columns

PROGRAM_KEY = column("program key | Program | Name of the compiled program with its id, e.g. `jit_train_step(17)`.")

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
    (HOST_KEY, PROGRAM_KEY)
    + columns(f"""
        hlo_op key | Instruction | Name of the instruction in the program, e.g. `loop_add_fusion.2`.
        category key | Category | XLA's category of the instruction, e.g. `loop fusion`; empty where unknown.
        core_type key | Core type | On TPUs `{TENSOR_CORE}` or `{SPARSE_CORE}`: the part of the chip that ran it; empty
            elsewhere.
        op_name text | Op | The framework's op that the instruction came from; empty where unknown.
        source text | Source | File and line of that op in the framework's program; empty where unknown.
        expression text | HLO | The instruction in XLA's notation; empty where the file lacks its program.
        occurrences sum int64 | Occurrences | Its events: on GPUs each kernel that it launched counts.
        executions sum int64 | Executions | How often it ran, however many kernels it has.
        total_time_us sum µs | Total time | Time between its begin and end, instructions within it included.
        self_time_us sum µs | Self time | Total time less that of the instructions within it.
        flops sum FLOP | FLOPs | Floating-point operations of all its executions; missing where unknown.
        bytes_accessed sum bytes | Bytes accessed | Bytes read and written at least; missing where unknown.
        flops_per_s level FLOP/s | FLOP rate | FLOPs by total time; missing where unknown, and for asynchronous
            transfers.
        bandwidth_bytes_per_s level bytes/s | Bandwidth | Bytes accessed by total time; as the FLOP rate.
        operational_intensity level FLOP/byte | Intensity | FLOPs per byte accessed; missing where unknown.
        peak_flops_per_s level FLOP/s | Peak FLOP rate | The device's, for the types that it multiplies; missing where
            unknown, as of SparseCores.
        peak_bytes_per_s level bytes/s | Peak bandwidth | Of the device's memory; missing where unknown.
        bound_by text | Bound by | `compute` or `memory`: the roof above its intensity; empty where unknown.
        is_rematerialized flag | Rematerialized | Whether it recomputes a value to save memory.
    """),
    headline="self_time_us",
)

HLO_TEXTS = Table(
    "hlo_texts",
    "One row for each instruction in `hlo_ops`: the instructions around it and its stack, one per line.",
    (HOST_KEY, PROGRAM_KEY)
    + columns("""
        hlo_op key | Instruction | Name of the instruction in the program, e.g. `loop_add_fusion.2`.
        operands text | Operands | The instructions whose values it uses; empty where unknown.
        users text | Users | The instructions that use its value; empty where unknown.
        fused text | Fused | The instructions that a fusion consists of; empty for others.
        source_ops text | Source ops | The framework's ops that it computes, of a fusion those of its parts; empty where
            unknown.
        source_stack text | Source stack | The calls in the framework's program that led to its op, outermost first,
            e.g. `loss (model.py:12)`; empty where unknown.
    """),
    has_diff=False,
)

HLO_PROGRAMS = Table(
    "hlo_programs",
    "One row for each instruction of each XLA program that ran, whether the instruction ran or not, in program order.",
    (HOST_KEY, PROGRAM_KEY)
    + columns("""
        position key int64 | Position | Place of the instruction in the program, from 0: computation by computation.
        computation text | Computation | Name of the computation that it is part of, e.g. `fused_computation.1`.
        hlo_op text | Instruction | Name of the instruction in the program, e.g. `loop_add_fusion.2`.
        expression text | HLO | The instruction in XLA's notation.
        operands text | Operands | Positions of the instructions whose values it uses, and of the roots of the
            computations that it calls; -1 for one that is missing.
        digest text | Digest | Equal for instructions with the same name without numbers at its end, shape, opcode,
            shapes of operands, sharding, donation, and attributes.
    """),
    has_diff=False,
)

OPERAND, RESULT_OF_CALL = "operand", "call"

HLO_EDGES = Table(
    "hlo_edges",
    "One row for each value that an instruction uses, in each XLA program that ran: an edge from the instruction that "
    "makes it to the one that uses it.",
    (HOST_KEY, PROGRAM_KEY)
    + columns(f"""
        to_position key int64 | User's position | Position in `hlo_programs` of the instruction that uses the value.
        number key int64 | Number | Which of the values that the instruction uses it is, from 0: its operands in order,
            then what the computations that it calls return.
        kind text | Kind | `{OPERAND}`, or `{RESULT_OF_CALL}`: what a called computation returns, such as the body of a
            fusion or loop; empty where unknown.
        from_position level Int64 | Maker's position | Position in `hlo_programs` of the instruction that makes the
            value; missing where the program lacks it.
        from_hlo_op text | From | Name of the instruction that makes the value; empty where the program lacks it.
        to_hlo_op text | To | Name of the instruction that uses the value.
        shape text | Shape | Element type and dimensions of the value, e.g. `bf16[128,512]`; of a tuple those of its
            parts; empty where unknown.
        size_bytes level bytes | Size | Size of the value without the padding of its layout, of a tuple that of all its
            parts; missing where unknown.
    """),
    has_diff=False,
)

MAIN_MEMORY = 0
"""The memory space that is a device's main memory."""

HLO_MEMORY = Table(
    "hlo_memory",
    "One row for each buffer of each XLA program in the profile, as the compiler placed it.",
    (HOST_KEY, PROGRAM_KEY)
    + columns("""
        memory_space key int64 | Memory space | The memory that it is in; 0 is a device's main memory.
        hlo_op key | Instruction | Name of the instruction whose value it holds; empty where unknown.
        output_index key | Output | Which of the instruction's outputs it holds, e.g. `1`; empty for the only one.
        kind text | Kind | `parameter`, `constant`, `output` or `temporary`; all but the last live throughout.
        shape text | Shape | Element type and dimensions of the value, e.g. `bf16[128,512]`; empty where unknown.
        op_name text | Op | The framework's op that the instruction came from; empty where unknown.
        source text | Source | File and line of that op in the framework's program; empty where unknown.
        size_bytes level int64 bytes | Size | Its size, with the padding of its layout.
        lifetime_share level | Lifetime | Share of the program's allocations and frees that it outlives, 0 to 1.
        first_position level int64 | Live from | The allocation or free after which it is first live, counted from 1 in
            program order.
        last_position level int64 | Live until | The allocation or free after which it is last live.
        positions level int64 | Positions | Allocations and frees of the program in this memory space; 1 if the compiler
            recorded none.
        is_live_at_peak flag | Live at peak | Whether it is live when its memory space is fullest.
    """),
    headline="size_bytes",
)

BY_PROGRAM, BY_SOURCE = "program", "source"
UNKNOWN_SOURCE = "unknown"

OP_PROFILE = Table(
    "op_profile",
    "One row for each node of two trees over the rows of `hlo_ops`: sums of what is below it, without SparseCores.",
    (HOST_KEY,)
    + columns(f"""
        tree key | Tree | `{BY_PROGRAM}`: program, category, instruction; `{BY_SOURCE}`: file, line, instruction.
        program key | Program | Name of the compiled program with its id; empty above.
        category key | Category | XLA's category of the instruction; empty above.
        source_file key | Source file | File of the framework's program, or `{UNKNOWN_SOURCE}`; empty elsewhere.
        source key | Source | File and line, or `{UNKNOWN_SOURCE}`; empty above and elsewhere.
        hlo_op key | Instruction | Name of the instruction in the program; empty above.
        depth key int64 | Depth | 1 for the top of a tree, 3 for instructions.
        op_name text | Op | The framework's op that the instruction came from; empty above and where unknown.
        occurrences sum int64 | Occurrences | Events of its instructions; on GPUs each kernel counts.
        executions sum int64 | Executions | How often its instructions ran.
        self_time_us sum µs | Self time | Self time of its instructions.
        flops sum FLOP | FLOPs | Floating-point operations; missing where instructions that lack them take more than 1 %
            of the time.
        bytes_accessed sum bytes | Bytes accessed | Bytes read and written at least; missing as FLOPs are.
        flops_per_s level FLOP/s | FLOP rate | FLOPs by self time; missing where unknown.
        bandwidth_bytes_per_s level bytes/s | Bandwidth | Bytes accessed by self time; missing where unknown.
    """),
    headline="self_time_us",
)

TRACING, LOWERING, COMPILING = "tracing", "lowering", "compiling"

COMPILATIONS = Table(
    "compilations",
    "One row for each function that was traced, lowered or compiled while the profile was recorded, and phase of that.",
    (HOST_KEY,)
    + columns(f"""
        function key | Function | The function as its source names it, e.g. `train_step`; empty where unknown.
        phase key | Phase | `{TRACING}`: Python builds a graph; `{LOWERING}`: JAX makes the compiler's input of it;
            `{COMPILING}`: XLA compiles it.
        occurrences sum int64 | Times | How often that happened; loading from a cache is no compilation.
        total_time_us sum µs | Total time | Time of all of them, on the thread that waited for it.
        longest_us max µs | Longest | The longest of them.
        programs level int64 | Programs | Compiled programs of that function in the profile.
        shapes text | Shapes | Parameters in which these programs differ, program by program; empty for one.
    """),
    headline="total_time_us",
)
