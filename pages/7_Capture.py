"""Record a run from programs that are running, ready to be compared."""

from __future__ import annotations

from tfcompare import ui
from tfcompare.ui.pages import capture

capture.show(ui.setup("Capture", needs="runs"))
