"""Two runs on one axis of time: which steps are compared, how long they are, and where the candidate falls behind."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd

from tfcompare import schema
from tfcompare.compare.cache import Cache
from tfcompare.compare.pair import Pair
from tfcompare.errors import TfcompareError
from tfcompare.schema import SIDES
from tfcompare.text import as_code, as_markdown
from tfcompare.units import format_delta, format_time_us
from tfcompare.views.blocks import Block, Choose, Facts, Finding, Live, Table, Text, Timeline, later
from tfcompare.views.chart_style import side_colour
from tfcompare.views.columns import shown as column_of
from tfcompare.views.links import ANOTHER_STEP, Moment, numbers_in
from tfcompare.views.options import option
from tfcompare.views.pair_words import stand_ins
from tfcompare.views.timeline import words as sentences
from tfcompare.views.timeline.aligned import Aligned, align
from tfcompare.views.timeline.component import Labels, component_data, state_of
from tfcompare.views.timeline.drawing import Viewport, found
from tfcompare.views.timeline.host_pair import meeting
from tfcompare.views.timeline.hosts import ShownHosts, first_hosts, hosts_beside, shown_hosts
from tfcompare.views.timeline.losses import Loss, losses, window_of
from tfcompare.views.timeline.run_pair import Timelines, open_timelines
from tfcompare.views.timeline.selection import range_table
from tfcompare.views.view import View, by_role
from tfcompare.xspace.space import PS_PER_US

WIDTH_PIXELS = 2_400
START_OF_STEP, END_OF_COLLECTIVE = "start of the step", "end of collective"
MOST_OPS = 300
"""Ops to choose from, the longest."""
STEPS = ("step_a", "step_b")
OF_HOSTS = ("at", "window", "range", "shift", "span", STEPS[1])
"""Parameters of the page's address that are of the hosts shown; the first host's step can be of others, too."""
A_HOST: dict[str, Any] = {"is_list": True, "pixels": 300, "resets": OF_HOSTS, "pins": STEPS[:1]}
HOST_HELP = "With the letter of its run if there are two. By default the slowest"
BESIDE_HELP = "Two hosts of one run are aligned at the end of the collective in which they wait for each other"
AT_HELP = "SIDE:START:LENGTH, in µs since the start of the profile of side 0 or 1: the step then is compared"
ALIGN_HELP = (
    "The start of the step (of two hosts of one run, the end of the collective in which they meet), or the first time "
    "that an op runs in it. Without steps, by default the op that takes longest of those that both runs have"
)
FIND_HELP = "Marks the spans that have all of these words in their name, op or op type"
STRETCH_HELP = "Draw both steps equally long, to compare their order instead of their times"
OF_CANDIDATE = "Step of the candidate"
A_STEP = "by the number that the program gives it. By default the typical step: the one nearest to the mean"

STEP_B_HELP = f"{OF_CANDIDATE}, {A_STEP}"


def _texts(choices: dict[str, Any]) -> dict[str, str]:
    return {text: text for text in choices}


@dataclass(frozen=True)
class Options:
    """Which hosts and steps are compared, where time 0 is, what is marked, and of which range a table is shown."""

    timeline_host: str = option("", "Host", lambda pair, _: _texts(first_hosts(pair)), help=HOST_HELP, **A_HOST)
    timeline_beside: str = option(
        "",
        "Beside",
        lambda pair, options: _texts(hosts_beside(pair, options.timeline_host)),
        help=BESIDE_HELP,
        **A_HOST,
    )
    at: str = option("", "Moment", is_in_address=True, help=AT_HELP)
    step_a: str = option(
        "", "Step", lambda pair, options: step_choices(pair, options, 0), is_in_address=True, help=f"Step, {A_STEP}"
    )
    step_b: str = option(
        "", OF_CANDIDATE, lambda pair, options: step_choices(pair, options, 1), is_in_address=True, help=STEP_B_HELP
    )
    align: str = option(
        "", "Time 0", lambda *of: _texts(_zeros(*of)), is_list=True, pixels=150, resets=["window"], help=ALIGN_HELP
    )
    find: str = option("", "Find", hint="words", pixels=165, icon=":material/search:", help=FIND_HELP)
    stretch: bool = option(False, "Stretch", when=lambda *of: _can_stretch(*of), help=STRETCH_HELP)
    range: str = option("", "Range", is_in_address=True, help="FROM:TO in µs since time 0: a table of what runs in it")


def blocks(pair: Pair, options: Options) -> Iterator[Block]:
    """How long the compared steps are and where the time went, the canvas, and what ran in a range."""
    has_choice = len(first_hosts(pair)) > len(pair.shown) or options.timeline_beside == ANOTHER_STEP
    yield Choose(["timeline_host", "timeline_beside"] if has_choice else [])
    yield Choose(["align", "find", "stretch"], Live("timeline_steps", (options,)))
    yield later(partial(_compared, pair, options))


def _compared(pair: Pair, options: Options) -> Iterator[Block]:
    if not any(len(side.timeline.spans) for side in opened(hosts_of(pair, options)).sides):
        yield Text("The profile holds no events. Capture it again while the program runs.", "notice")
        return
    try:
        compared = compare_steps(pair, options)
    except TfcompareError as error:
        yield Text(f"{as_markdown(error)}.", "notice")
        return
    yield from _headline(compared)
    yield Live("timeline", (options,), later(partial(_without_page, compared, options)))


def _headline(compared: Compared) -> Iterator[Text]:
    """How long the steps are, or which host reaches the collective last."""
    shown, aligned, places = compared.shown, compared.aligned, compared.places
    if shown.pair.is_single:
        yield Text(sentences.alone(aligned, compared.host), help=sentences.WALL_TIME)
    elif shown.common_steps is not None:
        yield Text(sentences.arrivals(aligned, shown.labels), help=sentences.OVERLAP if places else "")
    else:
        yield Text(sentences.lengths(aligned, shown.labels, compared.host), help=sentences.OVERLAP if places else "")
    if shown.hosts:
        ours, theirs = shown.labels
        how = "" if shown.common_steps is None else sentences.aligned_how(aligned, theirs)
        yield Text(f"1: {ours}, 2: {theirs}. {how}", "quiet")
    elif note := stand_ins(shown.pair):
        yield Text(note, "quiet")


def _without_page(compared: Compared, options: Options) -> Iterator[Block]:
    """What was found, the canvas, and the table of the range if one was given."""
    look = Viewport(width_px=WIDTH_PIXELS, stretch=options.stretch, find=options.find)
    if options.find:
        matches = found(compared.aligned, look)
        counts = [int((matches["side"] == side).sum()) for side in range(len(compared.shown.labels))]
        yield Text(sentences.hits(options.find, counts, compared.shown.labels), "quiet")
    yield Timeline(partial(_data_and_state, compared, look), _losses(compared))
    if range_us := numbers_in(options.range, 2):
        yield from _ran_in(compared, look, (min(range_us), max(range_us)))


def _data_and_state(compared: Compared, look: Viewport) -> tuple[dict[str, Any], dict[str, Any]]:
    jumps = sentences.jumps(compared.aligned, look, compared.places, compared.shown.names)
    data = component_data(compared.aligned, look, compared.canvas_labels(), token="compared steps", jumps=jumps)
    return data, state_of(look, range_us=None, by_type=False, shows_idle=False, compact=False)


def _losses(compared: Compared) -> Facts | None:
    """Where the candidate loses or gains most, and when that is."""
    places = compared.places
    if not places:
        return None
    rows = []
    for place in places:
        begin_us, end_us = map(format_time_us, window_of(compared.aligned, Viewport(), place))
        rows.append(
            [sentences.place_of(place, compared.shown.called), format_delta(place.lost_us, "µs"), begin_us, end_us]
        )
    values = [
        Finding(f"loss:{number}", row[0], "µs", math.nan, place.lost_us, is_alone=True)
        for number, (row, place) in enumerate(zip(rows, places, strict=True), start=1)
    ]
    header = [sentences.most(places, compared.shown.called[1]), "Change", "From", "To"]
    return Facts(header, rows, (1, 2, 3), findings=values)


def _ran_in(compared: Compared, look: Viewport, range_us: tuple[float, float]) -> Iterator[Text | Table]:
    """What ran in a range of the common axis, in µs: the range, how much of it ops cover, and a row for each op."""
    rows, coverage = range_table(compared.aligned, look, range_us)
    yield Text(sentences.range_title(range_us), help=sentences.WALL_TIME)
    yield Text(sentences.covered(coverage, compared.shown.labels))
    yield ops_in_range(compared, rows)


def ops_in_range(compared: Compared, rows: pd.DataFrame) -> Table:
    """The table of the ops that ran in a range; `rows` as `range_table` returns them."""
    names = ["op_name", *(["host_or_device"] if rows["host_or_device"].nunique() > 1 else [])]
    names += [*by_role("wall_time_us", (*SIDES, "delta")), *by_role("occurrences")]
    shown = compared.shown
    of_hosts: dict[str, Any] = {}
    for role, host in zip(SIDES, shown.names if shown.hosts else (), strict=False):
        own = [name for name in names if name.endswith(f"_{role}")]
        of_hosts |= {name: replace(column_of(name, schema.OP_STATS), label=host) for name in own}
    alone = shown.pair.is_single
    return Table(
        schema.OP_STATS, "Ops in the range", rows, names, alone, others=of_hosts, is_small=True, address="range_"
    )


@dataclass(frozen=True, eq=False)
class Compared:
    """Two steps with a common time 0, and the places where the candidate loses or gains most."""

    shown: ShownHosts
    aligned: Aligned
    places: Sequence[Loss]

    @property
    def host(self) -> str:
        """The candidate's host as code, if it has others and a host is compared with its counterpart; else empty."""
        is_one_of_several = not self.shown.hosts and len(self.shown.pair.candidate.host_names) > 1
        return as_code(self.aligned.timelines.sides[-1].timeline.host) if is_one_of_several else ""

    def canvas_labels(self, selection: str = "") -> Labels:
        """What the canvas calls the sides; `selection` is it in words."""
        colours = [side_colour(side) for side, _ in self.shown.pair.shown]
        return Labels(self.shown.names, self.shown.marks, colours, selection)


