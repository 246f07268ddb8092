"""What every view shows of a run alone, and of a capture beside itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.profiles import loaded_run
from tests.views.flat import listed, of_kind, only_pair, pair_of, titles, words
from tfcompare import compare
from tfcompare.views.blocks import Cards, Judgements, Live, Table, Verdict
from tfcompare.views.registry import view

TF_GPU = "gpu_filters_512_128"
OF_ONE_SIDE = ("_candidate", "_delta", "_ratio", "verdict", "status", "match")


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("op_stats", "filters_512_128"),
        ("kernel_stats", TF_GPU),
        ("memory", "filters_16_8"),
        ("input_pipeline", "filters_16_8"),
        ("tf_data", "filters_16_8"),
        ("xla", "jax_filters_16_8"),
        ("hosts", "workers_slow_input"),
    ],
)
def test_a_run_alone_has_one_side_and_no_changes(name: str, run: str) -> None:
    blocks = listed(view(name), pair_of(run))
    for table in of_kind(blocks, Table):
        assert not [one.name for one in table.columns_of(table.every or table.names) if one.name.endswith(OF_ONE_SIDE)]
    assert not any(figure.has_baseline for cards in of_kind(blocks, Cards) for figure in cards.figures)
    assert not of_kind(blocks, Judgements)
    assert "manual_pairs" not in [one.name for one in of_kind(blocks, Live)]
    assert not any("change" in title.lower() or "baseline" in title for title in titles(blocks))


@pytest.mark.parametrize(
    ("name", "run", "headline", "nothing"),
    [
        ("overview", "filters_16_8", "byte for byte", "No op changed its self time."),
        ("op_stats", "filters_16_8", "no op differs", "None of these rows changed its self time."),
        ("kernel_stats", TF_GPU, "no kernel differs", "None of these rows changed its kernel time."),
        ("memory", "filters_16_8", "are the same capture", "Both runs have the same allocations at their peaks."),
        ("input_pipeline", "filters_16_8", "are the same capture", "None of these ops changed its self time."),
        ("tf_data", "filters_16_8", "A and B are the same capture", ""),
        ("xla", "jax_filters_16_8", "no program differs", ""),
    ],
)
def test_a_capture_beside_itself_is_the_same(name: str, run: str, headline: str, nothing: str) -> None:
    first = loaded_run(run)
    blocks = listed(view(name), only_pair(compare(first, replace(first, id="copy", name="copy"))))
    verdicts = [" ".join([one.headline, *one.basis]) for one in of_kind(blocks, Verdict)]
    assert headline in " ".join([*verdicts, *words(blocks, "headline"), *words(blocks)])
    assert not nothing or nothing in words(blocks)
    for figure in [figure for cards in of_kind(blocks, Cards) for figure in cards.figures if figure.has_baseline]:
        assert figure.baseline == figure.candidate
    assert not of_kind(blocks, Judgements)
    for rows in [table.rows for table in of_kind(blocks, Table) if "verdict" in table.rows]:
        assert set(rows["verdict"]) <= {"same"}
