"""Waterfalls add up, mirror when the sides are swapped, and are empty where nothing changed."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest
from compare_runs import steps
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tfcompare.compare.attribution import (
    MOVE_COLUMNS,
    NO_OP,
    OP,
    OTHER_HOSTS,
    SHOWN_OPS,
    Waterfall,
    factor_moves,
    has_both,
    moved_most,
    op_moves,
    part_means,
    part_waterfall,
    step_waterfall,
    with_other_hosts,
)
from tfcompare.schema import STEP_PARTS
from tfcompare.views.steps.attribution_words import PART_WORDS, inner_op_sentence, part_sentence, step_budget

PAIR_COLUMNS = [*OP, "op_type_candidate", "op_name_candidate", "status"]


def steps_of(*parts_us: dict[str, float], set_aside: int = 0) -> pd.DataFrame:
    """A `steps` frame from the parts of each step."""
    frame = steps([sum(parts.values()) for parts in parts_us], set_aside=set_aside)
    for part in STEP_PARTS:
        frame[part] = [float(parts.get(part, 0.0)) for parts in parts_us]
    return frame


def means(before: dict[str, float], after: dict[str, float]) -> pd.DataFrame:
    return part_means(steps_of(before), steps_of(after))


def pairs(*rows: tuple[str | None, str | None], place: str = "Host", op_type: str = "Op") -> pd.DataFrame:
    """Rows of a diff from the names on either side; types are the same on both."""
    out = []
    for ours, theirs in rows:
        status = "added" if ours is None else "removed" if theirs is None else "matched"
        out.append((place, op_type, ours or theirs, op_type if theirs else None, theirs, status))
    return pd.DataFrame(out, columns=PAIR_COLUMNS)


def times(by_name: dict[str, float] | None = None, *, place: str = "Host", op_type: str = "Op", **more: float):
    """The times of one side's ops by name."""
    every = {**(by_name or {}), **more}
    frame = pd.DataFrame({"op_name": list(every), "time_us": list(every.values())}).astype({"op_name": "str"})
    return frame.assign(host_or_device=place, op_type=op_type)


def part_of(before: float, after: float) -> pd.Series:
    frame = means({"host_compute_us": before}, {"host_compute_us": after})
    return frame.set_index("part", drop=False).loc["host_compute_us"]


def text(waterfall: Waterfall) -> list[str]:
    return [
        f"{name} {delta:g} {kind}" for name, delta, kind in waterfall.moves[["name", "delta_us", "kind"]].to_numpy()
    ]


def test_the_parts_are_means_over_the_steps_that_count():
    before = steps_of(
        {"input_us": 900}, {"input_us": 10, "other_us": 5}, {"input_us": 30}, {"input_us": 900}, set_aside=1
    )
    parts = part_means(before, steps_of({"input_us": 50})).set_index("part")
    assert list(parts.index) == list(STEP_PARTS)
    found = parts.loc["input_us"]
    assert found[["mean_us_baseline", "mean_us_candidate", "delta_us", "ratio"]].tolist() == [20, 50, 30, 2.5]
    assert found["std_us_baseline"] == pytest.approx(math.sqrt(200))
    assert math.isnan(found["std_us_candidate"]), "a single step has no deviation"
    assert (parts.loc["compile_us", "delta_us"], parts.loc["compile_us", "ratio"]) == (0, 1)
    absent = part_means(steps_of({"input_us": 5}), steps_of().astype(dict.fromkeys(STEP_PARTS, "float64")))
    assert absent[["mean_us_candidate", "delta_us"]].isna().all(axis=None), "missing and not zero"
    assert not has_both(absent)


def test_a_waterfall_goes_through_the_parts_that_either_side_has_in_their_order():
    waterfall = step_waterfall(
        means({"input_us": 100, "device_compute_us": 8000, "other_us": 5}, {"kernel_launch_us": 2000, "other_us": 5})
    )
    assert text(waterfall) == [
        "Input -100 part",
        "Kernel launch 2000 part",
        "Device compute -8000 part",
        "Other 0 part",
    ]
    assert waterfall.levels_us.tolist() == [8105, 8005, 10005, 2005, 2005]
    assert not waterfall.is_empty


