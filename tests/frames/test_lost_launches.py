"""Captures that were cut short on the devices."""

from __future__ import annotations

import pytest

from tests.frames.tables import run_with, threads
from tests.profiles import EACH_KIND, loaded_run
from tests.xspace_builder import event, line, plane

SENTENCE = "the devices recorded nothing of the last"


def remarks(recorded: list[bool], kind: str = "GPU") -> list[str]:
    """Of a launch a millisecond and, where it was recorded, what it launched; each call also looks at its device."""
    stat, stream = {"GPU": ("correlation_id", "Stream #1"), "TPU": ("run_id", "XLA Modules")}[kind]
    starts = range(0, 1000 * len(recorded), 1000)
    calls = [event("Launch", at, 5, {stat: i}) for i, at in enumerate(starts)]
    looks = [event("GetDevice", at + 6, 1, {stat: 10_000 + i}) for i, at in enumerate(starts)]
    work = [event("jit_f", at + 10, 500, {stat: i}) for i, at in enumerate(starts) if recorded[i]]
    run = run_with(threads(calls + looks), plane(f"/device:{kind}:0", line(stream, *work, id=1)))
    return [text for text in run.remarks if text.startswith(SENTENCE)]


@pytest.mark.parametrize("kind", ["GPU", "TPU"])
def test_launches_without_work_at_the_end_of_a_capture_are_remarked_on(kind: str) -> None:
    assert remarks([True] * 60 + [False] * 40, kind) == [
        "the devices recorded nothing of the last 40 of 100 launches (0.04 s): the capture was cut short there; "
        "profile fewer steps, and wait for the device before the profiler stops"
    ]
    assert remarks([True] * 100, kind) == []


WEAK = {
    "few": [True] * 85 + [False] * 15,
    "a small share": [True] * 300 + [False] * 30,
    "work is missing throughout": [True, False] * 40 + [False] * 40,
    "only the start is missing": [False] * 60 + [True] * 40,
    "nothing recorded": [False] * 100,
}


@pytest.mark.parametrize("recorded", WEAK.values(), ids=WEAK)
def test_weak_evidence_is_none(recorded: list[bool]) -> None:
    assert remarks(recorded) == []


@pytest.mark.parametrize("name", [*EACH_KIND, "jax_te"])
def test_no_complete_capture_is_remarked_on(name: str) -> None:
    assert not [text for text in loaded_run(name).remarks if SENTENCE in text]
