"""Which step of the tf.data pipeline is the bottleneck of one or two runs, and what changed about that."""

from __future__ import annotations

from tfcompare.ui.pages import view

view.show("tf_data")
