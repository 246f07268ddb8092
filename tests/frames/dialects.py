"""Which recorded runs are held against other readers: one of each dialect in every test run, all in a thorough one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

DIALECTS = ("filters_16_8", "h100_16_8", "jax_conv_legacy", "jax_tpu", "tensorflow_filters_16_8")
"""A CPU, GPUs of two vendors, TPU cores, and a CPU that runs compiled programs."""


def thorough_but(names: Iterable[str], *always: str) -> list[Any]:
    """These names as parameters: all but `always` and the dialects are marked `thorough`."""
    every = {*DIALECTS, *always}
    return [name if name in every else pytest.param(name, marks=pytest.mark.thorough) for name in names]
