"""The first lines of an answer hold the cause: on samples, on programs whose truth is known, and on real profiles.

Those of the pairs in `golden.py` stand in the goldens. Last, the time of compiled programs by source line.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.profiles import ALL_RUNS, SAMPLES, compared_runs, loaded_run
from tests.views.flat import KNOWN_TRUTH, flat, only_pair, texts
from tfcompare import compare, load
from tfcompare.compare.groups.aggregate import largest_changes
from tfcompare.compare.pairs import pair_with, pairs_of
from tfcompare.compare.stats.estimates import Times
from tfcompare.comparison import Comparison
from tfcompare.render.shown import Shown
from tfcompare.render.terminal import as_lines
from tfcompare.run import Run
from tfcompare.schema import SIDES
from tfcompare.views import answer
from tfcompare.views.blocks import Facts, Links, Table, Text
from tfcompare.views.candidates import view as candidates
from tfcompare.views.memory import view as memory
from tfcompare.views.steps.attribution import attribution_of
from tfcompare.views.steps.dashboard import dashboard
from tfcompare.views.steps.source_lines import by_line, changes

AGAIN = ("filters_16_8", "filters_16_8_again")
LAYERS = ("layers_unfused", "layers_fused")
"""Their ops have other names."""


@cache
def named(name: str) -> Run:
    return loaded_run(name) if name in ALL_RUNS else load(KNOWN_TRUTH / name)


@cache
def compared(*names: str) -> Comparison:
    return compared_runs(*names) if set(names) <= set(ALL_RUNS) and len(names) == 2 else compare(*map(named, names))


@cache
def captures(program: str) -> list[Run]:
    """The three captures of a program on a GPU."""
    return [load(SAMPLES / "autoencoder_gpu" / program / f"{program}_run-{number}") for number in (1, 2, 3)]


def text(comparison: Comparison) -> str:
    return Shown.of(comparison, "overview").to("table", width=10_000)


def said(comparison: Comparison) -> tuple[str, str, str]:
    """(the headline, what the verdict is based on, the budget of the step) of the answer as text."""
    (pair,) = pairs_of(comparison, by_name=True)
    paragraphs = as_lines(answer.first(pair), 10_000).split("\n\n")
    headline, *basis = paragraphs[0].splitlines()
    budgets = [one for one in paragraphs if " per step = " in one]
    return headline, "\n".join(basis), budgets[0] if budgets else ""


def fastest(comparison: Comparison) -> str:
    first, *_ = candidates.ranking(pairs_of(comparison, by_name=True)[0])
    return as_lines([first], 10_000)


def of_memory(*names: str) -> str:
    (pair,) = pairs_of(compared(*names))
    return as_lines(answer.memory(pair), 10_000)


def comparison_parts(comparison: Comparison) -> pd.DataFrame:
    return attribution_of(pairs_of(comparison)[0]).parts


def thorough(*case: str) -> Any:
    return pytest.param(*case, marks=pytest.mark.thorough)


CAUSES = [
    ("filters_16_8", "filters_16_8_better_input", "is 1.5× faster", "6.45 ms input (above all DecodePng in Iterator::"),
    ("tf_cpu_base", "tf_gpu", "Difference not tested: ", "14.9 ms device compute"),
    ("map_5ms", "map_8ms", "is 1.6× slower", "input (above all slow_map in Iterator::"),
    ("no_sleep", "sleep_between_10ms", "step to step (10.0 ms vs 10.8 µs between steps); ", ""),
    ("workers_even", "workers_uneven", "is 2.4× slower", "On worker1: +8.50 ms per step = 8.26 ms host compute"),
    thorough(*AGAIN, "Inconclusive: ", "may be chance. "),
    thorough("workers_slow_input", "workers_balanced", "inconclusive: ", "may be chance, except for input. "),
    thorough("tf_cpu_base", "tf_cpu_zoo", "0.5× the examples of base in 0.43× the time", "dense_b_1/MatMul/MatMul)"),
    thorough("tf_cpu_zoo", "tf_cpu_sleepy", "has 2.63 ms more input per step", "input (above all PyFunc in Iterator::"),
    thorough("no_sleep", "sleep_inside_10ms", "is 12× slower", "10.1 ms idle time until the end of the step"),
    thorough("no_sleep", "tensor_64mib", "is 11× slower", "host compute (above all large_tensor)"),
]


@pytest.mark.parametrize(("one", "other", "headline", "cause"), CAUSES)
def test_the_first_lines_hold_the_cause(one: str, other: str, headline: str, cause: str) -> None:
    first, _, budget = said(compared(one, other))
    assert headline in first
    assert cause in budget


def test_a_part_that_hardly_matters_does_not_lead_and_a_load_that_was_recorded_is_not_called_unknown() -> None:
    """The idle time of 2 % of the step is certain, and no answer."""
    first, basis, budget = said(compared("jax_blocks_behind_loop", "jax_blocks_in_step"))
    assert first.startswith("Same compiled programs; inconclusive: ")
    assert "except for idle time" in budget
    assert "load is unknown" not in basis


def test_that_the_load_is_unknown_is_not_said_where_the_variation_is_given() -> None:
    ours, theirs = named("filters_512_128"), named("filters_16_8")
    assert "load is unknown" not in said(compare(ours, theirs, spread=0.05))[1]


def test_memory_is_certain_where_times_are_not() -> None:
    first, _, _ = said(compared("eager_loop", "eager_in_one_step"))
    assert re.match(r"The peak memory of \S+ is 9.51× that of \S+ \(788 kB vs 82.9 kB\); inconclusive: ", first)


def test_the_answer_says_what_became_of_the_memory_whichever_run_comes_first() -> None:
    assert "Peak memory +99.8 MB: above all " in of_memory("filters_16_8", "filters_512_128")
    assert of_memory(*AGAIN) == "", "captures of one program differ as much"


def test_peaks_are_said_to_be_at_different_moments_where_other_tensors_are_live() -> None:
    for names, are_other in ((AGAIN, True), (("matmuls_10", "matmuls_20"), False), (LAYERS, False)):
        found = texts(memory.VIEW, only_pair(compared(*names)))
        assert any(one.startswith("The peaks are at different moments") for one in found) == are_other


def test_planned_memory_stands_in_where_no_allocations_were_recorded() -> None:
    comparison = compared("jax_filters_128_32", "jax_filters_16_8")
    figures = {one.label: one for one in dashboard(pair_with(comparison), comparison_parts(comparison))}
    planned = figures["Planned peak memory"]
    for run, shown in zip(
        (comparison.baseline, *comparison.candidates), (planned.baseline, planned.candidate), strict=True
    ):
        rows = run.table("hlo_memory")
        live = rows[rows["is_live_at_peak"] & (rows["memory_space"] == 0)]
        assert shown == max(own["size_bytes"].sum() for _, own in live.groupby("program"))
    assert "Peak memory" not in figures


def test_runs_of_one_step_each_say_how_to_record_more() -> None:
    one, other = (load(KNOWN_TRUTH / name, steps="5:5") for name in ("py_op_none", "py_op_5ms"))
    first, basis, budget = said(compare(one, other))
    assert "(1 step each: not tested)" in first
    assert basis.endswith("To record more: TensorBoard(profile_batch=(10, 40)).")
    assert "(above all slow_python)" in budget


SEVERAL = ("filters_512_128", "filters_16_8", "filters_16_8_again", "filters_16_8_better_input")
INCONCLUSIVE = "filters_16_8 has the shortest step of 3 runs; inconclusive: filters_16_8 vs filters_16_8_again, "
FASTEST = "filters_16_8_better_input (the baseline) is the fastest of 4 runs: it is 1.5× faster than "


@pytest.mark.parametrize(("names", "sentence"), [(SEVERAL[:3], INCONCLUSIVE), thorough(SEVERAL[::-1], FASTEST)])
def test_of_several_candidates_it_says_first_which_is_the_fastest_and_whether_it_is(
    names: tuple[str, ...], sentence: str
) -> None:
    assert fastest(compared(*names)).startswith(sentence)


def test_pages_call_every_run_by_its_letter() -> None:
    (pair, *_) = pairs_of(compared(*SEVERAL))
    first, table, *_ = candidates.ranking(pair)
    sentence = "`D` is the fastest of 4 runs: it is 1.5× faster than `B` "
    assert isinstance(first, Text) and first.text.startswith(sentence)
    assert isinstance(table, Table)
    assert sorted(table.rows["name"]) == [f"{letter} · {name}" for letter, name in zip("ABCD", SEVERAL, strict=True)]


def test_what_differs_in_more_than_the_program_is_not_called_the_fastest() -> None:
    first = fastest(compared("tf_cpu_base", "tf_cpu_zoo", "filters_16_8"))
    assert first.startswith(
        "zoo has the shortest step of 3 runs; zoo handles 0.5× the examples of base in 0.43× the time"
    )
    assert "But the runs differ in batch size, which alone can change times." in first
    transformer = load(SAMPLES / "transformer_gpu" / "h100_store_activations" / "h100_store_activations_run-1")
    other = fastest(compare(named("filters_512_128"), captures("h100_16_8")[0], transformer))
    expected = "h100_store_activations_run-1 has the shortest step of 3 runs, but h100_16_8_run-1 is another program."
    assert other == expected
    twice = compare(named("filters_512_128"), named("filters_16_8"), replace(named("filters_16_8"), id="again"))
    assert fastest(twice).endswith(", the same capture, have the shortest step of 3 runs.")


def test_one_odd_step_makes_no_part_certain() -> None:
    theirs = named(AGAIN[1])
    steps = theirs.table("steps").copy()
    odd = steps.index[steps["included"]][5]
    steps.loc[odd, ["compile_us", "duration_us"]] += 20_000.0
    times = Times.of(steps.loc[steps["included"], "compile_us"].to_numpy())
    none = Times.of(np.zeros(times.steps))
    found = pair_with(compared(*AGAIN)).time_verdict(([none], [times]), "steps")
    assert found.is_claim and not found.evidence, "it has no interval, so no sentence may rest on it"


def test_with_replicates_the_budget_too_is_of_all_captures() -> None:
    baseline, candidate, again = map(named, ("filters_512_128", *AGAIN))
    alone = compared("filters_512_128", "filters_16_8")
    several = compare(baseline, candidate, repeats={candidate.id: [again]})
    assert [len(one.notes) for one in (alone, several)] == [0, 1]
    assert text(several).count(several.notes[0]) == 1
    for one in (alone, several):
        change = one.step_time_us(candidate) - one.step_time_us(baseline)
        assert comparison_parts(one)["delta_us"].sum() == pytest.approx(change), "parts add up to the step time"
    assert several.step_time_us(candidate) != pytest.approx(alone.step_time_us(candidate))


@pytest.mark.parametrize(("first", "second"), [(2, 1), pytest.param(0, 0, marks=pytest.mark.thorough)])
def test_what_is_certain_of_a_part_is_of_all_captures_whichever_comes_first(first: int, second: int) -> None:
    """Three captures a side; the host computes longer in the candidate's, by another amount in each."""
    baselines, candidates = captures("h100_16_8"), captures("h100_16_8_command_buffers")
    baseline, candidate = baselines[first], candidates[second]
    comparison = compare(baseline, candidate, repeats={baseline.id: baselines, candidate.id: candidates})
    headline = "h100_16_8_command_buffers likely has 1.03 ms more host compute per step (1.00×–1.41×); "
    assert said(comparison)[0].startswith(headline)
    assert comparison.step_time_us(candidate) - comparison.step_time_us(baseline) == pytest.approx(1237, abs=1)


