"""GPU kernels: TensorBoard's kernel stats of both runs, and what changed between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import INTERVAL
from tfcompare.compare.groups.aggregate import group_copies, largest_changes
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pairs_of
from tfcompare.run import Run
from tfcompare.schema import SIDES
from tfcompare.text import as_code
from tfcompare.units import format_value
from tfcompare.views import bars, shares
from tfcompare.views.blocks import (
    MORE,
    Beside,
    Block,
    Chart,
    Choose,
    Details,
    Link,
    Links,
    Live,
    Opens,
    Section,
    Table,
    Text,
    later,
)
from tfcompare.views.chart_style import Quantity, shorten_distinct
from tfcompare.views.kernels import figures as kernel_stats
from tfcompare.views.kernels.details import (
    DURATIONS,
    FLAGS,
    LAUNCH,
    NO_OP,
    By,
    details_of_row,
    display_names,
    kernel_key,
    rows_of,
)
from tfcompare.views.kernels.figures import COUNT, TIME
from tfcompare.views.key_figures import KeyFigure
from tfcompare.views.ops.figures import largest_bar, outside_of_steps, time_shares, with_words
from tfcompare.views.ops.shapes import shape_column
from tfcompare.views.ops.work_words import TERMS
from tfcompare.views.options import option
from tfcompare.views.pair_words import DIFFERENT_PROGRAMS, why_not_compared
from tfcompare.views.view import (
    CHANGE,
    Make,
    View,
    by_role,
    cached_per_pair,
    cached_section,
    cards,
    changed,
    largest_first,
)

GROUPINGS: dict[By, str] = {
    "kernel_name": "kernel",
    "op_name": "op",
    "kernel_and_op": "kernel and op",
    "launch": "every launch",
}
QUANTITIES: dict[str, tuple[str, Quantity]] = {
    "time": (TIME, Quantity("kernel time", "µs", "less time", "more time")),
    "launches": (COUNT, Quantity("kernel launches", "", "fewer launches", "more launches")),
}
LEAST_MATCHED = 0.5
"""The share of the kernel time with a counterpart by kernel name below which ops are compared: of less than half, most
rows would be added or removed, since libraries choose other kernels for other shapes."""
HALF_A_LABEL = 23
MOST_OPS = 5
"""Ops that a text names."""

FILTER_HELP = "All words must be in the names of kernel and op; case does not matter"
GROUP_BY_HELP = (
    "Times and launches are summed over hosts and devices. A launch is one kernel of one op with one block, grid, "
    "number of registers and size of shared memory."
)
TENSOR_CORES_HELP = (
    "Use of tensor cores (AMD: matrix cores) is inferred from kernel names. Eligible are ops that multiply matrices or "
    "convolve; in 32 bits they need TF32 or mixed precision."
)
PER_LAUNCH = (
    "Divide the times in the table, and the changes, by the number of launches: for runs that launched their kernels "
    "more or less often. Verdicts are on the time per step, so a kernel with other numbers of launches has none."
)
NO_COPIES = "No copies were recorded. On AMD GPUs, copies within a device are kernels (`__amd_rocclr_copyBuffer`)."
HOW_TO_ALLOW = (
    "Profile on a machine with a GPU whose profiler may be used:",
    "**NVIDIA:** `libcupti` must be on the library path, and the driver must let users profile: set the module option "
    "`NVreg_RestrictProfilingToAdminUsers=0`, or run the container with `--cap-add=SYS_ADMIN`.",
    "**AMD:** TensorFlow or JAX must be built with ROCm's profiler, and the user must be in the groups `render` and "
    "`video`; a container needs `/dev/kfd` and `/dev/dri`.",
)
_WHY_MISSING = {
    "TPU": "ran on TPUs, whose programs have no kernels.",
    "GPU": "ran on GPUs without kernel events: the profiler was not allowed to record them, or records only when ops "
    "ran, as those of plug-in devices may.",
    "CPU": "ran without GPU events: on the CPU only, or the profiler was not allowed to record the GPU.",
}


def groupings(pair: Pair, _options: Any) -> dict[By, str]:
    """How kernels can be grouped; first how they are unless something is chosen."""
    first: By = "op_name" if _are_told_by_op(pair) else "kernel_name"
    return {first: GROUPINGS[first], **GROUPINGS}


@cached_per_pair
def _are_told_by_op(pair: Pair) -> bool:
    """Whether most of the kernel time has no counterpart by kernel name, and more of it has one by op."""
    if pair.is_single or pair.are_unrelated or not all(map(len, pair.tables("kernel_stats"))):
        return False
    by_kernel = kernel_stats.matched_share(rows_of(pair, "kernel_name"))
    return by_kernel < LEAST_MATCHED and by_kernel < kernel_stats.matched_share(rows_of(pair, "op_name"))


def _has_several_devices(pair: Pair, _options: Any) -> bool:
    return pair.cached("copying devices", lambda: len(pair.diff("copies")[["host", "device"]].drop_duplicates())) > 1


@dataclass(frozen=True)
class Options:
    """Which kernels are shown, and how."""

    by: By = option("", "Group by", groupings, help=GROUP_BY_HELP)
    filter: str = option("", "Filter", hint="words in kernel or op", help=FILTER_HELP)
    per_launch: bool = option(False, "Per launch", address="each", help=PER_LAUNCH)
    changes: Literal["time", "launches"] = option(
        "time", "Changes of", {"time": "time", "launches": "launches"}, address="movers"
    )
    shares: bool = option(False, "Shares", help="Shares of each run's kernel time, which add up to 100 %")
    by_device: bool = option(False, "Copies device by device", when=_has_several_devices)


def blocks(pair: Pair, options: Options) -> Iterator[Block]:
    """The kernel time in a sentence and as figures, and every kernel; what changed most, tensor cores, and copies."""
    if why := why_not_compared(pair):
        yield Text(why, "notice")
        return
    yield cached_section(pair, "kernel_stats", _answer)
    yield Choose(["by", "filter", "per_launch"])
    rows = cache(partial(_rows, pair, options))
    yield later(partial(_figures, pair, options.by))
    yield later(lambda: [_table(pair, rows(), options)])
    if not pair.is_single:
        yield later(lambda: [Live("manual_pairs", (display_names(pair),))])
    yield Section(MORE, lambda: _more(pair, options, rows))


def _more(pair: Pair, options: Options, rows: Callable[[], pd.DataFrame]) -> Iterator[Block]:
    """What changed most, where the time goes, tensor cores, and copies."""
    if not (pair.is_single or pair.are_unrelated):
        yield Section("What changed", lambda: _what_changed(pair, rows(), options), True, ["changes"])
    yield Section("Where the time goes", partial(_distributions, pair, options), True, ["shares"])
    if (use := _tensor_core_use(pair)) is not None:
        facts = shares.facts(pair, use, "Share of kernel time", len(use))
        chart = Chart("tensor_cores", partial(_tensor_cores, pair, options), facts, on=options.shares)
        yield Section("Tensor cores", [chart], True, help=TENSOR_CORES_HELP)
    yield Choose(["by_device"])
    yield later(lambda: [_copies(pair, options)])


def _answer(pair: Pair) -> Iterator[Block]:
    """Who lacks kernels, the kernel time in a sentence, and what ran outside of the steps."""
    if without := _without_kernels(pair):
        yield Text(_why_missing(without), "notice")
        yield from _how_to_record(without)
    if sentence := headline(pair):
        yield Text(sentence, "headline")
    if outside := outside_of_steps(pair, "kernel_stats"):
        yield Text(outside, "quiet")


def _figures(pair: Pair, by: By) -> Iterator[Block]:
    """The key figures, and why kernels are grouped by op where nobody chose it."""
    yield cards(pair, figures(pair, by))
    if by == "op_name" and _are_told_by_op(pair):
        yield Text(kernel_stats.why_by_op(kernel_stats.matched_share(rows_of(pair, "kernel_name"))), "quiet")


def why_not(pair: Pair) -> str:
    """Why no run has kernels; empty if one has."""
    without = _without_kernels(pair)
    return f"No kernels. {_why_missing(without)}" if len(without) == len(pair.shown) else ""


def instead(pair: Pair) -> Iterator[Block]:
    """How to record kernels, and where the ops are."""
    yield from _how_to_record(_without_kernels(pair))
    yield Links([Link("Show the ops instead", "op_stats")])


def _without_kernels(pair: Pair) -> list[Run]:
    tables = pair.tables("kernel_stats")
    return [run for (_, run), rows in zip(pair.shown, tables, strict=False) if rows.empty]


def _why_missing(runs: Sequence[Run]) -> str:
    """Why runs have no kernels, those of one device type in one sentence."""
    reasons, names = [], dict[str, list[str]]()
    for run in runs:
        device = run.info.device_type if run.info.device_type in _WHY_MISSING else "CPU"
        if run.tables.has_recorded_devices():
            names.setdefault(device, []).append(as_code(run.name))
        else:
            reasons.append(f"{as_code(run.name)}: {run.why_untimed}.")
    reasons += [f"{' and '.join(dict.fromkeys(names[device]))} {_WHY_MISSING[device]}" for device in names]
    return " ".join(reasons)


def _how_to_record(without: Sequence[Run]) -> Iterator[Block]:
    if any(run.info.device_type != "TPU" for run in without):
        yield Section("How to record kernels", [Text(line) for line in HOW_TO_ALLOW])


def headline(pair: Pair) -> str:
    """The change of the kernel time, in Markdown; empty where a run has none."""
    diff = pair.diff("kernel_stats")
    if pair.is_single:
        return kernel_stats.sentence_alone(diff, pair.per_what)
    if pair.is_identical:
        return "Both runs are the same capture: no kernel differs."
    if pair.are_unrelated:
        return f"{DIFFERENT_PROGRAMS}."
    return kernel_stats.kernel_sentence(diff, pair.per_what)


def figures(pair: Pair, by: By) -> list[KeyFigure]:
    """Kernel time, launches and copies, and of two runs how much of the time has a counterpart, grouped so."""
    diff, copies = pair.diff("kernel_stats"), pair.diff("copies")
    found = kernel_stats.kernel_figures(diff, copies, rows_of(pair, by), pair.per_what)
    if not pair.is_single:
        return found
    return [figure.alone() for figure in found if figure.label != kernel_stats.MATCHED_TIME]


def _rows(pair: Pair, options: Options) -> pd.DataFrame:
    """The rows of the table: groups of kernels or single launches that contain the words of the filter."""
    rows = rows_of(pair, options.by)
    if options.per_launch:
        rows = pair.rows_per_occurrence(rows, "kernel_stats")
    names = ["kernel_name", "op_name", "kernel_name_candidate", "op_name_candidate"]
    return with_words(rows, options.filter, [name for name in names if name in rows])


def _table(pair: Pair, rows: pd.DataFrame, options: Options) -> Table:
    names, every = (_columns(options.by, every=is_whole) for is_whole in (False, True))
    return Table(
        schema.KERNEL_STATS,
        "Every launch" if options.by == "launch" else f"Every {GROUPINGS[options.by]}",
        largest_first(pair, schema.KERNEL_STATS, rows),
        names,
        every=[*every, *([] if pair.is_single or pair.are_unrelated else TERMS), *shape_column(rows)],
        is_alone=pair.is_single,
        nothing=f"No row has all words of {as_code(options.filter)}. Clear the filter to see all.",
        opens=Opens(partial(_details, pair, options.by), kernel_key),
        sums_per=pair.sums_per(per_occurrence=options.per_launch),
        everything=lambda: pd.concat([rows_of(one, "launch") for one in pairs_of(pair.among)], ignore_index=True),
        readings=display_names(pair),
        menu=None if pair.is_single else Live("load_manual_pairs"),
    )


def _columns(by: By, *, every: bool) -> list[str]:
    """The table's columns, most important first: as many as a page of 1440 px has room for; with `every`, all of
    TensorBoard's GPU kernel stats."""
    if by == "launch":
        names = ["kernel_name", "op_name", *LAUNCH[:2], *by_role(TIME)]
    elif by == "kernel_and_op":
        names = ["kernel_name", "op_name", *by_role(TIME, CHANGE[:3])]
    else:
        names = [by, *by_role(TIME, CHANGE[:3]), *by_role(COUNT)]
    names += ["verdict"]
    if every:
        names += [*by_role("time_rank"), *by_role(TIME, CHANGE[2:]), *by_role("time_share")]
        names += [*by_role("cumulative_time_share"), *by_role(COUNT, CHANGE)]
        names += [*by_role(DURATIONS[0], CHANGE[:3]), *(name for one in DURATIONS[1:] for name in by_role(one))]
        names += [name for flag in FLAGS for name in by_role(flag)]
        if by == "launch":
            names += [name for key in LAUNCH for name in (key, f"{key}_candidate")]
            names += ["host", "kernel_name_candidate", "op_name_candidate"]
        names += ["status", "match", "evidence", *INTERVAL]
    return list(dict.fromkeys(names))


