"""Laws of growth: what one more host, capture, step, op and so on costs each operation, in calls and in bytes.

Times say nothing on a machine that has other work as well; counts are the same everywhere. A bound is what the code
takes today per unit, from inputs of `n` and `4 n`; 5 % more calls fail, and an eighth more bytes. If you need fewer
calls, lower the bound. If you need more, look for a loop in Python over what grows before you raise it.

The operations of an axis follow one another on one comparison: each is what it takes after those above it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

from tests.growth.counting import Bound, Calls, assert_calls, assert_kilobytes, count_calls, not_yet, peak_bytes
from tests.growth.operations import DIFF, LOAD, VIEW, comparison_of, load_all, perform
from tests.growth.profiles import Size, saved

T = TypeVar("T")
Made = Callable[[str], tuple[Path, Path]]
Counted = Callable[[str], tuple[dict[str, Calls], dict[str, Calls]]]
SIDES = (("few", 1), ("many", 4))


class Axis(NamedTuple):
    """What grows from `n` to four times as much, and what is there beside it."""

    what: str
    n: int
    beside: Size


AXES = {
    "hosts": Axis("hosts", 3, Size(ops=2)),
    "hosts with tf.data": Axis("hosts", 2, Size(ops=1, iterators=2)),
    "captures": Axis("captures", 2, Size(ops=4)),
    "steps": Axis("steps", 12, Size(ops=6, kernels=4, iterators=2)),
    "ops": Axis("ops", 40, Size()),
    "kernels": Axis("kernels", 40, Size()),
    "instructions": Axis("instructions", 40, Size(programs=1)),
    "programs": Axis("programs", 4, Size(instructions=6)),
    "iterators": Axis("iterators", 8, Size()),
}


WARM = Size(hosts=2, captures=2, ops=12, kernels=6, programs=2, instructions=12, iterators=3, model="warm")


TODAY = [
    Bound("load", "hosts", python=6_267, c=6_302),
    Bound("diff", "hosts", python=60, c=46),  # of 946,000: what is remembered from before makes as many
    Bound("view overview", "hosts", python=0, c=0),
    Bound("view hosts", "hosts", python=179, c=138),
    Bound("report", "hosts", python=812, c=2_943),
    Bound("table spans", "hosts", python=1_804, c=1_862),  # the profiles are read again
    Bound("diff tf_data_pipelines", "hosts with tf.data", python=636, c=569),
    Bound("diff op_stats", "captures", python=16_373, c=13_766),
    Bound("load", "steps", python=0.1, c=0.5),
    Bound("diff op_stats", "steps", python=0, c=0),
    Bound("view timeline", "steps", python=0, c=0),
    Bound("view memory", "steps", python=0, c=0),
    Bound("table spans", "steps", python=0, c=0),
    Bound("load", "ops", python=17, c=55),
    Bound("diff op_stats", "ops", python=524, c=459),
    Bound("view op_stats", "ops", python=26, c=17),
    Bound("table spans", "ops", python=8, c=18),
    Bound("load", "kernels", python=47, c=85),
    Bound("diff kernel_stats", "kernels", python=111, c=118),
    Bound("view kernel_stats", "kernels", python=93, c=100),  # by name, and then by op, as most names differ
    Bound("load", "instructions", python=54, c=151),
    Bound("diff hlo_ops", "instructions", python=10, c=14),
    Bound("view xla", "instructions", python=225, c=330),
    Bound("table spans", "instructions", python=19, c=35),
    Bound("table hlo_edges", "instructions", python=29, c=87),
    Bound("load", "programs", python=602, c=860),
    Bound("diff hlo_ops", "programs", python=40, c=86),
    Bound("view xla", "programs", python=5_272, c=5_634),
    Bound("load", "iterators", python=26, c=68),
    Bound("diff tf_data", "iterators", python=43, c=46),
    Bound("view tf_data", "iterators", python=960, c=714),
    Bound("view input_pipeline", "iterators", python=50, c=43),
]

KILOBYTES = [
    ("hosts", "load", 36.2),
    ("steps", "load", 7.4),
    ("ops", "load", 4.1),
    ("kernels", "load", 10.6),
    ("instructions", "load", 6.8),
    ("iterators", "load", 6.9),
    ("ops", "diff op_stats", 12.0),
    ("steps", "table spans", 9.0),
    ("instructions", "table hlo_edges", 4.5),
]
"""What one more of each takes at the peak."""

LAWS = [
    ("hosts", (LOAD,), 8_000),
    ("hosts", (DIFF, VIEW), 2_000),
    ("captures", (DIFF, VIEW), 20_000),
    ("instructions", (LOAD,), 60),  # they are looked up once and not again for each table
]
"""The Python calls per unit that these operations together may never make."""

WANTED: list[tuple[str, tuple[str, ...], float, str]] = []
"""The Python calls per unit that are yet to be reached, of these operations together, and how."""


class Grown(NamedTuple):
    """The calls of each operation with `n` and `4 n` of an axis, and where these profiles are."""

    few: dict[str, Calls]
    many: dict[str, Calls]
    units: int
    folders: tuple[Path, Path]


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Grown]:
    """What is measured of an axis, once."""
    folder = tmp_path_factory.mktemp("growth")
    load_all(saved(folder / "bare", Size(hosts=4, ops=2)))  # what is imported, compiled and remembered once
    _each(list(dict.fromkeys(bound.operation for bound in TODAY)), saved(folder / "warm", WARM), lambda work: work())

    @cache
    def of_axis(axis: str) -> Grown:
        what, n, beside = AXES[axis]
        operations = [bound.operation for bound in TODAY if bound.of == axis]
        sizes = [replace(beside, model=model, **{what: number}) for model, number in (("few", n), ("many", 4 * n))]
        folders = [saved(folder / f"{axis} {size.model}", size) for size in sizes]
        few, many = (_each(operations, one, count_calls) for one in folders)
        return Grown(few, many, 3 * n, (folders[0], folders[1]))

    return of_axis


def _each(operations: Sequence[str], folder: Path, measure: Callable[[Callable[[], object]], T]) -> dict[str, T]:
    """Each operation by its name, measured."""
    found = {LOAD: measure(partial(load_all, folder))} if LOAD in operations else {}
    others = [one for one in operations if one != LOAD]
    comparison = comparison_of(folder) if others else None
    return found | {one: measure(partial(perform, one, comparison)) for one in others}


@pytest.fixture
def counted(grown: Callable[[str], Grown], bound: Bound) -> Grown:
    """What is measured of the bound's axis, for all of its operations: no test's own time."""
    return grown(bound.of)


@pytest.mark.parametrize("bound", [pytest.param(one, id=f"{one.operation} by {one.of}") for one in TODAY])
def test_calls_per_unit(counted: Grown, bound: Bound) -> None:
    few, many = counted.few[bound.operation], counted.many[bound.operation]
    assert_calls(bound, few, many, counted.units)


@pytest.mark.parametrize(("axis", "operation", "bound"), KILOBYTES)
def test_bytes_per_unit(grown: Callable[[str], Grown], axis: str, operation: str, bound: float) -> None:
    """Tighter than four times the bytes for four times as much: what is always there does not count."""
    found = grown(axis)
    few, many = (_each([operation], folder, peak_bytes)[operation] for folder in found.folders)
    assert_kilobytes(bound, few, many, found.units)


@pytest.mark.parametrize(
    ("axis", "operations", "bound"),
    [*LAWS, *(not_yet(*wanted, why=why) for *wanted, why in WANTED)],
)
def test_calls_of_operations_together(
    grown: Callable[[str], Grown], axis: str, operations: tuple[str, ...], bound: float
) -> None:
    found = grown(axis)
    few, many = (
        sum(calls.python for operation, calls in of_each.items() if operation.startswith(operations))
        for of_each in (found.few, found.many)
    )
    assert (many - few) / found.units <= bound, f"{(many - few) / found.units:,.1f} calls per unit"
