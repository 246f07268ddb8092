"""The hosts view: every host's steps, the slowest host and why, each host's parts and devices, and links."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from tfcompare import schema
from tfcompare.compare.pair import Pair
from tfcompare.schema import SIDES
from tfcompare.text import as_code, as_markdown, some_of
from tfcompare.units import format_delta, format_time_us
from tfcompare.views import links
from tfcompare.views.blocks import (
    MORE,
    Beside,
    Block,
    Chart,
    Choose,
    Facts,
    Finding,
    Link,
    Links,
    Section,
    Table,
    Text,
    later,
)
from tfcompare.views.hosts import charts
from tfcompare.views.hosts import clocks as hosts_clocks
from tfcompare.views.hosts import figures as hosts
from tfcompare.views.hosts import parts as host_parts
from tfcompare.views.hosts.figures import By, PairedSteps
from tfcompare.views.hosts.parts import HostParts
from tfcompare.views.hosts.words import verdict_sentence
from tfcompare.views.options import option
from tfcompare.views.registry import view
from tfcompare.views.view import Make, View, by_role, cached_per_pair

PLURALS: dict[By, str] = {"host": "hosts", "device": "devices"}
LABELS = {column.name: column.label for column in schema.HOSTS.columns}
MOST_NAMED = 5
HOW_DECIDED = (
    "In synchronous training all hosts' steps end together, because the others wait for the slowest in a collective. "
    "The slowest host is the one whose step is longest without its time in collectives and device waits. It stands out "
    "if that is significantly more than the median of the others, in three quarters of the steps and by at least 5 %, "
    "or 2 % from eight hosts on, where it is measured how much hosts differ."
)
HOW_TO_CAPTURE = (
    "Capture all workers of a program into one run: on the Capture page, or with several addresses in "
    "`tf.profiler.experimental.client.trace`."
)
AT_STEP_HELP = "By its position in the run; a click on a heat map chooses it, too"
LINKED = ("overview", "op_stats", "kernel_stats", "memory", "input_pipeline", "tf_data")


def groupings(pair: Pair, _options: Any = None) -> dict[By, str]:
    """What can be compared, hosts or devices: where either run has several with steps."""
    found = pair.cached("host_groupings", lambda: [hosts.groupings(run) for _, run in pair.shown])
    return {by: plural for by, plural in PLURALS.items() if any(by in one for one in found)}


def _hosts(pair: Pair, _options: Any = None) -> dict[str, str]:
    """The candidate's hosts with steps, the slowest first."""
    rows = steps_by(pair, "host").candidate
    return pair.cached("host_names", lambda: {name: name for name in hosts.by_skew(hosts.matrix(rows, "busy_us"))})


def _steps(pair: Pair, options: Options) -> dict[int, str]:
    """The positions of the steps that count, by their labels, and first the average of all."""
    return pair.cached(("host step positions", options.by), lambda: host_parts.places(steps_by(pair, options.by)))


def _are_many(pair: Pair, options: Options) -> bool:
    return len(_names(pair, options.by)) > host_parts.MOST_BARS


@dataclass(frozen=True)
class Options:
    """What is compared, by which time, and which host is looked at."""

    by: By = option("host", "Compare", groupings)
    metric: str = option("busy_us", "Show", {name: LABELS[name] for name in hosts.METRICS}, is_list=True)
    at_step: int = option(host_parts.AVERAGE, "Step", _steps, is_slider=True, help=AT_STEP_HELP)
    every_host: bool = option(False, "Show all", when=_are_many, help="Not only the slowest and the usual one")
    one_host: str = option("", "Host", _hosts, is_list=True, help="The slowest comes first")


def blocks(pair: Pair, options: Options) -> Iterator[Block]:
    """The slowest host in a sentence, and the parts of the steps of each; a time of each host in every step."""
    if not groupings(pair):
        return
    yield later(partial(_answer, pair))
    yield Choose(["by"])
    parts = partial(host_parts.blocks, pair, every_host=options.every_host)
    title, choices = f"Where each {options.by}'s time goes", ["at_step", "every_host"]
    yield Section(title, lambda: parts(_parts_of(pair, options)), True, choices)
    if len(_hosts(pair)) > 1:
        make = partial(host_links, pair, steps_by(pair, "host").candidate, list(_hosts(pair)), options.one_host)
        yield Section("Look at one host", make, True, ["one_host"])
    yield Section(MORE, partial(_more, pair, options))


def _more(pair: Pair, options: Options) -> Iterator[Block]:
    """A time of each host in each step, who reaches the collective last, and every step."""
    yield Choose(["metric"])
    yield later(partial(_heat_maps, pair, options))
    yield later(partial(hosts_clocks.blocks, pair))
    yield later(lambda: [_table(pair, options)])


def steps_by(pair: Pair, by: By) -> PairedSteps:
    """The steps of each host or device of both runs."""
    return pair.cached(("host_steps", by), partial(hosts.paired_steps, *pair.runs, by))


