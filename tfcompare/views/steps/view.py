"""What changed, on one page: the answer, what to try next, and the steps of all runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import pandas as pd

from tfcompare.compare.pair import Pair
from tfcompare.compare.side import Side
from tfcompare.compare.steps.step_kinds import included_steps, kinds_of
from tfcompare.tables.slow_steps import SLOW_RATIO
from tfcompare.tables.step_times import on_slowest_host, positions_in_run
from tfcompare.units import format_time_us
from tfcompare.views import answer, links
from tfcompare.views.answer import TOP
from tfcompare.views.blocks import MORE, Beside, Block, Chart, Facts, Link, Links, Live, Section, Text, later
from tfcompare.views.candidates import view as candidates
from tfcompare.views.options import option
from tfcompare.views.pair_words import stand_ins
from tfcompare.views.steps import attribution as step_attribution
from tfcompare.views.steps import charts as steps
from tfcompare.views.steps import part_charts as step_parts
from tfcompare.views.steps import source_lines
from tfcompare.views.steps.dashboard import gap_matters, gap_sentence
from tfcompare.views.steps.figures import has_step_times, may_draw, steps_of
from tfcompare.views.steps.words import sentences
from tfcompare.views.view import Make, View

DRAWN_CANDIDATES = 4
"""The number of candidates that can be distinguished in one chart."""
MOST_ON_ONE_SCALE = 4.0
AXIS_ROOM = 1.05
_STEPS_AS = {"time": "step time", "part": "by part", "distribution": "distribution", "all": "all three"}
STEPS_OF_A_HUNDREDTH = 100
"""Below so many steps their 99th percentile is hardly anything but the longest one."""

SLOW = (
    "Slow: more than 1.5 times the median of the run's steps, and 5 robust standard deviations above it. Slow steps "
    "count in full. A stray, which is the only step far beyond all others, is excluded unless strays are counted."
)


@dataclass(frozen=True)
class Options:
    """How the steps are shown, all three ways where nothing can be clicked; `top`: how many ops, 0 for all; `short`:
    whether suggestions without evidence are left out."""

    steps_as: Literal["time", "part", "distribution", "all"] = option(
        "time", "Show as", _STEPS_AS, address="steps_view"
    )
    top: int = option(TOP, "Ops", help=f"The number of ops that changed most, 0 for all (default: {TOP})")
    short: bool = option(False, "Short", help="Without suggestions for which the profile shows nothing")


def _also_worth_trying(pair: Pair, options: Options) -> Iterator[Block]:
    if not options.short and (also := pair.cached("also", lambda: list(answer.also_worth_trying(pair)))):
        yield Section("Also worth trying", also)


def blocks(pair: Pair, options: Options) -> Iterator[Block]:
    """The answer beside what to try next, the largest changes and what explains them, and the typical step; the largest
    idle gap where it matters. The rest is one click away."""
    yield from pair.cached("first", lambda: list(answer.first(pair)))
    why = pair.cached("why", lambda: list(answer.why(pair)))
    advice = partial(pair.cached, "advice", lambda: list(answer.advice(pair)))
    beside: list[Block] = [Section("What to try next", advice, is_open=True)]
    if places := [] if pair.is_single else pair.cached("first place", lambda: list(answer.places(pair))[:1]):
        beside.append(Links(places))  # to the place of the largest part of the change
    yield from [Beside([why, beside])] if why else beside
    yield from pair.cached(("changes", options.top), lambda: list(answer.changes(pair, max(options.top, 0))))
    yield from answer.below(pair)
    if not pair.are_unrelated:
        yield Live("typical_step")
    if any(has_step_times(run) for _, run in pair.shown):
        gap = later(partial(pair.cached, "gaps", lambda: list(_gaps(pair))))
        is_first = gap_matters(answer.side_facts(pair)[: len(pair.shown)])
        yield from [gap] if is_first else []
        yield Section(MORE, partial(_more, pair, options, [] if is_first else [gap]))
    else:
        yield from source_lines.changes(pair)
        yield later(partial(_also_worth_trying, pair, options))


def _more(pair: Pair, options: Options, others: list[Block]) -> Iterator[Block]:
    """Every step, the time by source line, the others, and what the profile shows nothing for."""
    can_choose = may_draw(run.steps for run in pair.among.runs if has_step_times(run))
    yield Section("Steps", partial(_steps, pair, options), True, ["steps_as"] if can_choose else [], SLOW)
    yield from source_lines.changes(pair)
    yield from others
    yield later(partial(_also_worth_trying, pair, options))


def _steps(pair: Pair, options: Options) -> Iterator[Block]:
    """Every step of all runs, in the chosen way, and links to the longest of those that are slow."""
    every = options.steps_as == "all"
    if every or options.steps_as == "time":
        yield Chart("step_times", partial(CHARTS["step_times"], pair, options), _step_times(pair))
    if every or options.steps_as == "distribution":
        yield Chart("step_distribution", partial(CHARTS["step_distribution"], pair, options))
    if every or options.steps_as == "part":
        yield from _by_part(pair)
    if len(pair.among.runs) > DRAWN_CANDIDATES + 1 and options.steps_as != "part":
        yield Text(
            f"The baseline, the first {DRAWN_CANDIDATES} candidates and the one shown in detail are drawn.", "quiet"
        )
    if found := pair.cached("slow steps", lambda: list(_slow_steps(pair))):
        yield Links(found)


def _step_times(pair: Pair) -> Facts:
    """The included steps of each capture, and those of each kind if there are several: how many, and how long."""
    timed = [
        (f"{called} ({name})" if name else called, capture, host)
        for called, (side, _) in zip(pair.called, pair.shown, strict=False)
        for name, capture, host in side.named_captures
        if has_step_times(capture)
    ]
    shares = [0.95]
    if max((run.info.steps_included for _, run, _ in timed), default=0) >= STEPS_OF_A_HUNDREDTH:
        shares.append(0.99)
    rows = []
    for name, run, host in timed:
        frame, included = steps_of(run, host), included_steps(run, host)
        of_kinds = [(f"{name}, {kind}", included[included["kind"] == kind]) for kind in kinds_of(run, host)]
        for label, counted in [(name, included), *of_kinds]:
            times = counted["duration_us"]
            figures = (times.mean(), times.median(), *times.quantile(shares), times.max())
            rows.append([label, f"{len(times):,} of {len(frame):,}", *map(format_time_us, figures)])
    percentiles = [f"{share * 100:.0f}th percentile" for share in shares]
    header = ["Step times", "Included", "Mean", "Median", *percentiles, "Longest"]
    return Facts(header, rows, range(1, len(header)), optional=range(4, len(header)))


def _by_part(pair: Pair) -> Iterator[Block]:
    """Every step of each run by its parts; on one scale unless that would flatten the shorter steps."""
    roles = [role for role, (_, run) in enumerate(pair.shown) if has_step_times(run)]
    frames = step_attribution.attributed_steps(pair)
    shown = [frames[role] for role in roles]
    ends = [steps.axis_end([frame], "duration_us") or float(frame["duration_us"].max()) for frame in shown]
    is_one_scale = len(roles) > 1 and max(ends) <= MOST_ON_ONE_SCALE * min(ends)
    top_us = AXIS_ROOM * max(ends) if is_one_scale else None
    names = ("step_parts_baseline", "step_parts_candidate")
    yield Beside([[Chart(names[role], partial(_step_parts, pair, None, role=role, top_us=top_us))] for role in roles])
    scales = "Each run has its own scale." if len(roles) > 1 and not is_one_scale else ""
    if note := " ".join(filter(None, [scales, stand_ins(pair)])):
        yield Text(note, "quiet")


def _slow_steps(pair: Pair) -> Iterator[Link]:
    """A link to the longest step of each run that has slow steps or a stray, which the verdict tells of, beside the
    step of its host that is nearest to the usual one."""
    for name, (_, run) in zip(pair.marked, pair.shown, strict=False):
        if sentences(run, pair.host_of(run), name):
            every = run.table("steps")
            every = every.assign(number=every["step"], position=positions_in_run(every))
            steps = every if (host := pair.host_of(run)) is None else every[every["host"] == host]
            counted = steps[steps["included"].astype(bool)]
            usual_us = counted.groupby("host")["duration_us"].median()
            rows = on_slowest_host(steps).query("included or stray")
            rows = rows[rows["duration_us"] > SLOW_RATIO * rows["host"].map(usual_us)]
            if rows.empty:  # long beside other hosts alone, or a stray on another host
                continue
            longest = rows.sort_values("duration_us").iloc[-1]
            of_host = counted[(counted["host"] == longest["host"]) & (counted["position"] != longest["position"])]
            usual = of_host.loc[(of_host["duration_us"] - usual_us[longest["host"]]).abs().idxmin()]
            of_run = "" if pair.is_single else f" of {name}"
            label = f"Show step {longest['position']}{of_run} beside step {usual['position']}, a usual one, in timeline"
            numbers = int(usual["number"]), int(longest["number"])
            yield links.to_two_steps(pair, run, str(longest["host"]), numbers, label)


def _gaps(pair: Pair) -> Iterator[Block]:
    """The largest idle gap of each run's steps, and between which ops it is."""
    every = zip(pair.marked, pair.shown, answer.side_facts(pair), strict=False)
    for side, (name, (_, run), facts) in enumerate(every):
        if has_step_times(run):
            sentence = f"**Largest idle gap{'' if pair.is_single else f', {name}'}:** {gap_sentence(facts)}"
            yield Links([] if facts.gap is None else list(links.to_gap(pair, side, facts.gap)), sentence)


