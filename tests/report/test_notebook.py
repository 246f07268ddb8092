"""The example notebook runs as it is, and what is stored in it is what it shows."""

from __future__ import annotations

import pytest
from nbformat import NotebookNode

from tests.report.example_notebook import PATH, executed, is_figure, stored

Cells = list[tuple[NotebookNode, NotebookNode]]


@pytest.fixture(scope="module")
def cells() -> Cells:
    """Each code cell as it is stored and as it was run now."""
    pairs = zip(stored().cells, executed().cells, strict=True)
    return [(before, now) for before, now in pairs if before.cell_type == "code"]


def texts(cell: NotebookNode) -> list[str]:
    """What a cell shows, apart from figures and from the HTML of pandas, which differs between its versions."""
    found = []
    for output in cell.outputs:
        data = output.get("data", {})
        if not is_figure(output):
            found.append(output["text"] if output.output_type == "stream" else data["text/plain"])
        if "tfcompare" in data.get("text/html", ""):
            found.append(data["text/html"])
    return found


def test_each_cell_shows_what_is_stored(cells: Cells) -> None:
    """After a change: python -m tests.report.example_notebook"""
    for before, now in cells:
        assert texts(now) == texts(before), now.source
        assert len(now.outputs) == 1, now.source


def test_figures_are_drawn_and_not_stored(cells: Cells) -> None:
    drawn = [now for _, now in cells if any(map(is_figure, now.outputs))]
    assert ["figure" in cell.source for cell in drawn] == [True] * 4
    assert PATH.stat().st_size < 200_000
