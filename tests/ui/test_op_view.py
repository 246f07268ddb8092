"""The view of an op opened by its name, as from a row of memory: times on device and host, kernels, memory."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import loaded_run

GPU = ("filters_512_128_simulated", "filters_16_8_simulated")


def page(op_name: str, names: tuple[str, ...]) -> None:
    from tests.profiles import loaded_run
    from tfcompare import compare
    from tfcompare.ui.frame.pair import Pair
    from tfcompare.ui.widgets.op_view import open_op

    runs = [loaded_run(name) for name in names]
    comparison = compare(runs[0], runs[-1])
    open_op(Pair(comparison, runs[-1], len(runs) - 1), op_name)


def opened(op_name: str, names: tuple[str, ...]) -> AppTest:
    app = AppTest.from_function(page, default_timeout=60, args=(op_name, names)).run()
    assert not app.exception
    return app


def words(app: AppTest) -> list[str]:
    return [element.value for element in [*app.markdown, *app.info]]


@pytest.mark.parametrize("names", [GPU, GPU[:1]])
def test_an_op_is_shown_with_its_times_and_kernels(names):
    kernels = loaded_run(GPU[0]).table("kernel_stats")
    op_name = str(kernels.loc[kernels["op_name"] != "", "op_name"].iloc[0])
    app = opened(op_name, names)
    assert "**Kernels**" in words(app)
    assert any(text.endswith("on device**") for text in words(app))
    assert any("confidence interval" in text for text in words(app)) == (len(names) == 2)
    assert ("Candidate" in app.table[0].value) == (len(names) == 2)


def test_memory_at_the_peak_is_shown():
    peak = loaded_run("filters_512_128").table("memory_peak")
    named = peak[peak["op_name"].isin(loaded_run("filters_512_128").table("op_stats")["op_name"])]
    row = named.sort_values("allocation_bytes").iloc[-1]
    app = opened(str(row["op_name"]), ("filters_512_128",))
    assert "**Memory at the peak**" in words(app)
    assert row["memory_id"] in app.dataframe[-1].value.iloc[:, 0].tolist()


def test_an_op_without_time_says_so():
    assert "No time was recorded for this op." in words(opened("no/such/op", GPU))
