"""A training step of a transformer on an NVIDIA GPU: its ops in the order of their launch, and their kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

COPY_TO_DEVICE, COPY_TO_HOST, SET = "MemcpyH2D", "MemcpyD2H", "Memset"
_BYTES_PER_US = {COPY_TO_DEVICE: 24_000, COPY_TO_HOST: 22_000, SET: 1_200_000}
_LEAST_US = 1.4

_TOKENS, _WIDTH, _HEADS = 16 * 128, 768, 12
_VARIABLES = 6  # of a layer
_ADAM_KINDS = ("Mul", "Mul", "AddV2", "Square", "Mul", "Mul", "AddV2", "Sqrt", "AddV2", "RealDiv", "Sub")


_BIAS = "void tensorflow::BiasNHWCKernel<Eigen::half>(int, Eigen::half const*, Eigen::half const*, Eigen::half*, int)"
_BIAS_GRADIENT = "void tensorflow::BiasGradNHWC_SharedAtomics<Eigen::half>(int, Eigen::half const*, Eigen::half*, int)"
_NORM = (
    "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(cudnnTensorStruct, float const*, "
    "cudnnTensorStruct, float*, float const*, float const*, float, float, float*, float*, float*, float*, float, float)"
)
_SPLIT_K = (
    "void cublasLt::splitKreduce_kernel<32, 16, int, float, __half, float, false, __half, __half, true>("
    "cublasLt::cublasSplitKParams<float>, float const*, __half*, void const*, float const*, float const*)"
)
_ELEMENTWISE = (
    "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<Eigen::TensorMap<"
    "Eigen::Tensor<Eigen::half, 1, 1, int>, 16, Eigen::MakePointer>, Eigen::TensorCwiseBinaryOp<Eigen::internal::"
    "scalar_{}_op<Eigen::half, Eigen::half> const> const>, Eigen::GpuDevice>, int>(int)"
)
_SOFTMAX = (
    "void tensorflow::(anonymous namespace)::GenerateNormalizedProb<Eigen::half, float, 8>("
    "Eigen::half const*, float const*, Eigen::half const*, Eigen::half*, int, int, bool)"
)
_REDUCTION = "void tensorflow::functor::RowReduceKernel<Eigen::half*, Eigen::half*, cub::Max>(Eigen::half*, int, int)"
_TRANSPOSE = (
    "void tensorflow::functor::SwapDimension1And2InTensor3UsingTiles<unsigned short, 256, 32, 32, false>("
    "unsigned short const*, tensorflow::functor::Dimension<3>, unsigned short*)"
)


class Kernel(NamedTuple):
    """A kernel, and how it is launched."""

    name: str
    mean_us: float
    details: str

    @property
    def stat(self) -> str:
        return "kernel_details"


class Copy(NamedTuple):
    """A copy, or a fill of memory."""

    kind: str
    size_bytes: int

    @property
    def name(self) -> str:
        return self.kind

    @property
    def mean_us(self) -> float:
        return _LEAST_US + self.size_bytes / _BYTES_PER_US[self.kind]

    @property
    def stat(self) -> str:
        return "memset_details" if self.kind == SET else "memcpy_details"

    @property
    def details(self) -> str:
        if self.kind == SET:
            return f"kind:device size:{self.size_bytes} async:1"
        source, target = ("pinned", "device") if self.kind == COPY_TO_DEVICE else ("device", "pinned")
        return f"kind_src:{source} kind_dst:{target} size:{self.size_bytes} dest:0 async:1"


class GpuOp(NamedTuple):
    """An op, what it has the device do and what it allocates there."""

    name: str
    kind: str
    work: tuple[Kernel | Copy, ...] = ()
    output_bytes: int = 0
    shape: str = ""
    workspace_bytes: int = 0
    is_backward: bool = False


def training_step(layers: int) -> list[GpuOp]:
    """The ops of one step in the order of their launch."""
    batch = GpuOp("IteratorGetNext/_1", "_Recv", (Copy(COPY_TO_DEVICE, _TOKENS * 8),), _TOKENS * 8, f"[16,{128}]")
    forward = [op for i in range(layers) for op in _forward(f"bert/encoder/layer_{i}")]
    loss = GpuOp("loss/SoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits", _softmax(30.0), 4 * _TOKENS)
    backward = [op for i in reversed(range(layers)) for op in _backward(f"gradient_tape/bert/encoder/layer_{i}")]
    update = [op for variable in range(_VARIABLES * layers) for op in _adam(variable)]
    return [batch, *forward, loss, *backward, *update]


def _forward(scope: str) -> Iterator[GpuOp]:
    for part in ("query", "key", "value"):
        yield from _dense(f"{scope}/attention/{part}", _WIDTH, _WIDTH)
    scores, shape = 16 * _HEADS * 128 * 128 * 2, f"[16,{_HEADS},128,128]"
    yield GpuOp(f"{scope}/attention/MatMul", "BatchMatMulV2", _gemm(64, 64, 14.0), scores, shape)
    yield GpuOp(f"{scope}/attention/Mul", "Mul", _elementwise("mul", scores), scores, shape)
    yield GpuOp(f"{scope}/attention/Softmax", "Softmax", _softmax(16.0), scores, shape)
    yield GpuOp(f"{scope}/attention/dropout/Mul", "Mul", _elementwise("mul", scores), scores, shape)
    yield GpuOp(f"{scope}/attention/MatMul_1", "BatchMatMulV2", _gemm(64, 64, 13.0), *_output(_WIDTH))
    yield GpuOp(f"{scope}/attention/transpose", "Transpose", _transpose(_WIDTH), *_output(_WIDTH))
    yield from _dense(f"{scope}/attention/output", _WIDTH, _WIDTH)
    yield from _norm(f"{scope}/attention/LayerNorm")
    yield from _dense(f"{scope}/intermediate", _WIDTH, 4 * _WIDTH)
    yield GpuOp(
        f"{scope}/intermediate/Gelu/Erf", "Erf", _elementwise("erf", _TOKENS * 8 * _WIDTH), *_output(4 * _WIDTH)
    )
    yield from _dense(f"{scope}/output", 4 * _WIDTH, _WIDTH)
    yield from _norm(f"{scope}/output/LayerNorm")


def _dense(scope: str, inputs: int, outputs: int) -> Iterator[GpuOp]:
    size, shape = _output(outputs)
    time_us = 2 * _TOKENS * inputs * outputs / 1.2e8
    yield GpuOp(f"{scope}/MatMul/ReadVariableOp", "ReadVariableOp")
    yield GpuOp(f"{scope}/MatMul/Cast", "Cast", _elementwise("cast", inputs * outputs * 2), inputs * outputs * 2)
    yield GpuOp(f"{scope}/MatMul", "MatMul", _gemm(128, 128, time_us), size, shape, workspace_bytes=4 << 20)
    yield GpuOp(f"{scope}/BiasAdd/ReadVariableOp", "ReadVariableOp")
    yield GpuOp(f"{scope}/BiasAdd", "BiasAdd", (_kernel(_BIAS, 4.0, 512),))


def _norm(scope: str) -> Iterator[GpuOp]:
    for variable in ("gamma", "beta"):
        yield GpuOp(f"{scope}/{variable}/ReadVariableOp", "ReadVariableOp")
    work = (Copy(SET, _TOKENS * 4), _kernel(_NORM, 9.0, 512, shared_bytes=48))
    yield GpuOp(f"{scope}/FusedBatchNormV3", "FusedBatchNormV3", work, *_output(_WIDTH))
    yield GpuOp(f"{scope}/add", "AddV2", _elementwise("sum", _TOKENS * _WIDTH * 2), *_output(_WIDTH))


def _backward(scope: str) -> Iterator[GpuOp]:
    for part, inputs, outputs in (
        ("output", 4 * _WIDTH, _WIDTH), ("intermediate", _WIDTH, 4 * _WIDTH), ("attention/output", _WIDTH, _WIDTH),
        ("attention/query", _WIDTH, _WIDTH), ("attention/key", _WIDTH, _WIDTH), ("attention/value", _WIDTH, _WIDTH),
    ):  # fmt: skip
        name, time_us = f"{scope}/{part}", 2 * _TOKENS * inputs * outputs / 1.1e8
        bias = _kernel(
            "tensorflow::BiasGradNHWC_SharedAtomics<Eigen::half>(int, Eigen::half const*, Eigen::half*, int)",
            6.0,
            1024,
            shared_bytes=4096,
        )
        yield _back(f"{name}/BiasAdd/BiasAddGrad", "BiasAddGrad", (Copy(SET, outputs * 2), bias), outputs * 2)
        yield _back(f"{name}/MatMul/MatMul", "MatMul", _gemm(256, 64, time_us), _TOKENS * inputs * 2)
        weights = _gemm(128, 64, time_us, split=True)
        yield _back(f"{name}/MatMul/MatMul_1", "MatMul", weights, inputs * outputs * 2)
        yield _back(f"{name}/Cast", "Cast", _elementwise("cast", inputs * outputs * 4), inputs * outputs * 4)
    scores = 16 * _HEADS * 128 * 128 * 2
    yield _back(f"{scope}/attention/MatMul_1/MatMul", "BatchMatMulV2", _gemm(64, 64, 14.0), scores)
    yield _back(f"{scope}/attention/Softmax/mul", "Mul", _elementwise("mul", scores), scores)
    yield _back(f"{scope}/attention/Softmax/Sum", "Sum", _reduction(11.0), scores // 128)
    yield _back(f"{scope}/attention/MatMul/MatMul", "BatchMatMulV2", _gemm(64, 64, 15.0), _TOKENS * _WIDTH * 2)
    yield _back(
        f"{scope}/LayerNorm/FusedBatchNormGradV3", "FusedBatchNormGradV3", _reduction(17.0), _TOKENS * _WIDTH * 2
    )


def _back(name: str, kind: str, work: tuple[Kernel | Copy, ...], size_bytes: int) -> GpuOp:
    return GpuOp(name, kind, work, size_bytes, f"[{size_bytes // 2}]", is_backward=True)


def _adam(variable: int) -> Iterator[GpuOp]:
    size = 4 * _WIDTH * (_WIDTH if variable % 2 == 0 else 1)
    yield GpuOp(f"adam/Mul_{variable}/ReadVariableOp", "ReadVariableOp")
    for i, kind in enumerate(_ADAM_KINDS):
        number = len(_ADAM_KINDS) * variable + i
        yield GpuOp(
            f"adam/{kind}_{number}", kind, _elementwise(kind.lower(), size), size, f"[{size // 4}]", is_backward=True
        )
    yield GpuOp(f"adam/AssignSubVariableOp_{variable}", "AssignSubVariableOp", _elementwise("difference", size))


def _output(width: int) -> tuple[int, str]:
    return _TOKENS * width * 2, f"[16,128,{width}]"


def _gemm(rows: int, columns: int, time_us: float, split: bool = False) -> tuple[Kernel, ...]:
    name = f"ampere_fp16_s16816gemm_fp16_{rows}x{columns}_ldg8_f2f_stages_32x5_{'nt' if split else 'tn'}"
    grid = max(1, int(time_us * 6))
    kernel = _kernel(name, time_us, 256 if rows == 256 else 128, grid, regs=230, shared_bytes=rows * 768)
    return (kernel, _kernel(_SPLIT_K, 5.0, 512, grid, regs=60)) if split else (kernel,)


def _elementwise(functor: str, size_bytes: int) -> tuple[Kernel, ...]:
    time_us, grid = _LEAST_US + size_bytes / 900_000, max(1, size_bytes // 16_384)
    return (_kernel(_ELEMENTWISE.format(functor), time_us, 1024, grid, regs=32),)


def _softmax(time_us: float) -> tuple[Kernel, ...]:
    return (*_reduction(time_us / 2), _kernel(_SOFTMAX, time_us / 2, 128, 3072, regs=40))


def _reduction(time_us: float) -> tuple[Kernel, ...]:
    return (_kernel(_REDUCTION, time_us, 128, 6144, regs=28, shared_bytes=512),)


def _transpose(width: int) -> tuple[Kernel, ...]:
    return (_kernel(_TRANSPOSE, width / 100, 256, width, regs=36, shared_bytes=2112),)


def _kernel(name: str, time_us: float, block: int, grid: int = 512, regs: int = 24, shared_bytes: int = 0) -> Kernel:
    details = f"regs:{regs} static_shared:0 dynamic_shared:{shared_bytes} grid:{grid},1,1 block:{block},1,1 occ_pct:50"
    return Kernel(name, time_us, details)
