"""Measurements as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.jobs import (
    JOBS,
    OUR_TABLES,
    TFCOMPARE,
    TFCOMPARE_AGAIN,
    TFCOMPARE_KEEPING,
    TFCOMPARE_OP_STEPS,
    TFCOMPARE_WARM,
    XPROF,
    XPROF_TOOLS,
    XPROF_WARM,
)
from benchmarks.measure import Cost

Metric = Callable[[Cost], float]

_RUNNING = (TFCOMPARE_AGAIN, TFCOMPARE_OP_STEPS, XPROF, XPROF_WARM)
_FRESH = (TFCOMPARE, TFCOMPARE_KEEPING, TFCOMPARE_WARM, XPROF, XPROF_WARM)

_BASE_MEGABYTES, _LARGE_MEGABYTES = 30, 300
_AIMS = {"tf_cpu": (10, 3), "tf_gpu": (10, 3), "jax_tpu": (6, 3), "jax_gpu": (4, 2.5)}
"""How many times as fast as xprof in a running process, and by how much smaller, each kind of file is to be read: what
reading a table of a host as columns, once, was estimated to come to."""

_LISTED = ", ".join(f"`{table}`" for table in OUR_TABLES)

HOW = f"""\
Measure again rather than edit: `make bench`. A part of it: `python -m benchmarks --kinds tf_gpu --sizes 30 --runs 3`;
each section says what it was measured with, and on what.

In a round each job runs once, one after the other, each in a fresh process; each round has an order of its own. The
files are in the page cache, numba's compiled code is on disk (see "First use"). Cells are medians (least–most) over the
rounds. In brackets: how many times as much as `{TFCOMPARE}` took in the same round, the median of the rounds; in a
running process, as `{TFCOMPARE_AGAIN}`.

| job | what it does |
| --- | --- |
| {TFCOMPARE} | reads the file, nothing kept from before, and makes {_LISTED} |
| {TFCOMPARE_KEEPING} | the same, and keeps the frames for the next time, which goes on until the process ends |
| {TFCOMPARE_WARM} | the same file again, with the frames that were kept |
| {TFCOMPARE_AGAIN} | reads the file in a process that has read one before, as the app's server; nothing kept |
| {TFCOMPARE_OP_STEPS} | what each op took in each step, for verdicts, after all that; xprof has no such thing |
| {XPROF} | {", ".join(f"`{t}`" for t in XPROF_TOOLS)}, in one process, in a folder of the file's own |
| {XPROF_WARM} | the same tools again, in the folder that the first time left |

