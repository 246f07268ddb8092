"""The diff of a whole XLA program, and the sentence on what was compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest

from tests.frames.tables import run_of
from tests.hlo.builder import BF16, F32, Instruction, computation, instruction, parameter, program
from tests.hlo.profiles import stored
from tests.profiles import compared_runs
from tests.views.advice.advice_facts import compilations
from tests.views.flat import flat, of_kind, sections_below
from tests.xspace_builder import chunk, event, line, meta, plane, space
from tfcompare import load
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pairs_of
from tfcompare.comparison import compare
from tfcompare.frames import HostTables
from tfcompare.frames.profile_reader import build_here
from tfcompare.render import html, markdown
from tfcompare.render.document import Report
from tfcompare.render.shown import Shown
from tfcompare.schema import Group
from tfcompare.sources.step_choice import StepChoice
from tfcompare.views.blocks import Block, Code, Section, Text
from tfcompare.views.steps.what_differs import UNREACHED
from tfcompare.views.xla.program import are_identical, is_too_large, program_diff
from tfcompare.views.xla.view import NOTHING, NOTHING_ALONE, VIEW, compilation_rows, sentence, sentence_alone

TITLE = "The whole program"
COLUMNS = ("computation", "hlo_op", "expression", "operands", "digest")
SAME = "`jit_f`: all 8 instructions are equal on both sides."
LAYERS = [
    parameter("x.1", F32[8, 8]),
    parameter("w.2", F32[8, 8], 1),
    *(instruction(f"layer.{i}", "tanh", F32[8, 8], "x.1" if i == 3 else f"layer.{i - 1}") for i in range(3, 7)),
    instruction("dot.7", "dot", F32[8, 8], "layer.6", "w.2"),
    instruction("out.8", "negate", F32[8, 8], "dot.7"),
]


def profile(*instructions: Instruction, name: str = "jit_f", called: Sequence[bytes] = ()) -> bytes:
    """A run of the program of these instructions, whose last one ran, and of the computations that it calls."""
    made = program(*called, computation(1, *instructions), name=name)
    stats = {"hlo_op": instructions[-1].name, "hlo_module": name, "program_id": 7}
    return space(
        plane("/device:GPU:0", line("Stream #1(Kernel)", *(event("k", 100 * i, 10, stats) for i in range(3)), id=1)),
        plane("/host:metadata", line("m", event(meta(f"{name}(7)", "", {"Hlo Proto": made}), 0, 0))),
    )


def pair_of(folder: Path, *profiles: bytes) -> Pair:
    return pairs_of(compare(*map(load, stored(folder, profiles))))[0]


def sections(pair: Pair) -> list[Section]:
    return [one for one in sections_below(VIEW.blocks(pair)) if one.title == TITLE]


def blocks(pair: Pair) -> list[Block]:
    (section,) = sections(pair)
    assert not section.is_open
    return list(flat([section]))


def sentence_and_diff(folder: Path, *profiles: bytes) -> tuple[str, list[str]]:
    text, *codes = blocks(pair_of(folder, *profiles))
    assert isinstance(text, Text)
    return text.text, [text for code in of_kind(codes, Code) for text in code.text.split("\n")]


def with_names(rename: Callable[[str], str]) -> list[Instruction]:
    return [
        instruction(rename(one.name), one.opcode, one.shape, *map(rename, one.operands), others=one.others)
        for one in LAYERS
    ]


def of_constants(value: bytes, count: int) -> bytes:
    return profile(*(instruction(f"rate.{i}", "constant", F32[()], others=chunk(8, value)) for i in range(count)))


def subtracting(*names: str) -> bytes:
    both = [parameter("p.1", F32[8]), parameter("p.2", F32[8], 1)]
    return profile(*both, instruction("sub.3", "subtract", F32[8], *names))


@pytest.mark.parametrize(
    ("ours", "theirs", "sentence"),
    [
        (profile(*LAYERS), profile(*LAYERS), SAME),
        (
            of_constants(b"a", 3),
            of_constants(b"b", 3),
            "`jit_f`: 3 of 3 instructions differ; all in attributes or operands.",
        ),
        (
            of_constants(b"a", 1),
            of_constants(b"b", 1),
            "`jit_f`: 1 of 1 instructions differs; `rate.0` with other attributes or operands.",
        ),
        (
            subtracting("p.1", "p.2"),
            subtracting("p.2", "p.1"),
            "`jit_f`: 1 of 3 instructions differs; `sub.3` with other attributes or operands.",
        ),
    ],
    ids=("equal", "many", "another value", "exchanged operands"),
)
def test_a_sentence_says_what_became_of_the_instructions(
    tmp_path: Path, ours: bytes, theirs: bytes, sentence: str
) -> None:
    said, lines = sentence_and_diff(tmp_path, ours, theirs)
    assert said == sentence
    assert bool(lines) == (sentence != SAME)


def test_numbers_of_names_do_not_count_but_other_names_do(tmp_path: Path) -> None:
    renumbered = with_names(lambda name: f"{name.partition('.')[0]}.{100 - int(name.partition('.')[2])}.1")
    assert sentence_and_diff(tmp_path / "numbers", profile(*LAYERS), profile(*renumbered)) == (SAME, [])
    renamed = with_names(lambda name: name.replace("out", "result"))
    text, lines = sentence_and_diff(tmp_path / "names", profile(*LAYERS), profile(*renamed))
    assert text == "`jit_f`: 2 of 9 instructions differ: 1 added, 1 removed."
    assert lines[-2:] == [
        "- %out.8 = f32[8,8] negate(f32[8,8] %dot.7)",
        "+ %result.8 = f32[8,8] negate(f32[8,8] %dot.7)",
    ]


def test_another_type_changes_the_instruction_and_its_users(tmp_path: Path) -> None:
    changed = [*LAYERS[:-2], instruction("dot.7", "dot", BF16[8, 8], "layer.6", "w.2"), LAYERS[-1]]
    assert sentence_and_diff(tmp_path, profile(*LAYERS), profile(*changed)) == (
        "`jit_f`: 2 of 8 instructions differ; `dot.7` went from f32 to bf16; `out.8` with other attributes or "
        "operands.",
        [
            "  … 3 equal instructions, then in %computation.1:",
            "  %layer.4 = f32[8,8] tanh(f32[8,8] %layer.3)",
            "  %layer.5 = f32[8,8] tanh(f32[8,8] %layer.4)",
            "  %layer.6 = f32[8,8] tanh(f32[8,8] %layer.5)",
            "- %dot.7 = f32[8,8] dot(f32[8,8] %layer.6, f32[8,8] %w.2)",
            "+ %dot.7 = bf16[8,8] dot(f32[8,8] %layer.6, f32[8,8] %w.2)",
            "- %out.8 = f32[8,8] negate(f32[8,8] %dot.7)",
            "+ %out.8 = f32[8,8] negate(bf16[8,8] %dot.7)",
        ],
    )


def test_an_added_transpose_is_one_line_and_what_it_feeds_is_changed(tmp_path: Path) -> None:
    added = [
        *LAYERS[:2],
        instruction("transpose.1", "transpose", F32[8, 8], "w.2"),
        *LAYERS[2:-2],
        instruction("dot.7", "dot", F32[8, 8], "layer.6", "transpose.1"),
        LAYERS[-1],
    ]
    text, lines = sentence_and_diff(tmp_path / "added", profile(*LAYERS), profile(*added))
    assert text == (
        "`jit_f`: 2 of 9 instructions differ: 1 added, 1 changed; 1 `transpose` was added; "
        "`dot.7` with other attributes or operands."
    )
    assert [text for text in lines if text[0] in "+-"] == [
        "+ %transpose.1 = f32[8,8] transpose(f32[8,8] %w.2)",
        "- %dot.7 = f32[8,8] dot(f32[8,8] %layer.6, f32[8,8] %w.2)",
        "+ %dot.7 = f32[8,8] dot(f32[8,8] %layer.6, f32[8,8] %transpose.1)",
    ]
    text, mirrored = sentence_and_diff(tmp_path / "removed", profile(*added), profile(*LAYERS))
    assert text == (
        "`jit_f`: 2 of 9 instructions differ: 1 removed, 1 changed; 1 `transpose` was removed; "
        "`dot.7` with other attributes or operands."
    )
    assert sorted(text[2:] for text in mirrored if text[0] == "-") == sorted(
        text[2:] for text in lines if text[0] == "+"
    )


def test_the_main_computation_is_first(tmp_path: Path) -> None:
    sides = []
    for shape in (F32[8, 8], BF16[8, 8]):
        called = [
            computation(2, parameter("p.1", F32[8, 8]), instruction("tanh.1", "tanh", shape, "p.1")),
            computation(3, instruction("one.1", "constant", shape)),
        ]
        main = [*LAYERS[:-1], instruction("out.8", "fusion", shape, "dot.7", calls=(2, 3))]
        sides.append(profile(*main, called=called))
    assert sentence_and_diff(tmp_path, *sides) == (
        "`jit_f`: 3 of 11 instructions differ; `out.8` and 1 other instruction went from f32 to bf16.",
        [
            "  … 4 equal instructions, then in %computation.1:",
            "  %layer.5 = f32[8,8] tanh(f32[8,8] %layer.4)",
            "  %layer.6 = f32[8,8] tanh(f32[8,8] %layer.5)",
            "  %dot.7 = f32[8,8] dot(f32[8,8] %layer.6, f32[8,8] %w.2)",
            "- %out.8 = f32[8,8] fusion(f32[8,8] %dot.7), calls=%computation.2, %computation.3",
            "+ %out.8 = bf16[8,8] fusion(f32[8,8] %dot.7), calls=%computation.2, %computation.3",
            "  … in %computation.3:",
            "- %one.1 = f32[8,8] constant()",
            "+ %one.1 = bf16[8,8] constant()",
            "  … in %computation.2:",
            "  %p.1 = f32[8,8] parameter()",
            "- %tanh.1 = f32[8,8] tanh(f32[8,8] %p.1)",
            "+ %tanh.1 = bf16[8,8] tanh(f32[8,8] %p.1)",
        ],
    )


def test_what_only_the_candidate_has_stands_in_the_computation_that_it_is_in(tmp_path: Path) -> None:
    short = [parameter("p.1", F32[8]), instruction("tanh.1", "tanh", F32[8], "p.1")]
    long = [*short, instruction("negate.1", "negate", F32[8], "tanh.1")]
    programs = [
        profile(
            parameter("x.1", F32[8]),
            instruction("out.2", "fusion", F32[8], "x.1", calls=(n,)),
            called=[computation(n, *own)],
        )
        for n, own in ((4, short), (5, long))
    ]
    _, lines = sentence_and_diff(tmp_path, *programs)
    assert lines[-4:] == [
        "  … in %computation.4:",
        "  %p.1 = f32[8] parameter()",
        "  %tanh.1 = f32[8] tanh(f32[8] %p.1)",
        "+ %negate.1 = f32[8] negate(f32[8] %tanh.1)",
    ]


def test_only_programs_of_both_runs_have_a_diff(tmp_path: Path) -> None:
    assert not sections(pair_of(tmp_path, profile(*LAYERS), profile(*LAYERS, name="jit_g")))
    alone = compared_runs("jax_filters_128_32", "jax_filters_128_32")
    assert alone.is_single and not sections(pairs_of(alone)[0])


def test_programs_with_the_same_bytes_are_equal_without_reading_their_instructions(tmp_path: Path) -> None:
    read: list[Group] = []

    def build(path: Path, host: str, choice: StepChoice, group: Group = "core") -> HostTables:
        read.append(group)
        return build_here(path, host, choice, group)

    renamed = [*LAYERS[:-1], instruction("out.9", "negate", F32[8, 8], "dot.7")]
    for others, groups in ((LAYERS, ["core"]), (renamed, ["core", "programs"])):
        read.clear()
        another = profile(*others) + chunk(3, "a warning of another capture")
        folders = stored(tmp_path / str(len(groups)), (profile(*LAYERS), another))
        runs = [load(folder, build=build) for folder in folders]
        comparison = compare(*runs)
        assert UNREACHED in " ".join(Shown.of(comparison, "overview").to("table").split())
        assert sorted(set(read)) == groups
        (pair,) = pairs_of(comparison)
        assert are_identical(pair)
        found = blocks(pair)
        assert [one.text for one in of_kind(found, Text)] == [SAME], "the same sentence, however it was found"


def test_both_sides_exchanged_are_a_mirror_image() -> None:
    both = (
        compared_runs("jax_filters_128_32", "jax_filters_16_8"),
        compared_runs("jax_filters_16_8", "jax_filters_128_32"),
    )
    ours, theirs = (program_diff(*pairs_of(one)[0].tables("hlo_programs")) for one in both)
    assert ours.added > 0 < ours.removed and ours.changed > 0
    assert (ours.added, ours.removed, ours.changed) == (theirs.removed, theirs.added, theirs.changed)
    assert ours.instructions == theirs.instructions


def test_names_are_neither_html_nor_markdown_nor_lines_of_their_own(tmp_path: Path) -> None:
    evil = "<b>`x`</b>\n- forged\n```"
    programs = [profile(instruction(evil, "negate", shape), name="<i>f`") for shape in (F32[8], F32[9])]
    found = blocks(pair_of(tmp_path, *programs))
    report = Report("Diff", [Section("", found)], "")
    page = html.as_html(report)
    assert "<b>" not in page and "<i>" not in page
    (code,) = [one for one in found if isinstance(one, Code)]
    assert [text[0] for text in code.text.split("\n")] == [" ", "-", "+"]
    assert "````diff" in markdown.as_text(report)


def test_large_programs_are_compared_while_most_instructions_stay_in_place() -> None:
    rows = compared_runs("jax_filters_128_32", "jax_filters_16_8").baseline.table("hlo_programs")
    large = rows.iloc[[0] * 20_001]
    other = large.assign(digest=[f"{i}" for i in range(len(large))])
    assert not is_too_large(large, large)
    assert is_too_large(large, other)
    few = large.assign(digest=["changed", *large["digest"][1:]], operands="")
    found = program_diff(large.assign(operands=""), few)
    assert (found.summary, len(found.lines)) == ("1 of 20,001 instructions differs", 7)


def test_pairs_are_the_same_where_difflib_finds_others_from_the_other_side() -> None:
    def rows(letters: str) -> pd.DataFrame:
        return pd.DataFrame([dict.fromkeys(COLUMNS, letter) | {"operands": ""} for letter in letters])

    ours, theirs = program_diff(rows("accbc"), rows("bbccc")), program_diff(rows("bbccc"), rows("accbc"))
    assert (ours.added, ours.removed, ours.instructions) == (theirs.removed, theirs.added, theirs.instructions)


Row = tuple[str, str, int, float, float, int, str]
RUN = run_of(space(plane("/host:CPU", line("t"))))
ONCE: Row = ("f", "compiling", 1, 2000.0, 2000.0, 1, "")
OFTEN: Row = ("f", "compiling", 5, 9000.0, 2000.0, 5, "f32[8]; f32[9]; f32[10]; f32[11]; f32[12]")
TRACED: Row = ("g", "tracing", 3, 99_000.0, 50_000.0, 0, "")
LOWERED: Row = ("h", "lowering", 3, 99_000.0, 50_000.0, 0, "")


def rows(ours: list[Row], theirs: list[Row]) -> pd.DataFrame:
    return compilation_rows(RUN, compilations(*ours), compilations(*theirs))


@pytest.mark.parametrize(
    ("ours", "theirs", "text"),
    [
        ([], [], NOTHING),
        ([LOWERED], [LOWERED], NOTHING),
        ([], [ONCE], "`f` was compiled once (2.00 ms) in `B`, not once in `A`."),
        ([ONCE], [], "`f` was compiled once (2.00 ms) in `A`, not once in `B`."),
        ([ONCE], [ONCE, TRACED], "`f` was compiled once (2.00 ms) in `B`, once (2.00 ms) in `A`."),
        ([], [TRACED, LOWERED], "`g` was traced 3 times (99.0 ms) in `B`, not once in `A`."),
        (
            [ONCE],
            [OFTEN],
            "`f` was compiled 5 times (9.00 ms) in `B`, once (2.00 ms) in `A`. The shapes of its arguments change: "
            "`f32[8]`, `f32[9]`, `f32[10]`, `f32[11]`, ….",
        ),
        ([], [("", *ONCE[1:])], "A function without a name was compiled once (2.00 ms) in `B`, not once in `A`."),
    ],
)
def test_the_sentence_is_about_what_changed_most(ours: list[Row], theirs: list[Row], text: str) -> None:
    assert sentence(rows(ours, theirs), ("A", "B")) == text


def test_a_run_alone() -> None:
    assert sentence_alone(rows([ONCE], [ONCE])) == "`f` was compiled once (2.00 ms)."
    assert sentence_alone(rows([], [])) == NOTHING_ALONE


def test_hosts_that_compile_the_same_are_not_added_up() -> None:
    both = pd.concat([compilations(OFTEN, host=host) for host in "ab"], ignore_index=True)
    found = compilation_rows(RUN, compilations(), both)
    assert sentence(found, ("A", "B")).startswith("`f` was compiled 5 times (9.00 ms) in `B`, not once")
