"""Choices made by hand in an address and in a file: whatever the names hold, they come back as they were."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfcompare.compare.matching.manual import ManualChoice, effective
from tfcompare.compare.matching.manual_text import (
    ELSEWHERE,
    MOST_CHOICES,
    ChoicesOfPair,
    SessionChoices,
    fits_an_address,
    from_address,
    from_file,
    of_runs,
    to_address,
    to_file,
    with_choices,
)
from tfcompare.errors import TfcompareError

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PARTS = st.integers(1, 2)
CHOICES = PARTS.flatmap(
    lambda parts: st.builds(ManualChoice, st.booleans(), st.tuples(*[NAMES] * parts), st.tuples(*[NAMES] * parts))
)
SAID = st.lists(CHOICES, min_size=1, max_size=5).map(effective)
QUERY = (ManualChoice(True, ("q=b&c",), ("[\"é\",'/']",)), ManualChoice(False, ("op", "k<1>"), ("op", "k<2>")))


@given(NAMES, NAMES, SAID)
def test_an_address_gives_back_what_it_was_made_of(
    baseline: str, candidate: str, said: tuple[ManualChoice, ...]
) -> None:
    kept = (ChoicesOfPair(baseline, candidate, said),)
    assert not fits_an_address(kept) or from_address(to_address(kept)) == kept


@given(NAMES, NAMES, SAID)
def test_a_file_gives_back_what_it_was_made_of(baseline: str, candidate: str, said: tuple[ManualChoice, ...]) -> None:
    runs = ChoicesOfPair(baseline, candidate, said)
    assert from_file(to_file(runs), "pairs.json") == runs


def test_runs_in_each_others_place_have_the_mirrored_choices() -> None:
    kept = with_choices((), "before", "after", QUERY)
    assert of_runs(kept, "before", "after") == QUERY
    assert of_runs(kept, "after", "before") == tuple(choice.mirrored for choice in QUERY)
    assert of_runs(kept, "before", "other") == ()


def test_choices_belong_to_their_two_runs() -> None:
    kept = with_choices(with_choices((), "a", "b", QUERY), "a", "c", QUERY[:1])
    assert of_runs(kept, "a", "b") == QUERY and of_runs(kept, "a", "c") == QUERY[:1]
    assert with_choices(kept, "b", "a", ()) == (ChoicesOfPair("a", "c", QUERY[:1]),)


@pytest.mark.parametrize(("count", "length"), [(MOST_CHOICES + 1, 1), (3, 1500)])
def test_what_is_too_much_for_an_address_is_kept_elsewhere(count: int, length: int) -> None:
    kept: SessionChoices = (
        ChoicesOfPair("a", "b", tuple(ManualChoice(False, (f"{i}",), ("x" * length,)) for i in range(count))),
    )
    assert to_address(kept) == [ELSEWHERE]
    assert not fits_an_address(kept)
    assert from_address(to_address(kept)) is None


@pytest.mark.parametrize(
    "value",
    [
        *("", "nonsense", "[]", '["a"]', '["a","b","c"]', '["a","b",["=","x"]]', '["a","b",["=","x",1]]', "[" * 3000),
        *('["a","b",["=","x","\\ud800"]]', '["a","b",["?","x","y"]]', '["a","b",["=","x","y","z"]]', "9" * 5000),
    ],
)
def test_an_address_that_says_nothing_of_this_is_none(value: str) -> None:
    assert from_address([value]) is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "expected JSON"),
        ("[1]", '"format": "tfcompare pairs"'),
        ('{"format": "other", "baseline": "a", "candidate": "b", "choices": []}', '"format": "tfcompare pairs"'),
        (
            json.dumps(
                {"format": "tfcompare pairs", "baseline": "a", "candidate": "b", "choices": [{"choice": "pair"}]}
            ),
            "choice 1: expected",
        ),
        (
            json.dumps(
                {
                    "format": "tfcompare pairs",
                    "baseline": "a",
                    "candidate": "b",
                    "choices": [{"choice": "pair", "baseline_op": "x", "baseline_kernel": "k", "candidate_op": "y"}],
                }
            ),
            "choice 1: expected",
        ),
        ('{"format": "tfcompare pairs", "baseline": "a", "candidate": "\\ud800", "choices": []}', "expected JSON"),
    ],
)
def test_a_file_that_is_none_says_what_was_expected(text: str, complaint: str) -> None:
    with pytest.raises(TfcompareError, match=complaint) as error:
        from_file(text, "pairs.json")
    assert str(error.value).startswith("pairs.json: ")
