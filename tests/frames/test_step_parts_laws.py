"""What must hold of the parts of any step."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.frames.tables import activity_times, host, steps_in, threads
from tests.laws import law
from tests.xspace_builder import Event, Stats, event, line, plane, space
from tfcompare import schema
from tfcompare.frames.steps.activities import Activity
from tfcompare.frames.steps.device_activities import device_activities
from tfcompare.frames.steps.host_activities import host_activities, timed_host_events
from tfcompare.frames.steps.step_parts import find_activities, idle_times, step_parts
from tfcompare.frames.steps.steps import Steps
from tfcompare.xspace import XSpace, parse


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
