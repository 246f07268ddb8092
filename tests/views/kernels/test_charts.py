"""Charts over kernels: what is drawn is what the frames say, and long names are shortened but never lost."""

from __future__ import annotations

from tests.views.kernels.kernel_samples import kernel_diff
from tfcompare.compare.groups.aggregate import largest_changes
from tfcompare.compare.groups.kernel_groups import group_kernels
from tfcompare.compare.side import Side
from tfcompare.views import bars as ops
from tfcompare.views import chart_style as style
from tfcompare.views.kernels.view import QUANTITIES
from tfcompare.views.ops.figures import time_shares
from tfcompare.views.shares import share_bars

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
