"""Rules for what is computed: each speaks on a small case of its own, and is silent just below its threshold."""

from __future__ import annotations

import pytest

from tests.views.advice.advice_facts import facts, instructions, kernels, ops
from tfcompare.views.advice import kernel_rules, model_rules
from tfcompare.views.advice.model_rules import normalized_biases

BUSY = {"device_compute": 9000.0}
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
    found = kernel_rules.mixed_precision(facts(BUSY, device_type="GPU", framework=framework, kernels=there))
    assert found is not None and call in found.text
    assert found.title == "66.7 % of the kernel time is 32-bit matrix products"
    assert found.saves == pytest.approx(2 / 3 * 0.9 / 2)


def test_the_share_of_16_bits_is_evidence_where_the_steps_tell_it() -> None:
    there = kernels(product("ampere_sgemm_128x64", on_cores=False), RELU)
    told = BUSY | {"device_compute_16_bit": 900.0, "device_compute_32_bit": 8100.0}
    labels = []
    for parts in (BUSY, told):
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
    assert kernel_rules.mixed_precision(facts(BUSY, device_type="GPU", kernels=there)) is None


@pytest.mark.parametrize(("operands", "is_told"), [("bf16[8,8]", False), ("f32[8,8]", True)])
def test_products_whose_instruction_takes_16_bits_are_not_of_32(operands: str, is_told: bool) -> None:
    """Triton's kernels do not tell by their names what they multiply."""
    there = kernels(product("gemm_fusion_dot_2", on_cores=False), RELU)
    text = f"%gemm_fusion_dot.2 = f32[8,8] fusion({operands} %x, {operands} %y), kind=kCustom"
    ran = instructions({"hlo_op": "gemm_fusion_dot.2", "op_name": "conv/Conv2D", "expression": text, "self_time_us": 1})
    found = kernel_rules.mixed_precision(facts(BUSY, device_type="GPU", kernels=there, hlo_ops=ran))
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
    found = kernel_rules.layout(facts(BUSY, device_type="GPU", framework=framework, kernels=there))
    assert found is not None and call in found.text
    assert "take 1.50 ms a step, in 4 launches" in found.text


def test_transposes_of_other_programs_or_few_of_them() -> None:
    attention = kernels(("gemm", "MatMul", 1, 6000.0, True, True), ("transpose", "attention", 4, 1500.0, False, False))
    assert kernel_rules.layout(facts(BUSY, device_type="GPU", kernels=attention)) is None
    few = kernels(product("conv_fp16", on_cores=True), ("transpose", "conv/Conv2D", 4, 300.0, True, False))
    assert kernel_rules.layout(facts(BUSY, device_type="GPU", kernels=few)) is None


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
    assert model_rules.convolutions(facts(BUSY, device_type="GPU", ops=device)) is not None
    assert model_rules.convolutions(facts(BUSY, device_type="GPU", ops=device, kernels=moved)) is None


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
