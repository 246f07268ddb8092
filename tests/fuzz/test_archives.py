"""A hundred and fifty hostile archives; `python -m tests.fuzz --of archives` makes as many as one likes."""

from __future__ import annotations

import time

import pytest

from tests.fuzz import archives


def test_archives_are_stored_or_refused_and_leave_nothing_else() -> None:
    outcomes = archives.run(3, range(150))
    assert [outcome for outcome in outcomes if not outcome.is_fine] == []
    assert {outcome.result for outcome in outcomes} >= {"stored", "refused"}


def test_the_same_number_makes_the_same_archive_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = range(40)
    first = [archives.made(5, n) for n in numbers]
    monkeypatch.setattr(time, "time", lambda: 1e9)
    assert [n for n in numbers if archives.made(5, n) != first[n]] == []
