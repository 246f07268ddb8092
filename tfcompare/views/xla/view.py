"""The XLA view: programs, their instructions, and what compiling took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from tfcompare import schema
from tfcompare.compare import executions
from tfcompare.compare.diff import SideRows, change, diff_table
from tfcompare.compare.pair import Pair
from tfcompare.errors import TfcompareError
from tfcompare.schema import SIDES, SPARSE_CORE
from tfcompare.schema.hlo import COMPILING, TRACING
from tfcompare.text import INDENT, as_code, as_markdown
from tfcompare.units import MISSING, format_count, format_time_us, format_value
from tfcompare.views.advice.model import code
from tfcompare.views.blocks import MORE, Block, Chart, Choose, Facts, FlameGraph, Opens, Section, Table, Text, later
from tfcompare.views.columns import Shown
from tfcompare.views.ops.figures import with_words
from tfcompare.views.ops.shapes import instructions_with_shapes, shape_column
from tfcompare.views.ops.work_words import TERMS, term_columns
from tfcompare.views.options import option
from tfcompare.views.pair_words import DIFFERENT_PROGRAMS, why_not_compared
from tfcompare.views.view import CHANGE, Make, View, by_role, cached_per_pair, cards, largest_first, without_rows
from tfcompare.views.xla import charts, regrouped
from tfcompare.views.xla import compiler as xla_compiler
from tfcompare.views.xla import figures as xla
from tfcompare.views.xla import instruction as xla_instruction
from tfcompare.views.xla import memory as xla_memory
from tfcompare.views.xla import program as xla_program
from tfcompare.views.xla.figures import TIME, By

if TYPE_CHECKING:
    from tfcompare.run import Run

GROUPINGS: dict[By, str] = {"scope": "name scope", "source": "source line", "category": "category"}
HOW_TO_COMPILE = "JAX compiles every `jit`; TensorFlow compiles a `tf.function` with `jit_compile=True`."
KINDS_HELP = (
    "Instructions of the program that ran, by kind, with their time per execution. An instruction may be of several "
    "kinds. "
) + " ".join(f"{kind}: {meaning}." for kind, meaning in xla_compiler.MEANINGS.items())
COMPILATION_HELP = (
    "What was traced, lowered and compiled while the profile was recorded, before the steps or in them. A function "
    "that is compiled again and again usually gets arguments of changing shapes."
)
PROGRAM_HELP = "The longest comes first. Programs are paired by name, then by contents."
FILTER_HELP = "All words must be in an instruction's name, category, op or source; case does not matter"
BUFFER_ADDRESS = f"{xla_memory.ADDRESS}row"
GROUPS = "tree_"
"""The address of the table of groups."""
AS_IN_ADDRESS = "The key of its row, as in the address of the page."
MOST_RATES = 5
"""Instructions whose FLOP rates a text names."""
NOTHING = "Nothing was compiled during either capture."
NOTHING_ALONE = "Nothing was compiled during the capture."
MOST_SHAPES = 4
FILTERED = ["hlo_op", "category", "hlo_op_candidate", *by_role("op_name"), *by_role("source")]
"""The columns of the words of the filter."""
_VERBS = {COMPILING: "compiled", TRACING: "traced"}
_NUMBERS = [f"{name}_{role}" for name in ("occurrences", "total_time_us") for role in SIDES]


def _programs(pair: Pair, _options: Any = None) -> dict[str, str]:
    """The names of all programs, the longest first."""
    return {label: label for label in _program_keys(pair)}


@cached_per_pair
def _program_keys(pair: Pair) -> dict[str, str]:
    """Each program's key by its name."""
    found = executions.programs(pair.instructions())
    return dict(zip(found["label"], found["program_key"], strict=True))


@dataclass(frozen=True)
class Options:
    """Which program is shown, which of its instructions, and how they are grouped."""

    program: str = option("", "Program", _programs, is_list=True, help=PROGRAM_HELP)
    filter: str = option("", "Filter", hint="words in instruction, category, op or source", help=FILTER_HELP)
    group: str = option(
        "", "Group of instructions", address=f"{GROUPS}row", is_in_address=True, help=f"Group. {AS_IN_ADDRESS}"
    )
    by: By = option("scope", "Flame graph by", GROUPINGS)
    buffer: str = option(
        "", "Buffer in the chart", address=BUFFER_ADDRESS, is_in_address=True, help=f"Buffer. {AS_IN_ADDRESS}"
    )


