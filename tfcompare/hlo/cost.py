"""The FLOPs, bytes and category of instructions, and the element types that they multiply.

Both follow from the shapes alone; `docs/numbers.md` has the rules. Costs that the shapes do not tell are NaN.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tfcompare.hlo.convolution import BATCH_GROUPS, DIMENSION_NUMBERS, WINDOW, Convolution, products, window_of
from tfcompare.hlo.custom_calls import BACKEND_CONFIG, TARGET, custom_call_flops, has_workspace, is_product
from tfcompare.hlo.program import PARAMETER_NUMBER, Program
from tfcompare.hlo.proto_fields import integers
from tfcompare.hlo.shapes import COMPLEX, FLOATING, Array
from tfcompare.schema.arrays import Bools, Floats, Int64, Strings
from tfcompare.xspace.lookup import last_rows
from tfcompare.xspace.texts import text_of

_DOT_DIMENSION_NUMBERS, _LEFT_CONTRACTING = 30, 1
_DEEPEST_CALL = 16
_DOUBLINGS = 6  # of the number of bitcasts in a row that are looked through
_MOST_POSITIONS = 1 << 20
"""Of the windows of a program's convolutions, so that a damaged file cannot make these take long."""
_LARGEST = 1e18
"""Costs beyond that are damage."""
_NAN = float("nan")

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
_APPLIED = _APPLIED_PER_ELEMENT | {"reduce", "reduce-window", "scatter", "select-and-scatter"}
"""They apply the computation that they call to elements."""
_ALGEBRA = frozenset({"custom-call", "dot", "convolution", "triangular-solve", "cholesky"})
_DONE = "-done"
_LIKE_OPERAND = frozenset({"copy-start", "collective-permute-start"})
"""Their results repeat the operands: what they write is as large as what they read."""
_SLICES = frozenset({"slice", "dynamic-slice", "gather"})
_UPDATE = "dynamic-update-slice"
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
_PRODUCTS, _CALL = frozenset({"dot", "convolution"}), "custom-call"


def flops(program: Program, rows: Int64) -> Floats:
    """The floating-point operations of one run of each instruction; a multiply and an add are two.

    A fusion has those of the instructions in it. NaN if the shapes do not tell. Raises `NotAProfile` for damage.
    """
    reached, is_whole = _with_called(program, rows)
    own, times = _own_flops(program, reached)
    callers = np.flatnonzero(~np.isnan(times))
    owner, _, called = program.called.flat(reached[callers])
    of_computation = np.full(len(program.ids) + 1, _NAN)  # the last one stands for those that the program lacks
    for _ in range(_DEEPEST_CALL):
        sums = float_sums(owner, of_computation[called], len(callers))
        own[callers] = np.minimum(times[callers], _LARGEST) * sums
        sums = float_sums(program.computation[reached], own, len(program.ids))
        known = np.append(np.where(is_whole, sums, _NAN), _NAN)
        if np.array_equal(known, of_computation, equal_nan=True):
            break
        of_computation = known
    return plausible(own[np.searchsorted(reached, rows)])


def bytes_accessed(program: Program, rows: Int64) -> Floats:
    """The bytes that one run of each instruction reads and writes at least, each array once.

    Where only a slice of an array is read or updated, only the slice counts. NaN if the shapes do not tell. Raises
    `NotAProfile` for damage.
    """
    is_free = program.has_opcode(rows, lambda opcode: opcode in _FREE or opcode.endswith(_DONE))
    owner, _, operand = program.operands.flat(rows)
    is_unknown = program.has_opcode(rows, _UNKNOWN.__contains__)
    is_unknown[owner[operand < 0]] = True
    is_fusion = program.has_opcode(rows, "fusion".__eq__)
    out = np.where(is_free, 0.0, _NAN)
    moving, fusions = (np.flatnonzero(chosen & ~is_free & ~is_unknown) for chosen in (~is_fusion, is_fusion))
    out[moving] = _moved_bytes(program, rows[moving])
    out[fusions] = _moved_by_fusions(program, rows[fusions])
    return plausible(out)


def _with_called(program: Program, rows: Int64) -> tuple[Int64, Bools]:
    """(these instructions and those that they call to compute their results, in order; whether all instructions of each
    computation are among them)."""
    is_reached, is_whole = np.zeros(len(program), np.bool_), np.zeros(len(program.ids), np.bool_)
    new = rows
    for _ in range(_DEEPEST_CALL):
        is_reached[new] = True
        callers = new[program.has_opcode(new, lambda opcode: opcode == "fusion" or opcode in _APPLIED)]
        called = np.unique(program.called.known(callers)[1])
        called = called[~is_whole[called]]
        if not len(called):
            break
        is_whole[called] = True
        new = program.instructions_of(called)
    else:
        is_whole[called] = False
    return np.flatnonzero(is_reached), is_whole