_timelines, _aligned = Cache(2), Cache(4)
"""Of all comparisons: they take about 70 bytes for each event."""


def key_of(shown: ShownHosts) -> tuple[Hashable, ...]:
    """What tells these hosts, as they are compared, from all others."""
    pair = shown.pair
    runs = tuple((side.run.id, *(run.content_id for run in side.runs)) for side in pair.sides)
    return (*runs, pair.per, pair.host, pair.manual_pairs, shown.host)


def hosts_of(pair: Pair, options: Options) -> ShownHosts:
    """The hosts that the options name."""
    return shown_hosts(pair, options.timeline_host, options.timeline_beside)


def opened(shown: ShownHosts) -> Timelines:
    """The timelines of these hosts; cached."""
    return _timelines.get(key_of(shown), partial(open_timelines, shown.pair, shown.host))


def compare_steps(pair: Pair, options: Options) -> Compared:
    """The steps that the options choose, as `aligned_at`."""
    return aligned_at(hosts_of(pair, options), _steps(pair, options), _zeros(pair, options).get(options.align))


def aligned_at(shown: ShownHosts, steps: tuple[int, ...] | None = None, zero: int | None = None) -> Compared:
    """These steps, or the typical ones, with their start or an op at time 0; cached. Raises the errors of `align`."""

    def make() -> tuple[Aligned, list[Loss]]:
        timelines = opened(shown)
        meets = meeting(shown.hosts, timelines, steps) if shown.hosts and steps else None
        aligned = align(timelines, steps, zero, meets)
        if shown.pair.are_unrelated and not shown.hosts:
            aligned = aligned.without_pairs()
        return aligned, losses(aligned)

    return Compared(shown, *_aligned.get((key_of(shown), steps, zero), make))


