"""Several captures of one program: each figure is of all of them, whichever comes first."""

from __future__ import annotations

from functools import cache
from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from tests.compare.compare_runs import FakeRun, cells_of, op_stats, run, steps
from tests.profiles import SAMPLES
from tfcompare import schema
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pair_with, pairs_of
from tfcompare.compare.pooling import POOLED, pooled
from tfcompare.comparison import Comparison, compare
from tfcompare.errors import Unknown
from tfcompare.render.report import report
from tfcompare.run import Run, load
from tfcompare.schema import SIDES
from tfcompare.views.pair_words import stand_ins
from tfcompare.views.steps.attribution import attribution_of
from tfcompare.views.steps.dashboard import STEP_TIME, dashboard

PROGRAMS = ("h100_512_128", "h100_16_8")


@cache
def captures(program: str) -> tuple[Run, ...]:
    """The three captures of a program on a GPU."""
    places = (SAMPLES / "autoencoder_gpu" / program / f"{program}_run-{number}" for number in (1, 2, 3))
    return tuple(map(load, places))


def of_all(*sides: tuple[Run, ...]) -> Comparison:
    """Two sides, each with all of its captures."""
    return compare(sides[0][0], sides[1][0], repeats={side[0].id: side[1:] for side in sides})


@cache
def both() -> Comparison:
    return of_all(*map(captures, PROGRAMS))


def pair_of(comparison: Comparison) -> Pair:
    (pair,) = pairs_of(comparison)
    return pair


def capture(name: str, step_us: float, **op_us: float) -> FakeRun:
    """A capture of 20 equal steps with these ops, whose times are per step."""
    frame = op_stats([("Host", "MatMul", op, 20, 20 * us) for op, us in op_us.items()])
    made = run(name, frame, step_count=20, step_frame=steps([step_us] * 20))
    made.cells["op_stats"] = cells_of(frame, [np.full(20, us) for us in op_us.values()], schema.OP_STATS)
    return made


# --- tables


def test_a_sum_is_the_mean_of_all_captures_and_a_level_that_of_the_median_one() -> None:
    frames = [
        pd.DataFrame({"host": "h", "memory_id": ["GPU", *more], "allocations": n, "peak_bytes": peak})
        for n, peak, more in ((3, 70, []), (6, 10, ["CPU"]), (12, 40, []))
    ]
    columns = ("host", "memory_id", "allocations", "peak_bytes")
    found = pooled(schema.Table("t", "", tuple(map(schema.MEMORY_SUMMARY.column, columns))), frames, [1, 1, 1])
    assert found.to_dict("list") == {
        "host": ["h", "h"],
        "memory_id": ["GPU", "CPU"],
        "allocations": [7.0, 2.0],
        "peak_bytes": [40, 10],
    }


def test_a_mean_is_weighed_by_occurrences_and_what_is_unknown_does_not_count() -> None:
    names = ("host", "kernel_name", "occurrences", "avg_duration_us", "min_duration_us", "max_duration_us")
    declared = schema.Table("t", "", tuple(map(schema.KERNEL_STATS.column, names)))
    rows = ((1, 10.0, 9.0, 11.0), (3, 2.0, 1.0, 50.0), (0, np.nan, np.nan, np.nan))
    frames = [pd.DataFrame([("h", "k", *row)], columns=list(names)) for row in rows]
    (found,) = pooled(declared, frames, [1, 1, 1]).to_dict("records")
    assert found == {
        "host": "h",
        "kernel_name": "k",
        "occurrences": pytest.approx(4 / 3),
        "avg_duration_us": 4.0,
        "min_duration_us": 1.0,
        "max_duration_us": 50.0,
    }


def test_a_side_of_one_capture_is_that_capture() -> None:
    frame = captures(PROGRAMS[0])[0].table("op_stats")
    pd.testing.assert_frame_equal(pooled(schema.OP_STATS, [frame], [1]), frame, check_dtype=False)


