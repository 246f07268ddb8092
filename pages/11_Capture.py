"""Record a run from programs that are running, ready to be compared."""

from __future__ import annotations

from tfcompare import ui
from tfcompare.ui.pages import capture

with ui.page("Capture", needs="runs") as view:
    capture.show(view)
