"""How long a law is looked for exceptions to: `LAW_FACTOR=20 make test` looks 20 times as long, each time elsewhere.

Without it, a law is tried on the same examples each time.
"""

from __future__ import annotations

import os

from hypothesis import settings


def law(examples: int) -> settings:
    """Hypothesis' settings for a test that tries so many examples, times `LAW_FACTOR`."""
    return settings(deadline=None, max_examples=examples * int(os.environ.get("LAW_FACTOR", "1")))
