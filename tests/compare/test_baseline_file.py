"""Files of baselines: judging by one agrees with judging by the profiles, and what it does not hold is not judged."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from datetime import date
from pathlib import Path

import pytest

from tests.profiles import SAMPLES
from tfcompare.compare.check import baseline_file
from tfcompare.compare.check.acceptance import Judging, acceptances, with_accepted
from tfcompare.compare.check.baseline_file import (
    Acceptance,
    Baseline,
    baseline_named,
    make_baseline,
    read_baselines,
    runs_of,
    write_baselines,
)
from tfcompare.compare.check.condition_metrics import METRICS
from tfcompare.compare.check.conditions import Findings, check, parse_condition
from tfcompare.compare.check.measured import SHARE, TIME, Measured, by_time
from tfcompare.compare.stats.change_test import Level
from tfcompare.compare.stats.verdict import SAME, Verdict
from tfcompare.errors import TfcompareError
from tfcompare.loading import Question, answer, compared, sides

TODAY = date(2026, 11, 30)
TRANSFORMER, WORKERS, XLA = "transformer_gpu/h100_", "workers/", "autoencoder_xla/"
SMALL, LARGE = "autoencoder/filters_16_8", "autoencoder/filters_512_128"
PATTERNS = {"op:": ("*", "*MatMul*", "*dot_general"), "kernel:": ("*", "*gemm*"), "occurrences:": ("*", "*Conv2D")}


def place(name: str) -> str:
    return str(SAMPLES / name)


def written(name: str, folder: Path) -> Baseline:
    """The baseline of a sample, written to a file and read again."""
    write_baselines(folder / "b.json", {"main": make_baseline(answer(Question((place(name),)))[0])})
    return baseline_named(folder / "b.json", "main")


def by_file(baseline: Baseline, folder: Path, candidate: str, *conditions: str) -> Findings:
    question = Question((place(candidate),))
    (own,), _ = sides(question)
    comparison, _ = compared(question, [runs_of(baseline, folder / "b.json", "main"), own])
    return check(comparison, [parse_condition(text) for text in conditions], Judging(baseline, TODAY))


def figures(found: Findings) -> list[tuple[object, ...]]:
    """What was found of each condition, as numbers of nine digits."""
    rows = []
    for one in found.found:
        verdict, level = one.measured.verdict, one.measured.level
        numbers = (one.measured.baseline, verdict.ratio, verdict.low, verdict.high, level.low, level.high)
        exact = tuple(f"{number:.9g}" for number in numbers)
        rows.append((one.text, one.outcome, verdict.word, one.why_not_judged, one.why_unclear, *exact))
    return rows


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (f"{TRANSFORMER}store_activations", f"{TRANSFORMER}recompute_activations"),
        (f"{WORKERS}balanced", f"{WORKERS}slow_input"),
        (f"{XLA}tensorflow_filters_16_8", f"{XLA}tensorflow_filters_128_32"),
        (LARGE, SMALL),
        (LARGE, LARGE),
        (f"{XLA}jax_filters_16_8", f"{TRANSFORMER}store_activations"),
    ],
)
def test_a_file_gives_what_the_profiles_give(ours: str, theirs: str, tmp_path: Path) -> None:
    """Three captures with two kinds of steps on a GPU, several hosts, one CPU, a run itself, and another program."""
    names = [name for name in METRICS if name != "rate:"]
    conditions = [f"{n}{pattern}>+5%" for n in names for pattern in PATTERNS.get(n, ("*",) if n[-1] == ":" else ("",))]
    conditions += ["step_time>1ms", "peak_memory>1MB", "op:*>1us"]
    profiles = check(answer(Question((place(ours), place(theirs))))[0], list(map(parse_condition, conditions)))
    baseline = written(ours, tmp_path)
    assert figures(by_file(baseline, tmp_path, theirs, *conditions)) == figures(profiles)
    assert len((tmp_path / "b.json").read_bytes()) < 1.1 * baseline_file.MOST_BYTES, "with what stands around it"


def test_what_does_not_fit_is_named_and_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline_file, "MOST_BYTES", 30_000)
    baseline = written(SMALL, tmp_path)
    held, left = baseline.captures[0].hosts[0].tables["op_parts"].columns["op_name"], baseline.left_out.ops
    assert isinstance(held, list) and left and not baseline.left_out.more_ops
    own = next(str(name) for name in held if name != "…")
    conditions = ["op:*>+5%", "occurrences:*>+5%", f"op:{left[0][0]}>+5%", "op:?>+5%", "rate:*>+5%", f"op:{own}>-1000%"]
    found = by_file(baseline, tmp_path, LARGE, *conditions, "step_time>+5%", f"op:{left[0][0]}>1us")
    assert [one.outcome for one in found.found] == [
        *("failed", "passed", "untested", "untested", "untested", "failed"),
        *("failed", "failed"),  # of the candidate, everything is known
    ]
    assert "check BASELINE CANDIDATE" in found.not_judged[0]
    other = by_file(baseline, tmp_path, f"{WORKERS}balanced", "step_time>+5%")
    assert other.pair.are_unrelated and not found.pair.are_unrelated
    monkeypatch.setattr(baseline_file, "MOST_NAMED_BYTES", 1_000)
    found = by_file(written(SMALL, tmp_path), tmp_path, LARGE, f"op:{own}>+5%", "op:*>+5%")
    assert [one.outcome for one in found.found] == ["untested", "failed"], "one that is not named may be of that type"
    monkeypatch.setattr(baseline_file, "MOST_BYTES", 1_000)
    with pytest.raises(TfcompareError, match="--steps FIRST:LAST"):
        written(SMALL, tmp_path)


def test_the_same_run_gives_the_same_file_and_a_line_of_it_is_a_column(tmp_path: Path) -> None:
    once = (written(f"{XLA}jax_filters_16_8", tmp_path), (tmp_path / "b.json").read_text())[1]
    written(f"{XLA}jax_filters_16_8", tmp_path)
    assert (tmp_path / "b.json").read_text() == once
    assert re.search(r'^ +"duration_us": \[[^\n]+\],$', once, re.MULTILINE)
    assert json.loads(once)["baselines"]["main"]["figures"]["flops"]["unit"] == "FLOP"


def changed(content: dict, *path: str | int, to: object) -> dict:
    """The JSON of a file with another value at that path."""
    copy = json.loads(json.dumps(content))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = to
    return copy


MAIN = ("baselines", "main")
HOST = (*MAIN, "captures", 0, "hosts", 0)
ACCEPTED = {"metric": "flops", "value": 1, "unit": "FLOP", "by": "ada", "because": "new"}
ACCEPTED |= {"until": "2027-01-31", "on": "2026-11-30"}
STEPS, CELLS = ((*HOST, "tables", name) for name in ("steps", "op_cells"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format",), "1"),
        ((*MAIN, "captures"), []),
        ((*MAIN, "accepted"), [ACCEPTED, ACCEPTED]),
        ((*MAIN, "captures", 0, "recorded"), "yesterday"),
        ((*MAIN, "figures", "step_time"), {"value": None, "unit": "µs"}),
        ((*HOST, "origin", "start_ns"), -1),
        ((*HOST, "origin", "device_count"), 10**25),
        ((*STEPS, "rows"), 10**9),
        ((*STEPS, "columns", "duration_us"), [1.0]),
        ((*STEPS, "columns", "duration_us"), -1.0),
        ((*STEPS, "columns", "duration_us"), "long"),
        ((*STEPS, "columns", "included"), 2.5),
        ((*STEPS, "columns", "marker"), 7),
        ((*STEPS, "columns", "step"), 1),
        ((*CELLS, "columns", "part"), 10**6),
        ((*CELLS, "columns", "self_time_ps"), 1 << 61),
        ((*HOST, "tables", "users"), {"rows": 1, "columns": {"name": "x"}}),
    ],
)
def test_a_damaged_file_is_one_sentence(path: tuple[str | int, ...], value: object, tmp_path: Path) -> None:
    written(f"{XLA}jax_filters_16_8", tmp_path)
    content = json.loads((tmp_path / "b.json").read_text())
    (tmp_path / "b.json").write_text(json.dumps(changed(content, *path, to=value)))
    with pytest.raises(TfcompareError, match=r"b\.json: expected baselines that tfcompare wrote, and the file has "):
        runs_of(baseline_named(tmp_path / "b.json", "main"), tmp_path / "b.json", "main")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<<<<<<< HEAD", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ('{"format": NaN}', "NaN"),
        ('{"format": 1, "baselines": {"main": {}, "main": {}}}', "has 'main' twice"),
        (" " * 3_000_000, "is larger than"),
        ('{"format": 2, "baselines": 5}', "of format 2, and this tfcompare"),
    ],
)
def test_a_file_of_something_else_is_one_sentence(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(TfcompareError, match=told):
        read_baselines(tmp_path / "b.json")


def test_a_pipe_is_refused_and_a_link_and_the_mode_stay(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TfcompareError, match="it is no file"):
        read_baselines(tmp_path / "pipe")
    with pytest.raises(TfcompareError, match=r"nowhere/b\.json: could not write .*: No such file or directory$"):
        write_baselines(tmp_path / "nowhere" / "b.json", {})
    (tmp_path / "of_any_file").touch()
    usual = (tmp_path / "of_any_file").stat().st_mode
    file, link = tmp_path / "b.json", tmp_path / "link"
    write_baselines(file, {})
    assert file.stat().st_mode == usual
    file.chmod(0o640)
    link.symlink_to(file)
    before = file.stat().st_ino
    write_baselines(link, {})
    assert link.is_symlink() and file.stat().st_ino != before and stat.S_IMODE(file.stat().st_mode) == 0o640
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "of_any_file", "b.json", "link"}


@pytest.mark.parametrize("content", ["{}", '{"format": 2}'])
def test_what_an_error_advises_helps(content: str, tmp_path: Path) -> None:
    """`set` reads the file first, so that it has to be removed."""
    (tmp_path / "b.json").write_text(content)
    with pytest.raises(TfcompareError, match="remove the file, then"):
        read_baselines(tmp_path / "b.json")


def test_work_that_was_added_up_in_another_order_is_the_same() -> None:
    exactly = Verdict(SAME, "identical file", 1.0, 1.0, 1.0)
    time = Measured(TIME, 1.0, 1.0, exactly, Level(1.0, 1.0, 1.0, ""))
    verdict = by_time(SHARE, (0.3, 0.1 + 0.2), time).verdict
    assert (verdict.word, verdict.ratio, verdict.low, verdict.high) == (SAME, 1.0, 1.0, 1.0)
    assert by_time(SHARE, (0.3, 0.3001), time).verdict.ratio > 1


def test_figures_are_those_of_the_run(tmp_path: Path) -> None:
    found = written(f"{TRANSFORMER}store_activations", tmp_path).figures
    pair = answer(Question((place(f"{TRANSFORMER}store_activations"),)))[0]
    own = {run.content_id: run for run in pair.sides[0].runs}
    means = [run.info.step_time_ms_mean * 1000 for run in own.values()]
    assert math.isclose(found["step_time"].value, sum(means) / len(means))
    assert found["peak_memory:GPU_0_bfc"].value == found["peak_memory"].value > 0
    assert "input_latency" not in found, "what was not recorded is missing"


@pytest.mark.parametrize(
    ("ours", "theirs", "condition", "value"),
    [
        ("store", "recompute", "op:*rematted_computation*>+5%", "added"),
        ("recompute", "store", "op:*rematted_computation*<-50%", "removed"),
        ("recompute", "store", "occurrences:*rematted_computation*<-50%", "removed"),
    ],
)
def test_what_was_added_or_removed_is_accepted(
    ours: str, theirs: str, condition: str, value: str, tmp_path: Path
) -> None:
    run, candidate = (f"{TRANSFORMER}{name}_activations" for name in (ours, theirs))
    baseline = written(run, tmp_path)
    found = by_file(baseline, tmp_path, candidate, condition)
    day = date(2026, 12, 1)
    accepted = acceptances(found, Acceptance("", 0.0, "", day, "ada", TODAY, "new"), strict=False)
    assert [one.outcome for one in found.found] == ["failed"] and (accepted[0].value == 0) == (value == "removed")
    again = by_file(with_accepted(baseline, accepted), tmp_path, candidate, condition).found[0]
    assert (again.outcome, again.measured.verdict.ratio) == ("passed", 1.0) and "ada" in again.remark
