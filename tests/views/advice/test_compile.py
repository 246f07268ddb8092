"""Rules on compiling and tracing again: each speaks on a small case of its own, and is silent just below its limit."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.views.advice.advice_facts import STEP_US, STEPS, compilations, facts
from tfcompare.views.advice import advise_on, compile_rules, host_rules

TWENTIETH = 0.05 * STEPS * STEP_US
SHAPES = "f32[8,128]; f32[9,128]"


def compiled(times: int, total: float, longest: float, programs: int, shapes: str = SHAPES) -> pd.DataFrame:
    return compilations(("step", "compiling", times, total, longest, programs, shapes))


@pytest.mark.parametrize(("framework", "call"), [("JAX", "static_argnums"), ("TensorFlow", "input_signature")])
def test_a_function_that_is_compiled_again(framework: str, call: str) -> None:
    there = facts(framework=framework, compilations=compiled(4, 4 * TWENTIETH, TWENTIETH, 5))
    found = compile_rules.recompiling(there)
    assert found is not None and call in found.text
    assert found.title == "Compiling functions again takes 20.0 % of the capture"
    assert found.text.startswith(
        "`step` was compiled 4 times during the capture; its programs have arguments of different shapes: "
        "`f32[8,128]`, `f32[9,128]`. Compiling functions again takes 2.00 ms a step, in which the program waits."
    )
    assert found.saves == pytest.approx(0.2)


def test_the_first_compilation_of_a_function_does_not_count() -> None:
    """Where the profile has no more programs than were compiled in it, the longest was the first."""
    first = compiled(3, 4 * TWENTIETH, 2 * TWENTIETH, 3)
    assert compile_rules.RECOMPILE_SHARE.of(facts(compilations=first)) == pytest.approx(0.1)
    assert compile_rules.recompiling(facts(compilations=compiled(1, 4 * TWENTIETH, 4 * TWENTIETH, 1))) is None
    once_more = compile_rules.recompiling(facts(compilations=compiled(1, TWENTIETH, TWENTIETH, 2)))
    assert once_more is not None and "`step` was compiled once during the capture" in once_more.text


@pytest.mark.parametrize(
    "there",
    [
        compiled(4, 0.99 * TWENTIETH, 0.1, 5),
        compilations(("step", "lowering", 9, 9 * TWENTIETH, TWENTIETH, 9, "")),
        compilations(("step", "tracing", 2, 9 * TWENTIETH, TWENTIETH, 0, "")),
        compilations(),
    ],
)
def test_what_takes_little_or_happens_once_is_no_advice(there: pd.DataFrame) -> None:
    one = facts(compilations=there)
    assert compile_rules.recompiling(one) is None and compile_rules.retracing(one) is None


def test_a_profile_without_steps() -> None:
    one = facts(has_steps=False, compilations=compiled(2, TWENTIETH, 0.0, 3, ""))
    found = compile_rules.recompiling(one)
    assert found is not None and found.title == "Compiling functions again takes 5.00 % of the capture"
    assert "shapes:" not in found.text


def test_of_several_hosts_the_slowest_counts() -> None:
    both = [compiled(4, size * TWENTIETH, 0.0, 5).assign(host=host) for host, size in (("a", 1), ("b", 3))]
    assert compile_rules.RECOMPILE_SHARE.of(facts(compilations=pd.concat(both))) == pytest.approx(0.15)


def test_compiling_is_told_once() -> None:
    parts = {"compile": 2000.0}
    again = facts(parts, framework="JAX", compilations=compiled(4, 4 * TWENTIETH, 0.0, 5))
    assert [one.rule for one in advise_on(again, again).advice] == ["recompiling"]
    first = facts(parts, framework="JAX", compilations=compiled(1, 4 * TWENTIETH, 4 * TWENTIETH, 1))
    assert compile_rules.recompiling(first) is None and host_rules.compiling(first) is not None


def test_the_numbers_of_both_sides_stand_side_by_side() -> None:
    never, again = facts(), facts(compilations=compiled(4, 4 * TWENTIETH, 0.0, 5))
    (advice,) = (one for one in advise_on(never, again).advice if one.rule == "recompiling")
    assert [(one.candidate, one.baseline) for one in advice.evidence if one.subject == "step"] == [(4.0, 0.0)]


def test_a_function_that_is_traced_again() -> None:
    there = compilations(("step", "tracing", 5, 3 * TWENTIETH, TWENTIETH, 0, ""))
    found = compile_rules.retracing(facts(compilations=there))
    assert found is not None and "reduce_retracing" in found.text
    assert found.title == "Tracing functions again takes 10.0 % of the capture"
    assert compile_rules.retracing(facts(compilations=there, framework="JAX")) is None
