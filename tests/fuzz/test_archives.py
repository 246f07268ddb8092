"""A hundred and fifty hostile archives; `python -m tests.fuzz --of archives` makes as many as one likes."""

from __future__ import annotations

from tests.fuzz import archives


def test_archives_are_stored_or_refused_and_leave_nothing_else() -> None:
    outcomes = archives.run(3, range(150))
    assert [outcome for outcome in outcomes if not outcome.is_fine] == []
    assert {outcome.result for outcome in outcomes} >= {"stored", "refused"}


def test_the_same_number_makes_the_same_archive() -> None:
    numbers = range(40)
    assert [archives.made(5, n) for n in numbers] == [archives.made(5, n) for n in numbers]
