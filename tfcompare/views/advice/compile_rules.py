"""Rules for functions that are compiled, or traced, again and again while the profile is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare.schema.hlo import COMPILING, TRACING
from tfcompare.units import share_of
from tfcompare.views.advice.facts import longest
from tfcompare.views.advice.model import SHARE, WORTH_IT, XLA_GUIDE, Figure, Found, code

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.views.advice.facts import Facts

FUNCTION_GUIDE = "https://www.tensorflow.org/guide/function"
MOST_SHAPES = 4
FEWEST_TRACINGS = 3
"""A function that creates variables is traced twice when it is first called."""


def _repeat(facts: Facts, phase: str) -> pd.DataFrame:
    """Functions traced again, or compiled several times, or for which the profile has other programs; those of the
    slowest host."""
    rows = facts.compilations[facts.compilations["phase"] == phase]
    is_traced_again = (phase == TRACING) & (rows["occurrences"] >= FEWEST_TRACINGS)
    rows = rows[is_traced_again | (phase == COMPILING) & ((rows["occurrences"] > 1) | (rows["programs"] > 1))]
    return rows if rows.empty else rows[rows["host"] == rows.groupby("host")["total_time_us"].sum().idxmax()]


def _again_us(facts: Facts, phase: str) -> float:
    """The time of all but the first time, which counts as the longest; for functions with other programs, of all."""
    rows = _repeat(facts, phase)
    first = rows["longest_us"].where(rows["programs"] <= rows["occurrences"], 0.0)
    return float((rows["total_time_us"] - first).sum())


def _share(facts: Facts, phase: str) -> float:
    """Of the capture, since a step with a compilation may be excluded from the steps; at most all of it."""
    return min(share_of(_again_us(facts, phase), facts.info.duration_ms * 1e3), 1.0)


def _count(name: str, phase: str) -> Figure:
    def take(facts: Facts) -> float:
        rows = facts.compilations
        here = rows[(rows["function"] == name) & (rows["phase"] == phase)]
        return float(here["occurrences"].max()) if len(here) else 0.0

    return Figure("Times compiled" if phase == COMPILING else "Times traced", "", take, name)


RECOMPILE_TIME = Figure("Compiling functions again", "µs", lambda f: f.per_step(_again_us(f, COMPILING)), summed=True)
RECOMPILE_SHARE = Figure("Share of the capture", SHARE, lambda f: _share(f, COMPILING))


def recompiling(facts: Facts) -> Found | None:
    """A function is compiled again and again, most often because the shapes of its arguments change."""
    if not RECOMPILE_SHARE.of(facts) >= WORTH_IT:
        return None
    row = longest(_repeat(facts, COMPILING), "total_time_us")
    count = _count(str(row["function"]), COMPILING)
    text = (
        f"{_function(row)} was compiled {_times(count, facts)} during the capture{_shapes(row)}. Compiling functions "
        f"again takes {RECOMPILE_TIME.text(facts)} {facts.each}, in which the program waits. If these are the first "
        "steps, record later ones. "
    )
    text += (
        "Pad batches and sequences to one shape, or to a few; keep changing values out of `static_argnums`; call "
        "`jax.jit` once and not in the loop. `jax.config.update('jax_explain_cache_misses', True)` tells what changed."
        if facts.is_jax
        else "Pad batches and sequences to one shape, or to a few: `batch(…, drop_remainder=True)`, tensors instead of "
        "Python numbers as arguments, and an `input_signature` for `tf.function`."
    )
    title = f"Compiling functions again takes {RECOMPILE_SHARE.text(facts)} of the capture"
    figures = (RECOMPILE_SHARE, RECOMPILE_TIME, count)
    return Found(title, text, figures, XLA_GUIDE, RECOMPILE_SHARE.of(facts))


def _function(row: pd.Series) -> str:
    return code(row["function"]) if row["function"] else "A function without a name"


def _shapes(row: pd.Series) -> str:
    if not row["shapes"]:
        return ""
    shapes = str(row["shapes"]).split("; ")
    more = " and more" if len(shapes) > MOST_SHAPES else ""
    return f"; its programs have arguments of different shapes: {', '.join(map(code, shapes[:MOST_SHAPES]))}{more}"


def _times(count: Figure, facts: Facts) -> str:
    return "once" if count.of(facts) == 1 else f"{count.text(facts)} times"


RETRACE_TIME = Figure("Tracing functions again", "µs", lambda f: f.per_step(_again_us(f, TRACING)), summed=True)
RETRACE_SHARE = Figure("Share of the capture", SHARE, lambda f: _share(f, TRACING))


def retracing(facts: Facts) -> Found | None:
    """TensorFlow traces a function again and again."""
    if facts.is_jax or not RETRACE_SHARE.of(facts) >= WORTH_IT:
        return None
    row = longest(_repeat(facts, TRACING), "total_time_us")
    count = _count(str(row["function"]), TRACING)
    text = (
        f"{_function(row)} was traced {_times(count, facts)} during the capture: each new shape and each new Python "
        f"value among its arguments makes another graph. Tracing again takes {RETRACE_TIME.text(facts)} {facts.each}. "
        "Pass tensors instead of Python numbers, set an `input_signature` or `reduce_retracing=True`, and call "
        "`tf.function` outside of loops."
    )
    title = f"Tracing functions again takes {RETRACE_SHARE.text(facts)} of the capture"
    return Found(title, text, (RETRACE_SHARE, RETRACE_TIME, count), FUNCTION_GUIDE, RETRACE_SHARE.of(facts))


RULES = (recompiling, retracing)
