"""Rules for XLA programs and for compiling: each speaks on a small case, and is silent just below its threshold."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from tests.views.advice.advice_facts import STEP_US, STEPS, buffers, compilations, facts, instructions
from tfcompare.views.advice import Facts, advise_on, compile_rules, device_rules, host_rules, memory_rules, xla_rules
from tfcompare.views.advice.xla_rules import misfit

BUSY = {"device_compute": 9000.0}
REST = {"hlo_op": "loop_fusion", "category": "loop fusion", "self_time_us": 4000.0, "flops": 5.0}
DOT = {"hlo_op": "dot.1", "category": "dot", "self_time_us": 5000.0, "flops": 9.0, "op_name": "jit(f)/dot_general"}
GPU_DOT = DOT | {"expression": "%dot.1 = bf16[4096,1003] dot(bf16[4096,512] %a, bf16[512,1003] %b)"}
TILED = "f32[4096,{n}]{{1,0:T(8,128)}}"
TPU_DOT = DOT | {
    "hlo_op": "fusion.1",
    "category": "convolution fusion",
    "expression": f"%fusion.1 = {TILED.format(n=512)} fusion({TILED.format(n=130)} %p), kind=kOutput, calls=%c",
}
SLOW = {"flops_per_s": 10.0, "bound_by": "compute"}


def device(*rows: dict[str, Any], device_type: str = "GPU", parts: dict[str, float] = BUSY) -> Facts:
    one = {f"/device:{device_type}:0": 1e5}
    return facts(parts, device_type=device_type, device_us=one, framework="JAX", hlo_ops=instructions(*rows))


@pytest.mark.parametrize(
    ("row", "device_type", "shape"),
    [
        (GPU_DOT | SLOW, "GPU", "dimension 1,003 of `bf16[4096,1003]` is no multiple of 8"),
        (TPU_DOT | SLOW, "TPU", "dimension 130 of `f32[4096,130]` is padded to 256"),
    ],
)
def test_matrix_units_that_are_idle_because_of_a_shape(row: dict[str, Any], device_type: str, shape: str) -> None:
    found = xla_rules.matrix_units(device(row, REST, device_type=device_type))
    assert shape in found.text and f"`{row['hlo_op']}` of `jit_f(7)` reaches 10.0 %" in found.text
    assert "It comes from `jit(f)/dot_general`." in found.text
    assert found.title == "Matrix units are mostly idle in products that take 55.6 % of the time in programs"
    assert found.saves == pytest.approx(5 / 9 * 0.9 * 0.9)


@pytest.mark.parametrize(
    "row",
    [
        GPU_DOT | SLOW | {"flops_per_s": 30.0},
        GPU_DOT | SLOW | {"bound_by": "memory"},
        GPU_DOT | SLOW | {"self_time_us": 200.0},
        GPU_DOT | SLOW | {"flops": float("nan"), "flops_per_s": float("nan")},
        GPU_DOT | {"bound_by": "", "peak_flops_per_s": float("nan"), "flops_per_s": 10.0},
        GPU_DOT | SLOW | {"expression": "%dot.1 = bf16[4096,1024] dot(bf16[4096,512] %a, bf16[512,1024] %b)"},
        GPU_DOT | SLOW | {"hlo_op": "loop_add_fusion", "category": "loop fusion"},
    ],
)
def test_products_that_are_fast_enough_fit_or_are_none(row: dict[str, Any]) -> None:
    assert xla_rules.matrix_units(device(row, REST)) is None


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("%d = f32[8,3] dot(f32[8,64] %a, f32[64,3] %b)", ("f32[64,3]", 3, 8)),
        ("%d = f32[8,64] dot(f32[8,1] %a, f32[1,64] %b)", None),
        ("%d = s32[8,3] dot(s32[8,64] %a, s32[64,3] %b)", None),
        ('%c = bf16[1,3,5,7] custom-call(bf16[1,3,5,7] %x), custom_call_target="__cudnn$convForward"', None),
        ("%f = bf16[512,3]{0,1:T(8,128)(2,1)} fusion(bf16[512,512]{1,0:T(8,128)(2,1)} %p)", ("bf16[512,3]", 3, 8)),
        ("%f = bf16[512,3]{1,0:T(8,128)(2,1)} fusion(bf16[512,512]{1,0:T(8,128)(2,1)} %p)", ("bf16[512,3]", 3, 128)),
        ("%f = f32[512,1000]{1,0:T(8,128)} fusion(f32[64]{0:T(128)} %p)", None),
        ("%f = f32[0,3]{1,0:T(8,128)} fusion()", None),
        (f"%f = f32[{'9' * 40},3]{{1,0:T(0,0)}} fusion()", None),
        ("%f = f32[5,3]{7,9:T(8,128)} fusion()", None),
        (f"%f = f32[{'999999999999,' * 60}3]{{60,59:T(8,128)}} fusion()", (f"f32[{'999999999999,' * 60}3]", 3, 128)),
        ("", None),
    ],
)
def test_shapes_that_do_not_fit(expression: str, found: tuple[str, int, int] | None) -> None:
    assert misfit(expression) == found


TRANSPOSE = {"hlo_op": "input_transpose_fusion", "category": "input fusion", "self_time_us": 1000.0, "source": "m.py:7"}


def test_layout_changes_name_the_longest_and_its_source() -> None:
    copy = {
        "hlo_op": "copy.3",
        "category": "data formatting",
        "self_time_us": 500.0,
        "expression": "%copy.3 = f32[8] copy(f32[8] %p)",
    }
    found = xla_rules.layout_changes(device(TRANSPOSE, copy, REST))
    assert found.title == "Layout changes take 27.3 % of the time in programs"
    assert "1.50 ms a step, `input_transpose_fusion` of `jit_f(7)` the longest. It comes from `m.py:7`." in found.text
    assert found.saves == pytest.approx(1.5 / 5.5 * 0.9)


@pytest.mark.parametrize(
    "row",
    [
        TRANSPOSE | {"self_time_us": 400.0},
        TRANSPOSE | {"flops": 3.0},
        {"hlo_op": "copy-done.4", "category": "copy-done", "self_time_us": 9000.0},
    ],
)
def test_few_layout_changes_and_asynchronous_copies_are_fine(row: dict[str, Any]) -> None:
    assert xla_rules.layout_changes(device(row, REST)) is None


COPY_DONE = {
    "hlo_op": "copy-done.4",
    "category": "copy-done",
    "expression": "%copy-done.4 = f32[5,256]{1,0:T(8,128)} copy-done((f32[5,256]{1,0:T(8,128)}, "
    "f32[5,256]{1,0:T(8,128)S(5)}, u32[]{:S(2)}) %copy-start.4)",
}


def test_waiting_for_copies_says_between_which_memories() -> None:
    found = xla_rules.awaited_copies(device(COPY_DONE | {"self_time_us": 6000.0}, REST, device_type="TPU"))
    assert found is not None and found.saves == pytest.approx(0.6 * 0.9)
    waits = {"device_compute": 3000.0, "device_waits": 6000.0, "host_compute": 1000.0}
    of_step = xla_rules.awaited_copies(
        device(COPY_DONE | {"self_time_us": 6000.0}, REST, device_type="TPU", parts=waits)
    )
    assert of_step is not None and of_step.saves == pytest.approx(found.saves), "as much of the step runs programs"
    assert found.title == "Devices wait for copies 60.0 % of the time in programs"
    assert "for a copy of `f32[5,256]` between the host's memory and the device's" in found.text
    assert "take 6.00 ms a step" in found.text
    near = COPY_DONE | {"self_time_us": 6000.0, "expression": COPY_DONE["expression"].replace("S(5)", "S(1)")}
    found = xla_rules.awaited_copies(device(near, REST, device_type="TPU"))
    assert found is not None and "within the device's memory" in found.text
    assert xla_rules.awaited_copies(device(COPY_DONE | {"self_time_us": 100.0}, REST)) is None


def test_wide_products_on_a_tpu() -> None:
    found = xla_rules.wide_products(device(TPU_DOT, REST, device_type="TPU"))
    assert found is not None and found.saves == 0.0
    assert found.title == "Matrix products in f32 take 55.6 % of the time in programs"
    assert "take 5.00 ms a step, `fusion.1` of `jit_f(7)` the longest." in found.text
    of_memory = xla_rules.wide_products(device(TPU_DOT | {"bound_by": "memory"}, REST, device_type="TPU"))
    assert of_memory is not None and of_memory.saves == pytest.approx(5 / 9 * 0.9 / 2)


@pytest.mark.parametrize(
    ("row", "device_type"),
    [
        (TPU_DOT, "GPU"),
        (TPU_DOT | {"expression": TPU_DOT["expression"].replace("f32", "bf16")}, "TPU"),
        (TPU_DOT | {"peak_flops_per_s": float("nan")}, "TPU"),
        (TPU_DOT | {"self_time_us": 900.0}, "TPU"),
    ],
)
def test_narrow_products_other_devices_and_small_shares(row: dict[str, Any], device_type: str) -> None:
    assert xla_rules.wide_products(device(row, REST, device_type=device_type)) is None


def test_no_rule_on_programs_speaks_of_a_cpu() -> None:
    rows = instructions(TPU_DOT | SLOW, GPU_DOT | SLOW, TRANSPOSE)
    padded = buffers(("copy.1", "f32[4096,130]", 1 << 23))
    one = facts({"host_compute": 9000.0}, hlo_ops=rows, hlo_memory=padded)
    assert [rule(one) for rule in (*xla_rules.RULES, memory_rules.padded)] == [None] * 5


MIB = 1 << 20


def test_padding_of_the_buffers_of_a_tpu() -> None:
    there = buffers(("copy.1", "f32[65536,3]", 32 * MIB), ("dot.2", "f32[8192,1024]", 32 * MIB))
    found = memory_rules.padded(facts(device_type="TPU", hlo_memory=there))
    assert found is not None and found.saves == 0.0
    assert found.title == "48.8 % of the peak of `jit_f(7)` is padding"
    assert "32.8 MB are padding" in found.text and "`f32[65536,3]` of `copy.1`" in found.text


@pytest.mark.parametrize(
    ("there", "device_type"),
    [
        (buffers(("copy.1", "f32[65536,3]", 32 * MIB)), "GPU"),
        (buffers(("copy.1", "f32[65536,3]", 32 * MIB), live=False), "TPU"),
        (buffers(("copy.1", "f32[65536,3]", 32 * MIB), space=5), "TPU"),
        (buffers(("copy.1", "", 32 * MIB)), "TPU"),
        (buffers(("copy.1", "f32[100,3]", MIB - 1)), "TPU"),
        (buffers(("copy.1", "f32[65536,3]", 32 * MIB), ("p", "f32[8192,16384]", 512 * MIB)), "TPU"),
        (buffers(("copy.1", "f32[8192,1000]", 32 * MIB)), "TPU"),
    ],
)
def test_padding_that_does_not_matter_or_is_none(there: Any, device_type: str) -> None:
    assert memory_rules.padded(facts(device_type=device_type, hlo_memory=there)) is None


@pytest.mark.parametrize(("framework", "call"), [("JAX", "latency_hiding"), ("TensorFlow", "bytes_per_pack")])
def test_exchanges_that_nothing_overlaps(framework: str, call: str) -> None:
    parts = {"device_collectives": 1000.0, "device_compute": 9000.0}
    found = device_rules.collectives(facts(parts, device_type="GPU", framework=framework))
    assert found is not None and call in found.text and "For 1.00 ms of each step" in found.text
    assert found.title == "Exchanges between devices take 10.0 % of the step"
    assert found.saves == pytest.approx(0.1)
    assert device_rules.collectives(facts(parts | {"device_collectives": 900.0, "device_compute": 9100.0})) is None


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