def test_a_capture_beside_itself_is_the_same_whichever_has_replicates() -> None:
    first, *others = captures("h100_16_8")
    again = replace(first, id="again")
    comparison = compare(first, again, repeats={first.id: others})
    assert comparison.step_time_us(again) == comparison.step_time_us(first)
    figures = dashboard(pair_with(comparison, again.id), comparison_parts(comparison))
    assert [one.label for one in figures if one.baseline != one.candidate] == []


PAIRS = [("jax_filters_128_32", "jax_filters_16_8"), ("h100_512_128", "h100_16_8")]


def rows(*cells: tuple[str | None, str | None, float, float]) -> pd.DataFrame:
    """Rows of a diff: source and self time of both sides; None for a side without the instruction."""
    status = ["added" if ours is None else "removed" if theirs is None else "matched" for ours, theirs, _, _ in cells]
    columns = ["source_baseline", "source_candidate", "self_time_us_baseline", "self_time_us_candidate"]
    frame = pd.DataFrame(cells, columns=columns)
    return frame.assign(status=status, self_time_us_delta=0.0)


def found(*cells: tuple[str | None, str | None, float, float]) -> dict[str, tuple[str, float, float]]:
    lines = by_line(rows(*cells))
    times = zip(lines["self_time_us_baseline"], lines["self_time_us_candidate"], strict=True)
    return {line: (now, *both) for line, now, both in zip(lines["line"], lines["line_candidate"], times, strict=True)}


