"""Compare runs: pair their rows, lay them side by side, say how much was paired, and what to make of it."""

import sys
from types import ModuleType

from tfcompare.compare.comparison import Comparison, compare

__all__ = ["Comparison", "compare"]


class _CallableModule(ModuleType):
    """Importing this package puts it in the place of the function `tfcompare.compare`, which must still be callable."""

    __call__ = staticmethod(compare)


sys.modules[__name__].__class__ = _CallableModule
