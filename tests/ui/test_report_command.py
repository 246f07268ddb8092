"""The command in a report makes the same report again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profiles import SAMPLE_RUNS, SAMPLES
from tfcompare import Comparison, compare, load
from tfcompare.ui.frame import header

GPU = SAMPLES / "transformer_gpu"


def test_it_has_the_choice_of_steps(tfcompare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = (SAMPLE_RUNS["filters_512_128"], SAMPLE_RUNS["filters_16_8"])
    runs = [load(path, steps="2:", stray="include") for path in paths]
    words = header.report_command(compare(*runs, per="run"))
    assert words[4:-2] == ["--per", "run", "--steps", "2:", "--stray", "include"]
    reported: list[Comparison] = []
    monkeypatch.setattr(
        "tfcompare.render.report.report", lambda comparison, *_, **__: reported.append(comparison) or "a report"
    )
    file = tmp_path / "report.html"
    status, _, errors = tfcompare(*words[1:-1], str(file))
    assert (status, file.read_text()) == (0, "a report"), errors
    (again,) = reported
    choices = [run.choice for run in (again.baseline, *again.candidates)]
    assert (again.per, choices) == ("run", [run.choice for run in runs])


def test_it_has_the_kind_of_steps() -> None:
    runs = [
        load(GPU / "h100_store_activations" / "h100_store_activations_run-1", step_kind="evaluate"),
        load(GPU / "h100_recompute_activations" / "h100_recompute_activations_run-1", step_kind="evaluate"),
    ]
    assert header.report_command(compare(*runs))[4:-2] == ["--step-kind", "evaluate"]


def test_a_redacted_report_has_no_path_in_its_command() -> None:
    run = load(SAMPLE_RUNS["filters_16_8"])
    for redact in (False, True):
        text = str(header._report(compare(run, run), "markdown", redact=redact))
        assert ("tfcompare report" in text, str(run.path) in text.replace("\\", "")) == (True, not redact)
