"""The example notebook runs as it is, and what is stored in it is what it shows."""

from __future__ import annotations

import pytest
from nbformat import NotebookNode

from tests.profiles import compared_runs, loaded_run
from tests.report.example_notebook import PATH, executed, is_figure, stored
from tfcompare.compare import compare


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def html_of(cell: NotebookNode) -> list[str]:
    """What tfcompare shows below a cell; the HTML of pandas differs between its versions."""
    found = [output.get("data", {}).get("text/html", "") for output in cell.outputs]
    return [text for text in found if "tfcompare" in text]


def texts(cell: NotebookNode) -> list[str]:
    """What a cell shows, apart from figures and from the HTML of pandas."""
    found = []
    for output in cell.outputs:
        if not is_figure(output):
            found.append(output["text"] if output.output_type == "stream" else output["data"]["text/plain"])
    return [*found, *html_of(cell)]


def test_the_answers_that_are_stored_are_those_of_this_version() -> None:
    """After a change: python -m tests.report.example_notebook"""
    comparison = compared_runs("filters_512_128", "filters_16_8")
    several = compare(*map(loaded_run, ("filters_16_8", "filters_16_8_again", "filters_16_8_better_input")))
    shown = [html for cell in code_cells(stored()) for html in html_of(cell)]
    assert shown == [one._repr_html_() for one in (loaded_run("filters_16_8"), comparison, several)]
    assert PATH.stat().st_size < 200_000, "figures are not stored"


@pytest.mark.thorough
def test_each_cell_runs_and_shows_what_is_stored() -> None:
    """The test above stands for it in `make test`, without a kernel."""
    cells = list(zip(code_cells(stored()), code_cells(executed()), strict=True))
    for before, now in cells:
        assert texts(now) == texts(before), now.source
        assert len(now.outputs) == 1, now.source
    drawn = [now for _, now in cells if any(map(is_figure, now.outputs))]
    assert ["figure" in cell.source for cell in drawn] == [True] * 4
