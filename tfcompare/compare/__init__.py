"""Compares runs: matches their rows, computes diffs, reports how much was matched, and gives verdicts."""

import sys
from types import ModuleType
from typing import Any


class _CallableModule(ModuleType):
    """Keeps `tfcompare.compare` callable although importing this package replaces the function of that name."""

    def __call__(self, *runs: Any, **options: Any) -> Any:
        from tfcompare.comparison import compare

        return compare(*runs, **options)


sys.modules[__name__].__class__ = _CallableModule
