"""The example notebook runs as it is, and what is stored in it is what it shows."""

from __future__ import annotations

import pytest
from nbformat import NotebookNode

from tests.report.example_notebook import code_cells, executed, html_of, is_figure, stored


def texts(cell: NotebookNode) -> list[str]:
    """What a cell shows, apart from figures and from the HTML of pandas."""
    found = []
    for output in cell.outputs:
        if not is_figure(output):
            found.append(output["text"] if output.output_type == "stream" else output["data"]["text/plain"])
    return [*found, *html_of(cell)]


@pytest.mark.thorough
def test_each_cell_runs_and_shows_what_is_stored() -> None:
    """In `make test`, `tests/render/test_notebook_cells.py` compares the stored answers, without a kernel."""
    cells = list(zip(code_cells(stored()), code_cells(executed()), strict=True))
    for before, now in cells:
        assert texts(now) == texts(before), now.source
        assert len(now.outputs) == 1, now.source
    drawn = [now for _, now in cells if any(map(is_figure, now.outputs))]
    assert ["figure" in cell.source for cell in drawn] == [True] * 4
