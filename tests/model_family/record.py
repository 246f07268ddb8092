"""Records the profiles beside it: variants of one small Keras model, each in a process of its own.

`record.py` records every variant, `record.py VARIANT` that one, into `VARIANT/plugins/profile/run/`.
README.md lists the variants; `family.py` says which op has which role in each of them.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

HOST = "localhost"
WARM_UP_STEPS = 4
PROFILED_STEPS = 6
BATCH_SIZE = 64
FEATURES = 48
CLASSES = 10

ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # oneDNN would rename the ops: _MklMatMul for MatMul.
    "TF_ENABLE_ONEDNN_OPTS": "0",
    # Without oneDNN only this allocator reports allocations, and with them shapes, to the profiler.
    "TF_CPU_ALLOCATOR_USE_BFC": "1",
}

WIDTHS = {"first": 96, "second": 128, "third": 128, "fourth": 160, "last": CLASSES}
"""The dense layers of the base model, in order: the role of each, and its width."""

EXPLICIT = {"first": "stem", "second": "body_a", "third": "body_b", "fourth": "neck", "last": "logits"}
RENAMED = {"first": "entry", "second": "hidden_x", "third": "hidden_y", "fourth": "exit", "last": "classes"}


@dataclass(frozen=True)
class Variant:
    """A model as (role, width) of its dense layers in order, how it names them, and how it is trained."""

    layers: tuple[tuple[str, int], ...] = tuple(WIDTHS.items())
    names: dict[str, str] | None = None
    train: str = "loop"


def with_layer(role: str, width: int, before: str) -> tuple[tuple[str, int], ...]:
    """The layers of the base model, and one more."""
    layers: list[tuple[str, int]] = []
    for layer in WIDTHS.items():
        layers += [(role, width), layer] if layer[0] == before else [layer]
    return tuple(layers)


BRANCHES = ("left", "middle", "right")
BRANCH_WIDTHS = {"left": 96, "middle": 128, "right": 160}

VARIANTS: dict[str, Variant] = {
    "auto": Variant(),
    "auto_again": Variant(),
    "explicit": Variant(names=EXPLICIT),
    "renamed": Variant(names=RENAMED),
    "inserted": Variant(with_layer("new", 112, before="third")),
    "inserted_same_width": Variant(with_layer("new", 128, before="third")),
    "removed": Variant(tuple(layer for layer in WIDTHS.items() if layer[0] != "fourth")),
    "branches": Variant(train="branches"),
    "branches_reordered": Variant(train="branches_reordered"),
    "fit": Variant(names=EXPLICIT, train="fit"),
    "jit": Variant(names=EXPLICIT, train="jit"),
    "jit_other_order": Variant(names=EXPLICIT, train="jit_other_order"),
}


def dense_model(variant: Variant) -> keras.Model:
    """Builds dense layers one after the other."""
    import keras
    from keras import layers

    inputs = outputs = keras.Input((FEATURES,), batch_size=BATCH_SIZE)
    for role, width in variant.layers:
        named = {} if variant.names is None else {"name": variant.names[role]}
        outputs = layers.Dense(width, activation=None if role == "last" else "relu", **named)(outputs)
    return keras.Model(inputs, outputs, name="model")


def branched_model(order: tuple[str, ...]) -> keras.Model:
    """Builds independent layers with names of their own, in this order, and one on top of all."""
    import keras
    from keras import layers

    inputs = keras.Input((FEATURES,), batch_size=BATCH_SIZE)
    branches = {name: layers.Dense(BRANCH_WIDTHS[name], activation="relu", name=name)(inputs) for name in order}
    joined = layers.Concatenate(name="join")([branches[name] for name in order])
    return keras.Model(inputs, layers.Dense(CLASSES, name="logits")(joined), name="model")


def batch() -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the only batch there is."""
    import tensorflow as tf

    return tf.ones((BATCH_SIZE, FEATURES)), tf.zeros((BATCH_SIZE,), tf.int64)


