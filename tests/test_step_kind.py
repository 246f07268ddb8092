"""A run with the steps of one kind alone, by their programs or by the names of their markers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.frames.tables import host, run_with
from tests.profiles import ROOT, TRANSFORMER_RUNS, loaded_run, run_path
from tests.protobufs import messages
from tests.ui.page_texts import texts
from tests.ui.sidebar_widgets import named, names
from tests.xspace_builder import Event, event, space
from tfcompare import cli, settings
from tfcompare.compare.check.conditions import check, parse_condition
from tfcompare.compare.comparability import mismatches
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.side import window_of
from tfcompare.compare.steps.step_kinds import are_by_marker, kinds_of
from tfcompare.compare.utilization import time_at_peak_us
from tfcompare.comparison import compare
from tfcompare.errors import NoSuchKind
from tfcompare.run import Run, load
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.tables.run_tables import RunTables
from tfcompare.views.steps.figures import window_figures
from tfcompare.views.steps.words import sentences

NAME = "h100_recompute_activations"
KINDS = ("train_step", "evaluate")
SELECTOR = "tfcompare.step_kind"


@cache
def of_kind(kind: str) -> Run:
    return load(run_path(NAME), step_kind=kind)


def test_steps_of_all_kinds_are_all_steps() -> None:
    assert loaded_run(NAME).tables.kinds.counts == {"train_step": 11, "evaluate": 11}
    parts = [of_kind(kind) for kind in KINDS]
    assert len({loaded_run(NAME).content_id, *(part.content_id for part in parts)}) == 3
    included = [set(run.steps.loc[run.steps["included"], "step"]) for run in (loaded_run(NAME), *parts)]
    assert included[0] == included[1] | included[2] and not included[1] & included[2]
    assert [run.info.steps_included for run in (loaded_run(NAME), *parts)] == [22, 11, 11]
    whole, *of_parts = (
        run.tables.in_steps("op_stats").set_index(["host_or_device", "op_type", "op_name"])
        for run in (loaded_run(NAME), *parts)
    )
    ops = whole[whole.index.get_level_values("op_type") != "IDLE"]
    for column in ("occurrences", "self_time_us", "flops", "bytes_accessed"):
        added = sum(part[column].reindex(ops.index).astype(float) for part in of_parts)
        np.testing.assert_allclose(added, ops[column].astype(float), rtol=1e-9)


def test_what_a_kind_uses_of_the_device_and_its_periods_add_up() -> None:
    parts = [of_kind(kind) for kind in KINDS]
    for cost in ("flops", "bytes_accessed"):
        of_each = [time_at_peak_us(part, None, cost) for part in parts]
        assert of_each[0] > 2 * of_each[1] > 0, "training has a backward pass, and recomputes"
        assert sum(of_each) / 2 == pytest.approx(time_at_peak_us(loaded_run(NAME), None, cost))
    windows = [found for run in (loaded_run(NAME), *parts) if (found := window_of(run)) is not None]
    whole, *of_parts = windows
    assert whole.periods_us.sum() == pytest.approx(sum(one.periods_us.sum() for one in of_parts))
    assert whole.gaps_us.sum() == pytest.approx(sum(one.gaps_us.sum() for one in of_parts))
    assert [len(one.periods_us) for one in windows] == [23, 12, 11], "the last step has no period"


def test_instructions_per_step_are_those_of_the_kind() -> None:
    """What runs in a step by the ops is what its program's instructions take."""
    for kind in KINDS:
        comparison = compare(of_kind(kind), of_kind(kind))
        instructions = comparison.table("hlo_ops").query("executions_per_step_baseline > 0")
        assert instructions["executions_per_step_baseline"].isin([1, 2]).all()
        assert set(instructions["program"].str.split("(").str[0]) == {f"jit_{kind}"}
        ops = comparison.table("op_stats").query("host_or_device == 'Device' and op_type != 'IDLE'")
        of_program = ops[ops["op_name"].str.startswith(f"jit({kind})/")]["self_time_us_per_step_baseline"].sum()
        named = instructions[instructions["op_name_baseline"].fillna("") != ""]["self_time_us_per_step_baseline"].sum()
        assert named == pytest.approx(of_program, rel=0.05)