def test_times_are_summed_by_line_and_the_largest_change_is_first() -> None:
    lines = found(
        ("a.py:1", "a.py:1", 5.0, 6.0),
        ("a.py:2", "a.py:2", 9.0, 1.0),
        ("a.py:1", None, 2.0, math.nan),
        ("a.py:3", "a.py:3", 4.0, 4.0),
    )
    assert lines == {"a.py:2": ("a.py:2", 9.0, 1.0), "a.py:1": ("a.py:1", 7.0, 6.0)}
    assert next(iter(lines)) == "a.py:2"


def test_a_line_that_moved_is_one_line_with_what_was_added_there() -> None:
    lines = found(("a.py:7", "a.py:9", 5.0, 6.0), (None, "a.py:9", math.nan, 3.0), (None, "a.py:4", math.nan, 1.0))
    assert lines == {"a.py:7": ("a.py:9", 5.0, 9.0), "a.py:4": ("a.py:4", 0.0, 1.0)}


def test_lines_below_an_inserted_one_have_all_moved_and_what_is_new_at_an_old_number_is_a_line_of_its_own() -> None:
    moved = [(f"a.py:{number}", f"a.py:{number + 1}", 5.0, 6.0 + number) for number in (4, 5, 6, 7)]
    lines = by_line(rows(*moved, (None, "a.py:4", math.nan, 1.0), (None, "a.py:6", math.nan, 2.0)))
    cells = lines[["line", "line_candidate", "self_time_us_baseline", "self_time_us_candidate"]]
    assert cells.to_numpy().tolist() == [
        ["a.py:5", "a.py:6", 5.0, 13.0],
        ["a.py:7", "a.py:8", 5.0, 13.0],
        ["a.py:6", "a.py:7", 5.0, 12.0],
        ["a.py:4", "a.py:5", 5.0, 10.0],
        ["a.py:4", "a.py:4", 0.0, 1.0],
    ]
    assert lines["instructions"].tolist() == [[1, 5], [3], [2], [0], [4]]


