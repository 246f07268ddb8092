"""tfcompare and xprof on the same files, side by side: `python -m benchmarks`, or `make bench`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.jobs import JOBS, TFCOMPARE
from benchmarks.machine import description
from benchmarks.measure import Cost, cost_of
from benchmarks.report import Measured, report

_HERE = Path(__file__).resolve().parent
_SAMPLES = _HERE.parent / "sample_logs"
_MEGABYTE = 1e6


def compilations(file: Path, times: int, folder: Path) -> list[Cost]:
    """What it costs to read `file` where nothing is compiled yet."""
    costs = []
    for i in range(times):
        costs.append(cost_of(TFCOMPARE, file, folder / str(i)))
        _say(f"compiling: {costs[-1].work_s:.1f} s")
    return costs


def rounds(file: Path, is_generated: bool, times: int) -> Measured:
    """Every job on `file`, one after the other, as many times."""
    costs: dict[str, list[Cost]] = {job: [] for job in JOBS}
    for i in range(times):
        for job in JOBS:
            costs[job].append(cost_of(job, file))
        _say(f"{_name(file)}, {i + 1} of {times}: " + ", ".join(f"{costs[j][-1].work_s:.2f} s {j}" for j in JOBS))
    return Measured(_name(file), file.stat().st_size / _MEGABYTE, is_generated, costs)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print the report and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="rounds on each file (default 5)")
    parser.add_argument(
        "--sizes",
        type=float,
        nargs="*",
        default=[3, 30],
        help="MB of the generated files (default 3 30; 300 takes long)",
    )
    parser.add_argument("--compilations", type=int, default=3, help="times that the first use is measured (default 3)")
    parser.add_argument("--samples", type=Path, default=_SAMPLES, help="folder of profiles that are measured as well")
    parser.add_argument("--out", type=Path, default=_HERE / "results.md", help="where the report goes")
    args = parser.parse_args(argv)
    machine = description()
    with tempfile.TemporaryDirectory() as folder:
        files = [(file, False) for file in sorted(args.samples.rglob("*.xplane.pb"))]
        files += [(_generated(Path(folder), megabytes), True) for megabytes in args.sizes]
        first_use = compilations(files[-1][0], args.compilations, Path(folder) / "numba")
        cost_of(TFCOMPARE, files[-1][0])  # leaves compiled code in its usual place
        measured = [rounds(file, is_generated, args.runs) for file, is_generated in files]
    sizes = " ".join(f"{size:g}" for size in args.sizes)
    page = report(measured, first_use, machine, f"python -m benchmarks --runs {args.runs} --sizes {sizes}")
    args.out.write_text(page)
    print(page)


def _generated(folder: Path, megabytes: float) -> Path:
    """A generated file, written by a process of its own to keep this one small."""
    file = folder / f"generated_{megabytes:g}_MB.xplane.pb"
    subprocess.run(
        [sys.executable, "-m", "benchmarks.generate", file, "--megabytes", str(megabytes)],
        cwd=_HERE.parent, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return file


def _name(file: Path) -> str:
    """What tells the file in the report: the sample's logdir, or the generated file's own name."""
    if "plugins" in file.parts:
        return file.parts[file.parts.index("plugins") - 1]
    return file.name.removesuffix(".xplane.pb").replace("_", " ")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
