"""The link from the Overview to a long step beside a usual one."""

from __future__ import annotations

import pytest

from tests.frames.tables import run_of
from tests.views.flat import step_links
from tests.xspace_builder import Event, event, line, plane, space
from tfcompare.compare.pairs import pairs_of
from tfcompare.comparison import compare

STEPS, LONG = 12, 7


def host(first_step: int, longer_us: float) -> bytes:
    """Steps of 1,000 µs, but for the one at position `LONG`, which is longer; they are numbered from `first_step`."""
    events, at_us = list[Event](), 0.0
    for position in range(1, STEPS + 1):
        length_us = 1_000 + (longer_us if position == LONG else 10 * (position % 3))
        events.append(event("train", at_us, length_us, _r=1, step_num=first_step + position - 1))
        events.append(event("layer:MatMul", at_us + 10, length_us - 20))
        at_us += length_us + 10
    return space(plane("/host:CPU", line("python", *events)))


@pytest.mark.parametrize("first_step", [1, 100])
def test_it_leads_to_the_step_of_the_host_however_hosts_number_theirs(first_step: int) -> None:
    run = run_of(host(1, 3_000), host(first_step, 4_000))
    (pair,) = pairs_of(compare(run, run))
    (link,) = [one for one in step_links(pair) if "usual" in one.label]
    assert link.label.startswith(f"Show step {LONG} beside step ")
    usual, longest = (int(link.parameters[key]) for key in ("step_a", "step_b"))
    assert longest == first_step + LONG - 1
    assert link.label == f"Show step {LONG} beside step {usual - first_step + 1}, a usual one, in timeline"
    steps = run.table("steps", host="b").set_index("step")["duration_us"]
    assert steps[longest] == 5_000
    assert 1_000 <= steps[usual] <= 1_020
