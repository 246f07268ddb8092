"""What a change did to a run, on one screen."""

from __future__ import annotations

from tfcompare.ui.pages import view

view.show("overview")
