"""A flame graph as a component of Streamlit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from tfcompare.ui.widgets.blocks import clear
from tfcompare.ui.widgets.figures import origin
from tfcompare.views import canvas
from tfcompare.views.blocks import FlameGraph
from tfcompare.views.flame import component as flame
from tfcompare.views.options import Subject

_ADAPTER = "\n".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("arrow.js", "flame.js"))
_component = st.components.v2.component(
    "tfcompare.flame", js=f"{canvas.script()}\n{flame.script()}\n{_ADAPTER}", css=flame.style()
)


def show_flame_graph(subject: Subject, graph: FlameGraph) -> None:
    """Draw the graph. A click on a node sets the parameter `graph.chooses` of the page's address to its id."""
    kept = ("flame", origin(graph.draw), graph.name, graph.on)
    drawn = subject.cached(kept, partial(flame.drawing, graph))
    if drawn is None:
        if graph.nothing:
            st.info(graph.nothing)
        return
    data, ids = drawn
    drawing = {name: value for name, value in data.items() if name != "nodes"}
    drawing["selected"] = flame.position(graph.selected, ids)
    key = f"flame_{graph.name}"
    listeners: dict[str, Any] = {"on_chosen_change": partial(_choose, key, graph.chooses, ids)}
    _component(key=key, data={"drawing": drawing, "nodes": data["nodes"]}, **listeners)


def _choose(key: str, chooses: str, ids: Sequence[str]) -> None:
    node = st.session_state[key]["chosen"]["node"]
    if node < 0:
        clear(chooses)
    else:
        st.query_params[chooses] = ids[node]
