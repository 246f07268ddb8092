"""Rules for devices and memory, each on a small case and just below its threshold; the time of each device's ops."""

from __future__ import annotations

from typing import Any

import pytest

from tests.frames.tables import kernel, run_of, stream
from tests.views.advice.advice_facts import BETTER, STEP_US, copies, facts, instructions, kernels, memory, ops
from tests.xspace_builder import Plane, event, line, plane, space
from tfcompare.run import Run
from tfcompare.schema import STEP_PARTS
from tfcompare.views.advice import device_rules, facts_of, memory_rules

BUSY = {"device_compute": 8000.0}
TWO = {"/device:GPU:0": 100_000.0, "/device:GPU:1": 5_000.0}


@pytest.mark.parametrize(("framework", "call"), [("TensorFlow", "jit_compile=True"), ("JAX", "`jax.jit`")])
def test_launches_that_the_device_waits_for(framework: str, call: str) -> None:
    tiny = kernels(("k", "op", 500, 1000, False, False))
    found = device_rules.launch_bound(
        facts({"kernel_launch": 1600}, device_type="GPU", framework=framework, kernels=tiny)
    )
    assert found is not None and call in found.text
    assert "500 kernels of 2.00 µs on average" in found.text
    assert device_rules.launch_bound(facts({"kernel_launch": 1400}, device_type="GPU", kernels=tiny)) is None


def crowded(threads: float, cores: int) -> dict[str, Any]:
    """What makes as many threads busy on as many cores."""
    return {
        "pipeline": BETTER,
        "changed": {"ParallelMapV2": {"settings": f"cpu_budget={cores}"}},
        "ops": ops(("Host", "Mul", "m", 1, threads * STEP_US)),
    }


def test_launches_that_share_busy_threads() -> None:
    run = facts({"kernel_launch": 1600}, device_type="GPU", **crowded(3.0, 4))
    found = device_rules.launch_threads(run)
    assert found is not None and "`TF_GPU_THREAD_MODE=gpu_private`" in found.text
    assert "for 1.60 ms of each step" in found.text and "3 threads are within an op, on 4 cores" in found.text
    assert device_rules.launch_threads(facts({"kernel_launch": 1400}, device_type="GPU", **crowded(3.0, 4))) is None
    assert device_rules.launch_threads(facts({"kernel_launch": 1600}, device_type="GPU", **crowded(1.9, 4))) is None
    jax = facts({"kernel_launch": 1600}, device_type="GPU", framework="JAX", **crowded(3.0, 4))
    assert device_rules.launch_threads(jax) is None


def test_room_for_a_larger_batch_where_the_device_waits_for_the_host() -> None:
    waiting = {"kernel_launch": 1500.0, "host_compute": 500.0, "other": 500.0, "device_compute": 7500.0}
    run = facts(waiting, device_type="GPU", memory=memory("GPU_0_bfc", 4_000_000, 10_000_000))
    found = device_rules.larger_batch(run)
    assert found.title == "A larger batch fits, and the device waits for the host 25.0 % of the step"
    assert "held 4.00 MB of 10.0 MB at most since the program began, and for 2.50 ms of each step" in found.text
    for silent in (
        facts(waiting, device_type="GPU", memory=memory("GPU_0_bfc", 5_000_000, 10_000_000)),
        facts(waiting, device_type="GPU", memory=memory("gpu_host_bfc", 1, 10_000_000)),
        facts(waiting, memory=memory("GPU_0_bfc", 1, 10_000_000)),
        facts(waiting, device_type="GPU"),
        facts({"device_compute": 8500.0}, device_type="GPU", memory=memory("GPU_0_bfc", 1, 10_000_000)),
    ):
        assert device_rules.larger_batch(silent) is None


