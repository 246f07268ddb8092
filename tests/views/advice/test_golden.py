"""The advice on the sample pairs, as text to be read; what a bottleneck of tf.data calls for is tested elsewhere.

To write the texts anew: `TFCOMPARE_WRITE_GOLDEN=1 pytest tests/views/advice/test_golden.py`, then read the
difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.profiles import loaded_run
from tfcompare.views.advice import Findings, advise_on, facts_of, input_rules

GOLDEN = Path(__file__).parent / "golden"
PAIRS = {
    "fewer_filters": ("filters_512_128", "filters_16_8"),
    "fewer_filters_on_gpu": ("gpu_filters_512_128", "gpu_filters_16_8"),
}


def as_text(found: Findings) -> str:
    lines = []
    for advice in found.advice:
        lines += [f"{advice.rule} (saves at most {advice.saves:.1%})", advice.title, advice.text]
        lines += [f"  {e.label}: {e.candidate_text}, baseline {e.baseline_text}" for e in advice.evidence]
        lines += [f"  {advice.link}", ""]
    return "\n".join(lines).rstrip() + "\n"


@pytest.mark.parametrize("pair", PAIRS)
def test_advice_on_samples(pair: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_rules, "bottleneck_advice", lambda row: f"(advice on {row['iterator']})")
    text = as_text(advise_on(*(facts_of(loaded_run(name)) for name in PAIRS[pair])))
    file = GOLDEN / f"{pair}.txt"
    if os.environ.get("TFCOMPARE_WRITE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_a_run_whose_input_was_improved_gets_no_advice() -> None:
    better = facts_of(loaded_run("filters_16_8_better_input"))
    assert advise_on(better, better).advice == ()
