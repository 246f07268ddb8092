"""Rules for what GPUs compute: its precision, tensor cores, and transposes that only change the layout."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from tfcompare.frames.ops.precision import SIXTEEN_BIT, SIXTEEN_BIT_KERNEL, THIRTY_TWO_BIT_KERNEL, hlo_precision
from tfcompare.units import share_of
from tfcompare.views.advice.facts import Facts
from tfcompare.views.advice.model import GPU_GUIDE, MIXED_PRECISION_GUIDE, SHARE, WORTH_IT, Figure, Found
from tfcompare.views.advice.xla_rules import layout_changes
from tfcompare.views.steps.figures import sixteen_bit_share

if TYPE_CHECKING:
    import pandas as pd


SIXTEEN_BIT_GAIN = 0.5
"""Share of the time that half as many bytes save; tensor cores may save more, what is bound by launches less."""
WIDE_SHARE = 0.2
"""Of the kernel time: where less is in 32-bit matrix products, 16 bits change little."""

LAYOUT = re.compile(
    r"transpose|SwapDimension1And2InTensor3|ShuffleInTensor3|nchwToNhwc|nhwcToNchw|Im\d?d?2Col|Col2Im", re.I
)
_CONVOLUTION = re.compile(r"conv", re.I)


def _sum(facts: Facts, kernels: pd.DataFrame, column: str = "total_duration_us") -> float:
    """The sum over some of the kernels; NaN where the profile has none at all."""
    return float(kernels[column].sum()) if len(facts.kernels) else math.nan


def _matching(kernels: pd.DataFrame, pattern: re.Pattern[str], column: str = "kernel_name") -> pd.Series:
    """Whether a name holds the pattern; each name is looked at once, as kernels share long ones."""
    names = kernels[column]
    return names.isin([name for name in names.unique() if pattern.search(str(name))])


def layout_kernels(facts: Facts) -> pd.DataFrame:
    """Kernels that only transpose tensors or rearrange them for a convolution."""
    return facts.kernels[_matching(facts.kernels, LAYOUT)]


def _products(facts: Facts) -> pd.DataFrame:
    """Kernels of ops that tensor cores could do, less those that only change the layout."""
    kernels = facts.kernels[facts.kernels["is_op_tensor_core_eligible"].astype(bool)]
    return kernels[~_matching(kernels, LAYOUT)]


def _wide(facts: Facts) -> pd.DataFrame:
    """Those of them that work in 32 bits: by name, or off the tensor cores with no name of 16 bits, unless their op's
    instructions have operands of 16 bits."""
    kernels, programs = _products(facts), facts.hlo_ops
    narrow = [hlo_precision(str(text)) == SIXTEEN_BIT for text in programs["expression"]]
    kernels = kernels[~kernels["op_name"].isin(set(programs.loc[narrow, "op_name"]) - {""})]
    off_cores = ~kernels["is_kernel_using_tensor_core"].astype(bool)
    return kernels[~_matching(kernels, SIXTEEN_BIT_KERNEL) & (off_cores | _matching(kernels, THIRTY_TWO_BIT_KERNEL))]


def _on_cores_us(facts: Facts) -> float:
    return _sum(facts, facts.kernels[facts.kernels["is_kernel_using_tensor_core"].astype(bool)])


WIDE_OF_KERNELS = Figure(
    "32-bit matrix products, of the kernel time", SHARE, lambda f: share_of(_sum(f, _wide(f)), f.kernel_us)
)
WIDE_TIME = Figure("32-bit matrix products", "µs", lambda f: f.per_recorded_step(_sum(f, _wide(f))), summed=True)
ON_CORES = Figure("On tensor cores, of the kernel time", SHARE, lambda f: share_of(_on_cores_us(f), f.kernel_us))
IN_SIXTEEN_BITS = Figure("In 16 bits, of the devices' computing", SHARE, lambda f: sixteen_bit_share(f.steps))


def mixed_precision(facts: Facts) -> Found | None:
    """Matrix products run in 32 bits, where 16 would do."""
    share = WIDE_OF_KERNELS.of(facts)
    saves = share * facts.compute_share * SIXTEEN_BIT_GAIN
    if not (share >= WIDE_SHARE and saves >= WORTH_IT):
        return None
    text = (
        f"Matrix products and convolutions run in 32 bits for {WIDE_TIME.text(facts)} {facts.each}, judged by their "
        f"kernels' names and instructions; {ON_CORES.text(facts)} of the kernel time is on tensor cores. "
    )
    text += (
        "Compute in `jnp.bfloat16`: cast parameters and inputs for the step and keep the master copy in 32 bits; or "
        "relax `jax.config.update('jax_default_matmul_precision', 'tensorfloat32')`."
        if facts.is_jax
        else "Set `tf.keras.mixed_precision.set_global_policy('mixed_float16')` before the model is built (a custom "
        "loop scales its loss with `LossScaleOptimizer`), keep the last layer in `float32`, and make numbers of "
        "filters and units multiples of 8, so that tensor cores fit."
    )
    title = f"{WIDE_OF_KERNELS.text(facts)} of the kernel time is 32-bit matrix products"
    figures: tuple[Figure, ...] = (WIDE_OF_KERNELS, WIDE_TIME, ON_CORES)
    if not math.isnan(IN_SIXTEEN_BITS.of(facts)):
        figures = (*figures, IN_SIXTEEN_BITS)
    return Found(title, text, figures, MIXED_PRECISION_GUIDE, saves)


LAYOUT_OF_KERNELS = Figure(
    "Layout changes, of the kernel time", SHARE, lambda f: share_of(_sum(f, layout_kernels(f)), f.kernel_us)
)
LAYOUT_TIME = Figure("Layout changes", "µs", lambda f: f.per_recorded_step(_sum(f, layout_kernels(f))), summed=True)
LAYOUT_KERNELS = Figure(
    "Kernels that change the layout",
    "",
    lambda f: f.per_recorded_step(_sum(f, layout_kernels(f), "occurrences")),
    summed=True,
)


def layout(facts: Facts) -> Found | None:
    """Tensors are transposed around convolutions, and no XLA program is known to do it (`layout_changes`)."""
    if layout_changes(facts) is not None:
        return None
    saves = LAYOUT_OF_KERNELS.of(facts) * facts.compute_share
    is_convolution = _matching(facts.kernels, _CONVOLUTION, "op_name") | _matching(facts.kernels, _CONVOLUTION)
    if not (saves >= WORTH_IT and is_convolution.any()):
        return None
    text = (
        f"Kernels that only transpose tensors or rearrange them for a convolution take {LAYOUT_TIME.text(facts)} "
        f"{facts.each}, in {LAYOUT_KERNELS.text(facts)} launches. "
    )
    text += (
        "Keep the channels last from input to output: `dimension_numbers=('NHWC', 'HWIO', 'NHWC')` of "
        "`jax.lax.conv_general_dilated` (Flax: its default), `NDHWC` in three dimensions, parameters too."
        if facts.is_jax
        else "Keep the channels last from input to output, which tensor cores want: `data_format='channels_last'` in "
        "every layer, no `tf.transpose` between them. Where it is so already, 16 bits (`mixed_float16`) or "
        "`tf.function(jit_compile=True)` let the library choose kernels that need no transposing."
    )
    title = f"Layout changes take {LAYOUT_OF_KERNELS.text(facts)} of the kernel time"
    return Found(title, text, (LAYOUT_OF_KERNELS, LAYOUT_TIME, LAYOUT_KERNELS), GPU_GUIDE, saves)


RULES = (mixed_precision, layout)
