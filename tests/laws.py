"""How long a law is looked for exceptions to, and which of its cases every change is tried on.

`LAW_FACTOR=20 make test` looks 20 times as long, each time elsewhere. Without it, a law is tried on the same examples
each time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings


def law(examples: int) -> settings:
    """Hypothesis' settings for a test that tries so many examples, times `LAW_FACTOR`."""
    return settings(deadline=None, max_examples=examples * int(os.environ.get("LAW_FACTOR", "1")))


def mostly_thorough(cases: Iterable[Any], *everyday: Any) -> list[Any]:
    """The cases of a test, of which `make test` tries those in `everyday`, and `make test-all` all."""
    return [case if case in everyday else pytest.param(case, marks=pytest.mark.thorough) for case in cases]
