"""TensorBoard's Memory Profile for two runs, and what changed between them."""

from __future__ import annotations

import streamlit as st

from tfcompare import ui
from tfcompare.ui.frame.pair import choose_pair, comparison_of
from tfcompare.ui.pages import memory, memory_peak, memory_timeline

with ui.page("Memory", needs="pair") as view:
    comparison = comparison_of(view)
    pair = choose_pair(comparison)
    memory.stop_without_events(pair, view.selection)
    chosen = memory.choose_memories(pair)
    memory.headline(chosen)
    memory.figures(chosen)

    st.subheader("Over time")
    memory_timeline.over_time(chosen)

    memory_peak.breakdown(chosen)
    memory_peak.SUMMARY_TABLE.show_rows(pair, chosen)
