"""Rules for devices, memory and compute, each on a small case and just below its threshold; times of devices."""

from __future__ import annotations

from typing import Any

import pytest

from tests.frames.tables import kernel, run_of, stream
from tests.views.advice.advice_facts import BETTER, STEP_US, copies, facts, instructions, kernels, memory, ops
from tests.xspace_builder import Plane, event, line, plane, space
from tfcompare.run import Run
from tfcompare.schema import STEP_PARTS
from tfcompare.views.advice import device_rules, facts_of, kernel_rules, memory_rules, model_rules
from tfcompare.views.advice.model_rules import normalized_biases

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


COMPUTING = {"device_compute": 9000.0}
RELU = ("relu", "conv/Relu", 1, 3000.0, False, False)


def product(kernel: str, *, on_cores: bool) -> tuple[str, str, int, float, bool, bool]:
    return (kernel, "conv/Conv2D", 1, 6000.0, True, on_cores)


@pytest.mark.parametrize(("framework", "call"), [("TensorFlow", "mixed_float16"), ("JAX", "jnp.bfloat16")])
@pytest.mark.parametrize(
    ("kernel", "on_cores"),
    [("ampere_sgemm_128x64", False), ("some_gemm", False), ("igemm_fwd_gtcx_nhwc_fp32_bx0", True)],
)
def test_products_of_32_bits(framework: str, call: str, kernel: str, on_cores: bool) -> None:
    there = kernels(product(kernel, on_cores=on_cores), RELU)
    found = kernel_rules.mixed_precision(facts(COMPUTING, device_type="GPU", framework=framework, kernels=there))
    assert found is not None and call in found.text
    assert found.title == "66.7 % of the kernel time is 32-bit matrix products"
    assert found.saves == pytest.approx(2 / 3 * 0.9 / 2)


def test_the_share_of_16_bits_is_evidence_where_the_steps_tell_it() -> None:
    there = kernels(product("ampere_sgemm_128x64", on_cores=False), RELU)
    told = COMPUTING | {"device_compute_16_bit": 900.0, "device_compute_32_bit": 8100.0}
    labels = []
    for parts in (COMPUTING, told):
        case = facts(parts, device_type="GPU", kernels=there)
        found = kernel_rules.mixed_precision(case)
        labels.append([figure.label for figure in found.figures])
        shares = [f.of(case) for f in found.figures if f is kernel_rules.IN_SIXTEEN_BITS]
    assert labels[1] == [*labels[0], kernel_rules.IN_SIXTEEN_BITS.label]
    assert shares == [0.1]


@pytest.mark.parametrize(
    "there",
    [
        kernels(product("volta_fp16_s884gemm", on_cores=True), RELU),
        kernels(product("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1", on_cores=True), RELU),
        kernels(product("Cijk_Ailk_Bljk_HHS_BH_MT64", on_cores=False), RELU),
        kernels(product("gemm_fusion_dot_2", on_cores=True), RELU),
        kernels(product("input_transpose_fusion", on_cores=False), RELU),
        kernels(("sgemm", "dense/MatMul", 1, 1000.0, True, False), ("relu", "r", 1, 8000.0, False, False)),
        kernels(RELU),
        kernels(),
    ],
)
def test_products_of_16_bits_of_unknown_ones_or_of_few(there) -> None:
    assert kernel_rules.mixed_precision(facts(COMPUTING, device_type="GPU", kernels=there)) is None


@pytest.mark.parametrize(("operands", "is_told"), [("bf16[8,8]", False), ("f32[8,8]", True)])
def test_products_whose_instruction_takes_16_bits_are_not_of_32(operands: str, is_told: bool) -> None:
    """Triton's kernels do not tell by their names what they multiply."""
    there = kernels(product("gemm_fusion_dot_2", on_cores=False), RELU)
    text = f"%gemm_fusion_dot.2 = f32[8,8] fusion({operands} %x, {operands} %y), kind=kCustom"
    ran = instructions({"hlo_op": "gemm_fusion_dot.2", "op_name": "conv/Conv2D", "expression": text, "self_time_us": 1})
    found = kernel_rules.mixed_precision(facts(COMPUTING, device_type="GPU", kernels=there, hlo_ops=ran))
    assert (found is not None) is is_told


def test_products_do_not_matter_where_the_device_hardly_computes() -> None:
    there = kernels(product("sgemm", on_cores=False), RELU)
    assert kernel_rules.mixed_precision(facts({"device_compute": 1000}, device_type="GPU", kernels=there)) is None