def blocks(pair: Pair, options: Options) -> Iterator[Block]:
    """The time per execution in a sentence and as figures, the tree of instructions, and every one."""
    if why := why_not_compared(pair):
        yield Text(why, "notice")
    tables = zip(pair.shown, pair.tables("hlo_ops"), strict=False)
    without = [run.name for (_, run), rows in tables if rows.empty and run.tables.has_recorded_devices()]
    if without:
        names = " and ".join(map(as_code, without))
        yield Text(f"{names} ran no compiled XLA programs while being captured. {HOW_TO_COMPILE}", "notice")
    if len(without) < len(pair.shown):
        rows = partial(instructions, pair, options)
        yield Choose(["program"])
        yield later(lambda: _answer(pair, options.program, rows()))
        yield Choose(["filter", "by"])
        yield later(lambda: _by_group(pair, options))  # above the table, which gets shorter on a click on a bar
        yield later(lambda: _every_instruction(pair, options))
        yield Section(MORE, lambda: _more(pair, options, rows()))
    else:
        yield Section("Compilation", partial(_compilation, pair), True, help=COMPILATION_HELP)


def _more(pair: Pair, options: Options, rows: pd.DataFrame) -> Iterator[Block]:
    """The distance from the peaks, memory, groups and kinds of instructions, the whole program, and compilation."""
    yield from _rates(pair, options, rows)
    help_text = "As the compiler placed the program's buffers, for one execution"
    memory = partial(xla_memory.blocks, pair, options.program, rows, chosen=options.buffer)
    yield Section("Memory", memory, True, help=help_text)
    yield _groups(pair, options)
    yield from _kinds(pair, rows)
    yield from regrouped.section(pair, options.program, rows)
    yield from xla_program.section(pair, options.program, rows)
    yield Section("Compilation", partial(_compilation, pair), True, help=COMPILATION_HELP)


def instructions(pair: Pair, options: Options) -> pd.DataFrame:
    """The instructions of the chosen program on both sides, those whose time changed most first; empty without any."""
    name = options.program

    def make() -> pd.DataFrame:
        rows = pair.instructions()
        return executions.of_program(rows, _program_keys(pair)[name]) if name else rows

    return pair.cached(("xla_program", name), make)


def _answer(pair: Pair, name: str, rows: pd.DataFrame) -> Iterator[Block]:
    figures = xla.figures(rows)
    yield Text(headline(pair, name, rows), "headline")
    yield cards(pair, figures)
    if unknown := xla.unknown_costs_sentence_on(pair, rows):
        yield Text(unknown, "quiet")


def headline(pair: Pair, name: str, rows: pd.DataFrame) -> str:
    """The time per execution of a program with these instructions, in Markdown."""
    if pair.is_single:
        return xla.sentence_alone(rows, name)
    if pair.is_identical:
        return "Both runs are the same capture: no program differs."
    if pair.are_unrelated:
        return f"{DIFFERENT_PROGRAMS}."
    return xla.sentence(rows, name, pair.called)


def _every_instruction(pair: Pair, options: Options) -> Iterator[Block]:
    """The instructions of the chosen group that have all words of the filter, with those of SparseCores."""
    rows = pair.every_instruction()
    if (rows["core_type"] != SPARSE_CORE).all():
        rows = instructions(pair, options)
    elif options.program:
        rows = executions.of_program(rows, _program_keys(pair)[options.program])
    stacked = partial(xla.stacked, pair)
    found = xla.below_node(rows, options.program, options.group, stacked) if options.group else None
    label, within = found or ("", rows)
    if options.group and found is None:
        yield Text("There is no such group of instructions: all are shown.", "quiet")
    if label:
        yield Text(f"In {as_code(label)}", clears=f"{GROUPS}row")
    chosen = largest_first(pair, schema.HLO_OPS, with_words(within, options.filter, FILTERED))
    chosen = instructions_with_shapes(chosen)
    names, every = (_columns(pair, rows, chosen, every=is_whole) for is_whole in (False, True))
    yield Table(
        schema.HLO_OPS,
        "Every instruction",
        chosen,
        names,
        pair.is_single,
        every,
        nothing=f"No row has all words of {as_code(options.filter)}. Clear the filter to see all.",
        opens=Opens(partial(xla_instruction.details, pair, rows), xla_instruction.instruction_key),
        sums_per=pair.sums_per(),
    )