def _own_flops(program: Program, rows: Int64) -> tuple[Floats, Floats]:
    """(the operations of each instruction without those that it calls, how often it applies the computations that it
    calls, NaN if it calls none)."""
    elements = program.of_shapes(rows, lambda shape: shape.elements, np.float64)
    is_floating = program.of_shapes(rows, lambda shape: any(one.type in FLOATING for one in shape.arrays[:1]), np.bool_)
    is_made = program.of_shapes(rows, lambda shape: bool(shape.arrays), np.bool_)
    own, times = np.zeros(len(rows)), np.full(len(rows), _NAN)
    is_arithmetic = program.has_opcode(rows, _ARITHMETIC.__contains__)
    own[is_arithmetic & is_floating] = elements[is_arithmetic & is_floating]
    own[~is_made | program.has_opcode(rows, _UNKNOWN.__contains__)] = _NAN
    times[program.has_opcode(rows, "fusion".__eq__) & is_made] = 1.0
    applied = np.flatnonzero(program.has_opcode(rows, _APPLIED.__contains__) & is_made)
    times[applied] = _applications(program, rows[applied])
    algebra = np.flatnonzero(program.has_opcode(rows, _ALGEBRA.__contains__) & is_made)
    own[algebra] = _flops_of_algebra(program, rows[algebra])
    return own, times


def _applications(program: Program, rows: Int64) -> Floats:
    """How often these instructions apply the computations that they call."""
    first = program.of_shapes(rows, lambda shape: float(shape.arrays[0].elements), np.float64)
    out = program.of_shapes(rows, lambda shape: shape.elements, np.float64)
    sizes, of_inputs = _inputs(program, rows)
    is_reduce = program.has_opcode(rows, "reduce".__eq__)
    out[is_reduce] = np.where(sizes > 0, np.maximum(0.0, of_inputs[:, 0] - first), 0.0)[is_reduce]
    for opcode, place in (("scatter", 2), ("select-and-scatter", 1)):
        is_scatter = program.has_opcode(rows, opcode.__eq__)
        out[is_scatter] = np.where(sizes > 1, of_inputs[:, place], 0.0)[is_scatter]
    windowed = np.flatnonzero(program.has_opcode(rows, "reduce-window".__eq__))
    windows = program.fields(rows[windowed], WINDOW)[:, 0]
    sizes_of_windows = [prod(one.size for one in window_of(program.content(window))) for window in windows]
    out[windowed] = first[windowed] * np.array([min(max(0, size - 1), _LARGEST) for size in sizes_of_windows], float)
    return out


def _inputs(program: Program, rows: Int64) -> tuple[Int64, Floats]:
    """(how many operands of each instruction are arrays; elements of the first, second and last one, 0 for none)."""
    owner, operand = program.operands.known(rows)
    elements = program.of_shapes(
        operand, lambda shape: float(shape.arrays[0].elements) if shape.arrays else -1.0, np.float64
    )
    owner, elements = owner[elements >= 0], np.append(elements[elements >= 0], 0.0)
    sizes = np.bincount(owner, minlength=len(rows))
    end = np.cumsum(sizes)
    places = np.stack([end - sizes, end - sizes + 1, end - 1], axis=1)
    return sizes, elements[np.clip(places, 0, len(elements) - 1)]


def _flops_of_algebra(program: Program, rows: Int64) -> list[float]:
    """The operations of products of matrices, convolutions, solvers and library calls."""
    wanted = (_DOT_DIMENSION_NUMBERS, WINDOW, DIMENSION_NUMBERS, TARGET, BACKEND_CONFIG, BATCH_GROUPS)
    out, described = [], program.fields(rows, *wanted)
    positions = [0] * len(program.entry)  # of each program
    for row, own, places in zip(rows.tolist(), program.programs(rows).tolist(), described, strict=True):
        operands = [program.shape_of(operand).arrays for operand in program.operands.of(row) if operand >= 0]
        inputs = [arrays[0] for arrays in operands if arrays]
        dot, window, dimensions, target, config = (program.content(place) for place in places[:-1])
        convolution = None
        if dimensions is not None and window is not None:
            convolution = Convolution(window_of(window), dimensions, int(places[-1, -1]))
            positions[own] += convolution.positions
        made, opcode = program.shape_of(row).arrays[0], program.opcodes[program.opcode[row]]
        if positions[own] > _MOST_POSITIONS:
            convolution = None
        if opcode == "custom-call":
            name = text_of(target) if target is not None else ""
            found = custom_call_flops(name, config, convolution, inputs, made)
        else:
            found = _flops_of_product(opcode, dot, convolution, inputs, made)
        out.append(_NAN if found is None else found)
    return out


