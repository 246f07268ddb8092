"""Convolutions: their windows and dimensions, and how many products they add up."""

from __future__ import annotations

from functools import lru_cache
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from tfcompare.hlo.program import Instruction
from tfcompare.hlo.shapes import Array
from tfcompare.hlo.wire import fields, integers, messages, signed

_WINDOW, _DIMENSIONS = 15, 1
_DIMENSION_NUMBERS, _BATCH_GROUPS = 16, 58
_KERNEL_INPUT_FEATURE, _KERNEL_OUTPUT_FEATURE = 3, 4
_INPUT_BATCH, _INPUT_SPATIAL, _OUTPUT_SPATIAL = 7, 11, 12
_LARGEST_WINDOW, _LARGEST = 1 << 16, 1 << 30
_MOST_POSITIONS = 1 << 22  # to look at, so that a damaged file cannot make this take long


class WindowDimension(NamedTuple):
    """One dimension of a window; paddings may be negative."""

    size: int
    stride: int
    padding_low: int
    padding_high: int
    dilation: int
    base_dilation: int


def window_of(instruction: Instruction) -> tuple[WindowDimension, ...]:
    """The dimensions of an instruction's window, in order."""
    window = instruction.part(_WINDOW)
    return tuple(map(_dimension, messages(window, _DIMENSIONS))) if window is not None else ()


def _dimension(message: memoryview) -> WindowDimension:
    found = {number: signed(content) for number, content in fields(message) if isinstance(content, int)}
    size, stride, low, high, dilation, base = (found.get(number, 0) for number in range(1, 7))
    return WindowDimension(size, max(stride, 1), low, high, max(dilation, 1), max(base, 1))


def products(instruction: Instruction, image: Array, kernel: Array, result: Array) -> int | None:
    """How many products a convolution adds up; None if its shapes and dimensions do not fit.

    For each pair of input and output features and each element of the batch, these are the pairs of an output position
    and a position of the window that meet an element of the image, rather than padding or a hole of a dilated image. A
    convolution's gradients add up as many, with the same roles of image, kernel and result.
    """
    numbers, window = instruction.part(_DIMENSION_NUMBERS), window_of(instruction)
    if numbers is None or not window:
        return None
    one = {number: content for number, content in fields(numbers) if isinstance(content, int)}
    image_spatial, result_spatial = integers(numbers, _INPUT_SPATIAL, 64), integers(numbers, _OUTPUT_SPATIAL, 64)
    if not len(window) == len(image_spatial) == len(result_spatial):
        return None
    try:
        batch = image.dimensions[one.get(_INPUT_BATCH, 0)] // max(1, instruction.number_in(_BATCH_GROUPS, 1))
        features_in = kernel.dimensions[one.get(_KERNEL_INPUT_FEATURE, 0)]
        features_out = kernel.dimensions[one.get(_KERNEL_OUTPUT_FEATURE, 0)]
        sides = [
            (image.dimensions[i], result.dimensions[o]) for i, o in zip(image_spatial, result_spatial, strict=True)
        ]
    except IndexError:
        return None
    met = [_positions(dimension, *side) for dimension, side in zip(window, sides, strict=True)]
    return None if None in met else batch * features_in * features_out * prod(count or 0 for count in met)


@lru_cache(maxsize=1024)
def _positions(window: WindowDimension, size: int, result: int) -> int | None:
    """The pairs of one of `result` output positions and a position of the window that meet one of `size` elements."""
    stride, dilation, base = window.stride, window.dilation, window.base_dilation
    period = base // gcd(stride, base)
    if not 0 <= window.size <= _LARGEST_WINDOW or base > _LARGEST_WINDOW or window.size * period > _MOST_POSITIONS:
        return None
    if max(size, result, stride, dilation, abs(window.padding_low)) > _LARGEST:
        return None
    offset = np.arange(window.size, dtype=np.int64) * dilation - window.padding_low
    # Output position o meets the image at o * stride + offset, which must be a multiple of `base` from 0 to `last`.
    last = (size - 1) * base
    first_o = np.maximum(0, -(offset // stride))
    last_o = np.minimum(result - 1, (last - offset) // stride)
    total = 0
    for shift in range(period):
        position = first_o + shift
        count = np.maximum(0, (last_o - position) // period + 1)
        total += int(count[(position * stride + offset) % base == 0].sum())
    return total
