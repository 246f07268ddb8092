"""What must hold of any profile and of the parts of any step: how the file is laid out says nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from random import Random

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from tests.frames.tables import activity_times, host, run_of, run_with, steps_in, threads
from tests.laws import law
from tests.xspace_builder import Event, Line, Plane, Stats, event, line, plane, space
from tfcompare import schema
from tfcompare.frames.grouping import combinations
from tfcompare.frames.steps.activities import Activity
from tfcompare.frames.steps.device_activities import device_activities
from tfcompare.frames.steps.host_activities import host_activities, timed_host_events
from tfcompare.frames.steps.step_parts import find_activities, idle_times, step_parts
from tfcompare.frames.steps.steps import Steps
from tfcompare.run import Run
from tfcompare.xspace import XSpace, parse

HOST_EVENTS = (
    lambda at, n: event("train", at, n, _r=1, step_num=at),
    lambda at, n: event("EagerExecute", at, n, is_func=n % 2),
    lambda at, n: event("a:A", at, n),
    lambda at, n: event("b:B", at, n),
    lambda at, n: event("Iterator::Root", at, n),
    lambda at, n: event("python code", at, n),
    lambda at, n: event("made", at, n, _pt=1, _p=at % 3),
    lambda at, n: event("used:C", at, n, _ct=1, _c=at % 3),
    lambda at, n: event("cuLaunchKernel", at, n, correlation_id=at % 5),
)
KERNELS = (
    lambda at, n: event(f"k{n % 2}", at, n, tf_op="a:A", correlation_id=at % 5),
    lambda at, n: event("k", at, n, {"level 0": "b:B#x#"}),
    lambda at, n: event("MemcpyH2D", at, n),
)
Maker = Callable[[int, int], Event]


@st.composite
def profiles(draw: st.DrawFn) -> list[Plane]:
    """A host with some threads and up to two GPUs with some streams; no two events begin at the same time."""
    starts = iter(draw(st.permutations(range(60))))

    def events(makers: tuple[Maker, ...], most: int) -> list[Event]:
        chosen = draw(st.lists(st.tuples(st.sampled_from(makers), st.integers(0, 40)), max_size=most))
        return [make(next(starts), length) for make, length in chosen]

    def plane_of(name: str, makers: tuple[Maker, ...]) -> Plane:
        counts = range(draw(st.integers(1, 3)))
        lines = [line(f"line {i}", *events(makers, 6), id=i, at_us=100 * draw(st.integers(0, 2))) for i in counts]
        return plane(name, *lines)

    gpus = draw(st.integers(0, 2))
    return [plane_of("/host:CPU", HOST_EVENTS), *(plane_of(f"/device:GPU:{i}", KERNELS) for i in range(gpus))]


def with_lines(planes: list[Plane], change: Callable[[Line], Line]) -> list[Plane]:
    return [dataclasses.replace(p, contents=tuple(change(c) for c in p.contents)) for p in planes]


def with_events(planes: list[Plane], change: Callable[[Event], Event]) -> list[Plane]:
    return with_lines(planes, lambda c: dataclasses.replace(c, contents=tuple(change(e) for e in c.contents)))


def tables(run: Run) -> dict[str, pd.DataFrame]:
    return {name: run.table(name) for name in ("op_stats", "op_steps", "steps")}


def same(one: Run, other: Run, times: float = 1) -> None:
    """Equal tables, but for all times of `one` being multiplied first."""
    assert one.info.step_source == other.info.step_source
    for name, frame in tables(one).items():
        in_us = {c: frame[c] * times for c in frame if c.endswith("_us")}
        pd.testing.assert_frame_equal(frame.assign(**in_us), tables(other)[name], obj=name)


@law(5)
@given(profiles(), st.randoms(use_true_random=False), st.integers(0, 10**6))
def test_order_and_begin_do_not_matter_and_twice_as_slow_takes_twice_as_long(
    planes: list[Plane], random: Random, later_us: int
) -> None:
    def shuffled(items: tuple) -> tuple:
        return tuple(random.sample(items, len(items)))

    run = run_of(space(*planes))
    mixed = with_lines(planes, lambda c: dataclasses.replace(c, contents=shuffled(c.contents)))
    mixed = [dataclasses.replace(p, contents=shuffled(p.contents), metadata="before") for p in mixed]
    same(run, run_of(space(*shuffled(tuple(mixed)))))

    recorded_later = with_lines(
        planes, lambda c: dataclasses.replace(c, timestamp_ns=c.timestamp_ns + 1_000_000 * later_us)
    )
    same(run, run_of(space(*recorded_later)))

    moved = with_events(planes, lambda e: dataclasses.replace(e, offset_ps=e.offset_ps + later_us * 10**6))
    later = run_of(space(*moved))
    for name in ("op_stats", "op_steps"):
        pd.testing.assert_frame_equal(run.table(name), later.table(name), obj=name)
    steps = run.table("steps")
    begun = {name: steps[name] + later_us for name in ("start_us", "host_start_us")}
    pd.testing.assert_frame_equal(steps.assign(**begun), later.table("steps"))

    slower = with_events(
        planes, lambda e: dataclasses.replace(e, offset_ps=2 * e.offset_ps, duration_ps=2 * e.duration_ps)
    )
    slower = with_lines(slower, lambda c: dataclasses.replace(c, timestamp_ns=2 * c.timestamp_ns))
    same(run, run_of(space(*slower)), times=2)


@law(4)
@given(profiles(), profiles())
def test_the_order_of_host_files_does_not_matter(one: list[Plane], two: list[Plane]) -> None:
    forth, back = run_of(space(*one), space(*two)), run_of(space(*two), space(*one))
    for name in ("op_stats", "op_steps"):
        pd.testing.assert_frame_equal(forth.table(name), back.table(name), obj=name)
    pd.testing.assert_frame_equal(forth.steps, back.steps)
    assert forth.content_id == back.content_id


@law(5)
@given(profiles())
def test_the_steps_of_a_profile_that_steps_cover_add_up_to_the_whole(planes: list[Plane]) -> None:
    halves = [e for at in (-50, 150) for e in (event("half", at, 200), event("in_half:H", at + 1, 1))]
    host = dataclasses.replace(planes[0], contents=(*planes[0].contents, line("markers", *halves)))
    run = run_with(host, *planes[1:], step_marker="half")
    keys = ["host_or_device", "op_type", "op_name"]
    whole = run.table("op_stats").query("op_type != 'IDLE'").groupby(keys)["self_time_us"].sum()
    by_step = run.table("op_steps").groupby(keys)["self_time_us"].sum()
    pd.testing.assert_series_equal(by_step, whole)


@law(5)
@given(profiles())
def test_busy_and_idle_time_of_a_thread_make_up_its_span(planes: list[Plane]) -> None:
    """Of each thread alone: its ops' self times and its idle time are its span, or the ops' own sum if that is more."""
    for thread in planes[0].contents:
        ops = [e for e in thread.contents if ":" in e.name and e.name != "python code"]
        run = run_with(plane("/host:CPU", thread))
        if not ops:
            continue
        busy = run.table("op_stats").query("op_type != 'IDLE'")["self_time_us"].sum()
        whole = run.table("op_stats")["self_time_us"].sum()
        span = (max(e.offset_ps + e.duration_ps for e in ops) - min(e.offset_ps for e in ops)) / 1e6
        assert abs(whole - max(busy, span)) < 1e-6


FEW = st.tuples(st.integers(0, 2), st.integers(0, 1), st.just(-1))  # combinations that fit into a table
NUMBERS = st.sampled_from([0, 1, 2, 5, -1, 10**15, 2**63 - 1, -(2**63), 1 << 50, 1 << 62])


@law(60)
@given(rows=st.lists(st.tuples(NUMBERS, st.integers(0, 3), NUMBERS), max_size=30) | st.lists(FEW, max_size=30))
def test_each_combination_has_a_number_and_its_first_row(rows: list[tuple[int, int, int]]) -> None:
    firsts, code = combinations(*np.array(rows, np.int64).reshape(-1, 3).T)
    distinct = list(dict.fromkeys(rows))
    assert code.tolist() == [distinct.index(row) for row in rows]
    assert firsts.tolist() == [rows.index(row) for row in distinct]


def parts_of(xspace: XSpace, steps: Steps) -> np.ndarray:
    """Picoseconds of every part and step."""
    idle_ps = idle_times(xspace, steps, find_activities(xspace, steps), [])
    return np.array(list(step_parts(activity_times(xspace, steps), steps, idle_ps).values()))


GPU, TPU = "/device:GPU:0", "/device:TPU:0"
HOST = [
    "train",
    "a:A",
    "IteratorGetNext",
    "ExecutorState::Process",
    "XlaCompile",
    "FunctionRun",
    "MemcpyHtoH",
    "python",
]
DEVICE = ["k", "MemcpyH2D", "MemcpyD2H", "ncclKernel", "MemcpyH2H", "MemcpyD2D"]
CORE = ["%fusion.1", "%copy-done.2", "%while.3", "%all-reduce-done.4", "%infeed.5", "%recv-done.6"]


def chosen_events(names: list[str], chosen: list[tuple[int, int, int]]) -> list[Event]:
    events = []
    for which, start, length in chosen:
        what = names[which % len(names)]
        stats: Stats = {"_r": 1, "step_num": start} if what == "train" else {"_ct": 1, "_c": start % 4}
        events.append(event(what, start, length, stats | ({"correlation_id": which} if which % 3 == 0 else {})))
    return events


spans = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60), st.integers(0, 50)), max_size=14)


@law(30)
@given(spans, spans, spans, st.sampled_from([None, GPU, TPU]))
def test_parts_make_up_every_step_and_are_those_painted_instant_by_instant(
    one: list[tuple[int, int, int]],
    two: list[tuple[int, int, int]],
    three: list[tuple[int, int, int]],
    device: str | None,
) -> None:
    """Steps lie as they like, over and in one another."""
    planes = [threads(chosen_events(HOST, [(0, 5, 40), *one]), chosen_events(HOST, two))]
    if device == GPU:
        planes.append(plane(GPU, line("Stream", *chosen_events(DEVICE, three), id=1)))
    if device == TPU:
        waits = chosen_events(["barrier-cores", "dependency-wait", "anything"], two)
        planes.append(plane(TPU, line("XLA Ops", *chosen_events(CORE, three)), line("XLA TraceMe", *waits, id=1)))
    xspace = parse(space(*planes))
    steps = steps_in(xspace)
    if not steps.has_markers:
        return
    found = activity_times(xspace, steps)
    rows = timed_host_events(xspace)
    doing = list(zip(*(a.tolist() for a in device_activities(xspace)), strict=True))
    on_host = list(zip(rows.tolist(), host_activities(xspace, rows).tolist(), strict=True))
    doing += [(row, what) for row, what in on_host if what == Activity.LAUNCH_CALL]
    led = [(row, what) for row, what in on_host if what > Activity.LAUNCH_CALL and steps.is_linked[row]]
    for i in range(len(steps.number)):
        painted = np.full(int(steps.end_ps[i] - steps.start_ps[i]) // 10**6, len(Activity))
        for row, what in doing + [(row, what) for row, what in led if steps.of_event[row] == i]:
            begin = (xspace.events.start_ps[row] - steps.start_ps[i]) // 10**6
            until = begin + xspace.events.duration_ps[row] // 10**6
            here = painted[max(0, begin) : max(0, until)]
            np.minimum(here, what, out=here)
        expected = np.bincount(painted, minlength=len(Activity) + 1)[: len(Activity)] * 10**6
        assert found[i].tolist() == expected.tolist()
    made_up = parts_of(xspace, steps)
    assert made_up.sum(axis=0).tolist() == (steps.end_ps - steps.start_ps).tolist()
    assert (made_up >= 0).all()


def test_thousands_of_steps_over_one_another() -> None:
    """All kernels lie in all steps: pairs of the two would be a hundred million and more."""
    markers = [event("TraceContext", i, 40_000, step_num=i) for i in range(4_000)]
    ops = [event("op:A", i + 0.25, 0.5) for i in range(4_000)]
    kernels = [event("k", 4_000 + i, 0.5) for i in range(30_000)]
    xspace = parse(space(host(*markers, *ops), plane(GPU, line("Stream", *kernels))))
    steps = steps_in(xspace)
    found = parts_of(xspace, steps)
    assert len(steps.number) > 3_900
    assert found.sum(axis=0).tolist() == (steps.end_ps - steps.start_ps).tolist()
    assert (found[schema.STEP_PARTS.index("device_compute_us")] == 15_000 * 10**6).all()
