"""The page that captures a run from running programs, and selects it for comparison."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from tfcompare.errors import TfcompareError
from tfcompare.run import Run
from tfcompare.settings import Settings
from tfcompare.sources.capture.addresses import parse_addresses
from tfcompare.sources.capture.recording import (
    DEVICE_LEVELS,
    HOST_LEVELS,
    HOW_TO_INSTALL,
    LONGEST_MS,
    MOST_RETRIES,
    PYTHON_LEVELS,
    BackgroundRecording,
    Recorded,
    Request,
    Stopped,
    check_name,
)
from tfcompare.sources.folder_permissions import make_private
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.xprof_process import is_installed
from tfcompare.text import as_code, as_markdown
from tfcompare.ui.frame import own_captures, state
from tfcompare.ui.frame.loading import fetch
from tfcompare.ui.frame.search import rescan
from tfcompare.ui.frame.shell import Page
from tfcompare.ui.pages import home_add
from tfcompare.ui.pages.home_runs import browser_zone, recorded_text
from tfcompare.ui.widgets import deleting
from tfcompare.ui.widgets.blocks import show_small_table
from tfcompare.units import format_bytes, format_ms
from tfcompare.views.blocks import Facts

_PREFIX = "tfcompare.capture"
_RECORDING, _PROBLEM, _SELECTED = f"{_PREFIX}.recording", f"{_PREFIX}.problem", f"{_PREFIX}.selected"
_LOOKED_FOR = f"{_PREFIX}.looked_for"
_REDRAW_S = 0.2
_HOST_TRACER = ("0: off", "1: own traces", "2: also ops", "3: also cheap ops")
_OFF_ON = ("0: off", "1: on")
_ADDRESSES_HELP = (
    "Separated by commas: `host:port` of a profiler server; `dns:name:port` for all addresses that DNS has for a name, "
    "such as a headless service of Kubernetes; `tpu:name` or `tpu:zone/name` for all workers of a Cloud TPU. Several "
    "workers become one run with several hosts."
)
_DURATION_HELP = "At least 20 steps are best for comparisons. Longer captures make larger files."
_NAME_HELP = "Captures with the same name are stored in one folder; each is a separate run."
_HOST_HELP = (
    "Host events to capture. 1: only the program's own traces, such as steps; 2: also ops; 3: also cheap ops. Higher "
    "levels slow the program down more."
)
_DEVICE_HELP = "Capture GPUs and TPUs"
_PYTHON_HELP = "Capture every Python function call. This slows the program down a lot."
_RETRIES_HELP = "Further attempts if nothing was captured, for example because the program was waiting"


def show(view: Page) -> None:
    """Show the page below its title."""
    if not own_captures.this_browser_may_record(view.settings):
        st.info(
            "Profiles can be captured only in a browser on the machine that serves this page, and not through a proxy. "
            "Open the page there, use `tfcompare capture`, or start the server with `tfcompare serve --allow-capture`."
        )
        return
    st.markdown(
        "Captures a profile of programs while they run. Each must have started a profiler server:  \n"
        "`tf.profiler.experimental.server.start(6009)` or, in JAX, `jax.profiler.start_server(6009)`."
    )
    if not is_installed():
        st.warning(as_markdown(f"{HOW_TO_INSTALL.capitalize()}. Install it where this server runs."))
        _list_captures(view)
        return
    recording: BackgroundRecording | None = st.session_state.get(_RECORDING)
    is_busy = recording is not None and not recording.future.done()
    _form(view, is_busy=is_busy)
    if recording is not None and is_busy:
        _follow(recording)
    elif recording is not None:
        _outcome(view, recording)
    _list_captures(view)


def _form(view: Page, *, is_busy: bool) -> None:
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            bound: dict[str, Any] = {"bind": "query-params", "disabled": is_busy}
            where, most, key = "localhost:6009", LONGEST_MS, "tfcompare.capture.name"
            addresses = st.text_input("Addresses", where, key="address", width=420, help=_ADDRESSES_HELP, **bound)
            bound |= {"key": "duration", "step": 500, "help": _DURATION_HELP}
            duration_ms = st.number_input("Duration (ms)", 1, most, 2_000, width=180, **bound)
            name = st.text_input("Run name", "capture", key=key, disabled=is_busy, width=220, help=_NAME_HELP)
        with st.expander("Tracers and retries"):
            wish = _details(Request((), int(duration_ms)), is_busy=is_busy)
        if st.button("Capture", icon=":material/radio_button_checked:", type="primary", disabled=is_busy):
            _start(view.settings, addresses, name, wish)
        st.caption(f"Captures are stored in {as_code(str(own_captures.folder(view.settings)))}")


def _details(defaults: Request, *, is_busy: bool) -> Request:
    """The request, updated with the widgets in the expander."""
    look: dict[str, Any] = {"disabled": is_busy, "width": 200}
    levels: dict[str, Any] = {}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for what, offered, texts, meaning in (
            ("host", HOST_LEVELS, _HOST_TRACER, _HOST_HELP),
            ("device", DEVICE_LEVELS, _OFF_ON, _DEVICE_HELP),
            ("python", PYTHON_LEVELS, _OFF_ON, _PYTHON_HELP),
        ):
            level = getattr(defaults, f"{what}_level")
            label = f"{what.capitalize()} tracer"
            chosen = st.selectbox(label, offered, level, format_func=texts.__getitem__, help=meaning, **look)
            levels[f"{what}_level"] = int(chosen)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        retries = st.number_input("Retries", 0, MOST_RETRIES, defaults.retries, help=_RETRIES_HELP, **look)
        look |= {"step": 500, "help": "Wait before each attempt"}
        delay_ms = st.number_input("Delay (ms)", 0, LONGEST_MS, defaults.delay_ms, **look)
    return replace(defaults, **levels, retries=int(retries), delay_ms=int(delay_ms))


def _start(settings: Settings, addresses: str, name: str, wish: Request) -> None:
    """Start the capture, if the user is still allowed to."""
    if not own_captures.this_browser_may_record(settings):
        st.rerun()
    try:
        request = replace(wish, addresses=parse_addresses([addresses]))
        name = check_name(name)
    except TfcompareError as error:
        st.error(as_markdown(error))
        return
    try:
        make_private(settings.data_folder)
    except OSError as error:
        reason = as_markdown(f"{settings.data_folder}: {error.strerror or error}")
        st.error(f"Captures cannot be stored: {reason}. Set TFCOMPARE\\_DATA to another folder.")
        return
    st.session_state[_RECORDING] = BackgroundRecording(request, own_captures.folder(settings), name)
    st.rerun()


def _follow(recording: BackgroundRecording) -> None:
    """Show progress until the capture is done, then redraw the page with the new run among the others."""
    with st.container(horizontal=True, vertical_alignment="center"):
        slot = st.empty()
        st.button("Stop", icon=":material/stop:", on_click=recording.stop)
    while not recording.future.done():
        now = recording.state
        left = f": {now.seconds_left:.0f} s left" if now.share is not None else " …"
        slot.progress(now.share or 0.0, text=as_markdown(now.sentence) + left)
        time.sleep(_REDRAW_S)
    rescan()
    st.rerun()


def _outcome(view: Page, recording: BackgroundRecording) -> None:
    try:
        recorded = recording.future.result()
    except Stopped as error:
        st.info(as_markdown(error))
        return
    except TfcompareError as error:
        st.error(as_markdown(error))
        return
    except OSError as error:
        reason = as_markdown(error.strerror or str(error))
        remedy = "Free space on the server's disk, or ask its administrator."
        st.error(f"The capture could not be stored ({reason}). {remedy}")
        return
    found = next((run for run in view.found if run.path == recorded.path), None)
    if found is None and st.session_state.get(_LOOKED_FOR) != recorded.path:
        st.session_state[_LOOKED_FOR] = recorded.path
        rescan()  # it ended after this page had listed the runs
        st.rerun()
    if found is None:
        st.error(f"The captured run no longer exists: {as_code(str(recorded.path))}")
        return
    _hand_over(view, found, recorded)


def _hand_over(view: Page, found: FoundRun, recorded: Recorded) -> None:
    """Show what was captured, select it, and offer to open the comparison."""
    if st.session_state.get(_SELECTED) != found.id:
        st.session_state[_SELECTED] = found.id
        state.choose_added(home_add.without_samples(view).with_added([found.id]), [found.id])
        st.rerun()  # the sidebar has been drawn
    run = fetch([found], view.settings)[found.id]
    if isinstance(run, TfcompareError):
        _show_results(recorded, {})
        st.error(as_markdown(run))
        return
    _show_results(recorded, Counter(run.table("steps")["host"]) if run.info.has_steps else {})
    st.success(f"{as_code(found.name)} was captured: {_summary(run)}.", icon=":material/check:")
    if not run.info.has_steps:
        st.info(
            "It has no step markers, so times per step are unknown. In a custom training loop, put each step inside "
            "`with tf.profiler.experimental.Trace('train', step_num=i, _r=1):`."
        )
    selection = view.selection
    baseline = next((other.name for other in view.found if other.id == selection.baseline), None)
    with st.container(horizontal=True, vertical_alignment="center"):
        if selection.baseline == found.id:
            st.markdown("It is the baseline.", width="content")
        elif baseline is not None and st.button(
            f"Compare with {as_markdown(baseline)}", icon=":material/arrow_forward:", type="primary"
        ):
            wanted = replace(selection.with_candidates([found.id]), host=None)
            st.switch_page("pages/1_Overview.py", query_params=wanted.as_query())
        if selection.baseline != found.id:
            st.button(
                "Use as baseline",
                icon=":material/flag:",
                on_click=lambda: state.choose(replace(state.current().with_baseline(found.id), host=None)),
            )
    st.caption(f"Stored in {as_code(str(recorded.path))}")


def _show_results(recorded: Recorded, step_counts: Mapping[str, int]) -> None:
    """Show what came of each address, if there were several."""
    rows = [(str(address), result) for address, result in recorded.captured(step_counts).items()]
    rows += [(str(missing.address), missing.why) for missing in recorded.left_out]
    if recorded.left_out:
        st.warning(f"Not in the run: {len(recorded.left_out)} of {len(rows)} addresses", icon=":material/warning:")
    if len(rows) > 1:
        show_small_table(Facts(["", "Result"], rows))


def _summary(run: Run) -> str:
    info = run.info
    hosts = f"{info.hosts} hosts ({', '.join(map(as_code, run.host_names))})" if info.hosts > 1 else "1 host"
    if not info.has_steps:
        return f"{hosts}, {format_ms(info.duration_ms)}"
    length = f"{format_ms(info.step_time_ms_mean)} on average" if info.has_step_times else "unknown time"
    return f"{hosts}, {info.step_count:,} steps of {length}"


def _list_captures(view: Page) -> None:
    """The runs that were captured here before, each with a delete button."""
    runs = {run.id: run for run in view.found if own_captures.is_captured(view.settings, run.path)}
    if not runs:
        return
    st.subheader("Captured here")
    texts = {}
    for run in runs.values():
        when = recorded_text(run.recorded, browser_zone(), is_sure=True)
        texts[run.id] = f"{as_code(run.name)} {when}, {format_bytes(run.size_bytes)}"
    deleting.show(texts, lambda run_id: _delete(view.settings, runs[run_id]), on_ask=_clear_problem)
    if problem := st.session_state.get(_PROBLEM):
        st.error(problem)


def _clear_problem() -> None:
    st.session_state[_PROBLEM] = None


def _delete(settings: Settings, run: FoundRun) -> None:
    """Delete a run, if the user is still allowed to, and remove it from the selection."""
    _clear_problem()
    try:
        if not own_captures.delete(settings, run.path):
            return
    except OSError as error:
        st.session_state[_PROBLEM] = f"{as_code(run.name)} cannot be deleted: {as_markdown(error.strerror or error)}."
        return
    st.session_state[_RECORDING] = None
    state.choose(state.current().without(run.id))
    rescan()
