"""What the drawing of a flame graph is given."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tfcompare.compare.stats.verdict import FASTER, UNTESTED
from tfcompare.render.document import Report
from tfcompare.render.html import as_html
from tfcompare.render.payload import flame_json
from tfcompare.views.blocks import FlameGraph, Section
from tfcompare.views.flame.component import drawing, subtitle


def tree() -> pd.DataFrame:
    columns = ["node", "parent", "label", "us_baseline", "us_candidate", "status", "verdict", "evidence"]
    rows = [
        ("all", "", "all", 10.0, 6.0, "matched", FASTER, "one capture each"),
        ("all/a", "all", "a", 10.0, np.nan, "matched", UNTESTED, "one capture each"),
        ("all/b", "all", "b", 0.0, 6.0, "added", None, None),
        ("all/b/a", "all/b", "a", 0.0, 6.0, "added", None, None),
    ]
    return pd.DataFrame(rows, columns=columns)


def graph(make: Callable[[], pd.DataFrame] = tree) -> FlameGraph:
    return FlameGraph("ops", "Self time", make, "us", ["before", "after"], per="step", chooses="scope")


def test_nodes_refer_to_their_labels_and_verdicts() -> None:
    found = drawing(graph())
    assert found is not None
    data, ids = found
    nodes = data["nodes"]
    assert ids == ["all", "all/a", "all/b", "all/b/a"]
    assert [data["labels"][label] for label in nodes["label"]] == ["all", "a", "b", "a"]
    assert [data["verdicts"][one] if one >= 0 else None for one in nodes["verdict"]] == [
        "▼ faster",
        "– not tested",
        None,
        None,
    ]
    assert {str(kind) for kind in nodes.dtypes} == {"int32", "float64"}, "what JavaScript has numbers for"


@pytest.mark.parametrize(
    "plain", [replace(graph(), sides=["before"]), replace(graph(), is_neutral=True)], ids=["alone", "unrelated"]
)
def test_a_run_alone_and_unrelated_programs_have_no_colours(plain: FlameGraph) -> None:
    found, coloured = drawing(plain), drawing(graph())
    assert found is not None and coloured is not None
    assert found[0]["isPlain"] and not found[0]["nodes"]["change"].any()
    assert not coloured[0]["isPlain"] and coloured[0]["nodes"]["change"].any()


def test_a_run_alone_is_as_wide_as_its_own_times() -> None:
    found = drawing(replace(graph(), sides=["before"]))
    assert found is not None and found[1] == ["all", "all/a"]
    assert found[0]["nodes"]["width"].tolist() == [10, 10]


def test_other_nodes_have_another_token() -> None:
    found, same, other = drawing(graph()), drawing(graph()), drawing(graph(lambda: tree().iloc[:2]))
    assert found is not None and same is not None and other is not None
    assert found[0]["token"] == same[0]["token"] != other[0]["token"]


def test_a_report_has_the_nodes_as_json() -> None:
    found = flame_json(replace(graph(), selected="all/b"))
    assert found is not None
    data = json.loads(json.dumps(found["data"], allow_nan=False))
    assert data["nodes"]["candidate"] == [6, None, 6, 6], "what is unknown is null"
    assert data["selected"] == 2 and not data["chooses"]


def test_a_report_draws_the_graph_or_says_that_there_is_nothing() -> None:
    def html_of(shown: FlameGraph) -> str:
        return as_html(Report("ops", [Section("", [shown], is_open=True)], ""))

    assert '<div data-block="0"></div>' in html_of(graph())
    empty = html_of(replace(graph(lambda: tree().iloc[:0]), nothing="No op took any time."))
    assert "<div data-block=" not in empty and "No op took any time.</p>" in empty


def test_the_subtitle_says_what_widths_and_colours_are() -> None:
    said = "Width: the longer time per step."
    assert subtitle(is_alone=False, is_neutral=False, per="step") == f"{said} Colour: its change."
    assert subtitle(is_alone=False, is_neutral=True, per="step") == said
    assert subtitle(is_alone=True, is_neutral=False, per="") == "Width: time."
