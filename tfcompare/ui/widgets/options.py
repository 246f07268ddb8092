"""The options of a view as widgets, bound to the address of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from tfcompare.markdown import as_code
from tfcompare.views.options import Option, Subject

LIST_PIXELS, TEXT_PIXELS, NUMBER_PIXELS = 360, 300, 180


def choose(declared: Sequence[Option], names: Sequence[str], subject: Subject, options: Any) -> Any:
    """The options with what is chosen in the widgets of these names, which are shown, and what the address says of
    those without a widget; says so if an address has a value that this pair does not offer."""
    for one in declared:
        if one.is_in_address:
            options = replace(options, **{one.name: _linked(one, subject, options)})
        elif one.name in names:
            value = _widget(one, subject, options) if one.is_open(subject, options) else one.preset(subject, options)
            options = replace(options, **{one.name: value})
    return options


def preset(declared: Sequence[Option], subject: Subject, options: Any) -> Any:
    """The options before any widget is shown: what the address says, or else what holds where none is chosen."""
    for one in declared:
        options = replace(options, **{one.name: _linked(one, subject, options)})
    return options


def _linked(one: Option, subject: Subject, options: Any) -> Any:
    """The value in the address if it can be chosen and is no label, or else the one that holds without a choice."""
    value, offered = st.query_params.get(one.key), one.offered(subject, options)
    is_offered = one.is_in_address if offered is None else value in offered
    return value if value is not None and is_offered else one.preset(subject, options)


def _widget(one: Option, subject: Subject, options: Any) -> Any:
    bound: dict[str, Any] = {"key": one.key, "bind": "query-params", "help": one.help or None}
    if one.resets:
        bound["on_change"] = partial(_reset, one)
    offered, value = one.offered(subject, options), one.preset(subject, options)
    if isinstance(value, bool):
        return st.toggle(one.label, value, **bound)
    if offered is None:
        width = one.pixels or TEXT_PIXELS
        return st.text_input(one.label, value, placeholder=one.hint, width=width, icon=one.icon, **bound) or ""
    if isinstance(offered, range):
        least, most = offered[0], offered[-1]
        bound["help"] = f"{one.help} ({least} to {most})"
        return int(st.number_input(one.label, least, most, value, width=NUMBER_PIXELS, **bound))
    wished = st.query_params.get(one.key)
    if wished is not None and wished not in offered.values() and one.key not in st.session_state:
        st.caption(f"{one.label}: there is no {as_code(wished)} here.")
    values, label = list(offered), offered.__getitem__
    if value is None:
        return st.pills(one.label, values, format_func=label, **bound)
    if one.is_slider:
        return st.select_slider(one.label, values, value, format_func=label, width=LIST_PIXELS, **bound)
    if one.is_list:
        width = one.pixels or LIST_PIXELS
        return st.selectbox(one.label, values, values.index(value), format_func=label, width=width, **bound)
    return st.segmented_control(one.label, values, default=value, required=True, format_func=label, **bound)


def _reset(one: Option) -> None:
    for name in one.resets:
        st.query_params.pop(name, None)
    st.query_params.update({name: st.session_state[name] for name in one.pins if name in st.session_state})
