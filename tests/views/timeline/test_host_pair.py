"""Two hosts of a run on one axis, aligned at the collective in which they wait for each other."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from tests.frames.tables import run_of
from tests.profiles import loaded_run
from tests.xspace_builder import PS_PER_US, event, line, plane, space
from tfcompare.compare.pairs import pair_with
from tfcompare.errors import Unknown
from tfcompare.run import Run
from tfcompare.views.timeline.aligned import Aligned, align
from tfcompare.views.timeline.drawing import Viewport, axes, drawing
from tfcompare.views.timeline.host_pair import HostPair, compare_hosts, meeting, with_itself
from tfcompare.views.timeline.losses import Loss, losses, window_of
from tfcompare.views.timeline.run_pair import Timelines, open_timelines

STEPS = 8
EVER = (-(10**15), 10**15)


def worker(
    *,
    reads_us: float = 100,
    pauses_us: float = 0,
    clock_us: float = 0,
    scatter_us: float = 0,
    begins_us: float = 0,
    first_step: int = 0,
    collective: str = "sum:CollectiveReduceV2",
    steps: int = STEPS,
) -> bytes:
    """A worker that reads, computes for 50 µs, pauses, and waits in a collective until 900 µs after the step's time.

    Its clock shows `clock_us` more, its steps begin `begins_us` later, and the ends of its collectives scatter.
    """
    events = [event("start:NoOp", 0, 1)]
    for number in range(steps):
        at = 1_000 * number + clock_us
        start, reached = at + begins_us, at + begins_us + reads_us + 60 + pauses_us
        end = at + 900 + scatter_us * (-1) ** number
        events += [
            event("train", start, at + 1_000 - start, step_num=number + first_step, _r=1),
            event("data/read:ReadFile", start, reads_us),
            event("layer:MatMul", start + reads_us + 10, 50),
            event(collective, reached, end - reached),
            event("update:AssignAdd", end + 20, 30),
        ]
    return space(plane("/host:CPU", line("python", *events)))


@cache
def run() -> Run:
    """What each host does differently than `a`: see `worker`."""
    return run_of(
        worker(),
        worker(reads_us=400, clock_us=5_000),
        worker(begins_us=200, reads_us=90),
        worker(pauses_us=250),
        worker(scatter_us=20),
        worker(reads_us=150, scatter_us=-20),
        worker(scatter_us=20),
        worker(first_step=100, reads_us=300),
    )


@cache
def opened(ours: str, theirs: str) -> tuple[HostPair, Timelines]:
    return open_hosts(run(), ours, theirs)


def open_hosts(of: Run, ours: str, theirs: str) -> tuple[HostPair, Timelines]:
    hosts = compare_hosts((of, ours), (of, theirs))
    return hosts, open_timelines(pair_with(hosts.comparison), ours)


def beside(hosts: HostPair, timelines: Timelines, step: int = 4) -> Aligned:
    """Two hosts of a run in a step of this number on the first."""
    steps = step, hosts.steps[step]
    return align(timelines, steps, meeting=meeting(hosts, timelines, steps))


def ends_us(aligned: Aligned, step: int) -> list[float]:
    """When the collective of a step ends on the common axis, host by host, read from the spans themselves."""
    found = []
    for side, axis in zip(aligned.timelines.sides, axes(aligned, Viewport()), strict=True):
        spans = side.timeline.spans
        (row,) = np.flatnonzero((spans["op_type"] == "CollectiveReduceV2") & (spans["step"] == step))
        found.append(axis.us(int(spans["start_ps"].iloc[row] + spans["duration_ps"].iloc[row])))
    return found


def test_collectives_of_hosts_whose_clocks_differ_end_at_time_0() -> None:
    for step in (1, 4):
        assert ends_us(beside(*opened("a", "b"), step), step) == pytest.approx([0, 0], abs=1e-6)


def test_the_host_that_reaches_the_collective_last_is_late_by_what_it_reads_longer() -> None:
    aligned = beside(*opened("a", "b"))
    meets = aligned.meeting
    assert (meets.collective, meets.offset_us, meets.error_us) == ("sum", 5_000, 0)
    assert meets.late_us == pytest.approx(300)
    assert meets.is_ordered(meets.late_us)
    drift = aligned.drift(EVER) / PS_PER_US
    since = drift.set_index("at_ps")["behind_ps"]
    assert since[-900.0].tolist() == [0, 0], "the step begins at once"
    assert since[-740.0].tolist()[0] == pytest.approx(300), "late at the collective"
    assert since[0.0] == 0, "and together at its end"
    (lost,) = losses(aligned)
    assert (lost.op_name, lost.is_wait, lost.lost_us) == ("data/read", False, pytest.approx(300))


def test_seen_from_the_slow_host_the_other_one_is_early_and_gains() -> None:
    aligned = beside(*opened("b", "a"))
    assert aligned.meeting.late_us == pytest.approx(-300)
    assert [(one.op_name, one.lost_us) for one in losses(aligned)] == [("data/read", pytest.approx(-300))]


def test_hosts_closer_than_the_clock_error_have_no_order_and_nothing_lost() -> None:
    aligned = beside(*opened("e", "f"))
    meets = aligned.meeting
    assert meets.error_us == pytest.approx(1.96 * 1.4826 * 40)
    assert abs(meets.late_us) < meets.error_us
    assert not meets.is_ordered(meets.late_us)
    assert losses(aligned) == []
    assert max(ends_us(aligned, 4)) - min(ends_us(aligned, 4)) <= meets.error_us


def test_a_host_beside_a_copy_of_itself_neither_drifts_nor_has_a_colour() -> None:
    aligned = beside(*opened("e", "g"))
    assert aligned.meeting.late_us == 0
    drawn = drawing(aligned, Viewport())
    assert len(drawn["drift"]) > 4
    assert (drawn["drift"]["behind"] == 0).all()
    spans = drawn["spans"]
    is_op = np.array([":" in name for name in drawn["names"]])[spans["name"]]
    assert is_op.sum() > 6
    assert set(spans["status"][is_op]) == {1}, "each op has its partner"
    assert (spans["change"] == 0).all()


def test_a_host_that_only_begins_later_loses_nothing_in_its_step() -> None:
    aligned = beside(*opened("a", "c"))
    meets = aligned.meeting
    assert meets.late_us == pytest.approx(190)
    assert meets.behind_us(aligned.begin_ps) == pytest.approx(200)
    assert losses(aligned) == []


def test_time_lost_right_before_the_collective_is_a_wait_before_it() -> None:
    aligned = beside(*opened("a", "d"))
    (lost,) = losses(aligned)
    assert lost == Loss("sum", True, 250.0, aligned.meeting.span, -740.0, -740.0, 250.0)
    assert window_of(aligned, Viewport(), lost) == pytest.approx((-740, -490))


def test_steps_that_hosts_number_differently_are_the_same_step() -> None:
    aligned = beside(*opened("a", "h"))
    assert aligned.steps == (4, 104)
    assert aligned.meeting.late_us == pytest.approx(200)


def test_with_fewer_steps_than_an_offset_needs_nothing_is_ordered() -> None:
    two_steps = run_of(worker(steps=2), worker(reads_us=400, clock_us=900, steps=2))
    aligned = beside(*open_hosts(two_steps, "a", "b"), 1)
    meets = aligned.meeting
    assert (meets.has_clock, math.isnan(meets.late_us), meets.is_ordered(1e9)) == (False, True, False)
    assert ends_us(aligned, 1) == [0, 0], "at the ends of this step's collective"
    assert losses(aligned) == []
    assert drawing(aligned, Viewport())["clock"] is None


def test_hosts_in_different_collectives_are_aligned_at_their_steps() -> None:
    others = run_of(worker(), worker(collective="other:CollectiveReduceV2", clock_us=700))
    aligned = beside(*open_hosts(others, "a", "b"))
    assert aligned.meeting is None
    assert aligned.zero_ps == aligned.begin_ps


def test_hosts_of_two_runs_have_no_common_step() -> None:
    slow, balanced = loaded_run("workers_slow_input"), loaded_run("workers_balanced")
    hosts = compare_hosts((balanced, "worker0"), (slow, "worker1"))
    assert (hosts.steps, hosts.clocks) == (None, None)
    timelines = open_timelines(pair_with(hosts.comparison), "worker0")
    assert meeting(hosts, timelines, (13, 13)) is None
    assert [side.timeline.host for side in timelines.sides] == ["worker0", "worker1"]


def test_an_unknown_host_is_answered_with_those_that_are() -> None:
    run = loaded_run("workers_slow_input")
    with pytest.raises(Unknown, match="worker9"):
        compare_hosts((run, "worker0"), (run, "worker9"))


def test_the_recorded_slow_worker_is_late_by_the_8_ms_that_it_reads_longer() -> None:
    run = loaded_run("workers_slow_input")
    hosts, timelines = open_hosts(run, "worker0", "worker1")
    late, apart = [], []
    for step, theirs in list(hosts.steps.items())[1:-1]:
        meets = meeting(hosts, timelines, (step, theirs))
        late.append(meets.late_us)
        apart.append(abs(meets.behind_us(meets.left_ps)))
        aligned = align(timelines, (step, theirs), meeting=meets)
        found = losses(aligned)
        assert "read" in [one.op_name for one in found], step
        for place in found:
            begin, end = window_of(aligned, Viewport(), place)
            assert begin < end
    assert 7_000 < np.median(late) < 10_000
    assert np.mean(np.array(apart) <= meets.error_us) > 0.8


def test_two_steps_of_one_host_are_compared_like_those_of_two_runs() -> None:
    run = loaded_run("tensorflow_filters_16_8")
    hosts = with_itself(run, "localhost")
    pair = pair_with(hosts.comparison)
    assert pair.baseline.id != pair.candidate.id and not pair.is_single
    assert hosts.steps is None, "each side chooses a step of its own"
    aligned = align(open_timelines(pair, "localhost"), (20, 6))
    lengths = run.table("steps").set_index("step")["duration_us"]
    shown = [side.steps.set_index("step")["duration_ps"] / 1e6 for side in aligned.timelines.sides]
    assert [shown[0][20], shown[1][6]] == pytest.approx([lengths[20], lengths[6]])
    assert max(one.lost_us for one in losses(aligned)) > 1_000, "the slow step loses time against the usual one"
