"""The simulated GPU: when it gets to what it is given, and the events of its streams."""

from __future__ import annotations

from typing import NamedTuple

from kernels import Copy, Kernel
from xspace_writer import Line, Plane, Value

_BEGIN_NS = 21_300
_CALLS = {"MemcpyH2D": "hipMemcpyHtoDAsync", "MemcpyD2H": "hipMemcpyDtoHAsync"}
_MOST_NS_PER_LAUNCH = 100_000.0
_HALVINGS = 60


class Launch(NamedTuple):
    """A kernel's or copy's way: launched by the host, started and ended on the device."""

    launched_ns: int
    started_ns: int
    ended_ns: int


def launch_all(begin_ns: int, times_ns: list[int], efforts: list[float], idle_ns: int) -> list[Launch]:
    """What takes these times, launched at just the pace at which the device does nothing for `idle_ns` in all.

    `efforts`: how hard each is to launch, against the others.
    """
    least, most = 0.0, _MOST_NS_PER_LAUNCH
    for _ in range(_HALVINGS):
        pace = (least + most) / 2
        ended_ns = _launch_at(pace, begin_ns, times_ns, efforts)[-1].ended_ns
        if ended_ns - begin_ns - sum(times_ns) < idle_ns:
            least = pace
        else:
            most = pace
    return _launch_at(most, begin_ns, times_ns, efforts)


def _launch_at(ns_per_launch: float, begin_ns: int, times_ns: list[int], efforts: list[float]) -> list[Launch]:
    """Each starts when its launch ends, or when the one before it does."""
    out = []
    host_ns = device_ns = begin_ns
    for time_ns, effort in zip(times_ns, efforts, strict=True):
        host_ns += int(effort * ns_per_launch)
        started_ns = max(host_ns, device_ns)
        device_ns = started_ns + time_ns
        out.append(Launch(host_ns, started_ns, device_ns))
    return out


class Gpu:
    """Streams, and the calls by which host threads fill them."""

    def __init__(self, device: Plane) -> None:
        self._compute = device.line("Stream #13(Compute)", 13, _BEGIN_NS)
        self._copies = {
            "MemcpyH2D": device.line("Stream #14(MemcpyH2D)", 14, _BEGIN_NS),
            "MemcpyD2H": device.line("Stream #15(MemcpyD2H)", 15, _BEGIN_NS),
        }
        self._calls = 0

    def run(self, thread: Line, called_ns: int, work: Kernel | Copy, launch: Launch, **stats: Value) -> None:
        """Write the call on the host's thread and what it leads to on the device, which refers to the call."""
        self._calls += 1
        call: dict[str, Value] = {"device_id": 0, "correlation_id": self._calls}
        if isinstance(work, Kernel):
            thread.add("hipModuleLaunchKernel", called_ns, launch.launched_ns, **call)
        else:
            thread.add(_CALLS[work.name], called_ns, launch.launched_ns, **call, **work.details)
        stream = self._copies.get(work.name, self._compute)
        stats = {"correlation_id": self._calls, **work.details, **stats}
        stream.add(work.name, launch.started_ns, launch.ended_ns, **stats)