def _details(pair: Pair, by: By, chosen: str) -> Details | None:
    """The selected kernel or op, even if the filter hides it."""
    every = rows_of(pair, by)
    found = every[kernel_key(every) == chosen]
    return None if found.empty else details_of_row(pair, found.iloc[0], by)


def _what_changed(pair: Pair, rows: pd.DataFrame, options: Options) -> Iterator[Block]:
    metric, quantity = QUANTITIES[options.changes]
    changes, make = largest_changes(rows, n=bars.TOP, metric=metric), partial(_changes, pair, options)
    nothing = f"None of these rows changed its {quantity.name}."
    return changed("kernel_changes", changes, make, on=options, nothing=nothing, is_time=metric == TIME)


def _changes(pair: Pair, options: Options, letters: int = bars.MOVER_LENGTH) -> Any:
    if pair.is_single or pair.diff("kernel_stats").empty:
        return None
    metric, quantity = QUANTITIES[options.changes]
    changes = largest_changes(_rows(pair, options), n=bars.TOP, metric=metric)
    if changes.empty:
        return None
    rows = _with_labels(changes, metric, options.by, display_names(pair))
    per = pair.sums_per(per_occurrence=options.per_launch).of(schema.KERNEL_STATS.column(metric)) or "run"
    return bars.changes_of_pair(pair, rows, metric, by="name", quantity=quantity, letters=letters, per=per)


