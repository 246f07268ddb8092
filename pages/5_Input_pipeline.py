"""TensorBoard's Input Pipeline Analyzer for two runs, and what changed between them."""

from __future__ import annotations

import streamlit as st

from tfcompare import ui
from tfcompare.ui.frame.pair import choose_pair, comparison_of
from tfcompare.ui.pages import input_pipeline, input_pipeline_ops
from tfcompare.views.input_pipeline import waits_of

with ui.page("Input pipeline", needs="pair") as view:
    comparison = comparison_of(view)
    pair = choose_pair(comparison)
    waits = waits_of(pair)
    if not input_pipeline.headline(pair, waits):
        st.stop()
    input_pipeline.how_sure(pair)
    input_pipeline.figures(pair, waits)
    input_pipeline.what_next(pair, waits, view.selection)
    input_pipeline_ops.every_op(pair)
    input_pipeline.steps(pair, waits)
    input_pipeline.on_host(pair)
