"""Verdicts on simulated programs whose steps vary as those of real captures do; a part of `benchmarks.calibration`.

A step has a part on the host and one on a device. Each varies from step to step, and by a factor of its own from
capture to capture, with heavy tails: Student's t with three degrees of freedom, scaled to the robust standard deviation
of real captures (`benchmarks.real_recordings` and what `docs/verdicts.md` lists below “Between captures”).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.estimates import Times
from tfcompare.compare.stats.verdict import BESIDE_DEVICES, FASTER, SLOWER, Spread, declared_spread
from tfcompare.schema.arrays import Floats
from tfcompare.tables.slow_steps import stray_of

TAILS = 3
ROBUST_OF_T3 = 1.134
"""The robust standard deviation (1.4826 times the median deviation) of Student's t with `TAILS` degrees of freedom."""
STEPS = 20
CHANGES = (0.05, 0.1, 0.2, 0.6)
CAPTURES = (1, 3)
DWELLS = (8, 16)
APART = 0.2
"""By how much the slower of two clock states is slower."""


@dataclass(frozen=True)
class Part:
    """A part of a step: its mean in milliseconds, the robust standard deviations of the logarithm from step to step
    (`noise`) and from capture to capture (`spread`), and the correlation of neighbouring steps."""

    ms: float
    noise: float = 0.0
    spread: float = 0.0
    correlation: float = 0.0


@dataclass(frozen=True)
class Kind:
    """A kind of step; `load`: by how much other programs slow each capture down on average (exponentially
    distributed)."""

    name: str
    device_type: str
    host: Part
    device: Part = Part(0.0)
    load: float = 0.0


def _h100_device(ms: float) -> Part:
    return Part(ms, noise=0.005, spread=0.004, correlation=0.3)


_QUIET, _SHARED = Part(10, 0.05, 0.03, 0.3), Part(10, 0.08, 0.09, 0.3)
KINDS = (
    Kind("CPU, 10 ms, quiet machine", "CPU", _QUIET),
    Kind("CPU, 10 ms, shared machine", "CPU", _SHARED),
    Kind("CPU, 10 ms, under load", "CPU", _QUIET, load=0.3),
    Kind("CPU, 250 ms", "CPU", Part(250, 0.02, 0.02, 0.3)),
    Kind("GPU, 7 ms, 92 % host", "GPU", Part(6.5, 0.06, 0.08, 0.65), _h100_device(0.5)),
    Kind("GPU, 30 ms, 27 % host", "GPU", Part(8, 0.06, 0.1, 0.5), _h100_device(22)),
    Kind("GPU, 2 ms, 30 % host", "GPU", Part(0.6, 0.03, 0.03, 0.3), _h100_device(1.4)),
    Kind("GPU, device time", "GPU", Part(0.0), _h100_device(22)),
)
"""As captures on two cores and on an H100 (`autoencoder_gpu/h100_16_8`, `h100_512_128`, `transformer_gpu`). Load is
recorded, and slows captures down by 30 % on average."""


def assumed_spread(kind: Kind) -> Spread:
    """The spread that verdicts assume for this kind of step."""
    device = declared_spread(kind.device_type)
    share = kind.device.ms / (kind.host.ms + kind.device.ms)
    rest = BESIDE_DEVICES if share else device
    return (rest.under_load() if kind.load else rest).beside(device, share)


def heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draws from Student's t with a robust standard deviation of 1."""
    drawn: Floats = rng.standard_t(TAILS, shape) / ROBUST_OF_T3
    return drawn


def times_us(rng: np.random.Generator, part: Part, captures: int, steps: int = STEPS) -> Floats:
    """The times of a part: (captures, steps)."""
    drawn = heavy(rng, (captures, steps))
    deviations = drawn.copy()
    for step in range(1, steps):
        fresh = np.sqrt(1 - part.correlation**2) * drawn[:, step]
        deviations[:, step] = part.correlation * deviations[:, step - 1] + fresh
    found: Floats = 1e3 * part.ms * np.exp(part.noise * deviations + part.spread * heavy(rng, (captures, 1)))
    return found


def steps_us(rng: np.random.Generator, kind: Kind, captures: int) -> Floats:
    """Step times: (captures, steps)."""
    load = 1 + kind.load * rng.standard_exponential((captures, 1))
    found: Floats = times_us(rng, kind.host, captures) * load + times_us(rng, kind.device, captures)
    return found


def side(series: Floats) -> list[Times]:
    """The captures of a side, each without its stray."""
    found = []
    for times in series:
        stray = stray_of(times)
        is_included = np.arange(len(times)) != (-1 if stray is None else stray)
        found.append(Times.of(times[is_included], None if stray is None else float(times[stray])))
    return found


def outcomes(
    rng: np.random.Generator, trials: int, kind: Kind, captures: int, change: float = 0.0
) -> tuple[float, float]:
    """(the share of trials in which a candidate that takes `change` more is called faster or slower, the share whose
    interval contains the true ratio)."""
    test, truth = ChangeTest(assumed_spread(kind)), 1 + change
    verdicts = [
        test(side(steps_us(rng, kind, captures)), side(truth * steps_us(rng, kind, captures))) for _ in range(trials)
    ]
    covered = [verdict.low <= truth <= verdict.high for verdict in verdicts]
    return float(np.mean([verdict.is_claim for verdict in verdicts])), float(np.mean(covered))


