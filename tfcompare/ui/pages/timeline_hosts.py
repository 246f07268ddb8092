"""Which hosts the timeline shows: one of each run, or two beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import streamlit as st

from tfcompare.charts.style import shorten_distinct
from tfcompare.compare.attribution import attributed_hosts
from tfcompare.compare.matching.matching import host_counterparts
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.side import letter
from tfcompare.markdown import as_code
from tfcompare.run import Run
from tfcompare.tools.timeline.host_pair import HostPair, compare_hosts, with_itself
from tfcompare.ui.pages.timeline_steps import STEP_KEYS
from tfcompare.views.links import ANOTHER_STEP, BESIDE, HOST, host_text

NAME_LETTERS = 40
_OF_HOSTS = ("at", "window", "range", "shift", "span", STEP_KEYS[1])
"""Parameters of the page's address that are of the hosts shown."""


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
    def labels(self) -> list[str]:
        """The names in Markdown."""
        return [as_code(name) for name in self.names] if self.hosts else self.names


def of_runs(pair: Pair, host: str) -> ShownHosts:
    """A host of the baseline, and its counterpart in the candidate."""
    return ShownHosts(pair, host, pair.letters)


def choose(pair: Pair) -> ShownHosts:
    """The widgets that choose the hosts; none for runs with one host, and if one was chosen in the sidebar."""
    if (host := pair.host_of(pair.baseline)) is not None:
        return of_runs(pair, host)
    every = {host_text(pair, run, host): (run, host) for _, run in pair.shown for host in run.host_names}
    if len(every) == len(pair.shown) and st.query_params.get(BESIDE) != ANOTHER_STEP:
        return of_runs(pair, pair.baseline.host_names[0])
    if (plain := st.query_params.get(HOST)) in pair.baseline.host_names and plain not in every:
        st.session_state[HOST] = host_text(pair, pair.baseline, plain)  # as older links name it
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        slowest = host_text(pair, pair.baseline, attributed_hosts(pair)[0])
        first = st.selectbox(
            "Host", list(every), list(every).index(slowest), key=HOST, bind="query-params", width=300,
            on_change=_hosts_changed,
        )  # fmt: skip
        ours = every[first]
        counterpart = _counterpart(pair, ours)
        others = [text for text, theirs in every.items() if theirs not in (ours, counterpart)]
        beside = st.selectbox(
            "Beside", [_usual(pair, ours[0]), *others, ANOTHER_STEP], key=BESIDE, bind="query-params", width=300,
            on_change=_hosts_changed, help="Two hosts of one run are aligned at the end of the collective in which "
            "they wait for each other",
        )  # fmt: skip
    if beside == ANOTHER_STEP:
        return _of_steps(pair, ours)
    if beside in every:
        return _of_hosts(pair, ours, every[beside])
    host = ours[1] if ours[0] is pair.baseline else counterpart[1] if counterpart else pair.baseline.host_names[0]
    return of_runs(pair, host)


def _usual(pair: Pair, run: Run) -> str:
    """What stands beside a host of `run` if nothing else was chosen."""
    if pair.is_single:
        return "no other host"
    return f"same host of {letter(pair.position if run is pair.baseline else 0)}"


def _counterpart(pair: Pair, ours: tuple[Run, str]) -> tuple[Run, str] | None:
    """The host that is paired with this one in the other run."""
    if pair.is_single:
        return None
    other = pair.candidate if ours[0] is pair.baseline else pair.baseline
    host = host_counterparts(ours[0].host_names, other.host_names).get(ours[1])
    return (other, host) if host is not None else None


def _of_hosts(pair: Pair, ours: tuple[Run, str], theirs: tuple[Run, str]) -> ShownHosts:
    key = "hosts in the timeline", ours[0].id, ours[1], theirs[0].id, theirs[1]
    hosts = pair.among.cached(key, partial(compare_hosts, ours, theirs))
    names = [ours[1], theirs[1]] if hosts.steps is not None else [host_text(pair, *side) for side in (ours, theirs)]
    both = pair_with(hosts.comparison)
    return ShownHosts(both, ours[1], shorten_distinct(names, NAME_LETTERS), hosts)


def _of_steps(pair: Pair, ours: tuple[Run, str]) -> ShownHosts:
    """Two steps of one host."""
    key = "steps in the timeline", ours[0].id, ours[1]
    hosts = pair.among.cached(key, partial(with_itself, *ours))
    is_alone = len(ours[0].host_names) == 1
    name = letter(0 if ours[0] is pair.baseline else pair.position) if is_alone else host_text(pair, *ours)
    both = pair_with(hosts.comparison)
    return ShownHosts(both, ours[1], [name, f"{name} again"], hosts)


def _hosts_changed() -> None:
    """Forget what the page's address says of other hosts, but stay at the step."""
    for name in _OF_HOSTS:
        st.query_params.pop(name, None)
    if step := st.session_state.get(STEP_KEYS[0]):
        st.query_params[STEP_KEYS[0]] = step
