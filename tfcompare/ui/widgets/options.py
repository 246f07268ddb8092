"""The options of a view as widgets, bound to the address of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from tfcompare.markdown import as_code
from tfcompare.views.options import Option, Subject

LIST_PIXELS, TEXT_PIXELS, NUMBER_PIXELS = 360, 300, 180


def choose(declared: Sequence[Option], names: Sequence[str], subject: Subject, options: Any) -> Any:
    """The options with what is chosen in the widgets of these names, which are shown; says so if an address has a
    value that this pair does not offer."""
    for one in declared:
        if one.name in names:
            value = _widget(one, subject, options) if one.is_open(subject, options) else one.preset(subject, options)
            options = replace(options, **{one.name: value})
    return options


def preset(declared: Sequence[Option], subject: Subject, options: Any) -> Any:
    """The options where nothing was chosen in a widget."""
    for one in declared:
        value = one.preset(subject, options)
        options = replace(options, **{one.name: st.query_params.get(one.key, value) if one.is_row else value})
    return options


def _widget(one: Option, subject: Subject, options: Any) -> Any:
    bound: dict[str, Any] = {"key": one.key, "bind": "query-params", "help": one.help or None}
    offered, value = one.offered(subject, options), one.preset(subject, options)
    if isinstance(value, bool):
        return st.toggle(one.label, value, **bound)
    if offered is None:
        icon = ":material/filter_alt:"
        return st.text_input(one.label, value, placeholder=one.hint, width=TEXT_PIXELS, icon=icon, **bound) or ""
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
        return st.selectbox(one.label, values, values.index(value), format_func=label, width=LIST_PIXELS, **bound)
    return st.segmented_control(one.label, values, default=value, required=True, format_func=label, **bound)
