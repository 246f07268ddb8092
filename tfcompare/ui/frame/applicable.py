"""Which pages have nothing to show for the chosen runs, and why."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from tfcompare.run import Run
from tfcompare.ui.frame.selection import Selection

_TABLES = {
    "Kernel stats": (("kernel_stats",), "No GPU kernels were captured."),
    "Memory": (("memory_summary",), "No memory events were captured."),
    "Input pipeline": (("steps", "input_pipeline"), "No steps and no input ops were captured."),
    "tf.data": (("tf_data_pipelines",), "No tf.data events were captured."),
    "XLA": (("hlo_ops", "compilations"), "No compiled XLA programs and no compilations were captured."),
}
"""The tables that each page shows; it has nothing to show if all of them are empty in all runs."""

_KNOWN = "tfcompare.applicable"


def why_not(runs: Sequence[Run]) -> dict[str, str]:
    """The reason for each page, by its title, that has nothing to show for these runs."""
    reasons = {
        title: reason
        for title, (tables, reason) in _TABLES.items()
        if all(run.table(table).empty for run in runs for table in tables)
    }
    if all(len(run.host_names) < 2 and len(run.devices) < 2 for run in runs):
        reasons["Hosts"] = "The runs have one host and at most one device."
    return reasons


def remember(selection: Selection, reasons: dict[str, str]) -> None:
    """Keep the reasons for the selected runs, so that the next page can show them before these are loaded."""
    st.session_state[_KNOWN] = selection.compared, reasons


def known(selection: Selection) -> dict[str, str]:
    """The remembered reasons for the selected runs; none if these were not loaded yet."""
    compared, reasons = st.session_state.get(_KNOWN, ((), {}))
    found: dict[str, str] = reasons if compared == selection.compared else {}
    return found
