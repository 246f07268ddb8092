"""The lines of the program that became slower or faster."""

from __future__ import annotations

import pytest

from tests.profiles import compared_runs
from tests.views.flat import flat
from tfcompare.charts.pair import pairs_of
from tfcompare.views.blocks import Facts, Links
from tfcompare.views.source_lines import changes


def test_the_lines_of_the_model_come_first_and_open_to_their_instructions() -> None:
    (facts,) = changes(pairs_of(compared_runs("jax_filters_128_32", "jax_filters_16_8"))[0])
    assert isinstance(facts, Facts) and facts.opens is not None and facts.opens.details is not None
    assert facts.header[0] == "Largest changes by source line, self time per step"
    assert [row[0] for row in facts.rows][:2] == ["record.py:51", "record.py:52"]
    assert [one.id for one in facts.findings][:1] == ["source:record.py:51"]
    assert facts.findings[0].candidate < 0.1 * facts.findings[0].baseline
    details = facts.opens.details(facts.findings[0].id)
    assert details is not None and details.title == "record.py:51"
    instructions, link = flat(details.blocks)
    assert isinstance(instructions, Facts) and isinstance(link, Links)
    assert "conv_general_dilated" in instructions.rows[0][4]
    assert facts.opens.details("source:other.py:1") is None


@pytest.mark.parametrize("names", [("filters_512_128", "filters_16_8"), ("jax_filters_16_8", "jax_filters_16_8")])
def test_without_lines_or_changes_there_is_nothing(names: tuple[str, str]) -> None:
    assert not list(changes(pairs_of(compared_runs(*names))[0]))
