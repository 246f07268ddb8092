"""The summaries of `diff` and `show`: verdict, breakdown of the step, advice, largest changes, tables."""

from __future__ import annotations

import pytest

from tests.profiles import SAMPLE_RUNS, SIMULATED_RUNS, run_path
from tfcompare import load, schema
from tfcompare.tools.advice import advise

BASELINE, CANDIDATE, AGAIN = (str(SAMPLE_RUNS[f"filters_{name}"]) for name in ("512_128", "16_8", "16_8_again"))


def sections(out: str) -> list[list[str]]:
    return [section.splitlines() for section in out.rstrip("\n").split("\n\n")]


def test_diff_is_verdict_then_step_then_advice_then_changes(tfcompare) -> None:
    status, out, _ = tfcompare("diff", BASELINE, CANDIDATE)
    verdict, step, advice, changes, table = sections(out)
    assert status == 0
    assert verdict[0] == "filters_16_8 is likely 20× faster than filters_512_128: 10.9 ms vs 213 ms per step."
    assert verdict[1].startswith(
        "Ratio (candidate ÷ baseline): 0.0513×; 95 % confidence interval 0.0394×–0.0667×, from 20 steps per run."
    )
    assert [" ".join(line.split()) for line in step] == [
        "average step (ms) baseline candidate change ratio",
        "Input 7.762 6.795 −0.967 0.875×",
        "Host compute 204.343 3.736 −200.607 0.0183×",
        "Other 0.818 0.386 −0.433 0.471×",
        "Total 212.924 10.916 −202.007 0.0513×",
        "Host compute fell by 201 ms and explains the whole change of −202 ms in the average step.",
    ]
    found = advise(load(BASELINE), load(CANDIDATE)).advice[:3]
    assert advice[0] == "What to try next in filters_16_8"
    assert [line.partition(" (could")[0] for line in advice[1:]] == [
        f"{number}. {one.title}" for number, one in enumerate(found, start=1)
    ]
    assert changes[0] == "Largest changes"
    assert len(table) == 2 + 10


def test_the_summary_shows_as_many_changes_as_asked_and_says_how_many_more(tfcompare) -> None:
    _, out, err = tfcompare("diff", BASELINE, CANDIDATE, "--limit", "3")
    assert len(sections(out)[-1]) == 2 + 3
    assert err.endswith("more rows (--limit 0 shows all)\n")


def test_each_candidate_has_its_own_summary(tfcompare) -> None:
    _, out, _ = tfcompare("diff", BASELINE, CANDIDATE, AGAIN)
    assert out.count("faster than filters_512_128") == out.count("Host compute  ") == 2
    assert out.count("Largest changes") == 1
    candidates = ["filters_16_8", "filters_16_8_again"]
    assert all(f"What to try next in {name}\n" in out for name in candidates)
    assert list(dict.fromkeys(line.split()[0] for line in sections(out)[-1][2:])) == candidates


def test_identical_runs_have_no_changes_and_no_advice(tfcompare) -> None:
    _, out, _ = tfcompare("diff", BASELINE, BASELINE)
    assert "byte for byte" in out
    assert out.endswith("\nNo op's self time differs.\n")
    assert "What to try next" not in out


def test_runs_without_steps_have_no_breakdown(tfcompare) -> None:
    runs = [str(run_path(name)) for name in ("jax_conv_legacy", "jax_conv_08")]
    _, out, _ = tfcompare("diff", *runs)
    assert "no step markers, so step times cannot be compared" in out
    assert "average step" not in out
    assert "`" not in out


def test_show_without_a_table_is_a_summary(tfcompare) -> None:
    status, out, err = tfcompare("show", CANDIDATE)
    about, step, waiting, ops, advice, tables = sections(out)
    assert (status, err) == (0, "")
    assert about[0] == "filters_16_8"
    facts = dict(line.split("  ", 1) for line in about[1:])
    named = {name: facts[name].strip() for name in ("Device type", "Hosts", "Steps", "Step time", "Peak memory")}
    assert named == {
        "Device type": "CPU",
        "Hosts": "1",
        "Steps": "22",
        "Step time": "10.9 ms",
        "Peak memory": "69.0 MB in bfc_cpu_allocator_for_gpu",
    }
    assert [line.split()[-3:-1] for line in step[1:]] == [
        ["6.795", "62.2"], ["3.736", "34.2"], ["0.386", "3.53"], ["10.916", "100"],
    ]  # fmt: skip
    assert waiting[0].startswith("filters_16_8 is highly input-bound: it waits for input 62.2 % of the step time")
    assert ops[2].split()[:2] == ["Dataset", "Iterator::Root::BatchV2::Map"]
    assert advice[1].startswith("1. The steps wait for input 62.2 % of their time")
    names = "".join(tables).partition("): ")[2].split(", ")
    run = load(CANDIDATE)
    assert names == [name for name in schema.TABLES if len(run.table(name))]
    assert "kernel_stats" not in names


def test_the_summary_of_a_run_on_a_device_ranks_the_ops_of_the_device(tfcompare) -> None:
    _, out, _ = tfcompare("show", str(SIMULATED_RUNS["filters_16_8_simulated"]))
    assert "Top ops by share of self time on the device" in out
    assert "1. The device waits for kernel launches 61.8 % of the step" in out


def test_the_summary_says_what_a_profile_lacks(tfcompare) -> None:
    without_steps = tfcompare("show", str(run_path("jax_conv_08")))[1]
    assert "Step time" not in without_steps
    assert "average step" not in without_steps
    without_memory = tfcompare("show", str(run_path("tf_cpu_sleepy")))[1]
    assert "unknown (the profile has no allocations)" in without_memory
    assert "Step time" in without_memory


@pytest.mark.parametrize("format", ["csv", "json"])
def test_the_summary_is_text_only(tfcompare, format: str) -> None:
    status, out, err = tfcompare("show", CANDIDATE, "--format", format)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"--format {format} needs a TABLE" in err