def _columns(pair: Pair, rows: pd.DataFrame, chosen: pd.DataFrame, *, every: bool) -> list[str]:
    """The table's columns, most important first; what could be saved only where the peaks of a device are known."""
    sides = SIDES[: len(pair.shown)]
    has_peaks = every or rows[by_role("excess_us", sides)].notna().any(axis=None)
    terms = [] if pair.is_single or pair.are_unrelated else TERMS if every else term_columns(rows)
    names = ["hlo_op", *(["category"] if every else [])]
    names += ["core_type"] if chosen["core_type"].nunique() > 1 or every else []
    names += ["host"] if chosen["host"].nunique() > 1 or every else []
    names += by_role(TIME, CHANGE if every or not terms else CHANGE[:3])  # the ratio is the product of the terms
    names += [*(shape_column(chosen) if every else []), *terms]
    costs = [*(["excess_us"] if has_peaks else [])]
    costs += ["flops_per_s", "bandwidth_bytes_per_s"] if pair.is_single or every else []
    costs += ["bound_by"] if every else []
    names += [f"{name}_{role}" for name in costs for role in sides]
    if every:
        sums = ("self_time_us", "total_time_us", "executions", "occurrences", "flops", "bytes_accessed")
        names += [f"{name}_{role}" for name in sums for role in CHANGE[:3]]
        names += by_role("runs_per_execution")
        more = ("operational_intensity", "peak_flops_per_s", "peak_bytes_per_s", "is_rematerialized")
        names += [f"{name}_{role}" for name in (*more, "op_name", "source") for role in sides]
        names += ["hlo_op_candidate", "program", "program_candidate", "status", "match", "verdict"]
    return names if every else [*names, *shape_column(chosen)]


def _by_group(pair: Pair, options: Options) -> Iterator[Block]:
    """The flame graph, and why it has no calls of the source if the profile is not there any more."""
    if options.by == "source":
        try:
            pair.tables("hlo_texts")
        except TfcompareError as error:
            yield Text(as_markdown(error), "quiet")
    yield _flame_graph(pair, options)


def _grouped(pair: Pair, options: Options) -> pd.DataFrame:
    """The instructions of the program, with what the chosen groups are made of."""
    rows = instructions(pair, options)
    return xla.stacked(pair, rows) if options.by == "source" else rows


def _flame_graph(pair: Pair, options: Options) -> FlameGraph:
    """The instructions of the program that have all words of the filter, as a tree; without those of SparseCores, which
    are in no time of a program."""

    def draw() -> pd.DataFrame:
        rows = with_words(_grouped(pair, options), options.filter, FILTERED)
        return xla.with_keys(xla.time_tree(rows, options.program, options.by), options.by)

    return FlameGraph(
        "xla_flame",
        f"Time per execution by {GROUPINGS[options.by]}",
        draw,
        TIME,
        pair.headings,
        per="execution",
        on=(options.program, options.filter, options.by),
        chooses=f"{GROUPS}row",
        selected=options.group,
        is_neutral=pair.are_unrelated,
        nothing="No instruction took any time.",
    )


def _tree(pair: Pair, options: Options) -> pd.DataFrame:
    def make() -> pd.DataFrame:
        return xla.time_tree(_grouped(pair, options), options.program, options.by)

    return pair.cached(("xla_tree", options.program, options.by), make)


def _time(pair: Pair, options: Options) -> Any:
    if instructions(pair, options).empty:
        return None
    return charts.time_icicle(_tree(pair, options), by=GROUPINGS[options.by], alone=pair.is_single)


def _groups(pair: Pair, options: Options) -> Table:
    """The groups, indented by their depth; the selected one restricts the table of instructions."""
    nodes, by = xla.groups(_tree(pair, options), options.by), GROUPINGS[options.by]
    labels = [INDENT * (depth - 1) + label for depth, label in zip(nodes["depth"], nodes["label"], strict=True)]
    share = "Its part of the program's time"
    share += "" if pair.is_single else ", with the longer time of both runs for each instruction"
    below = "Groups are indented below the one that they are part of"
    select = "Select a row at its left end to show only its instructions in the table above."
    others = {
        "label": Shown("label", "", by.capitalize(), below, "text"),
        "width_share": Shown("width_share", "", "Share", share, "bar"),
    }
    return Table(
        replace(schema.HLO_OPS, name="hlo_op_groups"),
        f"By {by}",
        nodes.assign(label=labels),
        ["label", *by_role(TIME, CHANGE[:3]), "width_share"],
        is_alone=pair.is_single,
        is_small=True,
        opens=Opens(None, lambda shown: shown["key"], select),
        address=GROUPS,
        others=others,
    )


