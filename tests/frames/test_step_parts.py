"""Where the time of a step goes, every rule by hand."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import tfcompare as tfc
from tests.frames.tables import rows, run_with, threads
from tests.xspace_builder import Event, Line, Value, event, line, meta, plane
from tfcompare import schema
from tfcompare.run import Run

LAUNCHED = {"correlation_id": 1}


def step(start: float, length: float, number: int = 0, **more: Value) -> Event:
    return event("train", start, length, **({"_r": 1, "step_num": number} | more))


def parts(*planes: object) -> list[str]:
    """The parts of each step that are not 0: `input 5 idle 3`."""
    table = run_with(*planes).table("steps")
    return [
        " ".join(f"{name.removesuffix('_us')} {row[name]:g}" for name in schema.STEP_PARTS if row[name])
        for _, row in table.iterrows()
    ]


def on_cpu(events: Iterable[Event], *others: list[Event]) -> list[str]:
    """Of events in one step from 0 to 100 on its thread, and of those on other threads."""
    return parts(threads([step(0, 100), *events], *others))


def gpu(*streams: Line) -> object:
    return plane("/device:GPU:0", *streams)


def on_gpu(streams: list[list[Event]], *host: Event) -> list[str]:
    """Of events in one step from 0 to 100, on its thread and on streams."""
    return parts(threads([step(0, 100), *host]), gpu(*(line(f"Stream #{i}", *s, id=i) for i, s in enumerate(streams))))


# The host alone


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MatMul:MatMul", "host_compute 30 idle 70"),
        ("ExecutorState::Process", "host_compute 30 idle 70"),
        ("IteratorGetNextOp::DoCompute", "input 30 host_compute 1 idle 69"),
        ("a/b:MultiDeviceIteratorGetNextFromShard", "input 30 host_compute 1 idle 69"),
        ("feed:InfeedEnqueueTuple", "input 30 host_compute 1 idle 69"),
        ("MEMCPYHtoD", "input 30 host_compute 1 idle 69"),
        ("MemcpyHtoH", "host_compute 1 idle 69 other 30"),
        ("$compiler.py:244 backend_compile", "compile 30 host_compute 1 idle 69"),
        ("XlaCompile", "compile 30 host_compute 1 idle 69"),
        ("TfrtTpuCompiler::Compile", "compile 30 host_compute 1 idle 69"),
        ("cluster_0/xla_compile:_XlaCompile", "compile 30 host_compute 1 idle 69"),
        ("$re.py:250 compile", "host_compute 30 idle 70"),
        ("EagerExecute: MatMul", "host_compute 1 idle 99"),
        ("train_step", "host_compute 1 idle 99"),
    ],
)
def test_what_the_host_does_by_its_name(name: str, expected: str) -> None:
    """An op of 1 µs makes it a step; where the whole is host compute, it lies within."""
    inside = expected.startswith("host_compute 30")
    assert on_cpu([event(name, 10, 30), event("op:A", 12 if inside else 60, 1)]) == [expected]


def test_the_first_in_order_explains_what_several_share() -> None:
    """Waiting, handing over, copying on the host, compiling, computing: each a tenth longer on a thread of its own."""
    names = ["IteratorGetNext", "feed:InfeedEnqueue", "MemcpyHtoH", "XlaCompile", "op:A"]
    handed = [event("Schedule", i, 0.1, _pt=1, _p=i) for i in range(len(names))]
    others = [[event(name, 10, 10 * (i + 1), _ct=1, _c=i)] for i, name in enumerate(names)]
    assert on_cpu(handed, *others) == ["compile 10 input 20 host_compute 10.5 idle 49.5 other 10"]


HANDED_OVER = event("Schedule", 10, 1, _pt=1, _p=1)
STAGE = {"_ipl_stage_id": 1, "_ipl_stage_name": "read", "_ipl_stage_cat": "read"}
ONE_STEP = {
    "events that overlap or nest count once": (
        [[event("a:A", 10, 30), event("b:B", 20, 10), event("c:C", 30, 30)]],
        "host_compute 50 idle 50",
    ),
    "events are cut to their step": (
        [[HANDED_OVER], [event("late:B", 90, 50, _ct=1, _c=1)]],
        "host_compute 11 idle 89",
    ),
    "what takes no time explains none": (
        [[event("IteratorGetNext", 50, 0), event("op:A", 10, 5)]],
        "host_compute 5 idle 95",
    ),
    "input made ahead in the time of the step, which no step led to": (
        [[event("op:A", 5, 5)], [event("Iterator::Root::Map", 0, 100), event("decode:DecodePng", 0, 90)]],
        "host_compute 5 other 95",
    ),
    "root stages of a marked input pipeline are waited for": (
        [[event("next_batch", 10, 30, STAGE), event("read", 15, 10, STAGE, _ipl_stage_id=2), event("op:A", 50, 5)]],
        "input 30 host_compute 5 idle 65",
    ),
    "a stage that another handed over is not waited for": (
        [[event("made", 1, 1, _pt=1, _p=1), event("read", 10, 30, STAGE, _ct=1, _c=1)]],
        "host_compute 31 idle 69",
    ),
}


@pytest.mark.parametrize("events, expected", ONE_STEP.values(), ids=ONE_STEP)
def test_what_explains_a_step_on_a_host(events: list[list[Event]], expected: str) -> None:
    assert on_cpu(*events) == [expected]


def test_hosts_wait_for_each_other_from_asking_to_the_answer_on_another_thread() -> None:
    asks = [event("CollectiveExecutor::RunClosure", at, 2, _ct=2, _c=context) for at, context in ((30, 7), (90, 8))]
    answer = event("CollectiveExecutor::CompleteParamsAsync::Done", 50, 4, _ct=2, _c=7)
    collectives = [*asks, event("sum:CollectiveReduceV2", 60, 20)]
    assert on_cpu([event("layer:MatMul", 10, 5), event("other:MatMul", 35, 5)], collectives, [answer]) == [
        "host_compute 10 host_collectives 35 idle 55"
    ]


def test_functions_that_tf_data_runs_are_waited_for_but_not_computing() -> None:
    """The callback outlasts the wait, and is still no work of the step's."""
    python = [
        event("IteratorGetNextOp::DoCompute", 10, 40),
        event("InstantiatedCapturedFunction::Run", 11, 38, id=7),
        event("Schedule", 12, 1, _pt=1, _p=1),
    ]
    pool = [
        event("ExecutorState::Process", 20, 20, id=7, _ct=1, _c=1),
        event("decode:DecodePng", 21, 18),
        event("ExecutorDoneCallback", 45, 30, id=7, _ct=1, _c=1),
        event("another:A", 80, 5, _ct=1, _c=1),
    ]
    assert on_cpu(python, pool) == ["input 40 host_compute 5 idle 55"]


