"""Buffers of programs written by hand."""

from __future__ import annotations

import pytest

from tests.hlo.builder import F32, computation, instruction, program
from tests.xspace_builder import chunk, integer
from tfcompare.errors import NotAProfile
from tfcompare.hlo.buffers import Buffer, buffers
from tfcompare.hlo.program import read_program

ALLOCATE, FREE, SHARE = 0, 1, 2
THREAD_LOCAL, PARAMETER, LIVE_OUT, CONSTANT = 3, 5, 7, 12


def logical(number: int, size: int, color: int = 0, output: bytes = b"") -> bytes:
    """The value of the instruction of the same number."""
    return chunk(1, integer(1, number) + integer(2, size) + chunk(3, integer(4, number) + output) + integer(4, color))


def allocation(size: int, *assigned: int, flag: int = 0, color: int = 0) -> bytes:
    body = integer(2, size) + b"".join(chunk(9, integer(1, number)) for number in assigned) + integer(8, color)
    return chunk(3, body + (integer(flag, 1) if flag else b""))


def trace(*events: tuple[int, int] | tuple[int, int, int]) -> bytes:
    """(kind, buffer, whose memory it shares) of each event."""
    return chunk(4, b"".join(chunk(1, b"".join(integer((1, 2, 5)[i], n) for i, n in enumerate(e))) for e in events))


def read(*parts: bytes) -> list[Buffer]:
    one = computation(1, instruction("n", "negate", F32[2]))
    return buffers(read_program(memoryview(program(one) + chunk(3, b"".join(parts)))))


def shown(found: list[Buffer]) -> list[tuple[int, str, int, bool]]:
    return [(one.instruction, one.kind, one.size_bytes, one.is_live_at_peak) for one in found]


def test_a_program_without_a_buffer_assignment_has_none() -> None:
    assert buffers(read_program(memoryview(program()))) == []
    assert read() == []


def test_what_is_live_throughout_counts_once_per_allocation() -> None:
    parts = [logical(n, size) for n, size in ((1, 10), (2, 20), (3, 30), (4, 40), (5, 50), (6, 60))]
    parts += [allocation(32, 1, 2, flag=LIVE_OUT), allocation(30, 3, flag=PARAMETER), allocation(40, 4, flag=CONSTANT)]
    parts += [allocation(50, 5, flag=THREAD_LOCAL), allocation(60, 6), allocation(0), allocation(7, flag=LIVE_OUT)]
    assert shown(read(*parts)) == [
        (2, "output", 32, True),
        (3, "parameter", 30, True),
        (4, "constant", 40, True),
        (6, "temporary", 60, True),
        (-1, "output", 7, True),
    ]


def test_temporary_buffers_are_live_from_their_allocation_until_they_are_freed() -> None:
    """The peak is 30 + 5, after the third event; 10 is free by then, and 20 is not yet allocated."""
    parts = [logical(n, size) for n, size in ((1, 10), (2, 30), (3, 5), (4, 20))]
    events = [(ALLOCATE, 1), (ALLOCATE, 2), (FREE, 1), (ALLOCATE, 3), (FREE, 2), (ALLOCATE, 4), (FREE, 3), (FREE, 4)]
    found = read(*parts, allocation(40, 1, 2, 3, 4), trace(*events))
    assert [one.lifetime_share for one in found] == [2 / 8, 3 / 8, 3 / 8, 2 / 8]
    assert [(one.first_position, one.last_position) for one in found] == [(1, 2), (2, 4), (4, 6), (6, 7)]
    assert {one.positions for one in found} == {8}
    assert shown(found) == [
        (1, "temporary", 10, True),
        (2, "temporary", 30, True),
        (3, "temporary", 5, False),
        (4, "temporary", 20, False),
    ]


def test_a_buffer_in_the_memory_of_another_keeps_that_alive() -> None:
    parts = [logical(1, 10), logical(2, 10), logical(3, 1)]
    events = [(ALLOCATE, 1), (SHARE, 2, 1), (FREE, 1), (ALLOCATE, 3), (FREE, 2), (FREE, 3)]
    found = read(*parts, allocation(11, 1, 2, 3), trace(*events))
    assert shown(found) == [(1, "temporary", 10, True), (3, "temporary", 1, True)]
    assert [one.lifetime_share for one in found] == [4 / 6, 2 / 6]