def test_hosts_that_number_their_steps_differently_have_the_same_kinds(tmp_path: Path) -> None:
    xplane_pb2 = messages("tsl.profiler.protobuf.xplane_pb2")
    (file,) = run_path(NAME).rglob("*.xplane.pb")
    for name, first in (("a", 0), ("b", 1_000)):
        profile = xplane_pb2.XSpace.FromString(file.read_bytes())
        profile.hostnames[:] = [name]
        for plane in profile.planes:
            number = {entry.name: key for key, entry in plane.stat_metadata.items()}.get("step_num")
            for one in (stat for line in plane.lines for timed in line.events for stat in timed.stats):
                if one.metadata_id == number:
                    one.int64_value += first
        folder = tmp_path / "plugins" / "profile" / "both"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.xplane.pb").write_bytes(profile.SerializeToString())
    run = load(tmp_path, step_kind="evaluate")
    assert run.info.steps_included == 11
    steps = run.table("steps")
    assert set(steps.groupby("host")["included"].sum()) == {11}
    assert steps.loc[steps["host"] == "b", "step"].min() >= 1_000
    assert run.info.step_time_ms_mean == pytest.approx(of_kind("evaluate").info.step_time_ms_mean)


def test_a_stray_is_looked_for_among_the_steps_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """An evaluation that takes four times as long as others is no longer than a training step."""
    steps = loaded_run(NAME).tables.host_table("steps")
    is_evaluation = loaded_run(NAME).tables.kinds.by_row(steps) == "evaluate"
    longer = steps.index[is_evaluation][5]
    durations = steps["duration_us"].mask(~is_evaluation, 5_000.0 + np.arange(len(steps)))
    steps = steps.assign(duration_us=durations.mask(steps.index == longer, 4_900.0))
    usual = RunTables.host_table
    monkeypatch.setattr(
        RunTables,
        "host_table",
        lambda self, name, *, host=None: steps.copy() if name == "steps" else usual(self, name, host=host),
    )
    assert not load(run_path(NAME)).steps["stray"].any()
    (stray,) = load(run_path(NAME), step_kind="evaluate").steps.query("stray")["step"]
    assert stray == steps["step"][longer]


def test_a_kind_that_a_run_does_not_have_is_refused_with_those_it_has() -> None:
    with pytest.raises(
        NoSuchKind, match="no included step is of the kind 'train'; its steps: 'evaluate' and 'train_step'"
    ):
        of_kind("train")
    with pytest.raises(NoSuchKind, match="its steps: 'train'"):
        load(run_path("filters_16_8"), step_kind="evaluate")
    with pytest.raises(NoSuchKind, match="neither markers nor programs of its steps are named"):
        load(run_path("filters_16_8"), step_marker="train", step_kind="train")


def test_the_headline_says_of_which_steps_it_is() -> None:
    baseline = load(run_path("h100_store_activations"), step_kind="train_step")
    headline = compare(baseline, of_kind("train_step")).headline()
    assert headline.startswith("In steps of `train_step`, ") and "All steps together" not in headline


def test_the_headline_is_on_one_kind_only_where_both_runs_are() -> None:
    baseline, candidate = of_kind("train_step"), loaded_run("jax_filters_16_8")
    assert "train_step" not in compare(baseline, candidate).headline()
    assert "train_step" not in compare(candidate, baseline).headline()


def test_a_run_without_the_kind_has_the_others_shown_with_all_kinds() -> None:
    places = (run_path(NAME), run_path("jax_filters_16_8"))
    ids = [next(run.id for run in find_runs(place) if run.path.is_relative_to(place)) for place in places]
    with settings.override(Settings(places=places)):
        page = AppTest.from_file(str(ROOT / "pages" / "9_Hosts.py"), default_timeout=90)
        page.query_params["baseline"], page.query_params["candidate"] = ids
        page.query_params["step_kind"] = "evaluate"
        page.run()
    (warning,) = page.warning
    assert "cannot be shown with steps of `evaluate`" in warning.value
    assert warning.value.endswith("The others are shown with all kinds of steps.")


