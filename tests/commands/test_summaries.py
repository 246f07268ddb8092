"""The summaries of `diff` and `show`, and what `check` and `diff` make of more captures on either side."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import statistics
from pathlib import Path

import pytest

from tests.profiles import SAMPLE_RUNS, SAMPLES, run_path
from tfcompare import load, schema

BASELINE, CANDIDATE = (str(SAMPLE_RUNS[f"filters_{name}"]) for name in ("512_128", "16_8"))


def sections(out: str) -> list[list[str]]:
    return [section.splitlines() for section in out.rstrip("\n").split("\n\n")]


def test_diff_is_verdict_then_why_then_advice_then_changes(tfcompare) -> None:
    """Their sentences and figures are in the golden of the Overview."""
    status, out, _ = tfcompare("diff", BASELINE, CANDIDATE)
    assert status == 0
    verdict, budget, figures, why, advice, changes, memory, *more = [
        section[0].partition("  ")[0] for section in sections(out)
    ]
    assert verdict.startswith("filters_16_8 is 20× faster than filters_512_128 ")
    assert budget.startswith("−202 ms per step = −201 ms host compute (above all ")
    assert out.splitlines().index(budget) < 10, "the cause is in the first ten lines"
    assert [figures, why, advice] == ["Key figures", "Why", "What to try next"]
    assert changes == "Largest changes, self time per step"
    assert memory.startswith("Peak memory −99.8 MB: ")
    assert more[0] == "More"
    assert more[1].startswith("Largest idle gap, filters_512_128: ")
    lines = sections(out)
    assert (len(lines[5]), lines[5][-1]) == (1 + 5 + 1, "340 more ops changed.")
    assert [line.partition(". ")[0] for line in lines[4][1:]] == ["1", "2", "3"]


def test_the_summary_shows_as_many_changes_as_asked_and_says_how_many_more(tfcompare) -> None:
    changes = sections(tfcompare("diff", BASELINE, CANDIDATE, "--limit", "3")[1])[5]
    assert len(changes) == 1 + 3 + 1
    assert changes[-1] == "342 more ops changed."
    every = sections(tfcompare("diff", BASELINE, CANDIDATE, "--limit", "0")[1])[5]
    assert len(every) == 1 + 345


def test_a_run_and_itself_are_the_same_and_shown_once(tfcompare) -> None:
    _, out, _ = tfcompare("diff", BASELINE, BASELINE)
    first, answer, *_ = sections(out)
    assert first == ["Both runs are the same capture, byte for byte."]
    assert answer[0] == "filters_512_128: 213 ms per step"
    assert "Candidate" not in out


def test_runs_without_steps_have_no_breakdown(tfcompare) -> None:
    _, out, _ = tfcompare("diff", *(str(run_path(name)) for name in ("jax_conv_legacy", "jax_conv_08")))
    assert "per execution" in sections(out)[0][0]
    assert "No verdict, since there are no step markers in jax_conv_minimal_legacy and jax_conv_minimal_08" in out
    assert "Average step" not in out and "`" not in out


def test_show_without_a_table_is_a_summary(tfcompare) -> None:
    status, out, err = tfcompare("show", CANDIDATE)
    answer, figures, step, advice, ops, _steps, _gap, about, tables = sections(out)
    assert (status, err) == (0, "")
    assert answer == ["filters_16_8: 10.9 ms per step", "20 of 22 steps are included."]
    assert [re.split("  +", line) for line in (figures[1], figures[-1])] == [
        ["Step time", "10.9 ms"],
        ["Peak memory", "69.0 MB"],
    ]
    facts = dict(re.split("  +", line, maxsplit=1) for line in about)
    named = {name: facts[name] for name in ("Capture", "Device type", "Hosts", "Steps")}
    assert named == {"Capture": "filters_16_8", "Device type": "CPU", "Hosts": "1", "Steps": "22"}
    assert [line.split()[0] for line in step[2:]] == ["Input", "Host", "Idle", "Other", "Total"]
    assert ops[0].startswith("Longest ops on the host, self time per step  ")
    assert ops[1].split() == ["Iterator::Root::BatchV2::Map", "Dataset", "6.59", "ms", "36.6", "%"]
    assert advice[1].startswith("1. The steps wait for input 62.2 % of their time")
    names = "".join(tables).partition("): ")[2].removesuffix(".").split(", ")
    run = load(CANDIDATE)
    assert names == [name for name in schema.TABLES if len(run.table(name))]
    assert "kernel_stats" not in names


def test_the_summary_of_a_run_on_a_device_ranks_the_ops_of_the_device(tfcompare) -> None:
    _, out, _ = tfcompare("show", str(run_path("gpu_filters_16_8")))
    assert "Longest ops on the device, self time per step" in out
    assert "1. The device waits for kernel launches 74.2 % of the step" in out


@pytest.mark.parametrize("format", ["csv", "json"])
def test_the_summary_is_text_only(tfcompare, format: str) -> None:
    status, out, err = tfcompare("show", CANDIDATE, "--format", format)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"--format {format} needs a TABLE" in err


LARGE, SMALL, AGAIN, OTHER = (
    str(SAMPLE_RUNS[f"filters_{name}"]) for name in ("512_128", "16_8", "16_8_again", "16_8_better_input")
)


def findings(out: str) -> dict[str, dict[str, object]]:
    return {str(finding["condition"]): finding for finding in json.loads(out)["findings"]}


def test_check_judges_times_and_bytes_by_all_recordings(tfcompare) -> None:
    conditions = ("step_time>+5%", "op:*Conv2D*>1us", "input_latency>1us", "peak_memory>+10%")
    words = ["check", LARGE, SMALL, "--format", "json", *(w for c in conditions for w in ("--fail-if", c))]
    alone = findings(tfcompare(*words)[1])
    status, out, err = tfcompare(*words, "--candidate-repeat", AGAIN, OTHER)
    grouped = findings(out)
    assert (status, err) == (1, "")
    assert "from 20 and 60 steps" in str(grouped["step_time>+5%"]["reason"])
    for condition in conditions[:3]:
        assert "un-to-run variation is measured: " in str(grouped[condition]["reason"])
        assert grouped[condition]["candidate"] != alone[condition]["candidate"]
    peaks = sorted(load(place).table("memory_summary")["peak_bytes"].max() for place in (SMALL, AGAIN, OTHER))
    assert grouped["peak_memory>+10%"]["candidate"] == peaks[1], "the median capture's"
    step_time = grouped["step_time>+5%"]
    assert step_time["candidate"] / step_time["baseline"] - 1 == pytest.approx(step_time["change"])  # type: ignore[operator]


def test_a_folder_of_captures_of_one_program_is_one_side(tfcompare) -> None:
    place = SAMPLES / "autoencoder_gpu"
    one, several = str(place / "h100_512_128" / "h100_512_128_run-1"), str(place / "h100_16_8")
    _, out, err = tfcompare("check", one, several, "--fail-if", "step_time>+5%", "--format", "json")
    found = findings(out)["step_time>+5%"]
    assert f"note: {several}: 3 captures of one program, by their names\n" in err
    assert found["captures"] == {"baseline": 1, "candidate": 3}
    assert (found["verdict"], found["evidence"]) == ("faster", "single")
    _, _, err = tfcompare("diff", one, several, "--table", "run_info")
    assert "note: What cannot be pooled over captures (" in err
    first = str(place / "h100_16_8" / "h100_16_8_run-1")
    status, out, err = tfcompare("check", one, first, "--candidate-repeat", several)
    assert (status, err) == (0, "")
    assert " 1 and 3 captures; " in out, "the run itself is not counted twice"


def test_a_folder_of_captures_is_answered_by_all_and_shown_by_the_first_of_them(tfcompare, tmp_path: Path) -> None:
    place = str(SAMPLES / "autoencoder_gpu" / "h100_16_8")
    told = f"note: {place}: 3 captures of one program, by their names"
    traced = str(tmp_path / "trace.json")
    for words, more in (
        (["show", place], ""),
        (["show", place, "steps"], "; shown is h100_16_8_run-1"),
        (["trace", place, "-o", traced], "; shown is h100_16_8_run-1"),
        (["view", "overview", place], ""),
    ):
        status, out, err = tfcompare(*words)
        assert (status, f"{told}{more}\n" in err, bool(out)) == (0, True, True), err
        assert more or "What cannot be pooled over captures (" in out
    one = tfcompare("show", f"{place}/h100_16_8_run-1", "steps", "--format", "csv")[1]
    assert tfcompare("show", place, "steps", "--format", "csv")[1] == one


def test_check_states_its_captures_and_what_they_could_detect(tfcompare) -> None:
    _, out, _ = tfcompare("check", SMALL, AGAIN, "--fail-if", "step_time>+5%")
    assert " 1 capture per side; smallest detectable change: 62 %. " in out
    assert " Detecting a change of 5 % takes about 75 captures of 20 steps per side (80 % power, " in out
    _, out, _ = tfcompare("check", SMALL, AGAIN, "--fail-if", "step_time>+5%", "--format", "json")
    found = findings(out)["step_time>+5%"]
    assert (found["outcome"], found["evidence"]) == ("unclear", "single")
    assert found["smallest_detectable_change"] == pytest.approx(0.62, abs=0.01)
    assert found["captures_needed"] == {"change": 0.05, "captures_per_side": 75, "steps_per_capture": 20}


def test_diff_judges_ops_by_all_recordings_and_says_so(tfcompare) -> None:
    def verdicts(*words: str) -> tuple[list[str], str]:
        _, out, err = tfcompare("diff", SMALL, AGAIN, "--format", "csv", *words)
        return [row["interval_low"] for row in csv.DictReader(io.StringIO(out))], err

    alone, _ = verdicts()
    grouped, err = verdicts("--candidate-repeat", OTHER)
    assert err.startswith("note: What cannot be pooled over captures (") and err.count("\n") == 1
    assert alone != grouped


def test_a_run_beside_a_place_that_holds_it_keeps_the_other_captures(tfcompare, tmp_path: Path) -> None:
    place = SAMPLES / "autoencoder_gpu" / "h100_16_8"
    copy = tmp_path / "copy"
    shutil.copytree(place / "h100_16_8_run-1", copy)
    conditions = ("step_time>+1%", "throughput<-1%", "mfu<-1%", "hbm_share<-1%", "time_between_steps>+1%")
    values = []
    for baseline, candidate in ((place, place / "h100_16_8_run-1"), (place / "h100_16_8_run-1", place), (place, copy)):
        words = ["check", str(baseline), str(candidate), "--format", "json"]
        status, out, err = tfcompare(*words, *(word for one in conditions for word in ("--fail-if", one)))
        assert status == 0, err
        found = findings(out).values()
        assert [one["metric"] for one in found if one["baseline"] != one["candidate"] or one["change"]] == []
        values.append([one["baseline"] for one in found])
    assert values[0] == values[1] == values[2]


def test_a_rate_is_judged_by_the_time_that_it_takes_and_the_reason_says_so(tfcompare) -> None:
    place = SAMPLES / "autoencoder_gpu"
    words = ["check", str(place / "h100_512_128"), str(place / "h100_16_8"), "--format", "json"]
    _, out, _ = tfcompare(*words, "--fail-if", "step_time>+5%", "--fail-if", "throughput<-5%")
    time, rate = findings(out).values()
    assert str(time["reason"]).startswith("95 % confidence interval of the ratio between captures ")
    assert str(rate["reason"]).startswith(
        "from the time that it takes: 95 % confidence interval of the ratio between captures "
    )


def test_diff_takes_a_spread(tfcompare) -> None:
    def lowest(spread: str) -> float:
        rows = csv.DictReader(io.StringIO(tfcompare("diff", SMALL, AGAIN, "--format", "csv", "--spread", spread)[1]))
        return statistics.median(float(row["interval_low"]) for row in rows if row["interval_low"])

    assert lowest("30%") < lowest("1%")


def test_what_is_no_repeat_is_told_and_left_out(tfcompare, tmp_path: Path) -> None:
    copy, bad = shutil.copytree(SMALL, tmp_path / "copy"), tmp_path / "bad"
    bad.mkdir()
    (bad / "vm.xplane.pb").write_bytes(b"\x0a\x03abc" * 9)
    gpu = str(run_path("gpu_filters_16_8"))
    status, out, err = tfcompare("check", LARGE, SMALL, "--candidate-repeat", str(copy), str(bad), gpu, LARGE, AGAIN)
    told = err.splitlines()
    assert status == 0
    assert "from 20 and 40 steps" in out
    assert len(told) == 4
    assert "note: left out: " in err
    assert "copy is not counted as a replicate of filters_16_8: it is a copy of filters_16_8, " in err
    assert "the two differ in device type (CPU and GPU)" in err
    assert "it is compared, or counted, already." in err


def test_two_runs_of_one_id_keep_their_own_repeats(tfcompare, tmp_path: Path) -> None:
    places = [str(tmp_path / side / "logs") for side in ("before", "after")]
    for place, source in zip(places, (LARGE, SMALL), strict=True):
        folder = Path(place) / "plugins" / "profile" / "run"
        shutil.copytree(next(Path(source).rglob("*.xplane.pb")).parent, folder)
    _, out, _ = tfcompare("check", *places, "--candidate-repeat", AGAIN)
    assert "from 20 and 40 steps" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["diff", LARGE, SMALL, OTHER, "--candidate-repeat", AGAIN], "--candidate-repeat takes a single CANDIDATE"),
        (["diff", LARGE, SMALL, "--spread", "3"], "--spread '3': expected a percentage, such as 3%"),
        (["check", LARGE, SMALL, "--baseline-repeat", "/no/such/place"], "there is no such file or folder"),
        (["check", LARGE, SMALL, "--baseline-repeat", "BAD"], "none of the runs there can be read"),
        (["check", LARGE, SMALL, "--baseline-repeat"], "expected at least one argument"),
    ],
)
def test_mistakes_are_answered_with_status_2(tfcompare, tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "vm.xplane.pb").write_bytes(b"\x0a\x03abc" * 9)
    status, out, err = tfcompare(*(str(tmp_path) if word == "BAD" else word for word in words))
    assert (status, out, message in err) == (2, "", True)
    assert err.count("\n") == 1
