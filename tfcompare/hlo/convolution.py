"""Convolutions: their windows and dimensions, and how many products they add up."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from tfcompare.hlo.proto_fields import integer_fields, integers, messages, signed
from tfcompare.hlo.shapes import Array

WINDOW, DIMENSION_NUMBERS, BATCH_GROUPS = 15, 16, 58
"""The fields of an instruction that `products` is about."""
_DIMENSIONS = 1
_KERNEL_INPUT_FEATURE, _KERNEL_OUTPUT_FEATURE, _KERNEL_SPATIAL = 3, 4, 6
_INPUT_BATCH, _INPUT_FEATURE, _INPUT_SPATIAL = 7, 8, 11
_OUTPUT_BATCH, _OUTPUT_FEATURE, _OUTPUT_SPATIAL = 9, 10, 12
_LABELS = (
    ("b", _INPUT_BATCH, "f", _INPUT_FEATURE, _INPUT_SPATIAL),
    ("i", _KERNEL_INPUT_FEATURE, "o", _KERNEL_OUTPUT_FEATURE, _KERNEL_SPATIAL),
    ("b", _OUTPUT_BATCH, "f", _OUTPUT_FEATURE, _OUTPUT_SPATIAL),
)
"""Of image, kernel and result: the letter and field of both dimensions that are not spatial, and the field of those."""
_MOST_DIMENSIONS = 64
_LARGEST_WINDOW, _LARGEST = 1 << 16, 1 << 30


class WindowDimension(NamedTuple):
    """One dimension of a window; the padding may be negative."""

    size: int
    stride: int
    padding_low: int
    dilation: int
    base_dilation: int


class Convolution(NamedTuple):
    """How an instruction convolves: its window, its `ConvolutionDimensionNumbers`, and its groups of the batch."""

    window: tuple[WindowDimension, ...]
    dimensions: memoryview
    batch_groups: int

    @property
    def positions(self) -> int:
        """The positions along all sides of the window, which `products` goes through."""
        return sum(max(0, dimension.size) for dimension in self.window)


def window_of(window: memoryview | None) -> tuple[WindowDimension, ...]:
    """The dimensions of a `Window`, in order; none of one with more dimensions than arrays have."""
    if window is None:
        return ()
    found = []
    for message in islice(messages(window, _DIMENSIONS), _MOST_DIMENSIONS + 1):
        numbers = integer_fields(message)
        size, stride, low, _, dilation, base = (signed(numbers.get(number, 0)) for number in range(1, 7))
        found.append(WindowDimension(size, max(stride, 1), low, max(dilation, 1), max(base, 1)))
    return tuple(found) if len(found) <= _MOST_DIMENSIONS else ()


def dimension_labels(numbers: memoryview) -> str:
    """A `ConvolutionDimensionNumbers` in XLA's notation, such as `b01f_01io->b01f`: for each dimension of image, kernel
    and result whether it is the batch, a feature (`i` or `o` of the kernel), or which side of the window it is. Empty
    if they are no such dimensions."""
    one, labels = integer_fields(numbers), []
    for first, first_field, second, second_field, spatial_field in _LABELS:
        spatial = integers(numbers, spatial_field, _MOST_DIMENSIONS)
        letters = {one.get(first_field, 0): first, one.get(second_field, 0): second}
        letters |= {place: str(side) for side, place in enumerate(spatial)}
        if sorted(letters) != list(range(len(spatial) + 2)):
            return ""
        labels.append("".join(letters[place] for place in range(len(letters))))
    image, kernel, result = labels
    return f"{image}_{kernel}->{result}"


def products(convolution: Convolution, image: Array, kernel: Array, result: Array) -> int | None:
    """How many products a convolution adds up; None if its shapes and dimensions do not fit.

    For each pair of input and output features and each element of the batch, these are the pairs of an output position
    and a position of the window that meet an element of the image, rather than padding or a hole of a dilated image. A
    convolution's gradients add up as many, with the same roles of image, kernel and result.
    """
    window, numbers = convolution.window, convolution.dimensions
    if not window:
        return None
    one = integer_fields(numbers)
    image_spatial, result_spatial = (
        integers(numbers, field, _MOST_DIMENSIONS) for field in (_INPUT_SPATIAL, _OUTPUT_SPATIAL)
    )
    if not len(window) == len(image_spatial) == len(result_spatial):
        return None
    try:
        batch = image.dimensions[one.get(_INPUT_BATCH, 0)] // max(1, convolution.batch_groups)
        features_in = kernel.dimensions[one.get(_KERNEL_INPUT_FEATURE, 0)]
        features_out = kernel.dimensions[one.get(_KERNEL_OUTPUT_FEATURE, 0)]
        sizes, results = [image.dimensions[i] for i in image_spatial], [result.dimensions[i] for i in result_spatial]
    except IndexError:
        return None
    met = list(map(_positions, window, sizes, results))
    return None if None in met else batch * features_in * features_out * prod(count or 0 for count in met)


@lru_cache(maxsize=1024)
def _positions(window: WindowDimension, size: int, result: int) -> int | None:
    """The pairs of one of `result` output positions and a position of the window that meet one of `size` elements."""
    stride, dilation, base = window.stride, window.dilation, window.base_dilation
    if not 0 <= window.size <= _LARGEST_WINDOW or base > _LARGEST_WINDOW:
        return None
    if max(size, result, stride, dilation, abs(window.padding_low)) > _LARGEST:
        return None
    offset = np.arange(window.size, dtype=np.int64) * dilation - window.padding_low
    # Output position o meets the image at o * stride + offset, which must be a multiple of `base` from 0 to `last`.
    last = (size - 1) * base
    first_o = np.maximum(0, -(offset // stride))
    last_o = np.minimum(result - 1, (last - offset) // stride)
    # Such positions o are `period` apart, from one that the inverse of the stride gives; none unless `step` divides.
    step = gcd(stride, base)
    period = base // step
    place = -(offset // step) % period * pow(stride // step, -1, period) % period
    count = np.maximum(0, (last_o - place) // period - (first_o - 1 - place) // period)
    return int(count[offset % step == 0].sum())
