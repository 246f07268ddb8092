"""What the pages share. Each page is shown in `with ui.page(title, needs=…) as view:`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfcompare.ui.frame.shell import Page, page, setup, stop

__all__ = ["Page", "page", "setup", "stop"]


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used: the server starts before its pages are imported."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tfcompare.ui.frame import shell

    return getattr(shell, name)
