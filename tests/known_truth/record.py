"""Records the profiles beside it: CPU programs whose true times are known, each variant in a process of its own.

`record.py` records every variant, `record.py VARIANT` that one, into `VARIANT/plugins/profile/run/`.
README.md says what is true of each variant.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tfcompare.sources.machine_load import load_average, write_load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Barrier

    import tensorflow as tf

WARM_UP_STEPS = 5
PROFILED_STEPS = 12
HOST = "localhost"
WORKERS = 2
MATRIX_SIDE = 256
SMALL_SIDE = 64
SLEEP_ENDS_LATE = 0.0005
# A tensor of 64 MiB.
LARGE_TENSOR_FLOATS = 16 * 1024 * 1024

ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # oneDNN would rename the ops: _MklMatMul for MatMul.
    "TF_ENABLE_ONEDNN_OPTS": "0",
    # Without oneDNN only this allocator reports allocations to the profiler.
    "TF_CPU_ALLOCATOR_USE_BFC": "1",
}


@dataclass(frozen=True)
class Program:
    """What a variant runs: its input, what each step computes of an element, and how long its loop sleeps."""

    dataset: tf.data.Dataset
    compute: Callable[[tf.Tensor], tf.Tensor]
    sleep_inside: float = 0
    sleep_between: float = 0


def spin_until(end: float) -> None:
    """Keeps a core busy."""
    while time.perf_counter() < end:
        pass


def spin(seconds: float) -> None:
    """Keeps a core busy for so long."""
    spin_until(time.perf_counter() + seconds)


def pause_until(end: float) -> None:
    """Sleeps, but ends on time: a sleep alone may end half a millisecond late."""
    time.sleep(max(0, end - time.perf_counter() - SLEEP_ENDS_LATE))
    spin_until(end)


def pause(seconds: float) -> None:
    """Sleeps for so long, if for any time at all."""
    if seconds:
        pause_until(time.perf_counter() + seconds)


class Pace:
    """Sleeps in each call until so long after the end of the call that began before it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = 0.0

    def keep(self, anew: bool) -> None:
        """Sleeps, from now on if the pace begins `anew`, and for most of the time even where the call comes late."""
        now = time.perf_counter()
        self.end = max(now + 0.6 * self.seconds, (now if anew else self.end) + self.seconds)
        pause_until(self.end)


