"""The graphs of two pipelines: what is drawn is what the rows say, and both figures share their heights."""

from __future__ import annotations

from itertools import pairwise

import plotly.graph_objects as go
import pytest

from tests.tf_data_runs import execution
from tfcompare import schema
from tfcompare.compare.side import Side
from tfcompare.compare.tf_data.tf_data_graph import MOST_NODES, Graph, graphs
from tfcompare.views import chart_style as style
from tfcompare.views.tf_data.charts import pipeline_graphs

SIDES = (Side("before", 0), Side("after", 1))
BEFORE = "Root 1 critical\n BatchV2 2 critical\n  Map 90 critical blamed\n   TFRecord 5"
AFTER = (
    "Root 1 critical\n Prefetch 1 critical\n  BatchV2 2 critical\n   ParallelMapV2 30 critical blamed\n    TFRecord 5"
)


def drawn(before: str, after: str) -> tuple[tuple[Graph, Graph], tuple[go.Figure, go.Figure]]:
    ours, theirs = (execution(text) if text else schema.TF_DATA.empty() for text in (before, after))
    both = graphs(ours, theirs, (set(ours["long_name"]), set(theirs["long_name"])))
    sides = (SIDES[0], both[0], "Host:0, took 8 ms"), (SIDES[1], both[1], "Host:0, took 4 ms")
    return both, pipeline_graphs(sides, "Slowest execution")


def boxes(figure: go.Figure) -> list[go.layout.Shape]:
    return [shape for shape in figure.layout.shapes if shape.type == "rect"]


def texts(figure: go.Figure) -> list[list[str]]:
    return [text.split("<br>") for text in figure.data[0].text]


def heights(figure: go.Figure) -> dict[str, float]:
    names = [lines[0].removeprefix("<b>").partition("</b>")[0] for lines in texts(figure)]
    return dict(zip(names, figure.data[0].y, strict=True))


def test_paired_nodes_stand_at_one_height_and_each_figure_says_which_run_it_shows() -> None:
    _, (ours, theirs) = drawn(BEFORE, AFTER)
    left, right = heights(ours), heights(theirs)
    for one, other in (("Root", "Root"), ("Batch", "Batch"), ("Map", "ParallelMap"), ("TFRecord", "TFRecord")):
        assert left[one] == right[other]
    assert left["Root"] < right["Prefetch"] < left["Batch"]
    assert ours.layout.height == theirs.layout.height
    assert ours.layout.yaxis.range == theirs.layout.yaxis.range
    assert ours.layout.title.text == "Slowest execution: baseline before"
    assert theirs.layout.title.text == "Slowest execution: candidate after"
    assert theirs.layout.title.subtitle.text == "Host:0, took 4 ms"


def test_bold_is_the_critical_path_dashed_the_rest_and_the_bottleneck_has_a_second_outline_and_a_word() -> None:
    _, (ours, _) = drawn(BEFORE, AFTER)
    outlines = boxes(ours)
    assert [box.line.dash for box in outlines] == ["solid", "solid", "solid", None, "dash"]
    assert outlines[3].line.color == style.WORSE
    assert outlines[2].y0 < outlines[3].y0 < outlines[3].y1 < outlines[2].y1
    edges = [shape for shape in ours.layout.shapes if shape.type == "path"]
    assert [edge.line.dash for edge in edges] == ["solid", "solid", "dash"]
    assert edges[0].line.width > edges[2].line.width
    said = texts(ours)
    assert [any("slowest" in line for line in lines) for lines in said] == [False, False, True, False]


def test_nodes_that_differ_say_so_in_words() -> None:
    _, (ours, theirs) = drawn(BEFORE, AFTER)
    assert any("≠ Map → ParallelMap" in line for line in texts(ours)[2])
    assert any("+ added" in line for line in texts(theirs)[1])
    assert not any("added" in line for line in texts(theirs)[2])
    _, (back, _) = drawn(AFTER, BEFORE)
    assert any("− removed" in line for line in texts(back)[1])


