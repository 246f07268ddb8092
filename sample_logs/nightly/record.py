"""Records `night_NN` beside it: one JAX program on a CPU, recorded twenty times, as a nightly job would. From the
thirteenth night on its network has two layers more.

`record.py` records all nights, `record.py NIGHT` that one, each in a process of its own, into
`night_NN/plugins/profile/`. See the README.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tfcompare.sources.machine_load import load_average, write_load

NIGHTS = 20
FIRST_DEEPER_NIGHT = 13
LAYERS = ("first", "second", "third")
MORE_LAYERS = ("inserted", "inserted_too")
WARM_UP_STEPS, PROFILED_STEPS = 5, 12
EXAMPLES, WIDTH = 128, 512
HOST = "localhost"
FILES_ONLY = r".*/"
"""What JAX leaves out of the names of source files: their folders."""


def profile(night: int, logdir: Path) -> None:
    """Runs the warm-up, then profiles the steps that follow."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_hlo_source_file_canonicalization_regex", FILES_ONLY)
    jax.config.update("jax_traceback_in_locations_limit", 1)
    layers = LAYERS if night < FIRST_DEEPER_NIGHT else (*LAYERS[:-1], *MORE_LAYERS, LAYERS[-1])
    batch = jnp.linspace(0, 1, EXAMPLES * WIDTH).reshape(EXAMPLES, WIDTH)

    @jax.jit
    def train_step(batch: jax.Array, weights: dict[str, jax.Array]) -> dict[str, jax.Array]:
        def loss(weights: dict[str, jax.Array]) -> jax.Array:
            state = batch
            for layer in layers:
                with jax.named_scope(layer):
                    state = jax.nn.relu(state @ weights[layer])
            return jnp.mean((state - batch) ** 2)

        return jax.tree.map(jnp.subtract, weights, jax.grad(loss)(weights))

    def train(steps: range) -> None:
        nonlocal weights
        for number in steps:
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                weights = jax.block_until_ready(train_step(batch, weights))

    weights = {layer: jnp.full((WIDTH, WIDTH), 1 / WIDTH) for layer in layers}
    train(range(WARM_UP_STEPS))
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    jax.profiler.start_trace(str(logdir), profiler_options=options)
    train(range(WARM_UP_STEPS, WARM_UP_STEPS + PROFILED_STEPS))
    jax.profiler.stop_trace()


def record(night: int, out: Path) -> None:
    """Records one night in this process, in a temporary folder by relative paths, so that no path is recorded."""
    runs = out / f"night_{night:02}" / "plugins" / "profile"
    shutil.rmtree(runs, ignore_errors=True)
    load_before = load_average()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        profile(night, Path("logs"))
        (source,) = Path("logs").glob("plugins/profile/*/*.xplane.pb")
        recorded = source.read_bytes()
    kept = runs / source.parent.name / f"{HOST}.xplane.pb.gz"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(gzip.compress(recorded, 9, mtime=0))
    write_load(kept.parent, load_before)
    sys.stdout.write(f"{kept}: {kept.stat().st_size:,} bytes\n")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("night", nargs="?", type=int, help=f"the one to record, 1 to {NIGHTS} (default: all)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="where the runs go (default: here)")
    arguments = parser.parse_args()
    out: Path = arguments.out.resolve()
    if arguments.night:
        record(arguments.night, out)
        return
    for night in range(1, NIGHTS + 1):
        subprocess.run([sys.executable, __file__, str(night), "--out", str(out)], check=True)


if __name__ == "__main__":
    main()
