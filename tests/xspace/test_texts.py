"""Texts of any length: kept whole up to a limit, shortened beyond it, and never mixed up."""

from __future__ import annotations

from tests.frames.tables import host, run_with
from tests.xspace.fuzz_inputs import hlo_proto
from tests.xspace_builder import Ref, event, line, plane, space
from tfcompare.frames.ops.op_names import parse_op
from tfcompare.hlo.program import read_program
from tfcompare.xspace import parse
from tfcompare.xspace.texts import LONGEST_BYTES, text_of


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
