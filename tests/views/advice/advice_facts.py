"""Facts as small as a rule needs them: everything that is not given is empty, or takes no time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from tests.compare.compare_runs import WITHOUT_COSTS
from tests.input_runs import input_ops, pipelines
from tests.tf_data_runs import execution
from tfcompare import schema
from tfcompare.compare.tf_data.tf_data_bottleneck import analyse
from tfcompare.frames.ops.op_names import DATASET
from tfcompare.tables.step_times import StepCells, window
from tfcompare.views.advice import Facts
from tfcompare.views.advice.facts import Gap, busy_threads, cores_of
from tfcompare.views.input.figures import input_wait, wait_by_calls
from tfcompare.views.steps.figures import HostSteps

STEPS = 20
STEP_US = 10_000.0


def steps(parts: dict[str, float]) -> pd.DataFrame:
    """Steps of `STEP_US` with these parts, by their name without `_us`; the rest is host compute. All of them count."""
    frame = pd.DataFrame(
        {"host": "a", "step": range(STEPS), "duration_us": STEP_US, "included": True, "stray": False, "marker": ""}
    )
    frame["start_us"] = frame["step"] * STEP_US
    given = {f"{part}_us": us for part, us in parts.items()}
    made_of = sum(us for part, us in given.items() if part in schema.STEP_PARTS)
    rest = {"host_compute_us": STEP_US - made_of} if "host_compute" not in parts else {}
    frame = frame.assign(**dict.fromkeys((*schema.STEP_PARTS, *schema.STEP_PRECISIONS), 0.0) | rest | given)
    length = frame[list(schema.STEP_PARTS)].sum(axis=1)
    spans = {"host_start_us": frame["start_us"], "host_span_us": length, "device_span_us": np.nan}
    return schema.STEPS.conform(frame.assign(duration_us=length, **spans))


def ops(*rows: tuple[str, str, str, int, float], eager: bool = False) -> pd.DataFrame:
    """`op_stats` from (side, type, name, occurrences per step, self time per step)."""
    frame = pd.DataFrame(rows, columns=["host_or_device", "op_type", "op_name", "occurrences", "self_time_us"])
    frame = frame.assign(host="all", is_eager=eager)
    frame[["occurrences", "self_time_us"]] = frame[["occurrences", "self_time_us"]].astype("float64") * STEPS
    times = dict.fromkeys(("total_time_us", "wall_time_us"), frame["self_time_us"])
    return schema.OP_STATS.conform(frame.assign(**times, **WITHOUT_COSTS))


def kernels(*rows: tuple[str, str, int, float, bool, bool]) -> pd.DataFrame:
    """`kernel_stats` from (kernel, op, launches per step, time per step, eligible, on tensor cores)."""
    names = ["kernel_name", "op_name", "occurrences", "total_duration_us"]
    names += ["is_op_tensor_core_eligible", "is_kernel_using_tensor_core"]
    frame = _filled(pd.DataFrame(rows, columns=names), schema.KERNEL_STATS)
    return frame.assign(occurrences=frame["occurrences"] * STEPS, total_duration_us=frame["total_duration_us"] * STEPS)


def copies(kind: str, us: float, size: int = 1000) -> pd.DataFrame:
    """`copies` of one kind: time and bytes per step."""
    row = {"kind": kind, "occurrences": STEPS, "size_bytes": size * STEPS, "duration_us": us * STEPS}
    return _filled(pd.DataFrame([row]), schema.COPIES)


def memory(memory_id: str, peak: int, capacity: int, fragmentation: float = 0.0) -> pd.DataFrame:
    """One row of `memory_summary`."""
    row = {"memory_id": memory_id, "peak_bytes": peak, "capacity_bytes": capacity, "fragmentation": fragmentation}
    return _filled(pd.DataFrame([row]), schema.MEMORY_SUMMARY)


def compilations(*rows: tuple[str, str, int, float, float, int, str], host: str = "a") -> pd.DataFrame:
    """`compilations` from (function, phase, times, total time, longest, programs, shapes)."""
    names = ["function", "phase", "occurrences", "total_time_us", "longest_us", "programs", "shapes"]
    return schema.COMPILATIONS.conform(pd.DataFrame(rows, columns=names).assign(host=host))


def instructions(*rows: dict[str, Any]) -> pd.DataFrame:
    """`hlo_ops`: `self_time_us` is per step; by default the device's peak is 100 FLOP/s and costs are zero."""
    absent = dict.fromkeys((c.name for c in schema.HLO_OPS.metrics if c.dtype == "float64"), 0.0)
    absent |= {"peak_flops_per_s": 100.0, "occurrences": STEPS, "executions": STEPS, "is_rematerialized": False}
    texts = {c.name: "" for c in schema.HLO_OPS.columns if c.dtype == "str"} | {"host": "a", "program": "jit_f(7)"}
    frame = pd.DataFrame([absent | texts | row for row in rows])
    return schema.HLO_OPS.conform(frame.assign(self_time_us=frame["self_time_us"] * STEPS))


def buffers(*rows: tuple[str, str, int], live: bool = True, space: int = 0) -> pd.DataFrame:
    """`hlo_memory` of `jit_f(7)` from (instruction, shape, size)."""
    frame = pd.DataFrame(rows, columns=["hlo_op", "shape", "size_bytes"]).assign(program="jit_f(7)")
    return _filled(frame.assign(memory_space=space, is_live_at_peak=live), schema.HLO_MEMORY)


