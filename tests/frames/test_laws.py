"""What must hold of any profile: how the file is laid out says nothing, and time is only ever a difference."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from random import Random

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from tests.frames.tables import run_of, run_with
from tests.laws import law
from tests.xspace_builder import Event, Line, Plane, event, line, plane, space
from tfcompare.frames.grouping import combinations
from tfcompare.run import Run

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


NUMBERS = st.sampled_from([0, 1, 2, 5, -1, 10**15, 2**63 - 1, -(2**63), 1 << 50, 1 << 62])


@law(60)
@given(rows=st.lists(st.tuples(NUMBERS, st.integers(0, 3), NUMBERS), max_size=30))
def test_each_combination_has_a_number_and_its_first_row(rows: list[tuple[int, int, int]]) -> None:
    firsts, code = combinations(*np.array(rows, np.int64).reshape(-1, 3).T)
    distinct = list(dict.fromkeys(rows))
    assert code.tolist() == [distinct.index(row) for row in rows]
    assert firsts.tolist() == [rows.index(row) for row in distinct]
