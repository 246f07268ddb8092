"""Which element types instructions multiply: these decide how fast a device can be."""

from __future__ import annotations

import numpy as np

from tfcompare.hlo.custom_calls import TARGET, is_product
from tfcompare.hlo.program import Program
from tfcompare.schema.arrays import Int64

_PRODUCTS, _CALL = frozenset({"dot", "convolution"}), "custom-call"
_DEEPEST_CALL = 16


def multiplied_types(program: Program, rows: Int64) -> Int64:
    """The element types of the operands of products of matrices and convolutions, of a fusion of those in it, as bit
    masks; of instructions without any, the types of all that they use and produce. Raises `NotAProfile` for damage."""
    if not {*_PRODUCTS, _CALL} & set(program.opcodes):
        return program.types(rows)
    every = program.every
    factors = np.zeros(len(program), np.int64)
    products = every[program.has_opcode(every, _PRODUCTS.__contains__)]
    calls = every[program.has_opcode(every, _CALL.__eq__)]
    targets = program.field_texts(calls, TARGET).tolist()
    known = set(filter(is_product, set(targets)))
    products = np.append(products, calls[np.array([target in known for target in targets], np.bool_)])
    for place in (0, 1):
        operand = program.operands.at(products, place)
        used = operand >= 0
        factors[products[used]] |= program.of_shapes(operand[used], lambda shape: shape.types, np.int64)
    fusions = every[program.has_opcode(every, "fusion".__eq__)]
    called = program.called.at(fusions, 0)
    fusions, called = fusions[called >= 0], called[called >= 0]
    for _ in range(_DEEPEST_CALL):
        of_computation = np.zeros(len(program.ids), np.int64)
        np.bitwise_or.at(of_computation, program.computation, factors)
        if np.array_equal(factors[fusions], of_computation[called]):
            break
        factors[fusions] = of_computation[called]
    return np.where(factors[rows] != 0, factors[rows], program.types(rows))
