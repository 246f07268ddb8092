"""Compiled programs per execution: which program is which, what its instructions take, and how that is worded."""

from __future__ import annotations

from functools import cache

import pandas as pd
import pytest

from tests.frames.tables import run_of
from tests.frames.test_hlo_ops import BYTES, FLOPS, gpu, kernel, metadata
from tests.profiles import compared_runs, loaded_run
from tests.xspace_builder import Event, space
from tfcompare import compare
from tfcompare.compare import executions
from tfcompare.compare.pairs import pair_with
from tfcompare.schema import ALL_HOSTS
from tfcompare.views.xla import figures as xla
from tfcompare.views.xla.compiler import COLLECTIVES, FUSIONS, LAYOUT, LIBRARY, REMATERIALIZED, TRANSFERS, kinds
from tfcompare.views.xla.figures import below_node, groups, time_tree, with_keys, with_stacks
from tfcompare.views.xla.instruction import (
    instruction_diff,
    instruction_lines,
    lines_diff,
    neighbours_that_ran,
    surroundings,
)
from tfcompare.views.xla.memory import buffers, counts, peaks

RUNS = ("before", "after")
DOT, NEGATE = "dot.1", "negate.remat"


def launches(number: int, dot_us: float, negate_us: float) -> list[Event]:
    """Kernels of a program that ran that often, with its dot and its negation taking these times."""
    begin = [1000.0 * i for i in range(number)]
    dots = [kernel("Cijk", at, dot_us, DOT) for at in begin]
    return dots + [kernel("neg", at + 500, negate_us, NEGATE) for at in begin if negate_us]


def rows_of(before: list[Event], after: list[Event], names: tuple[str, str] = ("jit_f", "jit_f")) -> pd.DataFrame:
    sides = [
        run_of(space(gpu(*events), metadata(**{name: 7}))) for events, name in zip((before, after), names, strict=True)
    ]
    comparison = compare(*sides)
    return pair_with(comparison).instructions()


@cache
def rows_with_a_removed_one() -> pd.DataFrame:
    return rows_of(launches(2, 100, 50), launches(2, 140, 0))


