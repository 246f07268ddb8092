"""What changed, on one page: the answer, what to try next, and the steps of all runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pandas as pd

from tfcompare.charts import step_parts, steps
from tfcompare.charts.pair import Pair, has_steps, may_draw, sides, steps_of
from tfcompare.charts.style import Side
from tfcompare.run import Run
from tfcompare.tools import step_attribution
from tfcompare.units import format_time_us
from tfcompare.views.answer import advice, answer, average_step, waterfall
from tfcompare.views.blocks import Block, Facts, Section
from tfcompare.views.view import Make, View, charts_of

DRAWN_CANDIDATES = 4


def blocks(pair: Pair, options: Any) -> Iterator[Block]:
    """The answer, what to try next, and every step."""
    yield from answer(pair)
    yield Section("What to try next", list(advice(pair)), is_open=True)
    if any(has_steps(run) for _, run in pair.shown):
        yield Section("Steps", [_step_times(pair), *charts_of(pair, STEP_CHARTS, options)])


def _step_times(pair: Pair) -> Facts:
    """The included steps of each run: how many, and how long."""
    timed = [(name, run) for name, (_, run) in zip(pair.called, pair.shown, strict=False) if has_steps(run)]
    rows = []
    for name, run in timed:
        frame = steps_of(pair.comparison, run)
        times = frame.loc[frame["included"].astype(bool), "duration_us"]
        figures = (times.mean(), times.median(), times.quantile(0.95), times.max())
        rows.append([name, f"{len(times):,} of {len(frame):,}", *map(format_time_us, figures)])
    header = ["Step times", "Included", "Mean", "Median", "95th percentile", "Longest"]
    return Facts(header, rows, range(1, len(header)), optional=(4, 5))


def _series(pair: Pair) -> list[tuple[Side, pd.DataFrame]]:
    """The steps of all runs; none of a candidate that is not drawn, so that the others keep their colours."""
    runs = [pair.baseline, *([] if pair.is_single else pair.comparison.candidates)]
    return [
        (side, _steps(pair, run, is_drawn=position <= DRAWN_CANDIDATES or run is pair.candidate))
        for position, (side, run) in enumerate(zip(sides(pair.comparison), runs, strict=True))
    ]


def _steps(pair: Pair, run: Run, *, is_drawn: bool) -> pd.DataFrame:
    frame = steps_of(pair.comparison, run)
    return frame if is_drawn and has_steps(run) else frame.iloc[:0]


def _over_steps(pair: Pair, _options: Any, make: Callable[[list[tuple[Side, pd.DataFrame]]], Any]) -> Any:
    series = _series(pair)
    return make(series) if may_draw(frame for _, frame in series) else None


def _step_parts(pair: Pair, _options: Any, role: int) -> Any:
    if role >= len(pair.shown) or not has_steps(pair.runs[role]):
        return None
    frames = step_attribution.attributed_steps(pair.comparison, pair.candidate)
    return step_parts.parts_of_steps(pair.sides[role], frames[role]) if may_draw([frames[role]]) else None


OF_ALL_RUNS: dict[str, Make] = {
    "step_times": partial(_over_steps, make=steps.step_times),
    "step_distribution": partial(_over_steps, make=steps.step_distribution),
}
"""Charts of all runs, not of a pair alone."""
STEP_CHARTS: dict[str, Make] = OF_ALL_RUNS | {
    "step_parts_baseline": partial(_step_parts, role=0),
    "step_parts_candidate": partial(_step_parts, role=1),
}
VIEW = View("overview", "Overview", blocks, {"waterfall": waterfall, "average_step": average_step} | STEP_CHARTS)
