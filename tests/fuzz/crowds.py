"""Small files that claim a lot: millions of empty messages, one long name on many rows. `CROWDS` gives, by what they
are made of, the function from a number of repeats to the bytes."""

from __future__ import annotations

from collections.abc import Callable

from tests.xspace_builder import Event, Line, Plane, Ref, chunk, event, integer, line, plane, space
from tfcompare.xspace.texts import LONGEST_BYTES

_OP = event("op:A", 1, 1)
_NAMED = chunk(4, integer(1, 1) + integer(3, 5))
_FEWER = 40  # an event with its stats takes some dozens of bytes


def _host(*contents: Line | bytes) -> Plane:
    return plane("/host:CPU", *contents)


def _thread(*events: Event | bytes) -> bytes:
    return space(_host(line("t", *events)))


def _events(count: int, make: Callable[[int], list[Event]]) -> list[Event]:
    return [one for i in range(count // _FEWER) for one in make(i)]


def _longest(start: str, end: str = "") -> str:
    """A name that is just not shortened."""
    return start + "x" * (LONGEST_BYTES - len(start + end)) + end


def _long_name_in_steps(count: int) -> bytes:
    """As dense as it gets: metadata 1 and 2 are those of the first two events."""
    first = [event("train", 0, 9e-6, _r=1), event(_longest("", ":M"), 1e-6, 1e-6)]
    flag = chunk(4, integer(1, 1) + integer(4, 1))
    markers = (chunk(4, integer(1, 1) + integer(2, 20 * i) + integer(3, 9) + flag) for i in range(1, count // 28))
    ops = (chunk(4, integer(1, 2) + integer(2, 20 * i + 1) + integer(3, 1)) for i in range(1, count // 28))
    return _thread(*first, *(marker + op for marker, op in zip(markers, ops, strict=True)))


def _long_name_of_iterators(count: int) -> bytes:
    first = event(_longest("Iterator::"), 0, 1e-6, id=0)
    own_id = (chunk(4, integer(1, 1) + integer(4, i)) for i in range(1, count // 20))
    return _thread(
        first, *(chunk(4, integer(1, 1) + integer(2, 3 * i) + integer(3, 1) + s) for i, s in enumerate(own_id))
    )


def _long_name_of_kernels(count: int) -> bytes:
    name = _longest("", ":M")
    launches = _events(count, lambda i: [event(name, i * 10, 9, correlation_id=i)])
    kernels = _events(count, lambda i: [event(f"k{i}", i * 10, 9, correlation_id=i, tf_op=Ref(name))])
    return space(_host(line("t", *launches)), plane("/device:GPU:0", line("Stream", *kernels)))


def _memory(count: int) -> bytes:
    """Stats 1, 3, 5 and 6 are those of the first event, 2 and 4 the texts that it refers to."""
    stats = {"tf_op": Ref(_longest("", ":M")), "allocator_name": Ref("GPU_0_bfc"), "allocation_bytes": 64}
    first = event("MemoryAllocation", 0, 0, stats, bytes_allocated=64)
    texts = chunk(4, integer(1, 1) + integer(7, 2)) + chunk(4, integer(1, 3) + integer(7, 4))
    sizes = chunk(4, integer(1, 5) + integer(4, 64)) + chunk(4, integer(1, 6) + integer(4, 64))
    return _thread(first, *(chunk(4, integer(1, 1) + integer(2, i) + texts + sizes) for i in range(1, count // 32)))


def _planes(count: int) -> bytes:
    kernel = line("t", event("k", 0, 1, tf_op="a:B"))
    empty = chunk(3, chunk(4, b"")) * (count // 2000)
    return space(*[plane(f"/device:GPU:{i}", empty, kernel) for i in range(min(999, count // 100))])


CROWDS: dict[str, Callable[[int], bytes]] = {
    "empty events": lambda n: _thread(_OP, chunk(4, b"") * n),
    "events of one name": lambda n: _thread(_OP, _NAMED * (n // 3)),
    "empty lines": lambda n: space(_host(chunk(3, b"") * n, line("t", _OP))),
    "lines with an empty event": lambda n: space(_host(chunk(3, chunk(4, b"")) * (n // 2), line("t", _OP))),
    "lines with an event": lambda n: space(_host(chunk(3, _NAMED) * (n // 4), line("t", _OP))),
    "streams with an event": lambda n: space(
        plane("/device:GPU:0", chunk(3, _NAMED) * (n // 4), line("t", event("k", 0, 1, tf_op="a:B")))
    ),
    "empty event metadata": lambda n: space(_host(line("t", _OP), chunk(4, b"") * n)),
    "event metadata without names": lambda n: space(
        _host(line("t", _OP), b"".join(chunk(4, integer(1, i)) for i in range(2, n // 3)))
    ),
    "empty stat metadata": lambda n: space(_host(line("t", _OP), chunk(5, b"") * n)),
    "empty stats of an event": lambda n: _thread(_OP, chunk(4, chunk(4, b"") * n)),
    "empty stats of a plane": lambda n: space(_host(line("t", _OP), chunk(6, b"") * n)),
    "empty stats of metadata": lambda n: space(
        _host(line("t", _OP), chunk(4, integer(1, 7) + chunk(2, chunk(5, b"") * n)))
    ),
    "empty planes": lambda n: space(_host(line("t", _OP)), chunk(1, b"") * n),
    "planes of a few lines": _planes,
    "host names": lambda n: space(_host(line("t", _OP)), chunk(4, b"") * n),
    "errors": lambda n: space(_host(line("t", _OP)), chunk(2, b"") * n),
    "unknown fields": lambda n: space(_host(line("t", _OP)), integer(99, 0) * (n // 2)),
    "a long name in many steps": _long_name_in_steps,
    "a long name of many kernels": _long_name_of_kernels,
    "a long name of many allocations": _memory,
    "a long name of many iterators": _long_name_of_iterators,
    "iterators below one another": lambda n: _thread(
        *_events(n, lambda i: [event("Iterator" + "::x" * (n // 3), i, n - 2 * i, id=i, parent_id=i - 1)])
    ),
    "scopes within each other": lambda n: _thread(event("a/" * (n // 2) + "b:M", 0, 1)),
    "events within each other": lambda n: _thread(*_events(n, lambda i: [event("op:A", i / 1e6, (n - i) / 1e6 * 2)])),
    "ops of all names": lambda n: _thread(*_events(n, lambda i: [event(f"scope_{i}/o{i}:M{i}", i, 1)])),
    "a step for each event": lambda n: _thread(*_events(n, lambda i: [event("train", i * 10, 9, _r=1, step_num=i)])),
}