def test_memory_that_is_shared_after_it_was_freed_is_live_again() -> None:
    """In between, its place may hold something else. The second span bears the name of the value that begins it."""
    parts = [logical(1, 10), logical(2, 8), logical(3, 4), logical(4, 1)]
    events = [(ALLOCATE, 1), (FREE, 1), (ALLOCATE, 3), (SHARE, 2, 1), (SHARE, 4, 2), (FREE, 2), (FREE, 4), (FREE, 3)]
    found = read(*parts, allocation(14, 1, 2, 3, 4), trace(*events))
    assert shown(found) == [(1, "temporary", 10, False), (3, "temporary", 4, True), (2, "temporary", 10, True)]
    assert [(one.first_position, one.last_position) for one in found] == [(1, 1), (3, 7), (4, 6)]


def test_the_longest_trace_of_a_memory_space_is_its_program_order() -> None:
    """The peak of the other is part of the program's: 20 beside 10 or 5."""
    parts = [logical(n, size) for n, size in ((1, 10), (2, 5), (3, 20), (4, 3))]
    parts += [allocation(10, 1, 2), allocation(20, 3, 4), allocation(7, flag=PARAMETER)]
    short = trace((ALLOCATE, 4), (FREE, 4), (ALLOCATE, 3))
    found = read(*parts, short, trace((ALLOCATE, 1), (FREE, 1), (ALLOCATE, 2), (FREE, 2)))
    assert [(one.size_bytes, one.first_position, one.last_position, one.is_live_at_peak) for one in found] == [
        (7, 1, 4, True),
        (20, 1, 4, True),
        (10, 1, 1, True),
        (5, 3, 3, False),
    ]
    assert {one.positions for one in found} == {4}


def test_memory_spaces_have_traces_of_their_own() -> None:
    parts = [logical(1, 10), logical(2, 99, color=5), allocation(10, 1), allocation(99, 2, color=5)]
    found = read(*parts, trace((ALLOCATE, 1), (FREE, 1)), trace((ALLOCATE, 2), (FREE, 2)))
    assert [(one.memory_space, one.size_bytes, one.is_live_at_peak) for one in found] == [(0, 10, True), (5, 99, True)]


def test_an_output_in_a_trace_is_live_throughout_and_part_of_a_tuple_is_named_by_its_index() -> None:
    of_tuple = logical(1, 10, output=chunk(3, b"\1\2"))
    parts = [of_tuple, logical(2, 20), allocation(10, 1, flag=LIVE_OUT), allocation(20, 2)]
    found = read(*parts, trace((ALLOCATE, 1), (ALLOCATE, 2), (FREE, 2)))
    assert shown(found) == [(1, "output", 10, True), (2, "temporary", 20, True)]
    assert (found[0].lifetime_share, found[0].output) == (1.0, (1, 2))


def test_older_programs_name_the_instruction() -> None:
    named = [
        chunk(1, integer(1, i) + integer(2, 8) + chunk(3, chunk(1, "main") + chunk(2, name)))
        for i, name in enumerate(["n", "?"])
    ]
    found = read(*named, allocation(8, 0), allocation(8, 1))
    assert [one.instruction for one in found] == [100, -1]  # the first instruction of computation 1


def test_nonsense_in_a_trace_is_passed_over() -> None:
    freed, allocated = (FREE, 1), (ALLOCATE, 1)
    events = [freed, allocated, allocated, freed, freed, freed, (SHARE, 1, 1), (SHARE, 8, 9), (7, 1)]
    found = read(logical(1, 10), allocation(10, 1), trace(*events), trace(*events))
    assert shown(found) == [(1, "temporary", 10, True)]
    assert 0 <= found[0].lifetime_share <= 1


def test_absurd_sizes_are_refused() -> None:
    with pytest.raises(NotAProfile, match="buffers of at most 1,125,899,906,842,624 bytes, found 1,152,921"):
        read(allocation(1 << 60, flag=LIVE_OUT))
    assert read(allocation((1 << 64) - 5, flag=LIVE_OUT)) == []