@pytest.mark.parametrize(
    ("kind", "part", "call"),
    [("device to host", "output", "`.numpy()`"), ("host to device", "input", "prefetch_to_device")],
)
def test_copies_that_take_a_good_part_of_the_step(kind: str, part: str, call: str) -> None:
    run = facts(BUSY | {part: 1500}, device_type="GPU", copies=copies(kind, 1500, 2_000_000))
    found = device_rules.copies(run)
    assert found is not None and call in found.text
    assert f"Copies from {kind} take 1.50 ms a step for 2.00 MB." in found.text
    assert device_rules.copies(facts(BUSY | {part: 1500}, device_type="GPU", copies=copies(kind, 900))) is None
    hidden = facts(BUSY | {part: 900}, device_type="GPU", copies=copies(kind, 1500))
    assert device_rules.copies(hidden) is None, "copies while the device computes cost nothing"


def test_without_steps_copies_are_held_against_the_devices_time() -> None:
    there = copies("device to host", 1500)
    run = facts(has_steps=False, device_type="GPU", device_us={"d": 200_000.0}, copies=there)
    found = device_rules.copies(run)
    assert found is not None and found.title.endswith("takes 15.0 % of the time")
    idle = facts(has_steps=False, device_type="GPU", device_us={"d": 900_000.0}, copies=there)
    assert device_rules.copies(idle) is None


def test_a_device_that_does_next_to_nothing() -> None:
    found = device_rules.uneven_devices(facts(BUSY, device_type="GPU", device_us=TWO))
    assert found.text.startswith("`/device:GPU:1` works 250 µs a step, `/device:GPU:0` 5.00 ms.")
    even = TWO | {"/device:GPU:1": 50_000.0}
    assert device_rules.uneven_devices(facts(BUSY, device_type="GPU", device_us=even)) is None
    assert device_rules.uneven_devices(facts(BUSY, device_type="GPU")) is None


def test_a_device_that_idles_for_no_reason_of_its_own() -> None:
    bit_of_all = {"kernel_launch": 900, "host_compute": 900, "other": 900, "input": 300}
    run = facts(bit_of_all | {"device_compute": 7000}, device_type="GPU")
    found = device_rules.idle_device(run)
    assert found is not None and found.title == "The device idles 30.0 % of the step"
    one_reason = {"kernel_launch": 3000, "host_compute": 0, "device_compute": 7000}
    assert device_rules.idle_device(facts(one_reason, device_type="GPU")) is None, "another rule says why"
    used = {"kernel_launch": 900, "host_compute": 900, "device_compute": 8200}
    assert device_rules.idle_device(facts(used, device_type="GPU")) is None
    assert device_rules.idle_device(facts({"other": 900})) is None


def test_devices_that_wait_are_not_idle_unless_copies_are_what_they_wait_for() -> None:
    waiting = {"device_compute": 6500, "device_waits": 3500, "host_compute": 0}
    run = facts(waiting, device_type="TPU")
    found = device_rules.device_waits(run)
    assert found is not None and found.title == "Devices wait 35.0 % of the step"
    assert "For 3.50 ms of each step" in found.text and found.saves == pytest.approx(0.35)
    assert device_rules.idle_device(run) is None
    done = {"hlo_op": "copy-done.4", "category": "copy-done", "expression": "%copy-done.4 = f32[5] copy-done(…)"}
    of_copies = facts(waiting, device_type="TPU", hlo_ops=instructions(done | {"self_time_us": 3500.0}))
    assert device_rules.device_waits(of_copies) is None
    few = {"device_compute": 9100, "device_waits": 900, "host_compute": 0}
    assert device_rules.device_waits(facts(few, device_type="TPU")) is None


@pytest.mark.parametrize(("framework", "call"), [("TensorFlow", "tf.profiler"), ("JAX", "jax.profiler")])
def test_a_profile_without_steps_says_how_to_find_out_why_devices_idle(framework: str, call: str) -> None:
    busy = ops(("Device", "Conv2D", "a", 1, 1000))
    run = facts(has_steps=False, device_type="GPU", framework=framework, idle_us=60_000.0, ops=busy)
    found = device_rules.idle_device(run)
    assert found is not None and call in found.text
    assert found.title == "The devices idle 75.0 % of the time"
    assert device_rules.idle_device(facts(has_steps=False, device_type="GPU", idle_us=15_000.0, ops=busy)) is None