tf.data is on top in ours: xprof no longer has it. *Work* is from the file to the tables, the process with its imports
ready; *process* is from its start to its end."""


@dataclass(frozen=True)
class Measured:
    """Rounds on one file. The first costs of all jobs were taken in the same round, the second ones, and so on; a slow
    job may have gone through fewer rounds than others."""

    name: str
    megabytes: float
    costs: dict[str, list[Cost]]

    def values(self, job: str, metric: Metric) -> list[float]:
        """The metric in each round."""
        return [metric(cost) for cost in self.costs[job]]

    def ratio(self, metric: Metric, job: str, to: str = TFCOMPARE) -> float:
        """How many times as much as `to` the job took, round by round: the median."""
        pairs = zip(self.values(job, metric), self.values(to, metric), strict=False)
        return median(value / other for value, other in pairs)


def work_s(cost: Cost) -> float:
    """Seconds from the file to the tables."""
    return cost.work_s


def process_s(cost: Cost) -> float:
    """Seconds of the whole process."""
    return cost.process_s


def peak_mb(cost: Cost) -> float:
    """Megabytes of resident memory at its peak."""
    return cost.peak_bytes / 1e6


def section(title: str, measured: Sequence[Measured], context: Sequence[str]) -> str:
    """What was measured on some files that belong together; `context`: with what, and on what machine."""
    blocks = [
        f"## {title}",
        "\n".join(f"- {line}" for line in context),
        "Work in a running process, in seconds (xprof has nothing that it needs to be running for):",
        _table(measured, work_s, "{:.2f}", _RUNNING, TFCOMPARE_AGAIN),
        "Work in a fresh process, in seconds:",
        _table(measured, work_s, "{:.2f}", _FRESH),
        "Process, in seconds:",
        _table(measured, process_s, "{:.2f}"),
        "Peak memory, in MB:",
        _table(measured, peak_mb, "{:.0f}"),
    ]
    return "\n\n".join(blocks)


def grown(title: str, measured: Sequence[Measured], context: Sequence[str]) -> str:
    """The same of files that differ in size alone, and how the cost grows with it."""
    growth = "Growth: milliseconds of work for each megabyte of the file:"
    return "\n\n".join([section(title, measured, context), *([growth, _growth(measured)] if len(measured) > 1 else [])])


def aims(kind: str, measured: Sequence[Measured]) -> list[str]:
    """What files of that kind of about 30 and 300 MB are to show, and what they do: blocks of Markdown."""
    of_size = {round(m.megabytes, -1): m for m in measured}  # to tens of MB: generated files are a little off
    rows = []
    if base := of_size.get(_BASE_MEGABYTES):
        times, memory = _AIMS[kind]
        again = base.ratio(work_s, XPROF, TFCOMPARE_AGAIN)
        rows.append(_aimed("work at 30 MB, in a running process", times, again))
        rows.append(_aimed("peak memory at 30 MB", memory, base.ratio(peak_mb, XPROF, TFCOMPARE_AGAIN)))
        if large := of_size.get(_LARGE_MEGABYTES):
            rows.append(
                _aimed("work at 300 MB, in a running process", times, large.ratio(work_s, XPROF, TFCOMPARE_AGAIN))
            )
            rows.append(_linear(base, large))
    return ["Aims:", _markdown(["what", "aim", "measured", "outcome"], rows, ["---"] * 4)] if rows else []


def first_use(costs: Sequence[Cost], usual: Measured, context: Sequence[str]) -> str:
    """What the first profile on a machine costs."""
    took, usually = (median(values) for values in ([c.work_s for c in costs], usual.values(TFCOMPARE, work_s)))
    return "\n\n".join(
        [
            "## First use",
            "\n".join(f"- {line}" for line in context),
            f"The first profile ever read on a machine waits for numba to compile: {took:.1f} s of work in place of"
            f" {usually:.2f} s ({usual.name}, median of {len(costs)}), once; the app says so when it happens.",
        ]
    )


def _aimed(what: str, aim: float, ratio: float) -> list[str]:
    shown = f"1/{ratio:.1f}" if ratio >= 1 else f"{1 / ratio:.1f} times"
    outcome = "reached" if ratio >= aim else f"short of it: {aim / ratio:.1f} times as much as aimed at"
    return [what, f"at most 1/{aim:g} of xprof's", shown, outcome]


def _linear(base: Measured, large: Measured) -> list[str]:
    small, big = (median(m.values(TFCOMPARE_AGAIN, work_s)) / m.megabytes for m in (base, large))
    outcome = "reached" if big <= 1.2 * small else f"short of it: {big / small / 1.2:.2f} times as much as aimed at"
    return ["work for a MB at 300 MB, to that at 30 MB", "at most 1.20 times", f"{big / small:.2f} times", outcome]


def _table(
    measured: Sequence[Measured], metric: Metric, form: str, of: Collection[str] = tuple(JOBS), to: str = TFCOMPARE
) -> str:
    """The jobs `of` these, in brackets how many times as much as `to` they took."""
    jobs = [job for job in JOBS if job in of and any(job in m.costs for m in measured)]
    rows = [[m.name, f"{m.megabytes:.1f}", *(_cell(m, job, metric, form, to) for job in jobs)] for m in measured]
    return _markdown(["file", "MB", *jobs], rows)


def _cell(measured: Measured, job: str, metric: Metric, form: str, to: str) -> str:
    values = measured.values(job, metric)
    low, mid, high = (form.format(v) for v in (min(values), median(values), max(values)))
    spread = f" ({low}–{high})" if len(values) > 1 else ""
    ratio = "" if job == to else f" [{measured.ratio(metric, job, to):.2g}×]"
    return f"{mid}{spread}{ratio}"


def _growth(measured: Sequence[Measured]) -> str:
    jobs = list(measured[0].costs)
    rows = [[m.name, *(f"{1000 * median(m.values(job, work_s)) / m.megabytes:.1f}" for job in jobs)] for m in measured]
    return _markdown(["file", *jobs], rows)


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]], align: Sequence[str] = ()) -> str:
    lines = (header, align or ["---", *["---:"] * (len(header) - 1)], *rows)
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)
