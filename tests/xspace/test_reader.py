"""Profiles are read as the protobuf library reads them; each peculiarity of the format, and texts of any length."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.frames.tables import host, run_with, thorough_but
from tests.profiles import ALL_RUNS, run_path
from tests.xspace import fuzz_inputs
from tests.xspace.fuzz_inputs import hlo_proto
from tests.xspace.plain import Plain, by_columns, by_protobuf
from tests.xspace_builder import (
    U64,
    Ref,
    Stats,
    Value,
    aggregated,
    chunk,
    double,
    event,
    fixed32,
    fixed64,
    integer,
    line,
    meta,
    plane,
    space,
)
from tfcompare.frames.ops.op_names import parse_op
from tfcompare.hlo.program import read_program
from tfcompare.xspace import lookup, parse, read
from tfcompare.xspace.texts import LONGEST_BYTES, text_of

UNKNOWN_FIELDS = b"".join(
    [integer(99, 7), integer(100, -1), fixed64(101, b"\xff" * 8), fixed32(102, b"\xff" * 4), chunk(103, b"\xff" * 300)]
)


def read_like_protobuf(data: bytes) -> Plain:
    """What both readers make of `data`."""
    ours = by_columns(parse(data))
    assert ours == by_protobuf(data)
    return ours


def only_line(data: bytes) -> Plain:
    (plane_,) = read_like_protobuf(data)["planes"]
    (line_,) = plane_["lines"]
    return line_


def test_everything_a_profile_holds() -> None:
    of_every_kind: dict[str, Value] = {
        "an odd name": "text",
        "u": U64((1 << 64) - 1),
        "d": -1.5,
        "b": b"\0\xff",
        "r": Ref("referred"),
        "empty": "",
    }
    of_plane: dict[str, Value] = {
        "cores": 3,
        "vendor": "A",
        "memory": U64(1 << 63),
        "clock": 0.5,
        "raw": b"\1",
        "kind": Ref("k"),
    }
    events = [
        event("train", 0, 100, _r=1, step_num=-7),
        event(meta("MatMul:MatMul", "mm", {"tf_op": Ref("x")}), 10, 20.5, of_every_kind),
        aggregated("copy", 12, 3),
    ]
    host = plane("/host:CPU", line("python", *events, id=-3, at_us=1.5), stats=of_plane, id=4)
    read = read_like_protobuf(space(host, hostnames=["vm", ""], errors=["lost"], warnings=["late", "é"]))
    assert (read["hostnames"], read["errors"], read["warnings"]) == (("vm", ""), ("lost",), ("late", "é"))
    (plane_,) = read["planes"]
    assert plane_["stats"] == of_plane
    (line_,) = plane_["lines"]
    assert (line_["id"], line_["name"], line_["timestamp_ns"]) == (-3, "python", 1500)
    kinds = ("str_value", "uint64_value", "double_value", "bytes_value", "ref_value", "str_value")
    stats = [(name, kind, value) for (name, value), kind in zip(of_every_kind.items(), kinds, strict=True)]
    assert line_["events"] == [
        ("train", 0, 100_000_000, 0, [("_r", "int64_value", 1), ("step_num", "int64_value", -7)]),
        ("MatMul:MatMul", 10_000_000, 20_500_000, 0, stats),
        ("copy", 0, 3_000_000, 12, []),
    ]
    assert plane_["metadata"][2] == ("MatMul:MatMul", "mm", [("tf_op", "ref_value", "x")])


def test_unknown_fields_are_skipped_wherever_they_stand() -> None:
    strange = dataclasses.replace(event("a:A", 1, 2, s=5), extra=UNKNOWN_FIELDS)
    entry = chunk(4, integer(1, 9) + chunk(2, UNKNOWN_FIELDS + chunk(2, "b:B")))
    stat = chunk(6, UNKNOWN_FIELDS + integer(1, 1) + integer(4, 3))
    data = space(
        plane("/host:CPU", UNKNOWN_FIELDS, line("t", UNKNOWN_FIELDS, strange, UNKNOWN_FIELDS), entry, stat),
        UNKNOWN_FIELDS,
    )
    assert only_line(data)["events"] == [("a:A", 1_000_000, 2_000_000, 0, [("s", "int64_value", 5)])]


def test_an_entry_with_unknown_fields_of_its_own_is_kept() -> None:
    """xprof, in C++, keeps it as well; protobuf in Python does not."""
    entry = chunk(4, UNKNOWN_FIELDS + integer(1, 9) + UNKNOWN_FIELDS + chunk(2, chunk(2, "b:B")) + UNKNOWN_FIELDS)
    assert parse(space(plane("p", entry, line("t", chunk(4, integer(1, 9)))))).events_named("b:B").all()


def test_a_known_number_in_another_form_is_an_unknown_field() -> None:
    odd_event = integer(1, 1) + chunk(2, b"x") + fixed64(3, b"12345678") + integer(4, 9)
    odd_stat = chunk(4, integer(1, 1) + integer(2, 1) + chunk(3, b"x") + fixed32(4, b"1234") + integer(5, 2))
    odd_line = integer(2, 5) + chunk(1, "x") + fixed32(4, b"abcd") + chunk(3, "x")
    data = space(plane("p", integer(3, 1), integer(4, 1), line("t", odd_line, chunk(4, odd_event + odd_stat))))
    assert only_line(data)["events"] == [("", 0, 0, 0, [("", None, None)])]


def test_of_a_field_that_is_there_twice_the_last_counts() -> None:
    twice = dataclasses.replace(event("a:A", 1, 2), extra=integer(2, 77) + integer(3, 88) + integer(1, 2))
    stat = chunk(4, integer(1, 9) + integer(1, 1) + integer(3, 5) + chunk(5, "s") + double(2, 0.25))
    data = space(
        plane("first", chunk(2, "last"), line("t", integer(1, 5), twice, event("b:B", 0, 0, d=1), chunk(4, stat), id=4))
    )
    assert only_line(data)["events"] == [
        ("b:B", 77, 88, 0, []),
        ("b:B", 0, 0, 0, [("d", "int64_value", 1)]),
        ("", 0, 0, 0, [("d", "double_value", 0.25)]),
    ]


def test_offset_and_occurrences_exclude_each_other() -> None:
    offset, occurrences = integer(2, 9), integer(5, 3)
    data = space(plane("p", line("t", chunk(4, offset + occurrences), chunk(4, occurrences + offset))))
    assert [e[1:4] for e in only_line(data)["events"]] == [(0, 0, 3), (9, 0, 0)]


def test_an_id_means_what_its_own_plane_says() -> None:
    planes = [plane(f"p{i}", line("t", event(f"name{i}", 0, 1, {f"stat{i}": Ref(f"text{i}")}))) for i in range(3)]
    bare = plane("bare", line("t", chunk(4, integer(1, 1) + chunk(4, integer(1, 1) + integer(7, 2)))))
    read = read_like_protobuf(space(*planes, bare))
    assert [p["lines"][0]["events"][0][0] for p in read["planes"]] == ["name0", "name1", "name2", ""]


@pytest.mark.parametrize(
    "ids",
    [
        {"a": -1, "b": 0, "c": 1},
        {"a": -(1 << 63), "b": (1 << 63) - 1, "c": 0},
        {"a": 1 << 31, "b": 1 << 32, "c": (1 << 32) + 1},
        {"a": (1 << 31) - 1, "b": 4_000_000_000, "c": -4_000_000_000},
        {"a": 0, "b": 3000, "c": 100_000},
        {"a": 3, "b": 2, "c": 1},
    ],
    ids=str,
)
def test_ids_of_any_size(ids: dict[str, int]) -> None:
    for_stats = {f"{name} stat": number for name, number in ids.items()}
    refs = {f"{name} ref": number + 7 if number < 1 << 62 else number - 7 for name, number in ids.items()}
    events = [event(name, i, 1, {f"{name} stat": Ref(f"{name} ref")}) for i, name in enumerate(ids)]
    events.append(event("d", 9, 1))
    found = only_line(space(plane("p", line("t", *events), ids={**ids, **for_stats, **refs, "d": 77})))["events"]
    assert [(e[0], e[4]) for e in found] == [
        *((name, [(f"{name} stat", "ref_value", f"{name} ref")]) for name in ids),
        ("d", []),
    ]


def test_an_entry_of_the_map_that_is_there_twice() -> None:
    entries = [chunk(4, integer(1, 5) + chunk(2, integer(1, 5) + chunk(2, name))) for name in ("old", "new")]
    data = space(plane("p", *entries, line("t", chunk(4, integer(1, 5)))))
    assert by_columns(parse(data))["planes"][0]["lines"] == by_protobuf(data)["planes"][0]["lines"]


def test_a_key_without_value_and_a_value_without_key() -> None:
    entries = [chunk(4, integer(1, 5)), chunk(4, chunk(2, chunk(2, "no key"))), chunk(5, b"")]
    data = space(plane("p", *entries, line("t", chunk(4, b""), chunk(4, integer(1, 5)))))
    assert [e[0] for e in only_line(data)["events"]] == ["no key", ""]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (b"\x10\x82\x80\x80\x80\x80\x80\x80\x80\x80\x00\x98\x00\x83\x00", (2, 3)),  # longer than it needs to be
        (b"\x10" + b"\xff" * 9 + b"\x01", (-1, 0)),  # the tenth byte adds one bit
    ],
)
def test_numbers_of_ten_bytes(field: bytes, expected: tuple[int, int]) -> None:
    assert only_line(space(plane("p", line("t", chunk(4, field)))))["events"] == [("", *expected, 0, [])]


def test_invalid_utf8_becomes_a_mark_in_the_text() -> None:
    stat = chunk(4, chunk(4, integer(1, 1) + chunk(5, b"\xc3")))
    lines = line("t", chunk(2, b"th\xffread"), event("e", 0, 0, s="x"), stat)
    read = parse(space(plane("p", lines), chunk(4, b"h\xed\xa0\x80")))
    assert read.lines.name[0] == "th\ufffdread"
    assert read.hostnames == ("h\ufffd\ufffd\ufffd",)
    assert read.strings("s").labels == ["x", "\ufffd"]


def test_control_characters_are_removed_and_breaks_of_lines_become_spaces() -> None:
    events = (
        event("a\0:A\x1b[1m", 0, 1, s="\0x\ny"),
        event("b\x9f", 2, 1, s=Ref("x\ty\x7f")),
        event("\0", 3, 1, s=" x y"),
    )
    read = parse(space(plane("/host:\0CPU", line("t\r\n", *events)), hostnames=["v\0m"]))
    assert (read.planes[0].name, read.lines.name, read.hostnames) == ("/host:CPU", ["t  "], ("vm",))
    assert read.metadata_names[:3].tolist() == ["a:A[1m", "b", ""]
    assert read.strings("s").labels == ["x y", " x y"], "texts that have become equal are one"
    assert read.strings("s").codes.tolist() == [0, 0, 1]
    ends = parse(space(plane("p\0" + "é" * 2000 + "\0end"))).planes[0].name
    assert ends.startswith("pé")
    assert ends.endswith("éend")
    assert ends.isprintable()


def test_lines_and_planes_without_contents() -> None:
    data = space(plane(""), plane("p", *(line("", id=i) for i in range(3000))), plane("p", line("t", event("e", 0, 1))))
    assert [len(p["lines"]) for p in read_like_protobuf(data)["planes"]] == [0, 3000, 1]
    space_ = parse(data)
    assert space_.planes_of(np.arange(1)).tolist() == [2]
    found = [(p.lines.start, len(p.lines), p.events.start, p.event_count) for p in space_.planes]
    assert found == [(0, 0, 0, 0), (0, 3000, 0, 0), (3000, 1, 0, 1)]


def test_more_of_everything_than_room_was_made_for() -> None:
    """A first scan only counts what does not fit; the second must have room for all of it."""
    planes = [plane(f"p{i}", stats={f"s{j}": j for j in range(200)}) for i in range(100)]
    nothing = chunk(4, b"")
    crowded = plane("crowded", line("t", *[nothing] * 9000), *[line("u", nothing, nothing)] * 2000)
    stats = plane("stats", line("t", chunk(4, nothing * 4000)))
    read = parse(space(*planes, crowded, stats, hostnames=["h"] * 100))
    assert (len(read.planes), len(read.lines.id)) == (102, 2002)
    assert (len(read.events), len(read.event_stats.owner)) == (13001, 4000)
    assert [p.stats["s199"] for p in read.planes[:100]] == [199] * 100
    assert len(read.hostnames) == 100


def test_times_count_from_the_earliest_line_with_events() -> None:
    late, early = line("a", event("e", 5, 1), at_us=30), line("b", event("e", 1, 1), at_us=20)
    read = parse(space(plane("p", line("empty", at_us=1), late), plane("q", early)))
    assert read.events.start_ps.tolist() == [15_000_000, 1_000_000]


def test_the_kinds_of_a_stat_that_other_readers_ask_for() -> None:
    stats: list[Stats] = [{"n": 1, "s": "x"}, {"n": U64(2), "s": Ref("x")}, {"n": "3", "s": 4}, {}, {"s": "y"}]
    events = [event(name, 0, 1, own) for name, own in zip("abcde", stats, strict=True)]
    read = parse(space(plane("p", line("t", *events))))
    assert [a.tolist() for a in read.numbers("n")] == [[0, 1], [1, 2]]
    assert read.has("n").tolist() == [True, True, True, False, False]
    rows = np.array([4, 1, 2, 0, 1])
    assert read.number_of("n", rows, -1).tolist() == [-1, 2, -1, 1, 2]
    assert [a.tolist() for a in read.numbers_of("n", rows)] == [[0, 2, 0, 1, 2], [False, True, False, True, True]]
    assert read.have("n", rows).tolist() == [False, True, True, True, True]
    assert not read.have("absent", rows).any()
    text = read.strings("s")
    assert text.texts(np.arange(5)).tolist() == ["x", "x", "", "", "y"]
    assert (text.spread() < 0).tolist() == [False, False, True, True, False]
    assert sorted(text.labels) == ["x", "y"]
    assert read.events_named("a", "e", "absent").tolist() == [True, False, False, False, True]
    for absent in (read.numbers("absent")[0], read.strings("absent").owners):
        assert absent.tolist() == []
    assert not read.metadata_numbers("absent")[1].any()


def test_of_a_stat_that_an_event_has_twice_the_last_counts() -> None:
    pair = [chunk(4, integer(1, 1) + integer(4, 5)), chunk(4, integer(1, 1) + integer(4, 6))]
    read = parse(space(plane("p", line("t", event("a", 0, 0, s=1), chunk(4, b"".join(pair))))))
    assert read.number_of("s", np.array([1, 0]), -1).tolist() == [6, 1]


# Stats are found as by looking through all of them, in whatever order they are asked for


@pytest.mark.parametrize("order", ["sorted", "shuffled", "backwards"])
@pytest.mark.parametrize("kinds", [0b0110, 0b1000, -1])
def test_the_last_stat_of_each_owner(order: str, kinds: int) -> None:
    random = np.random.default_rng(7)
    for owners in (1, 3, 40, 400):
        owner = np.sort(random.integers(0, owners, 300)).astype(np.int32)
        kind = random.integers(1, 4, len(owner)).astype(np.uint8)
        stats = np.flatnonzero(random.random(len(owner)) < 0.6).astype(np.int32)
        wanted = np.sort(random.integers(-1, owners + 2, 200)).astype(np.int32)
        if order != "sorted":
            wanted = random.permutation(wanted) if order == "shuffled" else wanted[::-1].copy()
        out = np.empty(len(wanted), np.int32)
        lookup.last_of_each(stats, owner, kind, wanted, kinds, out)
        own = {int(owner[stat]): int(stat) for stat in stats if kinds >> int(kind[stat]) & 1}
        assert out.tolist() == [own.get(int(which), -1) for which in wanted]


def test_rows_are_grouped_by_code_and_those_of_none_left_out() -> None:
    first, rows = lookup.grouped(np.array([2, 0, -1, 2, 0, 2], np.int32), 4)
    assert [rows[a:b].tolist() for a, b in pairwise(first.tolist())] == [[1, 4], [], [0, 3, 5], []]


def shown(text: str) -> str:
    return text_of(memoryview(text.encode()))


def test_a_longer_text_than_the_limit_keeps_its_ends_and_tells_its_length() -> None:
    for whole in ("", "é" * (LONGEST_BYTES // 2)):
        assert shown(whole) == whole
    text = shown("a" * 5000 + "b" * 5000)
    assert text.startswith("a" * 1024 + "...10000_bytes_") and text.endswith("..." + "b" * 512)
    assert len(text) < LONGEST_BYTES
    assert len({shown("x" * 5000 + letter + "x" * 5000) for letter in "abcdef"}) == 6
    assert "\ufffd" in shown("a" + "é" * 5000), "a cut within a letter is marked"


def test_the_name_of_an_op_is_still_one() -> None:
    op = parse_op(shown("scope/" * 1000 + "dense/MatMul:MatMul"))
    assert op is not None and op.type == "MatMul" and op.name.endswith("dense/MatMul")


def test_every_text_of_a_profile_is_limited() -> None:
    long = "x" * 10_000
    read = parse(
        space(
            plane(long, line(long, event(long, 0, 1, s=long, r=Ref(long))), stats={"p": long}),
            hostnames=[long],
            errors=[long],
        )
    )
    texts = [read.planes[0].name, read.lines.name[0], read.metadata_names[0], read.planes[0].stats["p"]]
    texts += [*read.strings("s").labels, *read.strings("r").labels, *read.hostnames, *read.errors]
    program = read_program(memoryview(hlo_proto((long, long, long))))
    texts += [*program.names(program.every), *program.tf_ops(program.every)]
    assert len(texts) == 10
    assert max(map(len, texts)) <= 2 * LONGEST_BYTES + 1  # an HLO instruction has an op's name and its type


def test_one_long_name_in_many_steps_does_not_fill_memory() -> None:
    """Every row has its name: 500 steps of an op with a name of 1 MB were 500 MB."""
    steps = [event("train", 10 * i, 9, _r=1) for i in range(500)]
    ops = [event("x" * 1_000_000 + ":M", 10 * i + 1, 1) for i in range(500)]
    table = run_with(host(*steps, *ops)).table("op_steps")
    assert len(table) == 500
    assert table["op_name"].str.len().max() < LONGEST_BYTES
    assert table.memory_usage(deep=True).sum() < 5_000_000


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
