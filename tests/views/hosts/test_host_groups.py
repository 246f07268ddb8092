"""Which hosts are named alike."""

from __future__ import annotations

import pytest

from tfcompare.views.hosts.figures import groups_of


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["rk1-a", "rk1-b", "rk2-a", "rk2-b"], {"rk1-…": (0, 1), "rk2-…": (2, 3), "…-a": (0, 2), "…-b": (1, 3)}),
        (["a1.r1.dc", "b7.r1.dc", "c2.r2.dc", "d9.r2.dc"], {"….r1.dc": (0, 1), "….r2.dc": (2, 3)}),
        (["10.0.1.5_61", "10.0.1.5_62", "10.0.2.7_63", "10.0.2.9_64"], {"10.0.1.5_…": (0, 1), "10.0.2.…": (2, 3)}),
        ([f"worker{i}" for i in range(12)], {}),
        (["slice-w-0", "slice-w-1", "slice-w-2"], {}),
        ([], {}),
    ],
)
def test_groups_are_hosts_whose_names_begin_or_end_alike(names: list[str], groups: dict[str, tuple[int, ...]]) -> None:
    assert groups_of(names) == groups
