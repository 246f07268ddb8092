"""Records the runs beside it: the autoencoder compiled by XLA, with JAX and with TensorFlow, before and after.

`record.py` records every variant, `record.py VARIANT` that one, into `VARIANT/plugins/profile/<stamp>/`. JAX is needed
for the variants that begin with `jax`, TensorFlow for the others.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PIXELS = 32
BATCH_SIZE = 16
WARM_UP_STEPS = 5
PROFILED_STEPS = 20
HOST = "localhost"
FILTERS = {"filters_128_32": (128, 32), "filters_16_8": (16, 8)}
VARIANTS = [f"{framework}_{name}" for framework in ("jax", "tensorflow") for name in FILTERS]
LAYERS = ("encoder_outer", "encoder_inner", "decoder_inner", "decoder_outer", "image")
FILES_ONLY = r".*/"
"""What JAX leaves out of the names of source files: their folders."""


def channels(filters: tuple[int, int]) -> list[tuple[int, int]]:
    """The channels that each layer takes and gives."""
    outer, inner = filters
    return [(3, outer), (outer, inner), (inner, inner), (inner, outer), (outer, 3)]


def record_jax(filters: tuple[int, int], logdir: Path) -> None:
    """Trains with `jax.jit` for the warm-up, then profiles the steps that follow, each until its loss is known."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    jax.config.update("jax_hlo_source_file_canonicalization_regex", FILES_ONLY)
    jax.config.update("jax_traceback_in_locations_limit", 1)

    def model(weights: dict[str, Any], images: Any) -> Any:
        for number, name in enumerate(LAYERS):
            with jax.named_scope(name):
                apply = lax.conv_transpose if name.startswith("decoder") else lax.conv_general_dilated
                strides = (1, 1) if name == "image" else (2, 2)
                images = apply(images, weights[name], strides, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
                images = jax.nn.sigmoid(images) if number == len(LAYERS) - 1 else jax.nn.relu(images)
        return images

    def mean_squared_error(weights: dict[str, Any], images: Any) -> Any:
        return jnp.mean((model(weights, images) - images) ** 2)

    @jax.jit
    def train_step(weights: dict[str, Any], images: Any) -> tuple[dict[str, Any], Any]:
        loss, gradients = jax.value_and_grad(mean_squared_error)(weights, images)
        return jax.tree.map(lambda weight, gradient: weight - 0.01 * gradient, weights, gradients), loss

    keys = jax.random.split(jax.random.key(7), len(LAYERS) + 1)
    weights = {
        name: 0.1 * jax.random.normal(key, (3, 3, *ends))
        for name, key, ends in zip(LAYERS, keys[1:], channels(filters), strict=True)
    }
    images = jax.random.uniform(keys[0], (BATCH_SIZE, PIXELS, PIXELS, 3))
    for _ in range(WARM_UP_STEPS):
        weights, loss = train_step(weights, images)
    jax.block_until_ready(loss)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    jax.profiler.start_trace(str(logdir), profiler_options=options)
    for step in range(WARM_UP_STEPS, WARM_UP_STEPS + PROFILED_STEPS):
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            weights, loss = train_step(weights, images)
            loss.block_until_ready()
    jax.profiler.stop_trace()


def record_tensorflow(filters: tuple[int, int], logdir: Path) -> None:
    """Trains with `jit_compile=True` for the warm-up, then profiles the steps that follow."""
    import tensorflow as tf

    tf.random.set_seed(7)
    weights = {
        name: tf.Variable(
            0.1 * tf.random.normal((3, 3, *(ends[::-1] if name.startswith("decoder") else ends))), name=name
        )
        for name, ends in zip(LAYERS, channels(filters), strict=True)
    }

    def model(images: tf.Tensor) -> tf.Tensor:
        for name in LAYERS:
            with tf.name_scope(name):
                if name.startswith("decoder"):
                    size = 2 * int(images.shape[1])
                    shape = (BATCH_SIZE, size, size, int(weights[name].shape[2]))
                    images = tf.nn.relu(tf.nn.conv2d_transpose(images, weights[name], shape, strides=2))
                elif name == "image":
                    images = tf.nn.sigmoid(tf.nn.conv2d(images, weights[name], strides=1, padding="SAME"))
                else:
                    images = tf.nn.relu(tf.nn.conv2d(images, weights[name], strides=2, padding="SAME"))
        return images

    @tf.function(jit_compile=True)
    def train_step(images: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(images) - images) ** 2)
        variables = list(weights.values())
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.01 * gradient)
        return loss

    images = tf.random.uniform((BATCH_SIZE, PIXELS, PIXELS, 3))
    for _ in range(WARM_UP_STEPS):
        train_step(images).numpy()
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
    tf.profiler.experimental.start(str(logdir), options)
    for step in range(WARM_UP_STEPS, WARM_UP_STEPS + PROFILED_STEPS):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step(images).numpy()
    tf.profiler.experimental.stop()


def without_folders(profile: bytes) -> bytes:
    """A profile of TensorFlow with the names of source files in its programs, but without their folders."""
    from tensorflow.compiler.xla.service import hlo_pb2
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace.FromString(profile)
    stats = [stat for plane in space.planes for event in plane.event_metadata.values() for stat in event.stats]
    for stat in stats:
        if stat.WhichOneof("value") == "bytes_value":
            program = hlo_pb2.HloProto.FromString(stat.bytes_value)
            for computation in program.hlo_module.computations:
                for instruction in computation.instructions:
                    instruction.metadata.source_file = Path(instruction.metadata.source_file).name
            stat.bytes_value = program.SerializeToString()
    return space.SerializeToString()


def keep(recorded: Path, logdir: Path, is_tensorflow: bool) -> Path:
    """Puts the profile below `recorded` in the place of the one in `logdir`."""
    (source,) = recorded.glob("plugins/profile/*/*.xplane.pb")
    profile = source.read_bytes()
    runs = logdir / "plugins" / "profile"
    shutil.rmtree(runs, ignore_errors=True)
    kept = runs / source.parent.name / f"{HOST}.xplane.pb"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(without_folders(profile) if is_tensorflow else profile)
    return kept


def record(variant: str, out: Path) -> None:
    """Records one variant in this process, in a temporary folder by relative paths, so that no path is recorded."""
    os.environ.update({"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"})
    framework, _, filters = variant.partition("_")
    profile = record_jax if framework == "jax" else record_tensorflow
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        profile(FILTERS[filters], Path("logs"))
        kept = keep(Path("logs"), out / variant, framework == "tensorflow")
    print(f"{kept}: {kept.stat().st_size:,} bytes")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("variant", nargs="?", choices=VARIANTS, help="the one to record (default: all of them)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="where the runs go (default: here)")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    if arguments.variant:
        record(arguments.variant, out)
        return
    for variant in VARIANTS:
        subprocess.run([sys.executable, __file__, variant, "--out", str(out)], check=True)


if __name__ == "__main__":
    main()
