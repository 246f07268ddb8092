"""The summary of one run that `show RUN` prints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfcompare import schema
from tfcompare.commands.colour import paint
from tfcompare.commands.diff_summary import advice_text, parts_table, sentence
from tfcompare.commands.text_table import (
    TextColumn,
    fitting,
    number_column,
    paragraph,
    render,
    scale,
    terminal_width,
    text_column,
)
from tfcompare.text import text_of
from tfcompare.units import format_bytes, format_percent, format_time_us

if TYPE_CHECKING:
    import pandas as pd

    from tfcompare.compare.captures import Captures
    from tfcompare.run import Run
    from tfcompare.tools.advice import Facts

TOP_OPS = 10


def run_summary(run: Run, host: str | None = None) -> str:
    """What was captured, the step time and its parts, slow steps, the top ops, peak memory, the wait for input, the top
    advice, and the tables that have rows; of one host or of all. Raises `Unknown` for an unknown host."""
    from tfcompare.tools.advice import facts_of

    facts = facts_of(run, host)
    sections = [
        _about(run, host),
        _step_parts(run, host, facts),
        _slow_steps(run, host),
        sentence(_input(run, facts)),
        _top_ops(run, host),
        _advice(run, facts),
        _tables(run, host),
    ]
    return "\n\n".join(filter(None, sections))


def _about(run: Run, host: str | None) -> str:
    from tfcompare.tools.environment import environment

    facts = [(fact.label, fact.values[0]) for fact in environment([run.info])]
    step_us = _step_time_us(run, host)
    if not math.isnan(step_us):
        facts.append(("Step time", format_time_us(step_us)))
    facts.append(("Peak memory", _peak_memory(run.table("memory_summary", host=host))))
    widest = max(len(label) for label, _ in facts)
    lines = [paragraph(text_of(f"{label:{widest}}  {value}"), terminal_width(), widest + 2) for label, value in facts]
    return "\n".join([paint(text_of(run.name), "bold"), *lines])


def _step_time_us(run: Run, host: str | None) -> float:
    """The mean step in microseconds; NaN without step markers."""
    from tfcompare.compare.captures import step_time_us

    return step_time_us(_captures(run, host))


def _captures(run: Run, host: str | None) -> Captures:
    """The run alone, without replicates."""
    from tfcompare.compare.captures import Replicates

    return Replicates({}, None).captures(run, host)


def _slow_steps(run: Run, host: str | None) -> str:
    from tfcompare.compare.slow_step_words import sentences

    return "\n".join(map(sentence, sentences(run, host, run.name)))


def _peak_memory(memories: pd.DataFrame) -> str:
    if memories.empty:
        return "unknown (the profile has no allocations)"
    largest = memories.iloc[int(memories["peak_bytes"].argmax())]
    more = f", the largest of {len(memories)} memories" if len(memories) > 1 else ""
    return f"{format_bytes(largest['peak_bytes'])} in {largest['memory_id']}{more}"


def _step_parts(run: Run, host: str | None, facts: Facts) -> str:
    from tfcompare.compare.attribution import part_means, with_other_hosts
    from tfcompare.compare.straggler import mean_step_us

    if facts.steps.empty or not facts.info.has_steps:
        return ""
    step_us = mean_step_us(run, host)
    return parts_table(with_other_hosts(part_means(facts.steps, facts.steps), (step_us, step_us)), ("baseline",))


def _input(run: Run, facts: Facts) -> str:
    from tfcompare.tools.input_bound import words

    return f"{run.name} {words(facts.wait)}"


def _top_ops(run: Run, host: str | None) -> str:
    from tfcompare.tools.op_stats import main_side, top_ops

    stats = run.in_steps("op_stats", host=host)
    ops = top_ops(stats, TOP_OPS)
    if ops.empty:
        return "The profile has no ops."
    per, divisor = ("/step", _captures(run, host).step_count) if run.info.has_steps else ("", 1)
    times = ops["self_time_us"] / divisor
    shown = scale("µs", times)
    columns = [
        text_column("op type", ops["op_type"], rank=1),
        text_column("op name", ops["op_name"]),
        number_column(f"self time ({shown.unit}{per})", times * shown.factor, shown.decimals),
        TextColumn("share", list(map(format_percent, ops["self_share"])), is_number=True),
    ]
    title = paint(f"Top ops by share of self time on the {main_side(stats).lower()}", "bold")
    return f"{title}\n{render(fitting(columns, terminal_width())[0], terminal_width())}"


def _advice(run: Run, facts: Facts) -> str:
    from tfcompare.tools.advice import advise_on

    if not facts.has_enough_steps:
        return "Too few included steps for advice on times. Profile more steps."
    return advice_text(advise_on(facts, facts).advice, run.name)


def _tables(run: Run, host: str | None) -> str:
    names = [name for name in schema.TABLES if len(run.table(name, host=host))]
    return paragraph(f"Tables (tfcompare show RUN TABLE): {', '.join(names)}", terminal_width())
