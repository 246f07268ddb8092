"""Figures and charts of kernels; kernels that only compute more slowly are told from a program that changed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest

from tests.profiles import compared_runs, loaded_run, run_path
from tests.views.flat import only_pair, words
from tests.views.kernels.kernel_samples import copies_diff, kernel_diff
from tests.xspace.plain import xplane_pb2
from tfcompare import compare, load
from tfcompare.compare.groups.aggregate import largest_changes
from tfcompare.compare.groups.kernel_groups import group_kernels
from tfcompare.compare.pairs import pair_with
from tfcompare.compare.side import Side
from tfcompare.comparison import Comparison
from tfcompare.run import Run
from tfcompare.views import answer
from tfcompare.views import bars as ops
from tfcompare.views import chart_style as style
from tfcompare.views.kernels.clock_change import ClockChange, clock_change
from tfcompare.views.kernels.figures import (
    MATCHED_TIME,
    USES,
    kernel_figures,
    kernel_sentence,
    matched_share,
    sentence_alone,
    tensor_core_use,
    with_ranks_and_shares,
)
from tfcompare.views.kernels.view import QUANTITIES
from tfcompare.views.ops.figures import time_shares
from tfcompare.views.shares import share_bars

ROLES = ("baseline", "candidate")


def figures(diff: pd.DataFrame, copies: pd.DataFrame) -> dict[str, tuple[float, float]]:
    return {figure.label: (figure.baseline, figure.candidate) for figure in kernel_figures(diff, copies, diff, "step")}


def test_the_figures_are_sums_per_step_and_shares_of_them():
    found = figures(kernel_diff(), copies_diff())
    assert found["Kernel time per step"] == (1000.0, 300.0)
    assert found["Launches per step"] == (9.0, 8.0)
    assert found["Time on tensor cores"] == (0.6, 0.0)
    assert found["Copy time per step"] == (20.0, 10.0)
    assert found[MATCHED_TIME][1] == pytest.approx((150 + 400) / 1300)


def test_what_neither_run_has_is_left_out():
    found = figures(kernel_diff(), copies_diff().iloc[:0])
    assert not any("Copy" in label for label in found)
    none = kernel_diff().iloc[:0]
    assert kernel_figures(none, copies_diff().iloc[:0], none, "step") == []


def test_kernels_of_no_op_have_no_counterpart_by_op() -> None:
    rows = pd.DataFrame({"op_name": ["", "conv"], "status": "matched"})
    rows = rows.assign(total_duration_us_baseline=[30.0, 10.0], total_duration_us_candidate=[50.0, 10.0])
    assert matched_share(rows) == 0.2
    assert matched_share(rows.assign(kernel_name="k")) == 1.0


def test_the_sentence_says_what_fell_rose_or_stayed():
    assert kernel_sentence(kernel_diff(), "step") == (
        "Kernel time per step fell from 1.00 ms to 300 µs (−70.0 %); launches per step fell from 9 to 8 (−11.1 %)."
    )
    same = kernel_diff(same=True)
    assert kernel_sentence(same, "step") == "Kernel time per step stayed at 1.00 ms; launches per step stayed at 9."
    back = kernel_sentence(kernel_diff(swap=True), "step")
    assert back.startswith("Kernel time per step rose from 300 µs to 1.00 ms (+233 %)")


def test_the_sentence_on_a_run_alone_is_about_the_baseline():
    assert sentence_alone(kernel_diff(), "step") == "Kernels take 1.00 ms per step, in 9 launches."


def test_nothing_is_said_where_a_side_has_no_kernels():
    diff = kernel_diff()
    assert kernel_sentence(diff[diff["status"] == "added"], "step") == ""


def test_ranks_and_shares_are_those_of_each_side():
    rows = with_ranks_and_shares(kernel_diff()).set_index("kernel_name")
    assert rows["time_rank_baseline"].dropna().to_dict() == {"gemm_hmma": 1, "relu": 2, "conv": 3}
    assert rows.loc["new_gemm", "time_rank_candidate"] == 1
    assert rows.loc["gemm_hmma", "time_share_baseline"] == 0.6
    assert rows.loc["relu", "cumulative_time_share_baseline"] == pytest.approx(0.9)
    for role in ROLES:
        assert rows[f"time_share_{role}"].sum() == pytest.approx(1.0)
        assert rows[f"cumulative_time_share_{role}"].max() == pytest.approx(1.0)
        there = rows[f"total_duration_us_{role}"].notna()
        assert (rows[f"time_rank_{role}"].notna() == there).all()


def test_every_kernel_is_in_one_of_the_uses_of_tensor_cores():
    use = tensor_core_use(kernel_diff()).set_index("group")
    assert use.index.tolist() == list(USES)
    assert use["total_duration_us_baseline"].tolist() == [600.0, 100.0, 300.0]
    assert use["total_duration_us_candidate"].tolist() == [0.0, 200.0, 100.0]
    for role in ROLES:
        assert use[f"share_{role}"].sum() == pytest.approx(1.0)


SIDES = (Side("before", 0), Side("after", 1))


def test_a_label_stands_for_a_long_name_that_hovering_shows_whole():
    times = time_shares(group_kernels(kernel_diff(), "kernel_name"), "kernel_name", metric="total_duration_us")
    name = "void <b>gemm" + "<" + 300 * "x" + ">"
    times = times.assign(group=name, label="gemm<x>")
    figure = share_bars(times, SIDES, "total_duration_us", title="Kernel time", axis="Share")
    assert figure.layout.annotations[0].text == "gemm&lt;x&gt;"
    hover = figure.data[0].customdata[0][0]
    assert hover.replace("<br>", "") == style.safe(name)
    assert hover.count("<br>") == len(name) // style.HOVER_LENGTH


def test_movers_can_be_of_launches():
    changes = largest_changes(group_kernels(kernel_diff(), "kernel_name"), metric="occurrences")
    changes = changes.assign(label=["one", "two", "three"], detail="d")
    metric = "occurrences"
    figure = ops.movers(changes, metric, per="step", by="kernel_name", quantity=QUANTITIES["launches"][1])
    assert figure.layout.xaxis.title.text == "Change of kernel launches (per step)"
    assert {trace.name for trace in figure.data} == {"▼ fewer launches", "▲ more launches"}
    names = [note.text.partition(" · ")[0] for note in figure.layout.annotations]
    assert names[:3] == ["one", "two", "three"]
    per_run = ops.movers(changes, metric, per="", by="kernel_name", quantity=QUANTITIES["launches"][1])
    assert per_run.layout.xaxis.title.text == "Change of kernel launches"


NAME = "gpu_filters_512_128"


def with_kernels_shortened(folder: Path, name: str, factor: float, *, moving_too: bool = False) -> Run:
    """The run on a GPU with the kernels of convolutions and matrix products (or all) by a factor shorter."""
    (file,) = run_path(NAME).rglob("*.xplane.pb*")
    data = file.read_bytes()
    space = xplane_pb2().XSpace.FromString(gzip.decompress(data) if file.suffix == ".gz" else data)
    for plane in space.planes:
        if plane.name.startswith("/device:GPU"):
            for line in plane.lines:
                for event in line.events:
                    is_product = "gemm" in plane.event_metadata[event.metadata_id].name
                    if line.name.startswith("Stream") and (is_product or moving_too):
                        event.duration_ps = int(event.duration_ps * factor)
    target = folder / name / "plugins" / "profile" / "2026_01_01_00_00_00" / "host.xplane.pb"
    target.parent.mkdir(parents=True)
    target.write_bytes(space.SerializeToString())
    return load(folder / name)


def of(baseline: Run, candidate: Run) -> ClockChange | None:
    return of_comparison(compare(baseline, candidate))


def of_comparison(comparison: Comparison) -> ClockChange | None:
    return clock_change(pair_with(comparison))


def test_a_slower_clock_is_told_by_what_computes_and_what_moves_memory(tmp_path: Path) -> None:
    fast, slow = with_kernels_shortened(tmp_path, "fast", 0.625), loaded_run(NAME)
    comparison = compare(fast, slow)
    found = of_comparison(comparison)
    assert found.compute == pytest.approx((1.6, 1.6), rel=0.01)
    assert found.memory == pytest.approx((1.0, 1.0), rel=0.01)
    back = of(slow, fast)
    assert back is not None and back.compute == pytest.approx((0.625, 0.625), rel=0.01)
    (text,) = [one for one in words(answer.first(only_pair(comparison))) if one.startswith("This looks like another")]
    assert "clock or power limit, not like the program: of " in text
    assert "those that compute take **1.60× to 1.60×** as long" in text


def test_what_else_changes_the_time_is_no_clock(tmp_path: Path) -> None:
    slow = loaded_run(NAME)
    assert of(with_kernels_shortened(tmp_path, "all", 0.625, moving_too=True), slow) is None, "memory is slower, too"
    assert of(with_kernels_shortened(tmp_path, "little", 0.97), slow) is None, "within what captures differ by"
    assert of_comparison(compared_runs(NAME, "gpu_filters_16_8")) is None, "it is another program"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("jax_conv_legacy", "jax_conv_08"),
        pytest.param("tf_gpu", "gpu_filters_512_128", marks=pytest.mark.thorough),
        ("filters_16_8", "filters_16_8_again"),
    ],
)
def test_no_pair_of_real_runs_differs_in_the_clock_alone(one: str, other: str) -> None:
    assert of_comparison(compared_runs(one, other)) is None


def test_the_clock_that_devices_tell_is_in_the_environment() -> None:
    assert loaded_run(NAME).info.clock_mhz == 1700
    assert loaded_run("filters_16_8").info.clock_mhz == 0