def loss_function() -> keras.losses.Loss:
    """Returns what every variant minimises."""
    import keras

    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def train_step(model: keras.Model, *, jit_compile: bool) -> Callable[[], object]:
    """Returns one step of an own training loop."""
    import keras
    import tensorflow as tf

    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    loss_of = loss_function()

    @tf.function(jit_compile=jit_compile)
    def step(features: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(features, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    features, labels = batch()
    return lambda: step(features, labels).numpy()


def evaluation_step(model: keras.Model, *, jit_compile: bool) -> Callable[[], object]:
    """Returns the loss of a model in a function of its own."""
    import tensorflow as tf

    loss_of = loss_function()

    @tf.function(jit_compile=jit_compile)
    def evaluate(features: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        return loss_of(labels, model(features, training=False))

    features, labels = batch()
    return lambda: evaluate(features, labels).numpy()


def own_loop(variant: Variant) -> Callable[[], object]:
    """Returns a step of the variant's own loop; compiled ones train and evaluate, traced in one order or the other."""
    if variant.train.startswith("branches"):
        order = BRANCHES[::-1] if variant.train.endswith("reordered") else BRANCHES
        return train_step(branched_model(order), jit_compile=False)
    model = dense_model(variant)
    if variant.train == "loop":
        return train_step(model, jit_compile=False)
    steps = [train_step(model, jit_compile=True), evaluation_step(model, jit_compile=True)]
    for step in steps[::-1] if variant.train == "jit_other_order" else steps:
        step()
    return lambda: [step() for step in steps]


def profile_loop(variant: Variant, logdir: Path) -> None:
    """Trains for the warm-up, then profiles the steps that follow, each marked with its number."""
    import tensorflow as tf

    step = own_loop(variant)
    for _ in range(WARM_UP_STEPS):
        step()
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
    tf.profiler.experimental.start(str(logdir), options)
    for number in range(WARM_UP_STEPS, WARM_UP_STEPS + PROFILED_STEPS):
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            step()
    tf.profiler.experimental.stop()


def profile_fit(variant: Variant, logdir: Path) -> None:
    """Trains with Keras' `fit`, whose own callback profiles some of the steps."""
    import keras
    import tensorflow as tf

    model = dense_model(variant)
    model.compile(optimizer=keras.optimizers.Adam(), loss=loss_function(), jit_compile=False)
    steps = WARM_UP_STEPS + PROFILED_STEPS
    dataset = tf.data.Dataset.from_tensors(batch()).repeat(steps + 2)
    last = WARM_UP_STEPS + PROFILED_STEPS - 1
    board = keras.callbacks.TensorBoard(str(logdir), write_graph=False, profile_batch=(WARM_UP_STEPS, last))
    model.fit(dataset, epochs=1, verbose=0, callbacks=[board])


def store(recorded: Path, file: Path) -> None:
    """Stores the profile below `recorded` as `file`, without what names this machine or its files.

    Those are the host's name, Python frames, and compiled programs, whose instructions give their source.
    """
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    (source,) = recorded.rglob("*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(source.read_bytes())
    space.hostnames[:] = [HOST]
    for plane in [plane for plane in space.planes if plane.name == "/host:metadata"]:
        space.planes.remove(plane)
    for plane in space.planes:
        frames = {number for number, event in plane.event_metadata.items() if event.name.startswith("$")}
        for line in plane.lines:
            others = [event for event in line.events if event.metadata_id not in frames]
            del line.events[:]
            line.events.extend(others)
        for number in frames:
            del plane.event_metadata[number]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(space.SerializeToString(), 9, mtime=0))
    sys.stdout.write(f"{file}: {file.stat().st_size:,} bytes\n")


def record(name: str, runs: Path) -> None:
    """Records one variant in this process, in a temporary folder by relative paths, so that no path is recorded."""
    os.environ.update(ENVIRONMENT)
    import keras
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(7)
    variant = VARIANTS[name]
    profile = profile_fit if variant.train == "fit" else profile_loop
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        profile(variant, Path("logs"))
        store(Path("logs"), runs / f"{HOST}.xplane.pb.gz")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("variant", nargs="?", choices=VARIANTS, help="the one to record (default: all of them)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="where the runs go (default: here)")
    arguments = parser.parse_args()
    out: Path = arguments.out.resolve()
    if not arguments.variant:
        for name in VARIANTS:
            subprocess.run([sys.executable, __file__, name, "--out", str(out)], check=True)
        return
    runs = out / arguments.variant / "plugins" / "profile" / "run"
    shutil.rmtree(runs, ignore_errors=True)
    record(arguments.variant, runs)


if __name__ == "__main__":
    main()
