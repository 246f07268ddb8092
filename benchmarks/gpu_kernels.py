"""A training step of a transformer on an NVIDIA GPU: its ops in the order of their launch, and their kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

COPY_TO_DEVICE, COPY_TO_HOST, SET = "MemcpyH2D", "MemcpyD2H", "Memset"
_BYTES_PER_US = {COPY_TO_DEVICE: 24_000, COPY_TO_HOST: 22_000, SET: 1_200_000}
_LEAST_US = 1.4

_TOKENS, _WIDTH, _HEADS = 16 * 128, 768, 12
_SCORES, _SCORES_SHAPE = 16 * _HEADS * 128 * 128 * 2, f"[16,{_HEADS},128,128]"
_VARIABLES = 6  # of a layer
_ADAM_KINDS = ("Mul", "Mul", "AddV2", "Square", "Mul", "Mul", "AddV2", "Sqrt", "AddV2", "RealDiv", "Sub")

_KERNELS = {
    "gemm": ("ampere_fp16_s16816gemm_fp16_{}_ldg8_f2f_stages_32x5_{}", 128, 230, 98_304),
    "split": (
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __half, float, false, __half, __half, true>("
        "cublasLt::cublasSplitKParams<float>, float const*, __half*, void const*, float const*, float const*)",
        512,
        60,
        0,
    ),
    "bias": (
        "void tensorflow::BiasNHWCKernel<Eigen::half>(int, Eigen::half const*, Eigen::half const*, Eigen::half*, int)",
        512,
        24,
        0,
    ),
    "bias gradient": (
        "tensorflow::BiasGradNHWC_SharedAtomics<Eigen::half>(int, Eigen::half const*, Eigen::half*, int)",
        1024,
        24,
        4096,
    ),
    "norm": (
        "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(cudnnTensorStruct, float const*, float*)",
        512,
        24,
        48,
    ),
    "elementwise": (
        "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<Eigen::TensorMap<"
        "Eigen::Tensor<Eigen::half, 1, 1, int>, 16, Eigen::MakePointer>, Eigen::TensorCwiseBinaryOp<Eigen::internal::"
        "scalar_{}_op<Eigen::half, Eigen::half> const> const>, Eigen::GpuDevice>, int>(int)",
        1024,
        32,
        0,
    ),
    "softmax": (
        "void tensorflow::(anonymous namespace)::GenerateNormalizedProb<Eigen::half, float, 8>("
        "Eigen::half const*, float const*, Eigen::half const*, Eigen::half*, int, int, bool)",
        128,
        40,
        0,
    ),
    "reduction": (
        "void tensorflow::functor::RowReduceKernel<Eigen::half*, Eigen::half*, cub::Max>(Eigen::half*, int, int)",
        128,
        28,
        512,
    ),
    "transpose": (
        "void tensorflow::functor::SwapDimension1And2InTensor3UsingTiles<unsigned short, 256, 32, 32, false>("
        "unsigned short const*, tensorflow::functor::Dimension<3>, unsigned short*)",
        256,
        36,
        2112,
    ),
}
"""Name, threads of a block, registers, and bytes of shared memory."""


class Work(NamedTuple):
    """A kernel, or a copy or fill of memory of that `kind`; `stat` holds the `details`."""

    name: str
    mean_us: float
    stat: str
    details: str
    kind: str = ""


class GpuOp(NamedTuple):
    """An op, what it has the device do and what it allocates there."""

    name: str
    kind: str
    work: tuple[Work, ...] = ()
    output_bytes: int = 0
    shape: str = ""
    workspace_bytes: int = 0
    is_backward: bool = False


def copy(kind: str, size_bytes: int) -> Work:
    """A copy, or a fill of memory."""
    source, target = ("pinned", "device") if kind == COPY_TO_DEVICE else ("device", "pinned")
    moved = "kind:device" if kind == SET else f"kind_src:{source} kind_dst:{target}"
    stat = "memset_details" if kind == SET else "memcpy_details"
    mean_us = _LEAST_US + size_bytes / _BYTES_PER_US[kind]
    return Work(kind, mean_us, stat, f"{moved} size:{size_bytes} dest:0 async:1", kind)


def training_step(layers: int) -> list[GpuOp]:
    """The ops of one step in the order of their launch."""
    batch = GpuOp("IteratorGetNext/_1", "_Recv", (copy(COPY_TO_DEVICE, _TOKENS * 8),), _TOKENS * 8, "[16,128]")
    forward = [op for i in range(layers) for op in _forward(f"bert/encoder/layer_{i}")]
    loss = GpuOp("loss/SoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits", _softmax(30.0), 4 * _TOKENS)
    backward = [op for i in reversed(range(layers)) for op in _backward(f"gradient_tape/bert/encoder/layer_{i}")]
    update = [op for variable in range(_VARIABLES * layers) for op in _adam(variable)]
    return [batch, *forward, loss, *backward, *update]


def _forward(scope: str) -> Iterator[GpuOp]:
    attention, wide, scores = f"{scope}/attention", f"{scope}/intermediate", (_SCORES, _SCORES_SHAPE)
    for part in ("query", "key", "value"):
        yield from _dense(f"{attention}/{part}", _WIDTH, _WIDTH)
    yield GpuOp(f"{attention}/MatMul", "BatchMatMulV2", _gemm("64x64", 14.0), *scores)
    yield GpuOp(f"{attention}/Mul", "Mul", _elementwise("mul", _SCORES), *scores)
    yield GpuOp(f"{attention}/Softmax", "Softmax", _softmax(16.0), *scores)
    yield GpuOp(f"{attention}/dropout/Mul", "Mul", _elementwise("mul", _SCORES), *scores)
    yield GpuOp(f"{attention}/MatMul_1", "BatchMatMulV2", _gemm("64x64", 13.0), *_output(_WIDTH))
    yield GpuOp(f"{attention}/transpose", "Transpose", (_kernel("transpose", 7.7, _WIDTH),), *_output(_WIDTH))
    yield from _dense(f"{attention}/output", _WIDTH, _WIDTH)
    yield from _norm(f"{attention}/LayerNorm")
    yield from _dense(wide, _WIDTH, 4 * _WIDTH)
    yield GpuOp(f"{wide}/Gelu/Erf", "Erf", _elementwise("erf", _TOKENS * 8 * _WIDTH), *_output(4 * _WIDTH))
    yield from _dense(f"{scope}/output", 4 * _WIDTH, _WIDTH)
    yield from _norm(f"{scope}/output/LayerNorm")


def _dense(scope: str, inputs: int, outputs: int) -> Iterator[GpuOp]:
    work = _gemm("128x128", 2 * _TOKENS * inputs * outputs / 1.2e8)
    yield GpuOp(f"{scope}/MatMul/ReadVariableOp", "ReadVariableOp")
    yield GpuOp(f"{scope}/MatMul/Cast", "Cast", _elementwise("cast", inputs * outputs * 2), inputs * outputs * 2)
    yield GpuOp(f"{scope}/MatMul", "MatMul", work, *_output(outputs), workspace_bytes=4 << 20)
    yield GpuOp(f"{scope}/BiasAdd/ReadVariableOp", "ReadVariableOp")
    yield GpuOp(f"{scope}/BiasAdd", "BiasAdd", (_kernel("bias", 4.0),))


def _norm(scope: str) -> Iterator[GpuOp]:
    for variable in ("gamma", "beta"):
        yield GpuOp(f"{scope}/{variable}/ReadVariableOp", "ReadVariableOp")
    work = (copy(SET, _TOKENS * 4), _kernel("norm", 9.0))
    yield GpuOp(f"{scope}/FusedBatchNormV3", "FusedBatchNormV3", work, *_output(_WIDTH))
    yield GpuOp(f"{scope}/add", "AddV2", _elementwise("sum", _TOKENS * _WIDTH * 2), *_output(_WIDTH))


def _backward(scope: str) -> Iterator[GpuOp]:
    widths = {"output": (4 * _WIDTH, _WIDTH), "intermediate": (_WIDTH, 4 * _WIDTH)}
    for part in (*widths, "attention/output", "attention/query", "attention/key", "attention/value"):
        inputs, outputs = widths.get(part, (_WIDTH, _WIDTH))
        name, time_us, size = f"{scope}/{part}", 2 * _TOKENS * inputs * outputs / 1.1e8, inputs * outputs * 2
        bias = (copy(SET, outputs * 2), _kernel("bias gradient", 6.0))
        yield _back(f"{name}/BiasAdd/BiasAddGrad", "BiasAddGrad", bias, outputs * 2)
        yield _back(f"{name}/MatMul/MatMul", "MatMul", _gemm("256x64", time_us), _TOKENS * inputs * 2)
        weights = (*_gemm("128x64", time_us, "nt"), _kernel("split", 5.0))
        yield _back(f"{name}/MatMul/MatMul_1", "MatMul", weights, size)
        yield _back(f"{name}/Cast", "Cast", _elementwise("cast", 2 * size), 2 * size)
    attention, size = f"{scope}/attention", _TOKENS * _WIDTH * 2
    yield _back(f"{attention}/MatMul_1/MatMul", "BatchMatMulV2", _gemm("64x64", 14.0), _SCORES)
    yield _back(f"{attention}/Softmax/mul", "Mul", _elementwise("mul", _SCORES), _SCORES)
    yield _back(f"{attention}/Softmax/Sum", "Sum", (_kernel("reduction", 11.0),), _SCORES // 128)
    yield _back(f"{attention}/MatMul/MatMul", "BatchMatMulV2", _gemm("64x64", 15.0), size)
    norm = (_kernel("reduction", 17.0),)
    yield _back(f"{scope}/LayerNorm/FusedBatchNormGradV3", "FusedBatchNormGradV3", norm, size)


def _back(name: str, kind: str, work: tuple[Work, ...], size_bytes: int) -> GpuOp:
    return GpuOp(name, kind, work, size_bytes, f"[{size_bytes // 2}]", is_backward=True)


def _adam(variable: int) -> Iterator[GpuOp]:
    size = 4 * _WIDTH * (_WIDTH if variable % 2 == 0 else 1)
    yield GpuOp(f"adam/Mul_{variable}/ReadVariableOp", "ReadVariableOp")
    for i, kind in enumerate(_ADAM_KINDS, len(_ADAM_KINDS) * variable):
        yield _back(f"adam/{kind}_{i}", kind, _elementwise(kind.lower(), size), size)
    yield GpuOp(f"adam/AssignSubVariableOp_{variable}", "AssignSubVariableOp", _elementwise("difference", size))


def _output(width: int) -> tuple[int, str]:
    return _TOKENS * width * 2, f"[16,128,{width}]"


def _gemm(tile: str, time_us: float, layout: str = "tn") -> tuple[Work, ...]:
    return (_kernel("gemm", time_us, max(1, int(time_us * 6)), tile, layout),)


def _elementwise(functor: str, size_bytes: int) -> tuple[Work, ...]:
    return (_kernel("elementwise", _LEAST_US + size_bytes / 900_000, max(1, size_bytes // 16_384), functor),)


def _softmax(time_us: float) -> tuple[Work, ...]:
    return _kernel("reduction", time_us / 2, 6144), _kernel("softmax", time_us / 2, 3072)


def _kernel(key: str, time_us: float, grid: int = 512, *parts: str) -> Work:
    name, block, regs, shared = _KERNELS[key]
    details = f"regs:{regs} static_shared:0 dynamic_shared:{shared} grid:{grid},1,1 block:{block},1,1 occ_pct:50"
    return Work(name.format(*parts), time_us, "kernel_details", details)
