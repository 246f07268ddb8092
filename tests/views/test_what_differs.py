"""The section on what differs besides times, and whether the change reached the compiler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.hlo.builder import BF16, F32, instruction, parameter
from tests.profiles import compared_runs
from tests.views.flat import flat
from tests.views.test_xla_program import LAYERS, pair_of, profile
from tfcompare.charts.pair import Pair, pairs_of
from tfcompare.compare import compare
from tfcompare.views.blocks import Facts, Section, Text
from tfcompare.views.overview import VIEW
from tfcompare.views.what_differs import section


def pair(baseline: str, candidate: str) -> Pair:
    return pairs_of(compared_runs(baseline, candidate))[0]


def texts(pair: Pair) -> list[str]:
    return [one.text for one in flat(section(pair)) if isinstance(one, Text)]


def test_the_same_program_says_that_the_change_did_not_reach_the_compiler(tmp_path: Path) -> None:
    other = profile(*LAYERS, parameter("unused.9", F32[8], 2))
    same, nothing = texts(pair_of(tmp_path / "same", profile(*LAYERS), profile(*LAYERS) + b""))[:1], []
    assert same == nothing, "copies of one capture have no differences to speak of"
    changed = texts(pair_of(tmp_path / "other", profile(*LAYERS), other))
    assert changed[0].startswith("`jit_f`: 1 of 9 instructions differs: 1 added.")


def test_two_captures_of_one_program_have_the_same_program(tmp_path: Path) -> None:
    again = [*LAYERS[:-1], instruction("out.9", "negate", F32[8, 8], "dot.7")]
    said, rest = texts(pair_of(tmp_path, profile(*LAYERS), profile(*again)))
    assert said == "`jit_f` is the same program on both sides: the change did not reach the compiler."
    assert rest == "Nothing else that the profiles tell of differs."


def test_another_type_is_named(tmp_path: Path) -> None:
    changed = [*LAYERS[:-2], instruction("dot.7", "dot", BF16[8, 8], "layer.6", "w.2"), LAYERS[-1]]
    assert "`dot.7` went from f32 to bf16" in texts(pair_of(tmp_path, profile(*LAYERS), profile(*changed)))[0]


def test_differences_are_rows_with_both_sides_and_why_they_matter() -> None:
    (facts,) = [one for one in flat(section(pair("jax_filters_128_32", "jax_filters_16_8"))) if isinstance(one, Facts)]
    assert facts.header == ["Besides times", "A", "B", "Why it matters"]
    (row,) = facts.rows
    assert row[0] == "Inputs of jit_train_step" and "f32[3,3,32,128]" in row[1]


def test_without_anything_to_say_there_is_no_section() -> None:
    assert not list(section(pair("filters_512_128", "filters_16_8"))), "TensorFlow's profiles tell of little"
    assert not list(section(pair("jax_filters_16_8", "jax_filters_16_8"))), "a run alone"
    run = compared_runs("jax_filters_128_32", "jax_filters_16_8").baseline
    copy = replace(run, id="copy", name="copy")
    assert not list(section(pairs_of(compare(run, copy))[0])), "one capture twice"


def test_it_is_on_the_overview_after_the_reasons() -> None:
    titles = [
        one.title
        for one in VIEW.blocks(pair("jax_filters_128_32", "jax_filters_16_8"))
        if isinstance(one, Section) and one.is_open
    ]
    assert titles[0] == "What differs"
