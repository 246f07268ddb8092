"""`tfcompare baseline` and `check --baseline`: what they write, print and exit with."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.profiles import SAMPLES

BEFORE, AFTER = (
    str(SAMPLES / "transformer_gpu" / f"h100_{name}") for name in ("store_activations", "recompute_activations")
)
OTHER = str(SAMPLES / "autoencoder_xla" / "jax_filters_16_8")
FAILING = ("--fail-if", "flops>+1%", "--fail-if", "device_time>+5%", "--fail-if", "throughput<-5%")


@pytest.fixture
def here(tfcompare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own with a file of two baselines, in which everything is run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_ACTOR", "ada\x1b[2J")
    for name, place in (("main", BEFORE), ("small", OTHER)):
        status, _, err = tfcompare("baseline", "set", name, place)
        assert status == 0, err
    return tmp_path


def test_baselines_are_set_listed_and_removed(tfcompare, here: Path) -> None:
    status, out, _ = tfcompare("baseline", "list")
    assert status == 0
    assert [line.partition(", set on ")[0] for line in out.splitlines()] == [
        "main: 3 captures on GPU, NVIDIA H100 80GB HBM3",
        "small: 1 capture on CPU",
    ]
    assert tfcompare("baseline", "remove", "small")[0] == 0
    assert list(json.loads((here / "tfcompare-baseline.json").read_text())["baselines"]) == ["main"]
    for words, told in (
        (("remove", "small"), "must be one of: 'main'"),
        (("set", "main"), "takes NAME and RUN"),
        (("set", "a\nb", OTHER), "one line"),
        (("list", "--file", "nowhere.json"), "no such file of baselines"),
    ):
        status, _, err = tfcompare("baseline", *words)
        assert status == 2 and told in err


@pytest.mark.usefixtures("here")
def test_a_check_with_a_file_is_as_one_with_the_profiles(tfcompare) -> None:
    status, out, _ = tfcompare("check", "--baseline", "main", AFTER, *FAILING)
    with_profiles = tfcompare("check", BEFORE, AFTER, *FAILING)
    assert status == with_profiles[0] == 1
    assert out.splitlines()[1:] == with_profiles[1].splitlines()[1:]
    assert " vs main in tfcompare-baseline.json: FAILED" in out.splitlines()[0]
    assert tfcompare("check", "--baseline", "main", BEFORE, *FAILING, "--strict")[0] == 0
    assert tfcompare("check", "--baseline", "small", AFTER, *FAILING)[0] == 2, "another program"


@pytest.mark.usefixtures("here")
def test_steps_are_chosen_as_in_the_baseline(tfcompare) -> None:
    chosen = ("--step-kind", "train_step", "--stray", "include")
    condition = ("--fail-if", "step_time>+5%")
    for options, given in (
        (("--steps", "2:9"), "none, found --steps 2:9"),
        (("--step-marker", "a b"), "none, found --step-marker 'a b'"),
        (chosen, "none, found --step-kind train_step --stray include"),
    ):
        status, out, err = tfcompare("check", "--baseline", "main", AFTER, *condition, *options)
        assert (status, out) == (2, "") and given in err
    assert tfcompare("baseline", "set", "main", BEFORE, *chosen)[0] == 0
    assert " with --step-kind train_step --stray include: step_time" in tfcompare("baseline", "list")[1]
    status, _, err = tfcompare("check", "--baseline", "main", AFTER, *condition)
    assert status == 2 and "expected --step-kind train_step --stray include, found none" in err
    by_file, by_profile = (
        tfcompare("check", *runs, AFTER, *condition, *chosen, "--format", "json")[1]
        for runs in (("--baseline", "main"), (BEFORE,))
    )
    assert json.loads(by_file)["findings"] == json.loads(by_profile)["findings"]


def outcomes(out: str) -> dict[str, str]:
    return {
        finding["condition"]: finding["outcome"]
        for finding in json.loads(out)["findings"]
        if "evaluate" not in finding["metric"]
    }


def test_what_is_accepted_counts_until_its_date(tfcompare, here: Path) -> None:
    file = here / "tfcompare-baseline.json"
    before = file.read_text()
    check = ("check", "--baseline", "main", AFTER, *FAILING, "--format")
    status, out, err = tfcompare(*check, "text", "--accept", "a | `third`\x1b layer", "--until", "2099-01-31")
    assert status == 0 and "accepted in tfcompare-baseline.json: flops, device_time (train_step), throughput" in err
    why = "accepted until 2099-01-31 by ada [2J (GITHUB_ACTOR) because “a | `third` layer”"
    told = f"{why}: compared with 279 GFLOP instead of 236 GFLOP"
    assert f"note: flops>+1%: {told}" in out.splitlines()
    baselines, unaccepted = (json.loads(text)["baselines"] for text in (file.read_text(), before))
    accepted = baselines["main"].pop("accepted")
    assert {one["metric"] for one in accepted} == {"flops", "device_time (train_step)", "throughput"}
    assert unaccepted["main"].pop("accepted") == [] and baselines == unaccepted, "nothing else has changed"

    status, out, _ = tfcompare(*check, "json")
    assert status == 0 and set(outcomes(out).values()) == {"passed"}
    flops, time = json.loads(out)["findings"][:2]
    assert flops["reason"] == "compared with an accepted value: compared exactly"
    assert time["change"] == 0 and "Compared with the baseline itself: 95 % confidence interval" in time["reason"]
    assert (flops["change"], flops["baseline"], flops["remark"]) == (0.0, flops["candidate"], told)
    _, out, _ = tfcompare(*check, "markdown")
    assert r"because “a \| \`third\` layer”" in out

    file.write_text(file.read_text().replace("2099-01-31", "2020-01-31"))
    status, out, _ = tfcompare(*check, "json")
    assert status == 1 and outcomes(out)["flops>+1%"] == "failed"
    assert json.loads(out)["findings"][0]["remark"].endswith("; this has expired")
    assert "removed what was accepted" in tfcompare("baseline", "set", "main", BEFORE)[2]


def test_what_is_accepted_is_renewed_before_it_expires(tfcompare, here: Path) -> None:
    def accepted() -> dict[str, tuple[float, str, str]]:
        content = json.loads((here / "tfcompare-baseline.json").read_text())["baselines"]["main"]["accepted"]
        return {one["metric"]: (one["value"], one["until"], one["because"]) for one in content}

    check = ("check", "--baseline", "main", "--fail-if", "kernel_launches>10", "--fail-if", "flops>+1%")
    assert tfcompare(*check, AFTER, "--accept", "first", "--until", "2098-01-31")[0] == 0
    once = accepted()
    _, _, err = tfcompare(*check, BEFORE, "--accept", "longer", "--until", "2099-01-31")
    assert "accepted in tfcompare-baseline.json: kernel_launches\n" in err, "flops are as before, and need none"
    value = once["kernel_launches"][0]
    assert accepted() == once | {"kernel_launches": (value, "2099-01-31", "longer")}
    _, _, err = tfcompare(*check[:3], BEFORE, "--fail-if", "flops>+1%", "--accept", "x", "--until", "2099-01-31")
    assert "nothing failed, so nothing was accepted" in err


def test_what_was_accepted_for_other_captures_does_not_count(tfcompare, here: Path) -> None:
    """As after a merge: one branch accepts, another sets the baseline again."""
    file = here / "tfcompare-baseline.json"
    check = ("check", "--baseline", "main", AFTER, "--fail-if", "flops>+1%", "--format", "json")
    assert tfcompare(*check, "--accept", "a layer", "--until", "2099-01-31")[0] == 0
    accepting = json.loads(file.read_text())
    assert tfcompare("baseline", "set", "main", f"{BEFORE}/h100_store_activations_run-1")[0] == 0
    merged = json.loads(file.read_text())
    merged["baselines"]["main"]["accepted"] = accepting["baselines"]["main"]["accepted"]
    file.write_text(json.dumps(merged))
    status, out, _ = tfcompare(*check)
    assert status == 1 and "for other captures of the baseline" in json.loads(out)["findings"][0]["remark"]
    assert "for other captures" in tfcompare("baseline", "list")[1]


@pytest.mark.usefixtures("here")
def test_a_limit_on_the_candidate_is_loosened_to_the_accepted_value(tfcompare) -> None:
    bound = ("--fail-if", "kernel_launches>10", "--fail-if", "mfu<0.9", "--format", "json")
    check = ("check", "--baseline", "main")
    assert tfcompare(*check, AFTER, *bound)[0] == 1
    assert tfcompare(*check, AFTER, *bound, "--accept", "for now", "--until", "2099-01-31")[0] == 0
    status, out, _ = tfcompare(*check, BEFORE, *bound)
    assert status == 0 and "instead of 10" in json.loads(out)["findings"][0]["remark"]
    stricter = ("--fail-if", "kernel_launches<10000")
    assert tfcompare(*check, BEFORE, *stricter)[0] == 1, "what is accepted loosens in the direction of the condition"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((AFTER,), "BASELINE and CANDIDATE, or a single run"),
        (("--report", "r.html"), "a report needs both profiles"),
        (("--accept", "x"), "takes --until DATE"),
        (("--accept", "x", "--until", "soon"), "expected a day such as 2027-01-31"),
        (("--accept", "x", "--until", "20990131"), "expected a day"),
        (("--accept", "x", "--until", "2099-W05-1"), "expected a day"),
        (("--accept", "x", "--until", "2020-01-31"), "not before today"),
        (("--accept", " \n", "--until", "2099-01-31"), "expected a reason"),
        (("--baseline-repeat", BEFORE), "cannot be used with --baseline"),
    ],
)
def test_options_that_do_not_belong_together(tfcompare, here: Path, options: tuple[str, ...], told: str) -> None:
    before = (here / "tfcompare-baseline.json").read_text()
    status, out, err = tfcompare("check", "--baseline", "main", AFTER, *options)
    assert (status, out) == (2, "") and re.search(told, err)
    assert (here / "tfcompare-baseline.json").read_text() == before
