"""What must hold of any comparison, on every profile at hand."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest

from tests.profiles import ALL_RUNS, EACH_KIND, compared_runs, loaded_run
from tests.tf_gpu_runs import FILTERS
from tfcompare import schema
from tfcompare.compare.comparability import mismatches
from tfcompare.run import load

DIFFED = [name for name, table in schema.TABLES.items() if table.has_diff]


KINDS = ("tf_cpu_zoo", "tf_gpu", "jax_conv_08", "gpu_filters_16_8", "workers_slow_input")
FEW = ("jax_conv_08", "gpu_filters_16_8", "workers_slow_input")


def law_over(names: list[str], chosen: tuple[str, ...]) -> pytest.MarkDecorator:
    """The chosen runs in `make test`, the others in `make test-all` only."""
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=[] if name in chosen else pytest.mark.thorough) for name in names]
    )


@law_over(EACH_KIND, FEW)
def test_a_run_compared_with_itself_shows_no_difference(name: str) -> None:
    run = loaded_run(name)
    assert [one.label for one in mismatches(run, run)] in ([], ["Included steps"])
    comparison = compared_runs(name, name)
    for table in DIFFED:
        diff = comparison.table(table)
        counted = {"steps": "included", "hosts": "included", "tf_data": "execution == 0"}.get(table)
        assert len(diff) == len(run.table(table).query(counted) if counted else run.table(table))
        assert set(diff["status"]) <= {"matched"}
        assert set(diff["match"]) <= {"exact", "position"}
        deltas = diff[[c for c in diff if c.endswith("_delta")]]
        assert (deltas.fillna(0) == 0).all(axis=None)
        ratios = diff[[c for c in diff if c.endswith("_ratio")]]
        assert (ratios.fillna(1) == 1).all(axis=None)
        assert set(diff["verdict"].dropna()) <= {"same"}
        assert diff["verdict"].notna().all() or schema.table(table).headline is None
    assert comparison.coverage()[["matched_share", "exact_share"]].fillna(1).eq(1).all(axis=None)


PAIRS = [
    ("gpu_filters_512_128", "gpu_filters_16_8"),
    ("workers_slow_input", "tf_cpu_zoo"),
    pytest.param("jax_conv_legacy", "jax_conv_08", marks=pytest.mark.thorough),
    pytest.param("tf_gpu", "jax_tpu", marks=pytest.mark.thorough),
    pytest.param("workers_balanced", "workers_slow_input", marks=pytest.mark.thorough),
    pytest.param("filters_16_8", "filters_16_8_better_input", marks=pytest.mark.thorough),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_swapped_sides_mirror_in_every_table(one: str, other: str) -> None:
    forth, back = compared_runs(one, other), compared_runs(other, one)
    assert forth.coverage()["matched_share"].item() == pytest.approx(back.coverage()["matched_share"].item())
    words = [("added", "removed"), ("less", "more"), ("faster", "slower")]
    turned = dict([*words, *(pair[::-1] for pair in words)])
    for name in (table for table in DIFFED if table not in ("run_info", "steps")):
        there, again = forth.table(name), back.table(name)
        mirrored = [(c, b, turned.get(s, s), m, turned.get(v, v)) for b, c, s, m, v in sides_of_rows(again)]
        assert sorted(sides_of_rows(there)) == sorted(mirrored)
    metric = "self_time_us" + ("" if forth.per == "run" else f"_per_{forth.per}")
    there, again = by_names(forth.table("op_stats"), swapped=False), by_names(back.table("op_stats"), swapped=True)
    assert there.index.equals(again.index)
    pd.testing.assert_series_equal(there[f"{metric}_delta"], -again[f"{metric}_delta"])


def sides_of_rows(diff: pd.DataFrame) -> list[tuple[str, ...]]:
    """Of each row the baseline's numbers, the candidate's, and its words. Hosts bear the baseline's names."""
    metrics = [c for c in diff if c.endswith("_baseline")]
    sides = metrics, [f"{metric.removesuffix('_baseline')}_candidate" for metric in metrics]
    ours, theirs = ([" ".join(map(str, row)) for row in diff[columns].itertuples(index=False)] for columns in sides)
    words = (diff[word].fillna("") for word in ("status", "match", "verdict"))
    return list(zip(ours, theirs, *words, strict=True))


