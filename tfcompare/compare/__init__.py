"""Compares runs: matches their rows, computes diffs, reports how much was matched, and gives verdicts."""

import sys
from types import ModuleType

from tfcompare.compare.comparison import Comparison, compare

__all__ = ["Comparison", "compare"]


class _CallableModule(ModuleType):
    """Keeps `tfcompare.compare` callable although importing this package replaces the function of that name."""

    __call__ = staticmethod(compare)


sys.modules[__name__].__class__ = _CallableModule
