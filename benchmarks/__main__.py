"""tfcompare and xprof on the same files, side by side: `python -m benchmarks`, or `make bench`.

Writes each section of `results.md` as soon as it is measured; what is not asked for stays as it is. All sizes of a kind
are one section.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.jobs import JOBS, TFCOMPARE, XPROF, XPROF_WARM
from benchmarks.machine import description
from benchmarks.measure import Cost, copies, cost_of, without_compiled_code
from benchmarks.page import ResultsPage
from benchmarks.report import HOW, Measured, aims, first_use, grown, section

_HERE = Path(__file__).resolve().parent
_SAMPLES = _HERE.parent / "sample_logs"
_MEGABYTE = 1e6
_LARGE_MEGABYTES = 100
_SLOW_JOBS = (XPROF, XPROF_WARM)
_TITLES = {
    "tf_cpu": "TensorFlow on a CPU, generated",
    "tf_gpu": "TensorFlow on a GPU, generated",
    "jax_tpu": "JAX on a TPU, generated",
    "jax_gpu": "JAX on a GPU, generated: thousands of instructions",
}
_SAMPLE_RUNS = "samples"


@dataclass(frozen=True)
class Plan:
    """How often what is measured. `large_runs`: files of 100 MB and more; `slow_runs`: xprof on these, for minutes."""

    runs: int
    large_runs: int
    slow_runs: int

    def rounds(self, file: Path) -> Measured:
        """Every job on `file`, one after the other, as many times."""
        costs: dict[str, list[Cost]] = {job: [] for job in JOBS}
        megabytes = file.stat().st_size / _MEGABYTE
        is_large = megabytes > _LARGE_MEGABYTES
        runs = self.large_runs if is_large else self.runs
        with copies(file) as made:
            for i in range(runs):
                _say(f"{_name(file)}, round {i + 1} of {runs}")
                jobs = [job for job in JOBS if not is_large or i < self.slow_runs or job not in _SLOW_JOBS]
                for job, cost in made.round(i, jobs, _tell).items():
                    costs[job].append(cost)
        return Measured(_name(file), megabytes, costs)

    def described(self) -> str:
        """How often, in words."""
        fewer = f", {self.large_runs} on files of {_LARGE_MEGABYTES} MB and more, {self.slow_runs} of xprof there"
        return f"rounds: {self.runs}{fewer if self.slow_runs < self.runs else ''}"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what is asked for, print the page and write it."""
    args = _arguments(argv)
    plan = Plan(args.runs, *(min(args.runs, fewer) for fewer in (args.large_runs, args.slow_runs)))
    machine, page = description(), ResultsPage(args.out)
    page.put("how", HOW)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cost_of(TFCOMPARE, _generated(folder, "tf_cpu", 0.1), TFCOMPARE_STORE="off")  # leaves compiled code on disk
        for kind in args.kinds:
            measured: list[Measured] = []
            for megabytes in sorted(args.sizes):
                context = _context(plan, machine, f"--kinds {kind} --sizes {' '.join(f'{s:g}' for s in args.sizes)}")
                file = _generated(folder, kind, megabytes)
                measured.append(plan.rounds(file))
                page.put(kind, "\n\n".join((grown(_TITLES[kind], measured, context), *aims(kind, measured))))
                if kind == "tf_cpu" and megabytes == min(args.sizes, key=lambda size: abs(size - 30)):
                    _measure_first_use(page, file, measured[-1], args.compilations, context)
                file.unlink()
        if args.samples is not None:
            files = sorted(args.samples.rglob("*.xplane.pb"))
            context = _context(plan, machine, "--kinds --samples sample_logs")
            if files:
                page.put(_SAMPLE_RUNS, section("The sample runs", [plan.rounds(file) for file in files], context))
    page.put("bounds", (_HERE / "notes.md").read_text())
    if args.browser:
        from benchmarks.browser import report_section, with_section

        args.out.write_text(with_section(page.text(), report_section()))
    print(args.out.read_text(), end="")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--kinds", nargs="*", choices=sorted(_TITLES), default=list(_TITLES), help="kinds of generated files (all)"
    )
    parser.add_argument("--sizes", type=float, nargs="*", default=[3, 30, 300], help="their MB (default 3 30 300)")
    parser.add_argument("--runs", type=int, default=5, help="rounds on each file (default 5)")
    parser.add_argument("--large-runs", type=int, default=3, help="on files of 100 MB and more (default 3)")
    parser.add_argument("--slow-runs", type=int, default=2, help="of xprof on these (default 2)")
    parser.add_argument("--compilations", type=int, default=3, help="times that the first use is measured (default 3)")
    parser.add_argument("--samples", type=Path, default=_SAMPLES, help="folder of profiles that are measured as well")
    parser.add_argument("--no-samples", dest="samples", action="store_const", const=None, help="leave those out")
    parser.add_argument("--browser", action="store_true", help="measure pages in a real Chromium as well")
    parser.add_argument("--out", type=Path, default=_HERE / "results.md", help="where the report goes")
    return parser.parse_args(argv)


def _measure_first_use(page: ResultsPage, file: Path, usual: Measured, times: int, context: Sequence[str]) -> None:
    costs = []
    for _ in range(times):
        costs.append(without_compiled_code(TFCOMPARE, file))
        _tell("compiling", costs[-1])
    if costs:
        page.put("first_use", first_use(costs, usual, context))


def _context(plan: Plan, machine: Sequence[str], part: str) -> list[str]:
    """With what a section was measured, and on what."""
    command = f"python -m benchmarks {part} --runs {plan.runs}"
    return [f"{datetime.now(UTC):%Y-%m-%d}, `{command}`: {plan.described()}", "; ".join(machine)]


def _generated(folder: Path, kind: str, megabytes: float) -> Path:
    """A generated file, written by a process of its own to keep this one small."""
    file = folder / f"{kind}_{megabytes:g}_MB.xplane.pb"
    subprocess.run(
        [sys.executable, "-m", "benchmarks.generate", file, "--megabytes", str(megabytes), "--kind", kind],
        cwd=_HERE.parent, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return file


def _name(file: Path) -> str:
    """What tells the file in the report: the sample's logdir, or the generated file's own name."""
    if "plugins" in file.parts:
        return file.parts[file.parts.index("plugins") - 1]
    return file.name.removesuffix(".xplane.pb").replace("_", " ")


def _tell(job: str, cost: Cost) -> None:
    _say(f"  {job}: {cost.work_s:.2f} s, process {cost.process_s:.2f} s, {cost.peak_bytes / _MEGABYTE:.0f} MB")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