@pytest.mark.parametrize(("framework", "call"), [("TensorFlow", "channels_last"), ("JAX", "dimension_numbers")])
@pytest.mark.parametrize(
    "name", ["void tensorflow::functor::SwapDimension1And2InTensor3<…>", "cudnn::nchwToNhwcKernel", "transpose_fusion"]
)
def test_transposes_around_convolutions(framework: str, call: str, name: str) -> None:
    there = kernels(product("conv_fp16", on_cores=True), (name, "conv/Conv2D", 4, 1500.0, True, False))
    found = kernel_rules.layout(facts(COMPUTING, device_type="GPU", framework=framework, kernels=there))
    assert found is not None and call in found.text
    assert "take 1.50 ms a step, in 4 launches" in found.text


def test_transposes_of_other_programs_or_few_of_them() -> None:
    attention = kernels(("gemm", "MatMul", 1, 6000.0, True, True), ("transpose", "attention", 4, 1500.0, False, False))
    assert kernel_rules.layout(facts(COMPUTING, device_type="GPU", kernels=attention)) is None
    few = kernels(product("conv_fp16", on_cores=True), ("transpose", "conv/Conv2D", 4, 300.0, True, False))
    assert kernel_rules.layout(facts(COMPUTING, device_type="GPU", kernels=few)) is None


CONVOLUTIONS = (
    ("Host", "Conv2D", "a/Conv2D", 1, 2000.0),
    ("Host", "Conv2DBackpropFilter", "gradient_tape/a/Conv2DBackpropFilter", 1, 5000.0),
    ("Host", "_MklNativeConv2DBackpropInput", "gradient_tape/a/Conv2DBackpropInput", 1, 1000.0),
)


def test_convolutions_that_dominate() -> None:
    found = model_rules.convolutions(facts(ops=ops(*CONVOLUTIONS, ("Host", "Relu", "a/Relu", 1, 2000.0))))
    assert found.title == "Convolutions take 80.0 % of the op time"
    assert "8.00 ms a step" in found.text
    assert found.saves == 0, "it is work, of which nothing tells how much is needless"
    assert "`gradient_tape/a/Conv2DBackpropFilter` with 5.00 ms" in found.text
    others = ops(*CONVOLUTIONS, ("Host", "MatMul", "dense/MatMul", 1, 9000.0))
    assert model_rules.convolutions(facts(ops=others)) is None
    waiting = facts({"input": 9600}, ops=ops(*CONVOLUTIONS))
    assert model_rules.convolutions(waiting) is None, "they are not what the step waits for"


def test_transposing_for_a_convolution_is_none() -> None:
    device = ops(("Device", "Conv2D", "conv/Conv2D", 1, 9000.0), ("Device", "Relu", "r", 1, 1000.0))
    moved = kernels(
        ("transpose", "conv/Conv2D", 1, 6000.0, True, False), ("gemm", "conv/Conv2D", 1, 3000.0, True, True)
    )
    assert model_rules.convolutions(facts(COMPUTING, device_type="GPU", ops=device)) is not None
    assert model_rules.convolutions(facts(COMPUTING, device_type="GPU", ops=device, kernels=moved)) is None


def biased(layer: str, norm: str, *, bias_us: float = 300.0):
    return ops(
        ("Host", "Conv2D", f"model/{layer}/Conv2D", 1, 9000.0),
        ("Host", "BiasAdd", f"model/{layer}/BiasAdd", 1, bias_us),
        ("Host", "BiasAddGrad", f"gradient_tape/model/{layer}/BiasAdd/BiasAddGrad", 1, 100.0),
        ("Host", "FusedBatchNormV3", f"model/{norm}/FusedBatchNormV3", 1, 500.0),
        ("Host", "BiasAdd", "model/head/BiasAdd", 1, 100.0),
    )


@pytest.mark.parametrize(
    ("layer", "norm"),
    [("conv2d_3", "batch_normalization_3"), ("conv2d", "batch_normalization"), ("block1_conv", "block1_bn")],
)
def test_a_bias_before_a_batch_normalization(layer: str, norm: str) -> None:
    there = biased(layer, norm)
    assert normalized_biases(there) == [f"model/{layer}"]
    found = model_rules.bias_before_batch_norm(facts(ops=there))
    assert found is not None and "`use_bias=False`" in found.text
    assert "400 µs a step wasted" in found.text


@pytest.mark.parametrize(
    ("layer", "norm"),
    [("conv2d_3", "batch_normalization_4"), ("conv2d", "other/batch_normalization"), ("conv2d", "relu")],
)
def test_a_bias_that_no_batch_normalization_follows(layer: str, norm: str) -> None:
    assert normalized_biases(biased(layer, norm)) == []
    assert model_rules.bias_before_batch_norm(facts(ops=biased(layer, norm))) is None


def test_a_bias_that_takes_no_time_is_not_worth_a_word() -> None:
    cheap = biased("conv2d", "batch_normalization", bias_us=0.0)
    cheap.loc[cheap["op_type"] == "BiasAddGrad", "self_time_us"] = 0.0
    assert model_rules.bias_before_batch_norm(facts(ops=cheap)) is None