def _flops_of_product(
    opcode: str, dot: memoryview | None, convolution: Convolution | None, inputs: list[Array], made: Array
) -> float | None:
    if not inputs:
        return None
    if opcode == "dot":
        contracting = integers(dot, _LEFT_CONTRACTING, 64) if dot is not None else []
        if not all(0 <= dimension < len(inputs[0].dimensions) for dimension in contracting):
            return None
        contracted = prod(inputs[0].dimensions[dimension] for dimension in contracting)
        return _multiply_adds(made.elements * contracted, made)
    if opcode == "convolution":
        count = products(convolution, inputs[0], inputs[1], made) if convolution and len(inputs) > 1 else None
        return None if count is None else _multiply_adds(count, made)
    if opcode == "triangular-solve":
        return float(made.elements * inputs[0].dimensions[-1]) if inputs[0].dimensions else None
    return made.elements * made.dimensions[-1] / 3 if made.dimensions else None


def _multiply_adds(count: int, made: Array) -> float:
    """The operations of multiplying and adding; a complex product takes four real ones."""
    return 2.0 * min(count, int(_LARGEST)) * (4 if made.type in COMPLEX else 1)


def _moved_bytes(program: Program, rows: Int64) -> Floats:
    """What instructions other than fusions read of their operands and write of their results."""
    owner, place, operand = program.operands.flat(rows)
    own, sizes = _sizes(program, rows), _sizes(program, operand)
    number = np.bincount(owner, minlength=len(rows))[owner]  # of operands of the instruction

    def read(chosen: Bools) -> Floats:
        return float_sums(owner[chosen], sizes[chosen], len(rows))

    every = read(place >= 0)
    is_first_use = np.zeros(len(owner), np.bool_)
    is_first_use[np.unique(owner * len(program) + operand, return_index=True)[1]] = True
    reading, written = read(is_first_use), own.copy()
    is_slice, is_update = (program.has_opcode(rows, wanted) for wanted in (_SLICES.__contains__, _UPDATE.__eq__))
    reading[is_slice] = (own + read(place > 0))[is_slice]
    reading[is_update] = read(place > 0)[is_update]
    has_update = is_update & (np.bincount(owner, minlength=len(rows)) > 1)
    written[has_update] = read(place == 1)[has_update]
    is_scatter = program.has_opcode(rows, "scatter".__eq__)
    updates = read((place >= number - number // 2) | (number < 2))
    reading[is_scatter] = (read(place >= number // 2) + updates)[is_scatter]
    written[is_scatter] = updates[is_scatter]
    is_copy = program.has_opcode(rows, _LIKE_OPERAND.__contains__)
    written[is_copy] = every[is_copy]
    is_gather = program.has_opcode(rows, "all-gather-start".__eq__)
    written[is_gather] = np.maximum(0.0, own - every)[is_gather]
    calls = np.flatnonzero(program.has_opcode(rows, "custom-call".__eq__))
    for call, target in zip(calls.tolist(), program.field_texts(rows[calls], TARGET), strict=True):
        made = program.shape_of(int(rows[call]))
        if has_workspace(target, made):
            written[call] = sum(array.size_bytes for array in made.arrays[:-1])
    moved = reading + written
    moved[calls[moved[calls] == 0]] = _NAN  # what a call without operands and results reads is not in its shapes
    return moved


def _moved_by_fusions(program: Program, rows: Int64) -> Floats:
    """What fusions read of their operands and write of their results, by how the instructions in them use these."""
    called = program.called.at(rows, 0)
    computations = np.unique(called[called >= 0])
    inner = program.instructions_of(computations)
    owner, place, operand = program.operands.flat(rows)
    size = np.zeros(len(program) + 1)
    for some in (rows, operand, inner):
        size[some] = _sizes(program, some)
    source = _behind_bitcasts(program, inner)
    is_updated, unwritten = _updated_in_place(program, computations, source, size)
    read = _bytes_read(program, inner, source, is_updated, size)
    parameter = _parameters(program, inner, called[owner], place)
    whole = size[operand]
    moved = float_sums(owner, np.where(parameter < 0, whole, np.minimum(read[parameter], whole)), len(rows))
    return np.where(called < 0, _NAN, moved + np.maximum(0.0, size[rows] - unwritten[called]))


def _behind_bitcasts(program: Program, inner: Int64) -> Int64:
    """By instruction: itself, or for those of `inner` what they are a bitcast of; −1 at the end."""
    source = np.append(program.every, -1)
    bitcasts = inner[program.has_opcode(inner, "bitcast".__eq__)]
    operand = program.operands.at(bitcasts, 0)
    source[bitcasts] = np.where(operand < 0, bitcasts, operand)
    for _ in range(_DOUBLINGS):
        source[bitcasts] = source[source[bitcasts]]
    return source


def _updated_in_place(program: Program, computations: Int64, source: Int64, size: Floats) -> tuple[Bools, Floats]:
    """(by instruction, whether it is a result of one of these computations that updates a part of an array; by
    computation, the bytes of its results that are not written since only a part of an array is updated)."""
    roots = program.root[computations]
    is_tuple = program.has_opcode(roots, "tuple".__eq__) & (roots >= 0)
    owner, _, part = program.operands.flat(roots[is_tuple])
    result = source[np.append(roots[~is_tuple], part)]
    of_computation = np.append(computations[~is_tuple], computations[is_tuple][owner])
    update = program.operands.at(result, 1)
    is_update = program.has_opcode(result, _UPDATE.__eq__) & (result >= 0) & (update >= 0)
    result, update = result[is_update], update[is_update]
    is_updated = np.zeros(len(program), np.bool_)
    is_updated[result] = True
    saved = np.maximum(0.0, size[result] - size[update])
    unwritten = float_sums(of_computation[is_update], saved, len(program.ids))
    return is_updated, unwritten


def _bytes_read(program: Program, inner: Int64, source: Int64, is_updated: Bools, size: Floats) -> Floats:
    """By parameter, the bytes that the instructions of `inner` read of it: of slices; infinite if more is read."""
    owner, _, value = program.operands.flat(inner)
    user, parameter = inner[owner], source[value]
    is_read = program.has_opcode(parameter, "parameter".__eq__) & (parameter >= 0)
    is_read &= ~program.has_opcode(user, "bitcast".__eq__)
    user, value, parameter = user[is_read], value[is_read], parameter[is_read]
    _, use, uses = np.unique(user * len(program) + value, return_inverse=True, return_counts=True)
    is_first = program.operands.at(user, 0) == value
    is_slice = program.has_opcode(user, _SLICES.__contains__) & is_first & (uses[use] == 1)
    read = float_sums(parameter[is_slice], size[user[is_slice]], len(program))
    read[parameter[~is_slice & ~(is_updated[user] & is_first)]] = np.inf
    return read


def _parameters(program: Program, inner: Int64, computation: Int64, place: Int64) -> Int64:
    """The parameter of each computation at that place, among the instructions `inner`; −1 for none."""
    parameters = inner[program.has_opcode(inner, "parameter".__eq__)]
    number = program.integers(parameters, PARAMETER_NUMBER)
    most = int(place.max(initial=0)) + 1
    is_used = (number >= 0) & (number < most)
    parameters, number = parameters[is_used], number[is_used]
    row = last_rows(program.computation[parameters] * most + number, computation * most + place)
    return np.append(parameters, -1)[row]


def _sizes(program: Program, rows: Int64) -> Floats:
    sizes: Floats = program.of_shapes(rows, lambda shape: shape.size_bytes, np.float64)
    return sizes


def float_sums(owner: Int64, values: Floats, size: int) -> Floats:
    """The sum of the values of each owner from 0 to `size` − 1."""
    return np.bincount(owner, values, size).astype(np.float64, copy=False)


def plausible(costs: Floats) -> Floats:
    """These costs or rates, NaN for those that can only be damage."""
    return np.where(costs <= _LARGEST, costs, _NAN)


def categories(program: Program, rows: Int64) -> Strings:
    """The instructions' categories, such as `loop fusion`, `data formatting` or their opcodes.

    The rules are those of `HloInstruction::ToCategory` (OpenXLA), which xprof shows. Raises `NotAProfile` for damage.
    """
    known = dict.fromkeys(_DATA_FORMATTING, "data formatting") | dict.fromkeys(_ELEMENTWISE, "non-fusion elementwise")
    out: Strings = np.array([known.get(opcode, opcode) for opcode in program.opcodes], object)[program.opcode[rows]]
    fusions = np.flatnonzero(program.has_opcode(rows, "fusion".__eq__))
    kinds = program.field_texts(rows[fusions], _FUSION_KIND)
    out[fusions] = [_KINDS.get(kind, "fusion") for kind in kinds.tolist()]
    convolutions = np.flatnonzero(program.has_opcode(rows, "convolution".__eq__))
    windows = program.fields(rows[convolutions], WINDOW)[:, 0]
    for row, content in zip(convolutions.tolist(), windows, strict=True):
        window = window_of(program.content(content))
        base = " base-dilated" if any(one.base_dilation != 1 for one in window) else ""
        out[row] = f"convolution{base}{' window-dilated' if any(one.dilation != 1 for one in window) else ''}"
    return out


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
