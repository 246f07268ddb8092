"""Rules for what the host does beside the input: Python between ops and steps, eager ops, compiling, threads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfcompare.frames.ops.op_names import EAGER_EXECUTION
from tfcompare.schema import HOST, UNEXPLAINED_PARTS
from tfcompare.text import some_of
from tfcompare.units import share_of
from tfcompare.views.advice.compile_rules import RECOMPILE_SHARE
from tfcompare.views.advice.facts import CORES, longest, with_gap
from tfcompare.views.advice.model import GPU_GUIDE, GUIDE, SHARE, WORTH_IT, XLA_GUIDE, Figure, Found, code, say

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.views.advice.facts import Facts

UNEXPLAINED_SHARE = 0.1
"""Of the step: less of it that nothing explains is what measuring costs, and gaps between ops."""
HOST_OPS_SHARE = 0.1
"""Of the step, while no device is busy: less is the odd op that only runs on the host."""
EAGER_SHARE = 0.1
"""Of the step: below that, eager ops are a metric or a summary and not the model."""
BETWEEN_STEPS_SHARE = 0.1
"""Of the window: less of it between steps is what the loop itself takes."""
MOST_OF_BETWEEN = 0.5
"""Of the time between steps: if calls to the input pipeline, or an annotation, take more of it, it is theirs."""
_MOST_NAMED = 2
"""Annotations that get input, in a sentence."""
CROWDED = 1.0
"""Threads within ops ÷ cores: from there on, on average over the profile, each core has an op, and others wait."""

OTHER_TIME = Figure("Unexplained per step", "µs", lambda f: sum(map(f.part_us, UNEXPLAINED_PARTS)))
OTHER_SHARE = Figure("Share of the step time", SHARE, lambda f: sum(map(f.part_share, UNEXPLAINED_PARTS)))


def other_time(facts: Facts) -> Found | None:
    """A large part of the step in which nothing that was recorded runs: most often Python."""
    if not OTHER_SHARE.of(facts) >= UNEXPLAINED_SHARE:
        return None
    found = f"For {OTHER_TIME.text(facts)} of each step no recorded event explains what happens: usually Python code."
    how = (
        "Let steps be dispatched ahead: no `block_until_ready()`, `float(loss)` or logging in every step, the whole "
        "step in one `jax.jit`, several steps in one `jax.lax.scan`."
        if facts.is_jax
        else "Call fewer callbacks, take metrics and losses to Python every few steps only (`.numpy()` and "
        "`float(loss)` wait for the device), put the whole step into one `tf.function`, or let Keras run several steps "
        "at a time: `model.compile(…, steps_per_execution=…)`."
    )
    see = "" if facts.is_jax else " `ProfilerOptions(python_tracer_level=1)` records what Python does then."
    title = f"{OTHER_SHARE.text(facts)} of the step is unexplained"
    found, figures = with_gap(found, (OTHER_SHARE, OTHER_TIME), facts)
    return Found(title, f"{found} {how}{see}", figures, GUIDE, OTHER_SHARE.of(facts))


COMPILE_TIME = Figure("Compilation per step", "µs", lambda f: f.part_us("compile_us"))
COMPILE_SHARE = Figure("Share of the step time", SHARE, lambda f: f.part_share("compile_us"))


def compiling(facts: Facts) -> Found | None:
    """XLA compiles within the steps, and no function is known to be compiled again (`recompiling`)."""
    if not COMPILE_SHARE.of(facts) >= WORTH_IT or RECOMPILE_SHARE.of(facts) >= WORTH_IT:
        return None
    found = f"XLA compiles for {COMPILE_TIME.text(facts)} in each step. Unless these are the first steps,"
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
    title = f"The device waits for host ops {HOST_SHARE.text(facts)} of the step"
    text, figures = with_gap(text, (HOST_SHARE, HOST_TIME), facts)
    return Found(title, text, figures, GPU_GUIDE, HOST_SHARE.of(facts))


BETWEEN_TIME = Figure("Between steps, per step", "µs", lambda f: f.window.between_us if f.window else math.nan)
BETWEEN_SHARE = Figure("Share of the window", SHARE, lambda f: f.window.share if f.window else math.nan)


def between_steps(facts: Facts) -> Found | None:
    """Much of the time from the first step to the last is in no step."""
    if not BETWEEN_SHARE.of(facts) >= BETWEEN_STEPS_SHARE or input_between_steps(facts) is not None:
        return None
    text = (
        f"Between steps lie {BETWEEN_TIME.text(facts)} per step, {BETWEEN_SHARE.text(facts)} of the time from the "
        f"first step to the last. No step time contains it.{_most_between(facts)} Look for what the loop does "
        "there: callbacks, logging, checkpoints, evaluation, or reading the input before the step begins."
    )
    title = f"{BETWEEN_SHARE.text(facts)} of the time is between steps"
    return Found(title, text, (BETWEEN_SHARE, BETWEEN_TIME), GUIDE, BETWEEN_SHARE.of(facts))


def _most_between(facts: Facts) -> str:
    """The annotation or Python function that has most of the time between steps, in a sentence; empty for none."""
    if facts.host_steps is None or facts.host_steps.between.empty:
        return ""
    times = facts.host_steps.between.groupby("name")["wall_time_us"].sum()
    if not times.max() >= MOST_OF_BETWEEN * BETWEEN_TIME.of(facts):
        return ""
    return f" {code(times.idxmax())} takes {say(times.max(), 'µs')} of it."


def _input_between(facts: Facts) -> tuple[float, str]:
    """What gets input outside of steps: its time per step, NaN if unknown, and what it is. The longer of the calls to
    the input pipeline and of the program's annotations and functions, since one may contain the other."""
    calls_us, of_program_us, names = math.nan, math.nan, ""
    if facts.pipeline is not None and facts.has_parts:
        calls_us = facts.per_step(facts.pipeline.calls * facts.pipeline.mean_us) - facts.part_us("input_us")
    if facts.host_steps is not None:
        times = facts.host_steps.getting_input_between
        of_program_us, names = float(times.sum(min_count=1)), some_of(map(code, times.index), _MOST_NAMED)
    if of_program_us > 0 and not calls_us > of_program_us:
        return of_program_us, f"calls of {names}"
    return max(calls_us, 0.0), "calls to the input pipeline"


