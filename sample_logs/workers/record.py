"""Records the runs beside it: workers that train one model together, each a process of its own, on one machine.

`record.py` records every variant, `record.py VARIANT` that one, into `VARIANT/plugins/profile/<stamp>/`, one file for
each worker. What makes a worker slow is a sleep, so two cores suffice for three workers.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import tensorflow as tf

WORKERS = 3
BATCH_SIZE = 8
FEATURES = 32
INPUT_MS = 10.0
COMPUTE_MS = 10.0
WARM_UP_STEPS = 10
STEPS = 200
PROFILED_MS = 850

ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "GRPC_VERBOSITY": "NONE",
}


@dataclass(frozen=True)
class Variant:
    """How much longer one worker sleeps than the others, in milliseconds, and where."""

    slow_worker: int = 0
    input_ms: float = 0.0
    compute_ms: float = 0.0
    before_all_reduce_ms: float = 0.0
    between_ops_ms: float = 0.0


VARIANTS = {
    "balanced": Variant(),
    "slow_input": Variant(slow_worker=1, input_ms=8.0),
}


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nothing listens on."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def sleeping(value: tf.Tensor, ms: float, name: str) -> tf.Tensor:
    """The value after a sleep, in an op of that name."""
    import tensorflow as tf

    def sleep(array: np.ndarray) -> np.ndarray:
        time.sleep(ms / 1000)
        return array

    slept = tf.numpy_function(sleep, [value], value.dtype, name=name)
    slept.set_shape(value.shape)
    return slept


def batches(extra_ms: float) -> Iterator[tf.Tensor]:
    """Random batches, each read for `INPUT_MS` and more while the model waits."""
    import tensorflow as tf

    def batch(number: tf.Tensor) -> tf.Tensor:
        features = tf.random.stateless_normal((BATCH_SIZE, FEATURES), tf.stack([number, number]))
        return sleeping(features, INPUT_MS + extra_ms, "read")

    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    return iter(tf.data.Dataset.range(1 << 30).map(batch).with_options(options))


def gradient(weights: tf.Variable, features: tf.Tensor, extra: Variant) -> tf.Tensor:
    """The gradient of one layer that computes for `COMPUTE_MS` and more."""
    import tensorflow as tf

    with tf.name_scope("model"):
        hidden = tf.stop_gradient(sleeping(features, COMPUTE_MS + extra.compute_ms, "layer"))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.linalg.matmul(hidden, weights) - features))
    found = tape.gradient(loss, weights)
    return sleeping(found, extra.before_all_reduce_ms, "clip_gradients") if extra.before_all_reduce_ms else found


def update(weights: tf.Variable, found: tf.Tensor) -> tf.Tensor:
    """Changes the weights by the mean gradient of all workers."""
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    mean = replica.all_reduce(tf.distribute.ReduceOp.MEAN, tf.identity(found))
    replica.merge_call(
        lambda strategy, var, value: strategy.extended.update(
            var, lambda own, step: own.assign_sub(0.01 * step), args=(value,)
        ),
        args=(weights, mean),
    )
    return tf.reduce_sum(mean)


def work(worker: int, variant: Variant, profiler_port: int) -> None:
    """Trains as one of the workers, with its profiler server at `profiler_port`."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf.profiler.experimental.server.start(profiler_port)
    extra = variant if worker == variant.slow_worker else Variant()
    read = batches(extra.input_ms)
    with strategy.scope():
        weights = tf.Variable(tf.ones((FEATURES, FEATURES)) / FEATURES, name="weights")

    @tf.function
    def whole_step(features: tf.Tensor) -> tf.Tensor:
        return strategy.run(lambda own: update(weights, gradient(weights, own, extra)), args=(features,))

    @tf.function
    def first_half(features: tf.Tensor) -> tf.Tensor:
        return strategy.run(lambda own: gradient(weights, own, extra), args=(features,))

    @tf.function
    def second_half(found: tf.Tensor) -> tf.Tensor:
        return strategy.run(lambda own: update(weights, own), args=(found,))

    for step in range(STEPS):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            if variant.between_ops_ms:
                found = first_half(next(read)).numpy()
                time.sleep(extra.between_ops_ms / 1000)
                second_half(tf.constant(found)).numpy()
            else:
                whole_step(next(read)).numpy()
        if step == WARM_UP_STEPS:
            print("ready", flush=True)


def start_worker(
    worker: int, variant: Variant, ports: list[int], profiler_port: int, folder: str
) -> subprocess.Popen[str]:
    """Starts a worker's process."""
    cluster = {"worker": [f"localhost:{port}" for port in ports]}
    task = {"type": "worker", "index": worker}
    environment = os.environ | ENVIRONMENT | {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}
    words = [str(worker), str(profiler_port), json.dumps(asdict(variant))]
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve()), "--worker", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder,
    )


def capture(ports: list[int], logdir: Path) -> None:
    """Captures all workers through their profiler servers into one run."""
    import tensorflow as tf

    options = tf.profiler.experimental.ProfilerOptions(
        host_tracer_level=2, python_tracer_level=0, device_tracer_level=0
    )
    addresses = ",".join(f"grpc://localhost:{port}" for port in ports)
    tf.profiler.experimental.client.trace(addresses, str(logdir), PROFILED_MS, options=options)


def record(name: str, variant: Variant, out: Path) -> None:
    """Records one variant."""
    import tensorflow as tf  # before the workers start: it takes longer than their warm-up

    del tf
    ports = free_ports(2 * WORKERS)
    servers, profilers = ports[:WORKERS], ports[WORKERS:]
    with tempfile.TemporaryDirectory() as folder:
        workers = [start_worker(i, variant, servers, profilers[i], folder) for i in range(WORKERS)]
        for worker in workers:
            assert worker.stdout is not None
            if worker.stdout.readline().strip() != "ready":
                raise SystemExit("a worker did not start")
        with contextlib.chdir(folder):  # the options in the profile hold the path
            capture(profilers, Path("logs"))
        for worker in workers:
            worker.wait()
        keep(Path(folder) / "logs", out / name, profilers)


def keep(recorded: Path, logdir: Path, ports: list[int]) -> None:
    """Puts the profiles below `recorded` in the place of those in `logdir`, named worker0, worker1, …"""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    runs = logdir / "plugins" / "profile"
    shutil.rmtree(runs, ignore_errors=True)
    for source in sorted(recorded.glob("plugins/profile/*/*.xplane.pb")):
        (worker,) = [i for i, port in enumerate(ports) if str(port) in source.name]
        space = xplane_pb2.XSpace.FromString(source.read_bytes())
        space.hostnames[:] = [f"worker{worker}"]
        kept = runs / source.parent.name / f"worker{worker}.xplane.pb"
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(space.SerializeToString())
        print(f"{kept}: {kept.stat().st_size:,} bytes")


def main() -> None:
    """Reads the command line."""
    if sys.argv[1:2] == ["--worker"]:
        work(int(sys.argv[2]), Variant(**json.loads(sys.argv[4])), int(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("variant", nargs="?", choices=VARIANTS, help="the one to record (default: all of them)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="where the runs go (default: here)")
    arguments = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    for name in [arguments.variant] if arguments.variant else VARIANTS:
        record(name, VARIANTS[name], arguments.out.resolve())


if __name__ == "__main__":
    main()
