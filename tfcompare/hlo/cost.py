"""What an instruction costs each time it runs: floating-point operations, and bytes read and written.

Both follow from the shapes alone; `docs/numbers.md` has the rules. Costs that the shapes do not tell are None.
"""

from __future__ import annotations

from math import prod

from tfcompare.hlo.convolution import products, window_of
from tfcompare.hlo.custom_calls import custom_call_flops, is_workspace
from tfcompare.hlo.program import Computation, Instruction, Program
from tfcompare.hlo.shapes import COMPLEX, FLOATING, Array
from tfcompare.hlo.wire import integers

_DOT_DIMENSION_NUMBERS, _LEFT_CONTRACTING = 30, 1
_PARAMETER_NUMBER = 9
_DEEPEST_CALL, _MOST_BITCASTS = 16, 16
_LARGEST = 1e18
"""Costs beyond that are damage."""

_ARITHMETIC = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "remainder", "power", "maximum", "minimum", "atan2"),
        *("abs", "negate", "sign", "ceil", "floor", "round-nearest-afz", "round-nearest-even", "clamp"),
        *("exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "erf", "sqrt", "rsqrt", "cbrt"),
        *("sine", "cosine", "tan", "tanh", "sinh", "cosh", "asin", "acos", "asinh", "acosh", "atanh"),
    }
)
"""One operation per element of a floating-point result."""
_FREE = frozenset(
    {
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "add-dependency", "domain"),
        *("opt-barrier", "partition-id", "replica-id", "while", "conditional"),
    }
)
"""They move nothing themselves; what loops and branches run has rows of its own."""
_UNKNOWN = frozenset(
    {
        *("call", "async-start", "async-update", "fft", "ragged-dot", "topk", ""),
        *("batch-norm-training", "batch-norm-inference", "batch-norm-grad"),
    }
)
_APPLIED_PER_ELEMENT = frozenset({"map", "all-reduce", "all-reduce-start", "reduce-scatter"})
_DONE = "-done"
_LIKE_OPERAND = frozenset({"copy-start", "collective-permute-start"})
"""Their results repeat the operands: what they write is as large as what they read."""
_SLICES = frozenset({"slice", "dynamic-slice", "gather"})


