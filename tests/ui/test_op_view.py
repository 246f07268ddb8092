"""The view of an op opened by its name, as from a row of memory: times on device and host, kernels, memory."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import loaded_run
from tfcompare.units import format_value

GPU = ("filters_512_128_simulated", "filters_16_8_simulated")


def page(op_name: str, names: tuple[str, ...]) -> None:
    from tests.profiles import loaded_run
    from tfcompare import compare
    from tfcompare.charts.pair import Pair
    from tfcompare.ui.frame import state
    from tfcompare.ui.frame.selection import Selection
    from tfcompare.ui.widgets.op_view import open_op

    runs = [loaded_run(name) for name in names]
    comparison = compare(runs[0], runs[-1])
    state.choose(Selection(runs[0].id, tuple(run.id for run in runs[1:])))
    open_op(Pair(comparison, runs[-1], len(runs) - 1), op_name)


def opened(op_name: str, names: tuple[str, ...]) -> AppTest:
    for name in names:
        loaded_run(name)  # skips here where the corpus is not at hand: the page runs in another thread
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


XLA = ("tensorflow_filters_128_32", "tensorflow_filters_16_8")
COSTS = ["FLOPs per step", "Bytes accessed per step", "FLOP rate", "Bandwidth", "Intensity"]


def test_an_op_of_a_compiled_program_is_shown_with_what_it_costs():
    app = opened("decoder_inner/Relu", XLA)
    numbers = app.table[0].value
    assert set(COSTS) <= set(numbers.index)
    runs = [loaded_run(name) for name in XLA]
    rows = [run.table("op_stats").set_index("op_name").loc["decoder_inner/Relu"] for run in runs]
    expected = [format_value(row["flops"] / run.info.step_count, "FLOP") for row, run in zip(rows, runs, strict=True)]
    assert numbers.loc["FLOPs per step", ["Baseline", "Candidate"]].to_list() == expected
    assert "Bound by" not in numbers.index  # no peaks of CPUs are known


def test_what_bounds_an_op_is_shown_where_the_peaks_are_known():
    alone = opened("jit(f)/jit(main)/add", ("jax_tpu",)).table[0].value
    assert alone.loc["Bound by", "Value"] == "memory"
    convolution = "jit(forward_3d_conv)/jit(main)/conv_general_dilated"
    both = opened(convolution, ("jax_conv_legacy", "jax_conv_08")).table[0].value
    assert both.loc["Bound by"].to_list() == ["memory", "memory", "unchanged"]


def test_costs_that_are_unknown_are_not_shown():
    numbers = opened("autoencoder_1/image_1/convolution", ("filters_512_128",)).table[0].value
    assert "Self time per step" in numbers.index
    assert not set(COSTS) & set(numbers.index)
