"""XLA: the compiled program that took the most time, its instructions, roofline and memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfcompare import schema
from tfcompare.charts import xla, xla_memory
from tfcompare.charts.pair import Pair
from tfcompare.tools import xla as tools
from tfcompare.tools import xla_memory as memory_tools
from tfcompare.tools import xla_tree
from tfcompare.views.blocks import Block, Cards, Text
from tfcompare.views.view import CHANGE, SIDES, Make, View, charts_of, table_of, without_rows

MAIN_MEMORY = 0


def blocks(pair: Pair, options: Any) -> Iterator[Block]:
    """The time per execution in a sentence and as figures, where it goes, and every instruction."""
    found = pair.program
    if found is None:
        return
    name, rows = found
    figures = tools.figures(rows)
    yield Text(headline(pair, name, rows))
    yield Cards([one.alone() for one in figures] if pair.is_single else figures, pair.headings)
    yield from charts_of(pair, CHARTS, options)
    names = ["hlo_op", "category", *(f"execution_time_us_{role}" for role in CHANGE)]
    names += [f"{name}_{role}" for name in ("flops_per_s", "bound_by") for role in SIDES]
    yield from table_of(pair, schema.HLO_OPS, f"Instructions of {name}", rows, names)


def headline(pair: Pair, name: str, rows: Any) -> str:
    """The time per execution of a program with these instructions, in Markdown."""
    if pair.is_single:
        return tools.sentence_alone(rows, name)
    if pair.is_identical:
        return "Both runs are the same capture: no program differs."
    return tools.sentence(rows, name, pair.called)


def _time(pair: Pair, _options: Any = None) -> Any:
    found = pair.program
    if found is None:
        return None
    name, rows = found
    return xla.time_icicle(xla_tree.time_tree(rows, name, "category"), by="category", alone=pair.is_single)


def _roofline(pair: Pair, _options: Any = None) -> Any:
    found, shown = pair.program, [side for side, _ in pair.shown]
    if found is None or not xla.has_points(found[1], len(shown)):
        return None
    return xla.roofline(found[1], shown)


def _memory(pair: Pair, _options: Any = None) -> Any:
    found = pair.program
    if found is None:
        return None
    every = zip(pair.shown, pair.tables("hlo_memory"), memory_tools.program_names(found[1]), strict=False)
    lines = [(side, memory_tools.over_program_order(table, of, MAIN_MEMORY)) for (side, _), table, of in every]
    if all(frame.empty or frame["positions"].iloc[0] < 2 for _, frame in lines):
        return None
    return xla_memory.memory_over_program_order(lines, "Device memory")


CHARTS: dict[str, Make] = {"xla_time": _time, "roofline": _roofline, "xla_memory": _memory}
VIEW = View(
    "xla", "XLA", blocks, CHARTS,
    without_rows("No compiled XLA programs and no compilations were captured.", "hlo_ops", "compilations"),
)  # fmt: skip