@pytest.mark.parametrize(("framework", "call"), [("TensorFlow", "recompute_grad"), ("JAX", "jax.checkpoint")])
def test_a_memory_that_is_nearly_full(framework: str, call: str) -> None:
    found = memory_rules.full(facts(framework=framework, memory=memory("GPU_0_bfc", 95 * 10**8, 10**10)))
    assert found is not None and call in found.text
    assert found.title == "`GPU_0_bfc` is 95.0 % full at its peak"
    assert memory_rules.full(facts(memory=memory("GPU_0_bfc", 89 * 10**8, 10**10))) is None
    assert memory_rules.full(facts(memory=memory("GPU_0_bfc", 0, 0))) is None


@pytest.mark.parametrize(("framework", "call"), [("TensorFlow", "TF_GPU_ALLOCATOR"), ("JAX", "PREALLOCATE")])
def test_a_well_filled_memory_in_pieces(framework: str, call: str) -> None:
    found = memory_rules.fragmented(facts(framework=framework, memory=memory("m", 60, 100, 0.4)))
    assert found is not None and call in found.text
    assert "is 60.0 % full, and 40.0 % of its free memory" in found.text
    assert memory_rules.fragmented(facts(memory=memory("m", 60, 100, 0.2))) is None
    assert memory_rules.fragmented(facts(memory=memory("m", 40, 100, 0.4))) is None, "there is room enough"


def gpu(number: int) -> Plane:
    ops = [event("k", 10 * i, number + 1, tf_op=f"op{i}:A") for i in range(3)]
    return plane(f"/device:GPU:{number}", line("Stream", *ops))


def test_they_are_those_of_each_devices_table() -> None:
    host = plane("/host:CPU", line("t", event("op:B", 0, 500)))
    run = run_of(space(host, gpu(2), gpu(0), plane("/device:GPU:1")), space(host, gpu(0)))
    for name in (None, "a", "b"):
        by_table = {d: run.table("op_stats", host=name, device=d).query("op_type != 'IDLE'") for d in run.devices}
        expected = {d: ops["self_time_us"].sum() for d, ops in by_table.items() if len(ops)}
        assert facts_of(run, name).device_us == pytest.approx(expected)
    assert facts_of(run).device_us == {"/device:GPU:0": 6.0, "/device:GPU:2": 9.0}


def exchanging(devices: int) -> Run:
    """Steps of 1 ms. The first device exchanges data for 400 µs, while the second one computes; then both compute."""
    host = [event("train", 1_000 * i, 1_000, _r=1, step_num=i) for i in range(4)]
    host += [event("cuLaunchKernel", 1_000 * i + 10, 1, correlation_id=i) for i in range(4)]
    names = (("ncclDevKernel_AllReduce", "gemm"), ("gemm", "gemm"))[:devices]
    planes = []
    for number, (first, second) in enumerate(names):
        kernels = [(first, 100, 400), (second, 500, 400)]
        events = [kernel(name, 1_000 * i + at, us, correlation_id=i) for i in range(4) for name, at, us in kernels]
        planes.append(stream(*events, device=number))
    return run_of(space(plane("/host:CPU", line("python", *host)), *planes))


def test_an_exchange_is_exposed_where_its_own_device_computes_nothing() -> None:
    found = facts_of(exchanging(2))
    assert found.part_us("device_collectives_us") == 0, "another device computes"
    assert found.device_part_us("device_collectives_us") == pytest.approx(200), "400 on one device, 0 on the other"
    advice = device_rules.collectives(found)
    assert advice is not None and advice.title == "Exchanges between devices take 20.0 % of the step"
    assert "For 200 µs of each step, on average over the devices, a device exchanges data" in advice.text


def test_of_one_device_the_parts_are_those_of_the_step() -> None:
    found = facts_of(exchanging(1))
    parts = {part: found.part_us(part) for part in STEP_PARTS}
    assert found.device_parts == pytest.approx(parts) and parts["device_collectives_us"] == pytest.approx(400)
