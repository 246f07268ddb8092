"""Rules for what the host does beside the input: Python between ops, eager ops, compiling, threads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfcompare.advice.facts import longest
from tfcompare.advice.input_rules import cores_of
from tfcompare.advice.model import GPU_GUIDE, GUIDE, SHARE, WORTH_IT, XLA_GUIDE, Figure, Found, code, ratio
from tfcompare.schema import HOST

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.advice.facts import Facts

UNEXPLAINED_SHARE = 0.1
"""Of the step: less of it that nothing explains is what measuring costs, and gaps between ops."""
HOST_OPS_SHARE = 0.1
"""Of the step, while no device is busy: less is the odd op that only runs on the host."""
EAGER_SHARE = 0.1
"""Of the host's ops: below that, eager ops are a metric or a summary and not the model."""
CROWDED = 1.0
"""Threads within ops ÷ cores: from there on, on average over the profile, each core has an op, and others wait."""

OTHER_TIME = Figure("Unexplained per step", "µs", lambda f: f.part_us("other_us"))
OTHER_SHARE = Figure("Share of the step time", SHARE, lambda f: f.part_share("other_us"))


def other_time(facts: Facts) -> Found | None:
    """A large part of the step in which nothing that was recorded runs: most often Python."""
    if not OTHER_SHARE.of(facts) >= UNEXPLAINED_SHARE:
        return None
    found = (
        f"In {OTHER_TIME.text(facts)} of each step nothing runs that the profile knows of: most often that is Python."
    )
    how = (
        "Let steps be dispatched ahead: no `block_until_ready()`, `float(loss)` or logging in every step, the whole "
        "step in one `jax.jit`, several steps in one `jax.lax.scan`."
        if facts.is_jax
        else "Call fewer callbacks, take metrics and losses to Python every few steps only (`.numpy()` and "
        "`float(loss)` wait for the device), put the whole step into one `tf.function`, or let Keras run several steps "
        "at a time: `model.compile(…, steps_per_execution=…)`."
    )
    see = "" if facts.is_jax else " `ProfilerOptions(python_tracer_level=1)` records what Python does then."
    title = f"Nothing explains {OTHER_SHARE.text(facts)} of the step"
    return Found(title, f"{found} {how}{see}", (OTHER_SHARE, OTHER_TIME), GUIDE, OTHER_SHARE.of(facts))


COMPILE_TIME = Figure("Compilation per step", "µs", lambda f: f.part_us("compile_us"))
COMPILE_SHARE = Figure("Share of the step time", SHARE, lambda f: f.part_share("compile_us"))


def compiling(facts: Facts) -> Found | None:
    """XLA compiles within the steps: shapes change, or the first steps were recorded."""
    if not COMPILE_SHARE.of(facts) >= WORTH_IT:
        return None
    found = f"XLA compiles for {COMPILE_TIME.text(facts)} in each step. Where these are not the program's first steps,"
    how = (
        "it does so because shapes or static arguments change: pad to one shape, and keep changing values out of "
        "`static_argnums`; `jax.config.update('jax_log_compiles', True)` names the function."
        if facts.is_jax
        else "it does so because shapes or Python arguments change: `batch(…, drop_remainder=True)`, tensors instead "
        "of Python numbers as arguments, and an `input_signature` for `tf.function`."
    )
    title = f"Compiling takes {COMPILE_SHARE.text(facts)} of the step"
    return Found(title, f"{found} {how}", (COMPILE_SHARE, COMPILE_TIME), XLA_GUIDE, COMPILE_SHARE.of(facts))


HOST_TIME = Figure("Host compute while no device is busy, per step", "µs", lambda f: f.part_us("host_compute_us"))
HOST_SHARE = Figure("Share of the step time", SHARE, lambda f: f.part_share("host_compute_us"))


def host_ops(facts: Facts) -> Found | None:
    """The devices wait while the host computes."""
    if not facts.has_device or not HOST_SHARE.of(facts) >= HOST_OPS_SHARE:
        return None
    text = (
        f"The host computes for {HOST_TIME.text(facts)} of each step while no device is busy. Find the host's longest "
        "ops that launch nothing (page Op stats) and move them to the device or into the input pipeline."
    )
    title = f"The device waits for the host's ops {HOST_SHARE.text(facts)} of the step"
    return Found(title, text, (HOST_SHARE, HOST_TIME), GPU_GUIDE, HOST_SHARE.of(facts))


def _eager(facts: Facts) -> pd.DataFrame:
    here = facts.ops[facts.ops["host_or_device"] == HOST]
    return here[here["is_eager"].astype(bool)]


def _eager_sum(facts: Facts, column: str) -> float:
    """NaN where the profile has no ops on the host."""
    return float(_eager(facts)[column].sum()) if (facts.ops["host_or_device"] == HOST).any() else math.nan


EAGER_OPS = Figure("Eager ops on the host", "", lambda f: f.per_step(_eager_sum(f, "occurrences")), summed=True)
EAGER_TIME = Figure("Self time of eager ops", "µs", lambda f: f.per_step(_eager_sum(f, "self_time_us")), summed=True)
EAGER_OF_OPS = Figure(
    "Share of the host's op time", SHARE, lambda f: ratio(_eager_sum(f, "self_time_us"), f.side_us(HOST))
)


def eager(facts: Facts) -> Found | None:
    """Ops that Python calls one by one. JAX has no such ops, though its profiles may flag some."""
    if facts.is_jax or not EAGER_OF_OPS.of(facts) >= EAGER_SHARE:
        return None
    name = code(longest(_eager(facts))["op_name"])
    text = (
        f"Python calls {EAGER_OPS.text(facts)} ops {facts.each} one by one, {EAGER_TIME.text(facts)} of self time, "
        f"{name} the longest. Put the code around them into a `tf.function`; in Keras, compile without "
        "`run_eagerly=True`, and check that `tf.config.run_functions_eagerly(True)` was not left in."
    )
    title = f"Eager ops take {EAGER_OF_OPS.text(facts)} of the host's op time"
    return Found(title, text, (EAGER_OF_OPS, EAGER_OPS, EAGER_TIME), GUIDE, _part_of_host(facts))


def _part_of_host(facts: Facts) -> float:
    if not facts.has_parts:
        return EAGER_OF_OPS.of(facts)
    waits = facts.part_share("host_compute_us") + facts.part_share("kernel_launch_us")
    return EAGER_OF_OPS.of(facts) * waits


BUSY_THREADS = Figure("Threads within ops, on average", "", lambda f: f.busy_threads)
CORES = Figure("Cores that tf.data counts", "", cores_of)


def threads(facts: Facts) -> Found | None:
    """As many threads are within ops as the host has cores, or more, so that they take turns."""
    load = ratio(BUSY_THREADS.of(facts), CORES.of(facts))
    if facts.is_jax or not load >= CROWDED:
        return None
    text = (
        f"On average {BUSY_THREADS.text(facts)} threads are within an op, on {CORES.text(facts)} cores: they take "
        "turns, and every op takes longer. Try fewer: `tf.config.threading.set_inter_op_parallelism_threads(…)` and "
        "`set_intra_op_parallelism_threads(…)` before the first op, and for the input "
        "`options.threading.private_threadpool_size`. Or give the program more cores."
    )
    saves = 0.0 if facts.has_device else (1 - 1 / load) * facts.compute_share
    return Found("The host's cores are all taken", text, (BUSY_THREADS, CORES), GPU_GUIDE, saves)


RULES = (other_time, compiling, host_ops, eager, threads)