def by_names(diff: pd.DataFrame, *, swapped: bool) -> pd.DataFrame:
    """The diff by the names its rows have on either side."""
    own = {"removed": ("op_name", ""), "added": ("", "op_name_candidate")}
    rows = diff.reset_index(drop=True)
    base = rows["op_type"] + ":" + rows["op_name"]
    cand = rows["op_type_candidate"] + ":" + rows["op_name_candidate"]
    base = base.where(rows["status"] != "added", own["added"][0])
    cand = cand.where(rows["status"] != "removed", own["removed"][1])
    first, second = (cand, base) if swapped else (base, cand)
    return rows.assign(first=first, second=second).set_index(["host_or_device", "first", "second"]).sort_index()


@law_over(ALL_RUNS, KINDS)
def test_parts_sum_to_the_whole(name: str) -> None:
    run = loaded_run(name)
    stats = run.table("op_stats")
    by_host = pd.concat([run.table("op_stats", host=host) for host in run.host_names])
    assert by_host["self_time_us"].sum() == pytest.approx(stats["self_time_us"].sum(), rel=1e-9)
    on_devices = [run.table("op_stats", device=device) for device in run.devices]
    assert sum(t["self_time_us"].sum() for t in on_devices) == pytest.approx(
        stats.query("host_or_device == 'Device'")["self_time_us"].sum(), rel=1e-9
    )
    keys = ["host_or_device", "op_type", "op_name"]
    in_steps = run.table("op_steps").groupby(keys)["self_time_us"].sum()
    whole = stats[stats["op_type"] != schema.IDLE].set_index(keys)["self_time_us"].reindex(in_steps.index)
    assert (in_steps <= whole * (1 + 1e-9) + 1e-9).all()
    for host in (None, *run.host_names):
        types = run.tables.op_types_on_devices(host=host)
        for device in run.devices:
            table = run.table("op_stats", host=host, device=device)
            assert {op_type for _, on, op_type in types if on == device} == set(table["op_type"]) - {schema.IDLE}


@law_over(ALL_RUNS, KINDS)
def test_kernels_in_steps_are_part_of_the_kernels(name: str) -> None:
    run = loaded_run(name)
    keys = list(schema.KERNEL_STATS.keys)
    metrics = ["occurrences", "total_duration_us"]
    in_steps = run.table("kernel_steps").groupby(keys, dropna=False, as_index=False)[metrics].sum()
    both = in_steps.merge(run.table("kernel_stats"), on=keys, how="left", suffixes=("_in_steps", ""))
    for metric in metrics:
        assert (both[f"{metric}_in_steps"] <= both[metric] * (1 + 1e-9)).all()
    if name in FILTERS:
        assert in_steps["occurrences"].sum() == run.table("kernel_stats")["occurrences"].sum()


@law_over(ALL_RUNS, KINDS)
def test_the_calls_of_a_pipeline_make_its_row(name: str) -> None:
    run = loaded_run(name)
    calls, pipelines = run.table("tf_data_calls"), run.table("tf_data_pipelines")
    latency = calls.groupby(["host", "pipeline"])["latency_us"]
    made = pd.DataFrame({"calls": latency.size(), "min": latency.min(), "max": latency.max(), "mean": latency.mean()})
    rows = pipelines.set_index(["host", "pipeline"]).sort_index()
    pd.testing.assert_frame_equal(
        made, rows[["calls", "min_latency_us", "max_latency_us", "mean_latency_us"]].set_axis(list(made), axis=1)
    )
    assert (calls.groupby(["host", "pipeline"])["start_us"].diff().dropna() >= 0).all()
    assert (calls["call"] == calls.groupby(["host", "pipeline"]).cumcount()).all()


def test_the_order_of_host_files_does_not_matter() -> None:
    run = loaded_run("workers_slow_input")
    turned = load(dataclasses.replace(run.found, files=run.found.files[::-1]))
    assert turned.content_id == run.content_id
    assert turned.info == run.info
    for name in schema.TABLES:
        pd.testing.assert_frame_equal(turned.table(name), run.table(name))


def test_the_filter_reduction_shows_as_what_it_is() -> None:
    """The guiding example: Conv2D and its backprop ops fall several-fold, and everything is matched."""
    comparison = compared_runs("filters_512_128", "filters_16_8")
    diff = comparison.table("op_stats").query("op_type.str.startswith('Conv2D')")
    assert set(diff["status"]) == {"matched"}
    by_type = diff.groupby("op_type")[["self_time_us_per_step_baseline", "self_time_us_per_step_candidate"]].sum()
    assert set(by_type.index) >= {"Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput"}
    assert (by_type.iloc[:, 0] > 10 * by_type.iloc[:, 1]).all()
    assert comparison.coverage()["matched_share"].item() > 0.95