def test_a_run_beside_itself_moves_nothing():
    parts = means({"input_us": 100.1, "other_us": 0.2}, {"input_us": 100.1, "other_us": 0.2})
    waterfall = step_waterfall(parts)
    assert waterfall.is_empty
    assert (waterfall.moves["delta_us"] == 0).all()
    assert moved_most(parts) is None
    assert step_budget(parts, {}) == "No part of the average step takes more or less time than before."


some_steps = st.lists(
    st.fixed_dictionaries({part: st.integers(0, 10**12).map(lambda ps: ps / 1e6) for part in STEP_PARTS}),
    min_size=1,
    max_size=6,
)


@law(15)
@given(some_steps, some_steps)
def test_every_waterfall_of_steps_adds_up_and_mirrors(before, after):
    ours, theirs = steps_of(*before), steps_of(*after)
    there, back = step_waterfall(part_means(ours, theirs)), step_waterfall(part_means(theirs, ours))
    assert there.baseline_us == pytest.approx(ours["duration_us"].mean(), abs=1e-3, rel=1e-12)
    assert there.levels_us[-1] == pytest.approx(theirs["duration_us"].mean(), abs=1e-3, rel=1e-12)
    assert there.moves["name"].equals(back.moves["name"])
    assert (there.moves["delta_us"] == -back.moves["delta_us"]).all()


def test_paired_ops_stand_side_by_side_the_largest_change_first():
    rows = pairs(("conv", "conv_1"), ("gone", None), (None, "new"), ("unseen", "unseen"), ("late", "late"))
    moves = op_moves(rows, times(conv=100, gone=30), times(conv_1=40, new=7, late=2))
    assert moves[["name", "kind"]].to_numpy().tolist() == [
        ["conv", "matched"],
        ["gone", "removed"],
        ["new", "added"],
        ["late", "matched"],
    ]
    assert moves["delta_us"].tolist() == [-60, -30, 7, 2]
    assert np.isnan(moves["candidate_us"][1])
    assert np.isnan(moves["baseline_us"][2])
    assert moves["baseline_us"][3] == 0, "a matched op that did not count there took no time"


def test_an_op_is_not_taken_for_another_of_its_name_that_was_added_or_runs_elsewhere():
    moves = op_moves(pairs(("dense_1", "dense"), (None, "dense_1")), times(dense_1=10), times(dense=10, dense_1=4))
    assert moves["delta_us"].tolist() == [4, 0]
    rows = pd.concat([pairs(("dense", "dense")), pairs(("dense", "dense"), place="Device")], ignore_index=True)
    sides = [
        pd.concat([times(dense=on_host), times(dense=on_device, place="Device")], ignore_index=True)
        for on_host, on_device in ((10, 200), (13, 100))
    ]
    moves = op_moves(rows, *sides)
    assert moves[["baseline_us", "candidate_us", "delta_us"]].to_numpy().tolist() == [[200, 100, -100], [10, 13, 3]]


def test_what_the_ops_leave_is_a_move_of_its_own_and_small_ones_are_one():
    many = {f"op{i}": 100.0 + i for i in range(SHOWN_OPS + 3)}
    moves = op_moves(pairs(*((name, name) for name in many)), times(**many), times())
    waterfall = part_waterfall(part_of(2000, 500), moves)
    assert len(waterfall.moves) == SHOWN_OPS + 2
    assert text(waterfall)[0] == "op10 -110 matched"
    assert text(waterfall)[-2:] == [
        "3 other ops -303 others",
        f"No op running {-1500 + sum(many.values()):g} no op running",
    ]
    left = waterfall.moves.iloc[-1]
    assert (left["baseline_us"], left["candidate_us"]) == (2000 - sum(many.values()), 500)
    small = op_moves(pairs(("a", "a"), ("b", "b")), times(a=1000, b=5), times())
    assert text(part_waterfall(part_of(1005, 0), small)) == ["a -1000 matched", "1 other op -5 others"]


amounts = st.one_of(st.none(), st.integers(0, 10**9).map(lambda ps: ps / 1e6))


