"""When hosts reach a collective, though their profiles count time from different instants."""

from __future__ import annotations

import pytest

from tests.frames.tables import run_of
from tests.profiles import loaded_run
from tests.xspace_builder import event, line, plane, space
from tfcompare.run import Run
from tfcompare.views.hosts.clocks import clocks, first_collectives
from tfcompare.xspace.space import PS_PER_US

STEPS = 12
MS = 1000.0


def worker(*, arrives_ms: float, begins_ms: float = 0, scatter_ms: float = 0, op: str = "sum") -> bytes:
    """A worker whose profile shows everything `begins_ms` later, and the ends of its collectives with some scatter.

    It reaches the collective of each step of 20 ms after `arrives_ms`.
    """
    events = [event("start:NoOp", 0, 1)]
    for number in range(STEPS):
        start = (begins_ms + 20 * number) * MS
        late = scatter_ms * MS * (-1) ** number
        end = start + 18 * MS + late
        events += [
            event("train", start, 20 * MS, step_num=number, _r=1),
            event("layer:MatMul", start, arrives_ms * MS - 10),
            event(f"{op}:CollectiveReduceV2", start + arrives_ms * MS, end - start - arrives_ms * MS),
            event("other:CollectiveReduceV2", end + 10, 50),
        ]
    return space(plane("/host:CPU", line("python", *events)))


def test_profiles_are_aligned_by_the_ends_of_collectives() -> None:
    found = clocks(
        run_of(worker(arrives_ms=10), worker(arrives_ms=4, begins_ms=500), worker(arrives_ms=6, begins_ms=7))
    )
    assert found.offsets["host"].tolist() == ["a", "b", "c"]
    assert found.offsets["offset_us"].tolist() == pytest.approx([0, 500 * MS, 7 * MS])
    assert found.offsets["error_us"].tolist() == pytest.approx([0, 0, 0])
    assert (found.last, found.undecided, found.steps) == ({"a": STEPS - 2, "b": 0, "c": 0}, 0, STEPS - 2)


@pytest.mark.parametrize(("apart_ms", "decided"), [(0.5, False), (4.0, True)])
def test_hosts_closer_than_the_error_of_their_clocks_are_not_ordered(apart_ms: float, decided: bool) -> None:
    late, early = worker(arrives_ms=8 + apart_ms, scatter_ms=0.4), worker(arrives_ms=8, begins_ms=300, scatter_ms=-0.4)
    found = clocks(run_of(late, early))
    assert found.offsets["error_us"].tolist() == pytest.approx([0, 1.96 * 1.4826 * 0.8 * MS])
    assert found.last == {"a": STEPS - 2 if decided else 0, "b": 0}
    assert found.undecided == (0 if decided else STEPS - 2)


def test_the_names_of_hosts_do_not_matter() -> None:
    hosts = [worker(arrives_ms=8.9, scatter_ms=0.4), worker(arrives_ms=8, scatter_ms=-0.4), worker(arrives_ms=7)]
    found, reversed_names = clocks(run_of(*hosts)), clocks(run_of(*hosts[::-1]))
    assert list(found.last.values()) == list(reversed_names.last.values())[::-1]
    assert found.undecided == reversed_names.undecided > 0


def test_hosts_with_different_collectives_are_not_aligned() -> None:
    assert clocks(run_of(worker(arrives_ms=8), worker(arrives_ms=8, op="another"))) is None


def test_one_host_or_hosts_without_collectives_have_no_common_clock() -> None:
    assert clocks(run_of(worker(arrives_ms=8))) is None
    steps = [event("train", 100 * i, 90, step_num=i, _r=1) for i in range(STEPS)]
    quiet = space(plane("/host:CPU", line("python", *steps, *(event("a:A", 100 * i, 5) for i in range(STEPS)))))
    assert clocks(run_of(quiet, quiet)) is None


def test_hosts_without_steps_have_no_common_clock() -> None:
    unmarked = space(plane("/host:CPU", line("python", event("a:A", 0, 5), event("sum:CollectiveReduceV2", 10, 20))))
    assert clocks(run_of(unmarked, unmarked)) is None
    assert clocks(run_of(worker(arrives_ms=8), unmarked)) is None


def test_the_slow_worker_of_the_sample_arrives_last_and_nobody_of_the_balanced_one() -> None:
    slow, balanced = clocks(loaded_run("workers_slow_input")), clocks(loaded_run("workers_balanced"))
    assert slow.last["worker1"] >= 0.9 * slow.steps
    assert max(balanced.last.values()) < 0.5 * balanced.steps


def assert_that_they_are_those_of_the_timeline(run: Run, host: str) -> int:
    read, spans = run.tables.host_table("collectives", host=host), first_collectives(run.tables.timeline(host)[1])
    spans = spans[spans["step"] >= 0].sort_values("step")
    assert (read["step"].tolist(), read["name"].tolist()) == (spans["step"].tolist(), spans["name"].tolist())
    start_us = read["start_ps"] / PS_PER_US
    assert start_us.tolist() == spans["start_us"].tolist()
    assert (start_us + read["duration_ps"] / PS_PER_US).tolist() == spans["end_us"].tolist()
    return len(read)


def test_the_first_collectives_are_those_of_the_timeline() -> None:
    slow = loaded_run("workers_slow_input")
    assert all(assert_that_they_are_those_of_the_timeline(slow, host) for host in slow.host_names)


def test_of_collectives_on_threads_and_devices_the_first_counts() -> None:
    """A kernel that is named like one, of an op, and an event; of those that start together the host's."""
    host = [event("train", 1000 * i, 900, step_num=i, _r=1) for i in range(3)]
    host += [event("sum:CollectiveReduceV2", 100, 50), event("late:NcclAllReduce", 2500, 50)]
    kernels = [event("ncclKernel", at, 60, tf_op="layer/sum:Sum") for at in (100, 1400, 2400, 3200)]
    run = run_of(
        space(
            plane("/host:CPU", line("python", *sorted(host, key=lambda one: one.offset_ps))),
            plane("/device:GPU:0", line("Stream #7(Compute)", *kernels, id=7)),
        )
    )
    assert_that_they_are_those_of_the_timeline(run, "a")
    assert run.tables.host_table("collectives")["name"].tolist()[0] == "sum"
