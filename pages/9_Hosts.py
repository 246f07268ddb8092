"""The hosts and devices of runs side by side: which is slowest, what it does longer, and who waits for it."""

from __future__ import annotations

from tfcompare.ui.pages import view

view.show("hosts")
