"""Compare TensorFlow and XLA profile runs: what changed, by how much, and where.

import tfcompare as tfc

tfc.find_runs("logs/")                    # the runs found below a file, run folder, logdir or parent
run = tfc.load("logs/before")             # run.table("op_stats") -> DataFrame, run.info
cmp = tfc.compare(run, tfc.load("logs/after"))
cmp.table("op_stats")                     # the diff, one row an op
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfcompare.errors import TfcompareError

if TYPE_CHECKING:
    from tfcompare.comparison import Comparison, compare
    from tfcompare.run import Run, load
    from tfcompare.sources.logdir import FoundRun, find_runs
    from tfcompare.sources.record_environment import record_environment

__version__ = "0.2.0"
__all__ = ["Comparison", "FoundRun", "Run", "TfcompareError", "compare", "find_runs", "load", "record_environment"]

_HOME = {
    "Comparison": "tfcompare.comparison",
    "compare": "tfcompare.comparison",
    "FoundRun": "tfcompare.sources.logdir",
    "find_runs": "tfcompare.sources.logdir",
    "Run": "tfcompare.run",
    "load": "tfcompare.run",
    "record_environment": "tfcompare.sources.record_environment",
}


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used, so that `--help` needs neither pandas nor numba."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """The public names, for completion, without importing them."""
    return __all__
