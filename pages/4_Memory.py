"""TensorBoard's Memory Profile for one or two runs, and what changed between them."""

from __future__ import annotations

from tfcompare.ui.pages import view

view.show("memory")
