"""Programs whose truth is known because they were written for it (`tests/known_truth/record.py`)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tfcompare as tfc
from tests.checked import checked as check
from tests.laws import mostly_thorough
from tests.profiles import ALL_RUNS, EACH_KIND, compared_runs, loaded_run, run_path
from tfcompare.compare.attribution import NO_OP, OTHER_HOSTS
from tfcompare.compare.check.conditions import parse_condition
from tfcompare.compare.comparability import examples_per_step
from tfcompare.compare.pairs import pair_with, pairs_of
from tfcompare.compare.side import window_of
from tfcompare.comparison import Comparison
from tfcompare.run import Run
from tfcompare.schema import SIDES, STEP_PARTS
from tfcompare.tables.hosts import own_time_us, straggler
from tfcompare.views.hosts.figures import slowest_host
from tfcompare.views.input.figures import on_waiting, wait_of
from tfcompare.views.steps.attribution import Attribution, Within, attribution, within
from tfcompare.views.steps.dashboard import dashboard
from tfcompare.views.steps.figures import window_figures
from tfcompare.views.steps.words import between_steps_sentence
from tfcompare.views.xla.regrouped import regrouped, source_ops

FOLDER = Path(__file__).parent / "known_truth"
NAMES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir() and path.name != "__pycache__")
MS = 1000.0


@cache
def recorded(name: str) -> Run:
    return tfc.load(FOLDER / name)


@cache
def compared(baseline: str, candidate: str) -> Comparison:
    return tfc.compare(recorded(baseline), recorded(candidate))


def taken_apart(baseline: str, candidate: str, part: str | None = None) -> tuple[Attribution, Within]:
    comparison = compared(baseline, candidate)
    found = attribution(pair_with(comparison, recorded(candidate).id))
    chosen = part or found.moved_most
    assert chosen is not None
    return found, within(pair_with(comparison, recorded(candidate).id), chosen)


# Waiting for input is the stage's that works, not that of the Prefetch in front of it.


@pytest.mark.parametrize(
    ("baseline", "candidate", "stage"),
    [
        ("map_5ms", "map_8ms", "Map"),
        ("map_parallel_5ms", "map_parallel_8ms", "ParallelMapV2"),
        ("map_8ms", "map_5ms", "Map"),
    ],
)
def test_a_slower_map_is_found_behind_the_prefetch(baseline: str, candidate: str, stage: str) -> None:
    found, inside = taken_apart(baseline, candidate)
    assert found.moved_most == "input_us"
    assert inside.waterfall is not None
    first = inside.waterfall.moves.iloc[0]
    assert str(first["name"]).rpartition("::")[2] == stage
    assert first["delta_us"] / inside.waterfall.delta_us > 0.95
    assert f"`{stage}` changed the most" in inside.sentence
    assert "In its function, most of that is `slow_map`" in inside.sentence
    assert inside.waterfall.levels_us.min() >= 0


@pytest.mark.parametrize("name", ["map_5ms", "map_parallel_8ms"])
def test_what_runs_in_a_function_of_tf_data_is_input_and_never_host_compute(name: str) -> None:
    shares = recorded(name).tables.op_shares("localhost").frame()
    of_function = shares[shares["op_name"] == "slow_map"]
    assert set(of_function["step_part"]) == {"input_us"}
    assert of_function["stage"].str.rpartition("::")[2].isin(["Map", "ParallelMapV2"]).all()


# Time inside and between steps


def test_a_sleep_within_the_step_is_time_that_no_event_explains() -> None:
    found, _ = taken_apart("no_sleep", "sleep_inside_10ms")
    assert found.moved_most == "idle_us"
    assert found.parts.set_index("part")["delta_us"]["idle_us"] == pytest.approx(10 * MS, rel=0.1)
    (cause,) = [one for one in found.causes if one.part == "idle_us"]
    assert cause.side == 1
    assert cause.gap is not None
    assert cause.gap.length_us == pytest.approx(10 * MS, rel=0.1)
    assert f" ms idle time {cause.gap.before}" in found.sentence


def test_a_sleep_between_steps_is_in_no_step_and_is_mentioned_and_checked() -> None:
    before, after = recorded("no_sleep"), recorded("sleep_between_10ms")
    slept = window_of(after)
    assert slept is not None
    assert np.median(slept.gaps_us) == pytest.approx(10 * MS, rel=0.05)
    starts = after.table("steps")["start_us"]
    assert slept.steps_per_s == pytest.approx(11e6 / (starts.max() - starts.min()))
    said = between_steps_sentence(pair_with(compared("no_sleep", "sleep_between_10ms"), after.id))
    assert said.startswith("Between steps: 10.0 ms (87.7 %), baseline 10.8 µs")
    assert not between_steps_sentence(
        pair_with(compared("no_sleep", "sleep_inside_10ms"), recorded("sleep_inside_10ms").id)
    )
    conditions = [parse_condition("time_between_steps>+5%"), parse_condition("time_between_steps>1ms")]
    assert [f.outcome for f in check(before, after, conditions).found] == ["failed", "failed"]
    assert [f.outcome for f in check(after, before, conditions).found] == ["passed", "passed"]
    same = check(after, after, conditions)
    assert [f.outcome for f in same.found] == ["passed", "failed"]


def test_throughput_is_of_the_window_and_examples_of_the_batch() -> None:
    figures = {f.label: f for f in window_figures(pair_with(compared("map_5ms", "map_8ms"), recorded("map_8ms").id))}
    found = window_of(recorded("map_8ms"))
    assert found is not None
    assert figures["Throughput"].candidate == pytest.approx(1000 / 8, rel=0.05)
    assert examples_per_step(recorded("map_8ms")) == 1
    assert figures["Examples"].candidate == figures["Throughput"].candidate
    assert examples_per_step(loaded_run("filters_16_8")) == 16
    assert np.isnan(examples_per_step(recorded("no_sleep")))
    assert "Host dispatch per step" not in figures


# Ops


def test_a_python_op_is_blamed_by_its_wall_time() -> None:
    found, inside = taken_apart("py_op_none", "py_op_5ms")
    assert found.moved_most == "host_compute_us"
    assert "`slow_python` was added and takes 5.37 ms per step" in inside.sentence
    cells = recorded("py_op_5ms").table("op_steps").query("op_name == 'slow_python' and step < 16")
    assert cells["wall_time_us"].to_numpy() == pytest.approx(5.4 * MS, rel=0.05), "the profile ends within step 16"


def test_ops_of_one_type_are_reported_together_before_one_of_them_is_named() -> None:
    _, inside = taken_apart("matmuls_10", "matmuls_20")
    assert "`MatMul` ops grew by" in inside.sentence
    assert "per step together, most of all `matmul_" in inside.sentence
    occurrences = recorded("matmuls_20").table("op_stats").query("op_type == 'MatMul'")["occurrences"]
    assert occurrences.sum() == 20 * 12


def test_a_tensor_of_64_mib_is_found_at_the_peak() -> None:
    peak = recorded("tensor_64mib").table("memory_peak")
    assert peak.loc[peak["op_name"] == "large_tensor", "requested_bytes"].tolist() == [64 * 1024 * 1024]


# Several hosts


def test_the_straggler_is_the_slowest_host_without_waiting_in_collectives() -> None:
    run = recorded("workers_uneven")
    assert straggler(run.table("steps")) == "worker1"
    steps = run.table("steps").groupby("host")["duration_us"].mean()
    assert steps["worker0"] == pytest.approx(steps["worker1"], rel=0.05), "step times alone do not tell"
    own = run.table("steps").assign(own_us=own_time_us).groupby("host")["own_us"].mean()
    assert own["worker1"] - own["worker0"] == pytest.approx(9.5 * MS, rel=0.1)


def test_the_fast_worker_waits_in_a_collective() -> None:
    steps = recorded("workers_uneven").table("steps", host="worker0")
    assert steps["host_collectives_us"].median() == pytest.approx(12 * MS, rel=0.1)
    even = recorded("workers_even").table("steps", host="worker0")
    assert even["host_collectives_us"].median() < 4 * MS


def test_no_worker_stands_out_where_all_do_the_same() -> None:
    found = slowest_host(recorded("workers_even"))
    assert found is not None
    assert not found.found.stands_out


def test_waiting_for_an_agreement_on_the_collective_is_waiting_also_where_its_event_is_missing() -> None:
    steps = recorded("workers_even").table("steps", host="worker1").set_index("step")
    op_us, asked_us, agreed_us = 1478.5, 1029.6, 1656.5  # read from the events of step 13
    assert steps["host_collectives_us"][13] == pytest.approx(op_us + agreed_us - asked_us, abs=25)


def test_the_stragglers_steps_are_compared_with_those_of_the_same_host() -> None:
    found, inside = taken_apart("workers_even", "workers_uneven")
    assert found.hosts == ("worker1", "worker1")
    assert found.host_sentence.startswith(
        "Slowest host: `worker1` in 10 of 10 steps, 9.12 ms more than the others per step"
    )
    assert (
        "spent in `slow_work` (host compute), which the others do not run; the others wait for it in "
        "`CollectiveReduceV2`" in found.host_sentence
    )
    assert found.moved_most == "host_compute_us"
    parts = found.parts.set_index("part")["mean_us_candidate"]
    run = recorded("workers_uneven")
    own = run.table("steps", host="worker1").query("included")["duration_us"].mean()
    assert parts.drop(OTHER_HOSTS).sum() == pytest.approx(own), "the mean of a host, not one over hosts"
    assert parts.sum() == pytest.approx(run.info.step_time_ms_mean * 1000), (
        "what others take longer is a line of its own"
    )
    assert "`slow_work` was added and takes 8.73 ms per step" in inside.sentence


@pytest.mark.parametrize("names", [("slow_input", "balanced"), ("balanced", "slow_input")])
def test_of_several_hosts_the_slower_runs_straggler_is_taken_apart_whichever_is_the_baseline(
    names: tuple[str, str],
) -> None:
    comparison = compared_runs(*(f"workers_{name}" for name in names))
    runs = [comparison.baseline, *comparison.candidates]
    found = attribution(pair_with(comparison, runs[1].id))
    assert (found.hosts, found.moved_most) == (("worker1", "worker1"), "input_us")
    shown = next(one for one in dashboard(pair_with(comparison, runs[1].id), found.parts) if one.label == "Input wait")
    assert [shown.baseline, shown.candidate] == [wait_of(run).input_time_us.average for run in runs]
    assert shown.candidate / shown.baseline == pytest.approx(on_waiting(pair_with(comparison, runs[1].id)).ratio)


def test_a_host_that_is_chosen_is_compared_by_itself() -> None:
    runs = recorded("workers_even"), recorded("workers_uneven")
    comparison = tfc.compare(*runs, host="worker0")
    found = attribution(pair_with(comparison, runs[1].id))
    assert (found.hosts, found.host_sentence, found.moved_most) == (("worker0", "worker0"), "", "host_collectives_us")


# Blocking on the result in each step, or behind the loop


def test_blocking_behind_the_loop_is_no_change_of_the_step_time() -> None:
    runs = recorded("jax_blocks_in_step"), recorded("jax_blocks_behind_loop")
    in_step, behind_loop = (run.table("steps").query("included") for run in runs)
    assert len(in_step) == len(behind_loop) == 18
    assert in_step["device_span_us"].isna().all()
    assert behind_loop["host_span_us"].max() < 100
    assert (behind_loop["duration_us"] == behind_loop["device_span_us"]).all()
    assert behind_loop["duration_us"].median() == pytest.approx(in_step["duration_us"].median(), rel=0.1)
    (found,) = check(*runs, [parse_condition("step_time>+5%")]).found
    assert found.outcome == "passed"
    assert not tfc.compare(*runs).verdict[runs[1].id].is_claim


@pytest.mark.parametrize("name", ["jax_blocks_in_step", "jax_blocks_behind_loop"])
def test_ops_belong_to_the_step_that_launched_them(name: str) -> None:
    cells = recorded(name).table("op_steps")
    assert cells.groupby("op_name")["step"].nunique().to_dict() == {"jit(step)/dot_general": 20, "jit(step)/tanh": 20}
    assert (cells["wall_time_us"] > 0).all()
    steps = recorded(name).table("steps").set_index("step")["duration_us"]
    shares = cells.groupby("step")["wall_time_us"].sum() / steps
    assert shares.between(0.9, 1.0).all()


# Ops that XLA fused, or did not


def test_what_one_fusion_computes_is_the_sum_of_the_ops_without_it() -> None:
    (pair,) = pairs_of(tfc.compare(recorded("jax_unfused"), recorded("jax_fused")))
    rows = pair.instructions()
    (found,) = regrouped(rows, *(source_ops(run.table("hlo_texts")) for run in pair.runs))
    assert found.counts == (13, 1) and not found.is_too_large
    assert found.ops and all(op.startswith("layer/activation/") for op in found.ops)
    here = rows.loc[list(found.rows)]
    assert here["hlo_op"][here["status"] == "added"].tolist() == ["add_multiply_fusion"]
    assert rows.drop(here.index)["status"].eq("matched").all(), "with the group, all time has a counterpart"
    ours, theirs = (here[f"execution_time_us_{side}"].sum() for side in SIDES)
    assert ours > 5 * theirs
    (back,) = regrouped(
        pairs_of(tfc.compare(*pair.runs[::-1]))[0].instructions(),
        *(source_ops(run.table("hlo_texts")) for run in pair.runs[::-1]),
    )
    assert back.counts == (1, 13) and set(back.ops) == set(found.ops)


# What holds of every profile


@pytest.mark.parametrize("name", mostly_thorough([*NAMES, *ALL_RUNS], "map_parallel_5ms", "workers_uneven", *EACH_KIND))
def test_ops_of_a_part_never_add_up_to_more_than_the_part(name: str) -> None:
    run = recorded(name) if name in NAMES else loaded_run(name)
    for host in run.host_names:
        steps = run.table("steps", host=host).set_index("step")[list(STEP_PARTS)]
        shares = run.tables.op_shares(host).frame()
        assert (shares["wall_time_us"] > 0).all()
        of_ops = shares.pivot_table(index="step", columns="step_part", values="wall_time_us", aggfunc="sum")
        of_ops = of_ops.reindex(index=steps.index, columns=list(STEP_PARTS)).fillna(0.0)
        slack = 1e-6 * steps.sum(axis=1).to_numpy()[:, None] + 1e-6
        assert (of_ops.to_numpy() <= steps.to_numpy() + slack).all()
        by_step = run.table("op_steps", host=host).groupby("step")["wall_time_us"].sum()
        assert by_step.reindex(steps.index).fillna(0).to_numpy() == pytest.approx(of_ops.sum(axis=1).to_numpy())
        stats = run.table("op_stats", host=host)
        if len(steps):
            assert stats["wall_time_us"].sum() == pytest.approx(of_ops.to_numpy().sum())
        else:
            assert stats["wall_time_us"].isna().all()


def test_on_the_sample_pair_ops_explain_the_change_of_host_compute() -> None:
    comparison = compared_runs("filters_512_128", "filters_16_8")
    inside = within(pair_with(comparison, loaded_run("filters_16_8").id), "host_compute_us")
    assert inside.waterfall is not None
    assert (round(inside.waterfall.baseline_us), round(inside.waterfall.candidate_us)) == (204_343, 3_736)
    moves = inside.waterfall.moves
    of_ops = moves.loc[moves["kind"] != NO_OP, "delta_us"].sum()
    assert of_ops == pytest.approx(-200.4 * MS, abs=50), "of ops, and 0.3 ms of what no op covers in annotations"
    assert moves["delta_us"].sum() == pytest.approx(-200.6 * MS, abs=50)


def test_a_range_of_steps_gives_the_tables_of_those_steps() -> None:
    whole = recorded("matmuls_10")
    some = tfc.load(FOLDER / "matmuls_10", steps="4:6")
    assert some.table("steps")["step"].tolist() == whole.table("steps")["step"].tolist()[3:6]
    assert some.table("steps")["included"].all()
    for column in ("duration_us", "host_compute_us", "input_us"):
        assert some.table("steps")[column].tolist() == pytest.approx(whole.table("steps")[column].tolist()[3:6])
    occurrences = some.table("op_stats").query("op_type == 'MatMul'")["occurrences"]
    assert occurrences.sum() == 10 * 3
    assert some.content_id != whole.content_id


@pytest.mark.parametrize(
    "name",
    mostly_thorough(
        [name for name in ALL_RUNS if not name.startswith("jax_conv") and name != "jax_elementwise"],
        "tf_cpu_zoo",
        "jax_tpu",
        "gpu_filters_16_8",
        "h100_recompute_activations",
        "workers_slow_input",
    ),
)
def test_the_range_of_all_steps_has_the_steps_of_the_whole_profile(name: str) -> None:
    whole, every = loaded_run(name), tfc.load(run_path(name), steps="1:")
    columns = ["host", "step", "start_us", "duration_us", "host_span_us", "device_span_us", *STEP_PARTS]
    pd.testing.assert_frame_equal(every.table("steps")[columns], whole.table("steps")[columns])
    ours, theirs = (run.table("kernel_stats")["occurrences"].sum() for run in (whole, every))
    assert 0.9 * ours <= theirs <= ours


# On the command line


@pytest.mark.parametrize("command", ["diff", "check"])
def test_commands_take_a_range_of_steps(tfcompare, command: str) -> None:
    places = [str(FOLDER / name) for name in ("no_sleep", "sleep_between_10ms")]
    status, out, _ = tfcompare(command, *places, "--steps", "2:11")
    assert status == 0
    assert command == "check" or "Between steps: 10" in "\n".join(out.splitlines()[:4])
    status, _, err = tfcompare(command, *places, "--steps", "20:30")
    assert (status, err.count("\n")) == (2, 1)
    assert "no step is in the range 20:30; it has 12" in err


def test_check_mentions_time_between_steps_whatever_it_was_asked(tfcompare) -> None:
    places = [str(FOLDER / name) for name in ("no_sleep", "sleep_between_10ms")]
    _, out, _ = tfcompare("check", *places, "--fail-if", "step_time>+100%")
    assert "note: Between steps: 10.0 ms (87.7 %)" in out
