"""Damaged, foreign, gzipped and too large files: refused with the byte where they stop making sense, in words."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from tests.profiles import CORPUS
from tests.xspace_builder import U64, Ref, chunk, event, fixed64, integer, line, plane, space, tag, varint
from tfcompare.errors import NoSuchPlace, NotAProfile
from tfcompare.frames import build
from tfcompare.xspace import HostProfile, parse, read
from tfcompare.xspace.limits import Limits
from tfcompare.xspace.reader import expand

TINY = space(
    plane("/host:CPU", line("t", event("a:A", 1, 2, s=Ref("r"), u=U64(1 << 63), d=1.5, text="x" * 200), at_us=1)),
    hostnames=["vm"],
    errors=["e"],
)


def of_event(field: bytes) -> bytes:
    """A profile with an event of these bytes, behind whose line more follows."""
    return space(plane("p", line("t", chunk(4, field)), chunk(2, "x" * 200)))


def refusal(data: bytes) -> str:
    with pytest.raises(NotAProfile) as refused:
        parse(data)
    assert 0 <= refused.value.offset <= len(data)
    before, _, rest = str(refused.value).partition(": not a readable profile: ")
    assert before == "the data"
    advice = "; record the profile again or copy the file anew"
    assert rest.endswith(advice)
    return rest.removesuffix(advice)


def test_a_file_of_another_kind_is_refused_with_what_to_name_instead(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("import tensorflow\n")
    with pytest.raises(
        NotAProfile, match=r"train\.py: not a readable .*; name a \.xplane\.pb file, its folder or a logdir"
    ):
        read(program)


NO_FIELD = "expected the beginning of a field, found byte {}, which begins none"
NO_NUMBER = "expected a number, found the end of {} in the middle of it"
BEYOND = "expected a field of {} bytes, found {}: the file breaks off at byte {}"
TOO_LONG = "expected a number of at most ten bytes, found a longer one"


@pytest.mark.parametrize(
    ("data", "at", "expected"),
    [
        (b"", 0, "expected an XSpace with at least one plane, found an empty file"),
        (chunk(4, "vm"), 0, "expected an XSpace with at least one plane, found 4 bytes without any"),
        (b"XK\x03\x04", 2, NO_FIELD.format("0x03")),
        (TINY + tag(0, 0) + b"\1", 360, NO_FIELD.format("0x00")),
        (TINY + tag(5, 3), 360, NO_FIELD.format("0x2b")),
        (TINY + varint(1 << 36) + b"\1", 360, NO_FIELD.format("0x80")),
        (TINY[:50], 0, BEYOND.format(350, 47, 50)),
        (TINY + fixed64(9, b"12345678")[:-1], 360, BEYOND.format(8, 7, 368)),
        (TINY + tag(1, 2) + varint((1 << 63) - 1), 360, BEYOND.format("9,223,372,036,854,775,807", 0, 370)),
        (TINY + tag(1, 2) + varint(-1) + b"x", 360, BEYOND.format("18,446,744,073,709,551,615", 1, 372)),
        (TINY + tag(1, 2), 360, NO_NUMBER.format("the file")),
        (of_event(tag(2, 0) + b"\x80"), 19, NO_NUMBER.format("the message that it belongs to")),
        (TINY + tag(9, 0) + b"\xff" * 10 + b"\1", 360, TOO_LONG),
        (
            of_event(tag(4, 2) + b"\x7f"),
            19,
            "expected a field of 127 bytes, found fewer up to the end of the message that it belongs to",
        ),
        (
            space(plane("p", line("t", *[event("e", 0, (1 << 58) / 1e6)] * 17))),
            0,
            "expected events that take some days in all, found times that add up to many years",
        ),
    ],
)
def test_what_is_told_of_damage(data: bytes, at: int, expected: str) -> None:
    assert refusal(data) == f"at byte {at} {expected}"


def test_the_file_is_named_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(b"<ht>")
    with pytest.raises(NotAProfile) as refused:
        read(path)
    assert str(refused.value) == (
        f"{path}: not a readable profile: at byte 0 expected the beginning of a field, found byte 0x3c, "
        "which begins none; record the profile again or copy the file anew"
    )
    assert (refused.value.path, refused.value.offset) == (path, 0)
    odd = path.rename(tmp_path / "a\nb.xplane.pb")
    with pytest.raises(NotAProfile, match=r"^[^\n]*a\\nb\.xplane\.pb: not a readable profile"):
        read(odd)


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.xplane.pb", tmp_path):
        with pytest.raises(NoSuchPlace, match="cannot be opened"):
            read(path)


def test_a_tiny_profile_cut_anywhere_is_refused_but_between_its_fields() -> None:
    whole = {end for end in range(len(TINY) + 1) if readable(TINY[:end])}
    assert whole == {353, 356, len(TINY)}


def readable(data: bytes) -> bool:
    try:
        parse(data)
    except NotAProfile:
        return False
    return True


def test_the_corrupt_profile_of_the_corpus_is_refused() -> None:
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus of real profiles at {CORPUS} (set TFCOMPARE_CORPUS)")
    (path,) = (CORPUS / "corrupt").rglob("*.xplane.pb")
    with pytest.raises(NotAProfile) as refused:
        read(path)
    assert str(refused.value).startswith(f"{path}: not a readable profile: at byte ")


def test_every_single_byte_of_a_tiny_profile_may_be_any_other() -> None:
    """Reading ends, one way or the other; what is read can be looked at."""
    data = bytearray(TINY)
    for at in range(len(TINY)):
        for value in {0, 1, 0x7F, 0x80, 0xFF, TINY[at] ^ 1, TINY[at] ^ 8}:
            data[at] = value
            try:
                space_ = parse(bytes(data))
            except NotAProfile:
                continue
            space_.strings("text"), space_.numbers("u"), space_.planes_of(np.arange(len(space_.events)))
        data[at] = TINY[at]


@pytest.mark.parametrize(
    ("offset_ps", "duration_ps", "expected"),
    [
        (5, 7, (1_000_005, 7, 0)),
        (-5, 7, (999_995, 7, 0)),
        (5, -7, (1_000_005, 0, 0)),
        (1 << 58, 1 << 58, (1_000_000 + (1 << 58), 1 << 58, 0)),
        ((1 << 58) + 1, 7, (1_000_000, 0, 1)),
        (-(1 << 63), 7, (1_000_000, 0, 1)),
        (5, (1 << 63) - 1, (1_000_000, 0, 1)),
        (5, -(1 << 63), (1_000_005, 0, 0)),
    ],
)
def test_times_that_cannot_be(offset_ps: int, duration_ps: int, expected: tuple[int, int, int]) -> None:
    odd = chunk(4, integer(2, offset_ps) + integer(3, duration_ps))
    events = parse(space(plane("p", line("first", event("e", 0, 1)), line("t", odd, at_us=1)))).events
    assert (int(events.start_ps[1]), int(events.duration_ps[1]), events.odd_times) == expected


def test_a_clock_that_cannot_be() -> None:
    """Lines of one recording lie close together; one that is years off says nothing, and moves none of the others."""
    day_us = 86_400_000_000
    lines = [line(str(i), event("e", 2, 1), at_us=20_000 * day_us + i) for i in range(3)]
    wrong = [line("0", event("e", 2, 1)), line("end", event("e", 2, 1), at_us=90_000 * day_us), line("empty", at_us=5)]
    events = parse(space(plane("p", *lines, *wrong))).events
    assert events.start_ps.tolist() == [2_000_000, 3_000_000, 4_000_000, 2_000_000, 2_000_000]
    assert events.odd_times == 2


def test_more_planes_than_any_host_has_are_refused() -> None:
    assert len(parse(space(*[plane("p")] * 1000)).planes) == 1000
    assert refusal(space(*[plane("p")] * 1001)) == (
        "at byte 0 expected an XSpace of at most 1,000 planes, found one of 1,001"
    )


EMPTY = b""
CROWDED = {
    "planes": lambda: space(plane("/host:CPU"), chunk(1, EMPTY) * 10),
    "lines": lambda: of_host(chunk(3, EMPTY) * 11),
    "events": lambda: of_host(line("t", chunk(4, EMPTY) * 11)),
    "event_stats": lambda: of_host(line("t", chunk(4, chunk(4, EMPTY) * 11))),
    "event_metadata": lambda: of_host(chunk(4, EMPTY) * 11),
    "stat_metadata": lambda: of_host(chunk(5, EMPTY) * 11),
    "other_stats": lambda: of_host(chunk(6, EMPTY) * 5 + chunk(4, integer(1, 7) + chunk(2, chunk(5, EMPTY) * 6))),
    "texts": lambda: space(plane("/host:CPU"), chunk(2, EMPTY) * 5, chunk(3, EMPTY) * 5, chunk(4, EMPTY)),
}


def of_host(content: bytes) -> bytes:
    return space(plane("/host:CPU", content))


@pytest.mark.parametrize("limit", CROWDED)
def test_a_count_above_its_limit_is_refused(limit: str) -> None:
    data = CROWDED[limit]()
    parse(data, Limits(**{limit: 11}))
    with pytest.raises(NotAProfile, match=r"expected an XSpace of at most 10 .*, found one of 11;"):
        parse(data, Limits(**{limit: 10}))


def test_a_file_above_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "vm.xplane.pb"
    with path.open("wb") as file:
        file.truncate(3 << 30)  # takes no space on the disk
    with pytest.raises(NotAProfile, match=r"vm.xplane.pb: .* at most 2,147,483,648 bytes, found a file of 3,221,225,"):
        read(path)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (Limits(table_rows=5), "expected at most 5 rows of op_parts, found 9"),
        (Limits(table_bytes=1000), "expected a profile whose tables take at most 1,000 bytes, found"),
    ],
)
def test_tables_above_the_limits_are_refused(limits: Limits, text: str) -> None:
    profile = parse(space(plane("/host:CPU", line("t", *(event(f"o{i}:M{i}", 10 * i, 9) for i in range(9))))))
    build(profile, "vm", "")
    with pytest.raises(NotAProfile, match=text):
        build(profile, "vm", "", limits=limits)


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