@pytest.mark.parametrize(
    ("name", "stats"),
    [("Profiled batch", {"step_num": 3}), ("train 3", {}), ("TraceContext", {"graph_type": "train", "step_num": 3})],
)
def test_steps_of_every_kind_of_marker_have_parts(name: str, stats: dict[str, Value]) -> None:
    events = [event(name, 0, 100, stats), event("IteratorGetNext", 5, 20), event("op:A", 30, 40)]
    assert parts(threads(events)) == ["input 20 host_compute 40 idle 40"]


def test_the_marker_that_the_user_names_explains_nothing_itself() -> None:
    host = threads([event("mine", 0, 100), event("op:A", 30, 40)])
    row = run_with(host, step_marker="mine").table("steps").iloc[0]
    assert (row["host_compute_us"], row["idle_us"]) == (40, 60)


def test_stored_groups() -> None:
    host = [event("op:A", 30, 40, group_id=1), event("IteratorGetNext", 5, 20, group_id=1), event("op:A", 80, 9)]
    marker = event("root", 0, 100, group_id=1, step_name="3")
    assert parts(threads([marker, *host])) == ["input 20 host_compute 40 idle 31 other 9"]


def test_steps_that_overlap_are_each_explained_in_full() -> None:
    context = [event("TraceContext", 20, 60, step_num=9), event("inner:B", 30, 5)]
    host = threads([step(0, 100), event("op:A", 5, 10), *context])
    assert parts(host, gpu(line("Stream", event("k", 50, 8)))) == [
        "host_compute 10 device_compute 8 idle 77 other 5",
        "host_compute 5 device_compute 8 idle 47",
    ]


def test_ops_get_no_more_of_a_step_than_its_part_where_steps_overlap() -> None:
    def worker(number: int, start: float, waits_from: float, waits: float) -> Line:
        wait = event("IteratorGetNext:IteratorGetNext", waits_from, waits)
        return line(f"worker {number}", step(start, 100, number), wait, event("op:A", start + 95, 1))

    prefetching = line("tf_data", event("Iterator::Root::Map", 30, 110, id=1))
    run = run_with(plane("/host:CPU", worker(1, 0, 10, 70), worker(2, 40, 100, 30), prefetching))
    assert run.table("steps")["input_us"].tolist() == [70, 30]
    wall = run.tables.host_table("op_wall")
    of_input = wall[wall["step_part"] == schema.STEP_PARTS.index("input_us")]
    assert (of_input.groupby("step")["wall_time_ps"].sum() / 1e6).to_dict() == {1: 70, 2: 30}


