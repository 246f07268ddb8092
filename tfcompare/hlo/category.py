"""The category of an instruction, named as XLA's profiler names it."""

from __future__ import annotations

import numpy as np

from tfcompare.hlo.convolution import WINDOW, window_of
from tfcompare.hlo.program import Program
from tfcompare.schema.arrays import Int64, Strings

_FUSION_KIND = 11
_KINDS = {"kLoop": "loop fusion", "kInput": "input fusion", "kOutput": "output fusion", "kCustom": "custom fusion"}
_DATA_FORMATTING = frozenset({"transpose", "copy", "reshape", "dynamic-reshape"})
_ELEMENTWISE = frozenset(
    {
        *("abs", "acos", "acosh", "asin", "asinh", "atanh", "bitcast-convert", "cbrt", "ceil", "convert", "cosh"),
        *("cosine", "count-leading-zeros", "erf", "exponential", "exponential-minus-one", "floor", "imag"),
        *("is-finite", "log", "log-plus-one", "logistic", "negate", "not", "popcnt", "real", "reduce-precision"),
        *("round-nearest-afz", "round-nearest-even", "rsqrt", "sign", "sine", "sinh", "sqrt", "stochastic-convert"),
        *("tan", "tanh", "add", "and", "atan2", "compare", "complex", "divide", "maximum", "minimum", "multiply"),
        *("or", "power", "remainder", "shift-left", "shift-right-arithmetic", "shift-right-logical", "subtract"),
        *("xor", "clamp", "select", "map", "rng"),
    }
)


def categories(program: Program, rows: Int64) -> Strings:
    """The instructions' categories, such as `loop fusion`, `data formatting` or their opcodes.

    The rules are those of `HloInstruction::ToCategory` (OpenXLA), which xprof shows. Raises `NotAProfile` for damage.
    """
    out: Strings = np.array([_of_opcode(opcode) for opcode in program.opcodes], object)[program.opcode[rows]]
    fusions = np.flatnonzero(program.has_opcode(rows, "fusion".__eq__))
    kinds = program.field_texts(rows[fusions], _FUSION_KIND)
    out[fusions] = [_KINDS.get(kind, "fusion") for kind in kinds.tolist()]
    convolutions = np.flatnonzero(program.has_opcode(rows, "convolution".__eq__))
    windows = program.fields(rows[convolutions], WINDOW)[:, 0]
    out[convolutions] = [_of_convolution(program.content(window)) for window in windows]
    return out


def _of_opcode(opcode: str) -> str:
    if opcode in _DATA_FORMATTING:
        return "data formatting"
    return "non-fusion elementwise" if opcode in _ELEMENTWISE else opcode


def _of_convolution(content: memoryview | None) -> str:
    window = window_of(content)
    base = " base-dilated" if any(one.base_dilation != 1 for one in window) else ""
    return f"convolution{base}{' window-dilated' if any(one.dilation != 1 for one in window) else ''}"
