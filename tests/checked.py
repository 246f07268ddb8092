"""Conditions on two runs in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfcompare.compare.check.conditions import Condition, Findings, check
from tfcompare.comparison import compare


def checked(baseline: Any, candidate: Any, conditions: Sequence[Condition], **how: Any) -> Findings:
    """What `check` finds; `how` they are compared."""
    return check(compare(baseline, candidate, **how), conditions)
