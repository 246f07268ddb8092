"""Which hosts the timeline shows: one of each run, or two beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tfcompare.compare.attribution import attributed_hosts
from tfcompare.compare.matching.matching import host_counterparts
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.side import letter
from tfcompare.run import Run
from tfcompare.text import as_code
from tfcompare.views.chart_style import shorten_distinct
from tfcompare.views.links import ANOTHER_STEP, host_text
from tfcompare.views.timeline.host_pair import HostPair, compare_hosts, with_itself

NAME_LETTERS = 40


@dataclass(frozen=True, eq=False)
class ShownHosts:
    """What is on the axis: a host of each of two runs, of one run, or, with `hosts`, two chosen hosts.

    `pair` compares them, `host` is that of its baseline. `names` are what texts call them, in plain text, and `marks`
    what stands beside their lanes.
    """

    pair: Pair
    host: str
    names: list[str]
    hosts: HostPair | None = None

    @property
    def marks(self) -> list[str]:
        """One letter or digit for each side."""
        return ["1", "2"] if self.hosts else self.names

    @property
    def called(self) -> list[str]:
        """What sentences call them, in plain text."""
        return list(self.pair.called)[: len(self.names)] if self.pair.by_name else self.names

    @property
    def labels(self) -> list[str]:
        """`called` in Markdown."""
        return list(map(as_code, self.called)) if self.hosts or self.pair.by_name else self.names

    @property
    def common_steps(self) -> dict[int, int] | None:
        """The steps of two hosts of one run, as `HostPair.steps`; None for all others."""
        return self.hosts.steps if self.hosts else None


def shown_by_default(pair: Pair) -> ShownHosts:
    """The host whose steps are attributed, and its counterpart in the candidate."""
    return ShownHosts(pair, pair.cached("attributed hosts", partial(attributed_hosts, pair))[0], pair.letters)


def first_hosts(pair: Pair) -> dict[str, tuple[Run, str]]:
    """The hosts that can be chosen, the default first; none if one host is compared."""
    if pair.host_of(pair.baseline) is not None:
        return {}
    every = {host_text(pair, run, host): (run, host) for _, run in pair.shown for host in run.host_names}
    slowest = host_text(pair, pair.baseline, shown_by_default(pair).host)
    return {slowest: every[slowest]} | every


def hosts_beside(pair: Pair, first: str) -> dict[str, tuple[Run, str] | None]:
    """What can be beside the host `first`: its counterpart, another host, or another step of it."""
    if (ours := first_hosts(pair).get(first)) is None:
        return {}
    other = letter(pair.position if ours[0] is pair.baseline else 0)
    usual = "no other host" if pair.is_single else f"same host of {other}"
    theirs = _counterpart(pair, ours)
    every = [(run, host) for _, run in pair.shown for host in run.host_names]
    others = {host_text(pair, *one): one for one in every if one not in (ours, theirs)}
    return {usual: theirs, **others, ANOTHER_STEP: ours}


def shown_hosts(pair: Pair, first: str, beside: str) -> ShownHosts:
    """The hosts of these names, as `first_hosts` and `hosts_beside` list them."""
    ours, theirs = first_hosts(pair).get(first), hosts_beside(pair, first).get(beside)
    if ours is None:
        return shown_by_default(pair)
    run, own = ours
    if beside == ANOTHER_STEP:
        hosts = pair.among.cached(("steps in the timeline", run.id, own), partial(with_itself, *ours))
        is_alone = len(run.host_names) == 1
        name = letter(0 if run is pair.baseline else pair.position) if is_alone else host_text(pair, *ours)
        return ShownHosts(pair_with(hosts.comparison), own, [name, f"{name} again"], hosts)
    if theirs is not None and theirs != _counterpart(pair, ours):
        key = "hosts in the timeline", run.id, own, theirs[0].id, theirs[1]
        hosts = pair.among.cached(key, partial(compare_hosts, ours, theirs))
        names = [own, theirs[1]] if hosts.steps is not None else [host_text(pair, *side) for side in (ours, theirs)]
        return ShownHosts(pair_with(hosts.comparison), own, shorten_distinct(names, NAME_LETTERS), hosts)
    host = own if run is pair.baseline else theirs[1] if theirs else pair.baseline.host_names[0]
    return ShownHosts(pair, host, pair.letters)


def _counterpart(pair: Pair, ours: tuple[Run, str]) -> tuple[Run, str] | None:
    """The host that is paired with this one in the other run."""
    if pair.is_single:
        return None
    other = pair.candidate if ours[0] is pair.baseline else pair.baseline
    host = host_counterparts(ours[0].host_names, other.host_names).get(ours[1])
    return (other, host) if host is not None else None
