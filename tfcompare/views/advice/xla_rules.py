"""Rules for the instructions of compiled XLA programs on devices: their shapes, layouts and precision."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import wraps
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from tfcompare.units import share_of
from tfcompare.views.advice.facts import Facts, longest
from tfcompare.views.advice.model import SHARE, WORTH_IT, XLA_GUIDE, Figure, Found, code
from tfcompare.views.xla.compiler import LAYOUT, kinds_of

LOW_USE = 0.3
"""Of the peak FLOP rate: large products whose shapes fit a device reach more than half of it."""
MOSTLY_PADDING = 1.25
"""Padded ÷ true size of an array from which its shape explains a low use of matrix units."""
TENSOR_CORE_MULTIPLE = 8
"""Of the dimensions of matrices that tensor cores take without padding."""
LAYOUT_SHARE = 0.1
"""Of the time in programs: below that, copies are those of results and carried state."""
WIDE_SHARE = 0.2
"""Of the time in programs: where less is in 32-bit products, 16 bits change little."""
TPU = "TPU"
HALF = 0.5
"""Share of the bytes that operands of half as many bits save."""

MATRIX_GUIDE = "https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/"
TPU_GUIDE = "https://cloud.google.com/tpu/docs/performance-guide"

_PRODUCT = "convolution|dot|gemm|matmul"
_PRODUCT_OF_LIBRARY = 'custom_call_target="[^"]*(?:conv|gemm|matmul)'
_LAYOUT = "transpose|copy"
_ARRAY = re.compile(r"([a-z]\w*)\[([\d,]+)\](?:\{([\d,]+)(?::T\((\d+),(\d+)\))?)?")
_OPERANDS = re.compile(r"[a-z]\w*\[[^ ]* %")
_COPY_DONE = "copy-done"
_COPIED = re.compile(r"([a-z]\w*\[[\d,]*\])(?:\{[^}]*?(S\(\d+\))?\})?")
_HOST_SPACE = "S(5)"
"""How layouts in XLA's texts mark the host's memory."""
_DATA_FORMATTING = "data formatting"
_MOST_ELEMENTS = 1 << 60
_FLOATS = ("bf16", "f16", "f32")


_Choose = Callable[[Facts], pd.DataFrame]


def _once(choose: _Choose) -> _Choose:
    """`choose`, which several figures of a rule call, computed once for each run."""
    known: WeakKeyDictionary[Facts, pd.DataFrame] = WeakKeyDictionary()

    @wraps(choose)
    def chosen(facts: Facts) -> pd.DataFrame:
        if facts not in known:
            known[facts] = choose(facts)
        return known[facts]

    return chosen


def _total_us(rows: pd.DataFrame) -> float:
    return float(rows["self_time_us"].sum())


def _share(facts: Facts, rows: pd.DataFrame) -> float:
    """Of the time in programs."""
    return share_of(_total_us(rows), _total_us(facts.hlo_ops))


def _per_step(facts: Facts, rows: pd.DataFrame) -> float:
    """Per step that counts; as it is where there are none."""
    return _total_us(rows) / max(len(facts.steps), 1)


@_once
def _products(facts: Facts) -> pd.DataFrame:
    """The matrix products and convolutions on devices whose costs are known."""
    rows = facts.hlo_ops[facts.hlo_ops["flops"] > 0] if facts.has_device else facts.hlo_ops.iloc[:0]
    is_product = (rows["category"] + " " + rows["hlo_op"]).str.contains(_PRODUCT, regex=True)
    return rows[is_product | rows["expression"].str.contains(_PRODUCT_OF_LIBRARY, case=False, regex=True)]


def misfit(expression: str) -> tuple[str, int, int] | None:
    """(an array, a dimension of it, its padded length) that makes matrix units idle; None where shapes fit.

    Of arrays with a tiled layout (TPU) the one with the most padding, if that is a fifth of it. Of matrix products in
    plain layouts (GPU) the largest array with a dimension that is no multiple of 8; convolutions are left out there,
    as the order of their dimensions is unknown.
    """
    if "conv" in expression and ":T(" not in expression:
        return None
    found = [one for match in _ARRAY.finditer(expression) if (one := _misfit(*match.groups())) is not None]
    worst = max(found, key=lambda one: one[3], default=None)
    return worst[:3] if worst is not None else None


def _misfit(
    name: str, sizes: str, order: str | None, sublanes: str | None, lanes: str | None
) -> tuple[str, int, int, int] | None:
    """As `misfit` of one array, and how many elements of padding it has (with a plain layout, its elements)."""
    dimensions = [int(size[:12]) for size in sizes.split(",") if size]
    if name not in _FLOATS or len(dimensions) < 2:
        return None
    shape, elements = f"{name}[{sizes}]", 1
    for size in dimensions:
        elements = min(elements * size, _MOST_ELEMENTS)
    if order is None:
        odd = [size for size in dimensions[-2:] if size > 1 and size % TENSOR_CORE_MULTIPLE]
        return (shape, odd[-1], _pad(odd[-1], TENSOR_CORE_MULTIPLE), elements) if odd else None
    minor = [int(i) for i in order.split(",")[:2] if i and int(i[:3]) < len(dimensions)]
    if sublanes is None or lanes is None or len(minor) < 2 or not elements:
        return None
    tiles = {minor[0]: int(lanes[:6]), minor[1]: int(sublanes[:6])}
    ratios = {i: _pad(dimensions[i], tile) / dimensions[i] for i, tile in tiles.items() if tile}
    growth = math.prod(ratios.values())
    if growth < MOSTLY_PADDING:
        return None
    worst = max(ratios, key=ratios.__getitem__)
    return shape, dimensions[worst], _pad(dimensions[worst], tiles[worst]), int(elements * (growth - 1))


def _pad(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


@_once
def _idle_units(facts: Facts) -> pd.DataFrame:
    """Products bound by computing that reach little of the peak, and whose shapes explain it."""
    rows = _products(facts)
    use = rows["flops_per_s"] / rows["peak_flops_per_s"]
    rows = rows[(rows["bound_by"] == "compute") & (use < LOW_USE)]
    return rows[np.array([misfit(text) is not None for text in rows["expression"]], np.bool_)]


IDLE_UNITS_SHARE = Figure("Such products, of the time in programs", SHARE, lambda f: _share(f, _idle_units(f)))
IDLE_UNITS_TIME = Figure("Such products", "µs", lambda f: _per_step(f, _idle_units(f)), summed=True)


def _use_of(row: pd.Series) -> Figure:
    def take(facts: Facts) -> float:
        rows = _products(facts)
        same = rows[(rows["hlo_op"] == row["hlo_op"]) & (rows["expression"] == row["expression"])]
        return float((same["flops_per_s"] / same["peak_flops_per_s"]).max())

    return Figure("Of the peak FLOP rate", SHARE, take, str(row["hlo_op"]))


def matrix_units(facts: Facts) -> Found | None:
    """Matrix products use little of the matrix units, because their shapes have to be padded."""
    rows = _idle_units(facts)
    above_roof_us = rows["self_time_us"] * (1 - rows["flops_per_s"] / rows["peak_flops_per_s"])
    saves = share_of(float(above_roof_us.sum()), _total_us(facts.hlo_ops)) * facts.op_share
    if not saves >= WORTH_IT:
        return None
    row = longest(rows)
    shape, dimension, padded = misfit(str(row["expression"])) or ("", 0, 0)
    use, is_tiled = _use_of(row), ":T(" in str(row["expression"])
    odd = f"is no multiple of {TENSOR_CORE_MULTIPLE}, as tensor cores want"
    cause = f"is padded to {padded:,}" if is_tiled else odd
    text = (
        f"{code(row['hlo_op'])} of {code(row['program'])} reaches {use.text(facts)} of the device's peak FLOP rate: "
        f"dimension {dimension:,} of {code(shape)} {cause}. All such products take {IDLE_UNITS_TIME.text(facts)} "
        f"{facts.each}. Choose numbers of features and batch sizes that fit, or merge small dimensions into one."
    )
    title = f"Matrix units are mostly idle in products that take {IDLE_UNITS_SHARE.text(facts)} of the time in programs"
    guide = TPU_GUIDE if is_tiled else MATRIX_GUIDE
    return Found(title, text + _origin(row), (IDLE_UNITS_SHARE, IDLE_UNITS_TIME, use), guide, saves)


def _origin(row: pd.Series) -> str:
    """` It comes from `dot_general` at `model.py:7`.`, as far as that is known."""
    known = [code(row[name]) for name in ("op_name", "source") if row[name]]
    return f" It comes from {' at '.join(known)}." if known else ""


@_once
def _awaited_copies(facts: Facts) -> pd.DataFrame:
    """The ends of asynchronous copies, in which a device waits for what `copy-start` began."""
    return facts.hlo_ops[(facts.hlo_ops["category"] == _COPY_DONE) & facts.has_device]


AWAITED_COPIES_SHARE = Figure(
    "Waiting for copies, of the time in programs", SHARE, lambda f: _share(f, _awaited_copies(f))
)
AWAITED_COPIES_TIME = Figure("Waiting for copies", "µs", lambda f: _per_step(f, _awaited_copies(f)), summed=True)


def awaited_copies(facts: Facts) -> Found | None:
    """Devices wait for the end of copies that they began earlier."""
    saves = AWAITED_COPIES_SHARE.of(facts) * facts.op_share
    if not saves >= WORTH_IT:
        return None
    row = longest(_awaited_copies(facts))
    arrays = _COPIED.findall(str(row["expression"]))
    of_host = any(space == _HOST_SPACE for _, space in arrays)
    what = f" of {code(arrays[0][0])}" if arrays else ""
    where = "between the host's memory and the device's" if of_host else "within the device's memory"
    how = (
        "Keep on the device what fits there, move smaller types or less often, and give the device more to compute per "
        "byte that is moved."
        if of_host
        else "XLA prefetches operands into faster memory, and the computation is too short to hide that: larger "
        "batches or fused operations compute more per byte."
    )
    text = (
        f"{code(row['hlo_op'])} of {code(row['program'])} waits the longest, for a copy{what} {where}. All such waits "
        f"take {AWAITED_COPIES_TIME.text(facts)} {facts.each}, summed over the devices. {how}{_origin(row)}"
    )
    title = f"Devices wait for copies {AWAITED_COPIES_SHARE.text(facts)} of the time in programs"
    return Found(title, text, (AWAITED_COPIES_SHARE, AWAITED_COPIES_TIME), XLA_GUIDE, saves)


@_once
def _layout_changes(facts: Facts) -> pd.DataFrame:
    """Transposes, copies and fusions named after them that compute nothing."""
    if not facts.has_device:
        return facts.hlo_ops.iloc[:0]
    names = facts.hlo_ops["category"] + " " + facts.hlo_ops["hlo_op"]
    may_be = names.str.contains(_LAYOUT, regex=True) | (facts.hlo_ops["category"] == _DATA_FORMATTING)
    rows = facts.hlo_ops[may_be & ~(facts.hlo_ops["flops"] > 0)]
    cells = zip(rows["hlo_op"], rows["category"], rows["expression"], rows["is_rematerialized"], strict=True)
    return rows[np.array([LAYOUT in kinds_of(*cell) for cell in cells], np.bool_)]


LAYOUT_OF_PROGRAMS = Figure("Layout changes, of the time in programs", SHARE, lambda f: _share(f, _layout_changes(f)))
LAYOUT_TIME = Figure("Layout changes", "µs", lambda f: _per_step(f, _layout_changes(f)), summed=True)


_CHANNELS_LAST = {
    False: "`data_format='channels_last'` in every layer, no `tf.transpose` between them",
    True: "`dimension_numbers=('NHWC', 'HWIO', 'NHWC')`, in three dimensions `NDHWC`, parameters too",
}
_SAME_ORDER = {
    False: "fewer calls of `tf.transpose`, and `tf.einsum` instead of transposing before `tf.matmul`",
    True: "fewer calls of `transpose` and `swapaxes`, `jnp.einsum` instead of transposing before a product, and "
    "`donate_argnums` for arguments that are updated, so that they are not copied",
}


def layout_changes(facts: Facts) -> Found | None:
    """Instructions that only copy or transpose take a good part of the time in programs."""
    share = LAYOUT_OF_PROGRAMS.of(facts)
    saves = share * facts.op_share
    if not (share >= LAYOUT_SHARE and saves >= WORTH_IT):
        return None
    rows = _layout_changes(facts)
    row = longest(rows)
    text = (
        f"Transposes and copies take {LAYOUT_TIME.text(facts)} {facts.each}, {code(row['hlo_op'])} of "
        f"{code(row['program'])} the longest.{_origin(row)} "
    )
    if "conv" in f"{row['op_name']} {row['expression']}".lower():
        text += f"Keep the channels last from input to output: {_CHANNELS_LAST[facts.is_jax]}."
    else:
        text += f"Keep dimensions in one order from operation to operation: {_SAME_ORDER[facts.is_jax]}."
    title = f"Layout changes take {LAYOUT_OF_PROGRAMS.text(facts)} of the time in programs"
    return Found(title, text, (LAYOUT_OF_PROGRAMS, LAYOUT_TIME), XLA_GUIDE, saves)


@_once
def _wide_products(facts: Facts) -> pd.DataFrame:
    """Products of 32-bit operands on TPUs; the rule `mixed_precision` has those on GPUs, by their kernels."""
    rows = _products(facts)
    rows = rows[rows["peak_flops_per_s"].notna() & (facts.info.device_type == TPU)]
    types = [{one.partition("[")[0] for one in _OPERANDS.findall(text)} for text in rows["expression"]]
    return rows[np.array(["f32" in of and not of & {"bf16", "f16"} for of in types], np.bool_)]


WIDE_OF_PROGRAMS = Figure("f32 matrix products, of the time in programs", SHARE, lambda f: _share(f, _wide_products(f)))
WIDE_TIME = Figure("f32 matrix products", "µs", lambda f: _per_step(f, _wide_products(f)), summed=True)


def wide_products(facts: Facts) -> Found | None:
    """Matrix products have 32-bit operands on a device whose matrix units take 16 bits."""
    share = WIDE_OF_PROGRAMS.of(facts)
    if not (share >= WIDE_SHARE and share * facts.op_share >= WORTH_IT):
        return None
    rows = _wide_products(facts)
    row = longest(rows)
    of_memory = rows[rows["bound_by"] == "memory"]
    saves = _share(facts, of_memory) * HALF * facts.op_share
    text = (
        f"Matrix products and convolutions with `f32` operands take {WIDE_TIME.text(facts)} {facts.each}, "
        f"{code(row['hlo_op'])} of {code(row['program'])} the longest.{_origin(row)} The matrix units of the device "
        "take 16 bits: operands in `bf16` are half as many bytes to read, and need one pass where a higher precision "
        "needs several. "
    )
    text += (
        "Compute in `jnp.bfloat16`: cast parameters and inputs for the step and keep the master copy in 32 bits."
        if facts.is_jax
        else "Set `tf.keras.mixed_precision.set_global_policy('mixed_bfloat16')` before the model is built."
    )
    title = f"Matrix products in f32 take {WIDE_OF_PROGRAMS.text(facts)} of the time in programs"
    return Found(title, text, (WIDE_OF_PROGRAMS, WIDE_TIME), TPU_GUIDE, saves if saves >= WORTH_IT else 0.0)


RULES = (matrix_units, awaited_copies, layout_changes, wide_products)
