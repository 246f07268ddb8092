"""Small frames shaped like those of real runs, for tests of charts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tests.compare.compare_runs import WITHOUT_COSTS
from tfcompare import schema
from tfcompare.compare.diff import SideRows, diff_table

STEPS = 20
METRIC = "self_time_us"
SCOPE = "autoencoder"
OPS = [  # op type, op name, self time per step in the slow run, in the fast one
    ("Conv2DBackpropFilter", f"gradient_tape/{SCOPE}/conv2d_1/Conv2D/Conv2DBackpropFilter", 120_000.0, 4_000.0),
    ("Conv2DBackpropInput", f"gradient_tape/{SCOPE}/conv2d_1/Conv2D/Conv2DBackpropInput", 90_000.0, 3_000.0),
    ("Conv2D", f"{SCOPE}/conv2d_1/Conv2D", 60_000.0, 2_500.0),
    ("Conv2D", f"{SCOPE}/conv2d/Conv2D", 30_000.0, 2_000.0),
    ("BiasAdd", f"{SCOPE}/conv2d/BiasAdd", 5_000.0, 500.0),
    ("Relu", f"{SCOPE}/conv2d/Relu", 4_000.0, 400.0),
    ("MaxPool", f"{SCOPE}/max_pooling2d/MaxPool", 3_000.0, 300.0),
    ("ResizeNearestNeighbor", f"{SCOPE}/up_sampling2d/resize/ResizeNearestNeighbor", 2_500.0, 600.0),
    ("AssignSubVariableOp", "sgd/AssignSubVariableOp_2", 1_000.0, 1_100.0),
    ("Dataset", "Iterator::Root::Prefetch::Map", 800.0, 2_000.0),
    ("Sub", f"{SCOPE}/sub", 300.0, 290.0),
    ("Mean", "mean_squared_error/Mean", 200.0, 205.0),
]
SLOW, FAST = 0, 1


def steps(durations_us: list[float], host: str = "localhost") -> pd.DataFrame:
    """A `steps` frame of one host; of more than five steps the first and last are set aside."""
    count = len(durations_us)
    inner = count > 5
    frame = pd.DataFrame(
        {
            "host": host,
            "step": np.arange(10, 10 + count),
            "start_us": np.cumsum([0.0, *durations_us[:-1]]) if count else [],
            "duration_us": durations_us,
            "included": [not (inner and i in (0, count - 1)) for i in range(count)],
            "stray": False,
            "marker": "",
            "host_span_us": durations_us,
            "device_span_us": np.nan,
        }
    )
    frame["host_start_us"] = frame["start_us"]
    parts = dict.fromkeys((*schema.STEP_PARTS, *schema.STEP_PRECISIONS), 0.0)
    return schema.STEPS.conform(frame.assign(**parts | {"other_us": frame["duration_us"]}))


def op_stats(which: int = SLOW, *, without: str = "", place: str = schema.HOST) -> pd.DataFrame:
    """An `op_stats` frame of the slow or the fast run, less the ops whose name holds `without`."""
    rows = [
        {
            "host": schema.ALL_HOSTS,
            "host_or_device": place,
            "op_type": op_type,
            "op_name": name,
            "occurrences": STEPS,
            "total_time_us": times[which] * STEPS * 1.25,
            "self_time_us": times[which] * STEPS,
            "wall_time_us": times[which] * STEPS,
            "is_eager": name.startswith("sgd"),
            **WITHOUT_COSTS,
        }
        for op_type, name, *times in OPS
        if not without or without not in name
    ]
    idle = {"op_type": "IDLE", "op_name": "IDLE", "occurrences": 0, "total_time_us": 4e6, "self_time_us": 4e6} | {
        "wall_time_us": np.nan
    }
    return schema.OP_STATS.conform(pd.DataFrame([*rows, {**rows[0], **idle, "is_eager": False}]))


def diff(baseline: pd.DataFrame | None = None, candidate: pd.DataFrame | None = None) -> pd.DataFrame:
    """The diff of two `op_stats` frames, per step: slow against fast unless others are given."""
    sides = [
        SideRows(op_stats(which) if frame is None else frame, STEPS)
        for which, frame in ((SLOW, baseline), (FAST, candidate))
    ]
    return diff_table(schema.OP_STATS, "fast", *sides, identical=False)