def test_without_steps_there_are_no_rows() -> None:
    assert parts(threads([event("op:A", 5, 10)])) == []


# GPUs


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("gemm", "device_compute"),
        ("MemcpyH2D", "input"),
        ("MemcpyD2H", "output"),
        ("MemcpyD2D", "device_to_device"),
        ("Memset", "device_compute"),
        ("MemcpyH2H", "other"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "device_collectives"),
        ("ncclSymkDevKernel_ReduceScatter_LL_sum_f32", "device_collectives"),
        ("void stream_executor::gpu::(anonymous namespace)::AllReduceKernelImpl<float>(int)", "device_collectives"),
        ("void stream_executor::gpu::MultiGpuBarrierKernelImpl<0>(long)", "device_collectives"),
        ("RaggedAllToAllKernelImpl", "device_collectives"),
        ("void vllm::cross_device_reduce_1stage<__half, 8>(vllm::RankData*, int)", "device_collectives"),
        ("tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<1>(int)", "device_collectives"),
        ("multimem_all_reduce_kernel", "device_collectives"),
        ("void twoShotAllReduceKernel<float, 8>(AllReduceParams)", "device_collectives"),
        ("nvshmemi_barrier_kernel", "device_collectives"),
        ("all_gather_start_1", "device_collectives"),
        ("block_all_reduce_sum_fp32(float*, float*, int)", "device_compute"),
        ("void WarpAllReduceMax<float>(float*)", "device_compute"),
        ("void reduce<float, BlockAllReduce<float>>(float*)", "device_compute"),
        ("void oneflow::softmax::AllReduceRows<float>(float*)", "device_compute"),
        ("input_reduce_scatter_fusion", "device_compute"),
    ],
)
def test_what_a_gpu_does_by_its_name(name: str, part: str) -> None:
    expected = {"host_compute": 1.0, "idle": 69.0}
    expected[part] = expected.get(part, 0) + 30
    names = [part.removesuffix("_us") for part in schema.STEP_PARTS]
    shown = " ".join(f"{name} {expected[name]:g}" for name in names if name in expected)
    assert on_gpu([[event(name, 10, 30)]], event("op:A", 60, 1)) == [shown]


def test_a_copy_whose_stream_alone_tells_its_kind() -> None:
    copy = line("Stream #2(MemcpyH2D)", event("x", 10, 30, memcpy_details="size:8"))
    assert parts(threads([step(0, 100), event("op:A", 60, 1)]), gpu(copy)) == ["input 30 host_compute 1 idle 69"]


def test_order_on_a_gpu() -> None:
    """Computing hides copies, copies to the host those on the device, these collectives, these copies to the device."""
    names = ["gemm", "MemcpyD2H", "MemcpyD2D", "ncclKernel", "MemcpyH2D"]
    assert on_gpu([[event(n, 10, 10 * (i + 1))] for i, n in enumerate(names)], event("op:A", 80, 1)) == [
        "input 10 output 10 host_compute 1 device_collectives 10 device_to_device 10 device_compute 10 idle 49"
    ]


def test_what_the_host_does_explains_the_time_in_which_no_device_is_busy() -> None:
    """The kernel hides the wait but for its first 10 µs, the launch but for its last 5."""
    host = [event("IteratorGetNext", 0, 30), event("cuLaunchKernel", 40, 15, LAUNCHED)]
    assert on_gpu([[event("gemm", 10, 40, LAUNCHED)]], *host) == ["input 10 kernel_launch 5 device_compute 40 idle 45"]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ([event("hipModuleLaunchKernel", 10, 20, LAUNCHED)], "kernel_launch 20"),
        ([event("gemm", 10, 20, LAUNCHED)], "kernel_launch 20"),  # older files name the call after the kernel
        ([event("cudaLaunchKernel", 10, 20)], "kernel_launch 20"),
        ([event("cuStreamSynchronize", 10, 20, LAUNCHED)], "host_compute 20"),
        ([event("ExecutorState::Process", 10, 20)], "kernel_launch 20"),
        ([event("PjRtStreamExecutorLoadedExecutable::ExecuteHelper", 10, 20)], "kernel_launch 20"),
        ([event("a:A", 10, 20), event("cuLaunchKernel", 12, 3, LAUNCHED)], "kernel_launch 20"),
        ([event("a:A", 10, 20), event("cuLaunchKernel", 30, 3, LAUNCHED)], "kernel_launch 3 host_compute 20"),
        ([event("ExecutorState::Process", 10, 20), event("a:A", 12, 5)], "kernel_launch 15 host_compute 5"),
        (
            [event("a:A", 10, 20), event("XlaCompile", 12, 5), event("cuLaunchKernel", 20, 1, LAUNCHED)],
            "compile 5 kernel_launch 15",
        ),
        ([event("Python code", 10, 20)], "host_compute 20"),
    ],
)
def test_launching_is_told_from_computing(host: list[Event], expected: str) -> None:
    total = sum(float(n) for n in expected.split()[1::2])
    assert on_gpu([[event("k", 90, 1), event("Memset", 95, 0)]], *host, event("op:A", 90, 1)) == [
        f"{expected} device_compute 1 idle {99 - total:g}"
    ]