def test_sums_are_divided_before_they_weigh_and_are_added_up() -> None:
    names = ("host", "kernel_name", "occurrences", "avg_duration_us")
    declared = schema.Table("t", "", tuple(map(schema.KERNEL_STATS.column, names)))
    frames = [pd.DataFrame([("h", "k", n, us)], columns=list(names)) for n, us in ((10, 2.0), (60, 8.0))]
    (found,) = pooled(declared, frames, [10, 20]).to_dict("records")  # 1 of 2 µs and 3 of 8 µs a step
    assert (found["occurrences"], found["avg_duration_us"]) == (2.0, 6.5)


@pytest.mark.parametrize("name", ["op_stats", "kernel_stats", "copies", "input_pipeline"])
def test_a_figure_per_step_is_the_mean_of_those_of_the_captures(name: str) -> None:
    assert name in POOLED
    metric = f"{schema.table(name).headline}_per_step"
    shown = both().table(name)
    for side, program in zip(SIDES, PROGRAMS, strict=True):
        each = [compare(one, one).table(name)[f"{metric}_baseline"].sum() for one in captures(program)]
        assert shown[f"{metric}_{side}"].sum() == pytest.approx(np.mean(each), rel=1e-12)


# --- the step


def test_parts_and_ops_add_up_to_the_step_time_of_all_captures() -> None:
    pair = pair_of(both())
    (figure,) = (
        one
        for one in dashboard(pair_with(both(), pair.candidate.id), attribution_of(pair).parts)
        if one.label == STEP_TIME
    )
    for side, one, shown in zip(SIDES, pair.runs, (figure.baseline, figure.candidate), strict=True):
        times = [captured.info.step_time_ms_mean * 1e3 for captured in captures(PROGRAMS[SIDES.index(side)])]
        assert both().step_time_us(one) == pytest.approx(np.mean(times), rel=1e-12)
        assert shown == both().step_time_us(one)
        assert attribution_of(pair).parts[f"mean_us_{side}"].sum() == pytest.approx(shown, rel=1e-12)


def test_the_order_of_captures_changes_nothing_but_the_name_of_the_run() -> None:
    ours = captures(PROGRAMS[0])
    expected = both()
    for theirs in tuple(permutations(captures(PROGRAMS[1])))[::2]:
        found = of_all(ours[::-1], theirs)
        assert found.candidates[0].content_id == expected.candidates[0].content_id
        assert found.verdict[theirs[0].id] == expected.verdict[expected.candidates[0].id]
        rows, known = (one.table("op_stats").drop(columns=["baseline", "candidate"]) for one in (found, expected))
        pd.testing.assert_frame_equal(rows, known, rtol=1e-12)


def test_swapping_sides_mirrors_them() -> None:
    there, back = pair_of(both()), pair_of(of_all(*map(captures, PROGRAMS[::-1])))
    ours, theirs = attribution_of(there).parts, attribution_of(back).parts
    assert ours["delta_us"].to_numpy() == pytest.approx(-theirs["delta_us"].to_numpy(), abs=1e-6)
    rows, mirrored = (pair.diff().set_index("op_name")["self_time_us_delta"] for pair in (there, back))
    assert rows.sum() == pytest.approx(-mirrored.sum())


# --- which capture stands for all


def test_the_capture_nearest_to_the_mean_step_stands_for_all_under_the_name_of_the_run() -> None:
    first, odd, typical = (capture(name, us, a=us / 2) for name, us in (("b1", 140.0), ("b2", 90.0), ("b3", 110.0)))
    found = compare(capture("a", 100.0, a=50.0), first, repeats={"b1": [odd, typical]})
    (shown,) = found.candidates
    assert (shown.id, shown.name, shown.content_id) == ("b1", "b1", typical.content_id)
    assert found.notes[0].endswith("is that of the one nearest to the mean step: b3 for b1.")
    assert [one.content_id for one in found.side_of(shown).runs[1:]] == sorted([first.content_id, odd.content_id])
    assert found.step_time_us(first) == found.step_time_us(shown), "a run is known by its id"


