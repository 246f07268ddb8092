"""Verdicts on real captures of one program: `python -m benchmarks.real_recordings` writes them to docs/verdicts.md.

Three CPU programs of `sample_logs/autoencoder/record.py` are recorded under three loads of the machine, each capture in
a process of its own, the programs in turn. The benchmark starts the loads itself and waits until the load average has
settled, so nothing else should run meanwhile. With the samples recorded on an H100, each capture is then compared with
each other one of its program and load, and random threes with other threes. The program is the same, so every claim is
a false one, and the true ratio is 1.

What `--keep` holds is not recorded again: `FOLDER/<load>/<program>/<number>`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

import tfcompare as tfc
from benchmarks.calibration import PAGE, table
from benchmarks.machine import description
from benchmarks.machine_load import LOADS, under_load
from benchmarks.page import put
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.stats.verdict import FASTER, SLOWER, UNTESTED, Verdict

SAMPLES = Path(__file__).resolve().parent.parent / "sample_logs"
RECORD = SAMPLES / "autoencoder" / "record.py"
PROGRAMS = ("filters_16_8", "filters_16_8_better_input", "filters_512_128")
H100 = "H100"
H100_PROGRAMS = (
    "autoencoder_gpu/h100_16_8",
    "autoencoder_gpu/h100_16_8_command_buffers",
    "autoencoder_gpu/h100_512_128",
    "transformer_gpu/h100_store_activations",
    "transformer_gpu/h100_recompute_activations",
)
"""Programs of which the samples have several captures."""
A_SIDE = 3
"""Captures a side whose variation is measured; of ten captures, five a side leave few different halves."""


@dataclass(frozen=True)
class Claims:
    """Of `pairs` comparisons of a program with itself: in how many the step time, the device time and any op is said to
    have changed, how many have a verdict on device time (`timed_devices`), and of those with an interval of the step
    time (`intervals`), how many of these contain 1 (`covered`)."""

    pairs: int
    step_time: int
    timed_devices: int
    device_time: int
    any_op: int
    intervals: int
    covered: int


@dataclass(frozen=True)
class Cell:
    """Captures of one program under one load."""

    load: str
    program: str
    runs: Sequence[tfc.Run]


def record(folder: Path, count: int) -> None:
    """Adds captures to the folder until there are `count` of each program under each load."""
    for load, processes in LOADS.items():
        places = [folder / load / program / f"{number:02d}" for number in range(count) for program in PROGRAMS]
        missing = [place for place in places if not any(place.rglob("*.xplane.pb"))]
        if not missing:
            continue
        with under_load(processes):
            for at, place in enumerate(missing, 1):
                command = [sys.executable, RECORD, place.parent.name, "--out", place]
                subprocess.run(command, check=True, capture_output=True)
                print(f"{load}: {at} of {len(missing)}", file=sys.stderr, flush=True)


def cells(folder: Path, count: int) -> Iterable[Cell]:
    """What was recorded, then the samples of the H100; one program at a time, which bounds the memory."""
    for load in LOADS:
        for program in PROGRAMS:
            yield Cell(load, program, captures(folder / load / program)[:count])
    for program in H100_PROGRAMS:
        yield Cell(H100, Path(program).name, captures(SAMPLES / program))


def captures(folder: Path) -> list[tfc.Run]:
    """The captures below a folder, one in each of its folders, in the order of their names."""
    return [tfc.load(place) for place in sorted(folder.iterdir()) if place.is_dir()]


def claims_between(pairs: Iterable[Pair]) -> Claims:
    """What is claimed in comparisons of a program with itself."""
    count = step_time = timed_devices = device_time = any_op = intervals = covered = 0
    for pair in pairs:
        verdict, of_devices = pair.verdict, device_verdict(pair)
        count += 1
        step_time += verdict.is_claim
        timed_devices += of_devices is not None
        device_time += of_devices is not None and of_devices.is_claim
        any_op += bool(pair.diff("op_stats")["verdict"].isin([FASTER, SLOWER]).any())
        intervals += verdict.has_interval
        covered += verdict.low <= 1 <= verdict.high
    return Claims(count, step_time, timed_devices, device_time, any_op, intervals, covered)


def device_verdict(pair: Pair) -> Verdict | None:
    """The verdict on the device time; None where there is none."""
    verdict: Verdict | None = getattr(pair, "device_verdict", None)
    return None if verdict is None or verdict.word == UNTESTED else verdict


def single_captures(runs: Sequence[tfc.Run]) -> Iterable[Pair]:
    """Each capture against each other one."""
    return (pair_with(tfc.compare(*pair)) for pair in combinations(runs, 2))


def several_a_side(runs: Sequence[tfc.Run], trials: int, seed: int) -> Iterable[Pair]:
    """`A_SIDE` random captures against as many others; nothing where there are too few."""
    rng = np.random.default_rng(seed)
    for _ in range(trials if len(runs) >= 2 * A_SIDE else 0):
        chosen = [runs[i] for i in rng.permutation(len(runs))[: 2 * A_SIDE]]
        ours, theirs = chosen[:A_SIDE], chosen[A_SIDE:]
        yield pair_with(tfc.compare(ours[0], theirs[0], repeats={ours[0].id: ours[1:], theirs[0].id: theirs[1:]}))


def row(cell: Cell, trials: int, seed: int) -> list[str]:
    """A row of the table."""
    steps_ms = np.array([run.info.step_time_ms_mean for run in cell.runs])
    loads = [max(run.machine_load.before, run.machine_load.after) for run in cell.runs if run.machine_load]
    return [
        cell.load.replace("_", " "),
        f"`{cell.program}`",
        str(len(cell.runs)),
        f"{np.median(loads):.1f}" if loads else "–",
        f"{np.median(steps_ms):.1f} ms",
        _percent(float(np.log(steps_ms).std(ddof=1))),
        *_shares(claims_between(single_captures(cell.runs))),
        *_shares(claims_between(several_a_side(cell.runs, trials, seed))),
    ]


def report(every: Iterable[Cell], trials: int, seed: int, machine: Sequence[str]) -> str:
    """A row for each cell, as Markdown."""
    each = ("step time", "device time", "any op", "interval contains 1")
    header = [
        *("load", "program", "captures", "load average", "step", "spread (sd)", "pairs", *each),
        *(f"{A_SIDE} a side", *each),
    ]
    lines = []
    for cell in every:
        lines.append(row(cell, trials, seed))
        print(" | ".join(lines[-1]), file=sys.stderr, flush=True)
    return f"""
