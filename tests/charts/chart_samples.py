"""Small frames shaped like those of real runs, for tests of charts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tfcompare import schema

SCOPE = "autoencoder"
OPS = [
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
        }
    )
    return schema.STEPS.conform(frame)


def op_stats(column: int = 0, *, steps: int = 20, device: bool = False) -> pd.DataFrame:
    """An `op_stats` frame of `steps` steps of the sample model: `column` 0 the slow run, 1 the fast one."""
    rows = [
        {
            "host": schema.ALL_HOSTS,
            "host_or_device": schema.DEVICE if device and op_type != "Dataset" else schema.HOST,
            "op_type": op_type,
            "op_name": name,
            "occurrences": steps,
            "total_time_us": times[column] * steps * 1.25,
            "self_time_us": times[column] * steps,
            "is_eager": name.startswith("sgd"),
        }
        for op_type, name, *times in OPS
    ]
    rows.append(
        {**rows[0], "op_type": "IDLE", "op_name": "IDLE", "occurrences": 0, "self_time_us": 4e6, "total_time_us": 4e6}
    )
    return schema.OP_STATS.conform(pd.DataFrame(rows))
