"""Records the runs beside it: the denoising autoencoder trained with JAX on a GPU, before and after, three times each.

`python -m sample_logs.autoencoder_gpu.record` records every variant, in turn, each capture in a process of its own;
with `VARIANT NUMBER` it records one capture, into `VARIANT/VARIANT_run-NUMBER/plugins/profile/<stamp>/`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

PIXELS = 32
BATCH_SIZE = 128
WARM_UP_STEPS = 10
PROFILED_STEPS = 20
CAPTURES = 3
HOST = "localhost"
Train = Callable[[Path], None]
"""Trains and writes a profile into this logdir."""
LAYERS = ("encoder_outer", "encoder_inner", "decoder_inner", "decoder_outer", "image")
LEARNING_RATE, MOMENTUM = 0.01, 0.9
FILES_ONLY = r".*/"
"""What JAX leaves out of the names of source files: their folders."""
NO_COMMAND_BUFFERS = "--xla_gpu_enable_command_buffer="


class Variant(NamedTuple):
    """What differs between the runs."""

    filters: tuple[int, int]
    xla_flags: str = NO_COMMAND_BUFFERS


VARIANTS = {
    "h100_512_128": Variant((512, 128)),
    "h100_16_8": Variant((16, 8)),
    "h100_16_8_command_buffers": Variant((16, 8), ""),
}


def channels(filters: tuple[int, int]) -> list[tuple[int, int]]:
    """The channels that each layer takes and gives."""
    outer, inner = filters
    return [(3, outer), (outer, inner), (inner, inner), (inner, outer), (outer, 3)]


def train(filters: tuple[int, int], logdir: Path) -> None:
    """Trains for the warm-up, then profiles the steps that follow: noise on the host, copies, step, waiting."""
    import jax
    import jax.numpy as jnp
    import numpy as np
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

    def mean_squared_error(weights: dict[str, Any], noisy: Any, clean: Any) -> Any:
        return jnp.mean((model(weights, noisy) - clean) ** 2)

    @jax.jit
    def train_step(weights: Any, velocity: Any, noisy: Any, clean: Any) -> tuple[Any, Any, Any]:
        loss, gradients = jax.value_and_grad(mean_squared_error)(weights, noisy, clean)
        with jax.named_scope("momentum"):
            velocity = jax.tree.map(
                lambda old, gradient: MOMENTUM * old - LEARNING_RATE * gradient, velocity, gradients
            )
            weights = jax.tree.map(jnp.add, weights, velocity)
        return weights, velocity, loss

    weights = {
        name: 0.1 * jax.random.normal(key, (3, 3, *ends))
        for name, key, ends in zip(
            LAYERS, jax.random.split(jax.random.key(7), len(LAYERS)), channels(filters), strict=True
        )
    }
    velocity = jax.tree.map(jnp.zeros_like, weights)
    random = np.random.default_rng(7)
    images = random.random((BATCH_SIZE, PIXELS, PIXELS, 3), dtype=np.float32)

    def step() -> None:
        nonlocal weights, velocity
        with jax.profiler.TraceAnnotation("add_noise"):
            noisy = images + 0.1 * random.standard_normal(images.shape, dtype=np.float32)
        weights, velocity, loss = train_step(weights, velocity, jax.device_put(noisy), jax.device_put(images))
        loss.block_until_ready()

    for _ in range(WARM_UP_STEPS):
        step()
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    jax.profiler.start_trace(str(logdir), profiler_options=options)
    for number in range(WARM_UP_STEPS, WARM_UP_STEPS + PROFILED_STEPS):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            step()
    jax.profiler.stop_trace()


def record(name: str, xla_flags: str, train: Train, number: int, out: Path) -> None:
    """Records one capture in this process, in a temporary folder by relative paths, so that no path is recorded."""
    os.environ["XLA_FLAGS"] = xla_flags
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        train(Path("logs"))
        (recorded,) = Path("logs").glob("plugins/profile/*/*.xplane.pb")
        runs = out / name / f"{name}_run-{number}" / "plugins" / "profile"
        shutil.rmtree(runs, ignore_errors=True)
        kept = runs / recorded.parent.name / f"{HOST}.xplane.pb"
        kept.parent.mkdir(parents=True)
        shutil.copyfile(recorded, kept)
    print(f"{kept}: {kept.stat().st_size:,} bytes", flush=True)


def record_variants(module: str, folder: Path, variants: dict[str, tuple[str, Train]], description: str) -> None:
    """The command line of `module`, which records variants, each with XLA's flags and what to run, into `folder`."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("variant", nargs="?", choices=variants, help="the one to record (default: all of them)")
    parser.add_argument("number", nargs="?", type=int, default=1, help="the number of the capture")
    parser.add_argument("--out", type=Path, default=folder, help="where the runs go (default: beside the script)")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    if arguments.variant:
        record(arguments.variant, *variants[arguments.variant], arguments.number, out)
        return
    for number in range(1, CAPTURES + 1):
        for variant in variants:
            command = [sys.executable, "-m", module, variant, str(number), "--out", str(out)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    record_variants(
        __spec__.name,
        Path(__file__).parent,
        {name: (variant.xla_flags, partial(train, variant.filters)) for name, variant in VARIANTS.items()},
        __doc__,
    )