def kinds_of_steps(rng: np.random.Generator, trials: int) -> list[list[str]]:
    """A row for each kind of step: for each number of captures a side, false claims, coverage and power, in percent."""
    rows = []
    for kind in KINDS:
        row = [kind.name]
        for captures in CAPTURES:
            false, covered = outcomes(rng, trials, kind, captures)
            power = [outcomes(rng, trials, kind, captures, change)[0] for change in CHANGES]
            row += [f"{100 * false:.1f}", f"{100 * covered:.1f}", *(f"{100 * share:.0f}" for share in power)]
        rows.append(row)
    return rows


def in_clock_states(rng: np.random.Generator, steps: int, dwell: float) -> tuple[Floats, bool]:
    """(device times of a capture in µs whose device runs at one of two speeds, whether it stays at one). It leaves a
    speed after `dwell` steps on average (geometrically distributed)."""
    switches = rng.random(steps) < 1 / dwell
    switches[0] = rng.random() < 0.5
    is_slow = np.cumsum(switches) % 2 == 1
    quiet = Part(22, noise=0.005, spread=0.004)
    return times_us(rng, quiet, 1, steps)[0] * np.where(is_slow, 1 + APART, 1.0), not switches[1:].any()


def clock_states(rng: np.random.Generator, trials: int, steps: int, dwell: float) -> tuple[float, float]:
    """(the share of pairs in which a change of the device time is claimed, the share in which each capture stayed at
    one speed, and at another than the other one: of these, no look at the steps can tell)."""
    test = ChangeTest(declared_spread("GPU"))
    claims = apart = 0
    for _ in range(trials):
        (ours, our_steady), (theirs, their_steady) = (in_clock_states(rng, steps, dwell) for _ in range(2))
        claims += test(side(ours[np.newaxis]), side(theirs[np.newaxis])).is_claim
        apart += our_steady and their_steady and abs(np.log(theirs.mean() / ours.mean())) > np.log1p(APART) / 2
    return claims / trials, apart / trials


@dataclass(frozen=True)
class Family:
    """Ops that are tested together: the shares of the step that they take, and the robust standard deviations between
    captures of a factor that all have in common and of one of their own."""

    name: str
    device_type: str
    shares: Sequence[float]
    step_ms: float
    noise: float
    common: float
    own: float


_EVEN = (1 / 30,) * 30
_ONE_DOMINANT = (0.77, *(0.23 / 20,) * 20)
FAMILIES = (
    Family("GPU, 30 alike", "GPU", _EVEN, 22, 0.01, 0.004, 0.01),
    Family("GPU, one takes 77 %", "GPU", _ONE_DOMINANT, 22, 0.01, 0.004, 0.01),
    Family("GPU, 3 alike", "GPU", (1 / 3,) * 3, 22, 0.01, 0.004, 0.01),
    Family("GPU, 30 alike, with a common clock", "GPU", _EVEN, 22, 0.01, 0.03, 0.004),
    Family("CPU, 30 alike", "CPU", _EVEN, 15, 0.1, 0.05, 0.12),
    Family("CPU, one takes 77 %", "CPU", _ONE_DOMINANT, 15, 0.1, 0.05, 0.12),
)
"""On devices, robust standard deviations of 0.2 to 3.3 % between captures; on CPUs, 12 to 15 % of ops of 1 ms."""


def op_times(rng: np.random.Generator, family: Family, captures: int) -> list[Times]:
    """The ops' times in each capture."""
    shares = np.array(family.shares)[:, np.newaxis]
    found = []
    for _ in range(captures):
        factors = family.common * heavy(rng, (1, 1)) + family.own * heavy(rng, shares.shape)
        noise = family.noise * heavy(rng, (len(shares), STEPS))
        found.append(Times(1e3 * family.step_ms * shares * np.exp(factors + noise)))
    return found


def claimed_ops(
    rng: np.random.Generator, trials: int, family: Family, captures: int, change: float = 0.0
) -> tuple[float, float]:
    """(the share of trials in which an op that did not change is claimed to have changed, that in which the first one
    is, which takes `change` more)."""
    test = ChangeTest(declared_spread(family.device_type))
    wrong = found = 0
    for _ in range(trials):
        ours, theirs = (op_times(rng, family, captures) for _ in range(2))
        for times in theirs:
            times.included[0] *= 1 + change
        claims = test.rows(ours, theirs)["verdict"].isin([FASTER, SLOWER]).to_numpy()
        wrong += bool(claims[1:].any()) or (not change and bool(claims[0]))
        found += bool(claims[0])
    return wrong / trials, found / trials


def families_of_ops(rng: np.random.Generator, trials: int) -> list[list[str]]:
    """A row for each family: for each number of captures a side, trials with any false claim, and how often the first
    op is found to have changed, in percent."""
    rows = []
    for family in FAMILIES:
        row = [family.name]
        for captures in CAPTURES:
            wrong, _ = claimed_ops(rng, trials, family, captures)
            power = [claimed_ops(rng, trials, family, captures, change)[1] for change in CHANGES]
            row += [f"{100 * wrong:.1f}", *(f"{100 * share:.0f}" for share in power)]
        rows.append(row)
    return rows
