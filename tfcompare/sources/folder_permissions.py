"""Folders that nobody else can write to: what lies in others is not trusted, since tfcompare runs or shows it."""

from __future__ import annotations

import errno
import os
import stat
import sys
from functools import cache
from pathlib import Path

if sys.platform != "win32":
    import grp
    import pwd


class NotPrivate(PermissionError):
    """Others own a folder or can write to it."""


def make_private(folder: Path) -> None:
    """Make `folder`, for this user only, if it does not exist.

    Raises `NotPrivate` if others own it or can write to it, other OSErrors if it cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if why := why_not_private(folder):
        raise NotPrivate(errno.EPERM, why, str(folder))


def why_not_private(folder: Path) -> str:
    """Why others can change what is in `folder`; empty if only this user can, or there is no such folder.

    It may be writable for a group that has no other member. On Windows, every folder counts as private.
    """
    if sys.platform == "win32":
        return ""
    try:
        status = folder.stat()
    except OSError:
        return ""
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    is_shared = status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid))
    return "other users can write to it" if is_shared else ""


@cache
def _is_own_group(group_id: int) -> bool:
    """Whether it is the group that many systems make for each user, which lets `umask 002` be the default."""
    if sys.platform == "win32":
        return True
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(group_id)
    except KeyError:  # no such user or group
        return False
    return user.pw_gid == group_id and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
