"""`tfcompare check`: exit status and what it prints, on the samples."""

from __future__ import annotations

import json
import re

import pytest

from tests.profiles import GPU_RUNS, ROOT, SAMPLE_RUNS, run_path
from tfcompare.compare.check.conditions import forms, parse_condition

SMALL, AGAIN, LARGE = (str(SAMPLE_RUNS[f"filters_{name}"]) for name in ("16_8", "16_8_again", "512_128"))
SMALL_GPU, LARGE_GPU = (str(run_path(f"gpu_filters_{name}")) for name in ("16_8", "512_128"))

ON_CHANGE = ("step_time>+5%", "input_latency>+5%", "peak_memory>+10%", "op:*Conv2D*>+5%")
ON_DEVICE = ("kernel:*gemm*>+5%", "kernel_launches>+5%", "peak_memory:GPU_0_bfc>+10%")
ON_VALUE = ("step_time>1us", "input_latency>1us", "peak_memory>1MB", "op:*Conv2D*>1us")

Outcome = tuple[int, str, str]


@pytest.fixture
def check(tfcompare):
    """Runs `check`; returns exit status, stdout and stderr without the remarks on the profiles."""

    def run(baseline: str, candidate: str, *conditions: str, more: tuple[str, ...] = ()) -> Outcome:
        words = [word for condition in conditions for word in ("--fail-if", condition)]
        status, out, err = tfcompare("check", baseline, candidate, *words, *more)
        return status, out, "".join(line for line in err.splitlines(True) if not line.startswith("note: "))

    return run


def outcomes(check, baseline: str, candidate: str, *conditions: str, more: tuple[str, ...] = ()) -> dict[str, str]:
    _, out, _ = check(baseline, candidate, *conditions, more=("--format", "json", *more))
    return {finding["condition"]: finding["outcome"] for finding in json.loads(out)["findings"]}


def test_a_run_against_itself_and_one_with_fewer_filters_pass(check) -> None:
    status, out, err = check(SMALL, SMALL, *ON_CHANGE, more=("--strict",))
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == f"{SMALL} vs {SMALL}: passed ({len(ON_CHANGE)} passed)"
    assert check(LARGE, SMALL, "step_time>+5%", "peak_memory>+10%")[0] == 0


@pytest.mark.parametrize("conditions", [(), ("step_time>+5%", "peak_memory<1GB")])
def test_different_programs_are_not_judged(check, conditions: tuple[str, ...]) -> None:
    status, out, err = check(*(str(GPU_RUNS[name]) for name in ("h100_16_8", "h100_store_activations")), *conditions)
    assert status == 2
    assert out.splitlines()[-1].startswith("NOT JUDGED: ")
    assert "note: Ops of both take " in out and err == ""


def test_every_form_on_cpu(check) -> None:
    found = outcomes(check, SMALL, LARGE, *ON_CHANGE, *ON_VALUE, *ON_DEVICE)
    failed = {*ON_CHANGE, *ON_VALUE} - {"input_latency>+5%"}
    assert {text for text, outcome in found.items() if outcome == "failed"} == failed
    assert {found[text] for text in ON_DEVICE} == {"missing"}, "a CPU has neither kernels nor that memory"


def test_every_form_on_gpu(check) -> None:
    found = outcomes(check, SMALL_GPU, LARGE_GPU, *ON_CHANGE, *ON_VALUE, *ON_DEVICE)
    assert {text for text, outcome in found.items() if outcome != "failed"} == {
        "kernel_launches>+5%",
        "input_latency>+5%",
    }
    back = outcomes(check, LARGE_GPU, SMALL_GPU, *ON_CHANGE, *ON_DEVICE, "kernel_launches<=75", "kernel:*Conv*>1us")
    assert {text for text, outcome in back.items() if outcome == "failed"} == {
        "kernel_launches<=75",
        "kernel:*Conv*>1us",
    }


def last_line(text: str) -> str:
    return text.splitlines()[-1]


def test_what_is_unclear_passes_and_the_last_line_says_what_can_be_shown(check) -> None:
    status, out, err = check(SMALL, AGAIN, "step_time>+5%")
    assert (status, err) == (0, "")
    assert out.startswith("filters_16_8_again vs filters_16_8: nothing failed (1 unclear)\n")
    shown = "these captures can show only changes above 62 %"
    reason = f"{shown}; exact: occurrences:PATTERN, peak_memory; or record 3 captures or more per side"
    assert last_line(out).startswith(f"UNCLEAR: step_time>+5%: {reason}")
    status, out, _ = check(SMALL, AGAIN, "step_time>+5%", more=("--strict",))
    assert (status, "FAILED (1 unclear)" in out) == (1, True)
    assert last_line(out).startswith(f"FAILED: step_time>+5%: unclear, since {reason}")


