"""Laws of growth for small files that a stranger made: what one more name or program costs, from `n` and `2 n` of it.

Bounds are read as in `test_growth.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from tests.growth.counting import Bound, Calls, assert_calls, assert_kilobytes, count_calls, peak_bytes
from tests.growth.hostile import SHAPES
from tests.growth.operations import comparison_of, load_all, perform


def _compare(*diffs: str) -> Callable[[Path], None]:
    def work(folder: Path) -> None:
        comparison = comparison_of(folder)
        for diff in diffs:
            perform(diff, comparison)

    return work


OPERATIONS = {
    "reading": load_all,
    "comparing ops": _compare("diff op_stats", "diff kernel_stats"),
    "comparing programs": _compare("diff hlo_ops"),
    "showing programs": _compare("view xla"),
    "comparing pipelines": _compare("diff tf_data", "diff tf_data_pipelines"),
}

SIZES = {
    "long names": 80,
    "one name": 40,
    "distinct names": 80,
    "tiny programs": 12,
    "lists of operands": 40,
    "donated parameters": 400,
    "large shapes": 40,
    "one source op": 40,
    "deep names": 40,
    "pipelines": 40,
    "devices": 40,
}
"""The lesser number of words, ops, programs, instructions and parameters."""

WARM = {
    "long names": ("reading", "comparing ops"),
    "one source op": ("reading", "showing programs"),
    "pipelines": ("comparing pipelines",),
}
"""What is done before anything is measured: it imports, compiles and remembers what is needed once."""


TODAY = [
    Bound("reading", "long names", python=0, c=0),
    Bound("comparing ops", "long names", python=4, c=24),
    Bound("reading", "one name", python=29, c=43),
    Bound("comparing ops", "one name", python=264, c=239),
    Bound("reading", "distinct names", python=93, c=193),
    Bound("comparing ops", "distinct names", python=810, c=1_102),
    Bound("reading", "tiny programs", python=3_270, c=2_909),
    Bound("comparing programs", "tiny programs", python=2_541, c=2_203),
    Bound("reading", "lists of operands", python=57, c=109),
    Bound("comparing programs", "lists of operands", python=0, c=0),
    Bound("reading", "donated parameters", python=169, c=164),
    Bound("comparing programs", "donated parameters", python=46, c=40),
    Bound("reading", "large shapes", python=60, c=113),
    Bound("showing programs", "one source op", python=566, c=545),
    Bound("comparing ops", "deep names", python=2_920, c=6_199),
    Bound("comparing pipelines", "pipelines", python=320, c=357),
    Bound("reading", "devices", python=1_528, c=1_346),
]

KILOBYTES = [
    ("comparing ops", "long names", 1.7),
    ("comparing ops", "distinct names", 11.3),
    ("reading", "tiny programs", 3.7),
    ("reading", "donated parameters", 0.5),
    ("reading", "large shapes", 6.3),
    ("showing programs", "one source op", 6.6),
    ("comparing ops", "deep names", 46.4),
]
"""What one more may take at the peak."""

Measure = Callable[[str, str], tuple[Any, Any]]


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path]]:
    """The profiles of `n` and `2 n` of a shape; everything was done once with others."""
    folder = tmp_path_factory.mktemp("hostile")
    for shape, operations in WARM.items():
        warm = _saved(folder / "warm" / shape, shape, 2 * SIZES[shape] - 1)
        for operation in operations:
            OPERATIONS[operation](warm)

    @cache
    def of_shape(shape: str) -> tuple[Path, Path]:
        few, many = (_saved(folder / shape / str(n), shape, n) for n in (SIZES[shape], 2 * SIZES[shape]))
        return few, many

    return of_shape


def _saved(folder: Path, shape: str, n: int) -> Path:
    for side in ("before", "after"):
        run = folder / side / "run-1"
        run.mkdir(parents=True)
        (run / "vm.xplane.pb").write_bytes(SHAPES[shape](n, side))
    return folder


@pytest.fixture(scope="module")
def calls(profiles: Callable[[str], tuple[Path, Path]]) -> Measure:
    @cache
    def of_both(operation: str, shape: str) -> tuple[Calls, Calls]:
        few, many = (count_calls(partial(OPERATIONS[operation], folder)) for folder in profiles(shape))
        return few, many

    return of_both


@pytest.fixture(scope="module")
def peaks(profiles: Callable[[str], tuple[Path, Path]]) -> Measure:
    @cache
    def of_both(operation: str, shape: str) -> tuple[int, int]:
        few, many = (peak_bytes(partial(OPERATIONS[operation], folder)) for folder in profiles(shape))
        return few, many

    return of_both


@pytest.mark.parametrize("bound", [pytest.param(one, id=f"{one.operation}: {one.of}") for one in TODAY])
def test_calls_of_one_more(calls: Measure, bound: Bound) -> None:
    assert_calls(bound, *calls(bound.operation, bound.of), SIZES[bound.of])


@pytest.mark.parametrize(("operation", "shape", "bound"), KILOBYTES)
def test_bytes_of_one_more(peaks: Measure, operation: str, shape: str, bound: float) -> None:
    assert_kilobytes(bound, *peaks(operation, shape), SIZES[shape])
