"""The parts of a step of each host or device, of the average step or of one: the pod viewer of TensorBoard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.compare.pair import Pair
from tfcompare.text import as_code, by_number
from tfcompare.units import MISSING, format_time_us
from tfcompare.views.blocks import Block, Chart, Facts, Text
from tfcompare.views.chart_style import shorten_distinct
from tfcompare.views.hosts import charts
from tfcompare.views.hosts import figures as hosts
from tfcompare.views.hosts.figures import By, PairedSteps

AVERAGE = 0
"""In place of the position of a step: the average of all that count."""
MOST_BARS = 16
"""So many hosts have bars of their own; of more, the `SLOWEST` do, and the one in the middle."""
SLOWEST = 10
MOST_PARTS = 2
"""Parts of a step that a text names."""


@dataclass(frozen=True)
class HostParts:
    """The parts of a step in each host or device: `frames` has one frame for each run that is shown, in µs, with a row
    for each of them that has the step. `letters` are those of the runs. `numbers`: what each run's program calls the
    step, where that is not its position, as ` (number 18)`."""

    by: By
    at_step: int
    frames: Sequence[pd.DataFrame]
    letters: Sequence[str]
    numbers: Sequence[str]

    @classmethod
    def of(cls, pair: Pair, steps: PairedSteps, by: By, at_step: int) -> HostParts:
        """Of the step at this position, or of the average step."""
        sides = (steps.baseline, steps.candidate)[: len(pair.shown)]
        if at_step == AVERAGE:
            means = [hosts.part_means(rows) for rows in sides]
            return cls(by, at_step, means, pair.letters, [""] * len(sides))
        called = [rows.loc[rows["place"] == at_step, "step"].unique() for rows in sides]
        numbers = [f" (number {of[0]})" if len(of) == 1 and of[0] != at_step else "" for of in called]
        own = [rows[rows["place"] == at_step].set_index("name") for rows in sides]
        frames = [rows[list(schema.STEP_PARTS)].astype("float64") for rows in own]
        return cls(by, at_step, frames, pair.letters, numbers)

    @property
    def names(self) -> list[str]:
        """All hosts, by name."""
        return sorted({str(name) for frame in self.frames for name in frame.index}, key=by_number)

    @property
    def ordered_by(self) -> int:
        """The run by which hosts are ordered: the last of those with most of them."""
        return max(range(len(self.frames)), key=lambda side: (len(self.frames[side]), side))

    @property
    def slowest_first(self) -> list[str]:
        """The hosts of that run, by their time without collectives and waits."""
        busy = hosts.busy_of(self.frames[self.ordered_by])
        return [str(name) for name in busy.sort_values(ascending=False, kind="stable").index]

    def slowest(self, side: int) -> str:
        """The host with the longest time without collectives and waits in a run; empty if no other is faster."""
        busy = hosts.busy_of(self.frames[side])
        return str(busy.idxmax()) if len(busy) and busy.max() > busy.min() else ""

    @property
    def shown(self) -> dict[str, str]:
        """The hosts that have bars of their own, and what each is: all by name, or the slowest and the middle one."""
        names, roles = self.names, dict[str, list[str]]()
        longest = [self.slowest(side) for side in range(len(self.frames))]
        if len(names) > MOST_BARS:
            order = self.slowest_first
            middle = order[len(order) // 2]
            names = list(dict.fromkeys([*order[:SLOWEST], middle, *filter(None, longest)]))
            roles[middle] = ["median"]
        for slowest, letter in zip(longest, self.letters, strict=False):
            which = "" if len(longest) == 1 else " in both" if longest[0] == longest[1] else f" in {letter}"
            roles.setdefault(slowest, []).append(f"slowest{which}")
        return {name: ", ".join(dict.fromkeys(roles.get(name, []))) for name in names}


def places(steps: PairedSteps) -> dict[int, str]:
    """The positions of the steps that count in either run, by what they are called, and first the average."""
    there = {int(at) for rows in (steps.baseline, steps.candidate) for at in rows.loc[rows["included"] == 1, "place"]}
    return {AVERAGE: "average", **{at: str(at) for at in sorted(there)}}


def blocks(pair: Pair, parts: HostParts, *, every_host: bool) -> Iterator[Block]:
    """Who is slowest in the chosen step, and its parts in each host."""
    if parts.at_step != AVERAGE:
        yield Text(" ".join(_slowest(pair, parts)))
    shown = parts.shown
    if len(shown) < len(parts.names) and not every_host:
        text = f"The {SLOWEST} slowest of {len(parts.names):,} {parts.by}s and the one in the middle"
        yield Text(f"{text}{'' if pair.is_single else f', as in {parts.letters[parts.ordered_by]}'}.", "quiet")
    make = partial(draw, pair, parts, every_host=every_host)
    facts, narrow = _longest_parts(pair, parts, shown), partial(make, labels=charts.FEW_COLUMN_LABELS)
    yield Chart("host_parts", make, facts, (parts.by, parts.at_step, every_host), narrow)


def _slowest(pair: Pair, parts: HostParts) -> Iterator[str]:
    """Which host takes longest in the step, in each run."""
    for side, (name, frame) in enumerate(zip(pair.marked, parts.frames, strict=False)):
        step = f"{parts.at_step}{parts.numbers[side]}"
        who = f"Step {step}" if pair.is_single else f"{name}, step {step}"
        if frame.empty:
            yield f"{who}: there is no such step."
        elif slowest := parts.slowest(side):
            busy = hosts.busy_of(frame)
            more_us = busy[slowest] - busy.median()  # as the column `busy_skew_us`
            yield (
                f"{who}: {as_code(slowest)} takes longest without collectives and waits, "
                f"{format_time_us(busy[slowest])}: {format_time_us(more_us)} more than the median of all."
            )
        else:
            yield f"{who}: all {parts.by}s take equally long without collectives and waits."


def draw(pair: Pair, parts: HostParts, *, every_host: bool, labels: int = charts.MOST_COLUMN_LABELS) -> Any:
    """The parts as a figure: of the hosts that are shown as bars, of every host as columns with so many `labels`."""
    sides = list(zip([side for side, _ in pair.shown], parts.frames, strict=True))
    title = "Average step by part" if parts.at_step == AVERAGE else f"Step {parts.at_step} by part"
    shown = parts.shown
    if every_host and len(shown) < len(parts.names):
        slowest = [parts.slowest(side) for side in range(len(sides))]
        return charts.all_host_parts(title, sides, parts.names, slowest, labels)
    names = shorten_distinct(list(shown), charts.LABEL_LENGTH)
    called = [f"{name}: {role}" if role else name for name, role in zip(names, shown.values(), strict=True)]
    return charts.host_parts(title, sides, list(shown), called)


def _longest_parts(pair: Pair, parts: HostParts, shown: dict[str, str]) -> Facts:
    """The longest parts of the step of each host, as texts."""
    cells = {name: [f"{name} ({role})" if role else name] for name, role in shown.items()}
    for frame in parts.frames:
        labels = [schema.STEPS.column(str(part)).label for part in frame]
        times = frame.reindex(list(shown)).fillna(0.0).to_numpy(np.float64)
        order = np.argsort(-times, axis=1, kind="stable")[:, :MOST_PARTS]
        for name, own, longest in zip(shown, times, order, strict=True):
            texts = [f"{labels[part]} {format_time_us(own[part])}" for part in longest if own[part] > 0]
            cells[name].append(", ".join(texts) if name in frame.index else MISSING)
    return Facts([f"Longest parts, by {parts.by}", *pair.headings], list(cells.values()))
