"""The timeline of the typical step of both runs, or of one, on one axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfcompare.charts.style import side_colour
from tfcompare.charts.timeline.data import Labels, component_data, state_of
from tfcompare.compare.attribution import attributed_hosts
from tfcompare.compare.pair import Pair
from tfcompare.markdown import as_code
from tfcompare.tools.step_series import has_step_times
from tfcompare.tools.timeline import sentences
from tfcompare.tools.timeline.aligned import align
from tfcompare.tools.timeline.drawing import Viewport
from tfcompare.tools.timeline.losses import losses
from tfcompare.tools.timeline.run_pair import open_timelines
from tfcompare.views.blocks import Block, Text, Timeline
from tfcompare.views.view import View

WIDTH_PIXELS = 2_400


def blocks(pair: Pair, options: Any) -> Iterator[Block]:
    """How long the typical steps take and where the time went, and the canvas; nothing without steps."""
    del options
    if not all(has_step_times(run) for _, run in pair.shown):
        return
    host, theirs = attributed_hosts(pair)
    timelines = open_timelines(pair, host)
    if not timelines.all_have_steps:
        return
    aligned = align(timelines)
    places = losses(aligned)
    look = Viewport(width_px=WIDTH_PIXELS)
    if pair.is_single:
        text = sentences.alone(aligned)
    else:
        text = f"{sentences.lengths(aligned, pair.marked)} {sentences.where(aligned, places, pair.marked)}"
    if len(pair.candidate.host_names) > 1:
        text = f"On {as_code(theirs)}: {text[:1].lower()}{text[1:]}"
    data = component_data(
        aligned, look, Labels(pair.letters, pair.letters, [side_colour(side) for side, _ in pair.shown]),
        token="typical step", jumps=sentences.jumps(aligned, look, places),
    )  # fmt: skip
    yield Text(text)
    yield Timeline(data, state_of(look))


VIEW = View("timeline", "Timeline", blocks)
