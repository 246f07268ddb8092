"""Rules for Python functions that TensorFlow calls as ops (`py_function`), in the model and in the input."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tfcompare.compare.tf_data.iterator_tree import transformation
from tfcompare.units import share_of
from tfcompare.views.advice.facts import longest
from tfcompare.views.advice.model import DATA_GUIDE, GUIDE, SHARE, WORTH_IT, Figure, Found, code

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.views.advice.facts import Facts

_PYTHON = r"(?:Eager)?PyFunc(?:Stateless)?"


def _python(facts: Facts) -> pd.DataFrame:
    return facts.ops[facts.ops["op_type"].str.fullmatch(_PYTHON)]


def _working(facts: Facts, *, of_input: bool) -> pd.DataFrame:
    """The Python functions that work in the input, or outside of it; without steps all of them."""
    python = _python(facts)
    if facts.host_steps is None:
        return python
    worked = [facts.host_steps.times_us([name], of_input=of_input).any() for name in python["op_name"]]
    return python[np.array(worked, np.bool_)]


def _calls(facts: Facts, *, of_input: bool) -> float:
    return facts.per_step(float(_working(facts, of_input=of_input)["occurrences"].sum()))


def _step_share(facts: Facts) -> float:
    """Of the step, as a median, without waiting for input; NaN without steps."""
    if facts.host_steps is None:
        return math.nan
    return facts.host_steps.median_share(_python(facts)["op_name"].tolist())


def _input_share(facts: Facts) -> float:
    """Of the step, as a median; without steps, the ops' self time as a share of the profile, at most the input's."""
    python = _python(facts)
    if facts.host_steps is not None:
        return facts.host_steps.median_share(python["op_name"].tolist(), of_input=True)
    return min(share_of(float(python["self_time_us"].sum()), facts.info.duration_ms * 1e3), facts.input_share)


CALLS = Figure("Calls of Python functions", "", partial(_calls, of_input=False), summed=True)
INPUT_CALLS = Figure("Calls of Python functions", "", partial(_calls, of_input=True), summed=True)
STEP_SHARE = Figure("Python functions, of the step time", SHARE, _step_share)
INPUT_SHARE = Figure("Waiting for Python functions of the input", SHARE, _input_share)


def python_op(facts: Facts) -> Found | None:
    """Python functions delay the step."""
    if not STEP_SHARE.of(facts) >= WORTH_IT:
        return None
    name = code(longest(_working(facts, of_input=False), "wall_time_us")["op_name"])
    text = (
        f"Ops that call Python, {name} the longest, take {STEP_SHARE.text(facts)} of the step (calls: "
        f"{CALLS.text(facts)} {facts.each}). Python runs on the host, one thread at a time, and XLA cannot compile it: "
        "write the function in TensorFlow ops, call it every few steps only, or move it into the input pipeline, "
        "which works ahead of the step."
    )
    title = f"Python functions take {STEP_SHARE.text(facts)} of the step"
    return Found(title, text, (STEP_SHARE, CALLS), GUIDE, STEP_SHARE.of(facts))


def python_input(facts: Facts) -> Found | None:
    """Python functions produce the input."""
    if not facts.waits_for_input or not INPUT_SHARE.of(facts) >= WORTH_IT:
        return None
    generator = _waits_for_generator(facts)
    how = (
        "Write the output of `Dataset.from_generator` to TFRecord files once and read those"
        if generator
        else "Write the function in TensorFlow ops, or do it once and store the result"
    )
    name = code(longest(_working(facts, of_input=True), "wall_time_us")["op_name"])
    text = (
        f"Python ({name}) produces the input; the program waits for it {INPUT_SHARE.text(facts)} of the time (calls: "
        f"{INPUT_CALLS.text(facts)} {facts.each}). {how}. Otherwise let one call produce a whole batch, or call it in "
        "parallel (`num_parallel_calls`): that helps where the function waits or computes in NumPy, not where Python "
        "itself computes, as only one thread runs Python at a time."
    )
    what = "`from_generator`" if generator else "`py_function`"
    figures = (INPUT_SHARE, INPUT_CALLS)
    return Found(f"{what} produces the input", text, figures, DATA_GUIDE, INPUT_SHARE.of(facts))


def _waits_for_generator(facts: Facts) -> bool:
    """Whether a generator is the bottleneck, or steps wait for one long enough to be worth a change, and for at least
    half of what they wait for Python."""
    if facts.pipeline is None or facts.bottleneck is None:
        return False
    rows = facts.pipeline.iterators
    names = rows.loc[rows["iterator"].map(transformation) == "Generator", "long_name"]
    is_bottleneck = transformation(str(facts.bottleneck["iterator"])) == "Generator"
    return is_bottleneck or facts.iterator_us(set(names)) >= max(WORTH_IT, INPUT_SHARE.of(facts) / 2) * facts.step_us


RULES = (python_op, python_input)
