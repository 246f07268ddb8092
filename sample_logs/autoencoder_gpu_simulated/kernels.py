"""What a GPU is given to do: tensors, kernels by their names on AMD GPUs, and copies."""

from __future__ import annotations

import math
from dataclasses import dataclass

BATCH = 32
PIXELS = 32
CHANNELS = 3
_TAPS = 9  # of a 3×3 filter
_THREADS = 256
_FLOPS_PER_US = 5e6
_BYTES_PER_US = 8e5
FLOAT, INT64 = 1, 9  # tensorflow.DataType

_EIGEN = (
    "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<Eigen::TensorMap<Eigen::Tensor<"
    "float, 1, 1, long>, 16, Eigen::MakePointer>, Eigen::TensorCwiseBinaryOp<{}, Eigen::TensorMap<Eigen::Tensor<float "
    "const, 1, 1, long>, 16, Eigen::MakePointer> const, Eigen::TensorMap<Eigen::Tensor<float const, 1, 1, long>, 16, "
    "Eigen::MakePointer> const> const> const, Eigen::GpuDevice>, long>(Eigen::TensorEvaluator<Eigen::TensorAssignOp<"
    "Eigen::TensorMap<Eigen::Tensor<float, 1, 1, long>, 16, Eigen::MakePointer>, Eigen::TensorCwiseBinaryOp<{}, "
    "Eigen::TensorMap<Eigen::Tensor<float const, 1, 1, long>, 16, Eigen::MakePointer> const, Eigen::TensorMap<"
    "Eigen::Tensor<float const, 1, 1, long>, 16, Eigen::MakePointer> const> const> const, Eigen::GpuDevice>, long)"
)
_KERNEL_OF_TYPE = {
    "AssignAddVariableOp": _EIGEN.replace("{}", "Eigen::internal::scalar_sum_op<float const, float const>"),
    "AssignSubVariableOp": _EIGEN.replace("{}", "Eigen::internal::scalar_difference_op<float const, float const>"),
    "BiasAdd": "void tensorflow::BiasNHWCKernel<float>(int, float const*, float const*, float*, int)",
    "BiasAddGrad": "void tensorflow::BiasGradNHWC_SharedAtomics<float>(int, float const*, float*, int)",
    "Cast": "Cast_GPU_DT_INT64_DT_FLOAT_kernel",
    "Mean": "void tensorflow::functor::ColumnReduceKernel<float const*, float*, hipcub::Sum>(float const*, float*, "
    "int, int, hipcub::Sum, std::iterator_traits<float const*>::value_type)",
    "ReluGrad": _EIGEN.replace("{}", "Eigen::internal::scalar_cmp_op<float const, float const, 6>"),
    "SigmoidGrad": _EIGEN.replace("{}", "Eigen::internal::scalar_logistic_gradient_op<float const>"),
    "Sum": "void tensorflow::functor::BlockReduceKernel<float const*, float*, 256, hipcub::Sum>(float const*, float*, "
    "int, hipcub::Sum, std::iterator_traits<float const*>::value_type)",
    "Tile": "void tensorflow::TileKernel<float>(int, float const*, int const*, float*, int)",
}
_SWAP = (
    "void tensorflow::functor::SwapDimension1And2InTensor3UsingTiles<unsigned int, 256, 32, 32, false>(unsigned int "
    "const*, tensorflow::functor::Dimension<3>, unsigned int*)"
)
_SHUFFLE = (
    "void tensorflow::functor::ShuffleInTensor3Simple<float, 2, 1, 0, false>(int, float const*, "
    "tensorflow::functor::Dimension<3>, float*)"
)
_LAYOUT_OF_FILTER = {"Conv2DBackpropFilter": "SubTensorOpWithScalar1d"}  # its result is set to zero first
# The convolution library picks matrix cores where there are channels enough to fill them, else a Winograd kernel.
_MATRIX_CORES = {
    "Conv2D": "igemm_fwd_gtcx_nhwc_fp32_bx0_ex0_bt128x64x16_wt32x32x2_ws1x1_wr2x1_ta1x4x2x1_1x4x1x64"
    "_tb1x4x1x1_1x4x1x64",
    "Conv2DBackpropInput": "igemm_bwd_gtcx_nhwc_fp32_bx0_ex0_bt128x64x16_wt32x32x2_ws1x1_wr2x1_ta1x1x8x1_1x16x1x16"
    "_tb1x1x4x1_1x16x1x16",
    "Conv2DBackpropFilter": "igemm_wrw_gtcx_nhwc_fp32_bx0_ex0_bt64x64x16_wt16x16x4_ws1x1_wr2x2_ta1x1x1x4_1x16x1x16"
    "_tb1x1x1x4_1x16x1x16",
}
_WINOGRAD = {
    "Conv2D": "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f3x2_stride2",
    "Conv2DBackpropInput": "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f3x2_dilate2",
    "Conv2DBackpropFilter": "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride2_wrw",
}
_LEAST_CHANNELS = 128


