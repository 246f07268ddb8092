"""What must hold of advice on any run, on every kind of profile and on hostile names."""

from __future__ import annotations

import math
import re
from functools import cache

import pandas as pd
import pytest

from tests.laws import mostly_thorough
from tests.profiles import EACH_KIND, loaded_run
from tests.views.advice.advice_facts import NAIVE, facts, kernels, memory, ops
from tfcompare.tables.hosts import steps_of_straggler
from tfcompare.views import advice as advice_package
from tfcompare.views.advice import Facts, Findings, advise_on, facts_of, input_rules
from tfcompare.views.advice.model import Found

_CODE = re.compile(r"`[^`]*`")
_NUMBER = re.compile(r"−?[\d,]*\.?\d+ (?:ns|µs|ms|s|B|kB|MB|GB|TB|%)(?!\w)")

TELLING = ["filters_16_8", "gpu_filters_16_8", "h100_recompute_activations", "jax_filters_16_8", "jax_conv_08"]
"""Runs of which each has advice of its own."""


@cache
def known(name: str) -> Facts:
    return facts_of(loaded_run(name))


def without_code(text: str) -> str:
    return _CODE.sub("", text)


@pytest.mark.parametrize("name", mostly_thorough(EACH_KIND, *TELLING))
def test_advice_on_any_run_rests_on_evidence_and_says_no_other_number(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_rules, "bottleneck_advice", lambda _: "")
    baseline = EACH_KIND[EACH_KIND.index(name) - 1]
    found = advise_on(known(baseline), known(name))
    assert [a.saves for a in found.advice] == sorted((a.saves for a in found.advice), reverse=True)
    for advice in found.advice:
        assert 0 <= advice.saves <= 1
        assert advice.evidence
        assert advice.link.startswith("https://www.tensorflow.org/")
        finite = [not math.isnan(seen.candidate) for seen in advice.evidence]
        assert all(finite) or advice.rule == "input_bound"
        seen = {text for e in advice.evidence for text in (e.candidate_text, e.baseline_text)}
        for text in (advice.title, advice.text):
            assert set(_NUMBER.findall(without_code(text))) <= seen


def test_evidence_is_what_the_tables_say() -> None:
    checked = set[str]()
    for name in TELLING:
        told, tables = told_and_recomputed(name)
        common = tables.keys() & told.keys()
        assert {key: told[key] for key in common} == pytest.approx({key: tables[key] for key in common}), name
        checked |= {rule for rule, _ in common}
    assert checked == {"input_bound", "other_time", "launch_bound", "layout", "convolutions", "idle_device"}


def told_and_recomputed(name: str) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
    """Evidence by rule and label, as advice has it, and some of it made anew from the run's tables."""
    run = loaded_run(name)
    told = {(a.rule, e.label): e.candidate for a in advise_on(known(name), known(name)).advice for e in a.evidence}
    steps = steps_of_straggler(run.table("steps"))
    steps = steps[steps["included"]]
    op_stats = run.table("op_stats")
    ops_there = op_stats[op_stats["op_type"] != "IDLE"]
    kernel_stats, count = run.table("kernel_stats"), run.info.step_count if run.info.has_steps else 1
    per = "step" if run.info.has_steps else "profile"
    side = "Device" if (ops_there["host_or_device"] == "Device").any() else "Host"
    convolutions = ops_there[
        ops_there["op_type"].str.contains("Conv2D|conv_general", regex=True) & (ops_there["host_or_device"] == side)
    ]
    moved = kernel_stats["kernel_name"].str.contains(
        "ranspose|SwapDimension|ShuffleInTensor|3d2Col|nchwToNhwc|nhwcToNchw", regex=True
    )
    of_convolutions = kernel_stats["op_name"].isin(convolutions["op_name"])
    mean = {column: float(pd.to_numeric(steps[column]).mean()) for column in steps if column.endswith("_us")}
    tables = {
        ("input_bound", "Waiting for input per step"): mean["input_us"],
        ("input_bound", "Average step"): mean["duration_us"],
        ("other_time", "Unexplained per step"): mean["idle_us"] + mean["other_us"],
        ("other_time", "Share of the step time"): (mean["idle_us"] + mean["other_us"]) / mean["duration_us"],
        ("launch_bound", "Kernel launch per step"): mean["kernel_launch_us"],
        ("launch_bound", "Kernels per " + per): kernel_stats["occurrences"].sum() / count,
        ("layout", "Layout changes per " + per): kernel_stats.loc[moved, "total_duration_us"].sum() / count,
        ("convolutions", "Convolutions per " + per): (
            convolutions["self_time_us"].sum() - kernel_stats.loc[moved & of_convolutions, "total_duration_us"].sum()
        )
        / count,
        ("idle_device", "Idle time of the devices per " + per): op_stats.query(
            "op_type == 'IDLE' and host_or_device == 'Device'"
        )["self_time_us"].sum(),
    }
    return told, tables


