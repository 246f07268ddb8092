"""Which step of the tf.data pipeline is the bottleneck of each run, and what changed about that."""

from __future__ import annotations

import streamlit as st

from tfcompare import ui
from tfcompare.ui.frame.pair import choose_pair, comparison_of
from tfcompare.ui.pages import tf_data, tf_data_steps
from tfcompare.ui.pages.tf_data_graphs import show_graphs
from tfcompare.views.input_pipeline import waits_of

with ui.page("tf.data", needs="pair") as view:
    comparison = comparison_of(view)
    pair = choose_pair(comparison)
    if not tf_data.headline(pair):
        st.stop()
    tf_data.verdicts(pair)
    rows = tf_data.PIPELINES.show_rows(pair, None)
    tf_data.explain_renamed(rows)
    choice = tf_data.controls(rows)
    waits = waits_of(pair)
    sides = tf_data.chosen_analyses(pair, choice)
    tf_data_steps.five_steps(pair, sides, waits)
    tf_data_steps.what_to_do(pair, sides, waits)
    show_graphs(pair, sides)
    tf_data.ITERATORS.show_rows(pair, (choice, sides))
