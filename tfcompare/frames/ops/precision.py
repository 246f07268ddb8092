"""The number precision that devices compute with, if the profile shows it.

TensorBoard looks for `half` in an op's inputs where TensorFlow recorded their shapes, else for `half` or `fp16` in the
kernel's name, and counts everything else as 32-bit. This module recognises more signs of 16 bits (bfloat16, names of
BLAS kernels, the types of an HLO instruction), and counts kernels without any sign as neither.
"""

from __future__ import annotations

import re

import numpy as np

from tfcompare.frames.hlo.command_buffers import instructions_of
from tfcompare.hlo.shapes import mask_of
from tfcompare.schema.arrays import Int8, Int32
from tfcompare.xspace import XSpace

UNKNOWN_PRECISION, SIXTEEN_BIT, THIRTY_TWO_BIT = 0, 1, 2
_SHAPES = "shape"
_SIXTEEN_BIT_NUMBERS = mask_of({10, 16, 19, 20, *range(23, 26), 28, 29, 32, 33})
"""A mask of `PrimitiveType`s in `xla_data.proto`: `F16`, `BF16`, and the variants of `F8` and `F4`."""
_THIRTY_TWO_BIT_NUMBERS = mask_of({4, 5, 8, 9, 11, 12, 15, 18})
"""`S32`, `S64`, `U32`, `U64`, `F32`, `F64`, `C64`, `C128`."""

SIXTEEN_BIT_KERNEL = re.compile(
    r"(?<![a-z])half(?![a-z]|_?pixel)|f16|fp16|bfloat16|<unsigned short\b|fp8|f8e[45]m|[sh]884|turing_[sh]1688|16816|"
    r"hmma|hgemm|Cijk_A[a-z]+_B[a-z]+_(?:HH|HS|BB|BS|F8|B8)",
    re.I,
)
"""Matches names of kernels that compute with 16 bits or fewer."""
THIRTY_TWO_BIT_KERNEL = re.compile(
    r"fp?32|fp?64|float(?!ing)|\bdouble\b|DT_DOUBLE|DT_U?INT(?:32|64)|<unsigned (?:int|long)\b|[sdcz]gemm|"
    r"Cijk_A[a-z]+_B[a-z]+_[SDCZX]",
    re.I,
)
"""Matches names of kernels that compute with 32 bits or more, unless `SIXTEEN_BIT_KERNEL` matches too."""

_HLO_TYPE = re.compile(r"\b((?:bf|f|s|u|c)\d+)(?:e\w+)?\[")
_SIXTEEN_BIT_TYPE = re.compile(r"(?:bf|f)(?:4|8|16)")
_THIRTY_TWO_BIT_TYPE = re.compile(r"[fsuc](?:32|64|128)")


def kernel_precisions(space: XSpace, rows: Int32) -> Int8:
    """The precision of each of these GPU events: from its op's input types, else its HLO instruction, else its name."""
    of_name = np.array([name_precision(str(name)) for name in space.metadata_names], np.int8)
    found: Int8 = of_name[space.events.metadata[rows]]
    shapes = space.strings(_SHAPES)
    of_labels = np.array([*map(_shapes_precision, shapes.labels), UNKNOWN_PRECISION], np.int8)
    for better in (_program_precisions(space, rows), of_labels[shapes.spread()[rows]]):
        found = np.where(better != UNKNOWN_PRECISION, better, found)
    return found


def _shapes_precision(shapes: str) -> int:
    """The precision of inputs such as `(half[32,128];float[128])`: 16-bit if any is, as in TensorBoard."""
    if "half" in shapes or "bfloat16" in shapes:
        return SIXTEEN_BIT
    return THIRTY_TWO_BIT if shapes.strip("(); ") else UNKNOWN_PRECISION


def _program_precisions(space: XSpace, rows: Int32) -> Int8:
    """The precision of the HLO instruction that each event ran, if the file contains its program."""
    ran = instructions_of(space)
    of_instruction = np.full(len(ran.hlo_ops) + 1, UNKNOWN_PRECISION, np.int8)  # the last one is that of none
    for program, which, found in ran.found:
        types = program.types(found)
        wide = np.where(types & _THIRTY_TWO_BIT_NUMBERS, THIRTY_TWO_BIT, UNKNOWN_PRECISION)
        of_instruction[which] = np.where(types & _SIXTEEN_BIT_NUMBERS, SIXTEEN_BIT, wide)
    return of_instruction[ran.of_event[rows]]


def name_precision(name: str) -> int:
    """The precision that a kernel's name indicates."""
    if SIXTEEN_BIT_KERNEL.search(name):
        return SIXTEEN_BIT
    return THIRTY_TWO_BIT if THIRTY_TWO_BIT_KERNEL.search(name) else UNKNOWN_PRECISION


def hlo_precision(text: str) -> int:
    """The precision of an HLO instruction, from the operand and result types in its text: 16-bit if any is."""
    types = _HLO_TYPE.findall(text)
    if any(_SIXTEEN_BIT_TYPE.fullmatch(found) for found in types):
        return SIXTEEN_BIT
    return THIRTY_TWO_BIT if any(_THIRTY_TWO_BIT_TYPE.fullmatch(found) for found in types) else UNKNOWN_PRECISION
