"""Profiles of many nights, in which one op became slower."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.xspace_builder import event, line, plane, space

OPS_US = {"Conv2D": 800.0, "MatMul": 600.0, "Relu": 200.0}
FACTOR, BEFORE = 1.5, 12
STEPS = 12


def profile(rng: np.random.Generator, matmul: float = 1.0) -> bytes:
    """A run whose `MatMul` takes so much longer, slowed down by chance as a whole."""
    slowed, events = np.exp(0.01 * rng.standard_normal()), []
    for step in range(STEPS):
        begin = 4000.0 * step + 10
        ops = []
        for op_type, duration in OPS_US.items():
            us = duration * slowed * (matmul if op_type == "MatMul" else 1) * np.exp(0.01 * rng.standard_normal())
            ops.append(event(f"model/{op_type.lower()}:{op_type}", begin, us))
            begin += us + 5
        events += [event("train", 4000.0 * step, begin - 4000.0 * step + 20, _r=1, step_num=step), *ops]
    return space(plane("/host:CPU", line("python", *events, id=1)), hostnames=["host"])


def write(folder: Path, data: bytes, night: int, **metadata: object) -> Path:
    """The logdir of one night."""
    run = folder / "plugins" / "profile" / f"2026_03_{night + 1:02}_03_00_00"
    run.mkdir(parents=True)
    (run / "host.xplane.pb").write_bytes(data)
    (folder / "tfcompare.json").write_text(json.dumps(metadata))
    return folder


def nights(place: Path, count: int = 20, before: int = BEFORE) -> Path:
    """Runs of so many nights; `MatMul` takes `FACTOR` times as long from night `before` on."""
    rng = np.random.default_rng(7)
    for night in range(count):
        data = profile(rng, FACTOR if night >= before else 1.0)
        more = {"commit": f"c0ffee{night:02}", "branch": "main", "build": str(night + 1), "tags": ["nightly"]}
        write(place / f"night_{night:02}", data, night, **more)
    return place
