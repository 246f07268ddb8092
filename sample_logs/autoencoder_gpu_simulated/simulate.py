"""Writes the runs beside it: simulated profiles of the autoencoder on one AMD GPU, with many filters and with few.

No GPU recorded these. Step time, its parts and the shares of the convolutions follow figures published for this example
(`RUNS`); events, names and stats are laid out as TensorFlow 2 writes them. Each file carries a warning that says so.
`simulate.py [--out DIR]` writes both, the same bytes every time.
"""

from __future__ import annotations

import argparse
import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from device_memory import DeviceMemory
from kernels import Kernel
from steps import COPIED_TO_DEVICE_NS, StepParts, Steps
from tensorflow.tsl.profiler.protobuf import xplane_pb2
from training_step import Op, layers, training_step, weights_bytes
from xspace_writer import Plane, Value

STEPS = 21
FIRST_STEP = 100
HOST = "simulated"
WARNING = (
    "simulated: written by simulate.py after figures published for this example on an AMD GPU, not recorded on one"
)

_NS_PER_US = 1_000
_NS_PER_MS = 1_000_000
_NS_PER_S = 1_000_000_000
_SHORTEST_KERNEL_NS = 1900
_KERNEL_SPREAD = 0.04
_BETWEEN_STEPS_NS = 25_000
_BEGIN_NS = 40_000
_GPU: dict[str, Value] = {
    "device_vendor": "AMD",
    "clock_rate": 1_700_000,
    "core_count": 104,
    "memory_bandwidth": 1_638_400_000_000,
    "memory_size": 68_702_699_520,
    "compute_cap_major": 9,
    "compute_cap_minor": 0,
}


@dataclass(frozen=True)
class Simulated:
    """A run: mean milliseconds of a step's parts, and the shares of the device's op time of two types of ops.

    Published are one decimal of the parts, and 0.3 and 0.2 ms of the step that they leave: that is `output` here. The
    further decimals are made up so that the parts add up to the step.
    """

    filters: tuple[int, int]
    launch: float
    compute: float
    input: float
    output: float
    other: float
    shares: dict[str, float]
    started_s: int
    seed: int


RUNS = {
    "filters_512_128_simulated": Simulated(
        filters=(512, 128),
        launch=0.7,
        compute=8.1,
        input=0.1,
        output=0.28,
        other=0.32,
        shares={"Conv2DBackpropFilter": 0.258, "Conv2D": 0.198},
        started_s=1_795_174_200,
        seed=1,
    ),
    "filters_16_8_simulated": Simulated(
        filters=(16, 8),
        launch=2.78,
        compute=1.08,
        input=0.048,
        output=0.22,
        other=0.372,
        shares={"Conv2DBackpropFilter": 0.162, "Conv2D": 0.148},
        started_s=1_795_174_260,
        seed=2,
    ),
}
_SPREADS = {"launch": 0.05, "compute": 0.02, "input": 0.04, "output": 0.06, "other": 0.10}
_PERSISTENCE = 0.4
_FIRST_IS_LONGER = 0.15
_ANY_OTHER = "any other"


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="where the runs go (default: here)")
    out = parser.parse_args().out
    for name, run in RUNS.items():
        path = out / name / "plugins" / "profile" / _stamp(run) / f"{HOST}.xplane.pb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(simulate(run).SerializeToString(deterministic=True))
        print(f"{path}: {path.stat().st_size:,} bytes")


def simulate(run: Simulated) -> xplane_pb2.XSpace:
    """The profile of a run."""
    rng = random.Random(run.seed)
    model = layers(run.filters)
    ops = training_step(model)
    host, device = Plane("/host:CPU"), Plane("/device:GPU:0", **_GPU)
    memory = DeviceMemory(weights_bytes(model))
    memory.warm_up(ops)
    steps = Steps(host, device, memory, ops, rng)
    typical_ns = _kernel_times_ns(ops, run)
    now = _BEGIN_NS
    for i, parts in enumerate(_parts_of_steps(run, rng)):
        now = steps.add(FIRST_STEP + i, now, parts, _varied(typical_ns, parts.compute_ns, rng))
        now += _BETWEEN_STEPS_NS + int(_BETWEEN_STEPS_NS * rng.random())
    return _space(run, host, device, now)


