"""What the panel beside the lanes says of a span and of a range."""

from __future__ import annotations

import pytest

from tests.views.timeline.cases import host_run, span_named, step
from tests.xspace_builder import event
from tfcompare.compare.pairs import pair_with
from tfcompare.comparison import compare
from tfcompare.views.timeline.details import details, ranged
from tfcompare.views.timeline.drawing import Viewport
from tfcompare.views.timeline.hosts import shown_by_default
from tfcompare.views.timeline.selection import range_table
from tfcompare.views.timeline.view import Compared, aligned_at


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """A step of 100 µs in which `x` takes 30 µs, and 10 µs in the candidate; only the baseline runs `y`."""
    folder = tmp_path_factory.mktemp("runs")
    ours = host_run(folder, "a", *step(1, 0, 100, event("x:MatMul", 10, 30), event("y:Relu", 50, 8)))
    theirs = host_run(folder, "b", *step(1, 0, 100, event("x:MatMul", 20, 10)))
    return aligned_at(shown_by_default(pair_with(compare(ours, theirs), theirs.id)))


def test_a_range_has_the_time_in_which_ops_run_of_both_sides_and_the_difference(compared: Compared) -> None:
    for range_us, cells in (
        ((0.0, 100.0), ["38.0 µs", "10.0 µs", "−28.0 µs"]),
        ((25.0, 55.0), ["20.0 µs", "5.00 µs", "−15.0 µs"]),
    ):
        _, coverage = range_table(compared.aligned, Viewport(), range_us)
        found = ranged(compared.shown, compared.aligned, range_us, coverage)
        assert found["header"] == ["", "A", "B", "Change"]
        assert found["rows"] == [["Ops on the host", *cells]]
        length = "100 µs" if range_us[0] == 0 else "30.0 µs"
        assert found["text"] == f"{length} · Ops on the host: A {cells[0]}, B {cells[1]} ({cells[2]})"
        assert found["title"].startswith(f"{length} from ")


def test_a_span_has_its_partner_beside_it_or_says_that_it_has_none(compared: Compared) -> None:
    found = details(compared.shown, compared.aligned, (0, span_named(compared.aligned, 0, "x:MatMul")))
    assert found["title"] == "x"
    assert ["Duration", "30.0 µs", "10.0 µs", "−20.0 µs"] in found["rows"]
    assert found["about"].endswith("here B takes 0.333×")
    alone = details(compared.shown, compared.aligned, (0, span_named(compared.aligned, 0, "y:Relu")))
    assert ["Duration", "8.00 µs", "–", "–"] in alone["rows"]
    assert alone["about"].endswith("only in A, in this step")


def test_spans_of_unrelated_programs_are_not_compared(compared: Compared) -> None:
    aligned = compared.aligned.without_pairs()
    found = details(compared.shown, aligned, (0, span_named(aligned, 0, "x:MatMul")))
    assert found["about"] == "MatMul"
    _, coverage = range_table(aligned, Viewport(), (0.0, 100.0))
    assert ranged(compared.shown, aligned, (0.0, 100.0), coverage)["rows"] == [
        ["Ops on the host", "38.0 µs", "10.0 µs", "–"]
    ]


def test_without_a_span_the_panel_says_what_a_click_does(compared: Compared) -> None:
    for selected in (None, (0, 10**9)):
        assert list(details(compared.shown, compared.aligned, selected)) == ["hint"]
