"""Records the runs beside it: a small transformer trained and evaluated with JAX on a GPU, three times each.

`python -m sample_logs.transformer_gpu.record` records every variant, in turn, each capture in a process of its own;
with `VARIANT NUMBER` it records one capture, into `VARIANT/VARIANT_run-NUMBER/plugins/profile/<stamp>/`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sample_logs.autoencoder_gpu.record import FILES_ONLY, NO_COMMAND_BUFFERS, record_variants

LAYERS, HEADS, WIDTH, HIDDEN = 2, 8, 512, 2048
SEQUENCE, BATCH_SIZE = 512, 16
LEARNING_RATE = 0.01
EVALUATE_EVERY = 2
WARM_UP_STEPS, PROFILED_STEPS = 12, 24


class Variant(NamedTuple):
    """What differs between the runs."""

    recomputes_activations: bool = False
    xla_flags: str = ""


VARIANTS = {
    "h100_store_activations": Variant(),
    "h100_recompute_activations": Variant(recomputes_activations=True),
    "h100_no_command_buffers": Variant(xla_flags=NO_COMMAND_BUFFERS),
}


def train(variant: Variant, logdir: Path) -> None:
    """Trains and evaluates, in turn, for the warm-up; then profiles the steps that follow."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    jax.config.update("jax_hlo_source_file_canonicalization_regex", FILES_ONLY)
    jax.config.update("jax_traceback_in_locations_limit", 1)

    def normalised(values: Any) -> Any:
        centred = values - values.mean(-1, keepdims=True)
        return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)

    def heads(values: Any) -> Any:
        return values.reshape(BATCH_SIZE, SEQUENCE, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

    def block(weights: dict[str, Any], values: Any) -> Any:
        with jax.named_scope("attention"):
            query, key, value = map(heads, jnp.split(normalised(values) @ weights["qkv"], 3, -1))
            attention = jax.nn.softmax(query @ key.transpose(0, 1, 3, 2) * (WIDTH // HEADS) ** -0.5, -1)
            joined = (attention @ value).transpose(0, 2, 1, 3).reshape(BATCH_SIZE, SEQUENCE, WIDTH)
            values = values + joined @ weights["out"]
        with jax.named_scope("mlp"):
            return values + jax.nn.gelu(normalised(values) @ weights["up"]) @ weights["down"]

    layer = jax.checkpoint(block) if variant.recomputes_activations else block

    def mean_squared_error(layers: list[dict[str, Any]], inputs: Any, targets: Any) -> Any:
        values = inputs
        for weights in layers:
            values = layer(weights, values)
        return jnp.mean((values.astype(jnp.float32) - targets) ** 2)

    @jax.jit
    def train_step(layers: Any, inputs: Any, targets: Any) -> tuple[Any, Any]:
        loss, gradients = jax.value_and_grad(mean_squared_error)(layers, inputs, targets)
        return jax.tree.map(lambda old, gradient: old - LEARNING_RATE * gradient, layers, gradients), loss

    @jax.jit
    def evaluate(layers: Any, inputs: Any, targets: Any) -> Any:
        return mean_squared_error(layers, inputs, targets)

    ends = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}
    keys = iter(jax.random.split(jax.random.key(7), LAYERS * len(ends) + 2))
    layers = [
        {name: (0.02 * jax.random.normal(next(keys), shape)).astype(jnp.bfloat16) for name, shape in ends.items()}
        for _ in range(LAYERS)
    ]
    inputs = jax.random.normal(next(keys), (BATCH_SIZE, SEQUENCE, WIDTH)).astype(jnp.bfloat16)
    targets = jax.random.normal(next(keys), (BATCH_SIZE, SEQUENCE, WIDTH))

    def step(number: int) -> None:
        nonlocal layers
        if number % EVALUATE_EVERY == EVALUATE_EVERY - 1:
            loss = evaluate(layers, inputs, targets)
        else:
            layers, loss = train_step(layers, inputs, targets)
        loss.block_until_ready()

    for number in range(WARM_UP_STEPS):
        step(number)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    jax.profiler.start_trace(str(logdir), profiler_options=options)
    for number in range(WARM_UP_STEPS, WARM_UP_STEPS + PROFILED_STEPS):
        with jax.profiler.StepTraceAnnotation("step", step_num=number):
            step(number)
    jax.profiler.stop_trace()


if __name__ == "__main__":
    record_variants(
        __spec__.name,
        Path(__file__).parent,
        {name: (variant.xla_flags, partial(train, variant)) for name, variant in VARIANTS.items()},
        __doc__,
    )