def _filled(frame: pd.DataFrame, table: schema.Table) -> pd.DataFrame:
    for column in table.columns:
        if column.name not in frame:
            frame[column.name] = "a" if column.dtype == "str" else 0
    return table.conform(frame)


def shares(iterators: pd.DataFrame, waits: dict[str, float], python: dict[str, float]) -> StepCells:
    """`op_shares` of `STEPS` steps: the waiting of each for these iterators, and the time of `f`, a Python function."""
    cells = [
        (DATASET, row["long_name"], "input_us", waits.get(row["iterator"], row["self_time_us"]))
        for _, row in iterators.iterrows()
    ] + [("PyFunc", "f", part, us) for part, us in python.items()]
    keys = pd.DataFrame(cells, columns=["op_type", "op_name", "step_part", "wall_time_us"])
    times = pd.DataFrame({"row": keys.index, "wall_time_us": keys.pop("wall_time_us")})
    every = pd.concat([times.assign(step=step) for step in range(STEPS)], ignore_index=True)
    return StepCells(keys.assign(host_or_device="Host", stage=""), every)


def annotations(times: dict[str, float], count: int) -> pd.DataFrame:
    """`annotation_shares` of this many times as much."""
    frame = pd.DataFrame(
        {
            "name": pd.Series(times.keys(), dtype="str"),
            "wall_time_us": pd.Series(times.values(), dtype="float64") * count,
        }
    )
    return frame.assign(kind="annotation", step_part="host_compute_us")


NAIVE = """
Root 1 critical
 BatchV2 30 critical
  Map 7000 critical blamed
   ForeverRepeat 4 critical
    TFRecord 100 critical
"""
BETTER = """
Root 1 critical
 Prefetch 30 critical
  BatchV2 30 critical
   ParallelMapV2 7000 critical blamed
    TFRecord 100 critical
"""


def facts(
    parts: dict[str, float] | None = None,
    *,
    pipeline: str = "",
    changed: dict[str, dict[str, Any]] | None = None,
    framework: str = "TensorFlow",
    device_type: str = "CPU",
    hosts: int = 1,
    has_steps: bool = True,
    device_us: dict[str, float] | None = None,
    idle_us: float = 0.0,
    waits: dict[str, float] | None = None,
    python: dict[str, float] | None = None,
    between_us: float = 0.0,
    eager_share: float = 0.0,
    gap: Gap | None = None,
    around: dict[str, float] | None = None,
    between: dict[str, float] | None = None,
    **tables: pd.DataFrame,
) -> Facts:
    """Facts of `STEPS` steps with these parts. `pipeline` is the slowest call as `tf_data_runs.execution` reads it, in
    which `changed` sets columns by iterator; each step waits for its iterators as long as `waits` says, by the
    iterator, else as their self times do. `python` gives the time of Python functions per step by part of the step.
    `around` and `between`: the time of annotations within and between the steps. `tables` are fields of `Facts`."""
    info: Any = SimpleNamespace(
        framework=framework,
        device_type=device_type,
        device_name="",
        hosts=hosts,
        has_steps=has_steps,
        has_step_times=has_steps,
        step_source="step markers" if has_steps else "whole profile",
        duration_ms=STEPS * STEP_US / 1000,
    )
    frame = steps(parts or {}) if has_steps else schema.STEPS.empty()
    asked = pipelines(*([(STEPS, STEPS, 7000.0, False)] if pipeline else [])).assign(host="a", pipeline="Host:0")
    asked["mean_latency_us"] = asked["max_latency_us"]
    rows = execution(pipeline) if pipeline else schema.TF_DATA.empty()
    for iterator, values in (changed or {}).items():
        for column, value in values.items():
            rows.loc[rows["iterator"] == iterator, column] = value
    empty = {
        "ops": schema.OP_STATS.empty(),
        "kernels": schema.KERNEL_STATS.empty(),
        "copies": schema.COPIES.empty(),
        "memory": schema.MEMORY_SUMMARY.empty(),
        "input_ops": input_ops(""),
        "hlo_ops": schema.HLO_OPS.empty(),
        "hlo_memory": schema.HLO_MEMORY.empty(),
        "compilations": schema.COMPILATIONS.empty(),
    }
    given = empty | tables
    wait = input_wait(frame, info)
    if not wait.is_known:
        wait = wait_by_calls(asked, info.duration_ms * 1e3, wait.why_unknown)
    annotated = [annotations(times or {}, per) for times, per in ((around, STEPS), (between, 1))]
    of_steps = HostSteps(frame, shares(rows, waits or {}, python or {}), 0.0, *annotated)
    return Facts(
        info=info,
        steps=frame,
        device_parts=frame[list(schema.STEP_PARTS)].mean().to_dict(),
        step_count=STEPS if has_steps else 1,
        recorded_steps=STEPS if has_steps else 1,
        wait=wait,
        pipeline=analyse(asked, rows),
        host_steps=of_steps if has_steps else None,
        window=window(frame.assign(start_us=frame["start_us"] * (1 + between_us / STEP_US))),
        gap=gap,
        eager_share=eager_share,
        cores=cores_of(rows),
        idle_us={"Device": idle_us},
        device_us=device_us if device_us is not None else {} if device_type == "CPU" else {"/device:GPU:0": 1e5},
        busy_threads=busy_threads(given["ops"], info.duration_ms * 1e3, hosts),
        **given,
    )