def test_kernels_and_launches_count_when_they_run_whoever_led_to_them() -> None:
    """The first step's kernels run in the marker of the second, so it lasts from 110 to 150. They count in the second,
    too, as a launch that no step led to counts in both and its kernel until the second ends."""
    python = [
        step(0, 100, 1),
        event("cuLaunchKernel", 10, 5, correlation_id=1),
        event("cuLaunchKernel", 16, 1, correlation_id=3),
        event("a:A", 20, 1),
        step(100, 100, 2),
        event("b:B", 101, 1),
    ]
    other = [event("cuLaunchKernel", 125, 5, correlation_id=2)]
    kernels = [
        event("k", start, length, correlation_id=i) for i, start, length in [(1, 110, 10), (3, 140, 10), (2, 195, 20)]
    ]
    assert parts(threads(python, other), gpu(line("Stream", *kernels))) == [
        "kernel_launch 5 device_compute 20 idle 15",
        "kernel_launch 5 host_compute 1 device_compute 25 idle 69",
    ]


def test_devices_are_busy_while_any_of_them_is() -> None:
    two = [plane(f"/device:GPU:{i}", line("Stream", event("k", 10 + 20 * i, 30))) for i in range(2)]
    assert parts(threads([step(0, 100), event("op:A", 80, 1)]), *two) == ["host_compute 1 device_compute 50 idle 49"]


def test_a_steps_line_without_groups_goes_by_names_that_say_enough() -> None:
    """What the host did for the step is not known: waiting and launching count, computing may be anybody's."""
    host = [event("IteratorGetNext", 5, 10), event("op:A", 20, 30), event("cuLaunchKernel", 60, 5, LAUNCHED)]
    device = gpu(line("Steps", event("1", 0, 100), id=-559038737), line("Stream", event("k", 70, 20, LAUNCHED)))
    assert parts(threads([*host]), device) == ["input 10 kernel_launch 5 device_compute 20 idle 35 other 30"]


# TPUs


def test_what_a_tpu_does_by_category_or_name() -> None:
    """A loop around instructions explains only what those leave."""

    def op(name: str, start: float, length: float, category: str = "") -> Event:
        stats = {"hlo_category": category} if category else {}
        return event(meta(name, "", stats), start, length)

    ops = [
        op("%while.1 = (s32[]) while(...)", 0, 60),
        op("%fusion.2 = f32[] fusion(...)", 0, 10),
        op("%all-reduce-start.3 = f32[]", 10, 10),
        op("%x", 20, 10, "infeed"),
        op("%outfeed.1", 30, 10),
        op("%send.1", 40, 5),
        op("%call-something.2", 70, 5),
    ]
    tpu = plane(
        "/device:TPU:0", line("Steps", event("1", 0, 100)), line("XLA Ops", *ops), line("Other", event("x", 80, 9))
    )
    assert parts(tpu) == ["input 10 output 10 device_collectives 10 device_to_device 5 device_compute 30 idle 35"]


def instruction(name: str, start: float, length: float, category: str = "") -> Event:
    return event(meta(name, "", {"hlo_category": category} if category else {}), start, length)


def core(number: int, *instructions: Event, waits: Iterable[Event] = ()) -> object:
    """A TPU core with one step from 0 to 100."""
    steps = line("Steps", event("1", 0, 100))
    return plane(f"/device:TPU:{number}", steps, line("XLA Ops", *instructions), line("XLA TraceMe", *waits, id=1))


