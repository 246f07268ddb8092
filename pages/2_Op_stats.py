"""TensorBoard's TensorFlow Stats for two runs, and what changed between them."""

from __future__ import annotations

import streamlit as st

from tfcompare import ui
from tfcompare.ui.frame.pair import choose_pair, comparison_of, remarks
from tfcompare.ui.pages import op_stats
from tfcompare.ui.widgets import manual as by_hand

view = ui.setup("Op stats", needs="pair")
comparison = comparison_of(view)
remarks(comparison)
pair = choose_pair(comparison)
op_stats.coverage(pair)
choice = op_stats.controls(pair)
rows = op_stats.rows_of(pair, choice)

st.subheader("What changed")
op_stats.movers(pair, rows, choice)
chosen = op_stats.table(pair, rows, choice)
op_stats.chosen_op(pair, chosen, choice)
by_hand.said(pair)
op_stats.distributions(pair, choice)
op_stats.by_scope(pair, choice)
