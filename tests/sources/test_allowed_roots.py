"""What is asked for outside the roots is refused, however it is spelled; folders of this user alone."""

from __future__ import annotations

import grp
import os
import stat
from pathlib import Path

import pytest

from tests.fence_yard import WAYS_OUT, yard
from tfcompare.sources import folder_permissions
from tfcompare.sources.allowed_roots import Outside, is_inside, resolve_inside
from tfcompare.sources.folder_permissions import NotPrivate, make_private, why_not_private

__all__ = ["yard"]


@pytest.mark.parametrize("way", WAYS_OUT)
def test_what_lies_outside_is_refused_whether_it_is_there_or_not(yard: Path, way: str) -> None:
    for spelled in {way, way.replace("secret", "nothing_of_that_name")}:
        place = spelled.replace("{yard}", str(yard))
        with pytest.raises(Outside) as refused:
            resolve_inside(place, [yard / "root"])
        assert str(refused.value).endswith(f"is not below {yard / 'root'}, and nothing else may be opened here")
        assert str(refused.value).isprintable()


def test_a_refused_url_is_not_repeated_since_it_may_hold_a_key(yard: Path) -> None:
    with pytest.raises(Outside) as refused:
        resolve_inside("https://host/logs?key=sesame", [yard / "root"])
    assert str(refused.value).startswith("a URL: is not below ")


@pytest.mark.parametrize(
    "way", ["{yard}/root", "{yard}/root/runs", "{yard}/secret/../root/runs", "runs", ".", "up/root/runs"]
)
def test_what_lies_inside_is_opened_by_its_real_path(yard: Path, way: str) -> None:
    real = resolve_inside(way.replace("{yard}", str(yard)), [yard / "root"])
    assert real in (yard / "root", yard / "root" / "runs")


def test_any_of_several_roots_will_do_and_a_root_may_be_a_link(yard: Path) -> None:
    (yard / "linked").symlink_to("root")
    roots = [yard / "rooted", yard / "linked"]
    assert resolve_inside(str(yard / "root" / "runs"), roots) == yard / "root" / "runs"
    assert resolve_inside(str(yard / "linked" / "runs"), roots) == yard / "root" / "runs"
    with pytest.raises(Outside, match=r"rooted or .*linked"):
        resolve_inside(str(yard / "secret"), roots)


def test_runs_behind_a_link_that_leads_out_are_outside(yard: Path) -> None:
    assert is_inside(yard / "root" / "runs", [yard / "root"])
    assert not is_inside(yard / "root" / "out" / "vm.xplane.pb", [yard / "root"])
    assert not is_inside(yard / "root" / "circle" / "x", [yard / "root"])
    assert is_inside(Path(os.path.relpath(yard / "root" / "runs")), [yard / "root"])


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
