"""Runs the example notebook in a fresh kernel. `python -m tests.report.example_notebook` stores what it shows.

Figures are not stored: they are large, and no website that shows notebooks draws them.
"""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory
from unittest.mock import patch

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from tests.profiles import ROOT

PATH = ROOT / "docs" / "notebook.ipynb"
FIGURE = "application/vnd.plotly.v1+json"
"""What Plotly gives a notebook."""


def stored() -> NotebookNode:
    """The notebook as it is in the repository."""
    return nbformat.read(PATH, as_version=4)


def executed() -> NotebookNode:
    """The notebook with what its cells show, run where it lies, on this checkout's package."""
    notebook = stored()
    settings = {"PYTHONPATH": str(ROOT), "PLOTLY_RENDERER": "plotly_mimetype"}
    with TemporaryDirectory() as own, patch.dict(os.environ, settings, IPYTHONDIR=own):
        NotebookClient(notebook, timeout=300).execute(cwd=str(PATH.parent))
    return notebook


def is_figure(output: NotebookNode) -> bool:
    """Whether it is one of Plotly's."""
    return FIGURE in output.get("data", {})


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Its cells of code."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def html_of(cell: NotebookNode) -> list[str]:
    """What tfcompare shows below a cell; the HTML of pandas differs between its versions."""
    found = [output.get("data", {}).get("text/html", "") for output in cell.outputs]
    return [text for text in found if "tfcompare" in text]


def store() -> None:
    """Write the notebook with what it shows now."""
    notebook = stored()
    for cell, done in zip(notebook.cells, executed().cells, strict=True):
        if cell.cell_type == "code":
            cell.outputs = [output for output in done.outputs if not is_figure(output)]
            cell.execution_count = done.execution_count
    nbformat.write(notebook, PATH)


if __name__ == "__main__":
    store()