The number of false claims on the step time, the device time and any op. *Load average*: the median of the captures;
above the number of cores a capture is taken to be under load. `random`: three processes, each busy for
{LOADS["random"].busy_s:g} s and idle for {LOADS["random"].idle_s:g} s on average. Seed {seed}.

{table(header, lines)}
{"".join(f"- {line}{chr(10)}" for line in machine)}"""


def _shares(found: Claims) -> list[str]:
    """The cells of a row that are about these comparisons; a dash where there are none."""
    return [
        str(found.pairs or "–"),
        _share(found.step_time, found.pairs),
        _share(found.device_time, found.timed_devices),
        _share(found.any_op, found.pairs),
        _percent(found.covered / found.intervals) if found.intervals else "–",
    ]


def _share(part: int, whole: int) -> str:
    return f"{part} ({_percent(part / whole)})" if whole else "–"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def main(argv: Sequence[str] | None = None) -> None:
    """Record, compare, and write the figures into the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_recordings", description=__doc__)
    parser.add_argument(
        "--count", type=int, default=10, help="captures of a program under a load (default %(default)s)"
    )
    parser.add_argument("--trials", type=int, default=200, help="random threes (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for the captures; what it holds is not recorded again")
    args = parser.parse_args(argv)
    machine = description()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.keep or Path(temporary)).resolve()
        record(folder, args.count)
        text = report(cells(folder, args.count), args.trials, args.seed, machine)
    put(PAGE, "real_recordings", text)


if __name__ == "__main__":
    main()
