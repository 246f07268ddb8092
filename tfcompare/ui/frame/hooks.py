"""What `tfcompare.server` adds to pages: login and uploads. Everything else works without that package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.middleware import Middleware

if TYPE_CHECKING:
    from tfcompare.settings import Settings
    from tfcompare.sources.logdir import FoundRun


@dataclass(frozen=True)
class Hooks:
    """What pages call. The defaults are those of one user, who needs no login and uploads nothing."""

    require_login: Callable[[], None] = lambda: None
    """Stops the page with a login button if the user has to log in."""
    show_account: Callable[[], None] = lambda: None
    """Shows in the sidebar who is logged in, with a logout button."""
    account: Callable[[], str] = lambda: ""
    """The name of the account that is logged in; empty if none is."""
    uploads: Callable[[Settings], tuple[Path, ...]] = lambda _: ()
    """The folders of this browser's uploads."""
    newly_uploaded: Callable[[Sequence[FoundRun]], list[str]] = lambda _: []
    """The ids of the runs of the last upload, once."""
    upload_section: Callable[[Settings], None] | None = None
    """Shows the part of the home page that accepts uploads; None if there are no uploads."""


@cache
def hooks() -> Hooks:
    """The hooks of `tfcompare.server`, or the defaults if that package is missing."""
    if find_spec("tfcompare.server") is None:
        return Hooks()
    found: Hooks = import_module("tfcompare.server.pages").HOOKS
    return found


def middleware() -> list[Middleware]:
    """The middleware of `tfcompare.server`, if that package is there. Imports no page, as the server starts with it."""
    if find_spec("tfcompare.server") is None:
        return []
    found: list[Middleware] = import_module("tfcompare.server.middleware").MIDDLEWARE
    return found
