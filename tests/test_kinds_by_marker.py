"""Kinds of steps by the names of their markers: a loop that fits and validates, in TensorFlow and JAX."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.frames.tables import host, run_with
from tests.xspace_builder import Event, event, space
from tfcompare.compare.check.conditions import check, parse_condition
from tfcompare.compare.comparability import mismatches
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.step_kinds import are_by_marker, kinds_of
from tfcompare.comparison import compare
from tfcompare.errors import NoSuchKind
from tfcompare.run import Run, load
from tfcompare.views.steps.words import sentences

LENGTH_US = {"fit": 3_000.0, "validate": 9_000.0, "save": 1_000.0}
FIT = ["fit"] * 24
BOTH = ["fit", "fit", "validate"] * 12


def loop(markers: Sequence[str], programs: Sequence[str] = (), first: int = 0) -> list[Event]:
    """Steps of these markers one after the other, each of one op; with `programs`, of one of these of JAX."""
    out, now = [], 0.0
    for i, marker in enumerate(markers):
        length = LENGTH_US[marker] + i % 4
        op = f"jit({programs[i % len(programs)]})/dot:dot" if programs else f"{marker}/Conv2D:Conv2D"
        out += [event(marker, now, length, _r=1, step_num=first + i), event(op, now + 50, length - 100)]
        now += length + 10
    return out


def run_of(markers: Sequence[str], programs: Sequence[str] = ()) -> Run:
    return run_with(host(*loop(markers, programs)))


def saved(folder: Path, *hosts: list[Event]) -> Path:
    files = folder / "plugins" / "profile" / "run"
    files.mkdir(parents=True)
    for i, events in enumerate(hosts):
        (files / f"host{i}.xplane.pb").write_bytes(space(host(*events)))
    return folder


def test_each_marker_is_a_kind_and_the_headline_is_on_one_that_both_runs_have() -> None:
    fit, both = run_of(FIT), run_of(BOTH)
    assert kinds_of(both, None) == {"fit": 23, "validate": 11} and not kinds_of(fit, None)
    comparison = compare(fit, both)
    kinds = pair_with(comparison).step_kinds
    assert {kind.name: kind.counts for kind in kinds} == {"fit": (22, 23), "validate": (0, 11)}
    (of_fit,) = (kind for kind in kinds if kind.name == "fit")
    assert of_fit.times_us == pytest.approx((3_001.5, 3_001.5), rel=1e-3)
    assert pair_with(comparison).main_kind == of_fit
    headline = comparison.headline(names=("A", "B"))
    assert "for steps of `fit`: `B` vs `A`, 3.00 ms vs 3.00 ms" in headline and "No steps of `validate` in" in headline
    back = pair_with(compare(both, fit)).step_kinds
    assert {kind.name: kind.counts[::-1] for kind in back} == {kind.name: kind.counts for kind in kinds}
    assert not any("are slow" in one for one in sentences(both, None, "B"))


def test_one_kind_alone_is_compared_and_checked(tmp_path: Path) -> None:
    places = [saved(tmp_path / name, loop(markers)) for name, markers in (("a", FIT), ("b", BOTH))]
    condition = [parse_condition("step_time>+10%")]
    assert check(compare(*map(load, places)), condition).found[0].outcome != "passed"
    ours, theirs = (load(place, step_kind="fit") for place in places)
    assert (ours.info.steps_included, theirs.info.steps_included) == (22, 23)
    assert check(compare(ours, theirs), condition).found[0].outcome == "passed"
    assert not mismatches(ours, theirs)
    with pytest.raises(NoSuchKind, match="'validate'; its steps: 'fit'"):
        load(places[0], step_kind="validate")


def test_hosts_that_number_their_steps_differently_have_the_kinds_of_one(tmp_path: Path) -> None:
    run = load(saved(tmp_path, loop(BOTH), loop(BOTH, first=500)))
    assert run.step_kinds == {"fit": 23, "validate": 11}
    steps = run.table("steps")
    assert (run.kind_of_rows(steps) == steps["marker"]).all()


def test_programs_are_kinds_within_markers_of_one_name() -> None:
    run = run_of(FIT, ["update", "judge"])
    assert run.step_kinds == {"update": 11, "judge": 11}
    assert run_of(BOTH, ["update", "judge"]).step_kinds == {"fit": 23, "validate": 11}, "the author's names go first"


def test_a_run_of_one_marker_is_compared_by_the_markers_of_the_other() -> None:
    fit, both = run_of(FIT, ["update"]), run_of(BOTH, ["update"])
    assert {kind.name for kind in pair_with(compare(fit, both)).step_kinds} == {"fit", "validate"}
    (found,) = (one for one in mismatches(fit, both) if one.label == "Mix of steps")
    assert (found.baseline, found.candidate) == ("22 fit", "23 fit, 11 validate")


def test_a_marker_alone_and_markers_with_a_name_each_are_no_kinds() -> None:
    once = run_of([*FIT, "save", *FIT])
    assert once.step_kinds == {"fit": 46} and not kinds_of(once, None)
    named = [event(f"step {chr(97 + i)}", 100 * i, 90, _r=1, step_num=i) for i in range(9)]
    each = run_with(host(*named, *(event("op:A", 100 * i + 5, 50) for i in range(9))))
    assert each.info.step_count == 9 and each.step_kinds == {} and each.kind_of_steps().empty


def test_other_names_of_all_markers_invalidate_no_verdict() -> None:
    (found,) = mismatches(run_of(FIT), run_of(["validate"] * 24))
    assert (found.label, found.baseline, found.candidate, found.is_hard) == (
        "Kind of the steps",
        "fit",
        "validate",
        False,
    )
    assert not mismatches(run_of(FIT, ["update"]), run_of(["validate"] * 24, ["update"])), "the program is the same"


def test_names_of_markers_of_which_runs_share_none_tell_no_kinds_apart() -> None:
    """Such as those of epochs, which end in other numbers."""
    one, other = run_of(["fit", "validate"] * 10, ["f"]), run_of(["save"] * 20, ["f"])
    assert one.has_kinds_by_marker and not are_by_marker(one, other) and not are_by_marker(other, one)