def by_name(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.set_index("hlo_op")


def test_times_are_per_execution_however_often_the_program_ran() -> None:
    rows = rows_of(launches(2, 100, 50), launches(5, 80, 60))
    row = by_name(rows).loc[DOT]
    assert (row["program_executions_baseline"], row["program_executions_candidate"]) == (2, 5)
    assert (row["execution_time_us_baseline"], row["execution_time_us_candidate"]) == (100, 80)
    assert (row["execution_time_us_delta"], row["execution_time_us_ratio"]) == (-20, 0.8)
    assert executions.execution_time_us(rows) == (150, 140)


@pytest.mark.parametrize(
    ("counts_", "expected"),
    [
        ([5, 5, 5], 5),
        ([39, 40, 40], 40),  # cut off by the end of the profile
        ([4, 4, 400, 400, 400], 4),  # most instructions are in a loop
        ([1], 1),
    ],
)
def test_a_program_ran_as_often_as_its_instructions_outside_of_loops(counts_: list[int], expected: int) -> None:
    counts = pd.DataFrame({"program_key": "jit_f", "host": "a", "count": [float(count) for count in counts_]})
    assert executions.usual_counts(counts).tolist() == [expected]


def test_what_could_be_saved_is_the_time_above_the_roof() -> None:
    rows = rows_of(launches(2, 100, 50), launches(2, 1, 50))
    least = 1e6 * max(FLOPS / (304 * 2048 * 2.1e9), BYTES / 5.3e12)
    assert by_name(rows).loc[DOT, "excess_us_baseline"] == pytest.approx(100 - least)
    assert by_name(rows).loc[DOT, "excess_us_candidate"] == 0, "faster than the peak: nothing to save, not less"


def test_the_figures_are_sums_over_the_program() -> None:
    rows = rows_of(launches(2, 100, 0), launches(4, 50, 0))
    found = {figure.label: (figure.baseline, figure.candidate) for figure in xla.figures(rows)}
    assert found["Time per execution"] == (100, 50)
    assert found["FLOP rate"] == pytest.approx((FLOPS / 100e-6, FLOPS / 50e-6))
    assert found["Bandwidth"] == pytest.approx((BYTES / 100e-6, BYTES / 50e-6))
    assert found["Roofline efficiency"][1] == pytest.approx(2 * found["Roofline efficiency"][0])
    assert found["Roofline efficiency"][0] == pytest.approx(FLOPS / 100e-6 / (304 * 2048 * 2.1e9))


def test_a_program_of_unknown_cost_has_no_rate() -> None:
    rows = rows_of(launches(2, 100, 50), launches(2, 100, 50))
    rows.loc[rows["hlo_op"] == NEGATE, "flops_baseline"] = None
    (rate,) = [figure for figure in xla.figures(rows) if figure.label == "FLOP rate"]
    assert rate.baseline != rate.baseline
    assert rate.candidate > 0


def test_the_sentence_names_what_changed_most_in_the_same_direction() -> None:
    rows = rows_of(launches(2, 100, 50), launches(2, 140, 45))
    assert xla.sentence(rows, "jit_f", RUNS) == (
        "`jit_f` takes 185 µs per execution in `after`, 150 µs in `before` (+23.3 %); "
        "largest change: `dot.1` (+40.0 µs), the same FLOPs at 71 % of the rate (172 → 123 TFLOP/s)."
    )
    same = rows_of(launches(2, 100, 50), launches(3, 100, 50))
    assert xla.sentence(same, "jit_f", RUNS) == "`jit_f` takes 150 µs per execution in both runs."
    assert xla.sentence_alone(rows, "jit_f") == (
        "`jit_f` takes 150 µs per execution. Longest instruction: `dot.1` (66.7 %)."
    )


def test_an_added_instruction_belongs_to_the_program_of_both() -> None:
    rows = rows_of(launches(2, 100, 0), launches(2, 100, 50))
    assert rows["program_key"].tolist() == ["jit_f(7)", "jit_f(7)"]
    assert by_name(rows).loc[NEGATE, "status"] == "added"
    assert executions.execution_time_us(rows) == (100, 150)


def test_programs_of_other_names_are_one_if_their_contents_are_equal() -> None:
    rows = rows_of(launches(2, 100, 50), launches(2, 90, 50), ("jit_f", "jit_g"))
    assert executions.programs(rows)["label"].tolist() == ["jit_f"]


def test_programs_of_one_name_are_one_without_any_instruction_in_common() -> None:
    rows = rows_of(launches(2, 100, 0), [kernel("neg", 1000.0 * i, 50, NEGATE) for i in range(2)])
    assert rows["status"].tolist() == ["removed", "added"]
    assert executions.programs(rows)["program_key"].tolist() == ["jit_f(7)"]


def test_a_program_of_one_run_only_says_so() -> None:
    rows = rows_of(launches(2, 100, 50), launches(2, 90, 0), ("jit_f", "jit_g"))
    found = executions.programs(rows)
    assert found["program_key"].tolist() == ["jit_f(7)", "+jit_g(7)"]
    assert found["label"].tolist() == ["jit_f", "jit_g"]
    assert found["share"].tolist() == pytest.approx([300 / 480, 180 / 480])
    only = [executions.of_program(rows, key) for key in found["program_key"]]
    assert xla.sentence(only[0], "jit_f", RUNS) == "`jit_f` ran only in `before`: 150 µs per execution."
    assert xla.sentence(only[1], "jit_g", RUNS) == "`jit_g` ran only in `after`: 90.0 µs per execution."


def test_programs_on_tpus_ran_as_often_as_recorded() -> None:
    """The profile records each execution on the lines `XLA Modules`: 100, 3 and 1 on up to four chips."""
    run = loaded_run("jax_tpu")
    comparison = compare(run, run, per="run")
    rows = pair_with(comparison).instructions()
    counted = rows.groupby("program_key")["program_executions_baseline"].first()
    names = counted.index.str.partition("(").get_level_values(0)
    assert dict(zip(names, counted, strict=True)) == {"jit_f": 400, "jit__psum": 12, "jit_broadcast_in_dim": 1}


@pytest.mark.parametrize("by", ["category", "source", "scope"])
def test_a_tree_sums_to_the_program(by: str) -> None:
    tree = time_tree(rows_with_a_removed_one(), "jit_f", by).set_index("node")  # type: ignore[arg-type]
    assert tree.loc["jit_f", "width_us"] == 140 + 50
    for node in tree.index[~tree["is_instruction"]]:
        below = tree[tree["parent"] == node]
        for column in ("execution_time_us_baseline", "execution_time_us_candidate", "width_us"):
            assert below[column].sum() == pytest.approx(tree.loc[node, column])
    status = dict(zip(tree["label"], tree["status"], strict=True))
    assert (status["jit_f"], status[DOT], status[NEGATE]) == ("matched", "matched", "removed")
    assert ("model.py:7" in status) == (by == "source")


def scoped(**op_names: str) -> pd.DataFrame:
    """Instructions by name, each with its op in both runs, of 10, 20, 30, … µs in the baseline and 5 more after."""
    times = [10.0 * (i + 1) for i in range(len(op_names))]
    return pd.DataFrame(
        {
            "hlo_op": list(op_names),
            "op_name_baseline": list(op_names.values()),
            "op_name_candidate": "other",
            "execution_time_us_baseline": times,
            "execution_time_us_candidate": [time + 5 for time in times],
            "status": "matched",
            "count_ratio": 1.0,
            "work_ratio": [2.0 if name < "c" else 1.0 for name in op_names],
        }
    )


SCOPED = {
    "a": "jit(f)/jit(main)/model/encoder/dot",
    "b": "jit(f)/jit(main)/model/encoder/add",
    "c": "jit(f)/jit(main)/loss/sub",
    "d": "",
    "loss": "loss",
}


def test_name_scopes_are_nested_groups() -> None:
    """`model` has nothing but `encoder` in it; an instruction may have the name of a scope."""
    tree = time_tree(scoped(**SCOPED), "jit_f", "scope")
    found = groups(tree, "scope")
    assert [("  " * (depth - 1) + label) for depth, label in zip(found["depth"], found["label"], strict=True)] == [
        *("loss", "  sub", "model/encoder", "  add", "  dot", "unknown")
    ]
    assert found["execution_time_us_delta"].tolist() == [10, 5, 10, 5, 5, 5]
    assert found["width_share"].sum() > 1 and found.loc[found["depth"] == 1, "width_share"].sum() == pytest.approx(1)
    assert found["work"].tolist() == [*["same work"] * 2, *["more work"] * 3, "same work"]
    assert tree.loc[tree["depth"] == 0, "work"].tolist() == [""], "they differ"
    assert found["key"].is_unique
    assert tree.loc[tree["is_instruction"], "execution_time_us_baseline"].sum() == 150


def test_a_group_is_found_again_by_its_key() -> None:
    rows = scoped(**SCOPED)
    found = groups(time_tree(rows, "jit_f", "scope"), "scope").set_index("label")
    expected = {"loss": ["c", "loss"], "model/encoder": ["a", "b"], "dot": ["a"], "unknown": ["d"]}
    rows = rows.assign(category="unknown", source_baseline="", source_candidate="")
    for label, names in expected.items():
        within = below_node(rows, "jit_f", found.loc[label, "key"])
        assert (within[0], within[1]["hlo_op"].tolist()) == (label, names)
    assert below_node(rows, "jit_f", "000000000000") is None


def test_a_program_without_a_name_is_the_root_of_its_tree() -> None:
    tree = with_keys(time_tree(scoped(**SCOPED), "", "scope"), "scope")
    assert tree.loc[tree["depth"] == 0, "parent"].tolist() == [""]
    assert set(tree.loc[tree["depth"] > 0, "parent"]) <= set(tree["node"])


RUN, FORWARD = "<module> (/w/run.py:90)", "Net.forward (/w/net.py:{})"
STACKS = {
    "a": "\n".join([RUN, FORWARD.format(7), "f.<locals>.dense (/lib/x y/layers.py:30)"]),
    "b": "\n".join([RUN, FORWARD.format(7), "f.<locals>.dense (/lib/x y/layers.py:31)"]),
    "c": "\n".join([RUN, FORWARD.format(9)]),
    "d": "/w/run.py:91:3\n/w/net.py:4:1",
    "e": "",
    "f": "",
}


def stacked(rows: pd.DataFrame, **stacks: str) -> pd.DataFrame:
    """The rows as a program of both runs, with these stacks of its instructions on both sides."""
    texts = pd.DataFrame({"program": "jit_f(1)", "hlo_op": list(stacks), "source_stack": list(stacks.values())})
    rows = rows.assign(program="jit_f(1)", program_candidate="jit_f(1)", hlo_op_candidate=rows["hlo_op"])
    return with_stacks(rows, texts, texts)


def indented(tree: pd.DataFrame) -> list[tuple[str, float]]:
    found = groups(tree, "source")
    labels = [("  " * (depth - 1) + label) for depth, label in zip(found["depth"], found["label"], strict=True)]
    return list(zip(labels, found["execution_time_us_baseline"], strict=True))


def test_the_source_is_a_tree_of_calls_with_a_function_above_several_of_its_lines() -> None:
    rows = scoped(**dict.fromkeys(STACKS, "")).assign(source_baseline=["", "", "", "", "/w/old.py:5", ""])
    rows["source_candidate"] = rows["source_baseline"]
    assert indented(time_tree(stacked(rows, **STACKS), "jit_f", "source")) == [
        ("<module> (run.py:90) › Net.forward (net.py)", 60),
        ("  Net.forward (net.py:7) › dense (layers.py)", 30),
        ("    dense (layers.py:31)", 20),
        ("    dense (layers.py:30)", 10),
        ("  Net.forward (net.py:9)", 30),
        ("unknown", 60),
        ("old.py:5", 50),
        ("run.py:91 › net.py:4", 40),
    ]
    without = time_tree(rows, "jit_f", "source")
    assert indented(without) == [("unknown", 160), ("old.py:5", 50)], "where the stacks are not there any more"


def test_a_call_is_found_by_its_key_in_other_rows_than_those_of_the_tree() -> None:
    rows = scoped(**dict.fromkeys(STACKS, "")).assign(source_baseline="", source_candidate="", category="x")
    few = groups(time_tree(stacked(rows[:1], **STACKS), "jit_f", "source"), "source")
    assert few["label"].tolist() == ["<module> (run.py:90) › Net.forward (net.py:7) › dense (layers.py:30)"]
    label, within = below_node(rows, "jit_f", few["key"].iloc[0], lambda rows: stacked(rows, **STACKS))
    assert (label, within["hlo_op"].tolist()) == ("dense (layers.py:30)", ["a"])


def test_stacks_are_those_of_the_side_that_has_the_instruction() -> None:
    cells = [("a", "a", "matched"), ("b", None, "removed"), ("c", None, "added"), ("d", "e", "matched")]
    rows = pd.DataFrame(cells, columns=["hlo_op", "hlo_op_candidate", "status"])
    rows = rows.assign(program="p", program_candidate=["p", None, None, "p"])
    ours, theirs = (
        pd.DataFrame({"program": "p", "hlo_op": list("abcde"), "source_stack": [f"{side}{name}" for name in "abcde"]})
        for side in "12"
    )
    found = with_stacks(rows, ours, theirs)[["source_stack_baseline", "source_stack_candidate"]].fillna("")
    assert found.values.tolist() == [["1a", "2a"], ["1b", ""], ["", "2c"], ["1d", "2e"]]


def test_buffers_at_the_peak_add_up_to_it() -> None:
    comparison = compared_runs("jax_conv_legacy", "jax_conv_08")
    rows = pair_with(comparison).instructions()
    found = buffers(comparison.table("hlo_memory"), rows)
    for role in ("baseline", "candidate"):
        table = loaded_run("jax_conv_legacy" if role == "baseline" else "jax_conv_08").table("hlo_memory")
        live = table[(table["program"] == "jit_forward_3d_conv(15)") & table["is_live_at_peak"]]
        assert peaks(found)[f"{role}_bytes"].tolist() == [live["size_bytes"].sum()]
    assert counts(found) == (0, 0, 0, 0)


def test_buffers_are_counted_by_what_became_of_them() -> None:
    sizes = {"peak_size_bytes_baseline": [8, 8, 8, None, 8], "peak_size_bytes_candidate": [8, 16, 4, 8, 0]}
    assert counts(pd.DataFrame(sizes)) == (1, 1, 1, 1)


INSTRUCTIONS = {
    "%f = bf16[8] fusion(bf16[8] %p), kind=kLoop, calls=%c": {FUSIONS, "bf16 results"},
    "%transpose_fusion = f32[8] fusion(f32[8] %p), kind=kInput": {FUSIONS, LAYOUT, "f32 results"},
    "%c = f32[8,2]{1,0:T(8,128)} copy(f32[8,2] %p)": {LAYOUT, "f32 results"},
    "%c.1 = (f32[8]{0:T(8)S(5)}, u32[]{:S(2)}) copy-start(f32[8] %p)": {TRANSFERS, "f32 results"},
    "%r = f32[8] all-reduce(f32[8] %p)": {COLLECTIVES, "f32 results"},
    '%g = (f32[8], s8[64]) custom-call(f32[8] %p), custom_call_target="__cublas$gemm"': {LIBRARY, "f32 results"},
    "%negate.remat = f32[8] negate(f32[8] %p)": {REMATERIALIZED, "f32 results"},
}


@pytest.mark.parametrize("expression", INSTRUCTIONS)
def test_kinds_follow_from_the_text_of_an_instruction(expression: str) -> None:
    rows = rows_with_a_removed_one()
    rows = rows[rows["hlo_op"] == DOT]
    name = expression.partition(" ")[0].removeprefix("%")
    rows = rows.assign(hlo_op=name, hlo_op_candidate=name, category="", category_candidate="")
    for role in ("baseline", "candidate"):
        rows = rows.assign(**{f"expression_{role}": expression, f"is_rematerialized_{role}": ".remat" in name})
    found = kinds(rows).set_index("kind")
    assert set(found.index) == INSTRUCTIONS[expression]
    assert (found["count_baseline"] == 1).all()
    assert (found["execution_time_us_candidate"] == 140).all()


def test_an_instruction_is_shown_a_line_for_each_operand_and_attribute() -> None:
    before = "%f.1 = bf16[8,2] fusion(bf16[8,2] %p, (f32[2], u32[]) %q), kind=kLoop, calls=%c"
    assert instruction_lines(before) == [
        "%f.1 = bf16[8,2] fusion(",
        "  bf16[8,2] %p,",
        "  (f32[2], u32[]) %q),",
        "  kind=kLoop,",
        "  calls=%c",
    ]
    assert instruction_lines("") == [""]
    changed = instruction_diff(before, before.replace("kLoop", "kInput")).splitlines()
    assert [line for line in changed if line[0] != " "] == ["-   kind=kLoop,", "+   kind=kInput,"]


def test_numbers_of_names_are_no_change() -> None:
    before = "%f.1 = f32[8] fusion(f32[8] %p.3.1, f32[8] %q), calls=%c.2"
    assert instruction_diff(before, before.replace("%p.3.1", "%p").replace("%c.2", "%c.7.remat")) == (
        "  %f = f32[8] fusion(\n    f32[8] %p,\n    f32[8] %q),\n-   calls=%c\n+   calls=%c.7.remat"
    )
    assert instruction_diff(before, before.replace("%p.3.1", "%p.4")) == ""


def test_very_many_lines_are_not_aligned() -> None:
    few, many = ("\n".join(["x", *(f"line {i}" for i in range(count))]) for count in (3, 300))
    assert lines_diff(few, few.removeprefix("x\n")).count("- ") == 1
    changed = lines_diff(many, many.removeprefix("x\n"))
    assert changed.startswith("- x\n+ line 0\n- line 0\n+ line 1\n")
    assert changed.endswith("- line 299")


def test_a_diff_of_lines_shows_whole_lines() -> None:
    before = "%a.1 = f32[8] dot\n%b = f32[8] add"
    assert lines_diff(before, before.replace("a.1", "a.7")) == ""
    assert lines_diff(before, "%a = f32[8] dot\n%b = bf16[8] add\n%c = f32[] copy") == (
        "  %a = f32[8] dot\n- %b = f32[8] add\n+ %b = bf16[8] add\n+ %c = f32[] copy"
    )


def test_neighbours_that_ran_are_found_on_both_sides() -> None:
    ours = pd.DataFrame(
        [
            ("a", "", "%b = f32[8] dot"),
            ("b", "%a = f32[8] sort\n%p = f32[8] parameter", "%old = …"),
            ("old", "%b = f32[8] dot", ""),
        ],
        columns=["hlo_op", "operands", "users"],
    ).assign(host="vm", program="jit_f(7)", fused="")
    theirs = pd.DataFrame(
        [
            ("a.1", "", "%b.1 = f32[8] dot\n%new = f32[8] add"),
            ("b.1", "%a.1 = f32[8] sort", ""),
            ("new", "%a.1 = f32[8] sort", ""),
        ],
        columns=["hlo_op", "operands", "users"],
    ).assign(host="other-vm", program="jit_f(9)", fused="")
    rows = pd.DataFrame(
        [
            ("a", "a.1", "matched", "jit_f(7)", "jit_f(9)"),
            ("b", "b.1", "matched", "jit_f(7)", "jit_f(9)"),
            ("old", None, "removed", "jit_f(7)", None),
            ("new", None, "added", "jit_f(9)", None),
        ],
        columns=["hlo_op", "hlo_op_candidate", "status", "program", "program_candidate"],
    ).assign(host="vm")
    around = [surroundings(ours, theirs, row) for _, row in rows.iterrows()]
    found = [neighbours_that_ran(rows, row, around[i])["hlo_op"].tolist() for i, row in rows.iterrows()]
    assert found == [["b", "new"], ["a", "old"], ["b"], ["a"]]
    assert (around[2]["operands_baseline"], around[2]["operands_candidate"]) == ("%b = f32[8] dot", "")
    assert (around[3]["operands_baseline"], around[3]["operands_candidate"]) == ("", "%a.1 = f32[8] sort")
    of_all = surroundings(pd.concat([ours, ours.assign(host="second")]), theirs, rows.assign(host=ALL_HOSTS).iloc[0])
    assert of_all == around[0]
    other_host = rows.assign(host=["vm", "b", "b", "b"])
    assert neighbours_that_ran(other_host, other_host.iloc[0], around[0]).empty
