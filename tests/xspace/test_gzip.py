"""Gzipped profiles: whatever gzip can have written, nothing that grows without end."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.xspace_builder import event, line, plane, space
from tfcompare.errors import NotAProfile
from tfcompare.xspace import HostProfile, read
from tfcompare.xspace.limits import Limits
from tfcompare.xspace.reader import expand

PROFILE = space(plane("/host:CPU", line("python", *(event(f"op_{i}:MatMul", i, 1, n=i) for i in range(300)))))
PACKED = gzip.compress(PROFILE)


def read_bytes(folder: Path, data: bytes) -> HostProfile:
    path = folder / "vm.xplane.pb.gz"
    path.write_bytes(data)
    return read(path)


PACKINGS = {
    "not packed": PROFILE,
    "packed": PACKED,
    "stored": gzip.compress(PROFILE, 0),
    "two members": gzip.compress(PROFILE[:100]) + gzip.compress(PROFILE[100:]),
    "empty members": gzip.compress(b"") + PACKED + gzip.compress(b""),
    "a member a byte": b"".join(gzip.compress(PROFILE[i : i + 1]) for i in range(len(PROFILE))),
    "padded": PACKED + b"\0" * 100_000,
    "padding between": gzip.compress(PROFILE[:9]) + b"\0" * 512 + gzip.compress(PROFILE[9:]) + b"\0",
}


@pytest.mark.parametrize("data", PACKINGS.values(), ids=PACKINGS)
def test_the_profile_within(tmp_path: Path, data: bytes) -> None:
    profile = read_bytes(tmp_path, data)
    assert len(profile.space.events) == 300
    assert profile.digest == read_bytes(tmp_path, PROFILE).digest


def test_a_packed_file_cut_short_says_so(tmp_path: Path) -> None:
    for length in range(2, len(PACKED), 7):
        with pytest.raises(NotAProfile, match=r"expected the rest of the gzipped data, found the end of the file"):
            read_bytes(tmp_path, PACKED[:length])


@pytest.mark.parametrize("at", [2, 3, 40, len(PACKED) // 2, len(PACKED) - 5, len(PACKED) - 1])
def test_a_damaged_packed_file_is_refused(tmp_path: Path, at: int) -> None:
    damaged = bytearray(PACKED)
    damaged[at] ^= 0x55
    with pytest.raises(NotAProfile) as refusal:
        read_bytes(tmp_path, bytes(damaged))
    assert refusal.value.path == tmp_path / "vm.xplane.pb.gz"
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (PACKED + b"garbage", r"expected gzipped data, found damaged data \(.*incorrect header check\)"),
        (gzip.compress(b""), "at byte 0 expected .* at least one plane, found an empty file"),
        (gzip.compress(PACKED), "found byte 0x1f, which begins none"),  # what is within is looked at once only
        (gzip.compress(bytes(128 << 20)), "expected a profile of at most"),  # it grows more than profiles do
        (gzip.compress(b"") * 100_000, "found an empty file"),  # minutes, where each copies what is left
    ],
    ids=["garbage at the end", "nothing", "packed twice", "a bomb", "many small members"],
)
def test_what_is_no_packed_profile_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(NotAProfile, match=message):
        read_bytes(tmp_path, data)


def test_a_file_that_grows_beyond_the_limit_is_refused_early() -> None:
    bomb = gzip.compress(bytes(64 << 20))
    with pytest.raises(NotAProfile) as refusal:
        expand(bomb, Limits(bytes=1 << 20))
    told = f"expected a profile of at most 1,048,576 bytes in a gzipped file of {len(bomb):,}, found more"
    assert told in str(refusal.value)
    assert refusal.value.offset < 2 << 20
