"""The declared columns are those that come out, and every one of them is explained."""

from dataclasses import fields

import pytest

from tests.profiles import loaded_run
from tfcompare import schema
from tfcompare.errors import Unknown
from tfcompare.run import RunInfo


@pytest.mark.parametrize("name", schema.TABLES)
def test_a_run_hands_out_the_declared_columns(name: str) -> None:
    table = schema.table(name)
    frame = loaded_run("filters_16_8").table(name)
    assert {c: str(t) for c, t in frame.dtypes.items()} == {c.name: c.dtype for c in table.columns}
    assert not frame[list(table.keys)].duplicated().any()


@pytest.mark.parametrize("name", schema.TABLES)
def test_every_column_is_explained_and_carries_its_unit(name: str) -> None:
    for column in schema.table(name).columns:
        assert column.label
        assert column.meaning.endswith(".")
        if column.unit in ("µs", "ms", "bytes"):
            assert f"_{column.unit.replace('µs', 'us')}" in f"_{column.name}"


def test_the_headline_metric_is_a_number_of_its_table() -> None:
    for table in schema.TABLES.values():
        assert table.headline is None or table.column(table.headline).is_number


def test_run_info_has_the_declared_fields() -> None:
    assert [f.name for f in fields(RunInfo)] == schema.RUN_INFO.column_names


def test_an_unknown_table_is_answered_with_those_there_are() -> None:
    with pytest.raises(Unknown, match=r"unknown table 'op_stat'; must be one of: .*'op_stats'"):
        loaded_run("filters_16_8").table("op_stat")
