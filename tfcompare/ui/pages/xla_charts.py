"""The chart of the XLA page that shows how far a program's instructions are from the peaks."""

from __future__ import annotations

import streamlit as st

from tfcompare.charts import xla as charts
from tfcompare.ui.pages.xla import Program
from tfcompare.ui.widgets.figures import draw


def roofline(program: Program) -> None:
    """FLOP rate over operational intensity of the program's instructions, below the roofs of the devices."""
    sides = [side for side, _ in program.pair.shown]
    if charts.has_roofs(program.rows, len(sides)):
        title = "Distance from the peaks"
        lines = (
            " Below the sloping line it is bound by memory bandwidth, below the level one by the FLOP rate; its "
            "distance from the line is what could still be saved."
        )
    else:
        title, lines = "FLOP rate", " The peaks of these devices are unknown, so there are no lines to compare with."
    more = " Instructions without floating-point operations are not shown."
    st.subheader(title, help=f"Each marker is an instruction.{lines}{more}")
    if not charts.has_points(program.rows, len(sides)):
        st.info("No instruction of this program has a known FLOP rate.")
        return
    draw(program.pair, "xla_roofline", lambda: charts.roofline(program.rows, sides), program.name)
