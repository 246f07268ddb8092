"""Compare runs: pair their rows, lay them side by side, say how much was paired, and what to make of it."""

from tfcompare.compare.comparison import Comparison, compare

__all__ = ["Comparison", "compare"]
