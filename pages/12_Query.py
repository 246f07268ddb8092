"""SQL over the tables of the chosen runs."""

from __future__ import annotations

from tfcompare import ui
from tfcompare.ui.pages import query

with ui.page("Query", needs="runs") as view:
    query.show(view)
