"""The query page, run by Streamlit without a browser."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import ROOT, SAMPLES, run_path
from tests.ui.hostile_profile import EVIL, hostile
from tfcompare import settings
from tfcompare.query import asking
from tfcompare.query.asking import Answer, Limits
from tfcompare.query.presets import PRESETS
from tfcompare.query.tables import RunTables, every_table
from tfcompare.settings import Settings
from tfcompare.ui.pages import query
from tfcompare.ui.pages.query import columns_of, for_screen, shown_column, size_of

PAIR = Settings(places=(SAMPLES / "autoencoder",))


def run(page: AppTest, places: Settings = PAIR) -> AppTest:
    with settings.override(places):
        page.run()
    assert not page.exception
    return page


def opened(places: Settings = PAIR, **address: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "12_Query.py"), default_timeout=90)
    for name, value in address.items():
        page.query_params[name] = value
    return run(page, places)


def ask(page: AppTest, sql: str) -> AppTest:
    page.text_area[0].set_value(sql)
    next(button for button in page.button if button.label == "Run").click()
    return run(page)


def told(page: AppTest) -> str:
    return "\n".join(element.value for kind in (page.caption, page.info, page.error, page.code) for element in kind)


@pytest.mark.thorough  # `test_shell.py` chooses them for every page
def test_steps_that_begin_with_a_chosen_event_are_those_of_the_tables() -> None:
    places = Settings(places=(run_path("jax_conv_legacy"), run_path("jax_elementwise")))
    marker = "PjitFunction(forward_3d_conv)"
    page = opened(places, sql="SELECT count(*) AS steps FROM steps", step_marker=marker)
    assert page.dataframe[-1].value.to_numpy().tolist() == [[10]]
    assert f"; steps that begin with `{marker}`." in told(page)
    assert "`jax08_elementwise` cannot be shown with steps that begin with" in page.warning[0].value


def test_the_page_begins_with_an_answer_and_takes_others() -> None:
    page = opened()
    assert page.text_area[0].value == PRESETS[0].sql
    assert page.query_params["sql"] == PRESETS[0].sql
    assert "Tables of `filters_512_128`, `filters_16_8`. Sums are over the whole profile, in diffs per step." in told(
        page
    )
    assert len(page.dataframe[-1].value) == 30

    ask(page, "SELECT role, count(*) AS steps FROM steps JOIN runs USING (run) GROUP BY role ORDER BY role")
    assert page.dataframe[-1].value.to_numpy().tolist() == [["baseline", 22], ["candidate", 22]]
    assert "2 rows in " in told(page)
    assert page.query_params["sql"].startswith("SELECT role")

    titles = [ready.title for ready in PRESETS]
    page.selectbox(key="tfcompare.query.ready").select(titles[-2])
    run(page)
    assert page.text_area[0].value == PRESETS[-2].sql
    assert PRESETS[-2].nothing in told(page)

    ask(page, "SELECT 1,\n 2 FORM steps")
    assert page.code[0].value.startswith('Parser Error: syntax error at or near "steps"\n\nLINE 2:  2 FORM steps\n')
    assert not page.get("download_button")


def test_a_link_brings_its_query_and_the_answer_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    page = opened(sql="FROM range(12345)")
    assert page.text_area[0].value == "FROM range(12345)"
    assert "The first 10,000 rows in " in told(page)
    monkeypatch.setattr(asking, "_PROCESS", "tests.query.crashing")
    run(page)
    assert len(page.dataframe[-1].value) == 500, "nothing is asked again for a page of the table"
    page.query_params["sql"] = "SELECT 2"
    run(page)
    assert page.text_area[0].value == "SELECT 2"
    assert "The query ended its process (SIGABRT)" in told(page)


def test_a_query_too_long_for_a_link_is_asked_all_the_same() -> None:
    page = opened(sql=f"SELECT 1 AS x -- {'x' * query.LONGEST_LINK}")
    assert "sql" not in page.query_params
    assert page.dataframe[-1].value.to_numpy().tolist() == [[1]]


def test_one_run_can_be_asked(tmp_path: Path) -> None:
    logdir = tmp_path / "evil" / "plugins" / "profile" / "only"
    logdir.mkdir(parents=True)
    (logdir / "host.xplane.pb").write_bytes(hostile(1.0))
    sql = f"SELECT op_name, run AS \"{EVIL[1:40]}\", op_name AS match FROM op_stats WHERE op_name LIKE '%cmd%'"
    page = opened(Settings(places=(tmp_path,)), sql=sql)
    rows = page.dataframe[-1].value
    assert rows["0"].str.startswith("'=cmd()").any(), "as in every table that a spreadsheet may get"
    assert "<script>" not in told(page)


def test_without_a_run_the_page_says_what_to_do(tmp_path: Path) -> None:
    page = opened(Settings(places=(tmp_path,)))
    assert "There is no run to query:" in told(page)
    assert not page.text_area


def test_what_a_browser_would_falsify_is_sent_as_text() -> None:
    frame = pd.DataFrame(
        {
            "0": pd.array([2**53 + 1, None], dtype="Int64"),
            "1": [1e-9, 2.0e-5],
            "2": [float("inf"), float("nan")],
            "3": [1.5, 2.5],
            "4": ["x" * 5000, None],
        }
    ).astype({"4": "str"})
    cells = for_screen(frame)
    assert cells["0"].tolist()[0] == "9007199254740993"
    assert cells["1"].tolist() == ["1e-09", "2e-05"]
    assert cells["2"].tolist()[0] == "inf"
    assert cells["3"].tolist() == [1.5, 2.5]
    assert len(cells["4"].tolist()[0]) == 1000
    assert [cells[name].isna().tolist()[1] for name in ("0", "2", "4")] == [True] * 3


def test_names_of_ops_begin_with_their_innermost_part_and_other_texts_are_as_they_are() -> None:
    texts = pd.Series(["model/dense/MatMul"], dtype="str")
    assert [shown_column("0", label, texts).is_name for label in ("op_name", "kernel_name", "path")] == [
        True,
        True,
        False,
    ]


def test_the_size_of_a_result_is_told() -> None:
    def sentence(rows: int, cut: str = "") -> str:
        frame = pd.DataFrame({"0": range(rows)})
        return size_of(Answer(frame, ("x",), ("BIGINT",), 0.5, cut), Limits(result_bytes=2**24))

    assert sentence(1) == "1 row in 500 ms"
    assert sentence(0) == "0 rows in 500 ms"
    assert sentence(1000, "rows").startswith("The first 1,000 rows in 500 ms. `tfcompare query` returns all rows.")
    assert sentence(7, "bytes").startswith("The first 7 rows in 500 ms, up to 16.8 MB.")


def test_every_column_is_listed_with_its_type_unit_and_meaning() -> None:
    for name in every_table():
        columns = columns_of(name)
        assert columns["Column"].tolist() == list(RunTables((), ()).columns()[name])
        assert columns["Meaning"].str.len().min() > 0
    steps = columns_of("steps").set_index("Column")
    assert steps.loc["duration_us", ["Type", "Unit"]].tolist() == ["DOUBLE", "µs"]
    assert columns_of("run_info").set_index("Column").loc["start_time", "Type"] == "TIMESTAMPTZ"
