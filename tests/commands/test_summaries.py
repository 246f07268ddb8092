"""The summaries of `diff` and `show`: verdict, breakdown of the step, advice, largest changes, tables."""

from __future__ import annotations

import re

import pytest

from tests.profiles import SAMPLE_RUNS, SIMULATED_RUNS, run_path
from tfcompare import load, schema
from tfcompare.tools.advice import advise

BASELINE, CANDIDATE, AGAIN = (str(SAMPLE_RUNS[f"filters_{name}"]) for name in ("512_128", "16_8", "16_8_again"))


def sections(out: str) -> list[list[str]]:
    return [section.splitlines() for section in out.rstrip("\n").split("\n\n")]


def test_diff_is_verdict_then_why_then_advice_then_changes(tfcompare) -> None:
    status, out, _ = tfcompare("diff", BASELINE, CANDIDATE)
    verdict, budget, figures, parts, advice, changes, memory, steps, *gaps = sections(out)
    assert status == 0
    assert (
        verdict[0]
        == "filters_16_8 is 20× faster than filters_512_128 (15×–25×, one capture each): 10.9 ms vs 213 ms per step."
    )
    assert verdict[1].startswith(
        "▼ likely faster: 95 % confidence interval of the ratio 0.0394×–0.0667×, from 20 steps per run."
    )
    assert [" ".join(line.split()) for line in figures[:2]] == [
        "Key figures Baseline Candidate Change Ratio",
        "Step time 213 ms 10.9 ms −202 ms 0.0513×",
    ]
    conv = "gradient_tape/a…convolution/Conv2DBackpropFilter"
    assert budget == [f"−202 ms per step = −201 ms host compute (above all {conv}) − 1 ms everything else."]
    assert out.splitlines().index(budget[0]) < 10, "the cause is in the first ten lines"
    assert memory[0].startswith("Peak memory −99.8 MB: above all gradient_tape/a…convolution/Conv2DBackpropFilter ")
    assert "The peaks are at different moments, " in " ".join(memory)
    assert [steps[0], gaps[0][0]] == ["Steps", "Largest idle gap"]
    assert [" ".join(line.split()) for line in parts] == [
        "Why",
        "Average step Baseline Candidate Change Ratio",
        "Input 7.76 ms 6.79 ms −967 µs 0.875×",
        "Host compute 204 ms 3.74 ms −201 ms 0.0183×",
        "Idle 788 µs 380 µs −408 µs 0.482×",
        "Other 30.6 µs 5.61 µs −25.0 µs 0.183×",
        "Total 213 ms 10.9 ms −202 ms 0.0513×",
    ]
    assert changes[0].startswith("Largest changes, self time per step  ")
    assert len(changes) == 1 + 5 + 1
    assert changes[-1] == "340 more ops changed."
    found = advise(load(BASELINE), load(CANDIDATE)).advice[:3]
    assert advice[0] == "What to try next"
    assert [line.partition(" · ")[0] for line in advice[1:]] == [
        f"{number}. {one.title}" for number, one in enumerate(found, start=1)
    ]


def test_the_summary_shows_as_many_changes_as_asked_and_says_how_many_more(tfcompare) -> None:
    changes = sections(tfcompare("diff", BASELINE, CANDIDATE, "--limit", "3")[1])[5]
    assert len(changes) == 1 + 3 + 1
    assert changes[-1] == "342 more ops changed."
    every = sections(tfcompare("diff", BASELINE, CANDIDATE, "--limit", "0")[1])[5]
    assert len(every) == 1 + 345


def test_each_candidate_has_its_own_summary(tfcompare) -> None:
    _, out, _ = tfcompare("diff", BASELINE, CANDIDATE, AGAIN)
    assert out.count("faster than filters_512_128") == out.count("Average step  ") == out.count("Largest changes") == 2
    assert out.count("What to try next") == 2
    assert all(f"\n{name}\n" in f"\n{out}" for name in ("filters_16_8", "filters_16_8_again"))


def test_a_run_and_itself_are_the_same_and_shown_once(tfcompare) -> None:
    _, out, _ = tfcompare("diff", BASELINE, BASELINE)
    first, answer, *_ = sections(out)
    assert "byte for byte" in " ".join(first)
    assert answer[0] == "filters_512_128: 213 ms per step"
    assert "Candidate" not in out


def test_runs_without_steps_have_no_breakdown(tfcompare) -> None:
    runs = [str(run_path(name)) for name in ("jax_conv_legacy", "jax_conv_08")]
    _, out, _ = tfcompare("diff", *runs)
    assert "per execution" in sections(out)[0][0]
    assert "No verdict, since there are no step markers in jax_conv_minimal_legacy and jax_conv_minimal_08" in out
    assert "Average step" not in out
    assert "`" not in out


def test_show_without_a_table_is_a_summary(tfcompare) -> None:
    status, out, err = tfcompare("show", CANDIDATE)
    answer, figures, step, advice, ops, _steps, _gap, about, tables = sections(out)
    assert (status, err) == (0, "")
    assert answer == ["filters_16_8: 10.9 ms per step", "20 of 22 steps are included."]
    values = [re.split("  +", line) for line in figures]
    assert values[1] == ["Step time", "10.9 ms"]
    assert values[-1] == ["Peak memory", "69.0 MB"]
    facts = dict(re.split("  +", line, maxsplit=1) for line in about)
    named = {name: facts[name] for name in ("Capture", "Device type", "Hosts", "Steps")}
    assert named == {"Capture": "filters_16_8", "Device type": "CPU", "Hosts": "1", "Steps": "22"}
    assert [re.split("  +", line) for line in step[2:]] == [
        ["Input", "6.79 ms", "62.2 %"],
        ["Host compute", "3.74 ms", "34.2 %"],
        ["Idle", "380 µs", "3.48 %"],
        ["Other", "5.61 µs", "0.0514 %"],
        ["Total", "10.9 ms", "100 %"],
    ]
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


def test_the_summary_says_what_a_profile_lacks(tfcompare) -> None:
    without_steps = tfcompare("show", str(run_path("jax_conv_08")))[1]
    assert "Step time" not in without_steps
    assert "Average step" not in without_steps
    assert without_steps.startswith("No step markers, so there is no step time\nRecord again with each step inside ")
    without_memory = tfcompare("show", str(run_path("tf_cpu_sleepy")))[1]
    assert "The peak memory is unknown: the profile has no allocations." in without_memory
    assert "Step time" in without_memory


@pytest.mark.parametrize("format", ["csv", "json"])
def test_the_summary_is_text_only(tfcompare, format: str) -> None:
    status, out, err = tfcompare("show", CANDIDATE, "--format", format)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"--format {format} needs a TABLE" in err