def _rates(pair: Pair, options: Options, rows: pd.DataFrame) -> Iterator[Block]:
    """FLOP rate over operational intensity of the instructions, below the roofs of the devices."""
    if charts.roofs(rows, len(pair.shown)):
        title = "Distance from the peaks"
        lines = (
            " Below the sloping line it is bound by memory bandwidth, below the level one by the FLOP rate; its "
            "distance from the line is what could still be saved."
        )
    else:
        title, lines = "FLOP rate", " The peaks of these devices are unknown, so there are no lines to compare with."
    more = " Instructions without floating-point operations are not shown."
    help_text = f"Each marker is an instruction.{lines}{more}"
    if charts.has_points(rows, len(pair.shown)):
        draw = partial(_roofline, pair, options)
        inner: Block = Chart("roofline", draw, facts=_largest_rates(pair, rows), on=options.program)
    else:
        inner = Text("No instruction of this program has a known FLOP rate.", "notice")
    yield Section(title, [inner], True, help=help_text)


def _roofline(pair: Pair, options: Options) -> Any:
    rows = instructions(pair, options)
    if not charts.has_points(rows, len(pair.shown)):
        return None
    return charts.roofline(rows, [side for side, _ in pair.shown])


def _largest_rates(pair: Pair, rows: pd.DataFrame) -> Facts:
    """The place of the longest instructions in the chart, as texts."""
    sides = SIDES[: len(pair.shown)]
    known = rows[rows[by_role("flops_per_s", sides)].notna().any(axis=1)]
    times = known[by_role(TIME)].astype("float64").max(axis=1)
    longest = known.loc[times.sort_values(ascending=False, kind="stable").index[:MOST_RATES]]
    cells = [[str(row["hlo_op"]), *(_rate(row, role) for role in sides)] for _, row in longest.iterrows()]
    more = len(known) - len(cells)
    note = f"{more} more are left out." if more else ""
    return Facts(["Longest instructions", *pair.headings], cells, (1, 2), note=note)


def _rate(row: pd.Series, role: str) -> str:
    rate = row[f"flops_per_s_{role}"]
    if pd.isna(rate):
        return MISSING
    return f"{format_value(rate, 'FLOP/s')} at {format_value(row[f'operational_intensity_{role}'], 'FLOP/byte')}"


def _kinds(pair: Pair, rows: pd.DataFrame) -> Iterator[Block]:
    """How many instructions of each kind ran on both sides, and what they take per execution."""
    kinds = xla_compiler.kinds(rows)
    if kinds.empty:
        return
    sides = {"": "baseline"} if pair.is_single else {f", {role}": role for role in SIDES}
    columns = {"": kinds["kind"]}
    columns |= {f"Instructions{label}": kinds[f"count_{role}"].map(format_count) for label, role in sides.items()}
    for label, role in sides.items():
        columns[f"Time per execution{label}"] = kinds[f"{TIME}_{role}"].map(format_time_us)
    cells = list(map(list, zip(*columns.values(), strict=True)))
    yield Section("What the compiler did", [Facts(list(columns), cells, (1, 2, 3, 4))], True, help=KINDS_HELP)


def _compilation(pair: Pair) -> Iterator[Block]:
    """Which functions were traced and compiled during the capture, how often and how long."""
    make = partial(compilation_rows, pair.candidate, *pair.tables("compilations"))
    rows = pair.cached("xla_compilations", make)
    yield Text(sentence_alone(rows) if pair.is_single else sentence(rows, pair.called))
    if rows.empty:
        return
    sides = SIDES[: len(pair.shown)]
    names = [*by_role("occurrences", sides), *by_role("total_time_us", CHANGE[:3])]
    names += [f"{name}_{role}" for name in ("longest_us", "programs", "shapes") for role in sides]
    rows, every = largest_first(pair, schema.COMPILATIONS, rows), ["function", "phase", "host", *names, "status"]
    few = ["function", "phase", *(["host"] if rows["host"].nunique() > 1 else []), *names]
    yield Table(schema.COMPILATIONS, "Functions", rows, few, pair.is_single, every, address="compilation_")


