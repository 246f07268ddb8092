"""The summaries of `diff` and `show`: verdict, breakdown of the step, advice, largest changes, tables."""

from __future__ import annotations

import re

import pytest

from tests.profiles import SAMPLE_RUNS, SIMULATED_RUNS, run_path
from tfcompare import load, schema

BASELINE, CANDIDATE = (str(SAMPLE_RUNS[f"filters_{name}"]) for name in ("512_128", "16_8"))


def sections(out: str) -> list[list[str]]:
    return [section.splitlines() for section in out.rstrip("\n").split("\n\n")]


def test_diff_is_verdict_then_why_then_advice_then_changes(tfcompare) -> None:
    """Their sentences and figures are in the golden of the Overview."""
    status, out, _ = tfcompare("diff", BASELINE, CANDIDATE)
    assert status == 0
    verdict, budget, figures, why, advice, changes, memory, *more = [
        section[0].partition("  ")[0] for section in sections(out)
    ]
    assert verdict.startswith("filters_16_8 is 20× faster than filters_512_128 ")
    assert budget.startswith("−202 ms per step = −201 ms host compute (above all ")
    assert out.splitlines().index(budget) < 10, "the cause is in the first ten lines"
    assert [figures, why, advice] == ["Key figures", "Why", "What to try next"]
    assert changes == "Largest changes, self time per step"
    assert memory.startswith("Peak memory −99.8 MB: ")
    assert more[:2] == ["Steps", "Largest idle gap"]
    lines = sections(out)
    assert (len(lines[5]), lines[5][-1]) == (1 + 5 + 1, "340 more ops changed.")
    assert [line.partition(". ")[0] for line in lines[4][1:]] == ["1", "2", "3"]


def test_the_summary_shows_as_many_changes_as_asked_and_says_how_many_more(tfcompare) -> None:
    changes = sections(tfcompare("diff", BASELINE, CANDIDATE, "--limit", "3")[1])[5]
    assert len(changes) == 1 + 3 + 1
    assert changes[-1] == "342 more ops changed."
    every = sections(tfcompare("diff", BASELINE, CANDIDATE, "--limit", "0")[1])[5]
    assert len(every) == 1 + 345


def test_a_run_and_itself_are_the_same_and_shown_once(tfcompare) -> None:
    _, out, _ = tfcompare("diff", BASELINE, BASELINE)
    first, answer, *_ = sections(out)
    assert "byte for byte" in " ".join(first)
    assert answer[0] == "filters_512_128: 213 ms per step"
    assert "Candidate" not in out


def test_runs_without_steps_have_no_breakdown(tfcompare) -> None:
    _, out, _ = tfcompare("diff", *(str(run_path(name)) for name in ("jax_conv_legacy", "jax_conv_08")))
    assert "per execution" in sections(out)[0][0]
    assert "No verdict, since there are no step markers in jax_conv_minimal_legacy and jax_conv_minimal_08" in out
    assert "Average step" not in out and "`" not in out


def test_show_without_a_table_is_a_summary(tfcompare) -> None:
    status, out, err = tfcompare("show", CANDIDATE)
    answer, figures, step, advice, ops, _steps, _gap, about, tables = sections(out)
    assert (status, err) == (0, "")
    assert answer == ["filters_16_8: 10.9 ms per step", "20 of 22 steps are included."]
    assert [re.split("  +", line) for line in (figures[1], figures[-1])] == [
        ["Step time", "10.9 ms"],
        ["Peak memory", "69.0 MB"],
    ]
    facts = dict(re.split("  +", line, maxsplit=1) for line in about)
    named = {name: facts[name] for name in ("Capture", "Device type", "Hosts", "Steps")}
    assert named == {"Capture": "filters_16_8", "Device type": "CPU", "Hosts": "1", "Steps": "22"}
    assert [line.split()[0] for line in step[2:]] == ["Input", "Host", "Idle", "Other", "Total"]
    assert ops[0].startswith("Longest ops on the host, self time per step  ")
    assert ops[1].split() == ["Iterator::Root::BatchV2::Map", "Dataset", "6.59", "ms", "36.6", "%"]
    assert advice[1].startswith("1. The steps wait for input 62.2 % of their time")
    names = "".join(tables).partition("): ")[2].removesuffix(".").split(", ")
    run = load(CANDIDATE)
    assert names == [name for name in schema.TABLES if len(run.table(name))]
    assert "kernel_stats" not in names


def test_the_summary_of_a_run_on_a_device_ranks_the_ops_of_the_device(tfcompare) -> None:
    _, out, _ = tfcompare("show", str(SIMULATED_RUNS["filters_16_8_simulated"]))
    assert "Longest ops on the device, self time per step" in out
    assert "1. The device waits for kernel launches 61.8 % of the step" in out


@pytest.mark.parametrize("format", ["csv", "json"])
def test_the_summary_is_text_only(tfcompare, format: str) -> None:
    status, out, err = tfcompare("show", CANDIDATE, "--format", format)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"--format {format} needs a TABLE" in err
