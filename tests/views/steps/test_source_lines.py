"""The lines of the program that became slower or faster."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.profiles import compared_runs, loaded_run
from tests.views.flat import flat
from tfcompare.compare.groups.aggregate import largest_changes
from tfcompare.compare.pairs import pairs_of
from tfcompare.comparison import compare
from tfcompare.views.blocks import Facts, Links
from tfcompare.views.steps.source_lines import changes


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


def test_an_arrow_leads_to_the_line_in_the_candidate_and_to_its_file_if_that_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (pair,) = pairs_of(compare(loaded_run("jax_filters_128_32"), loaded_run("jax_filters_16_8")))
    columns = ["line", "line_candidate", "self_time_us_baseline", "self_time_us_candidate", "instructions"]
    cells = [
        ("a.py:4", "a.py:5", 5.0, 9.0, [0, 1]),
        ("/src/a.py:77", "/src/new/b.py:23", 1.0, 3.0, [2]),
        ("a.py:4", "a.py:4", 0.0, 1.0, [3]),
    ]
    monkeypatch.setattr("tfcompare.views.steps.source_lines.by_line", lambda _: pd.DataFrame(cells, columns=columns))
    (facts,) = changes(pair)
    assert isinstance(facts, Facts) and facts.opens is not None and facts.opens.details is not None
    assert [row[0] for row in facts.rows] == ["a.py:4 → 5", "/src/a.py:77 → new/b.py:23", "a.py:4"]
    for finding, (*_, index) in zip(facts.findings, cells, strict=True):
        details = facts.opens.details(finding.id)
        assert details is not None
        instructions, *_ = flat(details.blocks)
        assert isinstance(instructions, Facts)
        changed = largest_changes(pair.instructions().loc[index])["hlo_op"]
        assert [row[0] for row in instructions.rows] == changed.tolist()


@pytest.mark.parametrize("names", [("filters_512_128", "filters_16_8"), ("jax_filters_16_8", "jax_filters_16_8")])
def test_without_lines_or_changes_there_is_nothing(names: tuple[str, str]) -> None:
    assert not list(changes(pairs_of(compared_runs(*names))[0]))
