"""Where the time goes, as bars of times or shares, and as texts."""

from __future__ import annotations

from typing import Any

import pandas as pd

from tfcompare.charts import shares as charts
from tfcompare.compare.pair import Pair
from tfcompare.schema import SIDES
from tfcompare.text import capitalized
from tfcompare.tools.ops.op_stats import longest_first
from tfcompare.units import format_percent
from tfcompare.views.blocks import Facts
from tfcompare.views.view import by_role


def bars(
    pair: Pair, times: pd.DataFrame, metric: str, *, title: str, of: str, reach: float = 0.0, as_shares: bool = False
) -> Any:
    """The rows of `time_shares` as bars, of times or of shares; `of` says what time it is, such as `self time`."""
    sides = [side for side, _ in pair.shown]
    if as_shares:
        axis = f"Share of {of}"
        return charts.share_bars(times, sides, metric, title=title, axis=axis, reach=reach)
    axis = f"{capitalized(of)} per {pair.per_what}"
    return charts.time_bars(longest_first(times, metric), sides, metric, title=title, axis=axis, reach=reach)


def facts(pair: Pair, times: pd.DataFrame, title: str, most: int) -> Facts:
    """The largest shares of `time_shares` as texts."""
    names = times["label" if "label" in times else "group"].head(most)
    columns = [times[name].head(most).map(format_percent) for name in by_role("share", SIDES[: len(pair.shown)])]
    cells = [[str(name), *shares] for name, *shares in zip(names, *columns, strict=True)]
    more = len(times) - len(cells)
    return Facts([title, *pair.headings], cells, (1, 2), note=f"{more} more are left out." if more else "")
