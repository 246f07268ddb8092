"""`op_profile`: sums of `hlo_ops` over programs, categories and source lines."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from tests import xprof_oracle
from tests.frames.tables import thorough_but
from tests.profiles import loaded_run, run_path
from tfcompare.schema.hlo import HLO_OPS
from tfcompare.tables.kernel_stats import op_profile

RUNS = ["jax_elementwise", "jax_conv_08", "jax_conv_legacy", "jax_tpu"]


@pytest.mark.parametrize("name", thorough_but(RUNS))
def test_programs_and_categories_take_as_long_as_in_xprof(name: str) -> None:
    (file,) = run_path(name).rglob("*.xplane.pb")
    rows = loaded_run(name).table("op_profile").query("tree == 'program' and depth < 3")
    ours = rows.set_index(["program", "category"])["self_time_us"].to_dict()
    data: Any = xprof_oracle.tool_data("op_profile", file)
    theirs = {}
    for program in data["byProgramExcludeIdle"]["children"]:
        theirs[program["name"], ""] = program["metrics"]["rawTime"] / 1e6
        for category in program["children"]:
            theirs[program["name"], category["name"]] = category["metrics"]["rawTime"] / 1e6
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_the_trees_of_three_instructions() -> None:
    rows = [
        ("f(1)", "a", "x", "op", "m.py:3", 5.0),
        ("f(1)", "b", "x", "", "m.py:4", 7.0),
        ("g(2)", "a", "y", "", "", float("nan")),
    ]
    frame = pd.DataFrame(rows, columns=["program", "hlo_op", "category", "op_name", "source", "flops"])
    frame = frame.assign(host="vm", bound_by="", expression="", is_rematerialized=False)
    ops = HLO_OPS.conform(frame.assign(**{name: 1 for name in HLO_OPS.column_names if name not in frame}))
    found = op_profile(ops)
    columns = ["tree", "depth", "program", "category", "source_file", "source", "hlo_op", "self_time_us"]
    lines = [" ".join(str(cell) or "-" for cell in row) for row in found[columns].itertuples(index=False)]
    assert lines == [
        "program 1 f(1) - - - - 2.0",
        "program 1 g(2) - - - - 1.0",
        "program 2 f(1) x - - - 2.0",
        "program 2 g(2) y - - - 1.0",
        "program 3 f(1) x - - a 1.0",
        "program 3 f(1) x - - b 1.0",
        "program 3 g(2) y - - a 1.0",
        "source 1 - - m.py - - 2.0",
        "source 1 - - unknown - - 1.0",
        "source 2 - - m.py m.py:3 - 1.0",
        "source 2 - - m.py m.py:4 - 1.0",
        "source 2 - - unknown unknown - 1.0",
        "source 3 f(1) x m.py m.py:3 a 1.0",
        "source 3 f(1) x m.py m.py:4 b 1.0",
        "source 3 g(2) y unknown unknown a 1.0",
    ]
    top = found.query("tree == 'program' and depth == 1").set_index("program")
    assert top.loc["f(1)", "flops"] == 12
    assert top.loc["f(1)", "flops_per_s"] == pytest.approx(12 / 2e-6)
    assert top.loc["g(2)", ["flops", "flops_per_s"]].isna().all()
    assert found.query("tree == 'program' and depth == 3")["op_name"].tolist() == ["op", "", ""]


@pytest.mark.parametrize(("unknown_us", "known"), [(1.0, 12), (1.1, None)])
def test_costs_of_a_node_are_unknown_if_those_of_a_part_of_its_time_are(unknown_us: float, known: float | None) -> None:
    columns = ["hlo_op", "flops", "bytes_accessed", "self_time_us"]
    frame = pd.DataFrame([("a", 12.0, 5.0, 99.0), ("b", float("nan"), 7.0, unknown_us)], columns=columns)
    frame = frame.assign(program="f(1)", category="x", op_name="", source="", bound_by="", expression="", host="vm")
    frame = frame.assign(is_rematerialized=False)
    ops = HLO_OPS.conform(frame.assign(**{name: 1 for name in HLO_OPS.column_names if name not in frame}))
    top = op_profile(ops).query("tree == 'program' and depth == 1").iloc[0]
    assert (None if pd.isna(top["flops"]) else top["flops"], top["bytes_accessed"]) == (known, 12)