def _answer(pair: Pair) -> Iterator[Block]:
    """Who is slowest, why, and whether it was so before; how hosts are paired; which hosts are left out."""
    by = next(iter(groupings(pair)))
    is_alone = pair.is_single or pair.is_identical
    slow = [hosts.slowest_host_in(pair, run, by) for run in pair.runs]
    sentence = verdict_sentence(slow[1], None if is_alone else slow[0], alone=is_alone)
    if not sentence:
        baseline, candidate = pair.marked
        alone = verdict_sentence(slow[0], None, alone=True)
        of_baseline = f" {baseline}: {alone}" if alone and not is_alone else ""
        sentence = f"{candidate} has fewer than two {PLURALS[by]} with common steps.{of_baseline}"
    yield Text(sentence, "headline", help=HOW_DECIDED)
    if notes := " ".join(_notes(pair, by, is_alone)):
        yield Text(notes, "quiet")


def _notes(pair: Pair, by: By, is_alone: bool) -> Iterator[str]:
    """How hosts are paired, which have no steps, and that all are compared where one was chosen."""
    if not is_alone:
        yield steps_by(pair, by).pairing.sentence(PLURALS[by])
    for run, name in list(zip(pair.runs, pair.marked, strict=True))[: 1 if is_alone else 2]:
        if missing := hosts.without_steps(run):
            names = some_of(map(as_code, missing), MOST_NAMED)
            yield f"Without steps, and so left out of {name}: {names}."
    if pair.host is not None:
        yield f"All hosts are compared here; only the table of steps is of {as_code(pair.host)} alone."


def _heat_maps(pair: Pair, options: Options) -> Iterator[Block]:
    """Steps × hosts of both sides on one colour scale, and the difference."""
    plural, matrices = PLURALS[options.by], _matrices(pair, options)
    if not any(matrix.size for matrix in matrices):
        yield Text(f"The {plural} have no step in common, so there is nothing to draw.", "notice")
        return
    if not _has_maps(matrices):
        yield _means(pair, options)
        return
    maps: list[Block] = []
    for which, (name, matrix) in enumerate(zip(MAPS, matrices, strict=False)):
        if matrix.size:
            facts, draw = None if maps else _means(pair, options), partial(_heat_map, pair, options, which=which)
            maps.append(Chart(name, draw, facts, (options.by, options.metric), chooses="at_step"))
        elif which < len(pair.shown):
            run = "Run" if pair.is_single else f"{pair.marked[which]} ({SIDES[which]})"
            maps.append(Text(f"{run} has no {plural} with common steps.", "notice"))
    title = f"{LABELS[options.metric]} of each step"
    yield Section(title, [Beside([[one] for one in maps])], True, help="A click on a step shows its parts above.")


def _matrices(pair: Pair, options: Options) -> list[pd.DataFrame]:
    """The metric of each host in each step: of both sides and the difference, or of a run alone."""
    make = partial(steps_by(pair, options.by).matrices, options.metric)
    return list(pair.cached(("host_matrices", options.by, options.metric), make))[: 1 if pair.is_single else 3]


def _has_maps(matrices: list[pd.DataFrame]) -> bool:
    """Whether there are several steps: those of a single one are a table."""
    return any(matrix.size and matrix.shape[1] > 1 for matrix in matrices[:2])


def _names(pair: Pair, by: By) -> list[str]:
    """The hosts of both runs, the slowest first."""
    return pair.cached(("host_order", by), lambda: steps_by(pair, by).by_skew)


def _heat_map(pair: Pair, options: Options, which: int) -> Any:
    """The time of each host in each step: of the baseline, of the candidate, or the difference."""
    if not groupings(pair):
        return None
    matrices = _matrices(pair, options)
    if which >= len(matrices) or not matrices[which].size or not _has_maps(matrices):
        return None
    matrix, title = matrices[which], LABELS[options.metric]
    rows = matrix.loc[[name for name in _names(pair, options.by) if name in matrix.index]]
    if which == 2:
        return charts.change_map(f"{pair.letters[-1]} − {pair.letters[0]}: {title}", "blue: less; orange: more", rows)
    order = "the slowest on top" if pair.is_single or which else f"in the order of {pair.letters[-1]}"
    of = options.by if len(rows) == 1 else PLURALS[options.by]
    size = f"{len(rows):,} {of} × {rows.shape[1]:,} steps, {order}"
    limits = charts.colour_range([one for one in matrices[:2] if one.size])
    return charts.heat_map(title if pair.is_single else f"{pair.letters[which]}: {title}", size, rows, limits)


def _means(pair: Pair, options: Options) -> Facts:
    """The mean of the metric over the steps of each host, the slowest first."""
    by, metric = options.by, options.metric
    sides = [matrix.mean(axis=1) for matrix in _matrices(pair, options)[: len(pair.shown)]]
    every = _names(pair, by)
    names = every[: host_parts.MOST_BARS]
    times = {name: [float(means.get(name, math.nan)) for means in sides] for name in names}
    cells = [[name, *map(format_time_us, of_host)] for name, of_host in times.items()]
    header = [f"{LABELS[metric]} per step, by {by}", *pair.headings]
    if not pair.is_single:
        header.append("Change")
        cells = [[*row, format_delta(times[row[0]][1] - times[row[0]][0], "µs")] for row in cells]
    more, alone, findings = len(every) - len(names), pair.is_single, []
    for name, of_host in times.items():
        key = f"{by}:{name}" if metric == "busy_us" else f"{by}:{name}:{metric}"
        before = math.nan if alone else of_host[0]
        findings.append(Finding(key, name, "µs", before, of_host[-1], more="timeline", is_alone=alone))
    note = f"{more:,} more {PLURALS[by]}." if more else ""
    return Facts(header, cells, range(1, len(header)), note=note, findings=findings)