def test_of_two_captures_the_same_one_stands_for_both_whichever_is_given_first() -> None:
    for us in (90.3, 77.7, 101.9):
        one, other, baseline = (capture(name, time, a=time / 2) for name, time in (("b", us), ("c", 123.1), ("a", 9.0)))
        there, back = compare(baseline, one, repeats={"b": [other]}), compare(baseline, other, repeats={"c": [one]})
        assert {there.candidates[0].content_id, back.candidates[0].content_id} == {"b"}


def test_another_capture_stands_for_all_if_it_is_chosen_and_no_pooled_figure_changes() -> None:
    first, odd, typical = (capture(name, us, a=us / 2) for name, us in (("b1", 140.0), ("b2", 90.0), ("b3", 110.0)))
    repeats = {"b1": [odd, typical]}
    usual, found = (compare(capture("a", 100.0, a=50.0), first, repeats=repeats, captures=c) for c in ((), ("b2",)))
    (shown,) = found.candidates
    assert (shown.id, shown.content_id) == ("b1", odd.content_id)
    assert found.notes[0].endswith("the chosen one, or else of the one nearest to the mean step: b2 for b1.")
    assert found.verdict == usual.verdict and found.step_time_us(shown) == usual.step_time_us(shown)
    metric = "self_time_us_per_step_candidate"
    assert found.table("op_stats")[metric].tolist() == pytest.approx(usual.table("op_stats")[metric].tolist())
    with pytest.raises(Unknown, match="unknown capture 'b7'; must be one of: "):
        compare(capture("a", 100.0, a=50.0), first, repeats=repeats, captures=("b7",))


def test_a_capture_counted_twice_is_left_out_with_a_remark() -> None:
    before, after, more = (capture(name, us, a=us / 2) for name, us in (("a", 100.0), ("b", 120.0), ("c", 130.0)))
    found = compare(before, after, repeats={"a": [more, after], "b": [more]})
    assert [len(found.side_of(one).runs[1:]) for one in (before, after)] == [1, 0]
    assert found.notes[:2] == (
        "b is compared or counted already, so it is no capture of a.",
        "c is compared or counted already, so it is no capture of b.",
    )


def test_an_op_that_one_capture_lacks_counts_as_0_there_and_is_not_judged() -> None:
    with_it, without = capture("b", 100.0, a=50.0, extra=30.0), capture("b2", 100.0, a=50.0)
    found = compare(capture("a", 100.0, a=50.0, extra=30.0), with_it, repeats={"b": [without]}).table("op_stats")
    row = found.set_index("op_name").loc["extra"]
    assert row["self_time_us_per_step_candidate"] == 15.0
    assert (row["status"], row["verdict"]) == ("matched", "untested")


def test_an_execution_of_a_program_is_the_mean_of_those_of_the_captures() -> None:
    rows = pair_of(both()).instructions()
    for side, program in zip(SIDES, PROGRAMS, strict=True):
        alone = [pair_of(compare(one, one)).instructions() for one in captures(program)]
        each = [one["execution_time_us_baseline"].sum() for one in alone]
        assert rows[f"execution_time_us_{side}"].sum() == pytest.approx(np.mean(each), rel=1e-9)


def test_what_is_of_one_capture_says_of_which() -> None:
    chosen = {of: one.found.name for of, one in zip("AB", pair_of(both()).runs, strict=True)}
    said = " and ".join(f"`{name}` for {of}" for of, name in chosen.items())
    assert stand_ins(pair_of(both())) == f"Of several captures, one is shown: {said}."
    assert not stand_ins(pair_of(compare(captures(PROGRAMS[0])[0], captures(PROGRAMS[1])[0])))


def test_a_redacted_report_has_no_name_of_a_capture() -> None:
    redacted = report(both(), "markdown", redact=True)
    assert "2 captures" not in redacted and "3 captures" in redacted
    assert not any(one.found.name in redacted for program in PROGRAMS for one in captures(program))
