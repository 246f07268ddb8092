"""A training step of the autoencoder on a GPU: its ops in the order of their launch.

Layers and the names of ops are those of `../autoencoder/record.py`, at a batch of 32.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernels import CHANNELS, IMAGES, INT64, Copy, Kernel, Layer, Tensor, convolve, elementwise, workspace

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


def _forward(layer: Layer) -> list[Op]:
    kind = "Conv2DBackpropInput" if layer.up else "Conv2D"
    activation = "Sigmoid" if layer.name == "image" else "Relu"
    bias = f"{layer.path}/Reshape/ReadVariableOp"
    return [
        Op(
            layer.convolution,
            kind,
            convolve(kind, layer, layer.output),
            layer.output,
            workspace(layer),
            reads=f"{layer.convolution}/ReadVariableOp",
        ),
        Op(f"{layer.path}/BiasAdd", "BiasAdd", (elementwise("BiasAdd", layer.output),), reads=bias),
        Op(f"{layer.path}/{activation}", activation, (elementwise(activation, layer.output),)),
    ]


def _loss(images: Tensor) -> list[Op]:
    """Mean squared error and its gradient, whose buffer `gradient_tape/mean_squared_error/Mul` allocates."""
    path, one = "mean_squared_error", Tensor(())
    rows = Tensor(images.shape[:-1])
    tape = f"gradient_tape/{path}"
    return [
        Op(f"{path}/sub", "Sub", (elementwise("Sub", images, 3),), images, frees=(_CLEAN,)),
        Op(f"{path}/Square", "Square", (elementwise("Square", images),), images),
        Op(f"{path}/Mean", "Mean", (elementwise("Mean", images, 1),), rows, frees=(f"{path}/Square",)),
        Op(f"{path}/Sum", "Sum", (elementwise("Sum", rows, 1),), one, frees=(f"{path}/Mean",)),
        Op(f"{path}/div_no_nan", "DivNoNan", (elementwise("DivNoNan", one),), one, frees=(f"{path}/Sum",)),
        Op(f"{tape}/Tile_1", "Tile", (elementwise("Tile", images, 1),), images),
        Op(f"{tape}/truediv", "Mul", (elementwise("Mul", images),)),
        Op(f"{tape}/Mul", "Mul", (elementwise("Mul", images),), images, frees=(f"{tape}/Tile_1",)),
        Op(f"{tape}/Mul_1", "Mul", (elementwise("Mul", images, 3),), frees=(f"{path}/sub",)),
        Op(f"{tape}/sub/Neg", "Neg", (elementwise("Neg", images),)),
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
            (elementwise(kind, layer.output, 3),),
            frees=() if is_last else (layer.convolution,),
        ),
        Op(_bias_gradient(layer), "BiasAddGrad", (elementwise("BiasAddGrad", layer.output, 1),), layer.bias),
        Op(
            _filter_gradient(layer),
            "Conv2DBackpropFilter",
            convolve("Conv2DBackpropFilter", layer, layer.filter),
            layer.filter,
            workspace(layer),
            frees=(arriving, _NOISY) if is_first else (),
        ),
    ]
    if not is_first:
        name, kind = _input_gradient(layer)
        out.append(Op(name, kind, convolve(kind, layer, layer.input), layer.input, workspace(layer), frees=(arriving,)))
    return out


def _numbered(name: str, number: int) -> str:
    return f"adam/{name}_{number}" if number else f"adam/{name}"


def _adam_scalars(i: int) -> list[Op]:
    """The learning rate of variable `i`, by steps so far; nothing in it waits for a gradient."""
    one = Tensor(())
    ops = [
        ("Add", 2 * i, "AddV2", Tensor((), INT64)),
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
            (elementwise(kind, one),),
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
        Op(name, kind, (elementwise(kind, variable, passes),), output, frees=frees)
        for name, kind, passes, output, frees in ops
    ]