def _table(pair: Pair, options: Options) -> Table:
    rows = _by_skew(pair)
    names, every = (_columns(pair, rows, options, every=is_whole) for is_whole in (False, True))
    title = f"Every step of {'every' if pair.host is None else 'the chosen'} host"
    return Table(schema.HOSTS, title, rows, names, pair.is_single, every)


def _columns(pair: Pair, rows: pd.DataFrame, options: Options, *, every: bool) -> list[str]:
    """The table's columns: times of both sides for what is shown, or all."""
    sides = SIDES[: len(pair.shown)]
    several = rows["device"].nunique() > 1 or every
    names = ["host", *(["device"] if several else []), "step"]
    of_chips = [] if rows[by_role("sparse_core_busy_us")].isna().all(axis=None) else ["sparse_core_busy_us"]
    metrics = dict.fromkeys(("busy_us", "busy_skew_us", "duration_us", options.metric, *of_chips))
    if every:
        metrics = dict.fromkeys(c.name for c in schema.HOSTS.metrics if c.is_number)
    for metric in metrics:
        names += [f"{metric}_{role}" for role in (*sides, *([] if pair.is_single else ["delta"]))]
        names += [f"{metric}_ratio"] if every and not pair.is_single else []
    return [*names, *(["status", "match", "step_candidate", "host_candidate"] if every and not pair.is_single else [])]


@cached_per_pair
def _by_skew(pair: Pair) -> pd.DataFrame:
    """The diff, largest skew of the candidate first."""
    rows = pair.diff("hosts")
    skew = rows["busy_skew_us_candidate"].fillna(rows["busy_skew_us_baseline"]).astype("float64")
    return rows.loc[skew.sort_values(ascending=False, kind="stable").index].reset_index(drop=True)


def _why_not(pair: Pair) -> str:
    if not any(len(run.host_names) > 1 or len(run.devices) > 1 for run in pair.runs):
        return "The runs have one host and at most one device."
    if groupings(pair):
        return ""
    names = " and ".join(as_code(run.name) for _, run in pair.shown)
    return (
        f"{names} {'has' if pair.is_single else 'have'} no steps on more than one host or device, so there is nothing "
        "to compare between hosts."
    )


def _host_parts(pair: Pair, options: Options) -> Any:
    """The parts of the chosen step, or of the average one, of each host."""
    if not groupings(pair):
        return None
    return host_parts.draw(pair, _parts_of(pair, options), every_host=options.every_host)


def _parts_of(pair: Pair, options: Options) -> HostParts:
    return HostParts.of(pair, steps_by(pair, options.by), options.by, options.at_step)


MAPS = ("hosts_baseline", "hosts_candidate", "hosts_change")
CHARTS: dict[str, Make] = {
    **{name: partial(_heat_map, which=which) for which, name in enumerate(MAPS)},
    "host_parts": _host_parts,
}
VIEW = View("hosts", "Hosts", blocks, CHARTS, _why_not, HOW_TO_CAPTURE, Options)


def host_links(pair: Pair, rows: pd.DataFrame, order: Sequence[str], name: str) -> Iterator[Block]:
    """The links for the host `name`; `rows` are the steps of the candidate's hosts, which `order` has slowest first."""
    found = []
    if name in pair.baseline.host_names:
        shown = [one for one in map(view, LINKED) if not one.why_not(pair)]
        found = [Link(one.title, one.name, host=name) for one in shown]
    own = rows[(rows["name"] == name) & rows["included"].astype(bool)]
    step = own.iloc[int(own["busy_us"].argmax())]
    moment = links.Moment(0 if pair.is_single else 1, float(step["start_us"]), float(step["duration_us"]))
    found.append(links.to_moment(pair, moment, str(step["host"]), f"Show step {step['place']} in timeline"))
    yield Links([*found, *_beside(pair, rows, order, name, step)])


def _beside(pair: Pair, rows: pd.DataFrame, order: Sequence[str], name: str, step: pd.Series) -> Iterator[Link]:
    """A link to that step of the host beside the median of the others."""
    others = [other for other in order if other != name]
    if not others:
        return
    other = others[len(others) // 2]
    same = rows[(rows["name"] == other) & (rows["place"] == step["place"])]
    if same.empty:
        return
    hosts = str(same["host"].iloc[0]), str(step["host"])
    label = f"Show {as_markdown(hosts[1])} beside {as_markdown(hosts[0])} in timeline"
    yield links.to_hosts(pair, pair.candidate, hosts, int(same["step"].iloc[0]), label)
