"""What must hold of the parts of any step.

`LAW_EXAMPLES=500 pytest tests/frames/test_step_parts_laws.py` looks harder.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.profiles import ALL_RUNS, loaded_run
from tests.xspace_builder import Line, Value, event, line, plane, space
from tfcompare import schema
from tfcompare.frames.steps import groups as grouping
from tfcompare.frames.steps.activities import Activity
from tfcompare.frames.steps.device_activities import device_activities
from tfcompare.frames.steps.host_activities import host_activities, timed_host_events
from tfcompare.frames.steps.step_parts import activity_times, find_activities, idle_times, step_parts
from tfcompare.frames.steps.step_sources import find_steps
from tfcompare.frames.steps.steps import Steps
from tfcompare.xspace import XSpace, read
from tfcompare.xspace.reader import parse


def steps_of(xspace: XSpace) -> Steps:
    links = grouping.make_links(xspace)
    stored = grouping.stored_groups(xspace) if links is None else None
    return find_steps(xspace, stored or grouping.group_events(xspace, links, None))


def times(xspace: XSpace) -> tuple[np.ndarray, np.ndarray]:
    """(picoseconds of every part and step, length of every step)."""
    steps = steps_of(xspace)
    return parts_of(xspace, steps), steps.end_ps - steps.start_ps


def parts_of(xspace: XSpace, steps: Steps) -> np.ndarray:
    """Picoseconds of every part and step."""
    idle_ps = idle_times(xspace, steps, find_activities(xspace, steps), [])
    return np.array(list(step_parts(activity_times(xspace, steps), steps, idle_ps).values()))


@pytest.mark.parametrize("name", ALL_RUNS)
def test_parts_make_up_every_step_of_every_profile(name: str) -> None:
    run = loaded_run(name)
    for file in run.found.files:
        found, length = times(read(file.path).space)
        assert (found >= 0).all()
        assert found.sum(axis=0).tolist() == length.tolist()
    table = run.table("steps")
    assert np.allclose(table[list(schema.STEP_PARTS)].sum(axis=1), table["duration_us"], rtol=1e-9, atol=1e-9)


GPU = "/device:GPU:0"
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


def thread(name: str, names: list[str], chosen: list[tuple[int, int, int]], number: int) -> Line:
    events = []
    for which, start, length in chosen:
        what = names[which % len(names)]
        stats: dict[str, Value] = {"_r": 1, "step_num": start} if what == "train" else {"_ct": 1, "_c": start % 4}
        events.append(event(what, start, length, stats | ({"correlation_id": which} if which % 3 == 0 else {})))
    return line(name, *events, id=number)


spans = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60), st.integers(0, 50)), max_size=14)


@settings(max_examples=int(os.environ.get("LAW_EXAMPLES", "30")), deadline=None, derandomize=True)
@given(spans, spans, spans, st.booleans())
def test_parts_make_up_every_step_and_are_those_painted_instant_by_instant(
    one: list[tuple[int, int, int]], two: list[tuple[int, int, int]], three: list[tuple[int, int, int]], gpus: bool
) -> None:
    """Steps lie as they like, over and in one another."""
    first = thread("one", HOST, [(0, 5, 40), *one], 1)
    planes = [plane("/host:CPU", first, thread("two", HOST, two, 2))]
    if gpus:
        planes.append(plane(GPU, thread("Stream", DEVICE, three, 1)))
    xspace = parse(space(*planes))
    steps = steps_of(xspace)
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
    xspace = parse(space(plane("/host:CPU", line("python", *markers, *ops)), plane(GPU, line("Stream", *kernels))))
    found, length = times(xspace)
    assert len(length) > 3_900
    assert found.sum(axis=0).tolist() == length.tolist()
    assert (found[schema.STEP_PARTS.index("device_compute_us")] == 15_000 * 10**6).all()
