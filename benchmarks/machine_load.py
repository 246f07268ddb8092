"""Loads that a benchmark puts on the machine itself: processes that compute all the time, or on and off at random."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SETTLE_S = 120.0
"""How long a load runs before anything is recorded under it. The load average that recordings store is a mean over one
minute: by then it has come within 14 % of the new load."""


@dataclass(frozen=True)
class Load:
    """So many `processes`, each busy and then idle for random (exponential) times of these means, in seconds; with an
    idle time of 0, busy without a break."""

    processes: int
    busy_s: float = 1.0
    idle_s: float = 0.0


LOADS = {"quiet": Load(0), "one_core_taken": Load(1), "random": Load(3, busy_s=3.0, idle_s=4.0)}
"""The loads under which programs are recorded. On two cores `random` asks for 1.3 of them on average: a capture of a
few seconds finds from none to three of its processes busy."""


@contextmanager
def under_load(load: Load, settle_s: float = SETTLE_S) -> Iterator[None]:
    """Runs the processes of a load, from `settle_s` seconds before the block until its end."""
    spawn = multiprocessing.get_context("spawn")  # nothing of this process is copied
    every = [spawn.Process(target=_work, args=(seed, load), daemon=True) for seed in range(load.processes)]
    try:
        for process in every:
            process.start()
        time.sleep(settle_s if every else 0)
        yield
    finally:
        for process in every:
            process.terminate()
        for process in every:
            process.join()


def _work(seed: int, load: Load) -> None:
    rng = random.Random(seed)
    while True:
        until = time.monotonic() + rng.expovariate(1 / load.busy_s)
        while time.monotonic() < until:
            sum(range(10_000))
        if load.idle_s:
            time.sleep(rng.expovariate(1 / load.idle_s))
