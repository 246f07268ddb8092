"""Who is the slowest host, what it does longer, and how hosts of two runs are paired."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest

import tfcompare as tfc
from tests.profiles import compared_runs, loaded_run
from tests.xspace_builder import Event, event, line, meta, plane, space
from tfcompare.compare.pairs import pair_with
from tfcompare.run import Run
from tfcompare.tables.hosts import straggler
from tfcompare.views.hosts import figures as hosts
from tfcompare.views.hosts import figures as slowest_host
from tfcompare.views.hosts.figures import groups_of
from tfcompare.views.hosts.words import after_headline, host_sentence, verdict_sentence

STEPS = 12
LAYER, SLEEP = "model/layer:MatMul", "model/sleep:PyFunc"
MS = 1000.0


def worker(
    *, layer: float = 6, sleep: float = 2, gap: float = 0, input_ms: float = 1, longest: float = 20, first: int = 0
) -> bytes:
    """A worker whose steps take 20 ms, all but the given milliseconds waiting for the other workers."""
    events: list[Event] = []
    for number in range(STEPS):
        start = number * longest * MS
        wobble = (number % 3) * 0.05 * MS
        begin = start + wobble + input_ms * MS
        waits = begin + (layer + gap + sleep) * MS
        events += [
            event("train", start, longest * MS, step_num=first + number, _r=1),
            event("IteratorGetNextOp::DoCompute:IteratorGetNext", start, input_ms * MS),
            event(LAYER, begin, layer * MS),
            event(SLEEP, begin + (layer + gap) * MS, sleep * MS),
            event("sum:CollectiveReduceV2", waits, start + longest * MS - waits),
        ]
    return space(plane("/host:CPU", line("python", *events)))


def run_of(name: str = "run", **workers: bytes) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / name
        place.mkdir()
        for host, data in workers.items():
            (place / f"{host}.xplane.pb").write_bytes(data)
        return tfc.load(place)


def computing(*ops: tuple[str, float], step_ms: float = 20) -> bytes:
    """A worker whose steps run these ops of (name, µs) one after another, and then wait for the other workers."""
    events = []
    for number in range(STEPS):
        start = begin = number * step_ms * MS
        events.append(event("train", start, step_ms * MS, step_num=number, _r=1))
        for name, takes in ops:
            events.append(event(name, begin, takes))
            begin += takes
        events.append(event("sum:CollectiveReduceV2", begin, start + step_ms * MS - begin))
    return space(plane("/host:CPU", line("python", *events)))


@cache
def balanced() -> Run:
    return run_of("balanced", a=worker(), b=worker(), c=worker())


def slowed(host: str = "b", **how: float) -> Run:
    workers = {"a": worker(), "b": worker(), "c": worker()} | {host: worker(**how)}
    return run_of("slowed", **workers)


@cache
def slow_rack(slowest: str = "", slow: str = "rack2") -> Run:
    """4 racks of 3 hosts, of which those whose names begin with `slow` take 3 ms longer, and `slowest` a bit more."""
    names = [f"rack{rack}-host{host}" for rack in range(4) for host in range(3)]
    times = {name: 9 + 0.02 * (name == slowest) if name.startswith(slow) else 6 for name in names}
    return run_of("racks", **{name: worker(layer=layer) for name, layer in times.items()})


def gpu_worker(kernel_ms: float, **stats: object) -> bytes:
    """A worker with one GPU that says `stats` of itself: in each step a kernel, then an all-reduce up to the end."""
    starts = [100 * MS * number for number in range(STEPS)]
    steps = [event("train", start, 90 * MS, step_num=i, _r=1) for i, start in enumerate(starts)]
    launches = [event("a:A", start, MS, correlation_id=i) for i, start in enumerate(starts)]
    begin, length = 5 * MS, kernel_ms * MS
    kernels = [event("k", start + begin, length, correlation_id=i) for i, start in enumerate(starts)]
    waits = [
        event("ncclAllReduce", start + begin + length, 80 * MS - length, correlation_id=i)
        for i, start in enumerate(starts)
    ]
    device = plane("/device:GPU:0", line("Stream #1(Compute)", *kernels, *waits, id=1), stats=stats)
    return space(plane("/host:CPU", line("python", *steps, *launches)), device)


def tpu_worker(compute_ms: float, wait: str = "") -> bytes:
    """A worker with one TPU core whose steps take 20 ms: it computes, waits for the others, then all communicate."""
    starts, waited_ms = [20 * MS * number for number in range(STEPS)], 19 - compute_ms
    ops = [
        event(meta(name, "", program_id=1, symbol_id=symbol, tf_op=tf_op), start + begin * MS, length * MS)
        for start in starts
        for name, symbol, tf_op, begin, length in (
            ("%fusion.1", 1, "layer:dot_general", 0, compute_ms),
            *([(wait, 2, "", compute_ms, waited_ms)] if wait.startswith("%") else []),
            ("%all-reduce.2", 3, "sum:psum", 19, 1),
        )
    ]
    barriers = [event(wait, start + compute_ms * MS, waited_ms * MS) for start in starts if wait == "barrier-cores"]
    steps = line("Steps", *(event(str(number), start, 20 * MS) for number, start in enumerate(starts)))
    return space(plane("/device:TPU:0", steps, line("XLA Ops", *ops, id=1), line("XLA TraceMe", *barriers, id=2)))


@pytest.mark.parametrize(
    ("wait", "where"),
    [
        ("barrier-cores", "the others wait for it."),
        ("%recv-done.4", "the others wait for it in `%recv-done.4`."),
        ("%all-reduce-done.4", "the others wait for it in `%all-reduce-done.4`."),
    ],
)
def test_the_slow_host_is_the_one_that_does_not_wait_on_its_device(wait: str, where: str) -> None:
    run = run_of(a=tpu_worker(14, wait), b=tpu_worker(19), c=tpu_worker(14, wait))
    found = slowest_host.slowest_host(run)
    assert (found.name, found.found.stands_out) == ("b", True)
    assert found.found.excess == pytest.approx(5 * MS)
    sentence = verdict_sentence(found, None, alone=True)
    assert "spent in `layer` (device compute)" in sentence and sentence.endswith(where)
    assert straggler(run.table("steps")) == "b"
    means = hosts.part_means(hosts.steps_by(run, "host"))
    assert hosts.busy_of(means).to_dict() == pytest.approx({"a": 14 * MS, "b": 19 * MS, "c": 14 * MS})
    even = run_of(a=tpu_worker(14, wait), b=tpu_worker(14, wait))
    assert not slowest_host.slowest_host(even).found.stands_out


@pytest.mark.parametrize(
    ("usual", "own", "said"),
    [
        ({"clock_rate": 1_980_000}, {"clock_rate": 1_400_000}, "its device is `1,400 MHz`, the others' `1,980 MHz`"),
        ({"device_type_string": "H100"}, {"device_type_string": "A100"}, "its device is `A100`, the others' `H100`"),
        ({"clock_rate": 1_980_000}, {}, ""),
        ({"device_type_string": "H100"}, {}, ""),
        ({"clock_rate": 1_980_000}, {"clock_rate": 1_980_000}, ""),
    ],
)
def test_another_device_or_clock_of_the_slow_host_is_said(
    usual: dict[str, object], own: dict[str, object], said: str
) -> None:
    found = slowest_host.slowest_host(
        run_of(a=gpu_worker(20, **usual), b=gpu_worker(40, **own), c=gpu_worker(20, **usual))
    )
    assert (found.name, found.found.stands_out) == ("b", True)
    sentence = verdict_sentence(found, None, alone=True)
    assert ("its device is" in sentence) == bool(said)
    assert said in sentence


def test_hosts_of_one_name_that_are_slow_together_are_named_together() -> None:
    found = slowest_host.slowest_host(slow_rack("rack2-host0"))
    assert found.group == ("rack2-host0", "rack2-host1", "rack2-host2")
    assert found.found.excess == pytest.approx(3 * MS, rel=0.05)
    sentence = verdict_sentence(found, None, alone=True)
    assert sentence.startswith(f"Slowest hosts: the 3 hosts `rack2-host…` in {STEPS - 2} of {STEPS - 2} steps, ")
    assert "spent in `model/layer` (host compute); the others wait for them in `CollectiveReduceV2`." in sentence
    again = verdict_sentence(found, found)
    assert again.endswith("in the baseline they were the slowest, too, 3.01 ms more than the others.")
    alone = slowest_host.slowest_host(slow_rack(slow="rack2-host1"))
    assert (alone.group, alone.group_name) == (("rack2-host1",), "")


def test_a_host_on_which_all_ops_take_longer_is_said_to_be_a_slower_machine() -> None:
    def many(factor: float) -> bytes:
        return computing(*((f"layer{op}:MatMul", (op + 1) * 400 * factor) for op in range(6)))

    found = slowest_host.slowest_host(run_of(a=many(1), b=many(1.3), c=many(1)))
    assert found.cause.alike == pytest.approx((1.3, 1.3))
    sentence = verdict_sentence(found, None, alone=True)
    assert "in host compute, where all its ops take 1.30× as long as the others', as on a slower" in sentence


def test_a_host_that_runs_all_its_ops_more_often_is_no_slower_machine() -> None:
    def batches(count: int) -> bytes:
        return computing(*[(f"layer{op}:MatMul", (op + 1) * 200.0) for op in range(6)] * count, step_ms=30)

    found = slowest_host.slowest_host(run_of(a=batches(3), b=batches(5), c=batches(3)))
    assert found is not None
    sentence = verdict_sentence(found, None, alone=True)
    assert "in host compute, where it runs its ops 1.67× as often as the others" in sentence
    assert "slower" not in sentence.replace("Slowest", "")


def test_a_group_is_the_same_whichever_of_its_hosts_is_slowest() -> None:
    ours, theirs = (slowest_host.slowest_host(slow_rack(f"rack2-host{number}")) for number in (0, 1))
    assert (ours.name, theirs.name) == ("rack2-host0", "rack2-host1")
    assert "in the baseline they were the slowest, too" in verdict_sentence(theirs, ours)


def test_an_op_that_runs_more_often_or_on_one_host_only_is_said_to() -> None:
    def times(sleeps: int) -> bytes:
        return computing(("layer:MatMul", 4 * MS), *[(SLEEP, 2 * MS)] * sleeps)

    for usual, slow, expected in (
        (2, 4, "which it runs 2.00× as often as the others"),
        (0, 3, "which the others do not run"),
    ):
        found = slowest_host.slowest_host(run_of(a=times(usual), b=times(slow), c=times(usual)))
        assert f"spent in `model/sleep` (host compute), {expected}; the" in verdict_sentence(found, None, alone=True)


@pytest.mark.parametrize(
    ("host", "how", "part", "op"),
    [
        ("a", {"layer": 12}, "host_compute_us", "model/layer"),
        ("b", {"sleep": 8}, "host_compute_us", "model/sleep"),
        ("c", {"input_ms": 7}, "input_us", ""),
        ("a", {"gap": 6}, "idle_us", ""),
    ],
)
def test_a_planted_slow_host_is_named_with_its_cause(host: str, how: dict[str, float], part: str, op: str) -> None:
    found = slowest_host.slowest_host(slowed(host, **how))
    assert (found.name, found.by, found.found.stands_out) == (host, "host", True)
    assert found.found.slowest_steps == found.found.steps == STEPS - 2
    assert found.found.excess == pytest.approx(6 * MS, rel=0.05)
    assert (found.cause.part, found.cause.op) == (part, op)
    assert found.collective == "CollectiveReduceV2"


def test_a_delay_in_which_no_op_runs_is_placed_between_ops() -> None:
    assert verdict_sentence(slowest_host.slowest_host(slowed(gap=6)), slowest_host.slowest_host(balanced())) == (
        "Slowest host: `b` in 10 of 10 steps, 6.00 ms more than the others per step (95 % confidence interval "
        "4.00 ms to 8.31 ms), spent between `model/layer` and `model/sleep`, where no op runs (idle); the others wait "
        "for it in `CollectiveReduceV2`; in the baseline no host stood out."
    )


def test_after_the_headline_only_the_rest_is_said_of_the_slowest_host() -> None:
    assert after_headline(slowest_host.slowest_host(slowed(gap=6)), slowest_host.slowest_host(balanced())) == (
        "The others wait for `b` in `CollectiveReduceV2`; it takes 4.00 ms to 8.31 ms more per step (95 % confidence "
        "interval); in the baseline no host stood out."
    )
    nobody = slowest_host.slowest_host(balanced())
    assert after_headline(nobody, None, alone=True) == verdict_sentence(nobody, None, alone=True)


def test_balanced_hosts_name_nobody() -> None:
    run = balanced()
    assert (
        verdict_sentence(slowest_host.slowest_host(run), None, alone=True)
        == "No host usually takes longer than the others without collectives and waits."
    )
    slightly = slowed(layer=6.05)
    sentence = verdict_sentence(slowest_host.slowest_host(slightly), slowest_host.slowest_host(slowed("c", layer=12)))
    assert sentence.startswith("No host stands out: the slowest, `b`, is the slowest in 10 of 10 steps and takes 50")
    assert sentence.endswith("; in the baseline `c` was the slowest, 6.00 ms more than the others.")


def test_the_verdict_follows_the_candidate_when_the_sides_are_swapped() -> None:
    one, two = balanced(), slowed("c", layer=12)
    there, back = tfc.compare(one, two), tfc.compare(two, one)
    assert "Slowest host: `c`" in host_sentence(pair_with(there, two.id))
    assert "in the baseline no host stood out" in host_sentence(pair_with(there, two.id))
    assert "No host usually takes longer" in host_sentence(pair_with(back, one.id))
    assert "in the baseline `c` was the slowest" in host_sentence(pair_with(back, one.id))
    ours, theirs, change = hosts.paired_steps(one, two, "host").matrices("busy_us")
    swapped = hosts.paired_steps(two, one, "host").matrices("busy_us")
    assert swapped[0].equals(theirs)
    assert swapped[1].equals(ours)
    assert (swapped[2] == -change).all(axis=None)


def test_a_run_compared_with_itself_has_no_difference() -> None:
    run = slowed(layer=12)
    found = hosts.paired_steps(run, run, "host")
    assert (found.matrices("busy_us")[2] == 0).all(axis=None)
    assert found.pairing.sentence("hosts") == "Hosts are paired by name."
    assert "baseline" not in host_sentence(pair_with(tfc.compare(run, run), run.id))


def test_a_chosen_host_or_a_single_one_has_no_verdict() -> None:
    run, alone = slowed(layer=12), run_of(only=worker())
    assert host_sentence(pair_with(tfc.compare(balanced(), run, host="a"), run.id)) == ""
    assert host_sentence(pair_with(tfc.compare(alone, alone), alone.id)) == ""
    assert slowest_host.slowest_host(alone) is None
    assert hosts.groupings(alone) == ()


def test_hosts_are_paired_by_name_else_by_position() -> None:
    other = run_of("other", x=worker(), y=worker(layer=12), z=worker())
    found = hosts.paired_steps(balanced(), other, "host").pairing
    assert found.names == {"x": "a", "y": "b", "z": "c"}
    assert found.sentence("hosts") == "Hosts are paired by position: the names differ."
    mixed = run_of("mixed", a=worker(), b=worker(), z=worker())
    assert hosts.paired_steps(balanced(), mixed, "host").pairing.sentence("hosts") == (
        "Hosts are paired by name; 1 by position, as their names differ."
    )
    fewer = run_of("fewer", a=worker(), b=worker())
    ours, theirs, change = hosts.paired_steps(balanced(), fewer, "host").matrices("busy_us")
    assert (list(ours.index), list(theirs.index), list(change.index)) == (["a", "b", "c"], ["a", "b"], ["a", "b"])


def test_hosts_without_steps_are_left_out() -> None:
    quiet = space(plane("/host:CPU", line("python", event("idle:NoOp", 0, 5))))
    run = run_of(a=worker(), b=worker(layer=12), c=quiet)
    assert hosts.without_steps(run) == ("c",)
    found = slowest_host.slowest_host(run)
    assert (found.name, found.found.stands_out) == ("b", True)


def test_steps_that_hosts_number_differently_are_joined_by_position() -> None:
    run = run_of(a=worker(), b=worker(layer=12, first=70))
    found = slowest_host.slowest_host(run)
    assert (found.name, found.found.steps) == ("b", STEPS - 2)


def test_devices_of_one_host_are_compared_with_each_other() -> None:
    steps = [(event("train", 100 * i, 90, step_num=i, _r=1), event("a:A", 100 * i, 2)) for i in range(STEPS)]
    host = plane("/host:CPU", line("python", *(one for step in steps for one in step)))
    devices = []
    for number, computing in enumerate((20, 20, 50)):
        kernels = [
            one
            for i in range(STEPS)
            for one in (
                event("k", 100 * i + 5, computing, correlation_id=i),
                event("ncclAllReduce", 100 * i + 5 + computing, 80 - computing, correlation_id=i),
            )
        ]
        devices.append(plane(f"/device:GPU:{number}", line("Stream #1(Compute)", *kernels, id=1)))
    run = run_of(a=space(host, *devices))
    assert hosts.groupings(run) == ("device",)
    assert hosts.groupings(run_of(a=space(host, *devices), b=space(host, *devices))) == ("host", "device")
    found = slowest_host.slowest_host(run)
    assert (found.name, found.by, found.found.stands_out) == ("GPU:2", "device", True)
    assert found.cause.part == "device_compute_us"


def test_runs_without_several_hosts_or_steps_have_no_page() -> None:
    assert hosts.groupings(loaded_run("filters_16_8")) == ()
    assert hosts.groupings(loaded_run("jax_conv_08")) == ()


def test_part_means_are_those_of_the_steps() -> None:
    run = slowed(layer=12)
    means = hosts.part_means(hosts.steps_by(run, "host"))
    steps = run.table("steps").query("included")
    assert means.sum(axis=1).to_dict() == pytest.approx(steps.groupby("host")["duration_us"].mean().to_dict())


def test_the_sample_with_a_slow_input_names_the_worker_and_the_iterator() -> None:
    run = loaded_run("workers_slow_input")
    sentence = host_sentence(pair_with(compared_runs("workers_balanced", "workers_slow_input"), run.id))
    assert sentence.startswith("Slowest host: `worker1` in ")
    assert "spent in `Map` of its input pipeline (`read`); the others wait for it in `CollectiveReduceV2`" in sentence
    assert sentence.endswith("in the baseline no host stood out.")
    found = slowest_host.slowest_host(run)
    assert found.found.low <= 8 * MS <= found.found.high, "the sleep of 8 ms that was planted"


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["rk1-a", "rk1-b", "rk2-a", "rk2-b"], {"rk1-…": (0, 1), "rk2-…": (2, 3), "…-a": (0, 2), "…-b": (1, 3)}),
        (["a1.r1.dc", "b7.r1.dc", "c2.r2.dc", "d9.r2.dc"], {"….r1.dc": (0, 1), "….r2.dc": (2, 3)}),
        (["10.0.1.5_61", "10.0.1.5_62", "10.0.2.7_63", "10.0.2.9_64"], {"10.0.1.5_…": (0, 1), "10.0.2.…": (2, 3)}),
        ([f"worker{i}" for i in range(12)], {}),
        (["slice-w-0", "slice-w-1", "slice-w-2"], {}),
        ([], {}),
    ],
)
def test_groups_are_hosts_whose_names_begin_or_end_alike(names: list[str], groups: dict[str, tuple[int, ...]]) -> None:
    assert groups_of(names) == groups
