"""Rules for the model itself: dominant convolutions, and biases that a batch normalization cancels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tfcompare.schema import DEVICE, HOST
from tfcompare.units import share_of
from tfcompare.views.advice.facts import longest as longest_of
from tfcompare.views.advice.kernel_rules import layout_kernels
from tfcompare.views.advice.model import GPU_GUIDE, SHARE, WORTH_IT, Figure, Found, code

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.views.advice.facts import Facts

CONVOLUTION_SHARE = 0.5
"""Of the op time: from here on nothing else can matter as much as the convolutions."""
BIAS_SHARE = 0.01
"""Of the op time: a bias is cheap, and so is leaving it out."""

_CONVOLUTION = re.compile(r".*Conv[23]D(?:Backprop.*|Transpose)?(?:V2)?|DepthwiseConv2dNative.*|conv_general_dilated")
_BATCH_NORM = re.compile(r"(?i)(batch_?norm(?:alization)?|bn)(?=_|\d|$)")
_LINEAR = re.compile(r"(?i)(?:separable_|depthwise_)?conv(?:olution)?(?:[123]d)?(?:_?transpose)?|dense|linear")


def _side(facts: Facts) -> str:
    return DEVICE if facts.has_device else HOST


def _convolutions(facts: Facts) -> pd.DataFrame:
    is_one = [_CONVOLUTION.fullmatch(kind) is not None for kind in facts.computing_ops["op_type"].tolist()]
    return facts.computing_ops[np.array(is_one, np.bool_)]


def _convolving_us(facts: Facts) -> float:
    """The time of convolutions, less that of kernels that only bring their tensors into another layout."""
    rows, moving = _convolutions(facts), layout_kernels(facts)
    return _us(rows) - float(moving.loc[moving["op_name"].isin(rows["op_name"]), "total_duration_us"].sum())


def _us(ops: pd.DataFrame) -> float:
    return float(ops["self_time_us"].sum())


CONVOLUTION_OF_OPS = Figure(
    "Convolutions, of the op time", SHARE, lambda f: share_of(_convolving_us(f), _us(f.computing_ops))
)
CONVOLUTION_TIME = Figure("Convolutions", "µs", lambda f: f.per_step(_convolving_us(f)), summed=True)


def convolutions(facts: Facts) -> Found | None:
    """Convolutions take most of the time in ops."""
    share = CONVOLUTION_OF_OPS.of(facts)
    if not (share >= CONVOLUTION_SHARE and share * facts.op_share >= WORTH_IT):
        return None
    rows = _convolutions(facts)
    name = str(longest_of(rows)["op_name"])
    longest = Figure("Longest convolution", "µs", lambda f: _op_us(f, name), name, summed=True)
    text = (
        f"Convolutions and their gradients take {CONVOLUTION_TIME.text(facts)} {facts.each} of self time on the "
        f"{_side(facts).lower()}, without changes of layout; the longest is {code(name)} with {longest.text(facts)}. "
        "Their work grows with filters in times filters out: halving the filters of two neighbours leaves a quarter of "
        "it between them, and "
        "strides or smaller images save as much. The cost is capacity, so watch the validation loss; separable "
        "convolutions cost less of it. Fewer filters may also be too few to keep a GPU busy."
    )
    title = f"Convolutions take {CONVOLUTION_OF_OPS.text(facts)} of the op time"
    figures = (CONVOLUTION_OF_OPS, CONVOLUTION_TIME, longest)
    return Found(title, text, figures, GPU_GUIDE)  # the time is work: what is left of it, only another model tells


def _op_us(facts: Facts, name: str) -> float:
    rows = _convolutions(facts)
    return facts.per_step(float(rows.loc[rows["op_name"] == name, "self_time_us"].sum(min_count=1)))


def normalized_biases(ops: pd.DataFrame) -> list[str]:
    """Layers, by their scope, whose bias goes straight into a batch normalization, as far as names tell.

    That is: a layer with a `BiasAdd` and one with a fused batch normalization in the same scope, and named alike but
    for what they are: `conv2d_3` and `batch_normalization_3`, `block1_conv` and `block1_bn`.
    """
    forward = ops[~ops["op_name"].str.contains("gradient", regex=False)]
    normalized = {
        (scope, _BATCH_NORM.sub("·", layer))
        for scope, layer in _layers(forward[forward["op_type"].str.startswith("FusedBatchNorm")])
        if _BATCH_NORM.search(layer)
    }
    biased = _layers(forward[forward["op_type"] == "BiasAdd"])
    return sorted(
        f"{scope}/{layer}" if scope else layer
        for scope, layer in biased
        if _LINEAR.search(layer) and (scope, _LINEAR.sub("·", layer)) in normalized
    )


def _layers(ops: pd.DataFrame) -> set[tuple[str, str]]:
    """(scope, layer) of ops named `scope/layer/op`."""
    parts = [str(name).rpartition("/")[0].rpartition("/") for name in ops["op_name"]]
    return {(scope, layer) for scope, _, layer in parts if layer}


def _bias_ops(facts: Facts) -> pd.DataFrame:
    """The adding of such biases and its gradient."""
    ops = facts.computing_ops
    layers = tuple(f"{layer}/" for layer in normalized_biases(facts.ops))
    if not layers:
        return ops.iloc[:0]
    bias = ops[ops["op_type"].isin(["BiasAdd", "BiasAddGrad"])]
    forward = bias["op_name"].str.removeprefix("gradient_tape/").str.removeprefix("gradients/")
    return bias[forward.str.startswith(layers).astype(bool)]


BIASED_LAYERS = Figure("Layers with a bias that is normalized away", "", lambda f: float(len(normalized_biases(f.ops))))
BIAS_OF_OPS = Figure("Their biases, of the op time", SHARE, lambda f: share_of(_us(_bias_ops(f)), _us(f.computing_ops)))
BIAS_TIME = Figure("Their biases", "µs", lambda f: f.per_step(_us(_bias_ops(f))), summed=True)


def bias_before_batch_norm(facts: Facts) -> Found | None:
    """A bias right before a batch normalization, which subtracts the mean and the bias with it."""
    if facts.is_jax or not BIAS_OF_OPS.of(facts) >= BIAS_SHARE:
        return None
    first = normalized_biases(facts.ops)[0]
    text = (
        f"By their names, {BIASED_LAYERS.text(facts)} layers such as {code(first)} add a bias right before a batch "
        f"normalization, which subtracts it again with the mean: {BIAS_TIME.text(facts)} {facts.each} wasted. "
        "Give these layers `use_bias=False`; the result is the same."
    )
    title = f"Biases before batch normalization take {BIAS_OF_OPS.text(facts)} of the op time"
    saves = BIAS_OF_OPS.of(facts) * facts.op_share
    return Found(title, text, (BIAS_OF_OPS, BIAS_TIME, BIASED_LAYERS), GPU_GUIDE, saves)


RULES = (convolutions, bias_before_batch_norm)
