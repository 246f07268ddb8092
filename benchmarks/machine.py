"""The machine that a measurement was made on, in words that name neither it nor its owner."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

_PACKAGES = ("xprof", "numba", "numpy", "pandas", "pyarrow")


def description() -> list[str]:
    """One line each: processor, memory, system, versions."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    versions = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return [
        f"Processor: {_processor()}, {os.cpu_count()} cores; {memory_gb:.0f} GB of memory",
        f"System: {platform.system()} {platform.release()}, {platform.machine()}",
        f"Python {platform.python_version()}, {versions}",
        f"Load average before: {os.getloadavg()[0]:.1f} (what else the machine had to do)",
    ]


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"
