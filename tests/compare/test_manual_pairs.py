"""Manual pairs go before all tiers, and come back from an address or a file as they were, whatever the names hold."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from compare_runs import FakeRun, named, op_stats, run, run_of_series, table
from compare_runs import diff as diff_of
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import compared_runs, loaded_run
from tfcompare.compare.groups.aggregate import group_diff
from tfcompare.compare.groups.kernel_groups import group_kernels
from tfcompare.compare.groups.scope_tree import scope_tree
from tfcompare.compare.matching.manual import ManualChoice, effective, with_distinct_names
from tfcompare.compare.matching.manual_text import (
    ELSEWHERE,
    MOST_CHOICES,
    ChoicesOfPair,
    SessionChoices,
    choices_for,
    fits_an_address,
    from_address,
    from_file,
    to_address,
    to_file,
    with_choices,
)
from tfcompare.compare.matching.partners import free_names, most_alike_first
from tfcompare.comparison import compare
from tfcompare.errors import TfcompareError, Unknown


def pair(ours: str, theirs: str) -> ManualChoice:
    return ManualChoice(True, (ours,), (theirs,))


def part(ours: str, theirs: str) -> ManualChoice:
    return ManualChoice(False, (ours,), (theirs,))


def diff(ours: FakeRun, theirs: FakeRun, *choices: ManualChoice, name: str = "op_stats") -> pd.DataFrame:
    return compare(ours, theirs, manual_pairs={theirs.id: choices}, per="run").table(name)


def beside(rows: pd.DataFrame) -> dict[str, str]:
    """`baseline | candidate` and how they were paired."""
    ours = rows["op_name"].where(rows["status"] != "added", "")
    theirs = rows["op_name_candidate"].fillna("")
    return {f"{b} | {c}": m for b, c, m in zip(ours, theirs, rows["match"].fillna(""), strict=True)}


SAME = {"attend | attend": "exact", "norm | norm": "exact"}
BEFORE, AFTER = run("before", named("attend", "mix", "norm")), run("after", named("attend", "blend", "norm"))


def test_two_ops_of_other_names_are_one_where_somebody_says_so_and_leave_their_partners() -> None:
    assert beside(diff(BEFORE, AFTER)) == SAME | {"mix | ": "", " | blend": ""}
    rows = diff(BEFORE, AFTER, pair("mix", "blend"))
    assert beside(rows) == SAME | {"mix | blend": "by hand"}
    row = rows[rows["match"] == "by hand"].iloc[0]
    assert (row["self_time_us_baseline"], row["self_time_us_candidate"], row["status"]) == (11.0, 11.0, "matched")
    found = beside(diff(BEFORE, AFTER, pair("attend", "norm")))
    assert found["attend | norm"] == "by hand"
    assert not set(SAME) & set(found)


def test_parted_ops_stand_as_removed_and_added_or_are_paired_with_others() -> None:
    rows = diff(BEFORE, AFTER, part("attend", "attend"))
    assert beside(rows) == {"attend | ": "", " | attend": "", "norm | norm": "exact", "mix | ": "", " | blend": ""}
    assert sorted(rows["status"]) == ["added", "added", "matched", "removed", "removed"]
    found = beside(diff(BEFORE, AFTER, part("attend", "attend"), pair("attend", "blend")))
    assert found == {"attend | blend": "by hand", " | attend": "", "norm | norm": "exact", "mix | ": ""}


def test_no_lower_tier_pairs_again_what_is_parted() -> None:
    ours, theirs = run("a", named("model/dense/MatMul")), run("b", named("model/dense_7/MatMul"))
    assert beside(diff(ours, theirs)) == {"model/dense/MatMul | model/dense_7/MatMul": "canonical"}
    parted = beside(diff(ours, theirs, part("model/dense/MatMul", "model/dense_7/MatMul")))
    assert parted == {"model/dense/MatMul | ": "", " | model/dense_7/MatMul": ""}


def test_of_choices_that_contradict_each_other_the_last_one_counts() -> None:
    assert effective([pair("a", "x"), part("a", "x")]) == (part("a", "x"),)
    assert effective([part("a", "x"), pair("a", "x")]) == (pair("a", "x"),)
    assert effective([pair("a", "x"), pair("b", "y"), pair("a", "y")]) == (pair("a", "y"),)
    assert effective([pair("a", "x"), pair("a", "x")]) == (pair("a", "x"),)
    assert effective([part("a", "x"), pair("a", "y")]) == (part("a", "x"), pair("a", "y"))


def test_rows_of_one_name_pair_on_their_own_side_and_by_type() -> None:
    ours = run(
        "a",
        op_stats([("Host", "MatMul", "f", 1, 5.0), ("Host", "Cast", "f", 1, 1.0), ("Device", "MatMul", "f", 1, 9.0)]),
    )
    theirs = run("b", op_stats([("Host", "MatMul", "g", 1, 4.0), ("Host", "Copy", "g", 1, 2.0)]))
    rows = diff(ours, theirs, pair("f", "g")).set_index(["host_or_device", "op_type"])
    assert rows.loc[("Host", "MatMul"), "self_time_us_candidate"] == 4.0
    assert rows.loc[("Host", "Cast"), "op_type_candidate"] == "Copy"
    assert rows.loc[("Device", "MatMul"), "status"] == "removed", "host and device are never one"


def test_a_choice_of_names_that_are_not_there_is_told_and_ignored() -> None:
    comparison = compare(BEFORE, AFTER, manual_pairs={"after": [pair("attend", "nowhere"), pair("mix", "blend")]})
    assert comparison.manual_pairs["after"] == (pair("mix", "blend"),)
    assert comparison.notes == ("One choice made manually cannot be applied here: there is no “nowhere” in after.",)
    assert beside(comparison.table("op_stats"))["attend | attend"] == "exact"


def test_a_choice_belongs_to_the_candidate_it_was_made_for() -> None:
    second = run("second", named("attend", "blend", "norm"))
    comparison = compare(BEFORE, AFTER, second, manual_pairs={"second": [pair("mix", "blend")]})
    rows = comparison.table("op_stats")
    assert set(rows.loc[rows["match"] == "by hand", "candidate"]) == {"second"}
    with pytest.raises(Unknown, match="candidate"):
        compare(BEFORE, AFTER, manual_pairs={"second": [pair("mix", "blend")]})


def test_coverage_counts_pairs_made_by_hand_as_matched_and_not_as_exact() -> None:
    told = {"after": [pair("mix", "blend")]}
    before, after = (compare(BEFORE, AFTER, manual_pairs=said).coverage() for said in ({}, told))
    assert before["matched_share"].item() < after["matched_share"].item() == 1.0
    assert before["exact_share"].item() == after["exact_share"].item()


KERNELS = table(
    "kernel_stats",
    kernel_name=["gemm", "bias", "gemm"],
    op_name=["query", "query", "other"],
    total_duration_us=[8.0, 2.0, 1.0],
)
KERNELS_AFTER = table(
    "kernel_stats",
    kernel_name=["gemm", "fused_bias", "gemm"],
    op_name=["fused_qkv", "fused_qkv", "other"],
    total_duration_us=[6.0, 1.0, 1.0],
)


@cache
def kernels(*choices: ManualChoice) -> pd.DataFrame:
    ours, theirs = run("before"), run("after")
    ours.frames["kernel_stats"], theirs.frames["kernel_stats"] = KERNELS, KERNELS_AFTER
    return diff(ours, theirs, *choices, name="kernel_stats")


def launched(rows: pd.DataFrame) -> dict[tuple[str, str], str]:
    return {(f"{row.op_name}/{row.kernel_name}", row.status): row.match for row in rows.itertuples()}


def test_kernels_of_ops_that_are_paired_by_hand_pair_by_their_names() -> None:
    rows = launched(kernels(pair("query", "fused_qkv")))
    assert rows["query/gemm", "matched"] == "by hand"
    assert ("query/bias", "removed") in rows and ("fused_qkv/fused_bias", "added") in rows


def test_a_kernel_is_paired_within_its_op() -> None:
    said = [pair("query", "fused_qkv"), ManualChoice(True, ("query", "bias"), ("fused_qkv", "fused_bias"))]
    rows = launched(kernels(*said))
    assert rows["query/gemm", "matched"] == rows["query/bias", "matched"] == "by hand"
    apart = launched(kernels(*said, ManualChoice(False, ("query", "gemm"), ("fused_qkv", "gemm"))))
    assert ("query/gemm", "removed") in apart and apart["query/bias", "matched"] == "by hand"


def test_kernels_added_up_follow_what_was_said() -> None:
    said = [pair("query", "fused_qkv")]
    groups = group_kernels(kernels(*said), "op_name", manual_pairs=said).set_index("op_name")
    assert groups.loc["query", ["total_duration_us_baseline", "total_duration_us_candidate"]].tolist() == [10.0, 7.0]
    said = [part("other", "other")]
    apart = group_kernels(kernels(*said), "op_name", manual_pairs=said).set_index("op_name")["status"]
    assert (apart["other"], apart["other (candidate's)"]) == ("removed", "added")
    said = [ManualChoice(False, ("other", "gemm"), ("other", "gemm"))]
    by_kernel = group_kernels(kernels(*said), "kernel_and_op", manual_pairs=said)
    assert set(by_kernel.loc[by_kernel["op_name"].str.startswith("other"), "status"]) == {"added", "removed"}
    by_op = group_kernels(kernels(*said), "op_name", manual_pairs=said).set_index("op_name")["status"]
    assert by_op["other"] == "matched", "the op is one, whatever is said of its kernel"


def test_kernels_of_layers_that_pair_by_their_place_are_one_op_though_no_kernel_is_the_same() -> None:
    ops = ["dense/MatMul", "dense/BiasAdd", "head/Softmax", "head/Sum"]
    renamed = [name.replace("dense", "projection") for name in ops]
    ours, theirs = run("before"), run("after")
    ours.frames["kernel_stats"] = table("kernel_stats", kernel_name=["old"] * 4, op_name=ops)
    theirs.frames["kernel_stats"] = table("kernel_stats", kernel_name=["old", "new", "old", "old"], op_name=renamed)
    rows = compare(ours, theirs, per="run").table("kernel_stats")
    assert rows["match"].eq("structural").any()
    assert set(group_kernels(rows, "op_name")["status"]) == {"matched"}
    assert set(group_kernels(rows, "op_name")["op_name"]) == set(ops)


def test_memory_and_input_ops_follow_too() -> None:
    ours, theirs = run("before"), run("after")
    for each, name, size in ((ours, "conv", 100), (theirs, "mix", 80)):
        each.frames["memory_peak"] = table("memory_peak", op_name=[name], allocation_bytes=[size], shape=[f"[{size}]"])
        each.frames["input_pipeline"] = table("input_pipeline", op_name=[f"Decode{name}"], category=["decode"])
    said = [pair("conv", "mix"), pair("Decodeconv", "Decodemix")]
    memory, inputs = (diff(ours, theirs, *said, name=name) for name in ("memory_peak", "input_pipeline"))
    assert memory[["match", "verdict", "allocation_bytes_delta"]].iloc[0].tolist() == ["by hand", "less", -20]
    assert inputs["match"].tolist() == ["by hand"]


def test_parted_ops_of_one_name_stay_apart_in_sums() -> None:
    said = [part("attend", "attend")]
    rows = with_distinct_names(diff(BEFORE, AFTER, *said), said)
    groups = group_diff(rows, "op_name").set_index("op_name")["status"]
    assert (groups["attend"], groups["attend (candidate's)"], groups["norm"]) == ("removed", "added", "matched")
    renamed = group_diff(diff(BEFORE, AFTER, pair("mix", "blend")), "op_name").set_index("op_name")["match"]
    assert (renamed["mix"], renamed["norm"]) == ("canonical", "exact")
    tree = scope_tree(rows).set_index("label")["status"]
    assert (tree["attend"], tree["attend (candidate's)"]) == ("removed", "added")


TABLES = ("op_stats", "kernel_stats", "memory_peak", "input_pipeline")


def some_choices(rows: pd.DataFrame) -> list[ManualChoice]:
    """Every third pair parted, and what then has no partner paired crosswise."""
    matched = rows[rows["status"] == "matched"].drop_duplicates("op_name").drop_duplicates("op_name_candidate")
    said = [part(b, c) for b, c in zip(matched["op_name"][::3], matched["op_name_candidate"][::3], strict=True)]
    crossed = pairwise(said[:6])
    return [*said, *(ManualChoice(True, one.baseline, other.candidate) for one, other in crossed)]


def beside_mirrored(rows: pd.DataFrame, *, own: bool) -> list[tuple[str, ...]]:
    swapped = {"added": "removed", "removed": "added"} if own else {}
    sides = ("candidate", "baseline") if own else ("baseline", "candidate")
    names = {
        "baseline": rows["op_name"].where(rows["status"] != "added", ""),
        "candidate": rows["op_name_candidate"].fillna(""),
    }
    return sorted(
        zip(names[sides[0]], names[sides[1]], rows["status"].replace(swapped), rows["match"].fillna(""), strict=True)
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gpu_filters_512_128", "gpu_filters_16_8"),
        pytest.param("tf_cpu_base", "tf_cpu_zoo", marks=pytest.mark.thorough),
    ],
)
def test_every_row_is_there_once_whatever_is_said_and_mirrored_choices_make_the_mirror_image(
    one: str, other: str
) -> None:
    ours, theirs = loaded_run(one), loaded_run(other)
    plain = compared_runs(one, other)
    said = some_choices(plain.table("op_stats"))
    told = compare(ours, theirs, manual_pairs={theirs.id: said})
    back = compare(theirs, ours, manual_pairs={ours.id: [choice.mirrored for choice in effective(said)]})
    assert told.manual_pairs[theirs.id]
    for name in TABLES:
        before, after = plain.table(name), told.table(name)
        assert (name != "op_stats") or set(after["match"].dropna()) > {"by hand"}
        for side, own in (("baseline", "removed"), ("candidate", "added")):
            for column in (c for c in before if c.endswith(f"_{side}") and before[c].dtype.kind in "if"):
                assert after[column].sum() == pytest.approx(before[column].sum())
            count = [(rows["status"].isin(["matched", own])).sum() for rows in (before, after)]
            assert count[0] == count[1]
        assert beside_mirrored(after, own=False) == beside_mirrored(back.table(name), own=True)
    said = said[:3]
    again = [choice._replace(is_pair=not choice.is_pair) for choice in said]
    rows = compare(ours, theirs, manual_pairs={theirs.id: [*said, *again]}).table("op_stats")
    assert (rows["match"] == "by hand").sum() >= len(again)
    pd.testing.assert_frame_equal(rows.drop(columns="match"), plain.table("op_stats").drop(columns="match"))


def test_verdicts_on_pairs_made_by_hand_are_those_of_the_two_series() -> None:
    def of(name: str, op: str, mean_us: float) -> FakeRun:
        noise = 1 + 0.01 * np.random.default_rng(len(op)).standard_normal(20)
        return run_of_series(name, {("Host", "MatMul", op): mean_us * noise}, step_us=50_000.0)

    ours, plain, renamed = of("a", "old", 40_000.0), of("b", "old", 10_000.0), of("b", "new", 10_000.0)
    expected, row = diff(ours, plain).iloc[0], diff(ours, renamed, pair("old", "new")).iloc[0]
    assert (row["match"], row["verdict"], expected["verdict"]) == ("by hand", "faster", "faster")
    assert (row["interval_low"], row["interval_high"]) == (expected["interval_low"], expected["interval_high"])
    assert diff(ours, replace(ours, id="copy"), pair("old", "old"))["verdict"].tolist() == ["same"]


def test_nothing_said_changes_nothing() -> None:
    told = compare(BEFORE, AFTER, manual_pairs={"after": []}).table("op_stats")
    pd.testing.assert_frame_equal(told, compare(BEFORE, AFTER).table("op_stats"))


def test_only_what_has_no_partner_is_offered_each_name_once_and_the_most_alike_first() -> None:
    before = op_stats([("Host", "MatMul", "net/query/MatMul", 1, 10.0), ("Host", "Relu", "act", 1, 5.0)])
    alone = [("Softmax", "sampler/top_k", 10.0), ("Einsum", "net/query_q", 4.0), ("BiasAdd", "net/query_q", 2.0)]
    after = op_stats(
        [("Host", kind, name, 1, us) for kind, name, us in [*alone, ("Relu", "act", 5.0), ("IDLE", "IDLE", 99.0)]]
    )
    rows = diff(run("a", before), run("b", after))
    ours, theirs = (free_names(rows, side, ["op_name"], "self_time_us") for side in ("baseline", "candidate"))
    assert ours["name"].tolist() == [("net/query/MatMul",)]
    assert theirs["name"].tolist() == [("sampler/top_k",), ("net/query_q",)]
    assert theirs["time_us"].tolist() == [10.0, 6.0]
    alike = most_alike_first(theirs, ("net/query/MatMul",), "MatMul", 10.0)
    assert alike["name"].tolist() == [("net/query_q",), ("sampler/top_k",)]
    assert most_alike_first(theirs.iloc[:0], ("x",), "", 1.0).empty


def test_kernels_are_offered_with_their_ops_and_never_without_one() -> None:
    before = table("kernel_stats", kernel_name=["k"], op_name=["op"], total_duration_us=[1.0])
    after = table("kernel_stats", kernel_name=["fast", "slow", "k"], op_name=["op", "", "op"], grid_dim=["1", "1", "2"])
    rows = diff_of("kernel_stats", before, after)
    free = free_names(rows, "candidate", ["op_name", "kernel_name"], "total_duration_us")
    assert free["name"].tolist() == [("op", "fast")]


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PARTS = st.integers(1, 2)
CHOICES = PARTS.flatmap(
    lambda parts: st.builds(ManualChoice, st.booleans(), st.tuples(*[NAMES] * parts), st.tuples(*[NAMES] * parts))
)
SAID = st.lists(CHOICES, min_size=1, max_size=5).map(effective)
QUERY = (ManualChoice(True, ("q=b&c",), ("[\"é\",'/']",)), ManualChoice(False, ("op", "k<1>"), ("op", "k<2>")))


@given(NAMES, NAMES, SAID)
def test_an_address_gives_back_what_it_was_made_of(
    baseline: str, candidate: str, said: tuple[ManualChoice, ...]
) -> None:
    kept = (ChoicesOfPair(baseline, candidate, said),)
    assert not fits_an_address(kept) or from_address(to_address(kept)) == kept


@given(NAMES, NAMES, SAID)
def test_a_file_gives_back_what_it_was_made_of(baseline: str, candidate: str, said: tuple[ManualChoice, ...]) -> None:
    runs = ChoicesOfPair(baseline, candidate, said)
    assert from_file(to_file(runs), "pairs.json") == runs


def test_runs_in_each_others_place_have_the_mirrored_choices() -> None:
    kept = with_choices((), "before", "after", QUERY)
    assert choices_for(kept, "before", "after") == QUERY
    assert choices_for(kept, "after", "before") == tuple(choice.mirrored for choice in QUERY)
    assert choices_for(kept, "before", "other") == ()


def test_choices_belong_to_their_two_runs() -> None:
    kept = with_choices(with_choices((), "a", "b", QUERY), "a", "c", QUERY[:1])
    assert choices_for(kept, "a", "b") == QUERY and choices_for(kept, "a", "c") == QUERY[:1]
    assert with_choices(kept, "b", "a", ()) == (ChoicesOfPair("a", "c", QUERY[:1]),)


@pytest.mark.parametrize(("count", "length"), [(MOST_CHOICES + 1, 1), (3, 1500)])
def test_what_is_too_much_for_an_address_is_kept_elsewhere(count: int, length: int) -> None:
    kept: SessionChoices = (
        ChoicesOfPair("a", "b", tuple(ManualChoice(False, (f"{i}",), ("x" * length,)) for i in range(count))),
    )
    assert to_address(kept) == [ELSEWHERE]
    assert not fits_an_address(kept)
    assert from_address(to_address(kept)) is None


@pytest.mark.parametrize(
    "value",
    [
        *("", "nonsense", "[]", '["a"]', '["a","b","c"]', '["a","b",["=","x"]]', '["a","b",["=","x",1]]', "[" * 3000),
        *('["a","b",["=","x","\\ud800"]]', '["a","b",["?","x","y"]]', '["a","b",["=","x","y","z"]]', "9" * 5000),
    ],
)
def test_an_address_that_says_nothing_of_this_is_none(value: str) -> None:
    assert from_address([value]) is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "expected JSON"),
        ("[1]", '"format": "tfcompare pairs"'),
        ('{"format": "other", "baseline": "a", "candidate": "b", "choices": []}', '"format": "tfcompare pairs"'),
        (
            json.dumps(
                {"format": "tfcompare pairs", "baseline": "a", "candidate": "b", "choices": [{"choice": "pair"}]}
            ),
            "choice 1: expected",
        ),
        (
            json.dumps(
                {
                    "format": "tfcompare pairs",
                    "baseline": "a",
                    "candidate": "b",
                    "choices": [{"choice": "pair", "baseline_op": "x", "baseline_kernel": "k", "candidate_op": "y"}],
                }
            ),
            "choice 1: expected",
        ),
        ('{"format": "tfcompare pairs", "baseline": "a", "candidate": "\\ud800", "choices": []}', "expected JSON"),
    ],
)
def test_a_file_that_is_none_says_what_was_expected(text: str, complaint: str) -> None:
    with pytest.raises(TfcompareError, match=complaint) as error:
        from_file(text, "pairs.json")
    assert str(error.value).startswith("pairs.json: ")