def _with_labels(rows: pd.DataFrame, metric: str, by: By, readings: dict[str, str]) -> pd.DataFrame:
    """Changes of `metric` with `name` (in full), `label` (short) and `detail` (what else there is to know of each)."""
    op = rows["op_name"].replace("", readings[""]) if "op_name" in rows else pd.Series("", rows.index, dtype="str")
    other, unit, what = (COUNT, "", " launches") if metric == TIME else (TIME, "µs", "")
    ours, theirs = (rows[f"{other}_{role}"].map(partial(format_value, unit=unit)) for role in SIDES)
    more = ours + " → " + theirs + what
    if by == "op_name":
        return rows.assign(name=op, label=shorten_distinct(op.tolist(), bars.MOVER_LENGTH), detail=more)
    label, detail = rows["kernel_name"].map(readings), op
    if by == "launch":
        detail = op + " · block " + rows["block_dim"] + " · grid " + rows["grid_dim"]
    if by != "kernel_name":
        halves = (shorten_distinct(half.tolist(), HALF_A_LABEL) for half in (label, op))
        label = pd.Series([f"{kernel} · {of}" for kernel, of in zip(*halves, strict=True)], op.index)
        place = label.groupby(label).cumcount()
        label = label.where(place == 0, label + " #" + (place + 1).astype("str"))
    detail = (detail + " · " + more).str.removeprefix(" · ")
    return rows.assign(name=rows["kernel_name"], label=label, detail=detail)


