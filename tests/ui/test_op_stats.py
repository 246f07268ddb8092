"""The table of op stats on its page: sorted, paged and narrow; and a run alone, which has nothing to pair."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.profiles import compared_runs
from tests.ui.pages import CONVOLUTION, CPU, GPU, charts, opened, page_of, said, shown, table
from tfcompare.tools.columns import innermost_first
from tfcompare.ui.frame import narrow
from tfcompare.ui.widgets.tables import PAGE_ROWS

FILE = "2_Op_stats"
TIMES = [f"self_time_us_per_step_{role}" for role in ("baseline", "candidate", "delta")]


@pytest.fixture(scope="module")
def busy() -> pd.DataFrame:
    """The diff without the time in which no op ran."""
    rows = compared_runs(*CPU).table("op_stats")
    return rows[rows["op_type"] != "IDLE"]


@pytest.mark.parametrize(("sort", "falling"), [("-self_time_us_per_step_candidate", True), ("op_name", False)])
def test_the_order_and_all_columns_in_the_address_are_those_of_the_table(
    busy: pd.DataFrame, sort: str, falling: bool
) -> None:
    rows = table(opened(FILE, *CPU, sort=sort, all_columns="true"))
    as_shown = (lambda names: names.map(innermost_first)) if sort == "op_name" else None
    expected = busy.sort_values(sort.lstrip("-"), ascending=not falling, kind="stable", key=as_shown)
    for column in TIMES:
        assert rows[column].tolist() == expected[column].tolist()
    assert {"rank_baseline", "match", "op_name_candidate"} <= set(rows.columns)


def test_a_switch_acts_on_the_blocks_below_it() -> None:
    title = "Self time on host by op"
    page = opened(FILE, *CPU)
    assert charts(page)[title]["layout"]["xaxis"]["title"]["text"] == "Self time per step (ms)"
    page.toggle(key="shares").set_value(True)
    page.toggle(key="idle").set_value(True)
    assert charts(shown(page))[title]["layout"]["xaxis"]["title"]["text"] == "Share of self time"
    assert table(page)["op_type"].tolist().count("IDLE") == 1


def test_a_run_alone_has_no_baseline_and_nothing_to_pair() -> None:
    page = opened(FILE, CPU[0], row=CONVOLUTION)
    words = f"{said(page)} {' '.join(metric.label for metric in page.metric)}".lower().split()
    assert not {"baseline", "candidate", "both"} & set(words)
    assert not [button.key for button in page.button if str(button.key).startswith("by_hand")]
    assert [len(charts(page)[title]["data"]) for title in ("Self time on host by op", "Self time in every step")] == [
        1,
        1,
    ]


def test_a_long_table_is_sent_a_page_at_a_time() -> None:
    page = opened(FILE, *GPU)
    assert len(table(page)) == PAGE_ROWS
    assert "Rows 1 to 500 of 531" in said(page)


def test_a_narrow_page_has_the_figures_before_the_types() -> None:
    page = page_of(FILE, *CPU, sort=f"-{TIMES[0]}")
    page.session_state[narrow._IS_NARROW] = True
    frame = table(shown(page))
    assert list(frame.columns)[:4] == ["op_name", *TIMES]
    assert frame[TIMES[0]].is_monotonic_decreasing
    assert "op_type" in frame
