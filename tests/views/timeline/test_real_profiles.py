"""Laws of timelines on real profiles: nothing is lost, nothing is drawn twice, sums agree with the tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.laws import mostly_thorough
from tests.profiles import EACH_KIND, loaded_run
from tests.views.timeline.cases import GPU_PAIR, PAIRS, aligned_pair, open_alone, recorded_pair
from tests.views.timeline.test_layout import check
from tests.xspace_builder import PS_PER_US
from tfcompare.compare.diff import MATCHED
from tfcompare.views.timeline.aligned import ALONE as WITHOUT_PARTNER
from tfcompare.views.timeline.aligned import MOST_RECTANGLES, align
from tfcompare.views.timeline.drawing import Viewport, axes, default_window_us, drawing
from tfcompare.views.timeline.losses import losses
from tfcompare.views.timeline.pairs import OP
from tfcompare.views.timeline.run_pair import Timelines
from tfcompare.views.timeline.run_timeline import NONE

ALONE = mostly_thorough(EACH_KIND, "gpu_filters_16_8", "workers_slow_input")
"""Runs that are compared with themselves."""
USUAL = mostly_thorough(PAIRS, *PAIRS[:3])


@pytest.mark.parametrize("name", ALONE)
def test_the_chosen_step_of_each_side_begins_at_0(name: str) -> None:
    timelines = recorded_pair(name, name)
    if not timelines.all_have_steps:
        assert align(timelines).steps is None
        return
    table = loaded_run(name).table("steps", host=timelines.sides[0].timeline.host).set_index("step")
    for number in {int(table.index[0]), int(table.index[-1]), timelines.sides[0].typical}:
        both = align(timelines, (number, number))
        assert both.steps == (number, number)
        for side in (0, 1):
            assert both.zero_ps[side] / PS_PER_US == pytest.approx(table["start_us"][number], abs=1e-6)
            assert both.lengths_ps[side] / PS_PER_US == pytest.approx(table["duration_us"][number], abs=1e-6)


@pytest.mark.parametrize("names", [*PAIRS[:2], GPU_PAIR[::-1]])
def test_losses_are_the_changes_of_ops_and_waits_of_real_steps(names: tuple[str, str]) -> None:
    both = aligned_pair(*names)
    found = losses(both, count=10**6)
    ours, theirs = (side.timeline.spans for side in both.timelines.sides)
    is_longer = both.lengths_ps[1] >= both.lengths_ps[0]
    sizes = [one.lost_us for one in found]
    assert sizes == sorted(sizes, reverse=is_longer)
    assert all((size > 0) == is_longer for size in sizes)
    ops = [both.timelines.op_rows(side) for side in (0, 1)]
    here = [(spans["step"] == step).to_numpy() for spans, step in zip((ours, theirs), both.steps, strict=True)]
    for one in found:
        partner = both.pairs.partner[0][one.span]
        assert one.op_name == ("" if one.span == NONE else ours["op_name"].iloc[one.span])
        if not one.is_wait:
            change = int(theirs["duration_ps"].iloc[partner]) - int(ours["duration_ps"].iloc[one.span])
            of_op = [within & (op == ops[0][one.span]) for within, op in zip(here, ops, strict=True)]
            if of_op[0].sum() != of_op[1].sum():  # it is one place
                change = int(theirs["duration_ps"][of_op[1]].sum()) - int(ours["duration_ps"][of_op[0]].sum())
            assert one.lost_us * PS_PER_US == pytest.approx(change)
    assert losses(both, count=2) == found[:2]


@pytest.mark.parametrize("names", USUAL)
@pytest.mark.parametrize("look", [Viewport(), Viewport(shift_us=1234.5), Viewport(stretch=True)])
def test_the_first_window_holds_the_compared_steps_of_both_sides(names, look) -> None:
    aligned = aligned_pair(*names)
    low, high = default_window_us(aligned, look)
    assert low < 0 < high
    if not aligned.steps:
        return
    for axis, zero, end in zip(axes(aligned, look), aligned.zero_ps, aligned.end_ps, strict=True):
        assert low < axis.us(zero) < axis.us(end) < high
    ends = [axis.us(end) for axis, end in zip(axes(aligned, look), aligned.end_ps, strict=True)]
    assert high - low < 1.2 * max(ends), "and little more"
    if look.stretch:
        assert ends[0] == pytest.approx(ends[1])


@pytest.mark.parametrize("names", USUAL)
def test_all_that_overlaps_a_window_of_a_real_profile_is_drawn_once(names) -> None:
    """Counted from the tables of spans."""
    aligned = aligned_pair(*names)
    low, high = default_window_us(aligned, Viewport())
    window = (low + 0.4 * (high - low), low + 0.5 * (high - low))
    every = Viewport(window_us=window, width_px=500, opened=frozenset(range(len(aligned.timelines.lanes))))
    frame = drawing(aligned, every)["spans"]
    assert len(frame) <= MOST_RECTANGLES
    for number, (side, axis) in enumerate(zip(aligned.timelines.sides, axes(aligned, every), strict=True)):
        spans = side.timeline.spans
        start, end = spans["start_ps"], spans["start_ps"] + spans["duration_ps"]
        lane = aligned.timelines.lane_numbers[number][spans["lane"]]
        here = (lane >= 0) & (start <= axis.ps(window[1])) & (end >= axis.ps(window[0]))
        drawn = frame[frame["side"] == number]
        counts = drawn.groupby("lane")["count"].sum()
        assert counts.to_dict() == pd.Series(lane[here]).value_counts().sort_index().to_dict()
        busy = (drawn["busy"].astype(float) * drawn["duration"]).sum()
        assert busy == pytest.approx((end - start)[here].sum() / PS_PER_US, rel=1e-5)
        single = drawn[drawn["count"] == 1]
        assert (single["start"] == axis.us(start.to_numpy()[single["id"]])).all()
        assert (drawn.loc[drawn["count"] > 1, ["id", "partner"]] == -1).all(axis=None)


def test_a_run_alone_is_drawn_without_comparison() -> None:
    alone = align(open_alone(loaded_run("gpu_filters_16_8")))
    drawn = drawing(alone, Viewport())
    assert len(drawn["sides"]) == len(drawn["steps"]) == 1
    assert len(drawn["drift"]) == 0
    frame = drawn["spans"]
    assert len(frame) > 0
    assert set(frame["side"]) == {0}
    assert set(frame["status"]) == {0}
    assert set(frame["partner"]) == {-1}
    assert all(len(lane["rows"]) == 1 for lane in drawn["lanes"])


@pytest.mark.parametrize("name", ALONE)
def test_the_spans_of_real_profiles_have_a_place_each(name: str) -> None:
    side = recorded_pair(name, name).sides[0]
    check(side.timeline.spans, side.layout)


@pytest.mark.parametrize("name", ALONE)
def test_in_a_run_beside_itself_every_span_is_its_own_partner(name: str) -> None:
    aligned = aligned_pair(name, name)
    for side, spans in enumerate(one.timeline.spans for one in aligned.timelines.sides):
        compared = aligned.pairs.is_compared[side]
        assert compared.mean() > 0.5
        assert (aligned.pairs.partner[side] == np.where(compared, np.arange(len(spans)), NONE)).all()
        assert not (aligned.partner_ps[side] == WITHOUT_PARTNER).any()
    assert len(aligned.drift_ps) > 0
    assert not aligned.drift_ps.any()
    assert losses(aligned) == []
    drawn = drawing(aligned, Viewport())["spans"]
    assert set(drawn["status"]) <= {0, 1}
    assert (drawn["change"] == 0).all()


@pytest.mark.parametrize("names", PAIRS[1:3])
def test_swapping_the_runs_mirrors_partners(names: tuple[str, str]) -> None:
    timelines, swapped = recorded_pair(*names), recorded_pair(*names[::-1])
    op = None if timelines.all_have_steps else int(timelines.ops_by_time.index[0])
    there, back = align(timelines, op=op).pairs, align(swapped, op=op_in(swapped, timelines, op)).pairs
    for side in (0, 1):
        assert (there.partner[side] == back.partner[1 - side]).all()
        assert (there.is_compared[side] == back.is_compared[1 - side]).all()


def op_in(swapped: Timelines, timelines: Timelines, op: int | None) -> int | None:
    """The row of an op in the diff of the swapped runs."""
    if op is None:
        return None
    row, rows = timelines.op_stats.loc[op], swapped.op_stats
    is_it = (rows["op_name"] == row["op_name_candidate"]) & (rows["host_or_device"] == row["host_or_device"])
    return int(rows.index[is_it & (rows["op_type"] == row["op_type_candidate"])][0])


@pytest.mark.parametrize("names", USUAL)
def test_partners_are_of_rows_that_the_diff_has_matched_and_in_compared_steps(names: tuple[str, str]) -> None:
    aligned = aligned_pair(*names)
    timelines, pairs = aligned.timelines, aligned.pairs
    rows = np.flatnonzero(pairs.partner[0] != NONE)
    partner = pairs.partner[0][rows]
    assert (pairs.partner[1][partner] == rows).all(), "partners of each other"
    ours, theirs = (side.timeline.spans for side in timelines.sides)
    op = timelines.op_rows(0)[rows]
    assert (op == timelines.op_rows(1)[partner]).all()
    diff, is_op = timelines.op_stats, op != NONE
    matches = diff.iloc[op[is_op]]
    assert (matches["status"] == MATCHED).all()
    for column in ("op_name", "op_type"):
        mine, other = (
            spans[column].astype(str).to_numpy()[which] for spans, which in ((ours, rows), (theirs, partner))
        )
        assert (mine[is_op] == matches[column]).all()
        assert (other[is_op] == matches[f"{column}_candidate"]).all()
    if aligned.steps:
        shift = aligned.steps[1] - aligned.steps[0]
        steps = ours["step"].to_numpy()[rows], theirs["step"].to_numpy()[partner]
        assert (steps[1] - steps[0] == shift).all()


@pytest.mark.parametrize("names", PAIRS[:2])
def test_ops_that_run_equally_often_in_both_steps_all_have_partners(names: tuple[str, str]) -> None:
    """Counted apart from how partners are found."""
    aligned = aligned_pair(*names)
    counts = []
    for side, one in enumerate(aligned.timelines.sides):
        here = (one.timeline.spans["step"] == aligned.steps[side]).to_numpy()
        op = aligned.timelines.op_rows(side)
        every = np.bincount(op[here & (op >= 0)], minlength=len(aligned.timelines.op_stats))
        found = here & (op >= 0) & (aligned.pairs.partner[side] != NONE)
        counts.append((every, np.bincount(op[found], minlength=len(every))))
    (ours, matched), (theirs, _) = counts
    same = (ours == theirs) & (ours > 0)
    assert same.sum() > 20
    assert (matched[same] == ours[same]).all()
    assert (matched <= np.minimum(ours, theirs)).all()


@pytest.mark.parametrize("name", ALONE)
def test_self_times_of_the_spans_of_an_op_add_up_to_that_of_op_stats(name: str) -> None:
    timelines = aligned_pair(name, name).timelines
    side, op = timelines.sides[0], timelines.op_rows(0)
    own = pd.Series(timelines.self_time_ps[0]).groupby(op).sum().drop(NONE, errors="ignore") / PS_PER_US
    table = loaded_run(name).table("op_stats", host=side.timeline.host).set_index(list(OP))["self_time_us"]
    expected = table.loc[pd.MultiIndex.from_frame(timelines.op_stats.loc[own.index, list(OP)])]
    assert own.tolist() == pytest.approx(expected.tolist(), abs=1e-3)
