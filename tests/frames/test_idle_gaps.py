"""The longest idle gap of each step: on devices together where there are any, else on the host's threads."""

from __future__ import annotations

from tests.frames.tables import rows, run_of
from tests.xspace_builder import event, line, plane, space
from tfcompare.run import Run


def gaps(run: Run) -> list[str]:
    columns = ("step", "host_or_device", "start_us", "duration_us", "op_before", "op_after")
    return rows(run.table("idle_gaps"), *columns)


def host(*steps: tuple[int, tuple[bytes, ...]]) -> bytes:
    markers = [event("train", 1000 * number, 100, step_num=number, _r=1) for number, _ in steps]
    return plane(
        "/host:CPU", line("python", *(e for m, (_, ops) in zip(markers, steps, strict=True) for e in (m, *ops)))
    )


def test_gaps_lie_before_between_and_after_the_ops_of_a_step() -> None:
    run = run_of(
        space(
            host(
                (1, (event("a:A", 1040, 10), event("b:B", 1060, 40))),
                (2, (event("a:A", 2005, 40), event("inner:I", 2010, 5), event("b:B", 2075, 20))),
                (3, (event("a:A", 3000, 30),)),
            )
        )
    )
    assert gaps(run) == ["1 Host 1000 40  a", "2 Host 2045 30 a b", "3 Host 3030 70 a "]


def test_a_step_without_marker_has_no_gap() -> None:
    run = run_of(space(plane("/host:CPU", line("python", event("a:A", 0, 10), event("b:B", 50, 10)))))
    assert gaps(run) == []
