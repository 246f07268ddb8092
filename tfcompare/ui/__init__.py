"""What the pages share. Each page is shown in `with ui.page(title, needs=…) as view:`."""

from tfcompare.ui.frame.shell import View, page, setup, stop

__all__ = ["View", "page", "setup", "stop"]
