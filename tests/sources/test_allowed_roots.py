"""The fence: what is asked for outside the roots is refused, however it is spelled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fence_yard import WAYS_OUT, yard
from tfcompare.sources.allowed_roots import Outside, is_inside, resolve_inside

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