def _memory(pair: Pair, options: Options) -> Any:
    return xla_memory.chart(pair, options.program, instructions(pair, options), chosen=options.buffer)


CHARTS: dict[str, Make] = {"xla_time": _time, "roofline": _roofline, "xla_memory": _memory}
WHY_NOT = without_rows("No compiled XLA programs and no compilations were captured.", "hlo_ops", "compilations")
VIEW = View("xla", "XLA", blocks, CHARTS, WHY_NOT, HOW_TO_COMPILE, Options)


def compilation_rows(candidate: Run, ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """The diff of `compilations`, with sums over the whole capture: how often a function is compiled does not depend on
    the number of steps."""
    return diff_table(schema.COMPILATIONS, candidate.id, SideRows(ours), SideRows(theirs), identical=False)


def sentence(rows: pd.DataFrame, runs: tuple[str, str]) -> str:
    """`f` was compiled 5 times in `B` (1.20 s), in `A` not once. Its programs differ in …, in Markdown.

    About the function whose compilation changed most, or its tracing where nothing was compiled. `rows` are
    `compilation_rows`, `runs` the names of baseline and candidate. Of several hosts, the one with the longest counts.
    """
    found = _main_row(rows)
    if found is None:
        return NOTHING
    baseline, candidate = map(code, runs)
    counts = [int(found[f"occurrences_{role}"]) for role in SIDES]
    times = [_how_often(found, role) for role in SIDES]
    what = f"{_function(found)} was {_VERBS[str(found['phase'])]}"
    if min(counts):
        text = f"{what} {times[1]} in {candidate}, {times[0]} in {baseline}."
    elif counts[1]:
        text = f"{what} {times[1]} in {candidate}, not once in {baseline}."
    else:
        text = f"{what} {times[0]} in {baseline}, not once in {candidate}."
    return text + _shapes(found)


def sentence_alone(rows: pd.DataFrame) -> str:
    """`f` was compiled 5 times (1.20 s). Its programs differ in …, in Markdown; of the function that took longest."""
    found = _main_row(rows)
    if found is None:
        return NOTHING_ALONE
    return f"{_function(found)} was {_VERBS[str(found['phase'])]} {_how_often(found, 'baseline')}.{_shapes(found)}"


def _main_row(rows: pd.DataFrame) -> pd.Series | None:
    """The numbers of the function to speak of; None if there is none."""
    phases = [phase for phase in _VERBS if (rows["phase"] == phase).any()]
    if not phases:
        return None
    here = rows[rows["phase"] == phases[0]]
    texts = [f"shapes_{role}" for role in SIDES]
    how = dict.fromkeys(_NUMBERS, "max") | dict.fromkeys(texts, "first")
    of_hosts = here.groupby(["function", "phase"], as_index=False).agg(how)
    of_hosts[_NUMBERS] = of_hosts[_NUMBERS].astype("float64").fillna(0.0)
    sides = [of_hosts[f"total_time_us_{role}"] for role in SIDES]
    order = pd.DataFrame({"change": change(*sides).abs(), "size": pd.concat(sides, axis=1).max(axis=1)})
    first = order.sort_values(["change", "size"], ascending=False, kind="stable").index[0]
    return pd.Series(of_hosts.loc[first])


def _function(found: pd.Series) -> str:
    return code(found["function"]) if found["function"] else "A function without a name"


def _how_often(found: pd.Series, role: str) -> str:
    count = found[f"occurrences_{role}"]
    times = "once" if count == 1 else f"{format_count(count)} times"
    return f"{times} ({format_time_us(found[f'total_time_us_{role}'])})"


def _shapes(found: pd.Series) -> str:
    """The shapes in which the programs of the function differ, of the side with the most programs."""
    texts = [found[f"shapes_{role}"] for role in SIDES]
    shapes = max((text.split("; ") for text in texts if isinstance(text, str) and text), key=len, default=[])
    if not shapes:
        return ""
    shown = ", ".join(map(code, shapes[:MOST_SHAPES]))
    return f" The shapes of its arguments change: {shown}{', …' if len(shapes) > MOST_SHAPES else ''}."
