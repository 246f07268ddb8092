"""Kernels in command buffers (CUDA graphs) against recordings of the same program without them, and made-up ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.frames.tables import host, lines, ops, rows, run_of
from tests.hlo.builder import F32, Instruction, computation, instruction, metadata, parameter, program
from tests.profiles import loaded_run, run_path
from tests.protobufs import messages
from tests.xspace_builder import U64, Event, Value, chunk, event, integer, line, plane, space, varint
from tfcompare.frames.hlo.command_buffers import Instructions, instructions_of, unattributed_kernels
from tfcompare.frames.planes import device_rows
from tfcompare.schema.arrays import Int32
from tfcompare.units import format_percent
from tfcompare.xspace import parse, read

xplane_pb2 = messages("tsl.profiler.protobuf.xplane_pb2")


def program_of(*instructions: Instruction, inner: Iterable[bytes] = ()) -> bytes:
    """A program with a parameter and these instructions."""
    return program(*inner, computation(1, parameter("x", F), *instructions), others=integer(6, 1))


def names_of(ran: Instructions, events: Int32) -> list[str]:
    names: list[str] = np.append(ran.hlo_ops, "")[ran.of_event[events]].tolist()
    return names


def as_command_buffer(file: Path, is_named: bool) -> bytes:
    """The profile as if all instructions of each step had run in one command buffer, whose name kernels have or not."""
    profile = xplane_pb2.XSpace.FromString(file.read_bytes())
    for gpu in (found for found in profile.planes if found.name.startswith("/device:GPU:")):
        ids = {entry.name: number for number, entry in gpu.stat_metadata.items()}
        if "hlo_op" not in ids:
            continue
        for name in ("cuda_graph_id", "command_buffer_1", "correlation_id"):
            number = ids.setdefault(name, max(gpu.stat_metadata) + 1)
            gpu.stat_metadata[number].id, gpu.stat_metadata[number].name = number, name
        lost = {ids[name] for name in ("hlo_op", "correlation_id")}
        lost |= set() if is_named else {ids.get(name) for name in ("hlo_module", "program_id", "name", "tf_op")}
        for stream in gpu.lines:
            launch, last, first = 1, "", {}
            for kernel in sorted(stream.events, key=lambda kernel: kernel.offset_ps):
                found = {number: stat for stat in kernel.stats if (number := stat.metadata_id) in ids.values()}
                if ids["hlo_op"] not in found:
                    continue
                op, module = (
                    found[ids[name]].str_value or gpu.stat_metadata[found[ids[name]].ref_value].name
                    for name in ("hlo_op", "hlo_module")
                )
                # Each run of a program begins with the instruction with which the first one began.
                launch += first.setdefault(module, op) == op != last
                last = op
                kept = [stat for stat in kernel.stats if stat.metadata_id not in lost]
                del kernel.stats[:]
                kernel.stats.extend(kept)
                kernel.stats.add(metadata_id=ids["cuda_graph_id"], uint64_value=7)
                kernel.stats.add(metadata_id=ids["correlation_id"], uint64_value=launch)
                if is_named:
                    kernel.stats.add(metadata_id=ids["hlo_op"], ref_value=ids["command_buffer_1"])
    content: bytes = profile.SerializeToString()
    return content


def test_a_recording_with_command_buffers_has_the_instructions_of_one_without() -> None:
    """XLA put the first nine instructions of each step into a command buffer."""
    inside, outside = (loaded_run(name).table("hlo_ops") for name in ("h100_16_8_command_buffers", "h100_16_8"))
    assert sorted(inside["hlo_op"]) == sorted(outside["hlo_op"])
    counted = [table.set_index("hlo_op")["executions"].sort_index() for table in (inside, outside)]
    assert counted[0].equals(counted[1])
    kernels = loaded_run("h100_16_8_command_buffers").table("kernel_stats")
    assert inside["self_time_us"].sum() == pytest.approx(kernels["total_duration_us"].sum(), rel=0.05)  # memory sets
    assert loaded_run("h100_16_8_command_buffers").remarks == loaded_run("h100_16_8").remarks


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize(
    ("name", "least_share"),
    [
        ("h100_16_8", 1.0),
        ("h100_no_command_buffers", 1.0),  # two programs with kernels of one name, and layers that share kernels
        ("jax_conv_08", 0.98),  # some kernels ran in another order than the schedule's
        ("jax_te", 0.57),  # three custom calls follow one another, of several kernels each
    ],
)
def test_no_kernel_gets_another_instruction_than_its_own(name: str, least_share: float, is_named: bool) -> None:
    (file,) = run_path(name).rglob("*.xplane.pb")
    before, after = read(file).space, parse(as_command_buffer(file, is_named))
    ran, events = instructions_of(after), device_rows(before)
    truth, found = names_of(instructions_of(before), events), names_of(ran, events)
    is_known = np.array([name not in {"", *ran.buffers} for name in found])
    assert [name for name, known in zip(found, is_known, strict=True) if known] == [
        name for name, known in zip(truth, is_known, strict=True) if known
    ]
    duration = before.events.duration_ps[events]
    of_instructions = np.array([name != "" for name in truth])
    assert duration[is_known].sum() >= least_share * duration[of_instructions].sum()
    unknown = duration[of_instructions & ~is_known].sum() / duration.sum()
    told = f"took {format_percent(unknown)} of the GPUs' time ran in command buffers" if unknown else ""
    assert told in unattributed_kernels(after)
    assert unattributed_kernels(before) == ""


F, OF_LOOP, OF_TWO, SHARED = F32[8], F32[16], F32[4], F32[2]
"""Fusions of one shape may share a kernel."""
INNER = computation(
    2,
    parameter("p", OF_LOOP),
    instruction("body_fusion", "fusion", OF_LOOP, "p"),
    instruction("body_gemm", "custom-call", OF_LOOP, "p"),
    instruction("body_fusion.1", "fusion", F32[17], "body_gemm"),
)
INSTRUCTIONS = (
    parameter("x", F),
    instruction("gemm.9", "custom-call", F, "x"),  # the schedule has it after the first fusion
    instruction("loop_add_fusion", "fusion", F, "x"),
    instruction("loop_add_fusion.1", "fusion", F32[9], "x"),
    instruction("gemm.1", "custom-call", F, "x"),
    instruction("gemm.2", "custom-call", F, "x"),
    instruction("loop_add_fusion.2", "fusion", F32[10], "x"),
    instruction("loop", "while", F, "x", calls=(2,)),
    instruction("two.1", "fusion", OF_TWO, "x"),
    instruction("two_1", "fusion", OF_TWO, "x"),
    instruction("first", "copy", F32[21], "x"),
    instruction("shared", "fusion", SHARED, "x"),
    instruction("middle", "copy", F32[22], "x"),
    instruction("shared.1", "fusion", SHARED, "x"),
    instruction("last", "copy", F32[23], "x"),
)
NUMBERS = [100, 102, 101, *range(103, 100 + len(INSTRUCTIONS))]
SCHEDULE = chunk(1, integer(1, 1) + chunk(2, chunk(1, b"".join(map(varint, NUMBERS)))))
PROGRAM = program(INNER, computation(1, *INSTRUCTIONS), others=integer(6, 1) + chunk(7, SCHEDULE))


def profile(*launches: list[Event], others: dict[str, bytes] | None = None, program: bytes = PROGRAM) -> bytes:
    stream = line("Stream #7(Compute)", *(kernel for launch in launches for kernel in launch), id=7)
    programs = metadata({"jit_f(7)": program} | (others or {}))
    return space(plane("/device:GPU:0", stream), programs, host(event("x", 0, 1)))


def launch(number: int, *kernels: str, hlo_op: str = "command_buffer_1", is_graph: bool = True) -> list[Event]:
    """A launch with these kernels of 1 µs, one after the other."""
    stats: dict[str, Value] = {"correlation_id": number, "kernel_details": "regs:16 grid:2,1,1 block:64,1,1"}
    if hlo_op:
        stats |= {"hlo_op": hlo_op, "program_id": 7, "hlo_module": "jit_f"}
    if is_graph:
        stats["cuda_graph_id"] = U64(3)
    return [event(kernel, 100 * number + at, 1, **stats) for at, kernel in enumerate(kernels)]


def found(*launches: list[Event], **programs: Any) -> list[str]:
    """The instructions of the kernels of these launches."""
    profiled = parse(profile(*launches, **programs))
    return names_of(instructions_of(profiled), device_rows(profiled))


@pytest.mark.parametrize("hlo_op", ["command_buffer_1", "loop", ""])
def test_kernels_of_a_library_are_of_the_instructions_between_those_around_them(hlo_op: str) -> None:
    kernels = [
        *("loop_add_fusion", "sm90_0", "void gemm<float>", "loop_add_fusion_1", "sm90_a", "sm90_b"),
        *("loop_add_fusion_2", "sm90_c"),
    ]
    assert found(launch(1, *kernels, hlo_op=hlo_op)) == [
        "loop_add_fusion",
        "gemm.9",
        "gemm.9",
        "loop_add_fusion.1",
        "gemm.1",
        "gemm.2",
        "loop_add_fusion.2",
        hlo_op or "command_buffer",  # the loop's or, if it runs no times, the one after it
    ]


ORDERS = {
    "a kernel between two of the same is known to be of neither other": (
        "loop_add_fusion_1, sm90_a, sm90_b, sm90_c, loop_add_fusion_2",
        "loop_add_fusion.1, gemm.1, command_buffer_1, gemm.2, loop_add_fusion.2",
    ),
    "a library sets memory before its own kernel": (
        "loop_add_fusion_1, Memset 0, sm90_a, Memset 0, sm90_b, loop_add_fusion_2",
        "loop_add_fusion.1, gemm.1, gemm.1, gemm.2, gemm.2, loop_add_fusion.2",
    ),
    "memory is set for the next kernel also where XLA generated it": (
        "loop_add_fusion, sm90_a, Memset 0, loop_add_fusion_1, Memset 0, sm90_b, sm90_c, loop_add_fusion_2",
        "loop_add_fusion, gemm.9, loop_add_fusion.1, loop_add_fusion.1, gemm.1, gemm.1, gemm.2, loop_add_fusion.2",
    ),
    "further kernels of an instruction bear its name and a number": (
        "loop_add_fusion_1, loop_add_fusion_1__1, sm90_a, sm90_b, loop_add_fusion_2__1, loop_add_fusion_2",
        "loop_add_fusion.1, loop_add_fusion.1, gemm.1, gemm.2, loop_add_fusion.2, loop_add_fusion.2",
    ),
    "further kernels in a loop": (
        "body_fusion, body_fusion__1, gemm, body_fusion_1",
        "body_fusion, body_fusion, body_gemm, body_fusion.1",
    ),
    "instructions in a loop, and of two with one kernel name the next": (
        "body_fusion.kd, gemm, body_fusion_1.kd, body_fusion.kd, gemm, body_fusion_1.kd, two_1, two_1, MemcpyD2D",
        "body_fusion, body_gemm, body_fusion.1, body_fusion, body_gemm, body_fusion.1, two.1, two_1, first",
    ),
    "one of two with one kernel name": ("two_1", "command_buffer_1"),
    "instructions that share a kernel have their own where the schedule tells": (
        "first, shared, middle, shared, last",
        "first, shared, middle, shared.1, last",
    ),
    "a copy between instructions that share a kernel": (
        "first, shared, MemcpyD2D, shared, last",
        "first, shared, middle, shared.1, last",
    ),
    "one of two that share a kernel": ("shared", "command_buffer_1"),
    "an order that the schedule does not allow": (
        "loop_add_fusion_2, sm90_a, loop_add_fusion_1",
        "loop_add_fusion.2, command_buffer_1, loop_add_fusion.1",
    ),
}


@pytest.mark.parametrize("kernels, instructions", ORDERS.values(), ids=ORDERS)
def test_the_order_of_kernels_tells_their_instructions(kernels: str, instructions: str) -> None:
    assert found(launch(1, *kernels.split(", "))) == instructions.split(", ")


NODES = {
    "kernels that ran in turn": (
        ["first 0, shared 1, middle 2, shared 3, last 4", "first 0, shared 3, middle 2, shared 1, last 4"],
        ["first, shared, middle, shared.1, last", "first, shared.1, middle, shared, last"],
    ),
    "kernels that always ran out of order": (
        ["first 0, shared 3, shared 1, middle 2, last 4"] * 2,
        ["first, shared.1, shared, middle, last"] * 2,
    ),
    "a launch of which only one was recorded": (
        ["first 0, shared 1, middle 2, shared 3, last 4", "shared 3"],
        ["first, shared, middle, shared.1, last", "shared.1"],
    ),
    "a copy between others": (
        ["first 0, shared 3, MemcpyD2D 2, shared 1, last 4"],
        ["first, shared.1, middle, shared, last"],
    ),
    "kernels of a library, whose graphs are numbered after all others": (
        ["loop_add_fusion_1 2, sm90 20, sm90 21, loop_add_fusion_2 5"] * 2
        + ["loop_add_fusion_1 2, sm90 21, sm90 20, loop_add_fusion_2 5"],
        ["loop_add_fusion.1, gemm.1, gemm.2, loop_add_fusion.2"] * 2
        + ["loop_add_fusion.1, gemm.2, gemm.1, loop_add_fusion.2"],
    ),
    "a library that sets memory, numbered after what follows": (
        ["loop_add_fusion_1 2, Memset 20, sm90_a 21, Memset 22, sm90_b 23, loop_add_fusion_2 5"],
        ["loop_add_fusion.1, gemm.1, gemm.1, gemm.2, gemm.2, loop_add_fusion.2"],
    ),
    "launches that contradict each other": (
        [f"loop_add_fusion_1 2, {two}, loop_add_fusion_2 5" for two in ("sm90_a 20, sm90_b 9", "sm90_b 9, sm90_a 20")],
        ["loop_add_fusion.1, command_buffer_1, command_buffer_1, loop_add_fusion.2"] * 2,
    ),
    "nodes of a loop, which run several times": (
        ["body_fusion 0, gm 1, body_fusion_1 2, body_fusion 0, gm 1, body_fusion_1 2, two_1 3, two_1 4, MemcpyD2D 5"],
        ["body_fusion, body_gemm, body_fusion.1, body_fusion, body_gemm, body_fusion.1, two.1, two_1, first"],
    ),
}


@pytest.mark.parametrize("launches, instructions", NODES.values(), ids=NODES)
def test_the_numbers_of_nodes_tell_instructions_in_all_launches_of_a_graph(
    launches: list[str], instructions: list[str]
) -> None:
    made = []
    for number, text in enumerate(launches, 1):
        kernels, nodes = zip(*(one.rsplit(" ", 1) for one in text.split(", ")), strict=True)
        events = zip(launch(number, *kernels), map(int, nodes), strict=True)
        made.append(
            [replace(one, stats=(*one.stats, ("cuda_graph_node_id", U64(3 << 32 | node)))) for one, node in events]
        )
    assert found(*made) == ", ".join(instructions).split(", ")


@pytest.mark.parametrize("name", ["h100_store_activations", "h100_recompute_activations"])
def test_kernels_that_ran_in_another_order_keep_their_instruction_by_their_node(name: str) -> None:
    """A fifth of the pairs of kernels that followed one another change places."""
    (file, *_) = sorted(run_path(name).rglob("*.xplane.pb"))
    before = read(file).space
    ran, start_ps = instructions_of(before), before.events.start_ps.copy()
    in_order = ran.in_buffers[np.argsort(start_ps[ran.in_buffers])]
    pairs = in_order[: len(in_order) // 2 * 2].reshape(-1, 2)
    swapped = pairs[np.random.default_rng(1).random(len(pairs)) < 0.2]
    start_ps[swapped] = start_ps[swapped[:, ::-1]]
    after = replace(before, events=replace(before.events, start_ps=start_ps))
    truth, found = names_of(ran, ran.in_buffers), names_of(instructions_of(after), ran.in_buffers)
    known = [
        (one, other) for one, other in zip(truth, found, strict=True) if other not in instructions_of(after).buffers
    ]
    assert all(one == other for one, other in known)
    assert len(known) > 0.9 * len(truth)


def test_nodes_of_other_graphs_and_devices_with_the_same_number_are_others() -> None:
    def numbered(number: int, graph: int, *kernels: str) -> list[Event]:
        events = enumerate(launch(number, *kernels))
        return [
            replace(one, stats=(*one.stats, ("cuda_graph_node_id", U64(graph << 32 | node)))) for node, one in events
        ]

    first, second = numbered(1, 3, "first", "shared", "middle"), numbered(2, 4, "middle", "shared", "last")
    assert found(first, second) == ["first", "shared", "middle", "middle", "shared.1", "last"]
    gpus = [
        plane(f"/device:GPU:{i}", line("Stream #7(Compute)", *one, id=7))
        for i, one in enumerate((first, numbered(2, 3, "middle", "shared", "last")))
    ]
    profiled = parse(space(*gpus, metadata({"jit_f(7)": PROGRAM}), host(event("x", 0, 1))))
    names = names_of(instructions_of(profiled), device_rows(profiled))
    assert names == ["first", "shared", "middle", "middle", "shared.1", "last"]


def test_kernels_of_collectives_and_of_other_libraries_are_of_instructions_of_their_kind() -> None:
    mixed = program_of(
        instruction("a", "fusion", F32[9], "x"),
        instruction("all-reduce-start.1", "all-reduce-start", F, "x"),
        instruction("gemm.1", "custom-call", F, "x"),
        instruction("copy.1", "copy", F, "x"),
        instruction("b", "fusion", F32[10], "x"),
    )
    in_order = launch(1, "a", "ncclDevKernel_AllReduce_Sum", "nvjet_sm90", "MemcpyD2D", "b")
    swapped = launch(2, "a", "nvjet_sm90", "ncclDevKernel_AllReduce_Sum", "MemcpyD2D", "b")
    alone = launch(3, "b", "nvjet_sm90")
    assert found(in_order, swapped, alone, program=mixed) == [
        "a",
        "all-reduce-start.1",
        "gemm.1",
        "copy.1",
        "b",
        "a",
        *["command_buffer_1"] * 3,
        "b",
        "b",
        "command_buffer_1",
    ]


@pytest.mark.parametrize("branches", [3, 200])
def test_a_switch_of_many_branches_does_not_give_their_kernels_to_others(branches: int) -> None:
    inner = (
        computation(i + 2, parameter(f"p{i}", F), instruction(f"branch.{i}", "custom-call", F, f"p{i}"))
        for i in range(branches)
    )
    whole = program_of(
        instruction("a", "fusion", F32[9], "x"),
        instruction("gemm.1", "custom-call", F, "x"),
        instruction("switch", "conditional", F, "x", calls=tuple(range(2, branches + 2))),
        instruction("b", "fusion", F32[10], "x"),
        inner=inner,
    )
    names = found(launch(1, "a", "sm90_a", "sm90_b", "b"), program=whole)
    assert names in (["a", "gemm.1", "command_buffer_1", "b"], ["a", "command_buffer_1", "command_buffer_1", "b"])


@pytest.mark.parametrize("numbers", [(1, 2), (0, 0)])
def test_kernels_of_different_or_unknown_launches_do_not_tell_of_each_other(numbers: tuple[int, int]) -> None:
    launches = launch(numbers[0], "loop_add_fusion", "gemm"), launch(numbers[1], "gemm", "loop_add_fusion_2")
    known = ["gemm.9", "gemm.2"] if numbers[0] else ["command_buffer_1"] * 2
    assert found(*launches) == ["loop_add_fusion", *known, "loop_add_fusion.2"]


def test_kernels_of_another_program_do_not_tell_which_instructions_have_their_own() -> None:
    """Of two equal fusions, one has a kernel in the other program, which bears the same name."""
    other = program_of(instruction("shared.1", "fusion", SHARED, "x"))
    first = launch(1, "first", "shared", "middle", "shared", "last")
    second = [
        event("shared_1", 900, 1, correlation_id=9, hlo_op="command_buffer_1", program_id=8, cuda_graph_id=U64(4))
    ]
    assert found(first, second, others={"jit_g(8)": other}) == [
        *("first", "shared", "middle", "shared.1", "last", "shared.1")
    ]


def test_kernels_outside_of_graphs_keep_what_they_name() -> None:
    given = [
        launch(1, "loop_add_fusion", hlo_op="gemm.1"),
        launch(2, "copy", hlo_op="loop", is_graph=False),
        launch(3, "loop_add_fusion", hlo_op="gone.4", is_graph=False),
        launch(4, "kernel", hlo_op="", is_graph=False),
    ]
    assert found(*given) == ["gemm.1", "loop", "gone.4", ""]


def test_what_is_not_known_is_listed_as_of_the_command_buffer() -> None:
    run = run_of(profile(launch(1, "loop_add_fusion", "sm90_a", "sm90_b", "sm90_b")))
    assert rows(run.table("hlo_ops"), "program", "hlo_op", "category", "occurrences", "self_time_us") == lines("""
        jit_f(7)  command_buffer_1  command buffer   2  2
        jit_f(7)  gemm.9            custom-call      1  1
        jit_f(7)  loop_add_fusion   fusion           1  1
    """)
    assert "Device command buffer command_buffer_1 2 2 2" in ops(run)
    (warning,) = [text for text in run.remarks if "command buffers" in text]
    assert "kernels that took 50.0 % of the GPUs' time" in warning
    assert "XLA_FLAGS=--xla_gpu_enable_command_buffer=" in warning


def test_a_graph_that_was_recorded_as_a_whole_stays_one_event() -> None:
    whole = [event("CudaGraphExec:5", 0, 10, cuda_graph_exec_id=U64(5), cuda_graph_id=U64(5), correlation_id=1)]
    assert found(whole) == [""]
