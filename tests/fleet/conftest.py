"""What tests of ingesting share with those of stores."""

from __future__ import annotations

import pytest

from tests.store.conftest import cache_folder, memory, own, read_anew, s3, s3_for_all, settled
from tfcompare.fleet.pools import Here

__all__ = ["cache_folder", "memory", "own", "read_anew", "s3", "s3_for_all", "settled"]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command works in this process, which takes no time to start."""
    monkeypatch.setattr("tfcompare.fleet.pools.Processes", lambda *_: Here())
