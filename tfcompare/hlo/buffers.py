"""The memory that a program needs: its buffers, how long each is live, and what is live at the peak.

All follows from the program's buffer assignment (`BufferAssignmentProto` of `hlo.proto`): allocations, the logical
buffers assigned to them, and the trace of the heap simulator that placed the temporary ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tfcompare.errors import NotAProfile
from tfcompare.hlo.program import BUFFER_ASSIGNMENT, Program
from tfcompare.hlo.proto_fields import integer_fields, integers, messages, signed
from tfcompare.xspace.texts import text_of

_LOGICAL_BUFFERS, _ALLOCATIONS, _TRACES, _EVENTS = 1, 3, 4, 1
_ID, _SIZE, _DEFINED_AT, _COLOR = 1, 2, 3, 4
_INSTRUCTION_NAME, _SHAPE_INDEX, _INSTRUCTION = 2, 3, 4
_THREAD_LOCAL, _PARAMETER, _LIVE_OUT, _ALLOCATION_COLOR, _ASSIGNED, _CONSTANT = 3, 5, 7, 8, 9, 12
_KIND, _BUFFER, _SHARED_WITH = 1, 2, 5
_ALLOCATE, _FREE, _SHARE = 0, 1, 2
_LARGEST_BYTES = 1 << 50
_MOST_BUFFERS = 1_000_000  # far above what real programs have

PARAMETER, CONSTANT, OUTPUT, TEMPORARY = "parameter", "constant", "output", "temporary"
_KINDS = {_PARAMETER: PARAMETER, _CONSTANT: CONSTANT, _LIVE_OUT: OUTPUT}


@dataclass(frozen=True)
class Buffer:
    """One buffer. `instruction` is the number of the instruction whose value it holds, −1 if unknown, and `output` the
    position of the value in that instruction's tuple. `memory_space` is 0 for the main memory of a device.

    It is live from `first_position` to `last_position` of the program order, whose `positions` are the allocations and
    frees in the heap simulator's trace of its memory space, counted from 1.
    """

    instruction: int
    output: tuple[int, ...]
    memory_space: int
    kind: str
    size_bytes: int
    first_position: int
    last_position: int
    positions: int
    is_live_at_peak: bool = True

    @property
    def lifetime_share(self) -> float:
        """The share of the program order in which it is live."""
        return (self.last_position - self.first_position + 1) / self.positions


class _Logical(NamedTuple):
    """A logical buffer, which holds the value of an instruction."""

    size: int
    color: int
    instruction: int
    output: tuple[int, ...]


class _Allocation(NamedTuple):
    """A piece of memory, and the ids of the logical buffers in it."""

    kind: str
    size: int
    color: int
    assigned: list[int]


class _Span(NamedTuple):
    """The events of a trace after which a piece of memory is live, which is as large as the buffer `owner`."""

    owner: int
    first: int
    last: int


class _Trace(NamedTuple):
    """One trace of the heap simulator: the number of its events, and the span of each buffer, by its first value.

    `peak_at` is the event after which a memory space is fullest, `events` how many change it.
    """

    length: int
    spans: dict[int, _Span]
    peak_at: dict[int, int]
    events: Counter[int]


def buffers(program: Program) -> list[Buffer]:
    """The buffers of a program; none if it has no buffer assignment.

    Parameters, constants and outputs are live throughout. Of values in the same memory, these count once, as the
    largest value. What is live at the peak adds up to the peak of a memory space. Of several traces of a memory space,
    the longest gives the program order; of the others, what is live at their peak counts as live throughout and the
    rest is left out. What a kernel has for itself is left out. Raises `NotAProfile` for damage.
    """
    assignment = program.part(0, BUFFER_ASSIGNMENT)
    if assignment is None:
        return []
    logical = _logical_buffers(assignment, program)
    allocations = []
    for message in messages(assignment, _ALLOCATIONS):
        values = integer_fields(message)
        if not values.get(_THREAD_LOCAL):  # what a kernel has for itself
            kind = next((kind for number, kind in _KINDS.items() if values.get(number)), TEMPORARY)
            assigned = [integer_fields(one).get(_ID, 0) for one in messages(message, _ASSIGNED)]
            allocations.append(_Allocation(kind, _size(values), values.get(_ALLOCATION_COLOR, 0), assigned))
    place = {one: i for i, each in enumerate(allocations) if each.kind == TEMPORARY for one in each.assigned}
    traces = _traces(assignment, {one: logical[one] for one in place if one in logical})
    orders: dict[int, _Trace] = {}
    for trace in traces:
        for space, events in trace.events.items():
            if space not in orders or events > orders[space].events[space]:
                orders[space] = trace
    is_traced = {place[span.owner] for trace in traces for span in trace.spans.values()}
    out = []
    for i, (kind, size, color, assigned) in enumerate(allocations):
        if size and i not in is_traced:  # live throughout
            inside = [logical[one] for one in assigned if one in logical]
            largest = max(inside, key=lambda value: value.size, default=_Logical(0, 0, -1, ()))
            last = orders[color].length if color in orders else 1
            out.append(Buffer(largest.instruction, largest.output, color, kind, size, 1, last, last))
    for trace in traces:
        out += _temporary(trace, logical, orders)
    return out


def _temporary(trace: _Trace, logical: dict[int, _Logical], orders: dict[int, _Trace]) -> Iterator[Buffer]:
    """The temporary buffers in a trace, in the program order of their memory space."""
    for one, (owner, first, last) in trace.spans.items():
        memory, value = logical[owner], logical.get(one, logical[owner])
        order = orders[memory.color]
        is_live_at_peak = first <= trace.peak_at.get(memory.color, 0) <= last
        if order is trace or is_live_at_peak:
            holds = value.instruction, value.output, memory.color, TEMPORARY, memory.size
            begin, end = (first, last) if order is trace else (1, order.length)
            yield Buffer(*holds, begin, end, order.length, is_live_at_peak)


def _traces(assignment: memoryview, temporary: dict[int, _Logical]) -> list[_Trace]:
    """The traces that have temporary buffers; a buffer is in the first one that allocates it."""
    out: list[_Trace] = []
    left = dict(temporary)
    for message in messages(assignment, _TRACES):
        trace = _read_trace(message, left)
        if trace.spans:
            out.append(trace)
            for owner in {span.owner for span in trace.spans.values()}:
                del left[owner]
    return out


def _read_trace(message: memoryview, temporary: dict[int, _Logical]) -> _Trace:
    """What a trace tells of the temporary buffers. Several values may share the memory of a buffer, also after it was
    freed: it then begins another span."""
    owner_of: dict[int, int] = {}
    users: Counter[int] = Counter()
    open_span: dict[int, int] = {}  # the first value in the memory of each buffer that is live
    spans: dict[int, _Span] = {}
    live: Counter[int] = Counter()
    peak: Counter[int] = Counter()
    trace = _Trace(0, spans, {}, Counter())
    position = 0
    for position, event in enumerate(map(integer_fields, messages(message, _EVENTS)), 1):
        kind, buffer = event.get(_KIND, _ALLOCATE), event.get(_BUFFER, 0)
        if kind == _SHARE:
            shared = event.get(_SHARED_WITH, 0)
            owner_of[buffer] = owner_of.get(shared, shared)
        owner = owner_of.get(buffer, buffer)
        if owner not in temporary:
            continue
        space, size = temporary[owner].color, temporary[owner].size
        if kind == _FREE and users[owner]:
            users[owner] -= 1
            if not users[owner]:
                first = open_span.pop(owner)
                spans[first] = spans[first]._replace(last=position - 1)
                live[space] -= size
                trace.events[space] += 1
        elif kind in (_ALLOCATE, _SHARE) and (users[owner] or buffer not in spans):
            users[owner] += 1
            if users[owner] == 1:
                open_span[owner] = buffer
                spans[buffer] = _Span(owner, position, position)
                live[space] += size
                trace.events[space] += 1
                if live[space] > peak[space]:
                    peak[space], trace.peak_at[space] = live[space], position
    for first in open_span.values():
        spans[first] = spans[first]._replace(last=position)
    return trace._replace(length=position)


def _logical_buffers(assignment: memoryview, program: Program) -> dict[int, _Logical]:
    out: dict[int, _Logical] = {}
    for message in messages(assignment, _LOGICAL_BUFFERS):
        values = integer_fields(message)
        defined = next(messages(message, _DEFINED_AT), memoryview(b""))
        number = integer_fields(defined).get(_INSTRUCTION)
        if number is None:  # older programs give the instruction's name
            named = next(messages(defined, _INSTRUCTION_NAME), None)
            number = program.numbers_by_name.get(text_of(named), -1) if named is not None else -1
        output = tuple(integers(defined, _SHAPE_INDEX, 64))
        out[values.get(_ID, 0)] = _Logical(_size(values), values.get(_COLOR, 0), number, output)
        if len(out) > _MOST_BUFFERS:
            raise NotAProfile(None, 0, f"an HLO module of at most {_MOST_BUFFERS:,} buffers", "more")
    return out


def _size(values: dict[int, int]) -> int:
    size = max(0, signed(values.get(_SIZE, 0)))
    if size > _LARGEST_BYTES:
        raise NotAProfile(None, 0, f"an HLO module with buffers of at most {_LARGEST_BYTES:,} bytes", f"{size:,}")
    return size
