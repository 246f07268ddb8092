"""Runs of a store whose steps begin with an event that one names: made from the profile, if it is the same still."""

from __future__ import annotations

import pytest

from tests.store.runs_in_stores import SMALL, assert_same, stored
from tfcompare.errors import NoOtherSteps
from tfcompare.run import load

MARKER = "mul:Mul"


@pytest.mark.parametrize("keeps", [True, False], ids=["kept", "not kept"])
def test_steps_of_ones_own_come_from_the_profile_that_was_ingested_or_not_at_all(keeps, store, logs, request) -> None:
    request.getfixturevalue("given")
    if keeps:
        request.getfixturevalue("own")
    (run,) = stored(store).values()
    usual = load(run).info.step_source
    for _ in range(2):
        assert load(run, step_marker=MARKER).info.step_source != usual
    assert_same(load(run, step_marker=MARKER), load(logs, step_marker=MARKER))

    (profile,) = logs.rglob("*.xplane.pb")
    profile.write_bytes(SMALL["theirs"])
    with pytest.raises(NoOtherSteps, match="is another profile than the one in the store; run `tfcompare ingest`"):
        load(run, step_marker=MARKER)

    profile.unlink()
    why = r"cannot be opened .*; steps by a marker or range of one's own are made from the"
    with pytest.raises(NoOtherSteps, match=why):
        load(run, step_marker=MARKER)
    assert load(run).info.step_source == usual
