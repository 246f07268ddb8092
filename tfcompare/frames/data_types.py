"""Names of TensorFlow's data types by number (`DataType` in tensorflow/core/framework/types.proto)."""

from __future__ import annotations

_NAMES = (
    "INVALID", "float", "double", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool",
    "qint8", "quint8", "qint32", "bfloat16", "qint16", "quint16", "uint16", "complex128", "half", "resource",
    "variant", "uint32", "uint64", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz",
    "float8_e5m2fnuz", "int4", "uint4", "int2", "uint2", "float4_e2m1fn",
)  # fmt: skip
_FIRST_REFERENCE = 100


def data_type_name(number: int) -> str:
    """The data type's name in TensorFlow's spelling: `float`, `half`, or `float_ref` for a reference type."""
    is_reference = number > _FIRST_REFERENCE
    plain = number - _FIRST_REFERENCE if is_reference else number
    name = _NAMES[plain] if 0 <= plain < len(_NAMES) else f"unknown dtype enum ({plain})"
    return f"{name}_ref" if is_reference else name
