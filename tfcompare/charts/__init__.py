"""Figures: pure functions from a frame to a Plotly figure. `style` holds what all of them share."""
