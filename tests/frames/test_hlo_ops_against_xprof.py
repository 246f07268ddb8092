"""`hlo_ops` held against xprof's `hlo_stats` of the same files."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from tests import xprof_oracle
from tests.frames.tables import thorough_but
from tests.profiles import loaded_run, run_path

RUNS = ["jax_elementwise", "jax_conv_08", "jax_conv_legacy", "jax_tpu"]
KEYS = ["program_id", "hlo_op"]


def theirs(name: str) -> pd.DataFrame:
    (file,) = run_path(name).rglob("*.xplane.pb")
    return xprof_oracle.hlo_stats(file).set_index(KEYS).sort_index()


def ours(name: str) -> pd.DataFrame:
    rows = loaded_run(name).table("hlo_ops")
    return rows.assign(program_id=rows["program"].str.extract(r"\((\d+)\)$")[0]).set_index(KEYS).sort_index()


def without_layouts(text: str) -> str:
    """The first part of an instruction's text: its result, opcode and operands."""
    return re.sub(r"\{[^}]*\}", "", text).partition("), ")[0].rstrip(")")


@pytest.mark.parametrize("name", thorough_but(RUNS))
def test_the_same_instructions_in_the_same_notation_with_the_same_times(name: str) -> None:
    own, other = ours(name), theirs(name)
    assert len(own) >= 4
    assert own.index.equals(other.index)
    expressions = [rows.map(without_layouts).to_list() for rows in (own["expression"], other["hlo_op_expression"])]
    assert expressions[0] == expressions[1]
    assert own["category"].equals(other["category"])
    assert own["occurrences"].equals(other["occurrences"])
    named = other["tf_op_name"].str.removesuffix(":")
    assert own["op_name"].where(named != "", "").equals(named)
    assert own.loc[(named == "") & (own["op_name"] != ""), "category"].str.endswith("fusion").all()
    for metric in ("total_time_us", "self_time_us"):
        assert own[metric].to_numpy() == pytest.approx(other[metric].to_numpy(), rel=1e-9)


def test_an_instruction_that_runs_a_kernel_twice_ran_once() -> None:
    """The backward pass of an attention clears memory with the same kernel twice."""
    own = ours("jax_te")
    assert set(own["executions"]) == {5}
    calls = own[own.index.get_level_values("hlo_op").str.startswith("te_fused_attn_")]
    assert calls["occurrences"].to_list() == [25, 25, 10, 10]


@pytest.mark.parametrize("name", thorough_but(["jax_conv_08", "jax_conv_legacy"]))
def test_costs_of_copies_and_convolutions_are_theirs(name: str) -> None:
    """Of one execution; xprof multiplies them by the number of kernels, of which a convolution here has two."""
    own, other = ours(name), theirs(name)
    for cost, each in (("flops", "flops_each"), ("bytes_accessed", "bytes_each")):
        assert (own[cost] / own["executions"]).to_numpy() == pytest.approx(other[each].to_numpy(), rel=1e-6)


def test_costs_on_a_tpu_are_those_that_the_compiler_recorded() -> None:
    own, other = ours("jax_tpu"), theirs("jax_tpu")
    waits = own["category"].str.contains("copy-")
    assert own.loc[waits, ["flops_per_s", "bandwidth_bytes_per_s", "operational_intensity"]].isna().all(axis=None)
    for metric, each in (("flops", "flops_each"), ("bytes_accessed", "bytes_each")):
        found = own[metric] / own["occurrences"]
        assert found[~waits].to_numpy() == pytest.approx(other.loc[~waits, each].to_numpy(), rel=1e-6)
    assert own.loc[~waits, "operational_intensity"].to_numpy() == pytest.approx(
        other.loc[~waits, "operational_intensity"].to_numpy(), rel=1e-6
    )


def test_elementwise_costs_count_one_operation_per_element() -> None:
    """xprof counts what the arithmetic takes on a device: 668 for a sine, 12 for a product of two bfloat16."""
    own = ours("jax_elementwise").reset_index().set_index("program")
    elements = 8 * 4096 * 2048
    other = theirs("jax_elementwise")["flops_each"].groupby("program_id").sum()
    assert (other["13"], other["17"]) == pytest.approx((668 * elements, 12 * elements))
    for program in ("jit_add(11)", "jit_multiply(17)", "jit_sin(13)", "jit_relu(19)"):
        assert own.loc[program, "flops"] == 5 * elements
    assert own.loc["jit_add(11)", "bytes_accessed"] == 5 * 3 * 2 * elements
    assert own.loc["jit_relu(19)", "bytes_accessed"] == 5 * 2 * 2 * elements
