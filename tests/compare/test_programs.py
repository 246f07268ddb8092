"""XLA programs and their instructions, matched between two runs."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.profiles import compared_runs
from tfcompare import schema
from tfcompare.compare.diff import SideRows, diff_table
from tfcompare.compare.matching.matching import pair_rows
from tfcompare.compare.matching.plain_names import plain_name
from tfcompare.tables.kernel_stats import op_profile


def table(text: str) -> pd.DataFrame:
    """`hlo_ops` of one host from `program instruction [category [op [source [flops]]]]`, separated by commas.

    Every instruction ran once, for 1 µs; `-` is an empty cell.
    """
    absent = ("x", "", "", "0")
    rows = [
        (*cells, *absent[len(cells) - 2 :]) for cells in (row.replace(" -", " ").split(" ") for row in text.split(", "))
    ]
    frame = pd.DataFrame(rows, columns=["program", "hlo_op", "category", "op_name", "source", "flops"])
    frame = frame.assign(flops=frame["flops"].astype(float), bound_by="", expression="", is_rematerialized=False)
    others = dict.fromkeys((name for name in schema.HLO_OPS.column_names if name not in frame), 1)
    return schema.HLO_OPS.conform(frame.assign(**others | {"host": "vm"}))


def matches(ours: pd.DataFrame, theirs: pd.DataFrame) -> set[tuple[str, str, str]]:
    """(the row of the baseline, the row of the candidate, the tier) of each matched row, and of its mirror image."""

    def found(one: pd.DataFrame, other: pd.DataFrame) -> set[tuple[str, str, str]]:
        pairs = pair_rows(schema.HLO_OPS, one, other)
        rows = (pairs.baseline.tolist(), pairs.candidate.tolist())
        for side, of_side in zip((one, other), rows, strict=True):
            assert sorted(row for row in of_side if row >= 0) == list(range(len(side)))
        names = [(side["program"] + " " + side["hlo_op"]).tolist() for side in (one, other)]
        return {(names[0][b], names[1][c], tier) for b, c, tier in zip(*rows, pairs.match, strict=True) if tier}

    forth, back = found(ours, theirs), found(theirs, ours)
    assert forth == {(one, other, tier) for other, one, tier in back}
    return forth


FUNCTION = "a_inference_{}__XlaMustCompile_true_config_proto_{}_executor_type_1116_.{}"


@pytest.mark.parametrize(
    ("baseline", "candidate", "expected"),
    [
        # Programs by their name without the id, those of TensorFlow by the name of their function.
        ("jit_f(1) add, jit_g(2) add", "jit_f(77) add, jit_h(2) add", "jit_f(1) add = jit_f(77) add exact"),
        (
            f"{FUNCTION.format('step_114', 1356, '4(0)')} add",
            f"{FUNCTION.format('step_122', 99, '2(1)')} add, {FUNCTION.format('other_114', 1356, '4(0)')} add",
            f"{FUNCTION.format('step_114', 1356, '4(0)')} add = {FUNCTION.format('step_122', 99, '2(1)')} add exact",
        ),
        # Of several of one name by equal contents, of which costs are part,
        (
            "f(1) a, f(2) b, f(2) c",
            "f(5) b, f(5) c, f(6) a, f(7) d",
            "f(1) a = f(6) a exact, f(2) b = f(5) b exact, f(2) c = f(5) c exact",
        ),
        (
            "f(1) a x - - 10, f(2) a x - - 99",
            "f(1) a x - - 99, f(2) a x - - 10",
            "f(1) a = f(2) a exact, f(2) a = f(1) a exact",
        ),
        # by their order if contents do not tell, by their id in a copy of the run, and renamed ones by their contents.
        (
            "f(10) a x - - 1, f(9) a x - - 2",
            "f(3) a x - - 3, f(4) a x - - 4",
            "f(9) a = f(3) a probable, f(10) a = f(4) a probable",
        ),
        ("f(10) a x - - 1, f(9) a x - - 2", "f(3) a x - - 3", ""),
        ("f(1) a, f(2) a", "f(1) a, f(2) a", "f(1) a = f(1) a exact, f(2) a = f(2) a exact"),
        (
            "f(1) a, f(1) b, one(2) c",
            "g(5) b, g(5) a, other(2) c",
            "f(1) a = g(5) a structural, f(1) b = g(5) b structural",
        ),
        # Numbers at the end of an instruction do not matter if there is one.
        (
            "f(1) conv.1, f(1) add.1, f(1) add.2, f(1) mul",
            "f(1) conv.1.0, f(1) add.3, f(1) add.4, f(1) mul y",
            "f(1) conv.1 = f(1) conv.1.0 canonical, f(1) mul = f(1) mul structural",
        ),
        # Instructions by their op and source, those of equal layers in order if there are as many.
        (
            "f(1) s.1 x jit(f)/jit(main)/a m.py:1, f(1) s.2 x jit(f)/a m.py:2, f(1) s.9 x jit(f)/b m.py:3, f(1) s.3",
            "f(1) s.7 x jit(f)/a m.py:2, f(1) s.8 x jit(f)/a m.py:1, f(1) s.4 x jit(f)/jit(main)/b o.py:3, f(1) s.5",
            "f(1) s.1 = f(1) s.8 structural, f(1) s.2 = f(1) s.7 structural, f(1) s.9 = f(1) s.4 canonical, "
            "f(1) s.3 = f(1) s.5 canonical",
        ),
        (
            "f(1) s.7 x layer/mul, f(1) s.12 x layer/mul",
            "f(1) s.31 x layer/mul, f(1) s.8 x layer/mul",
            "f(1) s.7 = f(1) s.8 probable, f(1) s.12 = f(1) s.31 probable",
        ),
        ("f(1) s.7 x l/mul, f(1) s.12 x l/mul", "f(1) s.31 x l/mul, f(1) s.8 x l/mul, f(1) s.40 x l/mul", ""),
        # Those of layers with another scope around them by the layers.
        (
            "f(1) s.7 x jit(f)/jvp(l_0)/q/dot, f(1) s.9 x jit(f)/jvp(l_1)/q/dot, f(1) s.3 x jit(f)/jvp(l_1)/v/dot",
            "f(1) s.1 x jit(f)/jvp(enc)/l_1/v/dot, f(1) s.8 x jit(f)/jvp(enc)/l_0/q/dot, "
            "f(1) s.4 x jit(f)/jvp(enc)/l_1/q/dot",
            "f(1) s.7 = f(1) s.8 structural, f(1) s.9 = f(1) s.4 structural, f(1) s.3 = f(1) s.1 structural",
        ),
        # Names without an id are programs, too.
        (
            "f a, () b, f(99999999999999999999) c",
            "f a, () b, f(99999999999999999999) c",
            "f a = f a exact, () b = () b exact, f(99999999999999999999) c = f(99999999999999999999) c exact",
        ),
    ],
)
def test_programs_and_their_instructions_match(baseline: str, candidate: str, expected: str) -> None:
    found = {f"{one} = {other} {tier}" for one, other, tier in matches(table(baseline), table(candidate))}
    assert found == set(filter(None, expected.split(", ")))


def test_nodes_of_unknown_category_match_those_of_their_depth() -> None:
    ours, theirs = (op_profile(table(f"f({number}) add, f({number}) sin").assign(category="")) for number in (1, 7))
    diff = diff_table(schema.OP_PROFILE, "b", SideRows(ours), SideRows(theirs), identical=False)
    assert set(diff["match"]) == {"exact"}
    assert len(diff) == len(ours)
    assert (diff["self_time_us_delta"] == 0).all()


def test_two_recordings_of_a_convolution_match_per_device() -> None:
    comparison = compared_runs("jax_conv_legacy", "jax_conv_08", "device")
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
        "cudnn-conv.1",
        "canonical",
        "same",
    ]
    assert rows.loc["input_transpose_fusion", "match"] == "exact"
    by_name = diff.set_index("program").loc["jit__multi_slice(13)"]
    assert set(by_name["status"]) == {"matched", "removed"}
    assert by_name.loc[by_name["status"] == "matched", "size_bytes_delta"].eq(0).all()


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
    of_one_op = [
        plain_name(str(ours)) == plain_name(str(theirs))
        for ours, theirs in zip(rows["op_name_baseline"], rows["op_name_candidate"], strict=True)
    ]
    time = rows["self_time_us_per_step_baseline"]
    assert time[of_one_op].sum() > 0.99 * time.sum(), "numbers of instructions are given anew"
