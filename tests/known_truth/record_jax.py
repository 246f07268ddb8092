"""Records the variants `jax_…` beside it, JAX programs on CPU: one that blocks in each step, or behind the loop, one
whose activations XLA fuses, or does not, one whose every second (fifth) step is of another kind, and one that trains
three layers, as it is and with one change each.

`record_jax.py` records all, `record_jax.py VARIANT` that one, into `VARIANT/plugins/profile/run/`. What they have in
common with the other variants is in the README.
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
from pathlib import Path
from typing import Any

from tfcompare.sources.machine_load import load_average, write_load

WARM_UP_STEPS = 3
PROFILED_STEPS = 20
MATRIX_SIDE = 512
MULTIPLICATIONS = 4
HOST = "localhost"
BLOCKS_IN_STEP = {
    "jax_blocks_in_step": True,
    "jax_blocks_behind_loop": False,
    "jax_fused": True,
    "jax_unfused": True,
} | {"jax_every_second_evaluates": True, "jax_every_fifth_evaluates": True}
LAYERS = {
    "jax_layers": (("first", "second", "third"), 64, "float32"),
    "jax_layers_batch_128": (("first", "second", "third"), 128, "float32"),
    "jax_layers_bfloat16": (("first", "second", "third"), 64, "bfloat16"),
    "jax_layers_inserted": (("first", "second", "inserted", "third"), 64, "float32"),
}
"""Of the variants that train layers: their names, the examples of a batch, and the type of weights and activations."""
BLOCKS_IN_STEP |= dict.fromkeys(LAYERS, True)
FLAGS = {"jax_unfused": "--xla_disable_hlo_passes=fusion"}
"""`XLA_FLAGS` of variants."""
EVALUATES = {"jax_every_second_evaluates": 2, "jax_every_fifth_evaluates": 5}
"""Every how many steps another, shorter program runs."""
ACTIVATIONS = ("jax_fused", "jax_unfused")
"""Those that multiply once and then apply an activation of several elementwise ops."""
FILES_ONLY = r".*/"
"""What JAX leaves out of the names of source files: their folders."""


def profile(variant: str, logdir: Path) -> None:
    """Runs the warm-up, then profiles the steps that follow."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_hlo_source_file_canonicalization_regex", FILES_ONLY)
    jax.config.update("jax_traceback_in_locations_limit", 1)

    def multiply(weights: jax.Array, state: jax.Array) -> jax.Array:
        for _ in range(MULTIPLICATIONS):
            state = jnp.tanh(state @ weights)
        return state

    def activate(weights: jax.Array, state: jax.Array) -> jax.Array:
        with jax.named_scope("layer"):
            state = state @ weights
            with jax.named_scope("activation"):
                return 0.5 * state * (1 + jnp.tanh(0.8 * (state + 0.04 * state**3)))

    @jax.jit
    def evaluate(weights: jax.Array, state: jax.Array) -> jax.Array:
        return jnp.tanh(state @ weights)

    def train_step(batch: jax.Array, weights: dict[str, jax.Array]) -> dict[str, jax.Array]:
        def loss(weights: dict[str, jax.Array]) -> jax.Array:
            state = batch
            for layer in LAYERS[variant][0]:
                with jax.named_scope(layer):
                    state = jax.nn.relu(state @ weights[layer])
            return jnp.mean((state - batch) ** 2)

        return jax.tree.map(jnp.subtract, weights, jax.grad(loss)(weights))

    every = EVALUATES.get(variant, 0)
    step = jax.jit(train_step if variant in LAYERS else activate if variant in ACTIVATIONS else multiply)

    def run_steps(state: Any, steps: range) -> Any:
        for number in steps:
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                is_evaluation = every and number % every == every - 1
                state = (evaluate if is_evaluation else step)(weights, state)
                if BLOCKS_IN_STEP[variant]:
                    jax.block_until_ready(state)
        return jax.block_until_ready(state)

    weights = jnp.full((MATRIX_SIDE, MATRIX_SIDE), 1 / MATRIX_SIDE)
    state = jnp.ones((MATRIX_SIDE, MATRIX_SIDE))
    if variant in LAYERS:
        layers, examples, dtype = LAYERS[variant]
        weights = jnp.linspace(0, 1, examples * MATRIX_SIDE, dtype=dtype).reshape(examples, MATRIX_SIDE)
        state = {layer: jnp.full((MATRIX_SIDE, MATRIX_SIDE), 1 / MATRIX_SIDE, dtype) for layer in layers}
    state = run_steps(state, range(WARM_UP_STEPS))
    if every:
        evaluate(weights, state).block_until_ready()
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    jax.profiler.start_trace(str(logdir), profiler_options=options)
    run_steps(state, range(WARM_UP_STEPS, WARM_UP_STEPS + PROFILED_STEPS))
    jax.profiler.stop_trace()


def record(variant: str, out: Path) -> None:
    """Records one variant in this process, in a temporary folder by relative paths, so that no path is recorded."""
    runs = out / variant / "plugins" / "profile" / "run"
    shutil.rmtree(runs, ignore_errors=True)
    load_before = load_average()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        profile(variant, Path("logs"))
        (source,) = Path("logs").glob("plugins/profile/*/*.xplane.pb")
        recorded = source.read_bytes()
    kept = runs / f"{HOST}.xplane.pb.gz"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(gzip.compress(recorded, 9, mtime=0))
    write_load(kept.parent, load_before)
    sys.stdout.write(f"{kept}: {kept.stat().st_size:,} bytes\n")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("variant", nargs="?", choices=BLOCKS_IN_STEP, help="the one to record (default: all)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="where the runs go (default: here)")
    arguments = parser.parse_args()
    out: Path = arguments.out.resolve()
    if arguments.variant:
        record(arguments.variant, out)
        return
    for variant in BLOCKS_IN_STEP:
        flags = {"XLA_FLAGS": FLAGS.get(variant, "")}
        subprocess.run([sys.executable, __file__, variant, "--out", str(out)], check=True, env=os.environ | flags)


if __name__ == "__main__":
    main()