def test_what_was_added_on_a_line_of_several_stays_there() -> None:
    lines = found(("a.py:1", "a.py:3", 5.0, 5.0), ("a.py:2", "a.py:3", 5.0, 5.0), (None, "a.py:3", math.nan, 1.0))
    assert lines == {"a.py:3": ("a.py:3", 0.0, 1.0)}


def test_unknown_lines_are_left_out_and_one_that_only_the_candidate_knows_is_its() -> None:
    assert found(("", "", 1.0, 2.0), ("", "a.py:1", 1.0, 2.0)) == {"a.py:1": ("a.py:1", 1.0, 2.0)}
    assert found() == {}


@pytest.mark.parametrize("names", PAIRS)
def test_lines_and_instructions_without_one_add_up_to_the_program(names: tuple[str, str]) -> None:
    every = pairs_of(compared_runs(*names))[0].instructions()
    lines = by_line(every)
    known = every.loc[[row for of_line in lines["instructions"] for row in of_line]]
    for side in SIDES:
        whole = known[f"self_time_us_{side}"].sum()
        assert lines[f"self_time_us_{side}"].sum() == pytest.approx(whole)
    left = every.drop(known.index)
    sources = left[["source_baseline", "source_candidate"]].fillna("")
    assert ((sources == "").all(axis=1) | (left["self_time_us_delta"].fillna(0.0) == 0)).all()


@pytest.mark.parametrize("names", PAIRS)
def test_exchanged_sides_change_by_the_opposite(names: tuple[str, str]) -> None:
    there, back = (by_line(pairs_of(compared_runs(*one))[0].instructions()) for one in (names, names[::-1]))
    assert there["self_time_us_delta"].sum() == pytest.approx(-back["self_time_us_delta"].sum())


def test_a_run_alone_has_no_changes() -> None:
    alone = pairs_of(compared_runs("jax_filters_16_8", "jax_filters_16_8"))[0]
    assert by_line(alone.instructions()).empty


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
