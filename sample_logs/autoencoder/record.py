"""Records the runs beside it: a denoising convolutional autoencoder on CPU, each variant in a process of its own.

`record.py` records every variant, `record.py VARIANT` that one, into `VARIANT/plugins/profile/<stamp>/`, with the load
of the machine beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfcompare.sources.machine_load import load_average, write_load

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

FILES = 4
IMAGES_PER_FILE = 128
STORED_PIXELS = 144
MODEL_PIXELS = 32
BATCH_SIZE = 16
WARM_UP_STEPS = 5
PROFILED_STEPS = 22
HOST = "localhost"

ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # oneDNN would rename the convolutions: _MklNativeConv2D for Conv2D.
    "TF_ENABLE_ONEDNN_OPTS": "0",
    # Without oneDNN only this allocator reports allocations to the profiler.
    "TF_CPU_ALLOCATOR_USE_BFC": "1",
}


@dataclass(frozen=True)
class Variant:
    """What differs between two runs: the filters of the outer and inner layers, and how the images are read."""

    filters: tuple[int, int]
    better_input: bool = False


VARIANTS = {
    "filters_512_128": Variant((512, 128)),
    "filters_16_8": Variant((16, 8)),
    "filters_16_8_again": Variant((16, 8)),
    "filters_16_8_better_input": Variant((16, 8), better_input=True),
}


def write_images(folder: Path) -> list[str]:
    """Writes smooth random images as PNG in TFRecord files, the same ones every time, and returns the files' names."""
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(seed=7)
    names = [f"images-{i}.tfrecord" for i in range(FILES)]
    for name in names:
        with tf.io.TFRecordWriter(str(folder / name)) as writer:
            for _ in range(IMAGES_PER_FILE):
                coarse = rng.uniform(0, 255, (8, 8, 3))
                image = tf.image.resize(coarse, (STORED_PIXELS, STORED_PIXELS), method="bicubic")
                writer.write(tf.io.encode_png(tf.cast(tf.clip_by_value(image, 0, 255), tf.uint8)).numpy())
    return names


def decode(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Turns a stored image into the noisy one that the model is given and the clean one that it should return."""
    import tensorflow as tf

    image = tf.io.decode_png(record, channels=3)
    clean = tf.image.resize(image, (MODEL_PIXELS, MODEL_PIXELS), method="area") / 255.0
    noisy = clean + tf.random.normal((MODEL_PIXELS, MODEL_PIXELS, 3), stddev=0.2)
    return noisy, clean


def naive_input(names: list[str]) -> tf.data.Dataset:
    """Returns batches made while the model waits: one file after the other, one image after the other."""
    import tensorflow as tf

    return tf.data.TFRecordDataset(names).repeat().map(decode).batch(BATCH_SIZE, drop_remainder=True)


def better_input(names: list[str]) -> tf.data.Dataset:
    """Returns batches made while the model computes: files and images in parallel, two batches ahead."""
    import tensorflow as tf

    files = tf.data.Dataset.from_tensor_slices(names).repeat()
    records = files.interleave(tf.data.TFRecordDataset, cycle_length=2, num_parallel_calls=2)
    images = records.map(decode, num_parallel_calls=2)
    return images.batch(BATCH_SIZE, drop_remainder=True).prefetch(2)


def as_written(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Keeps tf.data from improving a naive pipeline by itself: it would fuse Map and Batch, which then work ahead."""
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    return dataset.with_options(options)


def autoencoder(filters: tuple[int, int]) -> keras.Model:
    """Builds two strided convolutions and two transposed ones, with the same layer names whatever the filters."""
    import keras
    from keras import layers

    outer, inner = filters
    strided = {"kernel_size": 3, "strides": 2, "padding": "same", "activation": "relu"}
    return keras.Sequential(
        [
            keras.Input((MODEL_PIXELS, MODEL_PIXELS, 3), batch_size=BATCH_SIZE),
            layers.Conv2D(outer, name="encoder_outer", **strided),
            layers.Conv2D(inner, name="encoder_inner", **strided),
            layers.Conv2DTranspose(inner, name="decoder_inner", **strided),
            layers.Conv2DTranspose(outer, name="decoder_outer", **strided),
            layers.Conv2D(3, kernel_size=3, padding="same", activation="sigmoid", name="image"),
        ],
        name="autoencoder",
    )


def profile(variant: Variant, names: list[str], logdir: Path) -> None:
    """Trains for the warm-up, then profiles the steps that follow, each marked with its number."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(7)
    model = autoencoder(variant.filters)
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    mean_squared_error = keras.losses.MeanSquaredError()

    @tf.function
    def train_step(noisy: tf.Tensor, clean: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = mean_squared_error(clean, model(noisy, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    make_input = better_input if variant.better_input else naive_input
    batches = iter(as_written(make_input(names)))
    for _ in range(WARM_UP_STEPS):
        train_step(*next(batches)).numpy()

    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
    tf.profiler.experimental.start(str(logdir), options)
    for step in range(WARM_UP_STEPS, WARM_UP_STEPS + PROFILED_STEPS):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step(*next(batches)).numpy()
    tf.profiler.experimental.stop()


def keep(recorded: Path, logdir: Path) -> Path:
    """Puts the profile below `recorded` in the place of the one in `logdir`, this machine's name replaced by HOST."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    (source,) = recorded.glob("plugins/profile/*/*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(source.read_bytes())
    space.hostnames[:] = [HOST]
    runs = logdir / "plugins" / "profile"
    shutil.rmtree(runs, ignore_errors=True)
    kept = runs / source.parent.name / f"{HOST}.xplane.pb"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(space.SerializeToString())
    return kept


def record(name: str, out: Path) -> None:
    """Records one variant in this process, in a temporary folder by relative paths, so that no path is recorded."""
    os.environ.update(ENVIRONMENT)
    load_before = load_average()
    import tensorflow as tf

    # One thread an op: the second core is then free for the input, and the file is not filled with thread pool events.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    # Unfused, a convolution is an op of its own; else it is part of a _FusedConv2D.
    tf.config.optimizer.set_experimental_options({"remapping": False})
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        profile(VARIANTS[name], write_images(Path()), Path("logs"))
        kept = keep(Path("logs"), out / name)
    write_load(kept.parent, load_before)
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
    for name in VARIANTS:
        subprocess.run([sys.executable, __file__, name, "--out", str(out)], check=True)


if __name__ == "__main__":
    main()