class Costs:
    """The costs of a program's instructions; those of computations are calculated once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._flops: dict[int, float | None] = {}

    def flops(self, instruction: Instruction) -> float | None:
        """The floating-point operations of one run of the instruction; a multiply and an add are two.

        A fusion has those of the instructions in it. None if the shapes do not tell. Raises `NotAProfile` for damage.
        """
        return _plausible(self._flops_of(instruction, 0))

    def bytes_accessed(self, instruction: Instruction) -> float | None:
        """The bytes that one run of the instruction reads and writes at least, each array once.

        Where only a slice of an array is read or updated, only the slice counts. None if the shapes do not tell. Raises
        `NotAProfile` for damage.
        """
        if instruction.opcode in _FREE or instruction.opcode.endswith(_DONE):
            return 0.0
        if instruction.opcode in _UNKNOWN:
            return None
        operands = self._program.operands(instruction)
        if any(operand is None for operand in operands):
            return None
        inputs = [operand for operand in operands if operand is not None]
        if instruction.opcode == "fusion":
            return _plausible(self._bytes_of_fusion(instruction, inputs))
        return _plausible(float(_bytes_read(instruction, inputs) + _bytes_written(instruction, inputs)))

    def _flops_of(self, instruction: Instruction, depth: int) -> float | None:
        opcode, made = instruction.opcode, instruction.arrays
        if opcode in _UNKNOWN or not made:
            return None
        elements = sum(array.elements for array in made)
        if opcode in _ARITHMETIC:
            return float(elements) if made[0].type in FLOATING else 0.0
        if opcode == "fusion":
            return self._flops_of_called(instruction, depth)
        if opcode in _APPLIED_PER_ELEMENT:
            return _times(elements, self._flops_of_called(instruction, depth))
        inputs = [operand.arrays[0] for operand in self._program.operands(instruction) if operand and operand.arrays]
        if opcode == "reduce":
            applied = max(0, inputs[0].elements - made[0].elements) if inputs else 0
            return _times(applied, self._flops_of_called(instruction, depth))
        if opcode == "reduce-window":
            window = prod(dimension.size for dimension in window_of(instruction))
            return _times(made[0].elements * max(0, window - 1), self._flops_of_called(instruction, depth))
        if opcode in ("scatter", "select-and-scatter"):
            updates = inputs[-1 if opcode == "scatter" else 1].elements if len(inputs) > 1 else 0
            return _times(updates, self._flops_of_called(instruction, depth))
        return _flops_of_algebra(instruction, inputs, made[0])

    def _flops_of_called(self, instruction: Instruction, depth: int) -> float | None:
        """The operations of the computations that an instruction calls, once each."""
        found = [self._flops_of_computation(number, depth + 1) for number in instruction.called]
        return None if None in found else sum(flops or 0.0 for flops in found)

    def _flops_of_computation(self, number: int, depth: int) -> float | None:
        if number in self._flops:
            return self._flops[number]
        computation = self._program.computations.get(number)
        if computation is None or depth > _DEEPEST_CALL:
            return None
        found = [self._flops_of(instruction, depth) for instruction in computation.instructions]
        self._flops[number] = None if None in found else sum(flops or 0.0 for flops in found)
        return self._flops[number]

    def _bytes_of_fusion(self, instruction: Instruction, inputs: list[Instruction]) -> float | None:
        """What the fusion reads of its operands and writes of its results, by how its instructions use them."""
        computation = self._program.computations.get(instruction.called[0]) if instruction.called else None
        if computation is None:
            return None
        used = _Uses(computation)
        read = sum(used.bytes_read(position, _size(operand)) for position, operand in enumerate(inputs))
        return float(read + used.bytes_written(_size(instruction)))


class _Uses:
    """How the instructions of a fused computation use its parameters."""

    def __init__(self, computation: Computation) -> None:
        self._by_number = computation.by_number
        root = self._by_number.get(computation.root)
        returned = root.operands if root is not None and root.opcode == "tuple" else (computation.root,)
        self._results = [self._source(number) for number in returned]
        self._users: dict[int, list[Instruction]] = {}
        self._parameters: dict[int, Instruction] = {}
        for one in computation.instructions:
            for operand in one.operands:
                self._users.setdefault(operand, []).append(one)
            if one.opcode == "parameter":
                self._parameters[one.number_in(_PARAMETER_NUMBER, 0)] = one

    def bytes_read(self, position: int, size_bytes: int) -> int:
        """The bytes read of the parameter at that position: all, or the slices taken of it if nothing else is."""
        parameter = self._parameters.get(position)
        if parameter is None:
            return size_bytes
        read = 0
        for user, number in self._final_users(parameter):
            if user.opcode in _SLICES and user.operands[:1] == (number,) and number not in user.operands[1:]:
                read += _size(user)
            elif not (user in self._results and _is_update(user) and user.operands[0] == number):
                return size_bytes
        return min(read, size_bytes)

    def bytes_written(self, size_bytes: int) -> int:
        """The bytes written of the results: all, or the updated slices where results are updated arrays."""
        written = size_bytes
        for result in self._results:
            update = self._by_number.get(result.operands[1]) if result is not None and _is_update(result) else None
            if result is not None and update is not None:
                written -= max(0, _size(result) - _size(update))
        return max(0, written)

    def _source(self, number: int) -> Instruction | None:
        """The instruction of that number, or what it is a bitcast of."""
        found = self._by_number.get(number)
        for _ in range(_MOST_BITCASTS):
            if found is None or found.opcode != "bitcast" or not found.operands:
                break
            found = self._by_number.get(found.operands[0])
        return found

    def _final_users(self, instruction: Instruction) -> list[tuple[Instruction, int]]:
        """(who uses the instruction's value, under which number), looking through bitcasts."""
        out: list[tuple[Instruction, int]] = []
        waiting, seen = [instruction.number], set()
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            for user in self._users.get(number, []):
                if user.opcode == "bitcast":
                    waiting.append(user.number)
                else:
                    out.append((user, number))
        return out


def _is_update(instruction: Instruction) -> bool:
    return instruction.opcode == "dynamic-update-slice" and len(instruction.operands) > 1


def _size(instruction: Instruction) -> int:
    return sum(array.size_bytes for array in instruction.arrays)


def _bytes_read(instruction: Instruction, inputs: list[Instruction]) -> int:
    sizes = [_size(one) for one in inputs]
    if instruction.opcode in _SLICES:
        return _size(instruction) + sum(sizes[1:])
    if instruction.opcode == "dynamic-update-slice":
        return sum(sizes[1:])
    if instruction.opcode == "scatter":
        return sum(sizes[len(sizes) // 2 :]) + sum(sizes[-(len(sizes) // 2) :])
    distinct = {one.number: size for one, size in zip(inputs, sizes, strict=True)}
    return sum(distinct.values())


def _bytes_written(instruction: Instruction, inputs: list[Instruction]) -> int:
    if _is_update(instruction) and len(inputs) > 1:
        return _size(inputs[1])
    if instruction.opcode == "scatter":
        return sum(_size(one) for one in inputs[-(len(inputs) // 2) :])
    if instruction.opcode in _LIKE_OPERAND:
        return sum(map(_size, inputs))
    if instruction.opcode == "all-gather-start":
        return max(0, _size(instruction) - sum(map(_size, inputs)))
    if is_workspace(instruction):
        return sum(array.size_bytes for array in instruction.arrays[:-1])
    return _size(instruction)


def _flops_of_algebra(instruction: Instruction, inputs: list[Array], made: Array) -> float | None:
    """The operations of products of matrices, convolutions and solvers; 0 for instructions that do no arithmetic."""
    opcode = instruction.opcode
    if opcode == "custom-call":
        return custom_call_flops(instruction, inputs)
    if opcode in ("dot", "convolution", "triangular-solve", "cholesky") and not inputs:
        return None
    if opcode == "dot":
        numbers = instruction.part(_DOT_DIMENSION_NUMBERS)
        contracting = integers(numbers, _LEFT_CONTRACTING, 64) if numbers is not None else []
        if any(dimension >= len(inputs[0].dimensions) for dimension in contracting):
            return None
        contracted = prod(inputs[0].dimensions[dimension] for dimension in contracting)
        return _multiply_adds(made.elements * contracted, made)
    if opcode == "convolution":
        count = products(instruction, inputs[0], inputs[1], made) if len(inputs) > 1 else None
        return None if count is None else _multiply_adds(count, made)
    if opcode == "triangular-solve":
        return float(made.elements * inputs[0].dimensions[-1]) if inputs[0].dimensions else None
    if opcode == "cholesky":
        return made.elements * made.dimensions[-1] / 3 if made.dimensions else None
    return 0.0


def _multiply_adds(count: int, made: Array) -> float:
    """The operations of multiplying and adding; a complex product takes four real ones."""
    return 2.0 * min(count, int(_LARGEST)) * (4 if made.type in COMPLEX else 1)


def _times(count: int, flops: float | None) -> float | None:
    return None if flops is None else min(count, int(_LARGEST)) * flops


def _plausible(cost: float | None) -> float | None:
    return cost if cost is not None and cost <= _LARGEST else None