def _steps(pair: Pair, options: Options) -> tuple[int, ...] | None:
    """The numbers of the compared steps, None if there are none to choose."""
    offered = [step_choices(pair, options, side) for side in (0, 1)]
    chosen = [
        int(step if step in choices else next(iter(choices)))
        for step, choices in zip((options.step_a, options.step_b), offered, strict=True)
        if choices
    ]
    common = hosts_of(pair, options).common_steps
    return tuple([chosen[0], common[chosen[0]]] if chosen and common is not None else chosen) or None


def step_choices(pair: Pair, options: Options, number: int) -> dict[str, str]:
    """The numbers of the steps to choose of a side, the default first; of two hosts with common steps, those of the
    first host choose both."""
    shown = hosts_of(pair, options)
    timelines, common = opened(shown), shown.common_steps
    if not timelines.all_have_steps or number >= len(timelines.sides) or (number and common is not None):
        return {}
    side = timelines.sides[number]
    if common is not None:
        steps = side.steps[side.steps["step"].isin(list(common))]
        side = replace(side, steps=steps.reset_index(drop=True))
    if not side.has_steps:
        return {}
    default = str(side.typical)
    if (moment := Moment.from_text(options.at)) and moment.side == number:
        before = side.steps["start_ps"] <= moment.start_us * PS_PER_US
        default = str(side.steps["step"][before].iloc[-1] if before.any() else side.steps["step"].iloc[0])
    numbers = list(map(str, side.steps["step"].tolist()))
    return {default: default} | dict(zip(numbers, numbers, strict=True))


def _zeros(pair: Pair, options: Options) -> dict[str, int | None]:
    """What can be at time 0, the default first: rows of the diff of ops by their names."""
    shown = hosts_of(pair, options)
    timelines = opened(shown)
    if timelines.all_have_steps:
        first = END_OF_COLLECTIVE if shown.common_steps else START_OF_STEP
    else:
        first = "longest op" if len(timelines.sides) > 1 else "start"
    rows = timelines.ops_by_time.drop_duplicates("op_name").head(MOST_OPS)
    return {first: None, **dict(zip(rows["op_name"], rows.index.tolist(), strict=True))}


def _can_stretch(pair: Pair, options: Options) -> bool:
    shown = hosts_of(pair, options)
    return not shown.pair.is_single and shown.common_steps is None and opened(shown).all_have_steps


VIEW = View("timeline", "Timeline", blocks, options=Options)
