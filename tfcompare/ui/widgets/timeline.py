"""The timeline as a component of Streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from tfcompare.views import canvas
from tfcompare.views.links import numbers_in
from tfcompare.views.timeline import component as timeline
from tfcompare.views.timeline.aligned import Aligned
from tfcompare.views.timeline.component import Labels, component_data
from tfcompare.views.timeline.component import state_of as drawing_state
from tfcompare.views.timeline.drawing import Viewport, default_window_us
from tfcompare.views.timeline.words import Jump

_ADAPTER = "\n".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("arrow.js", "timeline.js"))
_component = st.components.v2.component(
    "tfcompare.timeline", js=f"{canvas.script()}\n{timeline.script()}\n{_ADAPTER}", css=timeline.style()
)
_BESIDE = 0.5
"""What is sent of a window's length on either side, so that moving shows something at once."""
DEFAULT_WIDTH = 1200


@dataclass(frozen=True)
class State:
    """What the user did with a timeline.

    `selected` is (side, span); `has_selected` tells whether anything was selected, or the selection cleared, and
    `has_measured` the same of the range.
    """

    look: Viewport
    range_us: tuple[float, float] | None
    selected: tuple[int, int] | None
    has_selected: bool
    has_measured: bool
    by_type: bool
    shows_idle: bool


def state_of(key: str, token: str, *, from_address: bool = True) -> State:
    """The state of the timeline with this key: as the user left it, or else as in the page's address.

    A window that the user chose at another `token`, as of `show_timeline`, is of other steps and not kept.
    """
    stored = st.session_state.get(key) or {}
    address: dict[str, str] = st.query_params.to_dict() if from_address else {}
    view = stored.get("view") or {}
    window = view["window"] if "window" in view else numbers_in(address.get("window", ""), 2)
    if view.get("token", token) != token:
        window = None
    selected = stored["selected"] if "selected" in stored else _span(address.get("span", ""))
    measured = stored["range"] if "range" in stored else numbers_in(address.get("range", ""), 2)
    colour = stored.get("colour") or address.get("colour")
    all_lanes = stored["all"] if stored.get("all") is not None else address.get("idle_lanes") == "true"
    shift = view["shift"] if "shift" in view else next(iter(numbers_in(address.get("shift", ""), 1) or ()), 0.0)
    opened, folded = (frozenset(view.get(lanes, ())) for lanes in ("opened", "folded"))
    look = Viewport(_pair(window), int(view.get("width") or DEFAULT_WIDTH), float(shift), opened=opened, folded=folded)
    chosen = (int(selected["side"]), int(selected["id"])) if selected else None
    has_selected = "selected" in stored or chosen is not None
    has_measured = "range" in stored or measured is not None
    return State(look, _pair(measured), chosen, has_selected, has_measured, colour == "type", bool(all_lanes))


def _pair(numbers: Any) -> tuple[float, float] | None:
    """Two numbers in order, None without them."""
    return (float(min(numbers)), float(max(numbers))) if numbers and max(numbers) > min(numbers) else None


def _span(text: str) -> dict[str, int] | None:
    """`side:span`."""
    numbers = numbers_in(text, 2)
    return {"side": int(numbers[0]), "id": int(numbers[1])} if numbers and min(numbers) >= 0 else None


def show_timeline(
    aligned: Aligned,
    state: State,
    labels: Labels,
    jumps: Sequence[Jump],
    panel: Mapping[str, Any],
    *,
    key: str,
    token: str,
    compact: bool = False,
) -> None:
    """Draw the timeline, with a `panel` of the `details` of the selected span and of what is `ranged`.

    `token` changes with time 0 and the compared steps, and `jumps` are buttons that lead to places in it. A `compact`
    one leaves the address alone.
    """
    look = state.look
    seen = look.window_us or default_window_us(aligned, look)
    margin = (seen[1] - seen[0]) * _BESIDE
    width, window = round(look.width_px * (1 + 2 * _BESIDE)), (seen[0] - margin, seen[1] + margin)
    wider = replace(look, window_us=window, width_px=width)
    drawn = component_data(aligned, wider, labels, token=token, selected=state.selected, jumps=jumps)
    frames = {name: drawn.pop(name) for name in timeline.FRAMES}
    shown = drawing_state(
        look, range_us=state.range_us, by_type=state.by_type, shows_idle=state.shows_idle, compact=compact
    )
    data = {
        "drawing": drawn | dict(panel),
        "state": shown,
        "address": dict.fromkeys(_IN_ADDRESS) | address_of(state),
        **frames,
    }
    # Streamlit stores only states that something listens to.
    parts = ("view", "selected", "range", "colour", "all")
    listeners: dict[str, Any] = {f"on_{part}_change": lambda: None for part in parts}
    _component(key=key, data=data, **listeners)


_IN_ADDRESS = ("window", "range", "shift", "span", "colour", "idle_lanes")


def address_of(state: State) -> dict[str, str]:
    """The parameters of the page's address that `state_of` reads, but for those that are as by default."""
    times = {"window": state.look.window_us, "range": state.range_us}
    every = {
        **{name: ":".join(f"{time:.9g}" for time in pair) if pair else "" for name, pair in times.items()},
        "shift": f"{state.look.shift_us:.9g}" if state.look.shift_us else "",
        "span": ":".join(map(str, state.selected)) if state.selected else "",
        "colour": "type" if state.by_type else "",
        "idle_lanes": "true" if state.shows_idle else "",
    }
    return {name: every[name] for name in _IN_ADDRESS if every[name]}