def as_written(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Keeps tf.data from improving a pipeline by itself: it would fuse Map and Batch."""
    import tensorflow as tf

    options = tf.data.Options()
    options.deterministic = True
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    return dataset.with_options(options)


def matrices(side: int = MATRIX_SIDE) -> tf.data.Dataset:
    """Returns an input that costs next to nothing: the same matrix again and again."""
    import tensorflow as tf

    return as_written(tf.data.Dataset.from_tensors(tf.ones((side, side))).repeat())


def paced_map(seconds: float, num_parallel_calls: int | None = None) -> tf.data.Dataset:
    """Returns an input whose Map sleeps, so that an element is ready so long after the one before."""
    import numpy as np
    import tensorflow as tf

    pace = Pace(seconds)

    def slow(index: np.int64) -> np.ndarray:
        pace.keep(anew=index == 0)
        return np.ones((SMALL_SIDE,), np.float32)

    def to_row(index: tf.Tensor) -> tf.Tensor:
        return tf.ensure_shape(tf.numpy_function(slow, [index], tf.float32, name="slow_map"), (SMALL_SIDE,))

    elements = tf.data.Dataset.range(1000).repeat()
    return as_written(elements.map(to_row, num_parallel_calls=num_parallel_calls).batch(1).prefetch(1))


def quick_map() -> tf.data.Dataset:
    """Returns an input that makes each element anew, which takes some tens of microseconds."""
    import tensorflow as tf

    elements = tf.data.Dataset.range(1000).repeat()
    return as_written(elements.map(lambda index: tf.fill((SMALL_SIDE,), tf.cast(index, tf.float32))).batch(1))


def small_matmul() -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns a function of one MatMul that takes some ten microseconds."""
    import tensorflow as tf

    weights = tf.Variable(tf.ones((SMALL_SIDE, SMALL_SIDE)))

    @tf.function
    def compute(element: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.matmul(element, weights, name="small"))

    return compute


def matmul_chain(count: int) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns a function of `count` MatMuls, each of which takes the result of the one before."""
    import tensorflow as tf

    weights = tf.Variable(tf.fill((MATRIX_SIDE, MATRIX_SIDE), 1 / MATRIX_SIDE))

    @tf.function
    def compute(element: tf.Tensor) -> tf.Tensor:
        for i in range(count):
            element = tf.matmul(element, weights, name=f"matmul_{i:02}")
        return tf.reduce_sum(element)

    return compute


def eager_matmuls(count: int) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns what Python calls op by op, in no `tf.function`: `count` MatMuls and as many Relus, then a sum."""
    import tensorflow as tf

    weights = tf.constant(1 / SMALL_SIDE, tf.float32, (SMALL_SIDE, SMALL_SIDE))

    def compute(element: tf.Tensor) -> tf.Tensor:
        for _ in range(count):
            element = tf.raw_ops.Relu(features=tf.raw_ops.MatMul(a=element, b=weights))
        return tf.reduce_sum(element)

    return compute


def with_summary(seconds: float) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns a function of one MatMul after which, in one step, Python writes a long summary op by op."""
    import tensorflow as tf

    multiply = matmul_chain(1)
    calls = iter(range(1000))

    def compute(element: tf.Tensor) -> tf.Tensor:
        total = multiply(element)
        if next(calls) == WARM_UP_STEPS + PROFILED_STEPS // 2:
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                tf.raw_ops.MatMul(a=element, b=element)
        return total

    return compute


def python_op(seconds: float) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns a function of one MatMul and, after it, a Python function that keeps a core busy, if for any time."""
    import tensorflow as tf

    multiply = matmul_chain(1)

    def slow(total: tf.Tensor) -> tf.Tensor:
        spin(seconds)
        return total

    @tf.function
    def compute(element: tf.Tensor) -> tf.Tensor:
        total = multiply(element)
        return tf.py_function(slow, [total], tf.float32, name="slow_python") if seconds else total

    return compute


def large_tensor() -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns a function that fills one large tensor and sums it."""
    import tensorflow as tf

    @tf.function
    def compute(element: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.fill((LARGE_TENSOR_FLOATS,), element[0, 0], name="large_tensor"))

    return compute


def layers(*, fused: bool) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns a function of three layers that Grappler's remapper fuses, or is kept from fusing.

    `inside` has its Relu in its scope, `apart` in a scope `activation` beside it, `dense` is a MatMul with a Relu.
    """
    import tensorflow as tf

    tf.config.optimizer.set_experimental_options({"remapping": fused})
    kernels = [tf.Variable(tf.fill((3, 3, channels, 16), 0.01)) for channels in (1, 16)]
    weights, bias = tf.Variable(tf.fill((MATRIX_SIDE, MATRIX_SIDE), 0.01)), tf.Variable(tf.ones((16,)))
    wide = tf.Variable(tf.ones((MATRIX_SIDE,)))

    def convolution(images: tf.Tensor, kernel: tf.Variable) -> tf.Tensor:
        return tf.nn.bias_add(tf.nn.conv2d(images, kernel, strides=1, padding="SAME"), bias)

    @tf.function
    def compute(element: tf.Tensor) -> tf.Tensor:
        with tf.name_scope("model"):
            with tf.name_scope("inside"):
                images = tf.nn.relu(convolution(element[None, :64, :64, None], kernels[0]))
            with tf.name_scope("apart"):
                images = convolution(images, kernels[1])
            with tf.name_scope("activation"):
                images = tf.nn.relu(images)
            with tf.name_scope("dense"):
                rows = tf.nn.relu(tf.nn.bias_add(tf.matmul(tf.reshape(images, (MATRIX_SIDE, -1)), weights), wide))
        return tf.reduce_sum(rows)

    return compute


def all_reduced(strategy: tf.distribute.Strategy, extra_seconds: float) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns a training step of one layer, whose gradient is summed over the workers, after extra work if any."""
    import tensorflow as tf

    with strategy.scope():
        weights = tf.Variable(tf.fill((SMALL_SIDE, SMALL_SIDE), 1 / SMALL_SIDE))

    def slow(element: tf.Tensor) -> tf.Tensor:
        spin(extra_seconds)
        return element

    def update(strategy: tf.distribute.Strategy, gradient: tf.Tensor) -> None:
        strategy.extended.update(weights, lambda variable, by: variable.assign_sub(1e-9 * by), args=(gradient,))

    def replica_step(element: tf.Tensor) -> tf.Tensor:
        if extra_seconds:
            element = tf.ensure_shape(
                tf.py_function(slow, [element], tf.float32, name="slow_work"), (SMALL_SIDE, SMALL_SIDE)
            )
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.matmul(element, weights, name="layer"))
        context = tf.distribute.get_replica_context()
        gradient = context.all_reduce(tf.distribute.ReduceOp.SUM, tape.gradient(loss, weights))
        context.merge_call(update, args=(gradient,))
        return loss

    @tf.function
    def compute(element: tf.Tensor) -> tf.Tensor:
        return strategy.run(replica_step, args=(element,))

    return compute


def mapping(seconds: float, num_parallel_calls: int | None = None) -> Program:
    """Returns a program that waits for a Map."""
    return Program(paced_map(seconds, num_parallel_calls), small_matmul())


def sleeping(inside: float = 0, between: float = 0) -> Program:
    """Returns a program whose loop sleeps."""
    return Program(matrices(SMALL_SIDE), small_matmul(), inside, between)


VARIANTS: dict[str, Callable[[], Program]] = {
    "map_5ms": partial(mapping, 0.005),
    "map_8ms": partial(mapping, 0.008),
    "map_parallel_5ms": partial(mapping, 0.005, num_parallel_calls=2),
    "map_parallel_8ms": partial(mapping, 0.008, num_parallel_calls=2),
    "no_sleep": sleeping,
    "sleep_inside_10ms": partial(sleeping, inside=0.010),
    "sleep_between_10ms": partial(sleeping, between=0.010),
    "py_op_none": lambda: Program(matrices(), python_op(0)),
    "py_op_5ms": lambda: Program(matrices(), python_op(0.005)),
    "eager_loop": lambda: Program(matrices(SMALL_SIDE), eager_matmuls(20)),
    "eager_in_one_step": lambda: Program(matrices(), with_summary(0.040)),
    "map_10ms": partial(mapping, 0.010),
    "map_quick": lambda: Program(quick_map(), small_matmul()),
    "matmuls_10": lambda: Program(matrices(), matmul_chain(10)),
    "matmuls_20": lambda: Program(matrices(), matmul_chain(20)),
    "layers_unfused": lambda: Program(matrices(), layers(fused=False)),
    "layers_fused": lambda: Program(matrices(), layers(fused=True)),
    "tensor_64mib": lambda: Program(matrices(), large_tensor()),
}
# The seconds for which each worker works beside the training in each step.
WORKER_VARIANTS: dict[str, tuple[float, float]] = {"workers_even": (0, 0), "workers_uneven": (0, 0.008)}


def run_steps(program: Program, elements: Iterator[tf.Tensor], steps: range) -> None:
    """Runs marked steps, each of which waits for its element and for what is computed of it."""
    import tensorflow as tf

    for step in steps:
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            program.compute(next(elements)).numpy()
            pause(program.sleep_inside)
        pause(program.sleep_between)


def profile(program: Program, logdir: Path, wait_for_others: Callable[[], object] = lambda: None) -> None:
    """Runs the warm-up, then profiles the steps that follow, which begin with the first element again."""
    import tensorflow as tf

    run_steps(program, iter(program.dataset), range(WARM_UP_STEPS))
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
    tf.profiler.experimental.start(str(logdir), options)
    elements = iter(program.dataset)
    wait_for_others()
    run_steps(program, elements, range(WARM_UP_STEPS, WARM_UP_STEPS + PROFILED_STEPS))
    wait_for_others()
    tf.profiler.experimental.stop()


def keep(recorded: Path, kept: Path) -> None:
    """Keeps the profile below `recorded` as the file `kept`, which names the host in place of this machine."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    (source,) = recorded.glob("plugins/profile/*/*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(source.read_bytes())
    space.hostnames[:] = [kept.name.partition(".")[0]]
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(gzip.compress(space.SerializeToString(), 9, mtime=0))
    sys.stdout.write(f"{kept}: {kept.stat().st_size:,} bytes\n")


@contextlib.contextmanager
def recording(kept: Path) -> Iterator[Path]:
    """Prepares TensorFlow and gives a temporary logdir by a relative path, so that no path is recorded."""
    import tensorflow as tf

    # One thread an op: the second core is then free for the input, and the file is not filled with thread pool events.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    load_before = load_average()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield Path("logs")
        keep(Path("logs"), kept)
    write_load(kept.parent, load_before)


def record(name: str, runs: Path) -> None:
    """Records a variant of one process in this process."""
    os.environ.update(ENVIRONMENT)
    with recording(runs / f"{HOST}.xplane.pb.gz") as logdir:
        profile(VARIANTS[name](), logdir)


def record_worker(extra_seconds: float, index: int, addresses: list[str], barrier: Barrier, runs: Path) -> None:
    """Records one worker in this process, while the others record themselves in theirs."""
    cluster = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
    os.environ.update(ENVIRONMENT | {"TF_CONFIG": json.dumps(cluster)})
    import tensorflow as tf

    with recording(runs / f"worker{index}.xplane.pb.gz") as logdir:
        ring = tf.distribute.experimental.CommunicationImplementation.RING
        options = tf.distribute.experimental.CommunicationOptions(implementation=ring)
        strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
        program = Program(matrices(SMALL_SIDE), all_reduced(strategy, extra_seconds))
        profile(program, logdir, barrier.wait)
    barrier.wait()


def record_workers(name: str, runs: Path) -> None:
    """Records a variant of several workers, each in a process of its own."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((HOST, 0))) for _ in range(WORKERS)]
        addresses = [f"{HOST}:{a_socket.getsockname()[1]}" for a_socket in sockets]
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(WORKERS, timeout=120)
    workers = [
        context.Process(target=record_worker, args=(seconds, index, addresses, barrier, runs))
        for index, seconds in enumerate(WORKER_VARIANTS[name])
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise SystemExit(f"{name}: a worker failed")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [*VARIANTS, *WORKER_VARIANTS]
    parser.add_argument("variant", nargs="?", choices=names, help="the one to record (default: all of them)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="where the runs go (default: here)")
    arguments = parser.parse_args()
    out: Path = arguments.out.resolve()
    if not arguments.variant:
        for name in names:
            subprocess.run([sys.executable, __file__, name, "--out", str(out)], check=True)
        return
    runs = out / arguments.variant / "plugins" / "profile" / "run"
    shutil.rmtree(runs, ignore_errors=True)
    (record_workers if arguments.variant in WORKER_VARIANTS else record)(arguments.variant, runs)


if __name__ == "__main__":
    main()