def _series(pair: Pair) -> list[tuple[Side, pd.DataFrame]]:
    """The steps of all captures of the runs; none of a candidate that is not drawn, so that the others keep their
    colours."""
    series = []
    for side in pair.among.sides:
        is_drawn = side.position <= DRAWN_CANDIDATES or side.run is pair.candidate
        for name, capture, host in side.named_captures:
            frame = steps_of(capture, host)
            shown = frame if is_drawn and has_step_times(capture) else frame.iloc[:0]
            series.append((replace(side, name=name or side.name), shown))
    return series


def _over_steps(pair: Pair, _options: Any, make: Callable[[list[tuple[Side, pd.DataFrame]]], Any]) -> Any:
    series = _series(pair)
    return make(series) if may_draw(frame for _, frame in series) else None


def _step_parts(pair: Pair, _options: Any, role: int, top_us: float | None = None) -> Any:
    if role >= len(pair.shown) or not has_step_times(pair.runs[role]):
        return None
    frames = step_attribution.attributed_steps(pair)
    return step_parts.parts_of_steps(pair.sides[role], frames[role], top_us) if may_draw([frames[role]]) else None


OF_ALL_RUNS: dict[str, Make] = {
    "step_times": partial(_over_steps, make=steps.step_times),
    "step_distribution": partial(_over_steps, make=steps.step_distribution),
}
"""Charts of all runs, not of a pair alone."""
CHARTS: dict[str, Make] = {
    "waterfall": answer.waterfall,
    "average_step": answer.average_step,
    **OF_ALL_RUNS,
    "step_parts_baseline": partial(_step_parts, role=0),
    "step_parts_candidate": partial(_step_parts, role=1),
}
VIEW = View("overview", "Overview", blocks, CHARTS, options=Options, of_several=candidates.ranking)
