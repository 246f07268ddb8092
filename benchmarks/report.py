"""Measurements as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from statistics import median

from benchmarks.jobs import OUR_TABLES, TFCOMPARE, TFCOMPARE_AGAIN, TFCOMPARE_WARM, XPROF, XPROF_TOOLS, XPROF_WARM
from benchmarks.measure import LARGE_MEGABYTES, SLOW_ROUNDS, Cost, Measured

_RUNNING, _FRESH = (TFCOMPARE_AGAIN, XPROF, XPROF_WARM), (TFCOMPARE, TFCOMPARE_WARM, XPROF, XPROF_WARM)
_BASE_MEGABYTES, _LARGE_MEGABYTES = 30, 300
_AIMS = {"tf_cpu": (8, 2.5), "tf_gpu": (8, 2.5), "jax_tpu": (6, 2.5), "jax_gpu": (2.5, 2.5)}
"""How many times as fast as xprof in a running process, and by how much smaller, each kind of file is to be read: what
profiles of the reader let one hope for."""

_TABLES = ", ".join(f"`{table}`" for table in OUR_TABLES)

HOW = f"""\
Measure again rather than edit: `make bench`. A part of it: `python -m benchmarks --kinds tf_gpu --sizes 30 --runs 3`;
each section says what it was measured with, and on what.

In a round each job runs once, one after the other, each in a fresh process; each round has an order of its own. The
files are in the page cache, numba's compiled code is on disk. Cells are medians (least–most) over the rounds; on files
above {LARGE_MEGABYTES} MB xprof has at most {SLOW_ROUNDS}. In brackets: how many times as much as `{TFCOMPARE}` took in
the same round, the median of the rounds; in a running process, as `{TFCOMPARE_AGAIN}`.

| job | what it does |
| --- | --- |
| {TFCOMPARE} | reads the file, keeps the frames for the next time, and makes {_TABLES} |
| {TFCOMPARE_WARM} | the same file again, with the frames that were kept |
| {TFCOMPARE_AGAIN} | reads the file in a process that has read one before, as the app's server; nothing kept |
| {XPROF} | {", ".join(f"`{t}`" for t in XPROF_TOOLS)}, in one process, in a folder of the file's own |
| {XPROF_WARM} | the same tools again, in the folder that the first time left |

tf.data is on top in ours: xprof no longer has it. *Work* is from the file to the tables, the process with its imports
ready; *process* is from its start to its end."""


def work_s(cost: Cost) -> float:
    """Seconds from the file to the tables."""
    return cost.work_s


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
        _table(measured, lambda cost: cost.process_s, "{:.2f}", _FRESH),
        "Peak memory, in MB:",
        _table(measured, peak_mb, "{:.0f}", (TFCOMPARE, TFCOMPARE_WARM, TFCOMPARE_AGAIN, XPROF, XPROF_WARM)),
    ]
    return "\n\n".join(blocks)


def aims(kind: str, measured: Sequence[Measured]) -> list[str]:
    """What files of that kind of about 30 and 300 MB are to show, and what they do: blocks of Markdown."""
    of_size = {round(m.megabytes, -1): m for m in measured}  # to tens of MB: generated files are a little off
    times, memory = _AIMS[kind]
    rows = []
    for megabytes in (_BASE_MEGABYTES, _LARGE_MEGABYTES):
        if found := of_size.get(megabytes):
            work = found.ratio(work_s, XPROF, TFCOMPARE_AGAIN)
            rows.append(_aimed(f"work at {megabytes} MB, in a running process", times, work))
    if base := of_size.get(_BASE_MEGABYTES):
        rows.append(_aimed("peak memory at 30 MB", memory, base.ratio(peak_mb, XPROF, TFCOMPARE_AGAIN)))
        if large := of_size.get(_LARGE_MEGABYTES):
            small, big = (median(m.values(TFCOMPARE_AGAIN, work_s)) / m.megabytes for m in (base, large))
            outcome = "reached" if big <= 1.2 * small else "short of it"
            rows.append(
                ["work for a MB at 300 MB, to that at 30 MB", "at most 1.20 times", f"{big / small:.2f} times", outcome]
            )
    return ["Aims:", _markdown(["what", "aim", "measured", "outcome"], rows, ["---"] * 4)] if rows else []


def _aimed(what: str, aim: float, ratio: float) -> list[str]:
    shown = f"1/{ratio:.1f}" if ratio >= 1 else f"{1 / ratio:.1f} times"
    return [what, f"at most 1/{aim:g} of xprof's", shown, "reached" if ratio >= aim else "short of it"]


def _table(
    measured: Sequence[Measured], metric: Callable[[Cost], float], form: str, jobs: Collection[str], to: str = TFCOMPARE
) -> str:
    """These jobs, in brackets how many times as much as `to` they took."""
    rows = [[m.name, f"{m.megabytes:.1f}", *(_cell(m, job, metric, form, to) for job in jobs)] for m in measured]
    return _markdown(["file", "MB", *jobs], rows)


def _cell(measured: Measured, job: str, metric: Callable[[Cost], float], form: str, to: str) -> str:
    values = measured.values(job, metric)
    low, mid, high = (form.format(v) for v in (min(values), median(values), max(values)))
    spread = f" ({low}–{high})" if len(values) > 1 else ""
    return f"{mid}{spread}" + ("" if job == to else f" [{measured.ratio(metric, job, to):.2g}×]")


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]], align: Sequence[str] = ()) -> str:
    lines = (header, align or ["---", *["---:"] * (len(header) - 1)], *rows)
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)