def test_each_node_tells_its_times_and_hovering_tells_all() -> None:
    frame = execution(BEFORE)
    frame["parallelism"] = frame["parallelism"].where(frame["iterator"] != "Map", 4)
    frame["buffer_limit"] = frame["buffer_limit"].where(frame["iterator"] != "Map", 8)
    frame.loc[2, ["buffered_elements", "autotune", "settings", "shapes", "element_size_bytes"]] = [
        *(3.5, "true", "deterministic=true", "[2,3]", 4096)
    ]
    both = graphs(frame, frame, (set(), set()))
    figure, _ = pipeline_graphs(((SIDES[0], both[0], ""), (SIDES[1], both[1], "")), "Execution 1")
    text = " ".join(texts(figure)[2])
    for part in ("self 90.0 µs", "total 180 µs", "1 call", "start +2.00 µs"):
        assert part in text
    details = figure.data[1].customdata[2 * 5]
    for part in (
        *("Iterator::Root[0]::BatchV2[0]::Map", "on the critical path", "the slowest on the critical path"),
        *("parallelism: 4", "buffer: 3.5 of 8", "autotune: true", "element size: 4.10 kB", "shapes: [2,3]"),
        *("settings: deterministic=true", "iterator id: 2"),
    ):
        assert part in details


def wide_tree(branches: int) -> str:
    return "Root 1 critical\n Zip 1 critical\n" + "".join(
        f"  {kind} {i} critical\n" for i, kind in zip(range(branches), KINDS, strict=False)
    )


KINDS = ["Map", "Filter", "Range", "Shuffle", "BatchV2", "Generator"]


@pytest.mark.parametrize("branches", [1, 2, 3, 6])
def test_boxes_do_not_overlap_and_texts_fit(branches: int) -> None:
    _, (figure, _) = drawn(wide_tree(branches), BEFORE)
    bottom = sorted((box for box in boxes(figure) if box.y0 == max(b.y0 for b in boxes(figure))), key=lambda b: b.x0)
    for one, other in pairwise(bottom):
        assert one.x1 < other.x0
    assert all(0 <= box.x0 < box.x1 <= 1 for box in boxes(figure))
    outlines = [box for box in boxes(figure) if box.fillcolor]
    for box, lines in zip(outlines, texts(figure), strict=True):
        assert max(len(line) for line in lines[1:]) * 6.4 <= 470 * (box.x1 - box.x0)


@pytest.mark.parametrize("branches", [1, 3])
def test_a_node_that_the_other_side_did_not_call_says_so_whole(branches: int) -> None:
    ours, theirs = execution(wide_tree(branches)), execution("Root 1 critical")
    known = set(ours["long_name"])
    left, right = graphs(ours, theirs, (known, known))
    figure, _ = pipeline_graphs(((SIDES[0], left, ""), (SIDES[1], right, "")), "Execution 1")
    for lines in texts(figure)[2:]:
        assert "○ only here" in " ".join(lines)
    assert "○ not called on the other side" in figure.data[1].customdata[-1]


def test_forty_nodes_are_all_drawn_and_two_thousand_are_not_also_beside_nothing() -> None:
    deep = "\n".join(" " * i + f"Map {i + 1}{' critical' if i < 5 else ''}" for i in range(40))
    (graph, _), (figure, _) = drawn(deep, BEFORE)
    assert (len(boxes(figure)), graph.left_out) == (40, 0)
    deeper = "\n".join(" " * i + f"Map {i + 1}" for i in range(2000))
    (graph, _), (figure, other) = drawn(deeper, "")
    assert (len(boxes(figure)), graph.left_out, boxes(other)) == (MOST_NODES, 2000 - MOST_NODES, [])
    assert figure.layout.height < 6000


def test_names_are_no_markup() -> None:
    frame = execution("Root 1 critical\n Map 1")
    frame.loc[1, ["iterator", "long_name", "settings"]] = ["<b>x</b>", "Iterator::Root::<i>", "a=<script>"]
    both = graphs(frame, frame, (set(), set()))
    figure, _ = pipeline_graphs(((SIDES[0], both[0], ""), (SIDES[1], both[1], "")), "Execution 1")
    assert "&lt;b&gt;x" in figure.data[0].text[1]
    assert "<script>" not in figure.data[1].customdata[5]
