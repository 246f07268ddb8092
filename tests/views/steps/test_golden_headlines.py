"""What the Overview says first of captures of one program, and of true changes, as text to be read.

`python -m tests.views.headlines` writes it anew.
"""

from __future__ import annotations

import pytest

from benchmarks.page import section
from tests.views import headlines


@pytest.mark.parametrize("name", headlines.PAIRS)
def test_first_sentences_on_a_pair_of_known_truth(name: str) -> None:
    assert headlines.said(name) == section(headlines.FILE, name)


def test_no_step_time_is_claimed_to_differ_between_captures_of_one_program() -> None:
    claimed = [name for name in headlines.SAME_PROGRAM if headlines.pair_of(name).headline_verdict.is_claim]
    assert claimed == []


def test_ops_are_claimed_to_differ_in_one_pair_of_captures_of_one_program_in_twenty_at_most() -> None:
    claimed = [name for name in headlines.SAME_PROGRAM if headlines.claimed_ops(headlines.pair_of(name))]
    assert len(claimed) <= 0.05 * len(headlines.SAME_PROGRAM), claimed