def _space(run: Simulated, host: Plane, device: Plane, end_ns: int) -> xplane_pb2.XSpace:
    started = run.started_s * _NS_PER_S
    space = xplane_pb2.XSpace(warnings=[WARNING], hostnames=[HOST])
    environment = Plane("Task Environment", profile_start_time=started, profile_stop_time=started + end_ns)
    for plane in (host, device, environment):
        plane.add_to(space)
    return space


def _stamp(run: Simulated) -> str:
    return datetime.fromtimestamp(run.started_s, UTC).strftime("%Y_%m_%d_%H_%M_%S")


def _parts_of_steps(run: Simulated, rng: random.Random) -> list[StepParts]:
    """Every step's parts: their means over all but the first and the last step are those of `run`."""
    factors = {part: _jitter(spread, rng) for part, spread in _SPREADS.items()}
    ns = {f"{part}_ns": [round(getattr(run, part) * _NS_PER_MS * f) for f in factors[part]] for part in factors}
    return [StepParts(**{part: values[i] for part, values in ns.items()}) for i in range(STEPS)]


def _jitter(spread: float, rng: random.Random) -> list[float]:
    """A factor for each step, like the one before to a degree; with a mean of 1 over all but the first and last."""
    values = []
    value = 0.0
    for _ in range(STEPS):
        value = _PERSISTENCE * value + _noise(rng)
        values.append(value)
    mean = math.fsum(values[1:-1]) / (STEPS - 2)
    factors = [1 + spread * (value - mean) for value in values]
    factors[0] += _FIRST_IS_LONGER
    return factors


def _noise(rng: random.Random) -> float:
    """About normal, with a variance of 1; of its methods only `random` gives the same numbers in every Python."""
    return math.fsum(rng.random() for _ in range(12)) - 6


def _kernel_times_ns(ops: list[Op], run: Simulated) -> list[float]:
    """What each kernel takes in a typical step: a least time and some for its work, such that the shares hold."""
    compute_ns, copied_ns = run.compute * _NS_PER_MS, run.output * _NS_PER_MS + COPIED_TO_DEVICE_NS
    rest_ns = {kind: share * (compute_ns + copied_ns) for kind, share in run.shares.items()}
    rest_ns[_ANY_OTHER] = compute_ns - math.fsum(rest_ns.values())
    work = dict.fromkeys(rest_ns, 0.0)
    kernels = [(_kind(op, run), kernel) for op in ops for kernel in op.work if isinstance(kernel, Kernel)]
    for kind, kernel in kernels:
        rest_ns[kind] -= _least_ns(kernel)
        work[kind] += 0 if kernel.is_layout else kernel.work
    return [
        _least_ns(kernel) + (0 if kernel.is_layout else kernel.work * rest_ns[kind] / work[kind])
        for kind, kernel in kernels
    ]


def _kind(op: Op, run: Simulated) -> str:
    """The op's type if its share is known."""
    return op.type if op.type in run.shares else _ANY_OTHER


def _least_ns(kernel: Kernel) -> float:
    return _SHORTEST_KERNEL_NS + (_NS_PER_US * kernel.work if kernel.is_layout else 0)


def _varied(typical_ns: list[float], sum_ns: int, rng: random.Random) -> list[int]:
    """Times that differ a little from the typical ones and have that sum."""
    times = [time * (1 + _KERNEL_SPREAD * (2 * rng.random() - 1)) for time in typical_ns]
    scale = sum_ns / math.fsum(times)
    out = [int(time * scale) for time in times]
    out[out.index(max(out))] += sum_ns - sum(out)
    return out


if __name__ == "__main__":
    main()
