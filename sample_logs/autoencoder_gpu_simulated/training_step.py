"""What a training step of the autoencoder does on a GPU: its ops, their kernels, the tensors that they allocate.

Layers and op names are those of `../autoencoder/record.py`, at a batch of 32.
"""

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
_FLOAT, _INT64 = 1, 9  # tensorflow.DataType

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
_ZERO = "SubTensorOpWithScalar1d"
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
    """A kernel; `work` is what its duration grows with, about a microsecond a unit."""

    name: str
    work: float
    blocks: int
    group_mem: int = 0

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
    data_type: int = _FLOAT

    @property
    def size_bytes(self) -> int:
        """Without what the allocator rounds up."""
        return math.prod(self.shape) * (8 if self.data_type == _INT64 else 4)


IMAGES = Tensor((BATCH, PIXELS, PIXELS, CHANNELS))
DECODED, LOSS = "autoencoder_1/image_1/convolution", "mean_squared_error/div_no_nan"
"""The ops whose outputs live until the host has them."""
_NOISY, _CLEAN = "noisy/_1", "clean/_3"


@dataclass(frozen=True)
class Op:
    """An op of the step: what it has the device do, what it allocates (`temporary` for as long as it runs) and whose
    outputs are freed after it."""

    name: str
    type: str
    work: tuple[Kernel | Copy, ...]
    output: Tensor | None = None
    temporary: Tensor | None = None
    frees: tuple[str, ...] = ()
    reads: str = ""


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


def layers(filters: tuple[int, int]) -> list[Layer]:
    """The autoencoder's convolutions, with so many filters in the outer and inner ones."""
    outer, inner = filters
    return [
        Layer("encoder_outer", CHANNELS, outer, 32, 16),
        Layer("encoder_inner", outer, inner, 16, 8),
        Layer("decoder_inner", inner, inner, 8, 16),
        Layer("decoder_outer", inner, outer, 16, 32),
        Layer("image", outer, CHANNELS, 32, 32),
    ]


def training_step(model: list[Layer]) -> list[Op]:
    """The ops of one step in the order of their launch."""
    forward = [op for layer in model for op in _forward(layer)]
    backward = [op for i in reversed(range(len(model))) for op in _backward(model, i)]
    variables = [
        (variable, gradient)
        for layer in model
        for variable, gradient in ((layer.filter, _filter_gradient(layer)), (layer.bias, _bias_gradient(layer)))
    ]
    scalars = [op for i in range(len(variables)) for op in _adam_scalars(i)]
    updates = [op for i, (variable, gradient) in enumerate(variables) for op in _adam_update(i, variable, gradient)]
    return [*_receive(), *scalars, *forward, *_loss(model[-1].output), *backward, *updates, _send()]


def weights_bytes(model: list[Layer]) -> int:
    """What is allocated before any step: weights, and Adam's two moments of each."""
    return 3 * sum(layer.filter.size_bytes + layer.bias.size_bytes for layer in model)


def _receive() -> list[Op]:
    """Both halves of the batch come from the host."""
    copies = (Copy("MemcpyH2D", IMAGES.size_bytes),)
    return [Op(name, "_Recv", copies, IMAGES) for name in (_NOISY, _CLEAN)]


def _send() -> Op:
    """The decoded images go to the host."""
    return Op("Identity_1/_5", "_HostRecv", (Copy("MemcpyD2H", IMAGES.size_bytes, "pageable"),))


def _elementwise(kind: str, tensor: Tensor, passes: int = 2, name: str = "") -> Kernel:
    """A kernel that goes `passes` times over a tensor."""
    generated = f"{kind}_GPU_DT_FLOAT_DT_FLOAT_kernel"
    return Kernel(
        name or _KERNEL_OF_TYPE.get(kind, generated),
        work=passes * tensor.size_bytes / _BYTES_PER_US,
        blocks=math.ceil(math.prod(tensor.shape) / (4 * _THREADS)),
    )


