"""The section on instructions that the compiler grouped in another way."""

from __future__ import annotations

import pandas as pd
import pytest

import tfcompare as tfc
from tests.profiles import compared_runs
from tests.test_known_truth import FOLDER
from tests.views.flat import flat
from tests.views.xla.test_groups import computing, rows
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pairs_of
from tfcompare.views.blocks import Block, Facts, Section, Text
from tfcompare.views.xla.regrouped import MOST_MEMBERS, SourceOps, regrouped, section
from tfcompare.views.xla.view import VIEW

TITLE = "Regrouped instructions"


def sections(pair: Pair) -> list[Section]:
    outer = [one for one in VIEW.blocks(pair) if isinstance(one, Section) and not one.title]
    return [one for section in outer for one in section.blocks if isinstance(one, Section) and one.title == TITLE]


def blocks(pair: Pair) -> list[Block]:
    return list(flat(sections(pair)))


def test_a_group_is_a_row_with_its_sums_and_opens_to_its_members() -> None:
    (pair,) = pairs_of(tfc.compare(tfc.load(FOLDER / "jax_unfused"), tfc.load(FOLDER / "jax_fused")))
    (facts,) = blocks(pair)
    assert isinstance(facts, Facts) and facts.opens is not None and facts.opens.details is not None
    ((label, *_),) = facts.rows
    assert label.startswith("13 → 1: layer/activation/")
    assert facts.note.endswith("with these groups 100 %.")
    (finding,) = facts.findings
    assert finding.baseline > 5 * finding.candidate > 0
    details = facts.opens.details(finding.id)
    assert details is not None and details.title == label
    members, common = details.blocks
    assert isinstance(members, Facts) and len(members.rows) == 14 and isinstance(common, Text)
    assert {row[3] for row in members.rows} == {"added", "removed"}
    assert facts.opens.details("group:other") is None


def test_without_instructions_that_lack_a_counterpart_there_is_no_section() -> None:
    assert not sections(pairs_of(compared_runs("tensorflow_filters_128_32", "tensorflow_filters_16_8"))[0])
    assert not sections(pairs_of(compared_runs("jax_filters_16_8", "jax_filters_16_8"))[0])
    assert not sections(pairs_of(compared_runs("h100_16_8", "h100_16_8_command_buffers"))[0])


def test_where_no_op_is_in_common_it_says_how_much_time_has_a_counterpart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfcompare.views.xla.regrouped.groups", lambda *_: [])
    (pair,) = pairs_of(tfc.compare(tfc.load(FOLDER / "jax_unfused"), tfc.load(FOLDER / "jax_fused")))
    (text,) = blocks(pair)
    assert isinstance(text, Text) and text.text.startswith("74.7 % of the time is in instructions with a counterpart")


def shown(monkeypatch: pytest.MonkeyPatch, frame: pd.DataFrame, ours: SourceOps, theirs: SourceOps) -> Block:
    """The block of the section on handmade instructions."""
    monkeypatch.setattr("tfcompare.views.xla.regrouped.groups", lambda *_: regrouped(frame, ours, theirs))
    (outer,) = section(pairs_of(compared_runs("jax_filters_128_32", "jax_filters_16_8"))[0], "", frame)
    (block,) = outer.blocks
    return block


def test_groups_too_large_to_show_are_said_to_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"mul.{number}" for number in range(MOST_MEMBERS + 1)]
    frame = rows(*((name, None) for name in names), (None, "fusion"))
    text = shown(monkeypatch, frame, computing(**dict.fromkeys(names, "a/mul")), computing(fusion="a/mul"))
    assert isinstance(text, Text) and text.text == (
        "0 % of the time is in instructions with a counterpart; too many of the others compute ops in common to be "
        "shown as one group (33 → 1), so only the sums by category compare them."
    )


def test_groups_that_begin_with_instructions_of_one_name_open_each_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = rows(("fusion", None), (None, "fusion"), (None, "mul"), ("add", None))
    frame["execution_time_us_baseline"] *= [3, 1, 1, 1]
    facts = shown(monkeypatch, frame, computing(fusion="a/mul", add="a/add"), computing(mul="a/mul", fusion="a/add"))
    assert isinstance(facts, Facts) and facts.opens is not None and facts.opens.details is not None
    opened = [facts.opens.details(finding.id) for finding in facts.findings]
    assert [one and one.title for one in opened] == ["1 → 1: a/mul", "1 → 1: a/add"]
