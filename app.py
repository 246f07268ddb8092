"""Home: choose a baseline and the runs to compare with it."""

from tfcompare import ui
from tfcompare.ui.pages import home

home.show(ui.setup("Compare profile runs", needs="runs"))
