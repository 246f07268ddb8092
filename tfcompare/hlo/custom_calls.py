"""Floating-point operations of library calls: products of matrices, convolutions and attention."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from typing import Any

from tfcompare.hlo.convolution import Convolution, products
from tfcompare.hlo.shapes import COMPLEX, Array, Shape

TARGET, BACKEND_CONFIG = 28, 43
"""The fields of an instruction with the function that it calls, and how."""
_MATMULS = ("__cublas$gemm", "__cublas$lt$matmul")
_CONVOLUTIONS = {
    "__cudnn$convForward": (1, 2, 0),
    "__cudnn$convBiasActivationForward": (1, 2, 0),
    "__cudnn$convBackwardInput": (0, 2, 1),
    "__cudnn$convBackwardFilter": (1, 0, 2),
}
"""Which of the result (0) and the operands (from 1) are the image, the kernel and the result of the convolution."""
_ATTENTION = "__cudnn$fmha"
_WORKSPACE_OF = ("__cublas$", "__cudnn$")
_BYTES = (2, 6)  # S8, U8
_LONGEST_CONFIG = 1 << 20


def has_workspace(target: str, made: Shape) -> bool:
    """Whether the last array of the result of a call is a library's workspace, not a result."""
    if len(made.arrays) < 2 or not target.startswith(_WORKSPACE_OF):
        return False
    return made.arrays[-1].type in _BYTES and len(made.arrays[-1].dimensions) == 1


def is_product(target: str) -> bool:
    """Whether a call multiplies its first two operands: a product of matrices, a convolution, or attention."""
    return target.startswith((*_MATMULS, _ATTENTION)) or target in _CONVOLUTIONS


def custom_call_flops(
    target: str, config: memoryview | None, convolution: Convolution | None, inputs: list[Array], made: Array
) -> float | None:
    """The floating-point operations of a call of cuBLAS, hipBLASLt or cuDNN; None for other libraries."""
    if not inputs:
        return None
    if target.startswith(_MATMULS):
        numbers = _config(config, "gemm_backend_config").get("dot_dimension_numbers")
        columns = _columns(numbers, inputs[1]) if len(inputs) > 1 else None
        if columns is None:
            return None
        return 2.0 * inputs[0].elements * columns * (4 if inputs[0].type in COMPLEX else 1)
    if target in _CONVOLUTIONS and len(inputs) > 1 and convolution is not None:
        image, kernel, result = ([made, *inputs][role] for role in _CONVOLUTIONS[target])
        count = products(convolution, image, kernel, result)
        return None if count is None else 2.0 * count
    if target.startswith(_ATTENTION) and "Backward" not in target and len(inputs) > 2:
        return _of_attention(_config(config, "cudnn_fmha_backend_config"), inputs)
    return None


def _config(content: memoryview | None, name: str) -> Mapping[str, Any]:
    """That part of the call's configuration, empty if there is none."""
    part = parsed_config(content).get(name) if content is not None and len(content) <= _LONGEST_CONFIG else None
    return part if isinstance(part, dict) else {}


def parsed_config(content: memoryview) -> Mapping[str, Any]:
    """The configuration of a call of a library, which is JSON; empty if it is damaged."""
    try:
        found = json.loads(content.tobytes())
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _of_attention(config: Mapping[str, Any], inputs: list[Array]) -> float | None:
    """Queries × keys, then scores × values; a score has as many elements as there are queries and keys."""
    queries, keys, values = inputs[:3]
    key_columns = _columns(config.get("bmm1_dot_dimension_numbers"), keys)
    value_columns = _columns(config.get("bmm2_dot_dimension_numbers"), values)
    contracting = _dimensions(config.get("bmm1_dot_dimension_numbers"), "rhs_contracting")
    if key_columns is None or value_columns is None or not contracting:
        return None
    depth = prod(keys.dimensions[i] for i in contracting)  # they are among them, or there were no columns
    if not depth:
        return None
    scores = queries.elements // depth * key_columns
    return 2.0 * scores * (depth + value_columns)


def _columns(numbers: object, right: Array) -> int | None:
    """The product of the dimensions of the right operand that are neither contracted nor of the batch."""
    contracting, batch = _dimensions(numbers, "rhs_contracting"), _dimensions(numbers, "rhs_batch")
    if contracting is None or batch is None or max([*contracting, *batch], default=0) >= len(right.dimensions):
        return None
    return prod(size for i, size in enumerate(right.dimensions) if i not in contracting and i not in batch)


def _dimensions(numbers: object, name: str) -> list[int] | None:
    """Dimension numbers, which JSON has as texts; None if they are damaged."""
    if not isinstance(numbers, dict):
        return None
    found = numbers.get(f"{name}_dimensions", [])
    if not isinstance(found, list) or not all(isinstance(n, str | int) and str(n).isdecimal() for n in found):
        return None
    return [int(n) for n in found if len(str(n)) < 4] if len(found) <= 64 else None