@pytest.mark.parametrize(
    ("name", "category", "part"),
    [
        ("%copy-done.2 = f32[5] copy-done(…)", "", "device_waits"),
        ("%x", "copy-done", "device_waits"),
        ("%async-done.1", "async-done", "device_waits"),
        ("%call-done", "", "device_waits"),
        ("%dynamic-update-slice-done.3", "", "device_waits"),
        ("%send-done.1", "send-done", "device_waits"),
        ("%recv-done.2", "", "device_waits"),
        ("%recv-done.3", "host recv-done", "device_waits"),
        ("%all-reduce-done.3", "", "device_collectives"),
        ("%x", "all-gather-done", "device_collectives"),
        ("%collective-permute-done.4", "collective-permute-done", "device_collectives"),
        ("%async-collective-done.1", "", "device_collectives"),
        ("%all-gather.5", "async-done", "device_collectives"),
        ("%recv.1", "", "device_to_device"),
        ("%copy-done-fusion.1", "", "device_compute"),
        ("%copy-start.1", "", "device_compute"),
        ("%all-reduce.7", "loop fusion", "device_compute"),
    ],
)
def test_what_awaits_the_end_of_something_is_a_wait_or_its_collective(name: str, category: str, part: str) -> None:
    assert parts(core(0, instruction(name, 10, 30, category))) == [f"{part} 30 idle 70"]


def test_waits_between_the_instructions_of_a_core() -> None:
    waits = [event("barrier-cores", 40, 20), event("dependency-wait", 70, 5), event("Trace Buffers Dropped", 80, 5)]
    assert parts(core(0, instruction("%fusion.1", 0, 45), waits=waits)) == ["device_compute 45 device_waits 20 idle 35"]


def test_a_wait_explains_what_no_device_does_before_the_loop_around_it_and_the_host() -> None:
    """Core 0 runs a loop in which it computes, communicates and waits; core 1 computes, receives, then waits alone."""
    loop = instruction("%while.1", 0, 80)
    inner = [instruction("%fusion.2", 0, 10), instruction("%all-reduce.3", 10, 10), instruction("%copy-done.4", 20, 50)]
    other = [instruction("%fusion.5", 30, 10), instruction("%recv.6", 40, 10)]
    alone = [event("barrier-cores", 0, 90)]
    host = threads([event("IteratorGetNext", 60, 40)])
    assert parts(host, core(0, loop, *inner), core(1, *other, waits=alone)) == [
        "input 10 device_collectives 10 device_to_device 10 device_compute 20 device_waits 50"
    ]
    assert parts(core(0, loop, *inner)) == ["device_collectives 10 device_compute 20 device_waits 50 idle 20"]


def test_instructions_that_wait_have_wall_time_in_waits() -> None:
    done = meta("%copy-done.4", "", program_id=1, symbol_id=1, tf_op="prefetch:Copy", hlo_category="copy-done")
    run = run_with(core(0, event(done, 20, 50), instruction("%fusion.5", 30, 10)))
    wall = run.tables.op_shares("a").frame()
    assert rows(wall, "op_name", "step_part", "wall_time_us") == ["prefetch device_waits_us 40"]


# The table


def test_the_diff_shows_the_parts_of_a_step_undivided() -> None:
    one, two = (run_with(threads([step(0, 100), event("op:A", 5, n)])) for n in (10, 30))
    row = tfc.compare(one, two).table("steps").iloc[0]
    assert [row[f"host_compute_us_{c}"] for c in ("baseline", "candidate", "delta", "ratio")] == [10, 30, 20, 3]


# The longest idle gap of a step: on devices together where there are any, else on the host's threads


def gaps(run: Run) -> list[str]:
    columns = ("step", "host_or_device", "start_us", "duration_us", "op_before", "op_after")
    return rows(run.table("idle_gaps"), *columns)


def test_gaps_lie_before_between_and_after_the_ops_of_a_step() -> None:
    steps = [event("train", 1000 * number, 100, step_num=number, _r=1) for number in (1, 2, 3)]
    ops = [
        *(event("a:A", 1040, 10), event("b:B", 1060, 40)),
        *(event("a:A", 2005, 40), event("inner:I", 2010, 5), event("b:B", 2075, 20)),
        event("a:A", 3000, 30),
    ]
    run = run_with(threads(steps + ops))
    assert gaps(run) == ["1 Host 1000 40  a", "2 Host 2045 30 a b", "3 Host 3030 70 a "]


def test_a_step_without_marker_has_no_gap() -> None:
    run = run_with(threads([event("a:A", 0, 10), event("b:B", 50, 10)]))
    assert gaps(run) == []
