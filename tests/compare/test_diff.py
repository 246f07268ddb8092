"""The diff of two runs: its rows, columns and figures, and the laws that they obey."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from compare_runs import COSTS, op_stats, ops, run, steps, text
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tfcompare import schema
from tfcompare.compare.diff import SumsPer, diff_columns
from tfcompare.comparison import compare
from tfcompare.errors import TfcompareError, Unknown

BEFORE = ops("""
    Host  IDLE    IDLE                0   500
    Host  Conv2D  model/conv/Conv2D   40  4000
    Host  MatMul  model/dense/MatMul  40  100
    Host  Relu    model/relu/Relu     40  60
""")
AFTER = ops("""
    Host  IDLE       IDLE                  0   900
    Host  Conv2D     model/conv/Conv2D     20  500
    Host  _MklMatMul model/dense_3/MatMul  20  50
    Host  Gelu       model/gelu/Gelu       20  10
""")


def test_the_diff_lays_both_runs_side_by_side_per_step():
    comparison = compare(run("before", BEFORE, step_count=40), run("after", AFTER, step_count=20))
    diff = comparison.table("op_stats")
    assert comparison.per == "step"
    time = "self_time_us_per_step"
    assert text(diff, ["op_type", "op_name", f"{time}_baseline", f"{time}_candidate", f"{time}_delta"]) == [
        "Conv2D model/conv/Conv2D 100.0 25.0 -75.0",
        "IDLE IDLE 12.5 45.0 32.5",
        "Relu model/relu/Relu 1.5 – -1.5",
        "Gelu model/gelu/Gelu – 0.5 0.5",
        "MatMul model/dense/MatMul 2.5 2.5 0.0",
    ]
    assert text(diff, ["candidate", "op_type_candidate", "op_name_candidate", "status", "match", "verdict"]) == [
        "after Conv2D model/conv/Conv2D matched exact untested",
        "after IDLE IDLE matched exact untested",
        "after – – removed – –",
        "after Gelu model/gelu/Gelu added – –",
        "after _MklMatMul model/dense_3/MatMul matched canonical untested",
    ]


def four(*metrics: str) -> list[str]:
    return [f"{metric}_{part}" for metric in metrics for part in ("baseline", "candidate", "delta", "ratio")]


def test_the_columns_and_their_dtypes_are_those_of_the_contract():
    per_step = compare(run("before", BEFORE), run("after", AFTER)).table("op_stats")
    sums = ("occurrences", "total_time_us", "self_time_us", "wall_time_us")
    assert list(per_step.columns) == [
        *["baseline", "candidate", "host", "host_or_device", "op_type", "op_name"],
        *["op_type_candidate", "op_name_candidate", "constituents_baseline", "constituents_candidate"],
        "sums_of",
        *four(*(f"{metric}_per_step" for metric in sums)),
        *["is_eager_baseline", "is_eager_candidate"],
        *four(*(f"{cost}_per_step" for cost in COSTS[:2]), *COSTS[2:]),
        *["bound_by_baseline", "bound_by_candidate", "status", "match", "interval_low", "interval_high"],
        *["verdict", "evidence"],
    ]
    per_run = compare(run("before", BEFORE), run("after", AFTER), per="run").table("op_stats")
    dtypes = per_run.dtypes.astype(str)
    assert dtypes["occurrences_baseline"] == dtypes["occurrences_delta"] == "Int64"
    assert dtypes["occurrences_ratio"] == dtypes["self_time_us_baseline"] == "float64"
    assert dtypes["is_eager_candidate"] == "boolean"
    texts = ["op_name", "op_name_candidate", "match", "verdict", "evidence"]
    assert set(dtypes[texts]) == {"str"}


def test_ratios_of_nothing():
    before = ops("Host A zero 0 0\n Host A grew 0 0\n Host A fell 1 5")
    after = ops("Host A zero 0 0\n Host A grew 1 5\n Host A fell 0 0")
    diff = compare(run("before", before), run("after", after)).table("op_stats").set_index("op_name")
    assert diff["self_time_us_per_step_ratio"].to_dict() == {"zero": 1.0, "grew": math.inf, "fell": 0.0}


def test_a_type_that_changes_pairs_only_where_it_is_the_one_of_its_name():
    before = ops("Host MatMul a 1 1\n Host Recv n/_1 1 2\n Host X b 1 1\n Host Y b 1 1")
    after = ops("Host _MklMatMul a 1 1\n Host Send n/_5 1 2\n Host Z b 1 1")
    diff = compare(run("before", before), run("after", after)).table("op_stats")
    paired = diff[diff["status"] == "matched"]
    assert text(paired, ["op_type", "op_type_candidate", "op_name", "match"]) == ["MatMul _MklMatMul a canonical"]
    host, device = (ops(f"{place} MatMul a 1 1") for place in ("Host", "Device"))
    assert set(compare(run("before", host), run("after", device)).table("op_stats")["status"]) == {"added", "removed"}


def test_candidates_are_stacked_in_their_order():
    comparison = compare(run("base", BEFORE), run("z", AFTER), run("a", BEFORE, content="base"))
    diff = comparison.table("op_stats")
    assert list(diff["candidate"].unique()) == ["z", "a"]
    assert set(diff.loc[diff["candidate"] == "a", "verdict"]) == {"same"}
    assert comparison.verdict["a"].word == "same"
    assert comparison.verdict["a"].reason == "identical file"
    assert comparison.verdict["z"].word == "untested"


def test_without_steps_the_comparison_is_per_run_and_says_so():
    comparison = compare(run("before", BEFORE, step_count=40), run("x/after", AFTER, has_steps=False))
    assert comparison.per == "run"
    assert comparison.notes == ("Figures are per run, not per step, since no step markers were found in: after.",)
    assert comparison.table("op_stats")["self_time_us_baseline"].sum() == BEFORE["self_time_us"].sum()
    assert compare(run("before", BEFORE), run("after", AFTER), per="run").notes == ()


def test_steps_pair_by_position_among_the_included_ones():
    before = run("before", step_frame=steps([90, 10, 11, 12, 80], first=100, set_aside=1))
    after = run("after", step_frame=steps([20, 21, 22, 23]), hosts=("other",))
    after.frames["steps"]["host"] = "other"
    diff = compare(before, after).table("steps")
    columns = ["host", "step", "host_candidate", "step_candidate", "duration_us_baseline", "duration_us_candidate"]
    assert text(diff, [*columns, "status", "match", "verdict"]) == [
        "worker 101 other 0 10.0 20.0 matched position –",
        "worker 102 other 1 11.0 21.0 matched position –",
        "worker 103 other 2 12.0 22.0 matched position –",
        "worker 3 other 3 – 23.0 added – –",
    ]


def test_hosts_pair_by_name_and_else_by_order():
    before = run("before", step_frame=pd.concat([steps([1.0], "a"), steps([2.0], "h-2"), steps([3.0], "h-10")]))
    after = run("after", step_frame=pd.concat([steps([6.0], "k-10"), steps([4.0], "a"), steps([5.0], "k-2")]))
    diff = compare(before, after).table("steps")
    assert text(diff, ["host", "host_candidate", "duration_us_baseline", "duration_us_candidate"]) == [
        "a a 1.0 4.0",
        "h-10 k-10 3.0 6.0",
        "h-2 k-2 2.0 5.0",
    ]


def test_run_info_is_one_row_for_each_candidate():
    diff = compare(run("before", step_count=40), run("after", step_count=20)).table("run_info")
    assert text(diff, ["candidate", "run", "step_count_baseline", "step_count_candidate", "step_count_delta"]) == [
        "after before 40 20 -20"
    ]
    assert text(diff, ["step_source_baseline", "step_source_candidate", "status", "match", "verdict"]) == [
        "step markers step markers matched position –"
    ]
    assert "start_time_delta" not in diff


def test_one_host_beside_its_counterpart():
    ours = {"h-1": {"op_stats": op_stats([("Host", "A", "x", 4, 8.0)], "h-1")}}
    theirs = {"k-1": {"op_stats": op_stats([("Host", "A", "x", 4, 4.0)], "k-1")}}
    frame = pd.concat([steps([1.0] * 4, "h-1"), steps([1.0] * 8, "h-2")])
    before = run("before", step_count=8, step_frame=frame, hosts=("h-1", "h-2"), by_host=ours)
    after = run("after", step_count=2, hosts=("k-2", "k-1"), by_host=theirs)
    comparison = compare(before, after, host="h-1")
    diff = comparison.table("op_stats")
    time = "self_time_us_per_step"
    assert text(diff, ["host", f"{time}_baseline", f"{time}_candidate", "status"]) == ["h-1 2.0 2.0 matched"]
    assert comparison.notes == ("Host h-1 of the baseline is compared with host k-1 of after.",)
    with pytest.raises(Unknown, match="unknown host of before 'k-1'; must be one of: 'h-1', 'h-2'"):
        compare(before, after, host="k-1")
    assert compare(before, run("after", hosts=("k-1",)), host="h-1").notes == comparison.notes
    with pytest.raises(Unknown, match="unknown host of after 'h-2'"):
        compare(before, run("after", hosts=("k-1",)), host="h-2")


def test_what_cannot_be_asked_for():
    one = run("one", BEFORE)
    assert compare(one).is_single
    with pytest.raises(TfcompareError, match="'two' was given twice"):
        compare(one, run("two"), run("two"))
    with pytest.raises(TfcompareError, match=r"found the path 'logs/two'; tfcompare.load\('logs/two'\) reads it"):
        compare(one, "logs/two")  # type: ignore[arg-type]
    with pytest.raises(Unknown, match="unknown figures per 'epoch'; must be one of: 'step', 'run'"):
        compare(one, run("two"), per="epoch")
    comparison = compare(one, run("two"))
    with pytest.raises(TfcompareError, match="'op_steps' has no diff"):
        comparison.table("op_steps")
    with pytest.raises(Unknown, match="unknown table 'nope'"):
        comparison.table("nope")
    with pytest.raises(TfcompareError, match="'steps' has no headline metric"):
        comparison.coverage("steps")


def test_what_a_caller_does_to_a_diff_stays_with_the_caller():
    comparison = compare(run("before", BEFORE), run("after", AFTER))
    mine = comparison.table("op_stats")
    mine["status"] = "spoilt"
    mine.loc[:, "verdict"] = "spoilt"
    assert "spoilt" not in set(comparison.table("op_stats")[["status", "verdict"]].stack())


def test_runs_without_ops():
    comparison = compare(run("before"), run("after"))
    in_file = SumsPer("step", "step").names(schema.OP_STATS)
    columns = [in_file.get(name, name) for name in diff_columns(schema.OP_STATS)]
    assert list(comparison.table("op_stats").columns) == ["baseline", *columns]
    assert len(comparison.table("op_stats")) == 0
    assert comparison.coverage().drop(columns="candidate").isna().all(axis=None)
    assert len(compare(run("before", BEFORE), run("after")).table("op_stats")) == len(BEFORE)


def test_the_coverage_leaves_idle_out():
    coverage = compare(run("before", BEFORE), run("after", AFTER)).coverage()
    assert coverage.round(4).iloc[0].to_dict() == {
        "candidate": "after",
        "matched_share": round((4100 + 550) / (4160 + 560), 4),
        "exact_share": round((4000 + 500) / (4160 + 560), 4),
        "matched_share_baseline": round(4100 / 4160, 4),
        "exact_share_baseline": round(4000 / 4160, 4),
        "matched_share_candidate": round(550 / 560, 4),
        "exact_share_candidate": round(500 / 560, 4),
    }


LAYERS = ["dense/MatMul", "dense_1/MatMul", "dense_2/MatMul", "dense_7/MatMul", "dense_1/Relu", "dense_2/Relu"]
GRADIENTS = ["gradient_tape/dense_1/MatMul", "gradient_tape/dense_2/MatMul"]
op_names = st.sampled_from([*LAYERS, *GRADIENTS, "fusion.3", "fusion.4", "fusion.11", "IDLE"])
op_rows = st.lists(
    st.tuples(
        st.sampled_from(["Host", "Device"]),
        st.sampled_from(["MatMul", "_MklMatMul", "IDLE"]),
        op_names,
        st.integers(0, 1000),
        st.floats(0, 1e9),
    ),
    max_size=12,
    unique_by=lambda row: row[:3],
)
runs = st.tuples(op_rows.map(op_stats), st.integers(1, 50))
SIDES = ["baseline", "candidate"]


def cells_of(diff: pd.DataFrame, side: str, columns: list[str]) -> dict[tuple[str, ...], list[object]]:
    """The cells of the rows that one side has, by the keys that they have there."""
    keys = ["host_or_device", "op_type", "op_name"]
    if side == "candidate":
        keys = ["host_or_device", "op_type_candidate", "op_name_candidate"]
    time = next(c for c in diff.columns if c.startswith("self_time_us") and c.endswith(side))
    present = diff[diff[time].notna()].fillna({"match": "–"})
    assert not present.duplicated(keys).any()
    return {tuple(row[:3]): list(row[3:]) for row in present[keys + columns].itertuples(index=False)}


@law(5)
@given(runs)
def test_a_run_beside_itself_is_all_exact_and_unchanged(made):
    frame, n = made
    one, copy = (run(name, frame, step_count=n, content="x") for name in ("a", "b"))
    diff = compare(one, copy).table("op_stats")
    assert len(diff) == len(frame)
    assert (diff["status"] == "matched").all()
    assert (diff["match"] == "exact").all()
    assert (diff["verdict"] == "same").all()
    assert (diff.filter(like="_delta") == 0).all(axis=None)
    assert (diff.filter(like="_ratio") == 1).all(axis=None)


@law(5)
@given(runs, runs, st.sampled_from(["step", "run"]), st.integers(0, 99))
def test_nothing_is_lost_or_doubled_in_any_order_and_swapping_the_sides_gives_the_mirror_image(one, two, per, seed):
    a, b = (run(name, frame, step_count=n) for name, (frame, n) in zip("ab", (one, two), strict=True))
    there, back = compare(a, b, per=per).table("op_stats"), compare(b, a, per=per).table("op_stats")
    turned = (
        run(name, f.sample(frac=1, random_state=seed).set_index(pd.Index(range(5, 5 + len(f)))), step_count=n)
        for name, (f, n) in zip("ab", (one, two), strict=True)
    )
    pd.testing.assert_frame_equal(compare(*turned, per=per).table("op_stats"), there)
    unit = "" if per == "run" else "_per_step"
    for side, (frame, n) in zip(SIDES, (one, two), strict=True):
        for metric in ("self_time_us", "occurrences"):
            expected = frame[metric].sum() / (1 if per == "run" else n)
            assert there[f"{metric}{unit}_{side}"].sum() == pytest.approx(expected)
        assert len(cells_of(there, side, [])) == there[f"self_time_us{unit}_{side}"].notna().sum() == len(frame)
    back["status"] = back["status"].replace({"added": "removed", "removed": "added"})
    metrics = [c.removesuffix("_delta") for c in there.columns if c.endswith("_delta")]
    for side, other in (SIDES, SIDES[::-1]):
        shared = ["status", "match"]
        ours, theirs = ([*shared, *(f"{metric}_{s}" for metric in metrics)] for s in (side, other))
        assert cells_of(there, side, ours) == cells_of(back, other, theirs)
    both, mirrored = (diff[diff["status"] == "matched"] for diff in (there, back))
    for metric in metrics:
        columns = [f"{metric}_delta", f"{metric}_ratio"]
        counter = cells_of(mirrored, "candidate", columns)
        for keys, (delta, ratio) in cells_of(both, "baseline", columns).items():
            assert delta == -counter[keys][0]
            assert ratio == pytest.approx(1 / counter[keys][1] if counter[keys][1] else math.inf)


def test_two_thousand_renamed_rows_all_find_their_partner():
    def model(first: int) -> pd.DataFrame:
        names = [f"model/block_{first + i // 100}/part_{i % 100 // 10}/op_{i % 10}" for i in range(2_000)]
        return op_stats([("Host", "MatMul", name, 1, float(i)) for i, name in enumerate(names)])

    before, after = run("before", model(0)), run("after", model(5))
    diff = compare(before, after).table("op_stats")
    assert len(diff) == 2_000
    assert (diff["match"] == "canonical").all()
