"""Damaged programs: each is read or refused, in moments."""

from __future__ import annotations

import random
import time

import pytest

from tests.fuzz.edits import damaged_bytes
from tests.fuzz.grammar import with_program
from tests.hlo.builder import F32, computation, instruction, parameter, program
from tests.profiles import CORPUS, CORPUS_RUNS
from tests.xspace_builder import chunk
from tfcompare.errors import NotAProfile
from tfcompare.hlo.buffers import buffers
from tfcompare.hlo.category import category
from tfcompare.hlo.cost import Costs
from tfcompare.hlo.expression import expression
from tfcompare.hlo.program import MOST_INSTRUCTIONS, read_program
from tfcompare.xspace import parse

REAL_RUNS = ("jax_conv_08", "jax_elementwise", "jax_tpu") if CORPUS.is_dir() else ()


def protos(data: bytes) -> list[bytes]:
    return [proto.tobytes() for proto in parse(data).metadata_bytes("Hlo Proto").values()]


def programs() -> list[bytes]:
    """Real programs where the corpus is at hand, and generated ones."""
    files = [next((CORPUS / CORPUS_RUNS[name]).glob("*.xplane.pb")) for name in REAL_RUNS]
    found = [proto for file in files for proto in protos(file.read_bytes()) if len(proto) < 10_000]
    return found + [proto for seed in range(20) for proto in protos(with_program(random.Random(seed)))]


def everything(proto: bytes) -> None:
    """Read all that is ever read of a program."""
    read = read_program(memoryview(proto))
    costs = Costs(read)
    for one in read.instructions.values():
        for cost in (costs.flops(one), costs.bytes_accessed(one)):
            assert cost is None or 0 <= cost <= 1e18
        assert isinstance(category(one), str) and isinstance(read.source(one), str) and isinstance(one.tf_op, str)
        assert read.types(one) is not None
        assert len(expression(read, one)) < 3000
    assert all(0 <= one.lifetime_share <= 1 and one.size_bytes >= 0 for one in buffers(read))


def test_damaged_programs_are_read_or_refused() -> None:
    every, rng, refused = programs(), random.Random(7), 0
    began = time.process_time()
    for _ in range(400):
        data = rng.choice(every)
        for _ in range(rng.choice((1, 1, 4))):
            data = damaged_bytes(data, rng)
        try:
            everything(data)
        except NotAProfile:
            refused += 1
    assert 20 < refused < 400
    assert time.process_time() - began < 60


def test_a_crowd_of_instructions_is_refused() -> None:
    crowd = chunk(2, b"") * (MOST_INSTRUCTIONS + 1)
    with pytest.raises(NotAProfile, match="at most 1,000,000 instructions"):
        read_program(memoryview(chunk(1, chunk(3, crowd))))


def test_deep_and_wide_calls_take_moments() -> None:
    """Each of 2,000 computations calls the one before it fifty times."""
    computations = [computation(0, parameter("p", F32[4]), instruction("n", "negate", F32[4], "p"))]
    for i in range(1, 2_000):
        calls = (instruction(f"f{i}.{n}", "fusion", F32[4], "p", calls=(i - 1,)) for n in range(50))
        computations.append(computation(i, parameter("p", F32[4]), *calls))
    began = time.process_time()
    read = read_program(memoryview(program(*computations)))
    costs = Costs(read)
    assert costs.flops(read.instructions["f1.0"]) == 4
    assert costs.flops(read.instructions["f1999.0"]) is None
    assert time.process_time() - began < 10
