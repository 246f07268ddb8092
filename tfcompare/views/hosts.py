"""Hosts: who is slowest, in which steps, and where each host's time goes; of one host, its devices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from tfcompare.charts import hosts as charts
from tfcompare.charts.pair import Pair
from tfcompare.tools import hosts
from tfcompare.tools.host_words import verdict_sentence
from tfcompare.units import format_delta, format_time_us
from tfcompare.views.blocks import Block, Facts, Finding, Text
from tfcompare.views.view import Make, View, charts_of


def blocks(pair: Pair, options: Any) -> Iterator[Block]:
    """The slowest host in a sentence, the busy time of each host in each step, and the parts of their steps."""
    by = grouping(pair)
    if by is None:
        return
    slow = [hosts.slowest_host(run, by) for run in pair.runs]
    is_alone = pair.is_single or pair.is_identical
    if sentence := verdict_sentence(slow[1], None if is_alone else slow[0], alone=is_alone):
        yield Text(sentence)
    yield busy_times(pair, by)
    yield from charts_of(pair, CHARTS, options)


def busy_times(pair: Pair, by: hosts.By) -> Facts:
    """The mean busy time of the steps of each host, the slowest first."""
    paired = hosts.paired_steps(*pair.runs, by)
    sides = [matrix.mean(axis=1) for matrix in paired.matrices("busy_us")[: len(pair.shown)]]
    names = paired.by_skew[: charts.MOST_BARS]
    times = {name: [float(means.get(name, math.nan)) for means in sides] for name in names}
    cells = [[name, *map(format_time_us, of_host)] for name, of_host in times.items()]
    header = [f"Busy time per step, by {by}", *pair.headings]
    if not pair.is_single:
        header.append("Change")
        cells = [[*row, format_delta(times[row[0]][1] - times[row[0]][0], "µs")] for row in cells]
    more = len(paired.by_skew) - len(names)
    findings = [
        Finding(
            f"{by}:{name}", name, "µs", math.nan if pair.is_single else of_host[0], of_host[-1], more="timeline",
            is_alone=pair.is_single,
        )
        for name, of_host in times.items()
    ]  # fmt: skip
    note = f"{more:,} more {by}s." if more else ""
    return Facts(header, cells, range(1, len(header)), note=note, findings=findings)


def grouping(pair: Pair) -> hosts.By | None:
    """What can be compared: `host`, else `device`, if a run has several with steps."""
    groupings: tuple[hosts.By, ...] = ("host", "device")
    return next((by for by in groupings if any(by in hosts.groupings(run) for _, run in pair.shown)), None)


def _heat_map(pair: Pair, _options: Any, which: int) -> Any:
    """The busy time of each host in each step: of the baseline, of the candidate, or the difference."""
    by = grouping(pair)
    if by is None or (pair.is_single and which):
        return None
    paired = hosts.paired_steps(*pair.runs, by)
    matrices = paired.matrices("busy_us")
    if not matrices[which].size or matrices[which].shape[1] < 2:
        return None
    rows = matrices[which].loc[[name for name in paired.by_skew if name in matrices[which].index]]
    size = f"{len(rows):,} {by}s × {rows.shape[1]:,} steps, the slowest on top"
    if which == 2:
        title = f"Busy time of each step, {pair.letters[-1]} − {pair.letters[0]}"
        return charts.change_map(title, "blue: less; orange: more", rows)
    title = "Busy time of each step" if pair.is_single else f"Busy time of each step, {pair.letters[which]}"
    limits = charts.value_range([matrix for matrix in matrices[:2] if matrix.size])
    return charts.heat_map(title, size, rows, limits)


def _parts(pair: Pair, _options: Any = None) -> Any:
    by = grouping(pair)
    if by is None:
        return None
    paired = hosts.paired_steps(*pair.runs, by)
    rows = zip(pair.shown, (paired.baseline, paired.candidate), strict=False)
    means = [(side, hosts.part_means(of_side)) for (side, _), of_side in rows]
    return charts.host_parts(means, paired.by_skew[: charts.MOST_BARS])


def _why_not(pair: Pair) -> str:
    several = any(len(run.host_names) > 1 or len(run.devices) > 1 for run in pair.runs)
    return "" if several else "The runs have one host and at most one device."


CHARTS: dict[str, Make] = {
    "hosts_baseline": partial(_heat_map, which=0),
    "hosts_candidate": partial(_heat_map, which=1),
    "hosts_change": partial(_heat_map, which=2),
    "host_parts": _parts,
}
VIEW = View("hosts", "Hosts", blocks, CHARTS, _why_not)
