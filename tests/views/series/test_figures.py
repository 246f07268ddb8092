"""A metric of many runs in order, its changes, and what explains them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.store.runs_in_stores import put
from tests.views.series.series_runs import BEFORE, FACTOR, OPS_US, nights
from tfcompare.compare.pairs import pair_with
from tfcompare.comparison import compare
from tfcompare.errors import Unknown
from tfcompare.run import load
from tfcompare.sources.logdir import FoundRun, find_runs
from tfcompare.store import cached_frames
from tfcompare.store.run_store import Store
from tfcompare.store.stored_run import StoredRun, named, runs_in
from tfcompare.store.version import versions
from tfcompare.views.series import changes as series_changes
from tfcompare.views.series import figures as tool
from tfcompare.views.series import words
from tfcompare.views.series.changes import Series
from tfcompare.views.series.figures import Metric, ordered, parse_metric, series
from tfcompare.views.steps.figures import window_figures


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[FoundRun]:
    """The nights, in a store."""
    folder = tmp_path_factory.mktemp("series")
    nights(folder / "logs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached_frames, "_SETTLED_NS", -1)
        put([folder / "logs"], folder / "store")
    return ordered(named(runs_in(Store(str(folder / "store")))[0]))


def of(found: list[FoundRun], text: str, **more: str) -> pd.DataFrame:
    return series(found, parse_metric(text), **more)


def test_step_times_come_from_the_index_and_are_those_of_the_profiles(
    found: list[FoundRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [tool.measured(load(run), Metric("step_time")) for run in found[:3]]
    monkeypatch.setattr("tfcompare.store.files.StoreFiles.read", lambda _, name: pytest.fail(f"{name} was read"))
    rows = of(found, "step_time")
    assert rows.dtypes.astype(str).to_dict() == tool.COLUMNS
    assert rows["value"][:3].tolist() == pytest.approx([one.value for one in expected])
    assert rows["low"][:3].tolist() == pytest.approx([one.low for one in expected])
    assert (rows["low"] < rows["value"]).all() and (rows["value"] < rows["high"]).all()
    assert rows["label"][0] == "c0ffee00"


def made_by(run: FoundRun, **others: str) -> FoundRun:
    """The run with other versions of some tables."""
    assert isinstance(run, StoredRun)
    return replace(run, row=replace(run.row, versions=run.row.versions | others))


def test_a_series_tells_where_versions_of_its_tables_changed(found: list[FoundRun]) -> None:
    assert words.version_remark(of(found, "step_time")) == ""
    runs = [made_by(run, steps="0-1", copies="0-1") if 2 <= at < 5 else run for at, run in enumerate(found)]
    rows = of(runs, "step_time")
    assert rows["versions"][2] == f"steps 0-1, summary {versions()['summary']}"
    assert (rows["versions"] == rows["versions"][2]).to_list() == [2 <= at < 5 for at in range(len(found))]
    assert words.version_remark(rows) == (
        "Different versions of tfcompare made `steps`, which may itself change values: the version changed at "
        "`c0ffee02`, `c0ffee05`. `tfcompare ingest` again, where the profiles still exist, makes them alike."
    )
    assert words.version_remark(of(runs, "peak_memory")) == "", "it is made of other tables"
    rows.loc[:4, "value"] = np.nan
    assert words.version_remark(rows) == ""


def test_records_without_versions_count_as_of_their_reader(found: list[FoundRun]) -> None:
    (old,) = (replace(run, row=replace(run.row, versions={})) for run in found[:1] if isinstance(run, StoredRun))
    rows = of([old, *found[1:3]], "part:idle_us")
    assert rows["versions"][0] == f"steps {old.row.reader}"
    assert "the version changed at `c0ffee01`." in words.version_remark(rows)


def test_throughput_is_that_of_the_overview(found: list[FoundRun]) -> None:
    runs = [load(one) for one in found[:2]]
    figure = next(one for one in window_figures(pair_with(compare(*runs), runs[1].id)) if one.label == "Throughput")
    assert of(found[:2], "throughput")["value"].tolist() == [figure.baseline, figure.candidate]


def test_throughput_comes_from_the_index_with_an_interval(
    found: list[FoundRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [tool.measured(load(run), Metric("throughput")) for run in found[:3]]
    monkeypatch.setattr("tfcompare.store.files.StoreFiles.read", lambda _, name: pytest.fail(f"{name} was read"))
    rows = of(found, "throughput")
    for name in ("value", "low", "high"):
        assert rows[name][:3].tolist() == [getattr(one, name) for one in expected]
    assert (rows["low"] <= rows["value"]).all() and (rows["value"] <= rows["high"]).all()


def test_the_values_before_and_after_are_those_of_the_ratio_where_a_run_is_a_stray(found: list[FoundRun]) -> None:
    rows = of(found, "op:MatMul")
    rows = rows.assign(value=rows["value"] * np.where(rows.index == 3, 3.0, 1.0))
    (change,) = series_changes.changes(rows).to_dict("records")
    assert change["after"] / change["before"] == pytest.approx(change["ratio"])
    assert change["ratio"] == pytest.approx(FACTOR, rel=0.03)


def test_an_op_is_timed_as_in_the_table_of_ops(found: list[FoundRun]) -> None:
    rows = of(found[:2], "op:MatMul")
    run = load(found[0])
    steps = run.steps.loc[run.steps["included"], "step"]
    ops = run.table("op_steps")
    ops = ops[(ops["op_type"] == "MatMul") & ops["step"].isin(steps)]
    assert rows["value"][0] == pytest.approx(ops["self_time_us"].sum() / len(steps))
    assert of(found[:2], "op:model/*")["value"][0] == pytest.approx(sum(OPS_US.values()), rel=0.1)
    assert of(found[:2], "op:Nothing")["problem"].tolist() == ["no op matches in any step"] * 2
    assert of(found[:2], "kernel:*")["problem"].tolist() == ["no kernel matches in any step"] * 2
    assert of(found[:2], "peak_memory")["problem"].tolist() == ["no memory is recorded"] * 2
    assert of(found[:2], "part:host_compute_us")["value"][0] > 1000


@pytest.mark.parametrize("text", ["nothing", "op:", "part:nothing", "step_time:a", ""])
def test_other_metrics_are_unknown(text: str) -> None:
    with pytest.raises(Unknown):
        parse_metric(text)


def test_runs_are_ordered_by_a_number_of_their_metadata(found: list[FoundRun]) -> None:
    rows = of(found[::-1], "step_time", by="build")
    assert rows["label"].tolist() == [str(i + 1) for i in range(len(found))]
    assert of(found, "step_time", by="nothing").empty


def test_the_change_is_found_and_explained(found: list[FoundRun]) -> None:
    shown = Series.of(found, Metric("step_time"))
    (change,) = shown.changes.to_dict("records")
    assert (change["label"], change["label_before"]) == (f"c0ffee{BEFORE}", f"c0ffee{BEFORE - 1}")
    assert (change["runs_before"], change["runs_after"]) == (BEFORE, len(found) - BEFORE)
    assert change["ratio_low"] < 1 + 300 / 1635 < change["ratio_high"]
    moves = shown.moves(0)
    assert moves["op_name"].iloc[0] == "model/matmul"
    assert series_changes.BETWEEN not in moves["op_name"].tolist()
    assert moves["delta_us"].iloc[0] == pytest.approx(OPS_US["MatMul"] * (FACTOR - 1), rel=0.1)
    means = [np.mean([_mean_step(run) for run in side]) for side in (found[2:BEFORE], found[BEFORE:])]
    assert moves["delta_us"].sum() == pytest.approx(means[1] - means[0]), "ops and idle time make up the change"
    start = f"Step time rose by 17.7 % (16.4–19.1 %) at `c0ffee{BEFORE}` on 2026-03-{BEFORE + 1}, from "
    assert words.headline(shown).startswith(start)
    assert words.explanation("a", moves).startswith("The change at `a` is explained by `model/matmul` +29")


def test_longer_steps_that_begin_as_often_change_no_throughput_and_the_time_between_steps_explains_why(
    found: list[FoundRun],
) -> None:
    times, rates = (Series.of(found, Metric(kind)) for kind in ("step_time", "throughput"))
    moves = replace(rates, changes=times.changes).moves(0).set_index("op_name")["delta_us"]
    assert moves[series_changes.BETWEEN] == pytest.approx(-OPS_US["MatMul"] * (FACTOR - 1), rel=0.15)
    assert abs(moves.sum()) < 40, "steps begin every 4 ms, whatever their ops take"
    assert rates.rows["value"].to_list() == pytest.approx([250] * len(found))
    assert rates.changes.empty
    assert "`time between steps` −29" in words.explanation("a", moves.reset_index())


def _mean_step(found: FoundRun) -> float:
    steps = load(found).steps
    return float(steps.loc[steps["included"], "duration_us"].mean())


def test_without_a_change_it_says_so(found: list[FoundRun]) -> None:
    before, few = (Series.of(found[:count], Metric("step_time")) for count in (BEFORE, 4))
    assert words.headline(before) == "No change of step time in the last 12 runs."
    assert words.headline(few) == (
        "4 runs with a value: at least 8 are needed to find changes. Capture 4 more of this program, or compare two of "
        "them on the Overview."
    )


def test_every_op_is_tested_and_only_the_changed_one_is_claimed(found: list[FoundRun]) -> None:
    changes, tested = Series.of(found, Metric("step_time")).op_changes()
    assert (changes["op_name"].tolist(), tested) == (["model/matmul"], 3)
    assert changes["label"].tolist() == [f"c0ffee{BEFORE}"]
    assert changes["ratio_low"][0] < FACTOR < changes["ratio_high"][0]
    assert changes["delta_us"][0] == pytest.approx(OPS_US["MatMul"] * (FACTOR - 1), rel=0.1)


def test_ops_are_not_compared_with_those_on_another_device(
    found: list[FoundRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "device_of_read", lambda run: "GPU" if run.id in elsewhere else "CPU")
    last = Series.of(found[4:], Metric("step_time"))
    elsewhere = {run.id for run in found[:BEFORE]}
    assert last.op_changes()[0].empty, "no change among the runs on the last run's device"
    elsewhere = {found[4].id}
    assert replace(last, _results={}).op_changes()[0]["label"].tolist() == [f"c0ffee{BEFORE}"]


def test_a_run_that_cannot_be_read_is_a_row_without_a_value(tmp_path: Path) -> None:
    nights(tmp_path, 3)
    broken = next((tmp_path / "night_01").rglob("*.xplane.pb"))
    runs = find_runs(tmp_path)
    broken.write_bytes(broken.read_bytes()[:-50])
    rows = series(runs, Metric("step_time"))
    assert rows["value"].isna().tolist() == [False, True, False]
    assert str(broken) in rows["problem"][1]


def test_runs_on_another_device_than_the_last_are_left_out(found: list[FoundRun]) -> None:
    rows = of(found[:4], "step_time")
    assert set(rows["device"]) == {"CPU"}
    rows["device"] = ["GPU", "CPU", "GPU", ""]
    assert tool.on_last_device(rows)["run"].tolist() == [found[i].id for i in (0, 2, 3)]
    rows["device"] = ""
    assert len(tool.on_last_device(rows)) == 4


def test_the_device_of_a_profile_is_known_once_it_is_read(tmp_path: Path) -> None:
    rows = series(find_runs(nights(tmp_path, 3)), Metric("step_time"))
    assert rows["device"].tolist() == ["CPU"] * 3
