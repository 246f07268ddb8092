"""What charts of kernels show: their time and their launches."""

from __future__ import annotations

from tfcompare.charts.style import Quantity

KERNEL_TIME = Quantity("kernel time", "µs", "less time", "more time")
LAUNCHES = Quantity("kernel launches", "", "fewer launches", "more launches")
