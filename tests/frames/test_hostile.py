"""Profiles that are well formed and make no sense: read, or refused in a sentence; no sum turns over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frames.tables import host_ops, op_steps, run_of, run_with, steps
from tests.fuzz.chain import attempt
from tests.xspace_builder import U64, Event, Plane, Value, chunk, event, integer, line, meta, plane, space

LEAST, MOST = -(1 << 63), (1 << 63) - 1
DAYS_3_US = (1 << 58) / 1e6


def host(*events: Event | bytes) -> Plane:
    return plane("/host:CPU", line("python", *events))


def gpu(*events: Event, **options: object) -> Plane:
    return plane("/device:GPU:0", line("Stream", *events), **options)


def marker(start: float, **stats: Value) -> list[Event]:
    return [event("train", start, 50, **stats), event("op:A", start + 1, 5)]


def markers(stat: str, *numbers: int) -> list[Event]:
    return [e for i, number in enumerate(numbers) for e in marker(60 * i, **{stat: number})]


def tpu(*ops: Event | bytes) -> bytes:
    return space(plane("/device:TPU:0", line("XLA Ops", *ops)))


def started(at: int) -> bytes:
    return space(host(event("op:A", 0, 5)), plane("Task Environment", stats={"profile_start_time": at}))


HOSTILE = {
    "ids of groups": space(
        host(
            *(event("train", 10 * i, 9, group_id=n, step_name=str(n)) for i, n in enumerate((LEAST, MOST, -1, 0))),
            *(event("op:A", 10 * i + 1, 1, group_id=n) for i, n in enumerate((LEAST, MOST, -1, 5, U64(1 << 63)))),
        )
    ),
    "groups on devices only": space(host(*marker(0, _r=1)), gpu(event("k", 0, 5, group_id=3, step_name="x"))),
    "numbers of steps": space(host(*markers("step_num", LEAST, -1, MOST, MOST))),
    "levels of markers": space(host(*markers("_r", LEAST, 1, MOST, 7))),
    "markers within each other": space(
        host(*[event("train", i, 99 - 2 * i, _r=1 + i) for i in range(40)], *marker(99))
    ),
    "a step without end": space(host(*marker(0, _r=1), event("train", 60, DAYS_3_US, _r=1), event("op:A", 61, 1))),
    "its own producer": space(host(*[event("op:A", i, 1, _pt=1, _p=i % 7, _ct=1, _c=i * 3 % 7) for i in range(50)])),
    "launches of one kernel": space(
        host(*[event("l", i, 1, correlation_id=1) for i in range(9)]),
        gpu(*[event("k", i, 1, correlation_id=1, tf_op="op:A") for i in range(9)]),
    ),
    "regions without end or begin": space(
        host(
            event("ThreadpoolListener::StopRegion", 0, 0),
            event("ThreadpoolListener::StartRegion", 5, 0, _ct=1, _c=1),
            event("ThreadpoolListener::StartRegion", 3, 0, _ct=1, _c=1),
            event("ThreadpoolListener::StopRegion", 1, 0),
            event("op:A", 4, 2, _pt=1, _p=1),
        )
    ),
    "stats of other kinds": space(
        host(
            event("train", 0, 50, _r="1", step_num=1.5, iter_num=b"x", group_id="3"),
            event("op:A", 1, 5, _ipl_stage_id="x", _ipl_stage_cat=4, correlation_id=0.5, is_eager="yes"),
        ),
        gpu(
            event("k", 0, 5, {"level 0": 5}, tf_op=b"op:A", hlo_op=7, program_id="x"),
            stats={"device_vendor": 5, "core_count": "many", "memory_size": -1.5, "compute_cap_major": "9"},
        ),
        plane("Task Environment", stats={"profile_start_time": "now"}),
    ),
    "a start beyond all calendars": started(U64((1 << 64) - 1)),
    "a start before all calendars": started(LEAST),
    "planes of one name": space(*[host(*marker(0, _r=1)), gpu(event("k", 0, 5, tf_op="op:A"))] * 5),
    "empty lines": space(plane("/host:CPU", *[chunk(3, b"")] * 5000, line("t", event("op:A", 0, 5)))),
    "names": space(
        host(*[event(n, i, 1) for i, n in enumerate(["a\0b:C", "a\nb:c", ":", "é:É", "x" * (1 << 20) + ":M", "\n"])]),
        gpu(*[event(n, i, 1, tf_op=n) for i, n in enumerate(["a\0b:C", "a\nb:c", ":", "", "\n", "::", "#"])]),
    ),
    "programs of no size": space(
        gpu(event("k", 0, 5, hlo_op="x", program_id=1), event("k", 5, 5, hlo_op="::", program_id=LEAST)),
        plane("/host:metadata", line("", event(meta("m", "", hlo_proto=b""), 0, 0)), ids={"m": 1}),
    ),
    "compilations": space(
        host(
            *[event("backend_compile", i % 3, DAYS_3_US / 99 - 2 * i) for i in range(50)],
            *[event("PjitFunction()", i, 5) for i in range(9)],
            *[event(f"PjitFunction({'f' * (1 << 16)})", 2, DAYS_3_US / 9, tf_function_call=5)],
            *[event(f"XlaCompile:#module={name}#", i, 1, tf_function_call=name) for i, name in enumerate(",\0\n`")],
            *[event("CpuCompiler::RunBackend", i, 1, {"name": name}) for i, name in enumerate((5, b"x", "", "jit_"))],
        ),
        *[plane("/host:metadata", line("", event(meta("jit_", "", hlo_proto=b"\x0b"), 0, 0)))] * 2,
    ),
    "device times": tpu(
        *[
            event(meta("a", "", program_id=n, symbol_id=m), 0, 5, device_offset_ps=n, device_duration_ps=m)
            for n in (LEAST, -1, 0, MOST)
            for m in (LEAST, -1, 0, MOST, U64(1 << 63))
        ]
    ),
    "occurrences": tpu(
        event(meta("a", "", program_id=1, symbol_id=1), 0, 1),
        *[chunk(4, integer(1, 1) + integer(5, n)) for n in (MOST, MOST, LEAST)],
    ),
}


@pytest.mark.parametrize("is_compared", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", HOSTILE)
def test_profiles_that_make_no_sense_are_read(tmp_path: Path, name: str, is_compared: bool) -> None:
    outcome = attempt(HOSTILE[name], tmp_path / "vm.xplane.pb", watch_memory=False, comparing=is_compared)
    assert (outcome.result, outcome.detail) == ("read", "")


def test_idle_time_beyond_all_measure_stays_positive() -> None:
    threads = [
        line(str(i), event("op:A", -DAYS_3_US, 0), event("op:A", DAYS_3_US, 0), at_us=i * 86_400_000_000)
        for i in range(40)
    ]
    run = run_of(space(plane("/host:CPU", *threads)), space(plane("/host:CPU", *threads)))
    idle = run.table("op_stats")["self_time_us"].max()
    assert idle == pytest.approx(2 * (1 << 62) / 1e6)


def test_times_that_cannot_be_take_none() -> None:
    odd = [
        chunk(4, integer(1, 1) + integer(2, at) + integer(3, n)) for at in (LEAST, MOST, 5) for n in (MOST, 7, LEAST)
    ]
    assert host_ops(run_with(host(event("op:A", 0, 10), *odd))) == ["A op 10 10 10", "IDLE IDLE 0 0 0"]


def test_a_group_may_have_any_id() -> None:
    run = run_of(HOSTILE["ids of groups"])
    assert steps(run) == ["a 0 0 9 counted", "a 1 10 9 counted", "a 2 20 9 counted"]
    assert op_steps(run) == ["op 0 2 2", "op 1 1 1", "op 2 1 1"]