def _convolve(kind: str, layer: Layer) -> tuple[Kernel, ...]:
    """Layout changes, then the convolution or gradient itself."""
    is_wide = layer.inputs * layer.outputs >= _LEAST_CHANNELS * CHANNELS
    tiles = math.prod(layer.output.shape) // (32 * _THREADS) if kind != "Conv2DBackpropFilter" else layer.inputs * 4
    main = Kernel(
        (_MATRIX_CORES if is_wide else _WINOGRAD)[kind],
        work=layer.flops / _FLOPS_PER_US,
        blocks=max(1, tiles),
        group_mem=16384 if is_wide else 65536,
    )
    larger = max(layer.input, layer.output, key=lambda tensor: tensor.size_bytes)
    filters = _elementwise(kind, layer.filter, name=_ZERO if kind == "Conv2DBackpropFilter" else _SHUFFLE)
    return _elementwise(kind, larger, name=_SWAP), filters, main


def _workspace(layer: Layer) -> Tensor:
    pixels = min(layer.input_pixels, layer.output_pixels) ** 2
    return Tensor((BATCH, pixels, _TAPS * max(layer.inputs, layer.outputs) // 2))


def _forward(layer: Layer) -> list[Op]:
    kind = "Conv2DBackpropInput" if layer.up else "Conv2D"
    activation = "Sigmoid" if layer.name == "image" else "Relu"
    bias = f"{layer.path}/Reshape/ReadVariableOp"
    return [
        Op(
            layer.convolution,
            kind,
            _convolve(kind, layer),
            layer.output,
            _workspace(layer),
            reads=f"{layer.convolution}/ReadVariableOp",
        ),
        Op(f"{layer.path}/BiasAdd", "BiasAdd", (_elementwise("BiasAdd", layer.output),), reads=bias),
        Op(f"{layer.path}/{activation}", activation, (_elementwise(activation, layer.output),)),
    ]


def _loss(images: Tensor) -> list[Op]:
    """Mean squared error and its gradient, whose buffer `gradient_tape/mean_squared_error/Mul` allocates."""
    path, one = "mean_squared_error", Tensor(())
    rows = Tensor(images.shape[:-1])
    tape = f"gradient_tape/{path}"
    return [
        Op(f"{path}/sub", "Sub", (_elementwise("Sub", images, 3),), images, frees=(_CLEAN,)),
        Op(f"{path}/Square", "Square", (_elementwise("Square", images),), images),
        Op(f"{path}/Mean", "Mean", (_elementwise("Mean", images, 1),), rows, frees=(f"{path}/Square",)),
        Op(f"{path}/Sum", "Sum", (_elementwise("Sum", rows, 1),), one, frees=(f"{path}/Mean",)),
        Op(f"{path}/div_no_nan", "DivNoNan", (_elementwise("DivNoNan", one),), one, frees=(f"{path}/Sum",)),
        Op(f"{tape}/Tile_1", "Tile", (_elementwise("Tile", images, 1),), images),
        Op(f"{tape}/truediv", "Mul", (_elementwise("Mul", images),)),
        Op(f"{tape}/Mul", "Mul", (_elementwise("Mul", images),), images, frees=(f"{tape}/Tile_1",)),
        Op(f"{tape}/Mul_1", "Mul", (_elementwise("Mul", images, 3),), frees=(f"{path}/sub",)),
        Op(f"{tape}/sub/Neg", "Neg", (_elementwise("Neg", images),)),
    ]


def _gradients(layer: Layer) -> str:
    return f"gradient_tape/{layer.convolution}"


def _filter_gradient(layer: Layer) -> str:
    return f"{_gradients(layer)}/Conv2DBackpropFilter"


def _bias_gradient(layer: Layer) -> str:
    return f"gradient_tape/{layer.path}/BiasAdd/BiasAddGrad"


def _input_gradient(layer: Layer) -> tuple[str, str]:
    """(name, type) of the op that makes it."""
    kind = "Conv2D" if layer.up else "Conv2DBackpropInput"
    return f"{_gradients(layer)}/{kind}", kind


def _backward(model: list[Layer], position: int) -> list[Op]:
    """The gradients of a layer; the first one's input is data and needs none."""
    layer, is_first, is_last = model[position], position == 0, position == len(model) - 1
    arriving = "gradient_tape/mean_squared_error/Mul" if is_last else _input_gradient(model[position + 1])[0]
    tape, activation = f"gradient_tape/{layer.path}", "Sigmoid/SigmoidGrad" if is_last else "ReluGrad"
    kind = activation.rpartition("/")[2]
    out = [
        Op(
            f"{tape}/{activation}",
            kind,
            (_elementwise(kind, layer.output, 3),),
            frees=() if is_last else (layer.convolution,),
        ),
        Op(_bias_gradient(layer), "BiasAddGrad", (_elementwise("BiasAddGrad", layer.output, 1),), layer.bias),
        Op(
            _filter_gradient(layer),
            "Conv2DBackpropFilter",
            _convolve("Conv2DBackpropFilter", layer),
            layer.filter,
            _workspace(layer),
            frees=(arriving, _NOISY) if is_first else (),
        ),
    ]
    if not is_first:
        name, kind = _input_gradient(layer)
        out.append(Op(name, kind, _convolve(kind, layer), layer.input, _workspace(layer), frees=(arriving,)))
    return out


def _numbered(name: str, number: int) -> str:
    return f"adam/{name}_{number}" if number else f"adam/{name}"


def _adam_scalars(i: int) -> list[Op]:
    """The learning rate of variable `i`, by steps so far; nothing in it waits for a gradient."""
    one = Tensor(())
    ops = [
        ("Add", 2 * i, "AddV2", Tensor((), _INT64)),
        ("Cast", 6 * i + 2, "Cast", one),
        ("Pow", 2 * i, "Pow", None),
        ("sub", 4 * i + 1, "Sub", None),
        ("Pow", 2 * i + 1, "Pow", None),
        ("sub", 4 * i, "Sub", None),
        ("Sqrt", 2 * i, "Sqrt", None),
        ("mul", 4 * i, "Mul", None),
        ("truediv", 2 * i, "RealDiv", one),
    ]
    done = {"Cast": _numbered("Add", 2 * i), "truediv": _numbered("Cast", 6 * i + 2)}
    return [
        Op(
            _numbered(name, number),
            kind,
            (_elementwise(kind, one),),
            output,
            frees=(done[name],) if name in done else (),
        )
        for name, number, kind, output in ops
    ]


def _adam_update(i: int, variable: Tensor, gradient: str) -> list[Op]:
    """The moments of variable `i`, then the variable; what is not allocated here is done in place."""
    square, root, change = _numbered("Square", i), _numbered("Sqrt", 2 * i + 1), _numbered("Mul", 4 * i + 3)
    first = _numbered("Sub", 4 * i + 2)
    ops = [
        (square, "Square", 2, variable, ()),
        (_numbered("Sub", 4 * i + 3), "Sub", 3, None, ()),
        (_numbered("Mul", 4 * i + 2), "Mul", 2, None, ()),
        (_numbered("AssignAddVariableOp", 2 * i + 1), "AssignAddVariableOp", 3, None, (square,)),
        (root, "Sqrt", 2, variable, ()),
        (_numbered("Add", 2 * i + 1), "AddV2", 2, None, ()),
        (first, "Sub", 3, variable, (gradient,)),
        (_numbered("Mul", 4 * i + 1), "Mul", 2, None, ()),
        (_numbered("AssignAddVariableOp", 2 * i), "AssignAddVariableOp", 3, None, (first,)),
        (change, "Mul", 2, variable, (_numbered("truediv", 2 * i),)),
        (_numbered("truediv", 2 * i + 1), "RealDiv", 3, None, (root,)),
        (_numbered("AssignSubVariableOp", i), "AssignSubVariableOp", 3, None, (change,)),
    ]
    return [
        Op(name, kind, (_elementwise(kind, variable, passes),), output, frees=frees)
        for name, kind, passes, output, frees in ops
    ]