def _distributions(pair: Pair, options: Options) -> Iterator[Block]:
    """Where the kernel time goes, by kernel and by op."""
    groupings: tuple[By, ...] = ("kernel_name", "op_name")
    times = {by: pair.cached(("kernel_times", by), partial(_times, pair, by)) for by in groupings}
    reach = largest_bar(list(times.values()), TIME, len(pair.shown), as_shares=options.shares)
    facts = {"op_name": shares.facts(pair, times["op_name"], "Share of kernel time by op", MOST_OPS)}
    columns = []
    for by, rows in times.items():
        draw = partial(_bars, pair, rows, by, reach, options.shares)
        columns.append([Chart(f"shares_{by}", draw, facts.get(by), options.shares)])
    yield Beside(columns)


def _times(pair: Pair, by: By) -> pd.DataFrame:
    readings = display_names(pair)
    times = time_shares(rows_of(pair, by).replace({by: {"": NO_OP}}), by, metric=TIME)
    return times.assign(label=[readings.get(name, name) for name in times["group"]])


def _bars(pair: Pair, times: pd.DataFrame, by: By, reach: float, as_shares: bool) -> Any:
    title = f"Kernel time by {GROUPINGS[by]}"
    return shares.bars(pair, times, TIME, title=title, of="kernel time", reach=reach, as_shares=as_shares)


def _tensor_core_use(pair: Pair) -> pd.DataFrame | None:
    """The kernel time by use of tensor cores; None if no op is eligible for them."""
    use = pair.cached("tensor cores", lambda: kernel_stats.tensor_core_use(pair.diff("kernel_stats")))
    return use if use[by_role("share", SIDES[: len(pair.shown)])].iloc[:2].to_numpy().any() else None


def _tensor_cores(pair: Pair, options: Options) -> Any:
    if (use := _tensor_core_use(pair)) is None:
        return None
    sides, title = [side for side, _ in pair.shown], "Kernel time by use of tensor cores"
    if options.shares:
        return shares.share_bars(use, sides, TIME, title=title, axis="Share of kernel time")
    return shares.time_bars(use, sides, TIME, title=title, axis=f"Kernel time per {pair.per_what}")


def _copies(pair: Pair, options: Options) -> Table:
    """The count, bytes, time and bandwidth of copies, by kind or device by device."""
    rows = pair.diff("copies") if options.by_device else group_copies(pair.diff("copies"))
    time, count, size = "duration_us", "occurrences", "size_bytes"
    names = ["kind", *(["host", "device"] if options.by_device else []), *by_role(time, CHANGE[:3])]
    names += [name for metric in (count, size, "bandwidth_bytes_per_s") for name in by_role(metric)]
    per, alone = pair.sums_per(), pair.is_single
    return Table(schema.COPIES, "Copies", rows, names, alone, nothing=NO_COPIES, address="copies_", sums_per=per)


CHARTS: dict[str, Make] = {"kernel_changes": _changes, "tensor_cores": _tensor_cores}
VIEW = View("kernel_stats", "Kernel stats", blocks, CHARTS, why_not, options=Options, instead=instead)
