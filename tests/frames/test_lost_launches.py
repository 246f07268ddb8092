"""Captures that were cut short on the devices."""

from __future__ import annotations

import pytest

from tests.frames.tables import run_of
from tests.profiles import ALL_RUNS, MORE_CORPUS_RUNS, loaded_run
from tests.xspace_builder import Event, event, line, plane, space

SENTENCE = "the devices recorded nothing of the last"


def profile(recorded: list[bool], kind: str = "GPU") -> bytes:
    """A launch every millisecond and, where it was recorded, what it launched; each call also looks at its device."""
    stat, stream = {"GPU": ("correlation_id", "Stream #1"), "TPU": ("run_id", "XLA Modules")}[kind]
    calls: list[Event] = []
    for i in range(len(recorded)):
        calls += [event("Launch", 1000 * i, 5, {stat: i}), event("GetDevice", 1000 * i + 6, 1, {stat: 10_000 + i})]
    work = [event("jit_f", 1000 * i + 10, 500, {stat: i}) for i, it in enumerate(recorded) if it]
    return space(plane("/host:CPU", line("t", *calls)), plane(f"/device:{kind}:0", line(stream, *work, id=1)))


def remarks(recorded: list[bool], kind: str = "GPU") -> list[str]:
    return [text for text in run_of(profile(recorded, kind)).remarks if text.startswith(SENTENCE)]


@pytest.mark.parametrize("kind", ["GPU", "TPU"])
def test_launches_without_work_at_the_end_of_a_capture_are_remarked_on(kind: str) -> None:
    assert remarks([True] * 60 + [False] * 40, kind) == [
        "the devices recorded nothing of the last 40 of 100 launches (0.04 s): the capture was cut short there; "
        "profile fewer steps, and wait for the device before the profiler stops"
    ]
    assert remarks([True] * 100, kind) == []


@pytest.mark.parametrize(
    "recorded",
    [
        [True] * 85 + [False] * 15,
        [True] * 300 + [False] * 30,
        [True, False] * 40 + [False] * 40,
        [False] * 60 + [True] * 40,
        [False] * 100,
    ],
    ids=["few", "a small share", "work is missing throughout", "only the start is missing", "nothing recorded"],
)
def test_weak_evidence_is_none(recorded: list[bool]) -> None:
    assert remarks(recorded) == []


@pytest.mark.parametrize("name", [*ALL_RUNS, *MORE_CORPUS_RUNS])
def test_no_complete_capture_is_remarked_on(name: str) -> None:
    assert not [text for text in loaded_run(name).remarks if SENTENCE in text]
