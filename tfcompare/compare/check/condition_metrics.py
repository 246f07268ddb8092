"""The metrics available in conditions."""

from __future__ import annotations

from tfcompare.compare.check.measured import BYTES, COUNT, RATE, SHARE, TIME, Metric
from tfcompare.compare.check.memory_metrics import memory_growth, peak_memory
from tfcompare.compare.check.row_metrics import KERNEL_TIME, OP_TIME, kernel_launches
from tfcompare.compare.check.step_metrics import (
    input_latency,
    share_of_peak,
    step_time,
    step_time_quantile,
    throughput,
    time_between_steps,
)

METRICS = {
    "step_time": Metric("step_time", TIME, step_time),
    "step_time_median": Metric("step_time_median", TIME, step_time_quantile(0.5)),
    "step_time_p95": Metric("step_time_p95", TIME, step_time_quantile(0.95)),
    "throughput": Metric("throughput", RATE, throughput),
    "mfu": Metric("mfu", SHARE, share_of_peak("flops")),
    "hbm_share": Metric("hbm_share", SHARE, share_of_peak("bytes_accessed")),
    "time_between_steps": Metric("time_between_steps", TIME, time_between_steps),
    "input_latency": Metric("input_latency", TIME, input_latency),
    "peak_memory": Metric("peak_memory", BYTES, peak_memory),
    "peak_memory:": Metric("peak_memory:MEMORY", BYTES, peak_memory),
    "memory_growth": Metric("memory_growth", BYTES, memory_growth),
    "kernel_launches": Metric("kernel_launches", COUNT, kernel_launches),
    "op:": Metric("op:PATTERN", TIME, OP_TIME),
    "kernel:": Metric("kernel:PATTERN", TIME, KERNEL_TIME),
}
"""All metrics by name; the name ends with a colon if a pattern follows."""
