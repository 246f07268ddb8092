"""When kernels start that a host launches one after the other."""

from __future__ import annotations

from typing import NamedTuple

_MOST_NS_PER_LAUNCH = 100_000.0
_HALVINGS = 60


class Launch(NamedTuple):
    """A kernel's way: launched by the host, started and ended on the device."""

    launched_ns: int
    started_ns: int
    ended_ns: int


def launch_all(begin_ns: int, times_ns: list[int], efforts: list[float], idle_ns: int) -> list[Launch]:
    """Kernels of these times, launched at just the pace at which the device does nothing for `idle_ns` in all.

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
    """A kernel starts when its launch ends, or when the kernel before it does."""
    out = []
    host_ns = device_ns = begin_ns
    for time_ns, effort in zip(times_ns, efforts, strict=True):
        host_ns += int(effort * ns_per_launch)
        started_ns = max(host_ns, device_ns)
        device_ns = started_ns + time_ns
        out.append(Launch(host_ns, started_ns, device_ns))
    return out