def test_the_command_line_judges_one_kind(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(TRANSFORMER_RUNS[name]) for name in ("h100_store_activations", NAME)]
    words = ["check", *runs, "--fail-if", "step_time>+2%"]
    assert cli.main([*words, "--step-kind", "evaluate"]) == 0
    assert cli.main([*words, "--step-kind", "train_step"]) == 1
    assert "2.23 ms" in capsys.readouterr().out


@pytest.mark.parametrize("kind", [pytest.param(None, marks=pytest.mark.thorough), "evaluate"])
def test_throughput_of_replicates_is_that_which_check_judges(kind: str | None) -> None:
    folder = TRANSFORMER_RUNS[NAME].parents[1]
    sides = [
        [load(folder / side / f"{side}_run-{number}", step_kind=kind) for number in (1, 2, 3)]
        for side in ("h100_store_activations", NAME)
    ]
    comparison = compare(sides[0][0], sides[1][0], repeats={runs[0].id: runs[1:] for runs in sides})
    found = {figure.label: figure for figure in window_figures(pair_with(comparison))}["Throughput"]
    measured = check(comparison, [parse_condition("throughput<-5%")]).found[0].measured
    assert (found.baseline, found.candidate) == pytest.approx((measured.baseline, measured.candidate))


def test_the_sidebar_shows_one_kind_of_runs_with_several() -> None:
    place = TRANSFORMER_RUNS[NAME].parent
    (found,) = (run for run in find_runs(place) if run.path.is_relative_to(TRANSFORMER_RUNS[NAME]))
    with settings.override(Settings(places=(place,))):
        page = AppTest.from_file(str(ROOT / "pages" / "1_Overview.py"), default_timeout=90)
        page.query_params["baseline"] = found.id
        page.run()
        assert f"### {loaded_run(NAME).info.step_time_ms_mean:.2f} ms per step" in texts(page)
        named(page.selectbox, SELECTOR).set_value("train_step").run()
        assert page.query_params["step_kind"] == "train_step"
        assert f"### {of_kind('train_step').info.step_time_ms_mean:.2f} ms per step" in texts(page)
        assert "per step; steps of `train_step`" in [caption.value for caption in page.caption]
        assert not page.exception and not page.warning


def test_runs_of_one_kind_have_no_selector() -> None:
    with settings.override(Settings(places=(run_path("jax_filters_16_8"),))):
        page = AppTest.from_file(str(ROOT / "pages" / "9_Hosts.py"), default_timeout=90).run()
        assert SELECTOR not in names(page.selectbox)


LENGTH_US = {"fit": 3_000.0, "validate": 9_000.0, "save": 1_000.0}
FIT = ["fit"] * 24
BOTH = ["fit", "fit", "validate"] * 12


def loop(markers: Sequence[str], programs: Sequence[str] = (), first: int = 0) -> list[Event]:
    """Steps of these markers one after the other, each of one op; with `programs`, of one of these of JAX."""
    out, now = [], 0.0
    for i, marker in enumerate(markers):
        length = LENGTH_US[marker] + i % 4
        op = f"jit({programs[i % len(programs)]})/dot:dot" if programs else f"{marker}/Conv2D:Conv2D"
        out += [event(marker, now, length, _r=1, step_num=first + i), event(op, now + 50, length - 100)]
        now += length + 10
    return out


def run_of(markers: Sequence[str], programs: Sequence[str] = ()) -> Run:
    return run_with(host(*loop(markers, programs)))


def saved(folder: Path, *hosts: list[Event]) -> Path:
    files = folder / "plugins" / "profile" / "run"
    files.mkdir(parents=True)
    for i, events in enumerate(hosts):
        (files / f"host{i}.xplane.pb").write_bytes(space(host(*events)))
    return folder


