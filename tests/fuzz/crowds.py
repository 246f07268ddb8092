"""Small files that claim a lot: millions of empty messages, one long name on many rows. `CROWDS` gives, by what they
are made of, the function from a number of repeats to the bytes."""

from __future__ import annotations

from collections.abc import Callable

from tests.xspace_builder import Event, Line, Plane, Ref, chunk, event, integer, line, plane, space

_OP = event("op:A", 1, 1)
_NAMED = chunk(4, integer(1, 1) + integer(3, 5))
_FEWER = 40  # an event with a stat or two takes about so many bytes


def _host(*contents: Line | bytes) -> Plane:
    return plane("/host:CPU", *contents)


def _thread(*events: Event | bytes) -> bytes:
    return space(_host(line("t", *events)))


def _events(count: int, make: Callable[[int], list[Event]]) -> list[Event]:
    return [one for i in range(count // _FEWER) for one in make(i)]


def _long_name_of_kernels(count: int) -> bytes:
    name = "x" * count + ":M"
    launches = _events(count, lambda i: [event(name, i * 10, 9, correlation_id=i)])
    kernels = _events(count, lambda i: [event(f"k{i}", i * 10, 9, correlation_id=i, tf_op=Ref(name))])
    return space(_host(line("t", *launches)), plane("/device:GPU:0", line("Stream", *kernels)))


def _memory(count: int) -> bytes:
    stats = {"tf_op": Ref("x" * count + ":M"), "allocator_name": Ref("GPU_0_bfc"), "allocation_bytes": 512}
    return _thread(*_events(count, lambda i: [event("MemoryAllocation", i, 0, stats, bytes_allocated=512 * i, addr=i)]))


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
    "a long name in many steps": lambda n: _thread(
        *_events(n, lambda i: [event("train", i * 10, 9, _r=1), event("x" * n + ":M", i * 10 + 1, 1)])
    ),
    "a long name of many kernels": _long_name_of_kernels,
    "a long name of many allocations": _memory,
    "a long name of many iterators": lambda n: _thread(
        *_events(n, lambda i: [event("Iterator::" + "x" * n, i, 1, id=i)])
    ),
    "iterators below one another": lambda n: _thread(
        *_events(n, lambda i: [event("Iterator" + "::x" * (n // 3), i, n - 2 * i, id=i, parent_id=i - 1)])
    ),
    "scopes within each other": lambda n: _thread(event("a/" * (n // 2) + "b:M", 0, 1)),
    "events within each other": lambda n: _thread(*_events(n, lambda i: [event("op:A", i / 1e6, (n - i) / 1e6 * 2)])),
    "ops of all names": lambda n: _thread(*_events(n, lambda i: [event(f"scope_{i}/o{i}:M{i}", i, 1)])),
    "a step for each event": lambda n: _thread(*_events(n, lambda i: [event("train", i * 10, 9, _r=1, step_num=i)])),
}
