"""Every profile at hand, and built ones, read as the protobuf library reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frames.tables import thorough_but
from tests.profiles import ALL_RUNS, run_path
from tests.xspace import fuzz_inputs
from tests.xspace.plain import Plain, by_columns, by_protobuf
from tfcompare.xspace import parse, read


def same(ours: Plain, theirs: Plain) -> None:
    """Piece by piece, so that what differs is named rather than drowned."""
    assert ours.keys() == theirs.keys()
    assert [p["name"] for p in ours["planes"]] == [p["name"] for p in theirs["planes"]]
    for our_plane, their_plane in zip(ours.pop("planes"), theirs.pop("planes"), strict=True):
        our_lines, their_lines = our_plane.pop("lines"), their_plane.pop("lines")
        assert our_plane == their_plane
        assert len(our_lines) == len(their_lines)
        for ours_, theirs_ in zip(our_lines, their_lines, strict=True):
            our_events, their_events = ours_.pop("events"), theirs_.pop("events")
            assert ours_ == theirs_
            assert len(our_events) == len(their_events)
            pairs = zip(our_events, their_events, strict=True)
            different = [pair for pair in pairs if repr(pair[0]) != repr(pair[1])]  # a NaN equals no other
            assert different[:3] == [], f"{len(different)} events of {ours_}"
    assert ours == theirs


@pytest.mark.parametrize("name", thorough_but(ALL_RUNS))
def test_real_profiles(name: str) -> None:
    paths: list[Path] = sorted(run_path(name).rglob("*.xplane.pb"))
    assert paths
    for data in {path.read_bytes() for path in paths}:
        same(by_columns(parse(data)), by_protobuf(data))


@pytest.mark.parametrize("data", fuzz_inputs.built(), ids=len)
def test_built_profiles(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "vm.xplane.pb").write_bytes(data)
    same(by_columns(read(tmp_path / "vm.xplane.pb").space), by_protobuf(data))
