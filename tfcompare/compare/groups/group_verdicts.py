"""Verdicts on the rows of a diff, or on groups of rows, from their times in each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.compare.controls import have_equal_work
from tfcompare.compare.groups.aggregate import Groups
from tfcompare.compare.groups.fused_rows import single_ops
from tfcompare.compare.matching.matching import with_hosts_of
from tfcompare.compare.spreads import spread_on
from tfcompare.compare.stats.change_test import ChangeTest, rows_without_interval, with_speeds
from tfcompare.compare.stats.estimates import FEWEST_REPEATS, Times
from tfcompare.compare.stats.step_series import step_series
from tfcompare.compare.stats.verdict import SAME, Spread
from tfcompare.schema import SIDES
from tfcompare.schema.arrays import Int64
from tfcompare.tables.step_times import StepCells

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.compare.side import Side


def group_verdicts(groups: Groups, pair: Pair) -> pd.DataFrame:
    """`verdict`, `evidence`, `interval_low` and `interval_high` of each group, tested as one family.

    A group's time in a step is the sum over all its rows on that side. A group on one side only is untested. Where the
    steps are of several kinds, a group is tested in the steps of the kind in which it takes most time.
    """
    if pair.is_identical:
        return rows_without_interval(len(groups.ratios), SAME)
    result = rows_without_interval(len(groups.ratios))
    if pair.are_unrelated:
        return result
    ours, theirs = (set(groups.number_of[side]) for side in SIDES)
    both = np.array(sorted(ours & theirs), np.int64)
    if not all(side.all_have_steps for side in pair.sides) or not both.size:
        return result
    test = ChangeTest(spread_on(pair, schema.DEVICE))
    own_spread = _spreads(groups, spread_on(pair, schema.HOST), test.spread)
    on_device = np.array([own_spread[number] is test.spread for number in both])
    if (narrowed := _as_controls_vary(groups, pair, test.spread)) is not None:
        is_equal = have_equal_work(groups.rows)
        unequal = {number for name in SIDES for number in groups.number_of[name][~is_equal].tolist()}
        own_spread |= {number: narrowed for number in both[on_device].tolist() if number not in unequal}
    before, after = (
        [of_capture.rows(both) for of_capture in _times(groups, name, side, pair)]
        for name, side in zip(SIDES, pair.sides, strict=True)
    )
    places = [rows for rows in (on_device, ~on_device) if rows.any()]
    displayed = pair.per_step(groups.ratios).to_numpy(np.float64)[both]

    def judge(rows: Int64, ours: Sequence[Times], theirs: Sequence[Times]) -> None:
        of_rows = [[with_speeds(times, places).rows(rows) for times in side] for side in (ours, theirs)]
        spreads = [own_spread[number] for number in both[rows]]
        found = test.rows(of_rows[0], of_rows[1], spreads=spreads, displayed=displayed[rows])
        result.loc[both[rows], list(found.columns)] = found.to_numpy(object)

    kinds = pair.common_kinds
    if kinds is None:
        judge(np.arange(len(both)), before, after)
        return result
    of_kinds = [kinds.split(side, times) for side, times in zip(pair.sides, (before, after), strict=True)]
    main = kinds.main(*of_kinds)
    for position, (ours_in_kind, theirs_in_kind) in enumerate(zip(*of_kinds, strict=True)):
        judge(np.flatnonzero(main == position), ours_in_kind, theirs_in_kind)
    return result


def _as_controls_vary(groups: Groups, pair: Pair, on_device: Spread) -> Spread | None:
    """The spread of ops of devices that do equal work on both sides; None where it is measured, given, or unknown."""
    is_assumed = pair.among.spread is None and min(len(side.runs) for side in pair.sides) < FEWEST_REPEATS
    if groups.table != schema.OP_STATS.name or not is_assumed:
        return None
    found = pair.controls.get(schema.DEVICE)
    return None if found is None or found.closed else found.scaled(on_device)


def _spreads(groups: Groups, on_host: Spread, elsewhere: Spread) -> dict[int, Spread]:
    """The widest spread among the rows of each group; rows with a `host_or_device` may run on the host."""
    rows = groups.rows
    hosts_rows = set(rows.index[rows["host_or_device"] == "Host"]) if "host_or_device" in rows else set()
    widest: dict[int, Spread] = {}
    for numbers in groups.number_of.values():
        for row, number in numbers.items():
            own = on_host if row in hosts_rows else elsewhere
            widest[number] = max(widest.get(number, own), own, key=lambda spread: spread.share)
    return widest


def _times(groups: Groups, name: str, side: Side, pair: Pair) -> list[Times]:
    """The time of each group in each step, for each capture of the side: of all devices and hosts, or of each."""
    number = groups.number_of[name]
    rows = groups.rows.loc[number.index]
    if groups.table == schema.OP_STATS.name:
        named = single_ops(rows, name)
    else:
        keys = list(schema.table(groups.table).keys)
        own = [f"{key}_candidate" if name == "candidate" and f"{key}_candidate" in rows else key for key in keys]
        named = rows[own].set_axis(keys, axis=1)
    number_of_op = number.loc[named.index].to_numpy(np.int64)
    sums = []
    for position in side.positions:
        cells = side.cells(position, groups.table)
        if "host" in named:
            are_together = (rows["host"] == schema.ALL_HOSTS).all()
            renamed = cells.keys.assign(host=schema.ALL_HOSTS) if are_together else with_hosts_of(rows, cells.keys)
            cells = StepCells(renamed, cells.cells)
        steps = side.steps(position)
        series = step_series(named, cells, steps.numbers)
        series *= pair.shares(groups.table, named, side, position)[:, np.newaxis]
        total = np.zeros((len(groups.ratios), series.shape[1]))
        np.add.at(total, number_of_op, series)
        sums.append(steps.split(total))
    return sums
