"""Home: choose a baseline and the runs to compare with it."""

from tfcompare import ui
from tfcompare.ui.pages import home

with ui.page("Compare profile runs", needs="runs") as view:
    home.show(view)
