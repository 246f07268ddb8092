"""Ops of surely equal work: which are controls, the factor that they have in common, and when they have none."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from tests.laws import mostly_thorough
from tests.profiles import SAMPLES
from tfcompare.compare import controls as module
from tfcompare.compare.controls import controls_among, controls_of, have_equal_work
from tfcompare.compare.groups.aggregate import group_diff
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import Pairs, pair_with
from tfcompare.compare.spreads import spread_on
from tfcompare.compare.stats.change_test import ChangeTest
from tfcompare.compare.stats.robust import effective_count, half_width, location_and_scale
from tfcompare.compare.stats.verdict import Spread
from tfcompare.compare.table_diff import unjudged_ops
from tfcompare.run import load
from tfcompare.schema import DEVICE, HOST, SIDES
from tfcompare.schema.arrays import Floats

OPS, SCOPES = 60, 12


def rows(baseline_us: Floats, candidate_us: Floats, **cells: object) -> pd.DataFrame:
    """Rows of the diff of `op_stats` with these times: sure pairs of equal work in `SCOPES` name scopes, but for the
    `cells` given."""
    count = len(baseline_us)
    names = [f"model/layer_{op % SCOPES}/op_{op}" for op in range(count)]
    work = dict.fromkeys(("flops", "bytes_accessed"), 1000000.0) | {"occurrences": 1.0, "shapes": None}
    both = {f"{name}_{side}": value for name, value in work.items() for side in SIDES}
    times = {"self_time_us_baseline": baseline_us, "self_time_us_candidate": candidate_us}
    of_names = {"op_type": "MatMul", "op_name": names, "op_name_candidate": names}
    frame = pd.DataFrame({"status": "matched", "is_sure": True} | of_names | both | times, range(count))
    return frame.assign(**cells)


def drawn(seed: int, factor: float = 1.0, spread: float = 0.02, ops: int = OPS) -> tuple[Floats, Floats]:
    """Times of ops of uneven length, all of which take `factor` times as long, with heavy tails."""
    random = np.random.default_rng(seed)
    before = np.exp(random.normal(4, 1, ops))
    return before, before * factor * np.exp(spread * random.standard_t(4, ops))


def without_costs(frame: pd.DataFrame, **cells: object) -> pd.DataFrame:
    """The rows as those of TensorFlow without XLA, in training: shapes of results, but no FLOPs and no bytes. Every
    third op is a product, and the others are its gradients."""
    unknown = {f"{name}_{side}": np.nan for name in ("flops", "bytes_accessed") for side in SIDES}
    shapes = {f"shapes_{side}": "[16,32]" for side in SIDES}
    op = np.arange(len(frame))
    types = np.select([op % 3 == 0, op % 3 == 1], ["Conv2D", "Conv2DBackpropFilter"], "Conv2DBackpropInput")
    scopes = pd.Series(np.where(op % 3, "gradient_tape/", ""), frame.index)
    return frame.assign(**({"op_type": types, "op_name": scopes + frame["op_name"]} | unknown | shapes | cells))


def at(count: int, first: object, others: object) -> list[object]:
    """Cells of which only the first differs."""
    return [first, *[others] * (count - 1)]


# The factor


@pytest.mark.parametrize("factor", [1.6, 1.0, 0.7])
def test_the_factor_of_all_ops_is_found_and_its_interval_contains_it(factor: float) -> None:
    every = [controls_among(rows(*drawn(seed, factor))) for seed in range(100)]
    found = [one for one in every if not one.closed]
    assert len(found) >= 90  # in some draws, large and small ops differ by chance
    assert np.mean([one.low <= factor <= one.high for one in found]) >= 0.9
    assert [one.ratio for one in found] == pytest.approx([factor] * len(found), rel=0.04)
    assert {one.is_clear for one in found} == {factor != 1}


def test_arrays_have_one_element_per_control() -> None:
    before, after = drawn(1, 1.6)
    frame = rows(before, after, flops_candidate=at(OPS, 2e6, 1e6))
    found = controls_among(frame)
    assert found.baseline_us.tolist() == before[1:].tolist()
    assert found.log_ratios == pytest.approx(np.log(after[1:] / before[1:]))
    shares = (before / before.sum() + after / after.sum()) / 2
    assert found.weights == pytest.approx(np.minimum(shares[1:], 0.1))
    assert found.time_ratio == pytest.approx(after.sum() / before.sum())


@pytest.mark.parametrize("seed", range(5))
def test_exchanging_the_sides_mirrors_the_factor(seed: int) -> None:
    frame = rows(*drawn(seed, 1.3)).assign(op_name_candidate=lambda found: "jit(f)/" + found["op_name"])
    frame = frame.assign(op_name=frame["op_name"].str.replace("layer_1/", "layer_2/"))
    names = {name: name.replace("baseline", "candidate") for name in frame if name.endswith("_baseline")}
    names |= {"op_name": "op_name_candidate"}
    mirrored = frame.rename(columns=names | {after: before for before, after in names.items()})
    found, back = controls_among(frame), controls_among(mirrored.sample(frac=1, random_state=seed))
    assert (back.ratio, back.low, back.high) == pytest.approx((1 / found.ratio, 1 / found.high, 1 / found.low), 1e-9)
    assert (back.spread, *back.cover) == pytest.approx((found.spread, *found.cover[::-1]), 1e-9)


def test_an_interval_by_clusters_holds_for_values_that_vary_together() -> None:
    random = np.random.default_rng(3)
    clusters = np.repeat(np.arange(10), 6)
    held = []
    for _ in range(300):
        values = 0.02 * random.standard_t(4, 60) + random.normal(0, 0.03, 10)[clusters]
        weights = np.exp(random.normal(0, 0.7, 60))
        held.append(abs(location_and_scale(values, weights)[0]) <= half_width(values, weights, clusters))
    assert 0.9 <= np.mean(held) <= 0.99


def test_two_of_thirty_values_far_off_hardly_move_location_and_scale() -> None:
    random = np.random.default_rng(4)
    values, weights = random.normal(0.1, 0.02, 30), np.ones(30)
    location, scale = location_and_scale(values, weights)
    far = location_and_scale(np.concatenate([values[2:], [3.0, 4.0]]), weights)
    assert far == pytest.approx((location, scale), abs=0.008)
    assert effective_count(np.array([1.0, 1.0, 0.0])) == 2


# Which ops are controls


@pytest.mark.parametrize(
    "cells",
    [
        {"flops_candidate": at(OPS, 2e6, 1e6)},
        {"bytes_accessed_baseline": at(OPS, 2e6, 1e6)},
        {"occurrences_candidate": at(OPS, 2.0, 1.0)},
        {"is_sure": at(OPS, False, True)},
        {f"{name}_{side}": at(OPS, 0.0, 1e6) for name in ("flops", "bytes_accessed") for side in SIDES},
        {f"{name}_{side}": at(OPS, np.nan, 1e6) for name in ("flops", "bytes_accessed") for side in SIDES},
    ],
    ids=["FLOPs", "bytes", "occurrences", "not sure", "no work", "unknown work"],
)
def test_an_op_of_other_or_unknown_work_is_no_control(cells: dict[str, list[object]]) -> None:
    assert len(controls_among(rows(*drawn(1), **cells)).weights) == OPS - 1


def test_an_op_that_takes_no_time_on_a_side_is_no_control() -> None:
    before, after = drawn(1)
    before[3] = after[5] = 0.0
    found = controls_among(rows(before, after))
    assert len(found.weights) == OPS - 2
    assert np.isfinite(found.log_ratios).all()


def test_without_costs_all_ops_of_an_equal_program_are_controls() -> None:
    found = controls_among(without_costs(rows(*drawn(1, 1.6))))
    assert len(found.weights) == OPS
    assert found.is_clear


@pytest.mark.parametrize(
    "cells",
    [
        {"shapes_candidate": at(OPS, "[512,32]", "[16,32]")},
        {"op_type": np.where(np.arange(OPS) % 3 == 2, "ReluGrad", "Conv2D")},
        {"op_name": [f"op_{op}" for op in range(OPS)]},
        {"shapes_baseline": None},
        {"shapes_candidate": at(OPS, None, "[16,32]")},
        {"occurrences_candidate": at(OPS, 2.0, 1.0)},
        {"is_sure": at(OPS, False, True)},
        {"status": at(OPS, "added", "matched")},
    ],
    ids=[
        "another shape",
        "frozen layers",
        "no gradients",
        "no shapes",
        "an unknown shape",
        "more often",
        "not sure",
        "added",
    ],
)
def test_without_costs_there_are_no_controls_if_anything_of_the_program_differs(cells: dict[str, object]) -> None:
    before, after = drawn(1, 1.6)
    assert not len(controls_among(without_costs(rows(before, after), **cells)).weights)


def test_a_tiny_op_on_one_side_leaves_a_program_equal() -> None:
    before, after = drawn(1, 1.6)
    before[0], after[0] = np.nan, after.sum() / 2000
    found = controls_among(without_costs(rows(before, after), is_sure=at(OPS, False, True)))
    assert len(found.weights) == OPS - 1


# When there is no factor


def one_dominates() -> pd.DataFrame:
    before = np.array([770.0, *[10.0] * 23])
    return rows(before, 1.6 * before)


def large_and_small_differ() -> pd.DataFrame:
    before = np.array([*[50.0] * 10, *[10.0] * 50])
    return rows(before, before * np.where(before > 20, 1.3, 1.2))


def most_changed() -> pd.DataFrame:
    before, after = drawn(1, 1.6)
    return rows(before, after, flops_candidate=np.where(np.arange(OPS) < 45, 2e6, 1e6))


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (most_changed(), "of the time"),
        (one_dominates(), "of the time"),
        (rows(*drawn(1, 1.6, ops=7)), "effective controls"),
        (rows(*drawn(2, 1.35, spread=0.25)), "vary by"),
        (large_and_small_differ(), "large controls"),
        (rows(*drawn(1), is_sure=False), "no op"),
        (rows(np.zeros(3), np.ones(3)), "one side"),
    ],
    ids=["most changed", "one dominates", "few", "contention", "large and small", "none", "empty"],
)
def test_a_closed_gate_says_why_and_nothing_is_clear(frame: pd.DataFrame, why: str) -> None:
    found = controls_among(frame)
    assert why in found.closed
    assert np.isnan([found.low, found.high]).all()
    assert not found.is_clear


def test_half_of_the_ops_at_another_speed_are_not_all() -> None:
    random = np.random.default_rng(2)
    times, is_slow = random.uniform(5, 30, 400), random.permutation(400) < 200
    found = controls_among(rows(times, times * np.where(is_slow, 1.17, 1.0)))
    assert found.low > 1.05
    assert not found.is_clear


def test_ops_of_one_scope_that_vary_together_are_one_observation() -> None:
    frame = rows(*drawn(1, 1.6)).assign(op_name="model/op", op_name_candidate="model/op")
    found = controls_among(frame)
    assert not found.closed
    assert found.high == np.inf
    assert not found.is_clear


# Real captures


def a_pair(baseline: str, candidate: str) -> Pair:
    return pair_with(Pairs.between(load(SAMPLES / baseline), load(SAMPLES / candidate)))


GPU_PROGRAMS = [
    *(f"autoencoder_gpu/{name}" for name in ("h100_16_8", "h100_512_128", "h100_16_8_command_buffers")),
    *(f"transformer_gpu/{name}" for name in ("h100_store_activations", "h100_recompute_activations")),
]
REPLICATES = [
    (f"{folder}/{name}_run-{one}", f"{folder}/{name}_run-{other}")
    for folder in GPU_PROGRAMS
    for name in [folder.rpartition("/")[2]]
    for one, other in combinations((1, 2, 3), 2)
]


@pytest.mark.parametrize("captures", mostly_thorough(REPLICATES, REPLICATES[0], REPLICATES[9]))
def test_devices_of_captures_of_one_program_differ_by_a_hundredth(captures: tuple[str, str]) -> None:
    found = a_pair(*captures).controls
    assert found[DEVICE].ratio == pytest.approx(1, abs=0.015)
    assert not any(one.is_clear for one in found.values())


def test_two_captures_of_a_program_on_a_cpu_have_controls() -> None:
    (found,) = a_pair("autoencoder/filters_16_8", "autoencoder/filters_16_8_again").controls.values()
    assert len(found.weights) == 345
    assert not found.closed
    assert not found.is_clear


@pytest.mark.parametrize("candidate", ["filters_16_8_better_input", "filters_512_128"])
def test_a_changed_program_on_a_cpu_has_no_controls(candidate: str) -> None:
    (found,) = a_pair("autoencoder/filters_16_8", f"autoencoder/{candidate}").controls.values()
    assert not len(found.weights)


def test_what_did_not_change_is_as_fast_where_activations_are_computed_again() -> None:
    run = "transformer_gpu/h100_{0}_activations/h100_{0}_activations_run-1"
    found = a_pair(run.format("store"), run.format("recompute")).controls[DEVICE]
    assert found.time_ratio > 1.15
    assert found.low < 1 < found.high


def test_a_capture_has_no_controls_beside_itself() -> None:
    path = "autoencoder/filters_16_8"
    assert a_pair(path, path).controls == {}


@pytest.mark.parametrize(
    ("baseline", "candidate", "place"),
    [(*REPLICATES[9], DEVICE), ("autoencoder/filters_16_8", "autoencoder/filters_16_8_again", HOST)],
)
def test_a_program_that_takes_longer_as_a_whole_is_found(
    baseline: str, candidate: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = a_pair(baseline, candidate)
    once = pair.controls[place]
    ops = unjudged_ops(pair)
    slower = ops.assign(self_time_us_candidate=1.6 * ops["self_time_us_candidate"])
    monkeypatch.setattr(module, "unjudged_ops", lambda _: slower)
    found = controls_of(pair)[place]
    assert (found.ratio, found.spread) == pytest.approx((1.6 * once.ratio, once.spread))
    assert found.is_clear


# What they say of the spread of other ops


@pytest.mark.parametrize("spread", [0.01, 0.1])
def test_an_assumed_spread_becomes_as_large_as_controls_vary(spread: float) -> None:
    """Log ratios of two captures vary by √2 times as much as one capture does, the factor of all included."""
    assumed = Spread(0.03, "set for this test")
    found = controls_among(rows(*drawn(1, spread=spread, ops=300)))
    scaled = found.scaled(assumed)
    usual = np.sqrt(np.square(found.log_ratios).mean() / 2)
    assert usual <= scaled.share < 1.5 * usual, "heavy tails count"
    assert scaled.share < assumed.share or spread > 0.03
    slower = controls_among(rows(*drawn(1, factor=1.1, spread=spread, ops=300)))
    assert slower.scaled(assumed).share > scaled.share, "between other captures the factor may be another one"


def test_only_ops_of_equal_work_are_held_against_controls() -> None:
    """The ops of one program whose costs are equal in two captures, in which XLA fused some work otherwise."""
    pair = a_pair(*next(one for one in REPLICATES if "recompute" in one[0]))
    diff = pair.diff()
    device = diff[(diff["host_or_device"] == DEVICE) & diff["interval_low"].notna()]
    is_equal = have_equal_work(device)
    assert is_equal.any()
    assert not is_equal.all()
    test = ChangeTest(spread_on(pair, DEVICE))
    assumed = test.spread.of(np.sqrt(device["self_time_us_baseline"] * device["self_time_us_candidate"]).to_numpy())
    width = np.log(device["interval_high"] / device["interval_low"]).to_numpy() / assumed
    assert np.median(width[is_equal]) < np.median(width[~is_equal]) / 1.5
    by_name = group_diff(diff, "op_name", judge=pair.group_verdicts)
    one = device[is_equal].iloc[0]
    grouped = by_name[(by_name["op_name"] == one["op_name"]) & (by_name["host_or_device"] == DEVICE)].iloc[0]
    assert grouped["interval_low"] == pytest.approx(one["interval_low"], rel=0.02), "one quantity has one value"
