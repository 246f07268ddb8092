"""Verdicts on real recordings of one program: `python -m benchmarks.real_recordings` writes it to docs/verdicts.md.

Each recording is made by `sample_logs/autoencoder/record.py` in a process of its own, one after the other, on a machine
that should do nothing else meanwhile. Then all pairs are compared, and random halves as repeats. The program is the
same in all of them, so every claim is a false one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

import tfcompare as tfc
from benchmarks.calibration import PAGE
from benchmarks.machine import description
from benchmarks.page import put
from tfcompare.compare.stats.verdict import FASTER, SLOWER

RECORD = Path(__file__).resolve().parent.parent / "sample_logs" / "autoencoder" / "record.py"
VARIANTS = ("filters_16_8", "filters_512_128")
REPEATS = 5


@dataclass(frozen=True)
class Claims:
    """Of `pairs` comparisons of a program with itself: in how many the step time, in how many any op, is said to have
    changed, and how many ops of those that were tested."""

    pairs: int
    step_time: int
    any_op: int
    ops: int
    tested_ops: int


def record(variant: str, count: int, folder: Path) -> None:
    """Adds recordings of a variant to `folder/variant` until there are so many."""
    for number in range(count):
        place = folder / variant / f"{number:02d}"
        if not any(place.rglob("*.xplane.pb")):
            subprocess.run([sys.executable, RECORD, variant, "--out", place], check=True, capture_output=True)
            print(f"{variant}: {number + 1} of {count}", file=sys.stderr, flush=True)


def recordings(folder: Path) -> list[tfc.Run]:
    """The runs below a folder, in the order of their names."""
    return [tfc.load(place) for place in sorted(folder.iterdir())]


def step_ms(run: tfc.Run) -> float:
    """The run's step time."""
    return run.info.step_time_ms_mean


def claims_between(comparisons: Sequence[tfc.Comparison]) -> Claims:
    """What is claimed in comparisons of a program with itself."""
    step_time = any_op = ops = tested = 0
    for comparison in comparisons:
        (verdict,) = comparison.verdict.values()
        words = comparison.table("op_stats")["verdict"]
        claimed = int(words.isin([FASTER, SLOWER]).sum())
        step_time += verdict.word in (FASTER, SLOWER)
        any_op += claimed > 0
        ops += claimed
        tested += int((words.notna() & (words != "untested")).sum())
    return Claims(len(comparisons), step_time, any_op, ops, tested)


def claims_of_pairs(runs: Sequence[tfc.Run]) -> Claims:
    """Each recording against each other one."""
    return claims_between([tfc.compare(*pair) for pair in combinations(runs, 2)])


def claims_of_repeats(runs: Sequence[tfc.Run], trials: int, seed: int) -> Claims:
    """`REPEATS` random recordings against as many others."""
    rng = np.random.default_rng(seed)
    comparisons = []
    for _ in range(trials):
        chosen = [runs[i] for i in rng.permutation(len(runs))[: 2 * REPEATS]]
        ours, theirs = chosen[:REPEATS], chosen[REPEATS:]
        repeats = {ours[0].id: ours[1:], theirs[0].id: theirs[1:]}
        comparisons.append(tfc.compare(ours[0], theirs[0], repeats=repeats))
    return claims_between(comparisons)


def report(folders: Sequence[Path], trials: int, seed: int, machine: Sequence[str]) -> str:
    """A row for each folder of recordings, as Markdown."""
    head = [
        *("model", "recordings", "step time", "spread (sd)", "pairs", "step time claimed", "any op claimed"),
        *("ops claimed", f"{REPEATS} against {REPEATS}", "step time claimed", "any op claimed"),
    ]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for folder in folders:
        runs = recordings(folder)
        steps_ms = np.array([step_ms(run) for run in runs])
        pairs, halves = claims_of_pairs(runs), claims_of_repeats(runs, trials, seed)
        lines.append(
            [
                *(f"`{folder.name}`", str(len(runs)), f"{np.median(steps_ms):.1f} ms"),
                *(_percent(float(np.log(steps_ms).std(ddof=1))), str(pairs.pairs)),
                *(_share(pairs.step_time, pairs.pairs), _share(pairs.any_op, pairs.pairs)),
                *(_share(pairs.ops, pairs.tested_ops), str(halves.pairs), _share(halves.step_time, halves.pairs)),
                _share(halves.any_op, halves.pairs),
            ]
        )
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return "\n" + table + "\n" + "".join(f"- {line}\n" for line in machine) + "\n"


def _share(part: int, whole: int) -> str:
    return f"{part} ({_percent(part / whole if whole else 0.0)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def main(argv: Sequence[str] | None = None) -> None:
    """Record, compare, and write the figures into the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_recordings", description=__doc__)
    parser.add_argument("--count", type=int, default=16, help="recordings of each model (default %(default)s)")
    parser.add_argument("--trials", type=int, default=200, help="random halves (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for the recordings; what it holds is not recorded again")
    args = parser.parse_args(argv)
    machine = description()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.keep or Path(temporary)).resolve()
        for variant in VARIANTS:
            record(variant, args.count, folder)
        text = report([folder / variant for variant in VARIANTS], args.trials, args.seed, machine)
    print(text)
    put(PAGE, "real_recordings", text)


if __name__ == "__main__":
    main()
