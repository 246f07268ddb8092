"""The view of one op in a dialog."""

from __future__ import annotations

from tfcompare.charts.pair import Pair
from tfcompare.ui.widgets.details import open_details
from tfcompare.ui.widgets.renderer import Renderer
from tfcompare.views import op


def open_op(pair: Pair, op_name: str, *, address: str = "") -> None:
    """Open the view of the op of that name, on either side, in a dialog; closing it deselects the row."""
    open_details(op_name, lambda: Renderer(pair, {}).show_all(op.named(pair, op_name).blocks), address=address)
