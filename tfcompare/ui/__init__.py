"""What the pages share. Each page begins with `view = ui.setup(title, needs=…)`."""

from tfcompare.ui.frame.shell import View, setup, stop

__all__ = ["View", "setup", "stop"]