@law(15)
@given(st.lists(st.tuples(amounts, amounts), max_size=14), st.integers(0, 10**6), st.integers(0, 10**6))
def test_every_waterfall_of_ops_adds_up_and_mirrors(ops, before, after):
    rows = [
        (f"a{i}" if ours is not None else None, f"b{i}" if theirs is not None else None)
        for i, (ours, theirs) in enumerate(ops)
        if (ours, theirs) != (None, None)
    ]
    ours = times(**{f"a{i}": ours for i, (ours, _) in enumerate(ops) if ours is not None})
    theirs = times(**{f"b{i}": theirs for i, (_, theirs) in enumerate(ops) if theirs is not None})
    there = part_waterfall(part_of(before, after), op_moves(pairs(*rows), ours, theirs))
    back = part_waterfall(part_of(after, before), op_moves(pairs(*((b, a) for a, b in rows)), theirs, ours))
    assert there.levels_us[-1] == pytest.approx(after, abs=1e-5)
    assert there.moves["delta_us"].tolist() == pytest.approx((-back.moves["delta_us"]).tolist(), abs=1e-6)
    turned = {"added": "removed", "removed": "added"}
    assert there.moves["kind"].replace(turned).tolist() == back.moves["kind"].tolist()


@law(30)
@given(st.tuples(st.integers(1, 9999), st.integers(1, 9999)), st.tuples(st.integers(1, 999), st.integers(1, 999)))
def test_the_factors_of_a_product_add_up_and_mirror(counts, times_us):
    moves = factor_moves(counts, times_us, ("Launches", "Time each"))
    assert moves["delta_us"].sum() == pytest.approx(counts[1] * times_us[1] - counts[0] * times_us[0])
    back = factor_moves(counts[::-1], times_us[::-1], ("Launches", "Time each"))
    assert moves["delta_us"].tolist() == (-back["delta_us"]).tolist()


@pytest.mark.parametrize(
    ("moves_us", "sentence"),
    [
        (
            {"device_compute": -7000, "kernel_launch": 2000},
            "−5.00 ms per step** = −7.00 ms device compute + 2.00 ms kernel launch",
        ),
        ({"host_compute": 4000, "other": 10}, "+4.01 ms per step** = 4.00 ms host compute + 0.01 ms everything else"),
        ({"idle": 600, "output": 400}, "+1.00 ms per step** = 0.60 ms idle time before `X` + 0.40 ms output"),
        ({"input": -900, "host_compute": 900}, "±0 µs per step** = −900 µs input + 900 µs host compute"),
        (
            {"input": -1000, "host_compute": 600, "other": 700},
            "+0.30 ms per step** = −1.00 ms input + 0.70 ms work of no known step + 0.60 ms host compute",
        ),
        (
            dict.fromkeys((part.removesuffix("_us") for part in STEP_PARTS), 12) | {"compile": -1000, "input": 960},
            "+0.08 ms per step** = −1.00 ms compilation + 0.96 ms input + 0.12 ms everything else",
        ),
    ],
)
def test_the_budget_of_a_step_names_what_is_not_small_beside_the_largest_move(moves_us, sentence):
    before = {f"{part}_us": 1000 for part in moves_us}
    after = {f"{part}_us": 1000 + move for part, move in moves_us.items()}
    assert step_budget(means(before, after), {"idle_us": "before `X`"}) == f"**{sentence}."


@law(20)
@given(st.dictionaries(st.sampled_from(STEP_PARTS), st.integers(-(10**9), 10**9), min_size=1))
def test_the_terms_of_a_budget_add_up_as_they_are_written_and_mirror(deltas):
    before = dict.fromkeys(deltas, 1e9)
    after = {part: 1e9 + delta for part, delta in deltas.items()}
    said, mirrored = step_budget(means(before, after), {}), step_budget(means(after, before), {})
    if "=" not in said:
        assert not any(deltas.values())
        return
    (whole, *terms), turned = numbers_of(said), numbers_of(mirrored)
    assert whole == pytest.approx(sum(terms), abs=1e-9)
    assert turned == [-number for number in (whole, *terms)]


