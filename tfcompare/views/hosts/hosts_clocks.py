"""Who reaches the collective last, with the offsets of the hosts' clocks and their errors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tfcompare.compare.pair import Pair
from tfcompare.markdown import as_code
from tfcompare.text import capitalized
from tfcompare.tools.hosts.host_clocks import MOST_HOSTS, Clocks, clocks
from tfcompare.units import format_time_us
from tfcompare.views.blocks import Block, Facts, Section, Text

MOST_LAST = 3
"""Hosts that the sentence names."""
HELP = (
    "A collective ends on all hosts at nearly the same time. That gives the offset between their profiles; how much "
    "single steps scatter is its error. Hosts that arrive closer together than the error have no order."
)


def blocks(pair: Pair) -> Iterator[Block]:
    """A sentence on each run whose hosts can be put on one clock, and its offsets."""
    if of_runs := [block for position in range(len(pair.shown)) for block in _of_side(pair, position)]:
        yield Section("Who reaches the collective last", of_runs, True, help=HELP)


def _of_side(pair: Pair, position: int) -> Iterator[Block]:
    run = pair.runs[position]
    found = pair.cached(("clocks", run.id), partial(clocks, run))
    if found is None:
        return
    yield Text(f"{'' if pair.is_single else f'**{pair.marked[position]}:** '}{_last(found)}")
    if len(run.host_names) > MOST_HOSTS:
        yield Text(f"Of the {MOST_HOSTS} slowest of {len(run.host_names):,} hosts.", "quiet")
    rows = [
        [str(host), format_time_us(offset), format_time_us(error), str(found.last[host])]
        for host, offset, error in found.offsets[["host", "offset_us", "error_us"]].itertuples(index=False, name=None)
    ]
    table = Facts(["Host", "Offset", "Error (95 %)", "Last in steps"], rows, (1, 2, 3))
    yield Section(f"Offsets of the profiles{'' if pair.is_single else f' of {pair.called[position]}'}", [table])


def _last(found: Clocks) -> str:
    """Who was last in how many steps."""
    counts = sorted(((count, host) for host, count in found.last.items() if count), reverse=True)
    parts = [f"{as_code(host)} in {count} of {found.steps} steps" for count, host in counts[:MOST_LAST]]
    if others := counts[MOST_LAST:]:
        which = "another host" if len(others) == 1 else f"{len(others):,} other hosts"
        parts.append(f"{which} in {sum(count for count, _ in others)}")
    if found.undecided:
        which = "all" if found.undecided == found.steps else str(found.undecided)
        steps = f"{which} of {found.steps} steps"
        parts.append(f"unknown in {steps}, as hosts arrive closer together than the clock error")
    return f"{capitalized('; '.join(parts))}."
