"""Plotly's JavaScript, for documents that have to draw figures without a network."""

from __future__ import annotations

from plotly.offline import get_plotlyjs


def plotly_js() -> str:
    """The script, which defines `Plotly`; 4.8 MB."""
    script: str = get_plotlyjs()
    return script