def test_one_host_can_be_looked_at_alone() -> None:
    run, both = loaded_run("tf_gpu"), known("tf_gpu")
    first, second = (facts_of(run, host) for host in run.host_names[:2])
    assert [one.rule for one in advise_on(first, second).advice] == [one.rule for one in advise_on(both, both).advice]
    assert first.kernel_us == pytest.approx(both.kernel_us / 2)


HOSTILE = "x`](http://evil)\n<b>**_$`"


def hostile() -> Facts:
    """A run in which most rules speak, and every name would like to be more than a name."""
    return facts(
        {"input": 3000, "kernel_launch": 2000, "other": 1500, "device_compute": 3000},
        pipeline=NAIVE.replace("Map", "Map" + HOSTILE.replace(" ", "").replace("\n", "")),
        device_type="GPU",
        device_us={HOSTILE: 1.0, "d": 100.0},
        ops=pd.concat(
            [
                ops(("Device", "Conv2D", HOSTILE, 1, 9000.0), ("Host", "PyFunc", HOSTILE, 1, 9000.0), eager=True),
                ops(("Host", HOSTILE, HOSTILE, 1, 10.0)),
            ]
        ),
        kernels=kernels((f"sgemm{HOSTILE}", f"conv{HOSTILE}", 1, 3000.0, True, False)),
        memory=memory(HOSTILE, 95, 100, 0.9),
        eager_share=0.5,
    )


def test_a_sum_per_step_stands_beside_no_sum_over_a_profile() -> None:
    there = ops(("Host", "MatMul", "a", 100, 5000.0), eager=True)
    marked, unmarked = facts(ops=there, eager_share=0.5), facts(has_steps=False, ops=there, eager_share=0.5)
    for one, other in ((marked, unmarked), (unmarked, marked)):
        (advice,) = (a for a in advise_on(other, one).advice if a.rule == "eager")
        share, count = advice.evidence
        assert share.candidate == share.baseline == 0.5
        assert count.label == f"Eager ops on the host per {one.per}"
        assert math.isnan(count.baseline)


def test_names_are_data() -> None:
    run = hostile()
    found = advise_on(run, run)
    assert {"input_bound", "convolutions", "uneven_devices", "full", "fragmented", "eager"} <= rules_of(found)
    for advice in found.advice:
        for text in (advice.title, advice.text):
            assert text.count("`") % 2 == 0
            assert not re.search(r"evil|<b>|\n", without_code(text))


def rules_of(found: Findings) -> set[str]:
    return {advice.rule for advice in found.advice}


def test_no_rule_needs_anything_of_a_run_without_events() -> None:
    for empty in (facts(has_steps=False), facts(has_steps=False, device_type="GPU", device_us={})):
        assert advise_on(empty, empty) == Findings()


def test_advice_that_could_save_less_than_a_twentieth_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for saves, is_given in ((0.0, True), (0.049, False), (0.05, True)):
        monkeypatch.setattr(advice_package, "RULES", {"any": lambda _, saves=saves: Found("t", "x", (), "", saves)})
        assert bool(advise_on(facts(), facts()).advice) is is_given
