"""Commands share the runs that they read and the comparisons that they make of samples, which no test changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import Any

import pytest

from tests.profiles import CORPUS, SAMPLES
from tfcompare import comparison, loading, run
from tfcompare.comparison import Comparison
from tfcompare.run import Run
from tfcompare.sources.logdir import FoundRun

STEP_OPTIONS = ("step_marker", "steps", "stray", "step_kind")
DEFAULTS: dict[str, Any] = {"per": "step", "host": None, "spread": None, "is_series": False, "captures": ()}
Captures = tuple[tuple[str, tuple[Run, ...]], ...]

_load, _runs = run.load, dict[tuple[PurePath | str | None, ...], Run]()


def load(found: FoundRun, **options: Any) -> Run:
    """The run; a sample is read once for each choice of its steps."""
    if not any(found.path.is_relative_to(folder) for folder in (SAMPLES, CORPUS)):
        return _load(found, **options)
    key = (found.path, found.id, found.name, *map(options.get, STEP_OPTIONS))
    if key not in _runs:
        _runs[key] = _load(found, **options)
    return _runs[key]


_really_compare = comparison.compare


@lru_cache(maxsize=24)
def _compared(*runs: Run, repeated: Captures, **options: Any) -> Comparison:
    return _really_compare(*runs, repeats=dict(repeated), **options)


def compare(*runs: Run, repeats: Mapping[str, Sequence[Run]] = {}, manual_pairs: Any = None, **options: Any):
    """The comparison; the same one if the same runs are compared in the same way."""
    if manual_pairs:
        return _really_compare(*runs, repeats=repeats, manual_pairs=manual_pairs, **options)
    repeated = tuple((run_id, tuple(more)) for run_id, more in repeats.items())
    return _compared(*runs, repeated=repeated, **DEFAULTS | options)


@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands read and compare through the two functions above."""
    for module in (run, loading):
        monkeypatch.setattr(module, "load", load)
    monkeypatch.setattr(comparison, "compare", compare)