INPUT_BETWEEN = Figure("Getting input outside of steps, per step", "µs", lambda f: _input_between(f)[0])


def input_between_steps(facts: Facts) -> Found | None:
    """The input is read between the steps, so that no step time has it."""
    if not BETWEEN_SHARE.of(facts) >= BETWEEN_STEPS_SHARE:
        return None
    if not INPUT_BETWEEN.of(facts) >= MOST_OF_BETWEEN * BETWEEN_TIME.of(facts):
        return None
    text = (
        f"Between steps lie {BETWEEN_TIME.text(facts)} per step, {BETWEEN_SHARE.text(facts)} of the time from the "
        f"first step to the last, and {_input_between(facts)[1]} outside of steps take {INPUT_BETWEEN.text(facts)} "
        "per step. No step time contains them, so no comparison does: `for step, batch in enumerate(dataset)` reads "
        "the batch before the step begins. Take it inside: `batches = iter(dataset)`, and "
        "`train_step(next(batches))` within the step's marker. Then the input pipeline can be examined."
    )
    title = f"The input is read between the steps, {BETWEEN_SHARE.text(facts)} of the time"
    return Found(title, text, (BETWEEN_SHARE, BETWEEN_TIME, INPUT_BETWEEN), GUIDE, BETWEEN_SHARE.of(facts))


def _eager(facts: Facts) -> pd.DataFrame:
    here = facts.ops[facts.ops["host_or_device"] == HOST]
    return here[here["is_eager"].astype(bool)]


def _eager_calls(facts: Facts) -> float:
    """How many ops Python called: eager executions, and in profiles without any, ops that ran eagerly; NaN without host
    ops."""
    if not (facts.ops["host_or_device"] == HOST).any():
        return math.nan
    eager = _eager(facts)
    executions = eager[eager["op_name"].str.startswith(EAGER_EXECUTION)]
    return facts.per_step(float((eager if executions.empty else executions)["occurrences"].sum()))


EAGER_OPS = Figure("Eager ops on the host", "", _eager_calls, summed=True)
EAGER_OF_STEP = Figure("Eager ops, of the step", SHARE, lambda f: f.eager_share)


def eager(facts: Facts) -> Found | None:
    """Ops that Python calls one by one. JAX has no such ops, though its profiles may flag some."""
    if facts.is_jax or not EAGER_OF_STEP.of(facts) >= EAGER_SHARE:
        return None
    name = code(longest(_eager(facts))["op_name"])
    text = (
        f"Python calls {EAGER_OPS.text(facts)} ops {facts.each} one by one, {name} the longest in total. "
        "Put the code around them into a `tf.function`; in Keras, compile without "
        "`run_eagerly=True`, and check that `tf.config.run_functions_eagerly(True)` was not left in."
    )
    title = f"Eager ops take {EAGER_OF_STEP.text(facts)} of the {'step' if facts.info.has_steps else 'profile'}"
    return Found(title, text, (EAGER_OF_STEP, EAGER_OPS), GUIDE, EAGER_OF_STEP.of(facts))


BUSY_THREADS = Figure("Threads within ops, on average", "", lambda f: f.busy_threads)


def threads(facts: Facts) -> Found | None:
    """As many threads are within ops as the host has cores, or more, so that they take turns."""
    load = share_of(BUSY_THREADS.of(facts), CORES.of(facts))
    if facts.is_jax or not load >= CROWDED:
        return None
    text = (
        f"On average {BUSY_THREADS.text(facts)} threads are within an op, on {CORES.text(facts)} cores: they take "
        "turns, and every op takes longer. Try fewer: `tf.config.threading.set_inter_op_parallelism_threads(…)` and "
        "`set_intra_op_parallelism_threads(…)` before the first op, and for the input "
        "`options.threading.private_threadpool_size`. Or give the program more cores."
    )
    waiting = ("host_compute_us", "kernel_launch_us", "input_us")
    of_host = sum(facts.part_share(part) for part in waiting) if facts.has_parts else 1.0
    saves = (1 - 1 / load) * of_host
    return Found("All host cores are busy", text, (BUSY_THREADS, CORES), GPU_GUIDE, saves)


RULES = (other_time, input_between_steps, between_steps, compiling, host_ops, eager, threads)
