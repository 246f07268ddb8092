"""TensorBoard's Input Pipeline Analyzer for one or two runs, and what changed between them."""

from __future__ import annotations

from tfcompare.ui.pages import view

view.show("input_pipeline")