@dataclass(frozen=True)
class Kernel:
    """A kernel. Its time grows with `work`, by a microsecond or so a unit: exactly one if it only changes a layout."""

    name: str
    work: float
    blocks: int
    group_mem: int = 0
    is_layout: bool = False

    @property
    def details(self) -> dict[str, str]:
        """The stat that tells how it is launched, as profilers write it for AMD GPUs: with a leading blank."""
        grid, block = f"{self.blocks},1,1", f"{_THREADS},1,1"
        text = f" grid:{grid} block:{block} private_mem:0 group_mem:{self.group_mem} occ_pct:0"
        return {"kernel_details": text}


@dataclass(frozen=True)
class Copy:
    """A copy between host and device, `MemcpyH2D` or `MemcpyD2H`."""

    name: str
    size_bytes: int
    kind: str = "pinned"

    @property
    def details(self) -> dict[str, str]:
        """The stat that tells what is copied."""
        return {"memcpy_details": f"kind:{self.kind} size:{self.size_bytes} dest:0 async:1"}


@dataclass(frozen=True)
class Tensor:
    """A tensor on the device; `data_type` is TensorFlow's number for it."""

    shape: tuple[int, ...]
    data_type: int = FLOAT

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Without what the allocator rounds up."""
        return self.size * (8 if self.data_type == INT64 else 4)


IMAGES = Tensor((BATCH, PIXELS, PIXELS, CHANNELS))


@dataclass(frozen=True)
class Layer:
    """A convolution between a larger and a smaller image, `up` if it goes from the smaller to the larger."""

    name: str
    inputs: int
    outputs: int
    input_pixels: int
    output_pixels: int

    @property
    def up(self) -> bool:
        """Whether it is a transposed convolution."""
        return self.output_pixels > self.input_pixels

    @property
    def path(self) -> str:
        """The scope of its ops."""
        return f"autoencoder_1/{self.name}_1"

    @property
    def convolution(self) -> str:
        """The name of the op that convolves."""
        return f"{self.path}/{'conv_transpose' if self.up else 'convolution'}"

    @property
    def input(self) -> Tensor:
        """What goes in."""
        return Tensor((BATCH, self.input_pixels, self.input_pixels, self.inputs))

    @property
    def output(self) -> Tensor:
        """What comes out."""
        return Tensor((BATCH, self.output_pixels, self.output_pixels, self.outputs))

    @property
    def filter(self) -> Tensor:
        """The weights."""
        return Tensor((3, 3, self.outputs, self.inputs) if self.up else (3, 3, self.inputs, self.outputs))

    @property
    def bias(self) -> Tensor:
        """The bias."""
        return Tensor((self.outputs,))

    @property
    def flops(self) -> int:
        """Of the convolution, and of each of its two gradients."""
        return 2 * _TAPS * self.inputs * self.outputs * BATCH * min(self.input_pixels, self.output_pixels) ** 2


def elementwise(kind: str, tensor: Tensor, passes: int = 2) -> Kernel:
    """The kernel of an op of that type, which goes `passes` times over a tensor."""
    name = _KERNEL_OF_TYPE.get(kind, f"{kind}_GPU_DT_FLOAT_DT_FLOAT_kernel")
    return Kernel(name, passes * tensor.size_bytes / _BYTES_PER_US, math.ceil(tensor.size / (4 * _THREADS)))


def _layout(name: str, tensor: Tensor) -> Kernel:
    return Kernel(name, 2 * tensor.size_bytes / _BYTES_PER_US, math.ceil(tensor.size / _THREADS), is_layout=True)


def convolve(kind: str, layer: Layer, result: Tensor) -> tuple[Kernel, ...]:
    """Layouts change, then comes the convolution or gradient itself."""
    is_wide = layer.inputs * layer.outputs >= _LEAST_CHANNELS * CHANNELS
    convolution = Kernel(
        (_MATRIX_CORES if is_wide else _WINOGRAD)[kind],
        work=layer.flops / _FLOPS_PER_US,
        blocks=max(1, result.size // (32 * _THREADS)),
        group_mem=16384 if is_wide else 65536,
    )
    larger = max(layer.input, layer.output, key=lambda tensor: tensor.size)
    return _layout(_SWAP, larger), _layout(_LAYOUT_OF_FILTER.get(kind, _SHUFFLE), layer.filter), convolution


def workspace(layer: Layer) -> Tensor:
    """Of the convolution library: the patches of some images, side by side."""
    pixels = min(layer.input_pixels, layer.output_pixels) ** 2
    return Tensor((BATCH // 8, pixels, _TAPS * max(layer.inputs, layer.outputs)))
