"""False namings and power of the slowest host: `python -m benchmarks.host_calibration` writes them to docs/verdicts.md.

The busy times of hosts are simulated: they differ by a spread between hosts, their steps are correlated, some are
outliers, and some steps are longer on all hosts.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np

from benchmarks.calibration import PAGE, table
from benchmarks.page import put
from tfcompare.compare.stats.host_significance import slowest, slowest_group
from tfcompare.schema.arrays import Floats

HOSTS, STEPS = (2, 3, 8, 64, 256), (10, 20, 50)
RACKS, RACK_STEPS = ((2, 4), (8, 8), (32, 8)), 20
"""(racks, hosts of each), and how many steps they have."""
SPREADS = (0.0, 0.02, 0.04)
ALIKE, ALIKE_SLOWER = 0.005, (0.03, 0.05)
"""The spread and the noise of hosts that agree, and by how much one of them is slower."""
SLOWER = (0.05, 0.1, 0.2, 0.5)
BUSY_US, OUTLIERS, COMMON = 30_000, 0.05, 0.05
CALM, RESTLESS = (0.03, 0.3), (0.1, 0.6)
"""(noise of a step, correlation of neighbouring steps)."""


def simulated(
    rng: np.random.Generator, hosts: int, steps: int, spread: float, noise: float = 0.03, correlation: float = 0.3
) -> Floats:
    """Busy times of balanced hosts in µs: one row for each host, one column for each step."""
    of_steps = rng.standard_normal((hosts, steps))
    for at in range(1, steps):
        of_steps[:, at] = correlation * of_steps[:, at - 1] + math.sqrt(1 - correlation**2) * of_steps[:, at]
    logs = spread * rng.standard_normal((hosts, 1)) + noise * of_steps + COMMON * rng.standard_normal((1, steps))
    outliers = np.where(rng.random((hosts, steps)) < OUTLIERS, rng.uniform(1, 3, (hosts, steps)), 1)
    times: Floats = BUSY_US * np.exp(logs) * outliers
    return times


def named(
    rng: np.random.Generator,
    trials: int,
    hosts: int,
    steps: int,
    spread: float,
    slower: float = 0.0,
    noise: float = 0.03,
    correlation: float = 0.3,
) -> float:
    """The share of runs in which a host is named; with the last host `slower`, in which it is that one."""
    count = 0
    for _ in range(trials):
        times = simulated(rng, hosts, steps, spread, noise, correlation)
        times[-1] *= 1 + slower
        found = slowest(times)
        count += found.stands_out and (not slower or found.position == hosts - 1)
    return count / trials


def groups_named(rng: np.random.Generator, trials: int, racks: int, hosts: int, spread: float, slower: float) -> float:
    """The share of runs in which a rack of hosts is named; with the last rack `slower`, in which it is that one."""
    rows = [range(first, first + hosts) for first in range(0, racks * hosts, hosts)]
    count = 0
    for _ in range(trials):
        times = simulated(rng, racks * hosts, RACK_STEPS, spread, *CALM)
        times[-hosts:] *= 1 + slower
        found = slowest_group(times, rows)
        count += found is not None and (not slower or found == racks - 1)
    return count / trials


def report(trials: int, seed: int) -> str:
    """The table, as Markdown."""
    rng = np.random.default_rng(seed)
    rows = []
    for hosts in HOSTS:
        for steps in STEPS:
            false = [named(rng, trials, hosts, steps, spread, 0.0, *CALM) for spread in SPREADS]
            false.append(named(rng, trials, hosts, steps, SPREADS[-1], 0.0, *RESTLESS))
            right = [named(rng, trials, hosts, steps, ALIKE, slower, ALIKE, CALM[1]) for slower in ALIKE_SLOWER]
            right += [named(rng, trials, hosts, steps, SPREADS[1], slower, *CALM) for slower in SLOWER]
            rows.append(
                [str(hosts), str(steps), *(f"{100 * x:.1f}" for x in false), *(f"{100 * x:.0f}" for x in right)]
            )
    balanced = [f"balanced, spread {100 * spread:.0f} %" for spread in SPREADS]
    alike, slow = ([f"one {100 * slower:.0f} % slower" for slower in of] for of in (ALIKE_SLOWER, SLOWER))
    heads = ["hosts", "steps", *balanced, f"{balanced[-1]}, restless", *(f"{one}, alike" for one in alike), *slow]
    racks = [
        [f"{racks} × {hosts}"]
        + [f"{100 * groups_named(rng, trials, racks, hosts, spread, 0.0):.1f}" for spread in SPREADS]
        + [f"{100 * groups_named(rng, trials, racks, hosts, SPREADS[1], slower):.0f}" for slower in SLOWER]
        for racks, hosts in RACKS
    ]
    return f"""
{trials:,} runs a cell, seed {seed}: how often a host is named, in percent; of slow hosts, how often the right one
(spread {100 * SPREADS[1]:.0f} %). Steps have {100 * CALM[0]:.0f} % of noise with a correlation of {CALM[1]}, restless
ones {100 * RESTLESS[0]:.0f} % and {RESTLESS[1]}; of hosts that are “alike”, spread and noise are {100 * ALIKE:.1f} %;
{100 * OUTLIERS:.0f} % of all steps are outliers of up to three times.

{table(heads, rows)}
How often a rack is named, with {RACK_STEPS} steps; of slow racks, how often the right one:

{table(["racks × hosts", *balanced, *slow], racks)}"""


def main(argv: Sequence[str] | None = None) -> None:
    """Simulate and write the figures into the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.host_calibration", description=__doc__)
    parser.add_argument("--trials", type=int, default=1_000, help="simulated runs a cell (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    put(PAGE, "host_calibration", report(args.trials, args.seed))


if __name__ == "__main__":
    main()