ONE_STEP = ("--steps", "3:3")
FEW = "1 step, 9 needed on each side; choose more steps (--steps)"


@pytest.mark.parametrize("strict", [(), ("--strict",)])
def test_what_cannot_be_tested_is_not_judged(check, strict: tuple[str, ...]) -> None:
    status, out, err = check(SMALL, LARGE, "step_time>+5%", "peak_memory>1GB", more=(*ONE_STEP, *strict))
    assert (status, err) == (2, "")
    assert out.startswith("filters_512_128 vs filters_16_8: NOT JUDGED (1 passed, 1 untested)\n")
    assert last_line(out) == f"NOT JUDGED: step_time>+5%: {FEW}"
    assert out.count("step_time>+5%:") == 1, "the reason is given once"


def test_what_is_not_judged_in_markdown(check) -> None:
    status, out, _ = check(SMALL, LARGE, "step_time>+5%", more=(*ONE_STEP, "--format", "markdown"))
    assert (status, out.splitlines()[0]) == (2, "### tfcompare: NOT JUDGED (1 untested)")
    assert last_line(out).replace("\\", "") == f"**NOT JUDGED:** step_time>+5%: {FEW}"


def test_a_failed_condition_outweighs_what_is_not_judged(check) -> None:
    for name in ("text", "json", "markdown"):
        status, out, _ = check(SMALL, LARGE, "step_time>+5%", "peak_memory>1MB", more=(*ONE_STEP, "--format", name))
        assert (status, "NOT JUDGED" in out, "FAILED (1 failed, 1 untested)" in out) == (1, False, name != "json")


@pytest.mark.parametrize(
    ("conditions", "strict", "status", "outcome", "passed"),
    [
        (["peak_memory>+999%"], False, 0, "passed", True),
        (["peak_memory>+10%"], False, 1, "failed", False),
        (["input_latency>+5%"], False, 0, "unclear", True),
        (["op:IDLE>+5%", "input_latency>+5%"], False, 2, "not judged", False),
        (["op:IDLE>+5%", "peak_memory>+10%"], True, 1, "failed", False),
        ([], True, 0, "no conditions", True),
    ],
)
def test_json_has_the_outcome_and_the_exit_status_is_its_own(
    check, conditions: list[str], strict: bool, status: int, outcome: str, passed: bool
) -> None:
    more = ("--format", "json", *(["--strict"] if strict else []))
    found, out, _ = check(SMALL, LARGE, *conditions, more=more)
    content = json.loads(out)
    assert (found, content["outcome"], content["passed"]) == (status, outcome, passed)
    assert content["not_judged"] == [
        "op:IDLE>+5%: in no step of either run there is an op whose name or type matches 'IDLE'"
    ] * ("op:IDLE>+5%" in conditions)


def test_a_spread_that_is_set_takes_the_place_of_the_declared_one(check) -> None:
    known = outcomes(check, SMALL, LARGE, "input_latency>+5%", more=("--spread", "0.5 %"))
    assert known == {"input_latency>+5%": "failed"}


def test_without_conditions_the_verdicts_are_told(check) -> None:
    status, out, _ = check(SMALL, LARGE)
    rows = [line.split() for line in out.splitlines()]
    assert status == 0
    assert [row[:3] for row in rows[3:5]] == [["likely", "slower", "step_time"], ["more", "peak_memory", "69.0"]]


def test_text_shows_figures_with_units_and_what_they_rest_on(check) -> None:
    _, out, _ = check(SMALL, LARGE, "step_time>+5%", "peak_memory>+10%")
    lines = out.splitlines()
    assert " ".join(lines[2].split()) == "outcome condition baseline candidate change 95 % confidence interval"
    assert lines[3].split()[:5] == ["FAILED", "step_time>+5%", "10.9", "ms", "213"]
    assert lines[4].endswith("exact")
    interval = r"95 % confidence interval of the ratio between captures 14\.\d×–26\.\d×"
    basis = rf"step_time>\+5%: {interval}, from 20 steps per run\. .* detectable change"
    assert any(re.match(basis, line) for line in lines)


