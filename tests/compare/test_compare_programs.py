"""XLA programs and their instructions, matched between two runs."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.profiles import compared_runs
from tfcompare import schema
from tfcompare.compare.diff import SideRows, diff_table
from tfcompare.compare.matching.plain_names import plain_name
from tfcompare.tables.op_profile import op_profile

COLUMNS = ("program", "hlo_op", "category", "op_name", "source", "flops")


def table(*rows: tuple[object, ...]) -> pd.DataFrame:
    """`hlo_ops` of one host: `COLUMNS` of each row; every instruction ran once, for 1 µs."""
    absent = ("", "", 0.0)
    frame = pd.DataFrame([(*row, *absent[len(row) - 3 :]) for row in rows], columns=list(COLUMNS))
    frame = frame.assign(bound_by="", expression="", is_rematerialized=False, host="vm")
    others = dict.fromkeys((name for name in schema.HLO_OPS.column_names if name not in frame), 1)
    return schema.HLO_OPS.conform(frame.assign(**others))


def matches(ours: pd.DataFrame, theirs: pd.DataFrame) -> set[tuple[str, str, str]]:
    """(the row of the baseline, the row of the candidate, the tier) of each matched row, and of its mirror image."""

    def found(one: pd.DataFrame, other: pd.DataFrame) -> set[tuple[str, str, str]]:
        diff = diff_table(schema.HLO_OPS, "b", SideRows(one, 1), SideRows(other, 1), per="run", identical=False)
        assert len(diff) == len(one) + len(other) - (diff["status"] == "matched").sum()
        rows = diff[diff["status"] == "matched"]
        names = (rows["program"] + " " + rows["hlo_op"], rows["program_candidate"] + " " + rows["hlo_op_candidate"])
        return set(zip(*names, rows["match"], strict=True))

    forth, back = found(ours, theirs), found(theirs, ours)
    assert forth == {(one, other, tier) for other, one, tier in back}
    return forth


def test_programs_match_by_name_without_their_id() -> None:
    ours = table(("jit_f(1)", "add", "x"), ("jit_g(2)", "add", "x"))
    theirs = table(("jit_f(77)", "add", "x"), ("jit_h(2)", "add", "x"))
    assert matches(ours, theirs) == {("jit_f(1) add", "jit_f(77) add", "exact")}


def test_programs_of_tensorflow_match_by_the_name_of_their_function() -> None:
    ours = table(("a_inference_step_114__XlaMustCompile_true_config_proto_1356_executor_type_1116_.4(0)", "add", "x"))
    theirs = table(
        ("a_inference_step_122__XlaMustCompile_true_config_proto_99_executor_type_1116_.2(1)", "add", "x"),
        ("a_inference_other_114__XlaMustCompile_true_config_proto_1356_executor_type_1116_.4(0)", "add", "x"),
    )
    ((one, other, tier),) = matches(ours, theirs)
    assert ("step_114" in one, "step_122" in other, tier) == (True, True, "exact")


def test_of_several_programs_with_one_name_equal_contents_match() -> None:
    ours = table(("f(1)", "a", "x"), ("f(2)", "b", "x"), ("f(2)", "c", "x"))
    theirs = table(("f(5)", "b", "x"), ("f(5)", "c", "x"), ("f(6)", "a", "x"), ("f(7)", "d", "x"))
    assert matches(ours, theirs) == {
        ("f(1) a", "f(6) a", "exact"), ("f(2) b", "f(5) b", "exact"), ("f(2) c", "f(5) c", "exact")
    }  # fmt: skip


def test_the_costs_of_instructions_are_part_of_the_contents() -> None:
    ours = table(("f(1)", "a", "x", "", "", 10.0), ("f(2)", "a", "x", "", "", 99.0))
    theirs = table(("f(1)", "a", "x", "", "", 99.0), ("f(2)", "a", "x", "", "", 10.0))
    assert matches(ours, theirs) == {("f(1) a", "f(2) a", "exact"), ("f(2) a", "f(1) a", "exact")}


def test_programs_with_one_name_match_by_order_if_contents_do_not_tell() -> None:
    ours = table(("f(10)", "a", "x", "", "", 1.0), ("f(9)", "a", "x", "", "", 2.0))
    theirs = table(("f(3)", "a", "x", "", "", 3.0), ("f(4)", "a", "x", "", "", 4.0))
    assert matches(ours, theirs) == {("f(9) a", "f(3) a", "probable"), ("f(10) a", "f(4) a", "probable")}
    assert matches(ours, theirs[:1]) == set()


def test_equal_programs_of_one_name_match_by_id_in_a_copy_of_the_run() -> None:
    ours = table(("f(1)", "a", "x"), ("f(2)", "a", "x"))
    assert {tier for _, _, tier in matches(ours, ours)} == {"exact"}


def test_a_renamed_program_matches_by_its_contents() -> None:
    ours = table(("f(1)", "a", "x"), ("f(1)", "b", "x"), ("one(2)", "c", "x"))
    theirs = table(("g(5)", "b", "x"), ("g(5)", "a", "x"), ("other(2)", "c", "x"))
    assert matches(ours, theirs) == {("f(1) a", "g(5) a", "structural"), ("f(1) b", "g(5) b", "structural")}


def test_numbers_at_the_end_of_an_instruction_do_not_matter_if_there_is_one() -> None:
    ours = table(("f(1)", "conv.1", "x"), ("f(1)", "add.1", "x"), ("f(1)", "add.2", "x"), ("f(1)", "mul", "x"))
    theirs = table(("f(1)", "conv.1.0", "x"), ("f(1)", "add.3", "x"), ("f(1)", "add.4", "x"), ("f(1)", "mul", "y"))
    assert matches(ours, theirs) == {
        ("f(1) conv.1", "f(1) conv.1.0", "canonical"), ("f(1) mul", "f(1) mul", "structural")
    }  # fmt: skip


def test_instructions_match_by_their_op_and_source() -> None:
    ours = table(
        ("f(1)", "fusion.1", "x", "jit(f)/jit(main)/a", "m.py:1"), ("f(1)", "fusion.2", "x", "jit(f)/a", "m.py:2"),
        ("f(1)", "fusion.9", "x", "jit(f)/b", "m.py:3"), ("f(1)", "fusion.3", "x"),
    )  # fmt: skip
    theirs = table(
        ("f(1)", "fusion.7", "x", "jit(f)/a", "m.py:2"), ("f(1)", "fusion.8", "x", "jit(f)/a", "m.py:1"),
        ("f(1)", "fusion.4", "x", "jit(f)/jit(main)/b", "other.py:3"), ("f(1)", "fusion.5", "x"),
    )  # fmt: skip
    assert matches(ours, theirs) == {
        ("f(1) fusion.1", "f(1) fusion.8", "structural"),
        ("f(1) fusion.2", "f(1) fusion.7", "structural"),
        ("f(1) fusion.9", "f(1) fusion.4", "canonical"),
        ("f(1) fusion.3", "f(1) fusion.5", "canonical"),
    }


def test_nodes_of_unknown_category_match_those_of_their_depth() -> None:
    ours, theirs = (op_profile(table((f"f({number})", "add", ""), (f"f({number})", "sin", ""))) for number in (1, 7))
    diff = diff_table(schema.OP_PROFILE, "b", SideRows(ours, 1), SideRows(theirs, 1), per="run", identical=False)
    assert set(diff["match"]) == {"exact"}
    assert len(diff) == len(ours)
    assert (diff["self_time_us_delta"] == 0).all()


def test_names_without_an_id_are_programs_too() -> None:
    rows = table(("f", "a", "x"), ("()", "b", "x"), ("f(99999999999999999999999999)", "c", "x"))
    assert {tier for _, _, tier in matches(rows, rows)} == {"exact"}


@pytest.mark.parametrize("pair", [("jax_conv_legacy", "jax_conv_08"), ("jax_conv_08", "jax_conv_legacy")])
def test_two_recordings_of_a_convolution_match_per_device(pair: tuple[str, str]) -> None:
    comparison = compared_runs(*pair, "device")
    diff = comparison.table("hlo_ops")
    assert (diff["status"] == "matched").all()
    assert len(diff) == 4
    assert comparison.coverage("hlo_ops")["matched_share"].item() >= 0.95
    one = diff.set_index("hlo_op").loc["input_transpose_fusion"]
    assert one["bandwidth_bytes_per_s_ratio"] == pytest.approx(1, abs=0.15)


def test_buffers_match_by_program_and_instruction() -> None:
    diff = compared_runs("jax_conv_legacy", "jax_conv_08", "run").table("hlo_memory")
    rows = diff[diff["program"] == "jit_forward_3d_conv(15)"].set_index("hlo_op")
    assert rows.loc["cudnn-conv.1.0", ["hlo_op_candidate", "match", "verdict"]].tolist() == [
        "cudnn-conv.1", "canonical", "same"
    ]  # fmt: skip
    assert rows.loc["input_transpose_fusion", "match"] == "exact"
    by_name = diff.set_index("program").loc["jit__multi_slice(13)"]
    assert set(by_name["status"]) == {"matched", "removed"}
    assert by_name.loc[by_name["status"] == "matched", "size_bytes_delta"].eq(0).all()


def test_instructions_of_equal_layers_match_in_order_if_there_are_as_many() -> None:
    ours = table(("f(1)", "fusion.7", "x", "layer/mul"), ("f(1)", "fusion.12", "x", "layer/mul"))
    theirs = table(("f(1)", "fusion.31", "x", "layer/mul"), ("f(1)", "fusion.8", "x", "layer/mul"))
    assert matches(ours, theirs) == {
        ("f(1) fusion.7", "f(1) fusion.8", "probable"), ("f(1) fusion.12", "f(1) fusion.31", "probable")
    }  # fmt: skip
    assert not matches(ours, pd.concat([theirs, table(("f(1)", "fusion.40", "x", "layer/mul"))]))


def test_what_checkpoints_recompute_is_added_and_most_else_has_a_counterpart() -> None:
    comparison = compared_runs("h100_store_activations", "h100_recompute_activations")
    for name, column, least in (
        ("op_stats", "self_time_us", 0.99),
        ("hlo_ops", "self_time_us", 0.85),  # what else differs was fused otherwise
        ("kernel_stats", "total_duration_us", 0.55),  # other kernels of a library, other launches
    ):
        rows = comparison.table(name)
        matched = rows.loc[rows["status"] == "matched", f"{column}_per_step_baseline"].sum()
        assert matched >= least * rows[f"{column}_per_step_baseline"].sum()
    ops = comparison.table("op_stats").query("host_or_device == 'Device'")
    added = ops[ops["status"] == "added"]
    is_recomputed = ops["op_name"].str.contains("rematted_computation", regex=False)
    recomputed = added[is_recomputed.reindex(added.index)]["self_time_us_per_step_candidate"].sum()
    assert recomputed > 0.95 * added["self_time_us_per_step_candidate"].sum()
    assert set(ops[is_recomputed]["status"]) == {"added"}
    rows = comparison.table("hlo_ops").query("status == 'matched'")
    of_one_op = [plain_name(str(ours)) == plain_name(str(theirs))
                 for ours, theirs in zip(rows["op_name_baseline"], rows["op_name_candidate"], strict=True)]  # fmt: skip
    time = rows["self_time_us_per_step_baseline"]
    assert time[of_one_op].sum() > 0.99 * time.sum(), "numbers of instructions are given anew"
