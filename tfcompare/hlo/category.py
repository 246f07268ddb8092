"""The category of an instruction, named as XLA's profiler names it."""

from __future__ import annotations

from tfcompare.hlo.convolution import window_of
from tfcompare.hlo.program import Instruction

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


def category(instruction: Instruction) -> str:
    """The instruction's category, such as `loop fusion`, `data formatting` or its opcode.

    The rules are those of `HloInstruction::ToCategory` (OpenXLA), which xprof shows.
    """
    opcode = instruction.opcode
    if opcode == "fusion":
        return _KINDS.get(instruction.text(_FUSION_KIND), "fusion")
    if opcode in _DATA_FORMATTING:
        return "data formatting"
    if opcode in _ELEMENTWISE:
        return "non-fusion elementwise"
    if opcode == "convolution":
        window = window_of(instruction)
        base = " base-dilated" if any(one.base_dilation != 1 for one in window) else ""
        return f"convolution{base}{' window-dilated' if any(one.dilation != 1 for one in window) else ''}"
    return opcode
