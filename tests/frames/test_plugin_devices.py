"""Profiles from plug-in devices: a plane of TensorFlow's plug-in profiler API, of any name, with little more than ops.

No profile of Apple's tensorflow-metal was at hand, and its source is closed: the planes here are of the shape that
TensorFlow's example of such a profiler and Intel's write.
"""

from __future__ import annotations

import pytest

from tests.frames.tables import device_ops, run_with, threads
from tests.xspace_builder import Plane, Ref, event, line, plane
from tfcompare import compare
from tfcompare.render.shown import Shown

LACKS = (
    "the profiler of the devices recorded no kernels, as those of plug-in devices may: launch sizes, tensor cores and "
    "precision are unknown"
)
STEPS = 12
RELU = Ref("model/relu:Relu")


def host() -> Plane:
    """Marked steps, in each of which the host runs an op that gives the device its work."""
    steps = [event("train", 1000 * i, 900, _r=1, step_num=i) for i in range(STEPS)]
    return threads(steps + [event("model/conv/Conv2D:Conv2D", 1000 * i + 50, 20) for i in range(STEPS)])


def device(name: str) -> Plane:
    starts = range(100, 1000 * STEPS, 1000)
    convolutions = [event("Conv2D", at, 400, tf_op=Ref("model/conv/Conv2D:Conv2D")) for at in starts]
    return plane(name, line("queue/0", *convolutions, *(event("Relu", at + 400, 100, tf_op=RELU) for at in starts)))


def test_custom_planes_of_xla_are_no_devices() -> None:
    run = run_with(host(), device("/device:CUSTOM:Megascale Trace"))
    assert run.info.device_type == "CPU"
    assert not run.devices
    assert not any("plug-in" in remark for remark in run.remarks)


@pytest.mark.parametrize("name", ["/device:GPU:0", "/device:METAL:0", "/device:XPU:0"])
def test_ops_are_counted_and_what_is_lacking_is_said(name: str) -> None:
    run = run_with(host(), device(name))
    assert run.info.device_type == "GPU"
    assert list(run.devices) == [name]
    assert device_ops(run) == [
        "IDLE IDLE 0 5500 5500",
        "Conv2D model/conv/Conv2D 12 4800 4800",
        "Relu model/relu 12 1200 1200",
    ]
    assert run.table("steps")["device_compute_us"].tolist() == [500] * STEPS
    assert run.table("kernel_stats").empty
    assert LACKS in run.remarks
    is_gpu = name == "/device:GPU:0"
    of_others = [text for text in run.remarks if text.startswith("devices that are neither")]
    assert of_others == ([] if is_gpu else [f"devices that are neither GPUs nor TPUs are read like GPUs: {name[8:]}"])


def test_the_page_says_so_in_one_sentence() -> None:
    run = run_with(host(), device("/device:METAL:0"))
    comparison = compare(run, run)
    assert "recorded no kernels" in " ".join(Shown.of(comparison, "overview").to("table").split())
    assert "records only when ops ran" in " ".join(Shown.of(comparison, "kernel_stats").to("table").split())


def test_known_devices_come_first() -> None:
    kernel = event("k", 0, 10, kernel_details=Ref("regs:16 grid:2,1,1 block:64,1,1"), tf_op=Ref("a:MatMul"))
    gpu = plane("/device:GPU:0", line("Stream #1", kernel, id=1))
    run = run_with(host(), gpu, device("/device:CUSTOM:Megascale Trace"))
    assert list(run.devices) == ["/device:GPU:0"]
    assert not run.remarks


def test_intels_calls_of_the_host_are_no_work_of_the_device() -> None:
    """As Intel's profiler writes them: kernel details without registers, and calls of the host on the same plane."""
    details = Ref(" SIMD width:32 grid:8,1,1 block:64,1,1")
    queue = line("XPU queue/0", event("gemm", 0, 10, kernel_details=details, tf_op=Ref("a:MatMul")), id=0)
    calls = line("Host Runtime Call", event("zeCommandListAppendLaunchKernel", 0, 900), id=1)
    run = run_with(host(), plane("/device:GPU:0", queue, calls))
    assert device_ops(run) == ["MatMul a 1 10 10", "IDLE IDLE 0 0 0"]
    kernels = run.table("kernel_stats")
    assert kernels[["kernel_name", "grid_dim", "block_dim"]].to_numpy().tolist() == [["gemm", "8,1,1", "64,1,1"]]
    assert kernels["registers_per_thread"].isna().all()
    assert LACKS not in run.remarks
