"""The first lines of an answer hold the cause: on samples, on programs whose truth is known, and on real profiles."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.profiles import ALL_RUNS, SAMPLES, loaded_run
from tfcompare import compare, load
from tfcompare.charts.pair import pairs_of
from tfcompare.compare import Comparison
from tfcompare.compare.comparison import OF_ALL_CAPTURES
from tfcompare.compare.stats.estimates import Times
from tfcompare.render.shown import Shown
from tfcompare.run import Run
from tfcompare.tools.overview import dashboard
from tfcompare.views import candidates
from tfcompare.views.blocks import Table, Text

TRUTH = Path(__file__).parents[1] / "known_truth"
NO_CUT = 10_000


def named(name: str) -> Run:
    return loaded_run(name) if name in ALL_RUNS else load(TRUTH / name)


def captures(program: str) -> list[Run]:
    """The three captures of a program on a GPU."""
    return [load(SAMPLES / "autoencoder_gpu" / program / f"{program}_run-{number}") for number in (1, 2, 3)]


def said(comparison: Comparison) -> tuple[str, str, str]:
    """(the headline, what the verdict is based on, the budget of the step) of the Overview as text."""
    text = Shown.of(comparison, "overview").to("table", width=NO_CUT)
    headline, *basis = text.split("\n\n")[0].splitlines()
    budget = re.search(r"^.* per step = .*$", text, re.M)
    return headline, "\n".join(basis), budget[0] if budget else ""


def comparison_parts(comparison: Comparison) -> pd.DataFrame:
    return pairs_of(comparison)[0].attribution.parts


CAUSES = [
    (
        "filters_512_128",
        "filters_16_8",
        "is 20× faster",
        "201 ms host compute (above all gradient_tape/",
    ),
    ("filters_16_8", "filters_16_8_again", "Inconclusive: ", "may be chance. "),
    ("filters_16_8", "filters_16_8_better_input", "is 1.5× faster", "6.45 ms input (above all DecodePng in Iterator::"),
    ("filters_512_128_simulated", "filters_16_8_simulated", "is 2.1× faster", "+ 2.08 ms kernel launch"),
    (
        "tensorflow_filters_128_32",
        "tensorflow_filters_16_8",
        "is 6.7× faster",
        "(above all __inference_train_step",
    ),
    ("jax_filters_128_32", "jax_filters_16_8", "is 27× faster", "(above all jit(train_step)"),
    (
        "workers_balanced",
        "workers_slow_input",
        "worker1 is the slowest host",
        "7.51 ms input (above all read in",
    ),
    ("tf_cpu_base", "tf_cpu_zoo", "0.5× the examples of base in 0.43× the time", "dense_b_1/MatMul/MatMul)"),
    ("tf_cpu_zoo", "tf_cpu_base", "2× the examples of zoo in 2.3× the time", "dense_b_1/MatMul/MatMul)"),
    ("tf_cpu_zoo", "tf_cpu_sleepy", "sleepy has 2.63 ms more input per step", "input (above all PyFunc in Iterator::"),
    ("tf_cpu_base", "tf_gpu", "Difference not tested: ", "14.9 ms device compute"),
    ("map_5ms", "map_8ms", "is 1.6× slower", "input (above all slow_map in Iterator::"),
    ("map_parallel_5ms", "map_parallel_8ms", "is 1.6× slower", "input (above all slow_map in Iterator::"),
    ("py_op_none", "py_op_5ms", "is 5.4× slower", "host compute (above all slow_python)"),
    ("no_sleep", "sleep_between_10ms", "has 9.20 ms between its steps", ""),
    ("no_sleep", "sleep_inside_10ms", "is 12× slower", "10.1 ms idle time until the end of the step"),
    ("no_sleep", "tensor_64mib", "is 11× slower", "host compute (above all large_tensor)"),
    ("workers_even", "workers_uneven", "is 2.4× slower", "On worker1: +8.50 ms per step = 8.26 ms host compute"),
]


@pytest.mark.parametrize(("one", "other", "headline", "cause"), CAUSES)
def test_the_first_lines_hold_the_cause(one: str, other: str, headline: str, cause: str) -> None:
    first, _, budget = said(compare(named(one), named(other)))
    assert headline in first
    assert cause in budget


def test_an_inconclusive_verdict_says_first_what_is_certain_and_last_what_to_do() -> None:
    for one, other in (("workers_balanced", "workers_slow_input"), ("workers_slow_input", "workers_balanced")):
        first, basis, budget = said(compare(named(one), named(other)))
        assert "is the slowest host of slow_input in 19 of 19 steps; inconclusive: " in first
        assert "These runs can show only changes above " in basis
        assert "may be chance, except for input. " in budget


def test_a_part_that_hardly_matters_does_not_lead() -> None:
    """The idle time of 2 % of the step is certain, and no answer."""
    first, _, budget = said(compare(named("jax_blocks_behind_loop"), named("jax_blocks_in_step")))
    assert first.startswith("Inconclusive: ")
    assert "except for idle time" in budget


def test_memory_is_certain_where_times_are_not() -> None:
    first, _, _ = said(compare(named("eager_loop"), named("eager_in_one_step")))
    assert re.match(r"The peak memory of \S+ is 9.51× that of \S+ \(788 kB vs 82.9 kB\); inconclusive: ", first)


@pytest.mark.parametrize(
    ("one", "other", "sentence"),
    [
        (
            "filters_512_128", "filters_16_8",
            "Peak memory −99.8 MB: above all gradient_tape/a…convolution/Conv2DBackpropFilter [2,1024,4608] (",
        ),
        (
            "filters_512_128_simulated", "filters_16_8_simulated",
            "Peak memory −241 MB: above all gradient_tape/a…/convolution/Conv2DBackpropInput [4,1024,4608] (",
        ),
        ("jax_filters_128_32", "jax_filters_16_8", "the peak memory is what XLA planned for its largest program."),
    ],
)  # fmt: skip
def test_the_answer_says_what_became_of_the_memory(one: str, other: str, sentence: str) -> None:
    comparison = compare(named(one), named(other))
    text = Shown.of(comparison, "overview").to("table", width=NO_CUT)
    assert sentence in text
    back = Shown.of(compare(named(other), named(one)), "overview").to("table", width=NO_CUT)
    assert sentence.partition(": above")[0].replace("−", "+") in back
    same = Shown.of(compare(named(one), named(one)), "overview").to("table", width=NO_CUT)
    assert ": above all" not in same


def test_peaks_at_different_moments_are_told_where_other_tensors_are_live() -> None:
    text = Shown.of(compare(named("filters_512_128"), named("filters_16_8")), "overview").to("table", width=NO_CUT)
    assert "The peaks are at different moments, so other tensors are live: that of filters_512_128 while " in text
    again = Shown.of(compare(named("filters_16_8"), named("filters_16_8_again")), "memory").to("table", width=NO_CUT)
    assert "The peaks are at different moments" in again, "98 % of what is live differs"
    for one, other in (("matmuls_10", "matmuls_20"), ("layers_unfused", "layers_fused")):
        of_pair = compare(named(one), named(other))
        assert "different moments" not in Shown.of(of_pair, "memory").to("table", width=NO_CUT), "only names differ"


def test_memory_that_differs_by_less_than_the_captures_of_one_program_is_not_mentioned() -> None:
    text = Shown.of(compare(named("filters_16_8"), named("filters_16_8_again")), "overview").to("table", width=NO_CUT)
    assert (
        ": above all" not in text.partition("Key figures")[2].partition("Steps")[0] and "different moments" not in text
    )


def test_planned_memory_stands_in_where_no_allocations_were_recorded() -> None:
    comparison = compare(named("jax_filters_128_32"), named("jax_filters_16_8"))
    figures = {one.label: one for one in dashboard(comparison, comparison.candidates[0], comparison_parts(comparison))}
    planned = figures["Planned peak memory"]
    for run, shown in zip(
        (comparison.baseline, *comparison.candidates), (planned.baseline, planned.candidate), strict=True
    ):
        rows = run.table("hlo_memory")
        live = rows[rows["is_live_at_peak"] & (rows["memory_space"] == 0)]
        assert shown == max(own["size_bytes"].sum() for _, own in live.groupby("program"))
    assert "Peak memory" not in figures


def test_runs_of_one_step_each_say_how_to_record_more() -> None:
    one, other = (load(TRUTH / name, steps="5:5") for name in ("py_op_none", "py_op_5ms"))
    first, basis, budget = said(compare(one, other))
    assert "(1 step each: not tested)" in first
    assert basis.endswith("To record more: TensorBoard(profile_batch=(10, 40)).")
    assert "(above all slow_python)" in budget


def test_that_the_load_is_unknown_is_said_where_the_variation_is_assumed() -> None:
    ours, theirs = named("filters_512_128"), named("filters_16_8")
    sentence = "The machine's load is unknown; on a busy one, runs vary 5 times as much."
    assert said(compare(ours, theirs))[1].count(sentence) == 1
    assert sentence not in said(compare(ours, theirs, spread=0.05))[1]
    assert sentence not in said(compare(named("jax_blocks_in_step"), named("jax_blocks_behind_loop")))[1], "recorded"


SEVERAL = ("filters_512_128", "filters_16_8", "filters_16_8_again", "filters_16_8_better_input")


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (
            SEVERAL,
            "filters_16_8_better_input is the fastest of 4 runs: it is 1.5× faster than filters_16_8 (1.1×–2.1×,",
        ),
        (SEVERAL[::-1], "filters_16_8_better_input (the baseline) is the fastest of 4 runs: it is 1.5× faster than "),
        (
            SEVERAL[:3],
            "filters_16_8 has the shortest step of 3 runs; inconclusive: filters_16_8 vs filters_16_8_again, ",
        ),
    ],
)
def test_of_several_candidates_it_says_first_which_is_the_fastest_and_whether_it_is(
    names: tuple[str, ...], sentence: str
) -> None:
    comparison = compare(*map(loaded_run, names))
    text = Shown.of(comparison, "overview").to("table", width=NO_CUT)
    assert text.startswith(sentence)
    assert text.index("All runs, fastest first") < text.index("Key figures")
    assert Shown.of(comparison, "candidates").to("table", width=NO_CUT).startswith(sentence)


def test_what_differs_in_more_than_the_program_is_not_called_the_fastest() -> None:
    names = ("tf_cpu_base", "tf_cpu_zoo", "filters_16_8")
    text = Shown.of(compare(*map(named, names)), "overview").to("table", width=NO_CUT)
    assert text.startswith(
        "zoo has the shortest step of 3 runs; zoo handles 0.5× the examples of base in 0.43× the time"
    )
    assert "But the runs differ in batch size, which alone can change times." in text.splitlines()[0]
    twice = compare(named("filters_512_128"), named("filters_16_8"), replace(named("filters_16_8"), id="again"))
    said = Shown.of(twice, "overview").to("table", width=NO_CUT).splitlines()[0]
    assert said.endswith(", the same capture, have the shortest step of 3 runs.")


def test_one_odd_step_makes_no_part_certain() -> None:
    ours, theirs = named("filters_16_8"), named("filters_16_8_again")
    steps = theirs.table("steps").copy()
    odd = steps.index[steps["included"]][5]
    steps.loc[odd, ["compile_us", "duration_us"]] += 20_000.0
    times = Times.of(steps.loc[steps["included"], "compile_us"].to_numpy())
    none = Times.of(np.zeros(times.steps))
    found = compare(ours, theirs).time_verdict(theirs, ([none], [times]), "steps")
    assert found.is_claim and not found.evidence, "it has no interval, so no sentence may rest on it"


def test_pages_call_every_run_by_its_letter() -> None:
    (pair, *_) = pairs_of(compare(*map(loaded_run, SEVERAL)))
    first, table, *_ = candidates.ranking(pair)
    assert isinstance(first, Text) and first.text.startswith(
        "`D` is the fastest of 4 runs: it is 1.5× faster than `B` "
    )
    assert isinstance(table, Table)
    assert sorted(table.rows["name"]) == [f"{letter} · {name}" for letter, name in zip("ABCD", SEVERAL, strict=True)]


def test_with_replicates_it_says_what_is_of_all_captures_and_what_is_not() -> None:
    baseline, candidate, again = map(named, ("filters_512_128", "filters_16_8", "filters_16_8_again"))
    alone = compare(baseline, candidate)
    several = compare(baseline, candidate, repeats={candidate.id: [again]})
    assert [OF_ALL_CAPTURES in one.notes for one in (alone, several)] == [False, True]
    text = Shown.of(several, "overview").to("table", width=NO_CUT)
    assert text.count(OF_ALL_CAPTURES) == 1
    assert said(several)[2] == f"Without the replicates: {said(alone)[2]}"
    budgets = [comparison_parts(one)["delta_us"].sum() for one in (several, alone)]
    assert budgets[0] == pytest.approx(budgets[1])
    assert several.step_time_us(candidate) != pytest.approx(alone.step_time_us(candidate))


def test_what_is_certain_of_a_part_is_of_all_captures_whichever_comes_first() -> None:
    """Three captures a side; the host computes longer in the candidate's, by another amount in each."""
    baselines, candidates = captures("h100_16_8"), captures("h100_16_8_command_buffers")
    for first, second in ((0, 0), (2, 1), (0, 2)):
        baseline, candidate = baselines[first], candidates[second]
        comparison = compare(baseline, candidate, repeats={baseline.id: baselines, candidate.id: candidates})
        assert said(comparison)[0].startswith(
            f"{candidate.name} has 1.03 ms more host compute per step (1.00×–1.41×); "
        )
        assert comparison.step_time_us(candidate) - comparison.step_time_us(baseline) == pytest.approx(1240, abs=1)


def test_a_capture_beside_itself_is_the_same_whichever_has_replicates() -> None:
    first, *others = captures("h100_16_8")
    again = replace(first, id="again")
    comparison = compare(first, again, repeats={first.id: others})
    assert comparison.step_time_us(again) == comparison.step_time_us(first)
    figures = dashboard(comparison, again, comparison_parts(comparison))
    assert [one.label for one in figures if one.baseline != one.candidate] == []
