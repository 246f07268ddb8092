"""The errors that tfcompare raises."""

from __future__ import annotations

import pickle
from pathlib import PurePath

import pytest

from tfcompare.errors import NoRuns, NoSuchMarker, NoSuchSteps, NotAProfile, TfcompareError, TooLarge, Unknown


@pytest.mark.parametrize(
    "error",
    [
        NoRuns("/logs: no run"),
        NotAProfile(PurePath("vm.xplane.pb"), 7, "a field", "none"),
        NoSuchSteps("vm", "5:9", 3),
        NoSuchMarker("vm", "train", ["a", "b"]),
        TooLarge("vm", "takes more than 1 s"),
        Unknown("host", "x", ["y"]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_from_another_process_is_the_same(error: TfcompareError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