def numbers_of(budget: str) -> list[float]:
    texts = re.findall(r"(?:([−+±]) ?)?([\d.,]+) (?:µs|ms|s) ", budget)
    return [float(number.replace(",", "")) * (-1 if sign == "−" else 1) for sign, number in texts]


def test_what_rounding_leaves_of_other_hosts_is_nothing():
    parts = with_other_hosts(means({"host_compute_us": 10.0}, {"host_compute_us": 10.0}), (10.0 + 1e-9, 640.0))
    row = parts.set_index("part").loc[OTHER_HOSTS]
    assert (row["mean_us_baseline"], row["mean_us_candidate"], row["ratio"]) == (0.0, 630.0, math.inf)


def test_every_part_has_words():
    assert list(PART_WORDS) == [*STEP_PARTS, OTHER_HOSTS]


def sentence_on(part_us: tuple[float, float], before: dict[str, float], after: dict[str, float], op_type: str) -> str:
    """On ops by name, of which those of one name are pairs."""
    rows = [(name if name in before else None, name if name in after else None) for name in before | after]
    moves = op_moves(pairs(*rows, op_type=op_type), *(times(side, op_type=op_type) for side in (before, after)))
    return part_sentence("host_compute_us", part_waterfall(part_of(*part_us), moves), moves)


STAGE = "Iterator::Root::Prefetch::Map"


@pytest.mark.parametrize(
    ("part_us", "before", "after", "op_type", "said"),
    [
        ((100, 40), {"a`b": 80}, {"a`b": 22}, "Op", "`a'b` changed the most: it fell by 58.0 µs per step"),
        ((100, 100), {"a": 40}, {"a": 70}, "Op", "`a` changed the most: it grew by 30.0 µs per step"),
        ((100, 40), {"a": 50, "b": 30}, {"a": 20, "b": 10}, "", "`a` changed the most: it fell by 30.0 µs per step"),
        ((100, 40), {STAGE: 80}, {STAGE: 20}, "Dataset", "`Map` changed the most: it fell by 60.0 µs per step"),
        ((0, 60), {}, {"new": 60}, "Op", "`new` was added and takes 60.0 µs per step"),
        ((60, 0), {"old": 60}, {}, "Op", "`old` was removed, which took 60.0 µs per step"),
        ((60, 90), {"a": 1}, {"a": 1}, "Op", "time in which no op was running grew by 30.0 µs per step"),
        ((0, 60), {"a": 5}, {"b": 5}, "Op", "time in which no op was running grew by 60.0 µs per step"),
        ((65, 5), {"a": 5}, {"a": 35}, "Op", "time in which no op was running fell by 90.0 µs per step"),
    ],
)
def test_the_sentence_on_a_part_names_what_moved_the_most(part_us, before, after, op_type, said):
    assert sentence_on(part_us, before, after, op_type) == f"In the wall time of host compute, {said}."


def test_the_sentence_on_a_part_names_the_ops_of_a_type_together_or_that_nothing_changed():
    ours, theirs = {"a": 50, "b": 30, "c": 5}, {"a": 20, "b": 10, "c": 5}
    assert sentence_on((100, 40), ours, theirs, "Op") == (
        "In the wall time of host compute, the 2 `Op` ops fell by 50.0 µs per step together, most of all `a` "
        "(−30.0 µs)."
    )
    assert sentence_on((60, 60), {"a": 1}, {"a": 1}, "Op") == "Nothing within host compute changed."


def test_the_sentence_on_factors_has_no_time_without_an_op():
    moves = factor_moves((100, 100), (2.0, 4.0), ("Launches", "Time each"))
    assert part_sentence("kernel_launch_us", part_waterfall(part_of(200, 400), moves), moves) == (
        "Within kernel launch, the time each went from 2.00 µs to 4.00 µs."
    )
    moves = factor_moves((100, 50), (2.0, 4.0), ("Launches", "Time each"))
    assert NO_OP not in part_waterfall(part_of(500, 400), moves).moves["kind"].tolist()
    assert list(moves.columns) == MOVE_COLUMNS


def test_the_op_within_a_function_is_named_after_the_iterator():
    assert inner_op_sentence("Decode`Png", -5310.0) == " In its function, most of that is `Decode'Png` (−5.31 ms)."
