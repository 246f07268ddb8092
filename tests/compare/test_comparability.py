"""What keeps two runs from telling of the program alone."""

from __future__ import annotations

import pandas as pd
import pytest
from compare_runs import FakeRun, ops, run

from tfcompare import schema
from tfcompare.compare.comparability import batch_size, mismatches


def with_input(made: FakeRun, shapes: str | None, *, parent: str = "", execution: int = 0) -> FakeRun:
    frame = schema.TF_DATA.empty()
    if shapes is not None:
        row = {c.name: "" if c.dtype == "str" else 0 for c in schema.TF_DATA.columns}
        row |= {"pipeline": "Host:0", "shapes": shapes, "parent_id": parent, "execution": execution}
        frame = schema.TF_DATA.conform(pd.DataFrame([row]))
    made.frames["tf_data"] = frame
    return made


@pytest.mark.parametrize(
    ("shapes", "size"),
    [
        ("[32,28,28] [32]", 32),
        ("[32,28,28] [16]", None),
        ("[?,28,28] [32]", None),
        ("[]", None),
        ("", None),
        (None, None),
        ("[64]", 64),
    ],
)
def test_the_batch_is_what_all_components_have_in_common(shapes: str | None, size: int | None) -> None:
    assert batch_size(with_input(run("a"), shapes)) == size


def test_only_the_pipeline_itself_tells_the_batch() -> None:
    assert batch_size(with_input(run("a"), "[32]", parent="7")) is None
    assert batch_size(with_input(run("a"), "[32]", execution=1)) is None


def test_runs_recorded_alike_differ_in_nothing() -> None:
    assert mismatches(with_input(run("a"), "[32]"), with_input(run("b"), "[32]")) == []
    assert mismatches(with_input(run("a"), "[32]"), with_input(run("b"), None)) == [], "what is not known is not told"


def test_hard_mismatches_come_first_with_both_sides() -> None:
    ours = with_input(run("a", steps_included=5), "[32]")
    theirs = with_input(run("b", ops("Host MatMul x 1 1"), device_type="GPU"), "[64]")
    found = mismatches(ours, theirs)
    assert [(m.label, m.baseline, m.candidate, m.is_hard) for m in found] == [
        ("Device type", "CPU", "GPU", True),
        ("Batch size", "32", "64", True),
        ("Included steps", "5", "20", False),
    ]
    mirrored = mismatches(theirs, ours)
    assert [(m.label, m.candidate, m.baseline) for m in mirrored] == [(m.label, m.baseline, m.candidate) for m in found]


def test_a_device_that_did_not_tell_what_it_did() -> None:
    ours = with_input(run("a", ops("Device MatMul x 1 1"), device_type="GPU"), None)
    theirs = with_input(run("b", ops("Host MatMul x 1 1\nDevice IDLE IDLE 0 9"), device_type="GPU"), None)
    assert [(m.label, m.baseline, m.candidate) for m in mismatches(ours, theirs)] == [
        ("Device ops", "recorded", "not recorded")
    ]
