"""The parts of steps against xprof's, on every profile at hand where it has any."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests import xprof_oracle
from tests.frames.tables import activity_times, steps_in, thorough_but
from tests.profiles import ALL_RUNS, SAMPLE_RUNS, loaded_run
from tests.tf_gpu_runs import FILTERS
from tfcompare import schema
from tfcompare.frames.spans import NO_SPANS
from tfcompare.frames.steps.activities import Activity
from tfcompare.frames.steps.device_activities import device_activities
from tfcompare.xspace import XSpace, read

ON_CPU = ["tf_cpu_base", "tf_cpu_zoo", "tf_cpu_sleepy", *SAMPLE_RUNS]
XPROF = {
    "compile_us": "compileTimeMs",
    "input_us": "infeedTimeMs",
    "output_us": "outfeedTimeMs",
    "kernel_launch_us": "kernelLaunchTimeMs",
    "host_compute_us": "hostComputeTimeMs",
    "device_collectives_us": "deviceCollectivesTimeMs",
    "device_to_device_us": "deviceToDeviceTimeMs",
    "device_compute_us": "deviceComputeTimeMs",
    "other_us": "otherTimeMs",
}
PARTS = [part for part in schema.STEP_PARTS if part != "idle_us"]
BY_DEVICES = [a for a in Activity if a < Activity.LAUNCH_CALL]


def xprofs(tool: str, *files: Path) -> pd.DataFrame:
    """TensorBoard's step table with our names, in microseconds. It knows no collectives of hosts and no waits of
    devices: there are none."""
    table = xprof_oracle.tool_data(tool, *files)[1]  # type: ignore[index]
    ids = [column["id"] for column in table["cols"]]
    frame = pd.DataFrame([[cell["v"] for cell in row["c"]] for row in table["rows"]], columns=ids)
    parts = frame[list(XPROF.values())].astype(float).set_axis(list(XPROF), axis=1) * 1000
    return parts.assign(host_collectives_us=0.0, device_waits_us=0.0)[PARTS]


def as_xprofs(steps: pd.DataFrame) -> pd.DataFrame:
    """The parts of our steps; to xprof idle time is "other"."""
    return steps.assign(other_us=steps["other_us"] + steps["idle_us"])[PARTS]


@pytest.mark.parametrize("name", thorough_but(ON_CPU))
def test_every_part_of_every_step_on_cpu_is_xprofs(name: str) -> None:
    """To a thousandth of the step: xprof lets events that take no time explain what follows them."""
    run = loaded_run(name)
    steps = run.table("steps").query("included").reset_index(drop=True)
    for tool in ("input_pipeline_analyzer", "overview_page"):
        xprof = xprofs(tool, *(file.path for file in run.found.files))
        assert len(steps) == len(xprof) > 9
        off = (as_xprofs(steps) - xprof[PARTS]).abs().div(steps["duration_us"], axis=0)
        assert (off < 1e-3).all(axis=None), off.max()


def busy_us(file: Path) -> pd.Series:
    """How long devices are busy in each included step, by whatever."""
    space = read(file).space
    steps = steps_in(space)
    return pd.Series(activity_times(space, steps)[steps.included][:, BY_DEVICES].sum(axis=1) / 1e6)


@pytest.mark.parametrize("name", thorough_but(FILTERS, "gpu_filters_16_8"))
def test_compute_and_copies_and_device_spans_on_gpu_are_xprofs_device_compute_and_step_times(name: str) -> None:
    """xprof knows a copy only by a name that TensorFlow does not write. It leaves out what the host does where devices
    have events, so its step is the device span. (`duration_us` is the host span where that includes it.)"""
    run = loaded_run(name)
    (file,) = run.found.files
    xprof = xprofs("overview_page", file.path)
    assert busy_us(file.path).to_numpy() == pytest.approx(xprof["device_compute_us"].to_numpy(), rel=1e-6)
    assert not xprof[[part for part in PARTS if part not in ("device_compute_us", "other_us")]].to_numpy().any()
    spans, times = run.table("steps").query("included")["device_span_us"], xprof_oracle.step_table(file.path)
    assert len(spans) == len(times) > 9
    assert spans.to_numpy() == pytest.approx(times["duration_us"].to_numpy(), rel=1e-9)


def test_compute_and_copies_of_several_gpus_are_xprofs_and_copies_that_no_step_led_to() -> None:
    """xprof leaves those out; here a device that copies in the time of the step is busy, whoever had it copy."""
    file = loaded_run("tf_gpu").found.files[0].path
    (xprof,) = xprofs("overview_page", file)["device_compute_us"]
    (busy,) = busy_us(file)
    space = read(file).space
    steps = steps_in(space)
    rows, activity = device_activities(space)
    led, events = rows[steps.is_linked[rows]], space.events
    covered = NO_SPANS.union(events.start_ps[led], events.start_ps[led] + events.duration_ps[led])
    assert covered.covered_between(steps.start_ps, steps.end_ps)[0] / 1e6 == pytest.approx(xprof, rel=1e-9)
    assert xprof < busy < xprof * 1.002
    others = activity[~steps.is_linked[rows]]
    assert set(others.tolist()) == {Activity.COPY_TO_DEVICE, Activity.COPY_TO_HOST}


def whole_us(space: XSpace, rows: np.ndarray) -> float:
    """How long any of these events is under way, in steps and outside of them."""
    start = space.events.start_ps[rows]
    spans = NO_SPANS.union(start, start + space.events.duration_ps[rows])
    return float(spans.covered_between(start.min(keepdims=True), np.array([np.iinfo(np.int64).max // 2]))[0]) / 1e6


@pytest.mark.parametrize(
    "name",
    thorough_but([*(n for n in ALL_RUNS if n.startswith(("tf_gpu", "jax"))), *FILTERS], "gpu_filters_16_8"),
)
def test_the_share_of_16_bit_compute_is_xprofs(name: str) -> None:
    """xprof counts what a step led to, whenever it ran, and copies as 32-bit computing; on TPUs it has no figure."""
    run = loaded_run(name)
    figures = xprof_oracle.tool_data("overview_page", *(file.path for file in run.found.files))[0]["p"]  # type: ignore[index]
    xprofs_share = figures.get("device_compute_16bit_percent")
    sixteen = every = 0.0
    for file in run.found.files:
        space = read(file.path).space
        steps = steps_in(space)
        rows, activity = device_activities(space)
        led = steps.is_linked[rows] & steps.has_markers
        of_16_bits = rows[led & (activity == Activity.SIXTEEN_BIT_COMPUTE)]
        every += whole_us(space, rows[led]) if led.any() else 0.0
        sixteen += whole_us(space, of_16_bits) if len(of_16_bits) else 0.0
    told = run.table("steps")["device_compute_16_bit_us"].notna().any()
    if run.info.device_type == "TPU":
        assert xprofs_share is None
        assert told
    elif not run.info.has_steps:
        assert (xprofs_share, figures["device_compute_32bit_percent"], told) == ("0.0%", "0.0%", False)
    elif not every:  # nothing ran on a device
        assert xprofs_share in (None, "0.0%")
    else:
        assert f"{sixteen / every:.1%}" == xprofs_share
        assert told
