"""Pure functions from frames to Plotly figures. `style` contains what all of them share."""