def test_markdown_is_a_table_that_names_from_outside_cannot_break(check) -> None:
    _, out, _ = check(SMALL, LARGE, "peak_memory>+10%", "op:a|`b`<c>*>+5%", more=("--format", "markdown"))
    lines = out.splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert lines[0] == "### tfcompare: FAILED (1 failed, 1 missing)"
    assert table[2].startswith("| `peak_memory>+10%` | 69.0 MB | 169 MB | +145 % | exact | **failed** |")
    assert table[3].startswith("| `op:a\\|'b'<c>*>+5%` |")
    assert {line.replace("\\|", "").count("|") for line in table} == {7}


def test_json_has_full_precision_and_null_for_what_is_not_known(check) -> None:
    status, out, _ = check(SMALL_GPU, LARGE_GPU, "kernel:*gemm*>+5%", "step_time>1us", more=("--format", "json"))
    content = json.loads(out)
    added, step_time = content["findings"]
    assert (status, content["passed"]) == (1, False)
    assert added["baseline"] is added["change"] is None
    assert step_time["candidate"] / step_time["baseline"] - 1 == pytest.approx(step_time["change"])
    assert step_time["candidate_low"] < step_time["candidate"] < step_time["candidate_high"]


def test_other_devices_are_remarked_on_in_every_format(check) -> None:
    for name in ("text", "json", "markdown"):
        assert "runs differ in device type" in check(SMALL, SMALL_GPU, "step_time>+5%", more=("--format", name))[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--fail-if", "steptime>+5%"],
            "unknown metric 'steptime'; must be one of: 'step_time', 'step_time_median', 'step_time_p95'",
        ),
        (["--fail-if", "step_time+5%"], "'step_time+5%' is no condition; expected METRIC OP PERCENT%"),
        (["--fail-if", "step_time>5"], "'step_time>5': step_time takes '%' (of change) or a value in: 'ns', 'us'"),
        (["--spread", "0.03"], "--spread '0.03': expected a percentage, such as 3%"),
        (["--host", "nobody"], "'nobody'; must be one of: 'localhost'"),
        (["--format", "csv"], "invalid choice: 'csv'"),
    ],
)
def test_mistakes_are_answered_in_one_line_with_status_2(check, words: list[str], message: str) -> None:
    status, out, err = check(SMALL, LARGE, more=tuple(words))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_a_condition_on_what_neither_run_has_is_bad_input_and_the_others_are_told(check) -> None:
    words = ("op:*conv2d*>+10%", "peak_memory:GPU_0_bcf>+10%", "kernel_launches>0", "step_time>+5%")
    status, out, err = check(SMALL, LARGE, *words)
    lines = out.splitlines()
    assert (status, err) == (1, ""), "a failed condition outweighs missing ones"
    assert lines[0] == "filters_512_128 vs filters_16_8: FAILED (1 failed, 3 missing)"
    assert [line.split()[:2] for line in lines[3:7]] == [
        ["MISSING", words[0]],
        ["MISSING", words[1]],
        ["MISSING", words[2]],
        ["FAILED", words[3]],
    ]
    assert out.count("op:*conv2d*>+10%: neither run has an op whose name or type matches '*conv2d*'") == 1
    assert "did you mean 'Conv2D'" in out
    assert "GPU_0_bcf'; there are: 'bfc_cpu_allocator_for_gpu'" in out


def test_a_missing_condition_alone_ends_with_status_2_in_every_format(check) -> None:
    told = {}
    for name in ("text", "json", "markdown"):
        status, told[name], err = check(SMALL, LARGE, "op:*conv2d*>+10%", more=("--format", name))
        assert (status, err, "did you mean 'Conv2D'" in told[name]) == (2, "", True)
    assert json.loads(told["json"])["findings"][0]["outcome"] == "missing"
    lines = told["markdown"].splitlines()
    assert any(line.endswith("| **missing** |") for line in lines)
    assert lines[-1].replace("\\", "").startswith("**NOT JUDGED:** op:*conv2d*>+10%: neither run has")
    assert told["markdown"].count("neither run has") == 1
    assert "<details>" not in told["markdown"], "nothing was judged"


def test_help_tells_every_metric(check) -> None:
    status, out, _ = check("--help", "")
    assert status == 0
    assert all(form in out for form in forms())


def test_the_page_on_ci_has_every_metric_and_its_conditions_are_ones() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    of_action = re.search(r"^ +conditions: \|\n((?: {12}.+\n)+)", page, re.MULTILINE)
    assert of_action is not None
    conditions = [*re.findall(r"--fail-if '([^']+)'", page), *of_action[1].split()]
    assert len(conditions) > 3
    assert {parse_condition(text).is_change for text in conditions} == {True, False}
    assert all(f"`{form}`" in page for form in forms())
