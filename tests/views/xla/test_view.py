"""The XLA view: what it says of compiled programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.hlo.profiles import compiling, stored
from tests.views.flat import listed, of_kind, only_pair, pair_of, shown, texts, words
from tfcompare import compare, load
from tfcompare.compare.pair import Pair
from tfcompare.errors import NoRuns
from tfcompare.render import html, markdown, terminal
from tfcompare.render.document import Report
from tfcompare.schema import SIDES
from tfcompare.views.blocks import Block, Cards, Chart, Code, FlameGraph, Live, Section, Table, Text
from tfcompare.views.columns import as_shown
from tfcompare.views.xla.figures import node_key, stacked
from tfcompare.views.xla.instruction import details, instruction_key
from tfcompare.views.xla.memory import buffer_key
from tfcompare.views.xla.view import INDENT, VIEW

CHANGED = "input_transpose_fusion"


@pytest.fixture(scope="module")
def convolutions() -> Pair:
    return pair_of("jax_conv_legacy", "jax_conv_08")


def of_files(tmp_path: Path, *profiles: bytes) -> Pair:
    runs = [load(run) for run in stored(tmp_path, profiles)]
    return only_pair(compare(runs[0], runs[-1]))


def table(pair: Pair, title: str = "Every instruction", **options: Any) -> pd.DataFrame:
    (found,) = [one for one in shown(VIEW, pair, Table, **options) if one.title == title]
    return as_shown(found.rows, [column.name for column in found.columns]).reset_index(drop=True)


def test_a_pair_shows_its_program_per_execution(convolutions: Pair) -> None:
    assert (
        "`jit_forward_3d_conv` takes 689 µs per execution in `B`, 717 µs in `A` (−3.98 %); largest change: "
        "`input_transpose_fusion` (−31.6 µs), "
    ) in "\n".join(texts(VIEW, convolutions))
    (figures,) = shown(VIEW, convolutions, Cards)
    cells = {label: candidate for label, _, candidate, *_ in figures.facts.rows}
    assert cells["Time per execution"] == "689 µs"
    assert cells["FLOP rate"] == "47.5 TFLOP/s"
    rows = table(convolutions)
    assert rows["hlo_op"][0] == CHANGED
    assert rows["execution_time_us_baseline"].sum() == pytest.approx(3586.493 / 5)


def test_a_group_restricts_the_instructions_and_an_unknown_one_does_not(convolutions: Pair) -> None:
    group = node_key("category", "jit_forward_3d_conv\ncustom-call")
    (text,) = [one for one in shown(VIEW, convolutions, Text, group=group) if one.clears]
    assert (text.text, text.clears) == ("In `custom-call`", "tree_row")
    assert table(convolutions, group=group)["hlo_op"].tolist() == ["cudnn-conv.1.0"]
    assert len(table(convolutions, group="unknown")) == 4
    assert details(convolutions, convolutions.instructions(), "none") is None


def test_the_groups_are_those_of_the_icicle(convolutions: Pair) -> None:
    rows = table(convolutions, "By category", by="category")
    assert rows["width_share"].sum() == pytest.approx(1.0)
    assert "custom-call" in rows["label"].tolist()
    assert table(convolutions, "By source line", by="source")["label"].tolist() == [
        "<module> (jax_conv_profiling.py:136) › main (jax_conv_profiling.py:90) › "
        "forward_3d_conv (jax_conv_profiling.py:77)",
        "unknown",
    ]
    lines = table(pair_of("jax_filters_128_32", "jax_filters_16_8"), "By source line", by="source")
    assert [label.startswith(INDENT) for label in lines["label"][:2]] == [False, True]


def test_without_the_profile_source_lines_stand_alone(convolutions: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    def tables(pair: Pair, name: str) -> tuple[pd.DataFrame, ...]:
        if name == "hlo_texts":
            raise NoRuns("the profile is not there any more")
        return every(pair, name)

    every = Pair.tables
    monkeypatch.setattr(Pair, "tables", tables)
    rows = convolutions.instructions()
    assert stacked(convolutions, rows) is rows
    assert "the profile is not there any more" in texts(VIEW, convolutions, by="source")


def test_the_buffer_of_the_option_is_in_the_chart(convolutions: Pair) -> None:
    (buffers,) = [one for one in shown(VIEW, convolutions, Table) if one.title == "Buffers at the peak"]
    (row,) = buffers.rows[buffers.rows["hlo_op"] == "input_transpose_fusion.1"].to_dict("records")
    key = buffer_key(pd.DataFrame([row]))[0]
    drawn = {
        chosen: [trace.name for trace in chart.draw().data]
        for chosen in ("", key)
        for chart in shown(VIEW, convolutions, Chart, buffer=chosen)
        if chart.name == "xla_memory"
    }
    assert drawn[key][:2] == ["input_transpose_fusion.1, baseline", "input_transpose_fusion.1, candidate"]
    assert len(drawn[key]) == len(drawn[""]) + 2


def test_a_run_alone_on_tpus_shows_its_longest_program() -> None:
    alone = pair_of("jax_tpu")
    assert "`jit_f` takes 784 ms per execution. Longest instruction: `copy-done.4` (24.8 %)." in texts(VIEW, alone)
    assert "`convert_element_type` was compiled once (1.16 s)." in " ".join(texts(VIEW, alone))
    assert table(alone, program="jit__psum")["hlo_op"].tolist() == ["all-reduce"]


def test_a_run_without_programs_beside_one_with_them_is_named() -> None:
    pair = pair_of("filters_512_128", "jax_filters_16_8")
    first = next(iter(VIEW.blocks(pair)))
    assert isinstance(first, Text) and first.look == "notice"
    assert first.text.startswith("`filters_512_128` ran no compiled XLA programs while being captured. JAX compiles")
    assert any("ran only in `B`" in text for text in texts(VIEW, pair))


def test_recompilation_is_shown_though_no_instruction_ran(tmp_path: Path) -> None:
    pair = of_files(tmp_path / "two", compiling(0), compiling(2))
    assert any("ran no compiled XLA programs" in text for text in texts(VIEW, pair))
    assert (
        "`f` was compiled 2 times (1.00 ms) in `B`, not once in `A`. The shapes of its arguments change: "
        "`bf16[8,64]`, `bf16[9,64]`."
    ) in texts(VIEW, pair)
    rows = table(pair, "Functions")
    assert rows[["function", "phase", "occurrences_candidate"]].values.tolist() == [["f", "compiling", 2]]
    assert pd.isna(rows["occurrences_baseline"][0])
    alone = of_files(tmp_path / "alone", compiling(3))
    sentence = "`f` was compiled 3 times (1.50 ms). The shapes of its arguments change: `bf16[8,64]`"
    assert sentence in " ".join(texts(VIEW, alone))
    assert table(alone, "Functions")["programs_baseline"].tolist() == [3]


def instruction(pair: Pair, name: str) -> list[Block]:
    """What the details of the instruction of that name show."""
    (found,) = [one for one in shown(VIEW, pair, Table) if one.title == "Every instruction"]
    rows = found.rows
    of_row = details(pair, rows, str(instruction_key(rows[rows["hlo_op"] == name]).iloc[0]))
    assert of_row is not None and of_row.title == name
    return of_row.blocks


def test_an_instruction_has_its_text_and_neighbours(convolutions: Pair) -> None:
    blocks = instruction(convolutions, "cudnn-conv.1.0")
    assert "In `jax_conv_minimal_08`: `cudnn-conv.1`" in words(blocks)
    assert "**HLO**, the same in both runs except for numbers of names" in words(blocks)
    first, inputs = of_kind(blocks, Code)[:2]
    assert first.text.startswith("%cudnn-conv.1.0 = (") and not first.language
    assert inputs.text == (
        "%loop_transpose_fusion = bf16[5120,16,4] fusion\n%input_transpose_fusion.1 = bf16[16,199680] fusion"
    )
    (live,) = of_kind(blocks, Live)
    assert set(live.arguments[1].values()) == {
        "loop_transpose_fusion",
        "input_transpose_fusion.1",
        "input_transpose_fusion",
    }


def test_another_text_is_a_diff_whose_lines_have_a_class_in_html() -> None:
    blocks = instruction(pair_of("jax_filters_128_32", "jax_filters_16_8"), "convolution-base-dilated.1")
    diff = of_kind(blocks, Code)[0]
    assert diff.language == "diff"
    removed, added = ([line for line in diff.text.split("\n") if line.startswith(sign)] for sign in "-+")
    assert removed and added
    report = Report("Diff", [Section("", [diff, Code("- <a>\n+ <b>\n  c", "diff"), Code("- d")])], "")
    page = html.as_html(report)
    assert page.count('<span class="removed">') == len(removed) + 1
    assert page.count('<span class="added">') == len(added) + 1
    assert '<span class="removed">- &lt;a&gt;</span>\n<span class="added">+ &lt;b&gt;</span>\n  c</code>' in page
    assert "<code>- d</code>" in page
    assert f"```diff\n{diff.text}\n```" in markdown.as_text(report)
    assert terminal.as_lines([diff], None) == diff.text


@pytest.mark.parametrize("by", ["scope", "source", "category"])
def test_the_flame_graph_has_the_rows_of_the_table_and_a_bar_leaves_its_own(convolutions: Pair, by: str) -> None:
    (graph,) = shown(VIEW, convolutions, FlameGraph, by=by)
    kinds = [type(block) for block in listed(VIEW, convolutions, by=by)]
    assert kinds.index(FlameGraph) < kinds.index(Table), "above, as a click makes the table shorter"
    tree, times = graph.draw(), [f"{graph.metric}_{side}" for side in SIDES]
    every = table(convolutions)[times]
    assert tree.loc[tree["parent"] == "", times].iloc[0].tolist() == pytest.approx(every.sum().tolist())
    assert graph.chooses == "tree_row" and set(tree["parent"]) - {""} <= set(tree["node"])
    for node, *expected in tree[["node", *times]].itertuples(index=False, name=None):
        assert table(convolutions, group=node)[times].sum().tolist() == pytest.approx(expected)
    (some,) = shown(VIEW, convolutions, FlameGraph, by=by, filter=CHANGED)
    assert CHANGED in some.draw()["label"].tolist() and len(some.draw()) < len(tree)
    (none,) = shown(VIEW, convolutions, FlameGraph, by=by, filter="no such instruction")
    assert none.draw().empty and list(none.draw()) == list(tree)


def test_the_flame_graph_mirrors_and_a_run_with_itself_shows_no_change(convolutions: Pair) -> None:
    pairs = convolutions, pair_of("jax_conv_08", "jax_conv_legacy"), pair_of("jax_conv_08", "jax_conv_08")
    roots = [shown(VIEW, pair, FlameGraph)[0].draw().iloc[0] for pair in pairs]
    there, back, same = ([root[f"execution_time_us_{side}"] for side in SIDES] for root in roots)
    assert there == pytest.approx(back[::-1]) and same[0] == same[1] > 0
