"""The table of contents."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from tests.profiles import SAMPLE_RUNS
from tfcompare.errors import TfcompareError
from tfcompare.run import load
from tfcompare.sources.logdir import FoundRun, HostFile, find_run
from tfcompare.views.run_listing import COLUMNS, READ, UNREAD, UNREADABLE, device_text, listing

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
FILE = HostFile("vm", Path("/logs/a/vm.xplane.pb"), 1000, 1)
GOOD = FoundRun("logs/a", "a", Path("/logs/a"), (FILE,), (), WHEN, "folder name")
EMPTY = FoundRun("logs/b", "b", Path("/logs/b"), (), ("b: is empty",), WHEN, "file time")


def test_what_was_not_read_is_absent() -> None:
    frame = listing([GOOD, EMPTY], {})
    assert frame.dtypes.astype(str).to_dict() == COLUMNS
    assert list(frame["state"]) == [UNREAD, UNREADABLE]
    assert list(frame["remarks"]) == ["", "b: is empty"]
    assert frame[["device", "steps", "step_time_ms_median", "step_times_ms"]].isna().all(axis=None)


def test_what_could_not_be_read_says_why() -> None:
    (row,) = listing([GOOD], {"logs/a": TfcompareError("a: breaks off")}).to_dict("records")
    assert (row["state"], row["remarks"]) == (UNREADABLE, "a: breaks off")


def test_a_run_that_was_read_tells_its_steps() -> None:
    found = find_run(SAMPLE_RUNS["filters_16_8"])
    (row,) = listing([found], {found.id: load(found)}).to_dict("records")
    assert (row["state"], row["device"], row["steps"], row["recorded_source"]) == (READ, "CPU", 22, "profile")
    assert len(row["step_times_ms"]) == 20
    assert pd.Series(row["step_times_ms"]).median() == row["step_time_ms_median"]


def test_an_empty_listing_has_its_columns() -> None:
    assert listing([], {}).dtypes.astype(str).to_dict() == COLUMNS


def test_devices_in_few_words() -> None:
    assert device_text("CPU", 0) == "CPU"
    assert device_text("GPU", 8) == "8 × GPU"
