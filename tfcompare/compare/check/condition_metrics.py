"""The metrics available in conditions."""

from __future__ import annotations

from functools import partial

from tfcompare.compare.check.measured import BYTES, COUNT, FLOP_RATE, FLOPS, RATE, SHARE, TIME, Metric
from tfcompare.compare.check.memory_metrics import memory_growth, peak_memory
from tfcompare.compare.check.row_metrics import KERNEL_TIME, OP_TIME, flops, kernel_launches, occurrences, rate
from tfcompare.compare.check.step_metrics import (
    device_time,
    device_time_in_each_kind,
    input_latency,
    quantile,
    share_of_peak,
    step_time,
    step_time_in_each_kind,
    throughput,
    time_between_steps,
)

_MEDIAN, _P95 = (partial(step_time, estimate=quantile(share)) for share in (0.5, 0.95))
_MEDIAN_IN_EACH_KIND, _P95_IN_EACH_KIND = (
    partial(step_time_in_each_kind, estimate=quantile(share)) for share in (0.5, 0.95)
)

METRICS = {
    "step_time": Metric("step_time", TIME, step_time, step_time_in_each_kind),
    "step_time_median": Metric("step_time_median", TIME, _MEDIAN, _MEDIAN_IN_EACH_KIND),
    "step_time_p95": Metric("step_time_p95", TIME, _P95, _P95_IN_EACH_KIND),
    "device_time": Metric("device_time", TIME, device_time, device_time_in_each_kind),
    "throughput": Metric("throughput", RATE, throughput),
    "mfu": Metric("mfu", SHARE, share_of_peak("flops")),
    "hbm_share": Metric("hbm_share", SHARE, share_of_peak("bytes_accessed")),
    "time_between_steps": Metric("time_between_steps", TIME, time_between_steps),
    "input_latency": Metric("input_latency", TIME, input_latency),
    "peak_memory": Metric("peak_memory", BYTES, peak_memory),
    "peak_memory:": Metric("peak_memory:MEMORY", BYTES, peak_memory),
    "memory_growth": Metric("memory_growth", BYTES, memory_growth),
    "kernel_launches": Metric("kernel_launches", COUNT, kernel_launches),
    "occurrences:": Metric("occurrences:PATTERN", COUNT, occurrences),
    "flops": Metric("flops", FLOPS, flops),
    "op:": Metric("op:PATTERN", TIME, OP_TIME),
    "rate:": Metric("rate:PATTERN", FLOP_RATE, rate),
    "kernel:": Metric("kernel:PATTERN", TIME, KERNEL_TIME),
}
"""All metrics by name; the name ends with a colon if a pattern follows."""
