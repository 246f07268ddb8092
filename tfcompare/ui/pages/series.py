"""The Series page: its controls choose runs of a program, their order and the metric; below is the view of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import Any, NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from tfcompare import schema, settings
from tfcompare.run import load
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.logdir.metadata import COMMIT
from tfcompare.sources.programs import Program, most_frequent, programs_of
from tfcompare.store.frame_builders import reader_within
from tfcompare.ui.frame import sidebar
from tfcompare.ui.frame.loading import QUIET_S, for_client, session
from tfcompare.ui.frame.shell import Page
from tfcompare.ui.pages.home_filters import matching
from tfcompare.ui.widgets.renderer import Renderer
from tfcompare.views.series import figures as tool
from tfcompare.views.series.changes import Series
from tfcompare.views.series.figures import Metric
from tfcompare.views.series.view import VIEW
from tfcompare.views.series.words import KINDS

FEWEST = 3
MOST_READ = 200
"""At most this many runs are read that are not in a store."""
_BY_TIME = "time"
_CACHED = "tfcompare.series"
_NAMING = (
    "Runs with the same `program` in `tfcompare.json`, or from `tfcompare ingest --tag program=…`, are of one program. "
    "Without it, those whose folders have the same names, apart from dates, commits and build numbers."
)
_HOW_TO_GET_ONE = """\
tfcompare ingest logs/tonight --store runs/ --tag program=my_model --tag commit=$(git rev-parse HEAD)
tfcompare serve --store runs/"""


class _Progress:
    """Shows how many runs are read, and how long that will still take, if it takes long."""

    slot: DeltaGenerator
    started: float

    def __call__(self, done: int, total: int) -> None:
        if done == 0:
            self.slot, self.started = st.empty(), monotonic()
        elif done == total:
            self.slot.empty()
        elif (passed := monotonic() - self.started) > QUIET_S:
            left = f"about {passed / done * (total - done):.0f} s left"
            self.slot.progress(done / total, text=f"Reading run {done + 1:,} of {total:,}, {left}")


def show(view: Page) -> None:
    """The controls, and what is shown of the series that they choose; it is cached as long as that is the same."""
    chosen = runs, metric, by = _choose(view)
    key = chosen, [run.stat_key for run in runs]
    if _CACHED not in st.session_state or st.session_state[_CACHED][0] != key:
        # Reads a run within the server's limits, for this session.
        build = for_client(reader_within(settings.from_environment().read_limits), session())
        st.session_state[_CACHED] = key, Series.of(runs, metric, by, _Progress(), partial(load, build=build))
    Renderer(st.session_state[_CACHED][1], {}).show_view(VIEW)


def _choose(view: Page) -> tuple[tuple[FoundRun, ...], Metric, str]:
    """(the runs in order, the metric, the metadata that orders the runs: empty for time), as the controls have them.

    Stops the page if fewer than `FEWEST` runs are left, or no metric is chosen.
    """
    found = tool.ordered(view.search.without_hidden())
    if len(found) < FEWEST:
        _stop_without_series(view, f"A series needs at least {FEWEST} runs, and there are {len(view.found)}.")
    large = [program for program, count in Counter(programs_of(found).values()).items() if count >= FEWEST]
    if not large:
        why = f"A series needs at least {FEWEST} runs of one program; no program here has that many."
        _stop_without_series(view, why)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        of_program = _of_program(found, large, view.selection.baseline)
        metric = _metric()
        by, runs = _choose_filters(view, of_program)
    others = len(found) - len(of_program)
    if others:
        st.caption(f"{others:,} {'runs' if others > 1 else 'run'} of other programs or devices not shown", help=_NAMING)
    if metric is None:
        st.info("Name an op or kernel to see its time over the runs; `*` stands for any text, as in `*Conv2D*`.")
        st.stop()
    if len(runs) < FEWEST:
        st.info(f"A series needs at least {FEWEST} runs, and {len(runs)} match: change the filter.")
        st.stop()
    return _newest_runs(runs), metric, by


def _stop_without_series(view: Page, why: str) -> NoReturn:
    """Say why there is no series and how to get one, and stop the page."""
    st.markdown(
        f"### No series yet\n\n{why} A series shows a program's step time over weeks, and where it changed. Put each "
        "capture into a store after it was made, from a script or from continuous integration, and open the store:"
    )
    st.code(_HOW_TO_GET_ONE, language="sh")
    st.caption(_NAMING)
    sidebar.link(sidebar.HOME, "Home", view.selection, icon=":material/home:")
    st.stop()


def _of_program(found: Sequence[FoundRun], large: Sequence[Program], baseline: str | None) -> list[FoundRun]:
    """The runs of the chosen one of the `large` programs; which one is only asked if there are several.

    It is that of the `baseline`, or if that is none of them the most frequent one, until another is chosen.
    """
    programs = programs_of(found)
    chosen = most_frequent([program for program in programs.values() if program in large])
    if baseline in programs and programs[baseline] in large:
        chosen = programs[baseline]
    if len(large) > 1:
        offered = sorted(large)
        texts, usual = [program.text for program in offered], offered.index(chosen)
        bound: dict[str, Any] = {"key": "program", "bind": "query-params", "help": _NAMING}
        chosen = offered[texts.index(st.selectbox("Program", texts, usual, width=230, **bound))]
    return [run for run in found if programs[run.id] == chosen]


def _metric() -> Metric | None:
    kinds = {label: kind for kind, label in KINDS.items()}
    kind = kinds[st.selectbox("Metric", list(kinds), key="metric", bind="query-params", width=170)]
    if kind == tool.PART:
        labels = {schema.STEPS.column(part).label: part for part in schema.STEP_PARTS}
        return Metric(kind, labels[st.selectbox("Part", list(labels), key="part", bind="query-params", width=200)])
    if kind not in (tool.OP, tool.KERNEL):
        return Metric(kind)
    meaning = "Name or, of ops, type; * stands for any text. The times of all that match are added up."
    bound: dict[str, Any] = {"key": "pattern", "bind": "query-params", "placeholder": "*Conv2D*", "width": 220}
    pattern = st.text_input("Name", help=meaning, **bound)
    return Metric(kind, pattern.strip()) if pattern and pattern.strip() else None


def _choose_filters(view: Page, found: Sequence[FoundRun]) -> tuple[str, list[FoundRun]]:
    """(the metadata that orders the runs, the runs that match the filters in that order)."""
    tags = {run.id: view.search.tags(run) for run in found}
    options = sorted({tag for each in tags.values() for tag in each if not tag.startswith(f"{COMMIT}=")})
    look: dict[str, Any] = {"bind": "query-params", "icon": ":material/filter_alt:", "placeholder": "words or tags"}
    look |= {"help": "Only runs with all of these words in their name, path, hosts or tags"}
    words = st.text_input("Runs", key="runs", width=190, **look)
    wanted = set()
    if options:
        look = {"bind": "query-params", "placeholder": "Any", "select_all": False}
        wanted = set(st.multiselect("Tags", options, key="tags", width=170, **look))
    keys = sorted({key for run in found for key, _ in run.metadata.values})
    by = _BY_TIME
    if keys:
        by = st.selectbox("Order", [_BY_TIME, *keys], key="order", bind="query-params", width=120)
    chosen = [run for run in matching(found, words or "", tags) if not wanted or wanted & set(tags[run.id])]
    by = "" if by == _BY_TIME else by
    return by, tool.ordered(chosen, by)


def _newest_runs(runs: Sequence[FoundRun]) -> tuple[FoundRun, ...]:
    """The runs without the oldest of those that would have to be read from profiles, if these are many."""
    unread = [run.id for run in runs if not run.is_stored]
    left_out = set(unread[:-MOST_READ])
    if left_out:
        st.caption(
            f"The {len(left_out):,} oldest runs are left out: at most {MOST_READ} are read from profiles. "
            "`tfcompare ingest` puts them into a store, from which thousands open at once."
        )
    return tuple(run for run in runs if run.id not in left_out)
