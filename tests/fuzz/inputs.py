"""The input of each number: what it is follows from seed and number alone."""

from __future__ import annotations

import gzip
import random
from functools import cache
from typing import NamedTuple

from tests.fuzz.crowds import CROWDS
from tests.fuzz.edits import damaged_bytes, edited
from tests.fuzz.grammar import generated, with_program
from tests.fuzz.tree import cut_down
from tests.profiles import CORPUS, CORPUS_RUNS, SAMPLE_RUNS
from tests.xspace import fuzz_inputs

CUT_EVERY = 97
LARGEST = 4 << 20
_CROWD_EVERY, _LARGE_CROWD_EVERY = 250, 4_000
_CROWD_SIZES, _LARGE_CROWD = (500, 20_000, 100_000), 1_000_000


class Input(NamedTuple):
    """`kind`: `edited`, `generated`, `gzipped`, `cut`, or what a crowd is made of."""

    kind: str
    data: bytes


@cache
def bases(with_corpus: bool = False) -> tuple[bytes, ...]:
    """The small profiles that are edited: built ones, and the beginnings of real ones."""
    real = [next(SAMPLE_RUNS["filters_16_8"].rglob("*.xplane.pb"))]
    if with_corpus:
        real += [next((CORPUS / run).glob("*.xplane.pb")) for run in CORPUS_RUNS.values()]
    return (*fuzz_inputs.built(), *(cut_down(path.read_bytes(), 12, 6) for path in real))


def cuts() -> list[bytes]:
    """Every small profile, broken off at every 97th byte."""
    return [data[:end] for data in bases() for end in range(0, len(data), CUT_EVERY)]


def made(seed: int, number: int, with_corpus: bool = False) -> Input:
    """The input of that number: first all cuts, then one kind or the other by chance, now and then a crowd."""
    rng = random.Random(f"{seed}/{number}")
    if number < len(cuts()):
        return Input("cut", cuts()[number])
    if number % _CROWD_EVERY == 0:
        kind = list(CROWDS)[number // _CROWD_EVERY % len(CROWDS)]
        size = _LARGE_CROWD if number % _LARGE_CROWD_EVERY == 0 else rng.choice(_CROWD_SIZES)
        return Input(kind, CROWDS[kind](size)[:LARGEST])
    if rng.random() < 0.35:
        kind, data = "generated", with_program(rng) if rng.random() < 0.1 else generated(rng)
    else:
        every = bases(with_corpus)
        kind, data = "edited", rng.choice(every)
        if rng.random() < 0.85:
            data = edited(data, rng.choice(every), rng)
    if rng.random() < 0.25:
        data = damaged_bytes(data, rng)
    if rng.random() < 0.03:
        kind, data = "gzipped", gzipped(data, rng)
    return Input(kind, data[:LARGEST])


def gzipped(data: bytes, rng: random.Random) -> bytes:
    """In one or two gzip members, whole or damaged."""
    at = rng.choice((0, len(data) // 2))
    members = (gzip.compress(part, mtime=0) for part in (data[:at], data[at:]) if part)
    packed = b"\0\0".join(members) if rng.random() < 0.2 else b"".join(members)
    return damaged_bytes(packed, rng) if rng.random() < 0.5 else packed
