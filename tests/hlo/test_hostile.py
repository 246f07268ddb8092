"""Damaged programs: each is read or refused."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.fuzz.edits import damaged_bytes
from tests.fuzz.grammar import with_program
from tests.hlo.builder import F32, computation, instruction, parameter, program, read
from tests.hlo.test_buffers import allocation, logical, trace
from tests.profiles import CORPUS, CORPUS_RUNS
from tests.protobufs import hlo_protos
from tests.xspace_builder import chunk, integer
from tfcompare.errors import NotAProfile
from tfcompare.hlo import convolution
from tfcompare.hlo.buffers import buffers
from tfcompare.hlo.contents import MOST_INSTRUCTIONS
from tfcompare.hlo.cost import bytes_accessed, categories, flops
from tfcompare.hlo.expression import expressions
from tfcompare.hlo.neighbours import fused_texts, operand_texts, user_texts
from tfcompare.hlo.program import read_program
from tfcompare.xspace import parse

REAL_RUNS = ("jax_conv_08", "jax_elementwise", "jax_tpu") if CORPUS.is_dir() else ()


def protos(data: bytes) -> list[bytes]:
    return [proto.tobytes() for proto in hlo_protos(parse(data)).values()]


def programs() -> list[bytes]:
    """Real programs where the corpus is at hand, and generated ones."""
    files = [next((CORPUS / CORPUS_RUNS[name]).glob("*.xplane.pb")) for name in REAL_RUNS]
    found = [proto for file in files for proto in protos(file.read_bytes()) if len(proto) < 10_000]
    return found + [proto for seed in range(20) for proto in protos(with_program(random.Random(seed)))]


def everything(proto: bytes) -> None:
    """Read all that is ever read of a program."""
    found = read_program(memoryview(proto))
    rows = found.every
    for costs in (flops(found, rows), bytes_accessed(found, rows)):
        known = costs[~np.isnan(costs)]
        assert ((known >= 0) & (known <= 1e18)).all()
    assert (found.types(rows) >= 0).all()
    assert (
        len(categories(found, rows)) == len(found.sources(rows)) == len(found.tf_ops(found.origins(rows))) == len(rows)
    )
    assert all(len(text) < 3000 for text in expressions(found, rows))
    for texts in (operand_texts, user_texts, fused_texts):
        assert len(texts(found, rows)) == len(rows)
    assert all(0 <= one.lifetime_share <= 1 and one.size_bytes >= 0 for one in buffers(found))


def test_damaged_programs_are_read_or_refused() -> None:
    every, rng, refused = programs(), random.Random(7), 0
    for _ in range(150):
        data = rng.choice(every)
        for _ in range(rng.choice((1, 1, 4))):
            data = damaged_bytes(data, rng)
        try:
            everything(data)
        except NotAProfile:
            refused += 1
    assert 10 < refused < 150


def test_a_crowd_of_instructions_is_refused() -> None:
    crowd = chunk(2, b"") * (MOST_INSTRUCTIONS + 1)
    with pytest.raises(NotAProfile, match="at most 1,000,000 instructions"):
        read_program(memoryview(chunk(1, chunk(3, crowd))))


def test_deep_and_wide_calls_take_moments() -> None:
    """Each of 500 computations calls the one before it fifty times."""
    computations = [computation(0, parameter("p", F32[4]), instruction("n", "negate", F32[4], "p"))]
    for i in range(1, 500):
        calls = (instruction(f"f{i}.{n}", "fusion", F32[4], "p", calls=(i - 1,)) for n in range(50))
        computations.append(computation(i, parameter("p", F32[4]), *calls))
    found = read(*computations)
    first, last = flops(found, found.rows_named(["f1.0", "f499.0"]))
    assert first == 4
    assert np.isnan(last)


def test_a_computation_that_is_called_again_and_again_is_read_once() -> None:
    """By fusions without an op, in which no instruction has one either: each looked for it in all of them."""
    called = computation(1, *(instruction(f"n{i}", "negate", F32[4]) for i in range(5_000)))
    fusions = [instruction(f"f{i}", "fusion", F32[4], calls=(1,) * 5_000) for i in range(20)]
    found = read(called, computation(2, *fusions))
    rows = found.rows_named([f"f{i}" for i in range(20)])
    assert flops(found, rows).tolist() == [4 * 5_000 * 5_000] * 20
    assert bytes_accessed(found, rows).tolist() == [16.0] * 20
    assert found.origins(rows).tolist() == rows.tolist()
    assert {len(text.splitlines()) for text in fused_texts(found, rows)} == {32}


def test_parameters_of_one_id_are_read_once() -> None:
    """The last one has all users; each of the others had them too, and so did each bitcast of it."""
    count = 5_000
    same = [parameter("p", F32[4], i) for i in range(count)]
    uses = [instruction(f"s{i}", "slice", F32[1], "p") for i in range(count)]
    names = [f"a{i}" for i in range(count)]
    entry = computation(
        2, *(parameter(name, F32[4]) for name in names), instruction("f", "fusion", F32[1], *names, calls=(1,))
    )
    found = read(computation(1, *same, *uses), entry)
    assert len(found) == 3 * count + 1
    assert bytes_accessed(found, found.rows_named(["f"])).tolist() == [16 + 4]


def wide_window(convolutions: int, size: int) -> bytes:
    """Convolutions with a window of as many dimensions as arrays can have, of different sizes."""
    spatial = chunk(11, bytes(range(2, 64))) + chunk(12, bytes(range(2, 64)))
    image = F32[tuple([2] * 64)]
    instructions = []
    for i in range(convolutions):
        sizes = (integer(1, size - 62 * i - n) + integer(2, 3) + integer(6, 60_001 + n) for n in range(62))
        window = chunk(15, b"".join(chunk(1, one) for one in sizes))
        others = window + chunk(16, spatial + integer(3, 0) + integer(4, 1) + integer(7, 0))
        instructions.append(instruction(f"c{i}", "convolution", image, "a", "a", others=others))
    return computation(1, parameter("a", image), *instructions)


def test_the_windows_of_all_convolutions_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window of 62 dimensions with holes between the elements took half a minute."""
    seen: list[int] = []

    def counted(window: convolution.WindowDimension, *sides: int) -> int | None:
        seen.append(window.size)
        return positions(window, *sides)

    positions = convolution._positions
    monkeypatch.setattr(convolution, "_positions", counted)
    found = read(wide_window(100, 60_000))
    costs = flops(found, found.rows_named([f"c{i}" for i in range(100)]))
    assert sum(seen) <= 1 << 20
    assert np.isnan(costs).all()
    few = read(wide_window(3, 5_000))
    assert not np.isnan(flops(few, few.rows_named(["c0", "c2"]))).any()


def test_a_window_of_more_dimensions_than_arrays_have_is_none() -> None:
    others = chunk(15, chunk(1, integer(1, 3)) * 200_000) + chunk(16, integer(3, 0))
    found = read(
        computation(1, parameter("a", F32[4]), instruction("c", "convolution", F32[4], "a", "a", others=others))
    )
    assert np.isnan(flops(found, found.rows_named(["c"]))).all()
    assert categories(found, found.rows_named(["c"])).tolist() == ["convolution"]


def test_many_traces_of_memory_take_moments() -> None:
    """Each of the heap simulator's traces left out the buffers of those before it, one by one."""
    count = 5_000
    values = b"".join(logical(i, 8) for i in range(1, count))
    traces = b"".join(trace((0, i), (1, i)) for i in range(1, count))
    proto = program(computation(1)) + chunk(3, values + allocation(8, *range(1, count)) + traces)
    assert len(buffers(read_program(memoryview(proto)))) == count - 1
