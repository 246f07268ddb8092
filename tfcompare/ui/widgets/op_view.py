"""The view of one op in a dialog, or parts of it."""

from __future__ import annotations

from tfcompare.charts.pair import Pair
from tfcompare.ui.widgets.details import open_details
from tfcompare.ui.widgets.renderer import Renderer
from tfcompare.views import op


def open_op(pair: Pair, op_name: str, *, address: str = "") -> None:
    """Open the view of the op of that name, on either side, in a dialog; closing it deselects the row."""
    open_details(op_name, lambda: Renderer(pair, {}).show_all(op.named(pair, op_name).blocks), address=address)


def show_times(pair: Pair, op_name: str) -> None:
    """The numbers and steps of the op of that name, where it ran: on the device, on the host, or on both."""
    Renderer(pair, {}).show_all(op.times(pair, op_name))


def show_memory(pair: Pair, baseline: str | None, candidate: str | None) -> None:
    """What is allocated for the op of these names at the peak of each memory, if anything."""
    Renderer(pair, {}).show_all(op.memory(pair, baseline, candidate))
