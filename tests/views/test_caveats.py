"""The facts of runs that should agree before they are compared."""

from __future__ import annotations

import dataclasses

import pytest

from tests.profiles import loaded_run
from tfcompare.frames.steps.steps import WHOLE_PROFILE
from tfcompare.run import RunInfo
from tfcompare.units import MISSING
from tfcompare.views.caveats import environment


@pytest.fixture(scope="module")
def info() -> RunInfo:
    return loaded_run("filters_16_8").info


def test_what_should_agree_and_does_not_is_marked(info):
    other = dataclasses.replace(info, device_type="GPU", device_count=8, size_bytes=1, duration_ms=1.0)
    assert not any(fact.differs for fact in environment([info, info]))
    assert {fact.label for fact in environment([info, other]) if fact.differs} == {"Device type", "Devices"}


def test_a_run_that_marks_no_steps_has_none_of_them(info):
    unmarked = dataclasses.replace(info, step_source=WHOLE_PROFILE, step_count=1, steps_included=1)
    facts = {fact.name: fact.values for fact in environment([info, unmarked])}
    assert (facts["step_count"], facts["steps_included"]) == (("22", MISSING), ("20", MISSING))
    assert "step_count" not in {fact.name for fact in environment([unmarked, unmarked])}


def test_the_environment_is_told_in_the_readers_time_zone(info):
    facts = {fact.name: fact for fact in environment([info, info], "Europe/Vienna")}
    assert facts["start_time"].values[0].endswith(("CET", "CEST"))
    assert facts["step_count"].values == ("22", "22")
    assert "device_name" not in facts, "what no run knows is left out"
    assert environment([info])[-1].label == "Size"
