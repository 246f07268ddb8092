"""Tables that are far larger than what they are made of: long names repeated in every step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.fuzz.crowds import CROWDS
from tfcompare.errors import TfcompareError
from tfcompare.query.asking import ask
from tfcompare.query.tables import RunTables
from tfcompare.run import Run, load

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