def test_each_marker_is_a_kind_and_the_headline_is_on_one_that_both_runs_have() -> None:
    fit, both = run_of(FIT), run_of(BOTH)
    assert kinds_of(both, None) == {"fit": 23, "validate": 11} and not kinds_of(fit, None)
    comparison = compare(fit, both)
    kinds = pair_with(comparison).step_kinds
    assert {kind.name: kind.counts for kind in kinds} == {"fit": (22, 23), "validate": (0, 11)}
    (of_fit,) = (kind for kind in kinds if kind.name == "fit")
    assert of_fit.times_us == pytest.approx((3_001.5, 3_001.5), rel=1e-3)
    assert pair_with(comparison).main_kind == of_fit
    headline = comparison.headline(names=("A", "B"))
    assert "for steps of `fit`: `B` vs `A`, 3.00 ms vs 3.00 ms" in headline and "No steps of `validate` in" in headline
    back = pair_with(compare(both, fit)).step_kinds
    assert {kind.name: kind.counts[::-1] for kind in back} == {kind.name: kind.counts for kind in kinds}
    assert not any("are slow" in one for one in sentences(both, None, "B"))


def test_one_kind_alone_is_compared_and_checked(tmp_path: Path) -> None:
    places = [saved(tmp_path / name, loop(markers)) for name, markers in (("a", FIT), ("b", BOTH))]
    condition = [parse_condition("step_time>+10%")]
    (found,) = check(compare(*map(load, places)), condition).found
    assert (found.name, found.outcome) == ("step_time (fit)", "passed"), "the kind that both have"
    ours, theirs = (load(place, step_kind="fit") for place in places)
    assert (ours.info.steps_included, theirs.info.steps_included) == (22, 23)
    assert check(compare(ours, theirs), condition).found[0].outcome == "passed"
    assert not mismatches(ours, theirs)
    with pytest.raises(NoSuchKind, match="'validate'; its steps: 'fit'"):
        load(places[0], step_kind="validate")


def test_hosts_that_number_their_steps_differently_have_the_kinds_of_one(tmp_path: Path) -> None:
    run = load(saved(tmp_path, loop(BOTH), loop(BOTH, first=500)))
    assert run.tables.kinds.counts == {"fit": 23, "validate": 11}
    steps = run.table("steps")
    assert (run.tables.kinds.by_row(steps) == steps["marker"]).all()


def test_programs_are_kinds_within_markers_of_one_name() -> None:
    run = run_of(FIT, ["update", "judge"])
    assert run.tables.kinds.counts == {"update": 11, "judge": 11}
    counts = run_of(BOTH, ["update", "judge"]).tables.kinds.counts
    assert counts == {"fit": 23, "validate": 11}, "the author's names go first"


def test_a_run_of_one_marker_is_compared_by_the_markers_of_the_other() -> None:
    fit, both = run_of(FIT, ["update"]), run_of(BOTH, ["update"])
    assert {kind.name for kind in pair_with(compare(fit, both)).step_kinds} == {"fit", "validate"}
    (found,) = (one for one in mismatches(fit, both) if one.label == "Mix of steps")
    assert (found.baseline, found.candidate) == ("22 fit", "23 fit, 11 validate")


def test_a_marker_alone_and_markers_with_a_name_each_are_no_kinds() -> None:
    once = run_of([*FIT, "save", *FIT])
    assert once.tables.kinds.counts == {"fit": 46} and not kinds_of(once, None)
    named = [event(f"step {chr(97 + i)}", 100 * i, 90, _r=1, step_num=i) for i in range(9)]
    each = run_with(host(*named, *(event("op:A", 100 * i + 5, 50) for i in range(9))))
    assert each.info.step_count == 9 and each.tables.kinds.counts == {} and each.tables.kinds.by_step().empty


def test_other_names_of_all_markers_invalidate_no_verdict() -> None:
    (found,) = mismatches(run_of(FIT), run_of(["validate"] * 24))
    assert (found.label, found.baseline, found.candidate, found.is_hard) == (
        "Kind of the steps",
        "fit",
        "validate",
        False,
    )
    assert not mismatches(run_of(FIT, ["update"]), run_of(["validate"] * 24, ["update"])), "the program is the same"


def test_names_of_markers_of_which_runs_share_none_tell_no_kinds_apart() -> None:
    """Such as those of epochs, which end in other numbers."""
    one, other = run_of(["fit", "validate"] * 10, ["f"]), run_of(["save"] * 20, ["f"])
    assert one.tables.kinds.are_by_marker and not are_by_marker(one, other) and not are_by_marker(other, one)
