"""The ready queries and the tables that they read: diffs, and tables that are far larger than what they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from tests.fuzz.crowds import CROWDS
from tests.profiles import compared_runs, loaded_run
from tests.store.runs_in_stores import small
from tests.views.golden import PAIRS
from tfcompare import compare, load, schema
from tfcompare.errors import TfcompareError
from tfcompare.query.asking import ask
from tfcompare.query.diff_tables import DiffTables
from tfcompare.query.presets import PRESETS, Preset
from tfcompare.query.tables import _TYPES, DIFF, RunTables, every_table
from tfcompare.run import Run
from tfcompare.views.columns import in_words

PAIR = ("gpu_filters_512_128", "gpu_filters_16_8")


@pytest.fixture(scope="module")
def answers() -> dict[str, pd.DataFrame]:
    """The rows of each ready query on the runs on a GPU, by its title."""
    tables = RunTables.of([loaded_run(name) for name in PAIR])
    with ThreadPoolExecutor(2) as pool:
        frames = pool.map(lambda ready: ask(ready.sql, tables).named(), PRESETS)
    return dict(zip((ready.title for ready in PRESETS), frames, strict=True))


def of(beginning: str) -> Preset:
    (found,) = (ready for ready in PRESETS if ready.title.startswith(beginning))
    return found


def rows(answers: dict[str, pd.DataFrame], beginning: str) -> pd.DataFrame:
    return answers[of(beginning).title]


def test_changes_per_step_are_those_of_the_op_stats(answers: dict[str, pd.DataFrame]) -> None:
    changes = rows(answers, "Ops whose time").set_index(["side", "op_type", "op_name"])
    assert len(changes) == 30
    for side, name in zip(("baseline", "candidate"), PAIR, strict=True):
        ops, steps = loaded_run(name).table("op_stats"), loaded_run(name).info.step_count
        expected = ops.set_index(["host_or_device", "op_type", "op_name"])["self_time_us"] / steps / 1000
        given = changes[f"{side}_ms_per_step"].dropna()
        assert given.to_dict() == pytest.approx(expected[given.index].to_dict())
    sides = changes[["baseline_ms_per_step", "candidate_ms_per_step"]].fillna(0.0)
    assert changes["change_ms_per_step"].tolist() == pytest.approx((sides.iloc[:, 1] - sides.iloc[:, 0]).tolist())
    assert changes["change_ms_per_step"].abs().is_monotonic_decreasing


def test_time_per_step_of_a_layer_is_that_of_its_ops(answers: dict[str, pd.DataFrame]) -> None:
    layers = rows(answers, "Time per step").set_index(["side", "scope"])
    for side, name in zip(("baseline", "candidate"), PAIR, strict=True):
        ops, steps = loaded_run(name).table("op_stats"), loaded_run(name).info.step_count
        inside = ops[ops["op_name"].str.contains("/") & (ops["op_type"] != schema.IDLE)]
        scope = inside["op_name"].str.split("/").str[:2].str.join("/")
        sums = inside.groupby(["host_or_device", scope])["self_time_us"].sum() / steps / 1000
        given = layers[f"{side}_ms_per_step"].dropna()
        assert given.to_dict() == pytest.approx(sums[given.index].to_dict())


def test_kernels_without_tensor_cores_are_those_of_the_kernel_stats(answers: dict[str, pd.DataFrame]) -> None:
    found = rows(answers, "Kernels that could")
    kernels = pd.concat([loaded_run(name).table("kernel_stats") for name in PAIR])
    without = kernels[kernels["is_op_tensor_core_eligible"] & ~kernels["is_kernel_using_tensor_core"]]
    assert found["total_us"].sum() == pytest.approx(without["total_duration_us"].sum())
    assert found["percent_of_kernel_time"].between(0, 100).all()
    assert len(found) > 1


def test_what_holds_memory_adds_up_to_all_of_it(answers: dict[str, pd.DataFrame]) -> None:
    found = rows(answers, "What holds the memory")
    assert found.groupby(["run", "memory_id"])["percent"].sum().tolist() == pytest.approx([100] * 2, rel=1e-6)


def test_waiting_for_input_and_idle_devices_are_those_of_the_runs(answers: dict[str, pd.DataFrame]) -> None:
    waiting = rows(answers, "How much of the step time").set_index("run")
    idle = rows(answers, "How long devices").set_index("run")
    for name in PAIR:
        run = loaded_run(name)
        steps = run.table("steps").query("included")
        share = 100 * steps["input_us"].sum() / steps["duration_us"].sum()
        assert waiting.loc[run.id, "input_percent"] == pytest.approx(share)
        ops = run.table("op_stats").query("host_or_device == 'Device'")
        not_busy = 100 * ops.query("op_type == 'IDLE'")["self_time_us"].sum() / ops["self_time_us"].sum()
        assert idle.loc[run.id, "idle_percent"] == pytest.approx(not_busy)


def test_events_of_the_slowest_step_and_ops_that_run_longer_are_those_of_the_tables(
    answers: dict[str, pd.DataFrame],
) -> None:
    events = rows(answers, "Events of the slowest").set_index("run")
    for name in PAIR:
        run = loaded_run(name)
        steps, found = run.table("steps").query("included"), events.loc[run.id]
        assert set(found["step_us"]) == {steps["duration_us"].max()}
        spans = run.table("spans").query(f"step == {found['step'].iloc[0]}")["duration_us"]
        assert found["duration_us"].tolist() == pytest.approx(spans.nlargest(100).tolist())
        assert found["start_in_step_us"].min() < found["step_us"].max()
    longer = rows(answers, "Ops that run longer")
    (first,) = longer.head(1).to_dict("records")
    for side, name in zip(("baseline", "candidate"), PAIR, strict=True):
        run = loaded_run(name)
        spans, steps = run.table("spans"), run.table("steps").query("included")["step"]
        of_op = spans[(spans["op_name"] == first["op_name"]) & (spans["host_or_device"] == first["side"])]
        by_step = of_op[of_op["step"].isin(steps)].groupby("step")["duration_us"].sum()
        assert first[f"{side}_median_us"] == pytest.approx(by_step.median())
    assert (longer["steps_longer_than_all_of_the_baseline"] <= longer["candidate_steps"]).all()


def test_what_feeds_the_longest_instruction_is_what_its_text_lists() -> None:
    run = loaded_run("jax_filters_128_32")
    found = ask(of("What feeds").sql, RunTables.of([run])).named()
    longest = run.table("hlo_ops").nlargest(1, "self_time_us").iloc[0]
    assert set(found["instruction"]) == {longest["hlo_op"]}
    operands = found[found["kind"] == "operand"]
    assert all(f"{shape} %{name}" in longest["expression"] for shape, name in operands[["shape", "fed_by"]].to_numpy())
    assert len(operands) == longest["expression"].partition("(")[2].partition(")")[0].count("%") > 0


class Steps:
    """Ten steps of one run, and what is asked for of other tables is empty."""

    def columns(self) -> dict[str, dict[str, str]]:
        return RunTables((), ()).columns()

    def table(self, name: str) -> pa.Table:
        frame = every_table()[name].empty()
        if name == "steps":
            frame = pd.DataFrame({"run": "a", "host": "h", "step": range(10), "duration_us": 100.0, "included": True})
            frame[list(schema.STEP_PARTS)] = 0.0
            frame[["input_us", "host_compute_us"]] = 50.0
            frame.loc[4, ["duration_us", "input_us", "host_compute_us"]] = [170.0, 110.0, 60.0]
            frame.loc[6, ["duration_us", "included"]] = [900.0, False]
        return pa.Table.from_pandas(frame, preserve_index=False)


def test_a_long_step_is_found_with_the_part_that_grew() -> None:
    (found,) = ask(of("Steps that took").sql, Steps()).named().to_dict("records")
    assert (found["step"], found["part_that_grew"], found["grew_by_us"]) == (4, "input_us", 60)
    assert found["times_the_median"] == pytest.approx(1.7)


def test_there_is_a_sentence_for_no_rows() -> None:
    titles: Sequence[str] = [ready.title for ready in PRESETS]
    assert len(set(titles)) == len(titles) >= 6
    assert all(ready.nothing.endswith(".") for ready in PRESETS)
    assert not any(word in PRESETS[0].sql for word in ("spans", "op_steps", "kernel_steps", "memory_timeline"))


@pytest.mark.parametrize("pair", ["gpu", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("cpu", "xla"))])
def test_the_declared_columns_are_those_of_the_diffs(pair: str) -> None:
    diffs = DiffTables(compared_runs(*PAIRS[pair]))
    assert list(diffs.dtypes) == [f"{name}{DIFF}" for name, table in schema.TABLES.items() if table.has_diff]
    for name, dtypes in diffs.dtypes.items():
        found = diffs.table(name)
        assert list(found.columns) == list(dtypes)
        for column, dtype in found.dtypes.items():
            assert _TYPES[str(dtype)] == _TYPES[dtypes[str(column)]], (name, column)
            assert column in ("baseline", "candidate") or diffs.meaning(name, str(column)), column


def test_a_query_reads_verdicts_and_changes() -> None:
    names = PAIRS["gpu"]
    comparison = compared_runs(*names)
    tables = RunTables.of([loaded_run(name) for name in names], DiffTables(comparison))
    sql = """SELECT op_name, self_time_us_per_step_delta, verdict FROM op_stats_diff
             WHERE op_type <> 'IDLE' ORDER BY abs(self_time_us_per_step_delta) DESC LIMIT 3"""
    found = ask(sql, tables).named()
    expected = comparison.table("op_stats").query("op_type != 'IDLE'").head(3)
    assert found["op_name"].tolist() == expected["op_name"].tolist()
    assert found["self_time_us_per_step_delta"].tolist() == pytest.approx(expected["self_time_us_per_step_delta"])
    assert found["verdict"].tolist() == in_words(expected)["verdict"].tolist()
    assert "likely faster" in set(found["verdict"])
    fused = ask("SELECT count(*) AS n FROM op_stats_diff WHERE constituents_baseline <> ''", tables).named()
    assert fused["n"].tolist() == [0]


def test_the_command_has_diffs_of_two_runs_and_none_of_one(tfcompare, tmp_path: Path) -> None:
    runs = [small(name, tmp_path) for name in ("theirs", "ours")]
    status, out, _ = tfcompare("query", "SELECT count(*) AS n FROM op_stats_diff", *map(str, runs), "--format", "csv")
    expected = len(compare(*map(load, runs)).table("op_stats"))
    assert (status, out.splitlines()[1]) == (0, f"{expected}")
    status, _, error = tfcompare("query", "FROM memory_peak_diff", str(runs[0]))
    assert status == 2 and "memory_peak_diff" in error


COUNT = 560_000
STATUS = Path("/proc/self/status")
QUERY = "SELECT count(*) FROM op_steps"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    path = tmp_path_factory.mktemp("run") / "vm.xplane.pb"
    path.write_bytes(CROWDS["a long name in many steps"](COUNT))
    return load(path)


def test_the_size_of_a_table_is_known_before_it_is_made(run: Run) -> None:
    size = run.table("op_steps").memory_usage(deep=True).sum()
    assert size > 50 * COUNT
    assert 0.8 * size < run.tables.derived_bytes("op_steps") < 1.25 * size
    assert run.tables.derived_bytes("op_stats") == 0


def test_a_table_that_is_too_large_is_not_made(run: Run) -> None:
    tables = RunTables.of([run])
    assert ask(QUERY, tables).frame.iloc[0, 0] > 1000
    with pytest.raises(TfcompareError, match=r"The table op_steps of these runs takes .* MB, and a query may read "):
        ask(QUERY, replace(tables, most_bytes=1_000_000))


@pytest.mark.skipif(not STATUS.exists(), reason="memory is read from Linux's /proc")
def test_memory_is_given_back_after_a_query(run: Run) -> None:
    size = run.tables.derived_bytes("op_steps")
    pa.default_memory_pool().release_unused()
    before = resident_bytes()
    ask(QUERY, RunTables.of([run]))
    assert resident_bytes() - before < size / 4


def resident_bytes() -> int:
    return int(STATUS.read_text().split("VmRSS:")[1].split()[0]) * 1024


def test_a_table_is_not_held_after_a_query_and_what_is_held_counts(run: Run) -> None:
    before = run.memory_bytes
    ask(QUERY, RunTables.of([run]))
    held = run.memory_bytes - before
    assert held < 10 * COUNT
    assert run.table("op_steps") is not run.table("op_steps")
    run.table("op_stats", host="vm")
    assert run.memory_bytes > before + held
