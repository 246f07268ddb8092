"""Measurements as Markdown tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.jobs import JOBS, TFCOMPARE, TFCOMPARE_AGAIN
from benchmarks.measure import Cost
from tfcompare.schema import TABLES

_NOTES = Path(__file__).with_name("notes.md")
Metric = Callable[[Cost], float]

_HOW = """\
Written by `make bench`: measure again rather than edit (`{command}`).

Each cell is the median (least–most) of {runs} rounds. In a round each job runs once, one after the other, each in a
fresh process on its own copy of the file; the file is in the page cache and numba's compiled code on disk, nothing else
is cached. In brackets: how many times as much as tfcompare in the same round, the median of the rounds.

tfcompare makes all its tables ({tables}); xprof its overview page, its framework op stats, or both in one process,
where the second uses what the first left behind. "Not the first profile": in a process that has read one before, as
the app's server."""


@dataclass(frozen=True)
class Measured:
    """Paired runs on one file: the i-th costs of all jobs were taken one after the other."""

    name: str
    megabytes: float
    is_generated: bool
    costs: dict[str, list[Cost]]

    def values(self, job: str, metric: Metric) -> list[float]:
        """The metric in each run."""
        return [metric(cost) for cost in self.costs[job]]

    def ratios(self, job: str, metric: Metric) -> list[float]:
        """How many times as much as tfcompare `job` took, pair by pair."""
        ours, theirs = self.values(TFCOMPARE, metric), self.values(job, metric)
        return [b / a for a, b in zip(ours, theirs, strict=True)]


def work_s(cost: Cost) -> float:
    """Seconds from the file to the tables."""
    return cost.work_s


def process_s(cost: Cost) -> float:
    """Seconds of the whole process."""
    return cost.process_s


def peak_mb(cost: Cost) -> float:
    """Megabytes of resident memory at its peak."""
    return cost.peak_bytes / 1e6


def report(measured: Sequence[Measured], first_use: Sequence[Cost], machine: Sequence[str], command: str) -> str:
    """The whole page."""
    whole = [job for job in JOBS if job != TFCOMPARE_AGAIN]
    sections = [
        "# tfcompare beside xprof",
        _HOW.format(
            runs=len(measured[0].costs[TFCOMPARE]), command=command, tables=", ".join(f"`{t}`" for t in TABLES)
        ),
        "\n".join(f"- {line}" for line in machine),
        "## Time from the file to the tables, in seconds",
        _table(measured, JOBS, work_s, "{:.2f}"),
        "## Time of the whole process, in seconds",
        _table(measured, whole, process_s, "{:.2f}"),
        "## Peak memory, in MB",
        _table(measured, whole, peak_mb, "{:.0f}"),
        "## Growth: milliseconds for each megabyte of the generated files",
        _growth([m for m in measured if m.is_generated]),
        "## First use",
        _first_use(first_use, measured[-1]),
        _NOTES.read_text().strip(),
    ]
    return "\n\n".join(sections) + "\n"


def _table(measured: Sequence[Measured], jobs: Iterable[str], metric: Metric, form: str) -> str:
    jobs = list(jobs)
    rows = [[m.name, f"{m.megabytes:.1f}", *(_cell(m, job, metric, form) for job in jobs)] for m in measured]
    return _markdown(["file", "MB", *jobs], rows)


def _cell(measured: Measured, job: str, metric: Metric, form: str) -> str:
    values = measured.values(job, metric)
    low, mid, high = (form.format(v) for v in (min(values), median(values), max(values)))
    ratio = "" if job == TFCOMPARE else f" [{median(measured.ratios(job, metric)):.1f}×]"
    return f"{mid} ({low}–{high}){ratio}"


def _growth(measured: Sequence[Measured]) -> str:
    rows = [[m.name, *(f"{1000 * median(m.values(job, work_s)) / m.megabytes:.1f}" for job in JOBS)] for m in measured]
    return _markdown(["file", *JOBS], rows)


def _first_use(costs: Sequence[Cost], warmed: Measured) -> str:
    if not costs:
        return "Not measured this time."
    usual = median(warmed.values(TFCOMPARE, work_s))
    took = median(cost.work_s for cost in costs)
    return (
        f"The first profile ever read on a machine waits for numba to compile: {took:.1f} s in place of {usual:.2f} s"
        f" ({warmed.name}, median of {len(costs)}), once; the app says so when it happens."
    )


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    align = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, align, *rows))
