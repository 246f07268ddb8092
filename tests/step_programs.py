"""Profiles of programs whose steps have known lengths: what a slow step takes more is one op of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.xspace_builder import PS_PER_US, Event, event, line, plane, space
from tfcompare.run import Run, load

STEPS = 40
"""Steps that count in each capture: two more are recorded, since the first and the last are excluded."""
USUAL_OP, SLOW_OP = "model/dense/MatMul", "checkpoint/SaveV2"
NOISE = 0.01


def even(ms: float) -> list[float]:
    return [ms] * STEPS


def every(period: int, slow_ms: float, others_ms: float) -> list[float]:
    """Each `period`-th step is slow."""
    return [slow_ms if i % period == period - 1 else others_ms for i in range(STEPS)]


def some(positions: Sequence[int], slow_ms: float, others_ms: float) -> list[float]:
    """The steps at these positions are slow."""
    return [slow_ms if i in positions else others_ms for i in range(STEPS)]


def drifting(first_ms: float, last_ms: float) -> list[float]:
    return np.linspace(first_ms, last_ms, STEPS).tolist()


def halves(first_ms: float, second_ms: float) -> list[float]:
    return [first_ms] * (STEPS // 2) + [second_ms] * (STEPS // 2)


def capture(folder: Path, steps_ms: Sequence[float], seed: int = 0, between_ms: float = 0.1) -> Path:
    """Write a profile of these included steps, with `NOISE`, and return its folder.

    A step is `USUAL_OP` as long as the shortest step takes, and `SLOW_OP` for what it takes more than the others.
    """
    rng = np.random.default_rng(seed)
    lengths = np.array([steps_ms[0], *steps_ms, steps_ms[-1]]) * np.exp(NOISE * rng.standard_normal(len(steps_ms) + 2))
    usual = 1.5 * min(steps_ms)
    at_us, events = 0.0, list[Event]()
    for number, length_us in enumerate(1000 * lengths, start=1):
        inside_us = length_us - 40
        own_us = inside_us if length_us <= 1000 * usual else 1000 * min(steps_ms) - 40
        events.append(event("train", at_us, length_us, _r=1, step_num=number))
        events.append(event(f"{USUAL_OP}:MatMul", at_us + 20, own_us))
        if inside_us - own_us > 1:
            events.append(event(f"{SLOW_OP}:SaveV2", at_us + 20 + own_us, inside_us - own_us))
        at_us += length_us + 1000 * between_ms
    assert all(one.duration_ps < at_us * PS_PER_US for one in events)
    folder.mkdir(parents=True)
    (folder / "vm.xplane.pb").write_bytes(space(plane("/host:CPU", line("python", *events, id=1))))
    return folder


def capture_of_hosts(folder: Path, steps_ms: Mapping[str, Sequence[float]]) -> Path:
    """As `capture`, of several hosts by their names."""
    for host, of_host in steps_ms.items():
        alone = capture(folder / host, of_host)
        (alone / "vm.xplane.pb").rename(folder / f"{host}.xplane.pb")
        alone.rmdir()
    return folder


def captures(folder: Path, steps_ms: Sequence[float], count: int = 5, spread: float = 0.005, seed: int = 0) -> Path:
    """`count` captures of one program, whose lengths differ by `spread` from one capture to the next."""
    rng = np.random.default_rng(seed)
    for number in range(1, count + 1):
        factor = float(np.exp(spread * rng.standard_normal()))
        capture(folder / f"run-{number}", [factor * ms for ms in steps_ms], seed=100 * seed + number)
    return folder


def loaded(folder: Path) -> list[Run]:
    """The captures in a folder, with ids that no other folder's captures have."""
    runs = [load(place) for place in sorted(folder.iterdir())]
    return [replace(run, id=f"{folder.name}/{run.id}") for run in runs]
