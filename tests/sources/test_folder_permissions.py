"""Folders of this user alone."""

from __future__ import annotations

import grp
import os
import stat
from pathlib import Path

import pytest

from tfcompare.sources import folder_permissions
from tfcompare.sources.folder_permissions import NotPrivate, make_private, why_not_private


def test_a_new_folder_is_for_its_user_alone(tmp_path: Path) -> None:
    make_private(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert why_not_private(tmp_path / "a" / "b") == why_not_private(tmp_path / "missing") == ""


@pytest.mark.parametrize("mode", [0o777, 0o702, 0o1777])
def test_a_folder_that_anybody_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(NotPrivate, match="other users can write to it"):
        make_private(tmp_path)


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(NotPrivate, match="it belongs to another user"):
        make_private(tmp_path)


@pytest.mark.parametrize(("others", "why"), [((), ""), (("mallory",), "other users can write to it")])
def test_a_group_may_write_if_the_user_is_alone_in_it(tmp_path, monkeypatch, others: tuple[str, ...], why: str) -> None:
    user = folder_permissions.pwd.getpwuid(os.geteuid())
    own = grp.struct_group((user.pw_name, "x", user.pw_gid, list(others)))
    monkeypatch.setattr(folder_permissions.grp, "getgrgid", lambda _: own)
    os.chown(tmp_path, -1, user.pw_gid)
    tmp_path.chmod(0o770)
    folder_permissions._is_own_group.cache_clear()
    assert why_not_private(tmp_path) == why
    folder_permissions._is_own_group.cache_clear()
