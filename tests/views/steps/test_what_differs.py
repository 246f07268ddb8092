"""The section on what differs besides times, and whether the change reached the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.frames.tables import run_of, run_with
from tests.frames.test_sparse_cores import sparse_core, tensor_core
from tests.hlo.builder import F32, Instruction, instruction, parameter
from tests.hlo.profiles import host_of
from tests.profiles import compared_runs
from tests.views.flat import flat, of_kind
from tests.views.flat import pair_of as pair
from tests.views.xla.test_program import LAYERS, pair_of, profile
from tests.xspace_builder import chunk
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pairs_of
from tfcompare.comparison import compare
from tfcompare.views.blocks import Link, Links, Text
from tfcompare.views.steps.what_differs import UNREACHED, section


def texts(pair: Pair) -> list[str]:
    return [one.text for one in flat(section(pair)) if isinstance(one, Text | Links)]


def test_the_same_program_says_that_the_change_did_not_reach_the_compiler(tmp_path: Path) -> None:
    other = profile(*LAYERS, parameter("unused.9", F32[8], 2))
    same, nothing = texts(pair_of(tmp_path / "same", profile(*LAYERS), profile(*LAYERS) + b""))[:1], []
    assert same == nothing, "copies of one capture have no differences to speak of"
    changed = texts(pair_of(tmp_path / "other", profile(*LAYERS), other))
    assert changed[0].startswith("`jit_f`: 1 of 9 instructions differs: 1 added.")
    (links,) = of_kind(flat(section(pair_of(tmp_path / "link", profile(*LAYERS), other))), Links)
    assert links.links == [Link("On the XLA page", "xla", {"program": "jit_f"})]


def test_two_captures_of_one_program_have_the_same_program(tmp_path: Path) -> None:
    again = [*LAYERS[:-1], instruction("out.9", "negate", F32[8, 8], "dot.7")]
    said, rest = texts(pair_of(tmp_path, profile(*LAYERS), profile(*again)))
    assert said == f"`jit_f` has the same instructions on both sides{UNREACHED}."
    assert rest == "Nothing else that the profiles tell of differs."


def test_what_both_profiles_tell_of_is_the_same() -> None:
    chip = replace(tensor_core(), stats=(("device_type_string", "TPU v4"),))
    pair = pairs_of(compare(*(run_with(chip, sparse_core(start=at)) for at in (100, 110))))[0]
    assert texts(pair)[-1] == "Nothing else that the profiles tell of differs: same device."


def pair_of_hosts(ours: Sequence[bytes], theirs: Sequence[bytes]) -> Pair:
    return pairs_of(compare(run_of(*ours), run_of(*theirs)))[0]


def doing(opcode: str, size: int = 8) -> list[Instruction]:
    return [parameter("x", F32[size]), instruction("does", opcode, F32[size], "x")]


def said_of(ours: Sequence[bytes], theirs: Sequence[bytes]) -> list[str]:
    """The sentences on programs, for a pair of runs with these hosts."""
    return [text for text in texts(pair_of_hosts(ours, theirs)) if not text.startswith("Nothing else")]


def test_every_program_counts_and_those_that_differ_beyond_three_are_named() -> None:
    longest = [(f"jit_{name}", 50, doing("tanh")) for name in "abcd"]
    ours, theirs = ([host_of(*longest, ("jit_e", 1, doing(one)))] for one in ("tanh", "sine"))
    differing, same = said_of(ours, theirs)
    assert differing.startswith("`jit_e`: ") and "1 `sine` was added" in differing
    assert same == "`jit_a`, `jit_b`, `jit_c` and 1 more have the same instructions on both sides."
    *described, rest = said_of([host_of(*longest)], [host_of(*((name, 50, doing("sine")) for name, _, _ in longest))])
    assert [text[:8] for text in described] == ["`jit_a`:", "`jit_b`:", "`jit_c`:"] and rest == "`jit_d` differs, too."


def test_programs_of_one_side_are_named() -> None:
    both, f, g = ("jit_both", 9, doing("tanh")), ("jit_f", 5, doing("sine")), ("jit_g", 5, doing("cosine"))
    same = "`jit_both` has the same instructions on both sides."
    assert said_of([host_of(both, f)], [host_of(both, g)]) == ["`jit_f` ran only in A, `jit_g` only in B.", same]
    assert said_of([host_of(both)], [host_of(both, g)]) == ["`jit_g` ran only in B.", same]
    many = [(f"jit_{name}", 5, doing(name)) for name in ("abs", "ceil", "floor", "log", "sign")]
    assert said_of([host_of(both, *many)], [host_of(both)]) == [
        "`jit_abs`, `jit_ceil`, `jit_floor` and 2 more ran only in A.",
        same,
    ]


def test_programs_of_all_hosts_count() -> None:
    tanh, sine = (host_of(("jit_f", 5, doing(one))) for one in ("tanh", "sine"))
    same = f"`jit_f` has the same instructions on both sides{UNREACHED}."
    uneven = "The hosts of B ran different programs under the name `jit_f`."
    assert said_of([tanh, tanh], [tanh, tanh + b""]) == [] == said_of([sine, tanh], [sine, tanh])
    assert said_of([tanh], [tanh, tanh]) == [same], "the rows of all hosts are one"
    for theirs in ([tanh, sine], [sine, tanh]):
        differing, hosts = said_of([tanh, tanh], theirs)
        assert "1 `sine` was added; 1 `tanh` was removed" in differing and hosts == uneven


def test_another_donation_is_a_change() -> None:
    ours, theirs = ([host_of(("jit_f", 5, doing("tanh")), others=one)] for one in (b"", chunk(8, chunk(1, b""))))
    (said,) = said_of(ours, theirs)
    assert said == "`jit_f`: 1 of 3 instructions differs; `x` with other attributes or operands."


def test_without_anything_to_say_there_is_no_section() -> None:
    assert not list(section(pair("filters_512_128", "filters_16_8"))), "TensorFlow's profiles tell of little"
    assert not list(section(pair("jax_filters_16_8", "jax_filters_16_8"))), "a run alone"
    run = compared_runs("jax_filters_128_32", "jax_filters_16_8").baseline
    copy = replace(run, id="copy", name="copy")
    assert not list(section(pairs_of(compare(run, copy))[0])), "one capture twice"
