"""However large the runs, a page sends less than 2 MB to the browser: what its figures are as JSON, and its tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import plotly.io
import pytest

from tests.compare.compare_runs import WITHOUT_COSTS
from tests.views import chart_samples as samples
from tests.views.memory.test_charts import line
from tfcompare import schema
from tfcompare.compare.diff import INTERVAL
from tfcompare.compare.groups.aggregate import group_diff, largest_changes
from tfcompare.compare.groups.scope_tree import scope_tree
from tfcompare.compare.side import Side
from tfcompare.views import bars as ops
from tfcompare.views import chart_style as downsampling
from tfcompare.views import icicles as scopes
from tfcompare.views.input import charts as input_pipeline
from tfcompare.views.input.figures import share_by_step
from tfcompare.views.memory import charts as memory
from tfcompare.views.memory.curve import thinned
from tfcompare.views.ops.figures import time_shares, with_shares
from tfcompare.views.shares import time_bars
from tfcompare.views.steps import charts as steps
from tfcompare.views.steps import part_charts as step_parts

SIDES = (Side("a_run_with_a_long_name/of/the/slow/one", 0), Side("a_run_with_a_long_name/of/the/fast/one", 1))
STEPS, OPS, EVENTS = 10_000, 20_000, 200_000
MOST_BYTES = 1_500_000
"""Of the 2 MB of a page; tables and texts have the rest."""

SCOPE = "gradient_tape/encoder_decoder_with_attention/transformer_block_{}/multi_head_attention/einsum_{}/Einsum"


@cache
def many_steps(seed: int) -> pd.DataFrame:
    """Steps that are all different, of which one in fifty is far from the others, each made of every part."""
    rng = np.random.default_rng(seed)
    times = rng.lognormal(11, 0.05, STEPS) * np.where(rng.random(STEPS) < 0.02, 3, 1)
    frame = samples.steps(times.tolist(), host="worker-17.training.example.com")
    parts = rng.dirichlet(np.ones(len(schema.STEP_PARTS)), STEPS) * times[:, np.newaxis]
    frame = frame.assign(**dict(zip(schema.STEP_PARTS, parts.T, strict=True)))
    return frame.assign(input_share=share_by_step(frame))


@cache
def many_ops(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    times = rng.lognormal(8, 2, OPS)
    return schema.OP_STATS.conform(
        pd.DataFrame(
            {
                "host": schema.ALL_HOSTS,
                "host_or_device": schema.HOST,
                "op_type": [f"Einsum{i % 50}" for i in range(OPS)],
                "op_name": [SCOPE.format(i % 200, i) for i in range(OPS)],
                "occurrences": 100,
                "total_time_us": 1e6,
                "self_time_us": times,
                "wall_time_us": times,
                "is_eager": False,
                **WITHOUT_COSTS,
            }
        )
    )


@cache
def op_diff() -> pd.DataFrame:
    rows = samples.diff(many_ops(1), many_ops(2))
    ratios = rows[f"{samples.METRIC}_ratio"]
    return rows.assign(**{INTERVAL[0]: ratios * 0.9, INTERVAL[1]: ratios * 1.1, "verdict": "unclear"})


@cache
def timeline_of(seed: int) -> pd.DataFrame:
    """What is drawn of a timeline of so many events."""
    rng = np.random.default_rng(seed)
    levels = np.abs(rng.integers(-(2**20), 2**20, EVENTS).cumsum())
    kept = thinned(np.arange(EVENTS, dtype=float), levels.astype(float), int(levels.argmax()))
    names = [SCOPE.format(i % 200, i) for i in kept]
    return line(
        levels[kept].tolist(),
        kept.astype(float).tolist(),
        op_name=names,
        shape="[1024,512,512,128]",
        fragmentation=rng.random(len(kept)),
    )


def overview() -> list[Any]:
    every = [(Side(f"run_{i}", i, 6), many_steps(i % 2)) for i in range(6)]
    changes = largest_changes(op_diff(), n=ops.TOP)
    return [
        steps.step_times(every),
        steps.step_distribution(every),
        *(step_parts.parts_of_steps(side, many_steps(side.position)) for side in SIDES),
        ops.movers(changes, samples.METRIC, per="step"),
    ]


def op_stats() -> list[Any]:
    changes = largest_changes(op_diff(), n=15)
    times = [time_shares(with_shares(group_diff(op_diff(), by)), by) for by in ("op_name", "op_type")]
    in_steps = [(side, many_steps(side.position).assign(self_time_us=lambda f: f["input_us"])) for side in SIDES]
    return [
        ops.movers(changes, samples.METRIC, per="step"),
        *(time_bars(rows, SIDES, "self_time_us", title="op", axis="time") for rows in times),
        scopes.scope_icicle(scope_tree(op_diff()), samples.METRIC, per="step", place="host"),
        steps.op_in_steps(in_steps, SCOPE),
    ]


def memory_page() -> list[Any]:
    lines = [(side, timeline_of(side.position)) for side in SIDES]
    composed = [memory.memory_composition(side, frame, "time") for side, frame in lines]
    return [memory.timeline(lines, lines, "in_use_bytes", "time"), *composed]


def input_page() -> list[Any]:
    series = [(side, many_steps(side.position)) for side in SIDES]
    return [input_pipeline.step_times(series), input_pipeline.input_shares(series)]


@pytest.mark.parametrize("page", [overview, op_stats, memory_page, input_page])
def test_the_figures_of_a_page_are_small_however_large_the_runs(page: Callable[[], list[Any]]) -> None:
    figures = page()
    assert all(figure.data for figure in figures)
    assert sum(len(plotly.io.to_json(figure, validate=False)) for figure in figures) < MOST_BYTES


def test_a_long_line_keeps_every_step_that_is_marked_and_the_extremes() -> None:
    frame = many_steps(0)
    line, marks = steps.step_times([(SIDES[0], frame)]).data[:2]
    assert len(line.x) <= downsampling.MAX_LINE_POINTS + downsampling.MAX_MARKED + 2
    drawn = frame["duration_us"].iloc[np.asarray(line.x) - 1]
    assert (drawn.min(), drawn.max()) == (frame["duration_us"].min(), frame["duration_us"].max())
    assert set(marks.x) <= set(line.x)
    assert {1, STEPS} <= set(line.x)
    assert [line.customdata[0][0], line.customdata[-1][0]] == [str(frame["step"].iloc[i]) for i in (0, -1)]


def test_of_the_marked_steps_the_farthest_have_a_marker() -> None:
    values = np.append(np.full(1000, 10.0), np.arange(11.0, 11.0 + 2 * downsampling.MAX_MARKED))
    chosen = downsampling.steps_to_mark(values, values > 10)
    assert chosen.sum() == downsampling.MAX_MARKED
    assert values[chosen].min() == values.max() - downsampling.MAX_MARKED + 1
    assert downsampling.steps_to_mark(values, values > 400).sum() == (values > 400).sum()


def test_a_line_that_fits_is_drawn_whole_and_says_nothing() -> None:
    assert downsampling.steps_to_draw(np.arange(100.0)).tolist() == list(range(100))
    assert downsampling.note(100) == ""
    assert "of 10,000 steps" in steps.step_times([(SIDES[0], many_steps(0))]).layout.title.subtitle.text


def test_the_box_of_many_steps_is_that_of_all_of_them() -> None:
    frame = many_steps(0)[lambda f: f["included"]]
    box = steps.step_distribution([(SIDES[0], frame)]).data[0]
    times = frame["duration_us"].to_numpy() / 1e3
    assert box.median[0] == pytest.approx(np.median(times))
    assert np.mean(times < box.q1[0]) == pytest.approx(0.25, abs=1e-3)
    assert np.mean(times < box.q3[0]) == pytest.approx(0.75, abs=1e-3)
    points = np.array(box.x[0])
    assert len(points) == len(box.customdata[0]) == steps.MAX_BOX_POINTS
    assert (points.min(), points.max()) == (pytest.approx(times.min()), pytest.approx(times.max()))
