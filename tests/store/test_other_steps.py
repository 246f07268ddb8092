"""Runs of a store whose steps begin with an event that one names: made from the profile, if it is the same still."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.profiles import run_path
from tests.store.runs_in_stores import assert_same, copied, put, stored
from tfcompare import settings
from tfcompare.errors import NoOtherSteps
from tfcompare.run import load
from tfcompare.store import cached_frames

MARKER = "PjitFunction(forward_3d_conv)"


@pytest.mark.parametrize("keeps", [True, False], ids=["kept", "not kept"])
def test_steps_of_ones_own_come_from_the_profile_that_was_ingested_or_not_at_all(
    keeps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_frames, "_SETTLED_NS", -1)
    monkeypatch.setattr(settings, "_current", settings.Settings(places=(tmp_path / "logs",)))
    if keeps:
        monkeypatch.setenv("TFCOMPARE_STORE", str(tmp_path / "own"))
    folder = copied("jax_conv_08", tmp_path / "logs")
    put([tmp_path / "logs"], tmp_path / "store")
    (run,) = stored(tmp_path / "store").values()
    assert load(run).info.step_source == "whole profile"
    for _ in range(2):
        assert load(run, step_marker=MARKER).info.step_count == 5
    assert_same(load(run, step_marker=MARKER), load(folder, step_marker=MARKER))

    (profile,) = folder.rglob("*.xplane.pb")
    shutil.copy(next(run_path("jax_conv_legacy").rglob("*.xplane.pb")), profile)
    with pytest.raises(NoOtherSteps, match="is another profile than the one in the store; run `tfcompare ingest`"):
        load(run, step_marker=MARKER)

    profile.unlink()
    why = r"cannot be opened .*; steps by a marker or range of one's own are made from the"
    with pytest.raises(NoOtherSteps, match=why):
        load(run, step_marker=MARKER)
    assert load(run).info.step_source == "whole profile"
