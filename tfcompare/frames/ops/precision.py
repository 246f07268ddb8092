"""How wide the numbers are that devices compute with, as far as the profile tells.

TensorBoard looks for `half` in what an op takes where TensorFlow recorded its shapes, else for `half` or `fp16` in the
kernel's name, and calls everything else 32-bit. Here more signs of 16 bits are known (bfloat16, names of BLAS kernels,
the types of an HLO instruction), and what bears no sign at all counts as neither.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from tfcompare.frames.combinations import combinations
from tfcompare.frames.ops.launches import Programs
from tfcompare.xspace import XSpace

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

NOT_TOLD, SIXTEEN_BIT, THIRTY_TWO_BIT = 0, 1, 2
_SHAPES, _HLO_OP = "shape", "hlo_op"
_SIXTEEN_BIT_NUMBERS = frozenset({10, 16, 19, 20, *range(23, 26), 28, 29, 32, 33})
"""Of `PrimitiveType` in `xla_data.proto`: `F16`, `BF16`, and the kinds of `F8` and `F4`."""
_THIRTY_TWO_BIT_NUMBERS = frozenset({4, 5, 8, 9, 11, 12, 15, 18})
"""`S32`, `S64`, `U32`, `U64`, `F32`, `F64`, `C64`, `C128`."""

SIXTEEN_BIT_KERNEL = re.compile(
    r"(?<![a-z])half(?![a-z]|_?pixel)|f16|fp16|bfloat16|<unsigned short\b|fp8|f8e[45]m|[sh]884|turing_[sh]1688|16816|"
    r"hmma|hgemm|Cijk_A[a-z]+_B[a-z]+_(?:HH|HS|BB|BS|F8|B8)",
    re.I,
)
"""In the name of a kernel whose numbers are 16 bits wide, or fewer."""
THIRTY_TWO_BIT_KERNEL = re.compile(
    r"fp?32|fp?64|float(?!ing)|\bdouble\b|DT_DOUBLE|DT_U?INT(?:32|64)|<unsigned (?:int|long)\b|[sdcz]gemm|"
    r"Cijk_A[a-z]+_B[a-z]+_[SDCZX]",
    re.I,
)
"""In the name of a kernel whose numbers are 32 bits wide, or more; where the name is of 16 bits too, those count."""

_HLO_TYPE = re.compile(r"\b((?:bf|f|s|u|c)\d+)(?:e\w+)?\[")
_SIXTEEN_BIT_TYPE = re.compile(r"(?:bf|f)(?:4|8|16)")
_THIRTY_TWO_BIT_TYPE = re.compile(r"[fsuc](?:32|64|128)")


def kernel_precisions(space: XSpace, rows: Int32) -> Int64:
    """The width of each of these events on GPUs: by what its op takes, else by its HLO instruction, else its name."""
    of_name = np.array([of_kernel(str(name)) for name in space.metadata_names], np.int64)
    found: Int64 = of_name[space.events.metadata[rows]]
    shapes = space.strings(_SHAPES)
    code = shapes.spread(len(space.events))[rows]
    of_shapes = np.array([*map(_of_shapes, map(str, shapes.labels)), NOT_TOLD], np.int64)[code]
    for told in (_of_programs(space, rows), of_shapes):
        found = np.where(told != NOT_TOLD, told, found)
    return found


def _of_programs(space: XSpace, rows: Int32) -> Int64:
    """By the types of the HLO instruction that each of these events ran, where its program is in the file."""
    out = np.full(len(rows), NOT_TOLD, np.int64)
    hlo_op = space.strings(_HLO_OP)
    code = hlo_op.spread(len(space.events))[rows]
    named = np.flatnonzero(code >= 0)
    if not named.size:
        return out
    program = space.number_of("program_id", rows, 0)
    programs = Programs(space)
    firsts, which = combinations(program[named], code[named])
    found = []
    for i in named[firsts].tolist():
        instruction = programs.instruction(int(program[i]), str(hlo_op.labels[code[i]]))
        found.append(_of_types(instruction.types) if instruction is not None else NOT_TOLD)
    out[named] = np.array(found, np.int64)[which]
    return out


def _of_types(types: frozenset[int]) -> int:
    if types & _SIXTEEN_BIT_NUMBERS:
        return SIXTEEN_BIT
    return THIRTY_TWO_BIT if types & _THIRTY_TWO_BIT_NUMBERS else NOT_TOLD


def of_kernel(name: str) -> int:
    """The width that a kernel's name speaks of."""
    if SIXTEEN_BIT_KERNEL.search(name):
        return SIXTEEN_BIT
    return THIRTY_TWO_BIT if THIRTY_TWO_BIT_KERNEL.search(name) else NOT_TOLD


def _of_shapes(shapes: str) -> int:
    """By texts like `(half[32,128];float[128])`: 16-bit where any tensor is, as in TensorBoard."""
    if "half" in shapes or "bfloat16" in shapes:
        return SIXTEEN_BIT
    return THIRTY_TWO_BIT if shapes.strip("(); ") else NOT_TOLD


def of_instruction(text: str) -> int:
    """The width of an HLO instruction by the types in its text, of what it takes and makes: 16-bit where any is."""
    types = _HLO_TYPE.findall(text)
    if any(_SIXTEEN_BIT_TYPE.fullmatch(found) for found in types):
        return SIXTEEN_BIT
    return THIRTY_TWO_BIT if any(_THIRTY_TWO_BIT_TYPE.fullmatch(found) for found in types) else NOT_TOLD
